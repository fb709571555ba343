// The acting policy and the others.
struct Seen { float p[K], lp[K], q[OTHERS * K], lq[OTHERS * K], z, zq[OTHERS]; };
// The probabilities of two labels, and their logarithms, from the difference z of the logits and e = exp(-|z|).
__device__ __forceinline__ void of_two(float z, float e, float* said, float* logs) {
  const float total = __logf(1.f + e), large = __fdividef(1.f, 1.f + e), small = e * large;
  said[0] = z > 0 ? small : large; said[1] = z > 0 ? large : small;
  logs[0] = -total - fmaxf(z, 0.f); logs[1] = -total - fmaxf(-z, 0.f);
}
__device__ __forceinline__ void look(const float* logits, int group, Seen& seen) {
#if K == 2
  // All exponentials first, then the choice of the group: they start side by side, and are on the critical path.
  float z[G], e[G];
  #pragma unroll
  for (int g = 0; g < G; g++) { z[g] = 2.f * logits[g]; e[g] = exp2f(-2.8853900817779268f * fabsf(logits[g])); }
  seen.z = pick<G>(z, group);
  of_two(seen.z, pick<G>(e, group), seen.p, seen.lp);
  #pragma unroll
  for (int o = 0; o < O; o++) {
    seen.zq[o] = o >= group ? z[o + 1] : z[o];
    of_two(seen.zq[o], o >= group ? e[o + 1] : e[o], seen.q + o * K, seen.lq + o * K);
  }
#else
  float chosen[K];
  #pragma unroll
  for (int k = 0; k < K; k++) chosen[k] = pick<G>(logits + k * G, group);
  softmax(chosen, seen.p, seen.lp);
  #pragma unroll
  for (int o = 0; o < O; o++) {
    #pragma unroll
    for (int k = 0; k < K; k++) chosen[k] = o >= group ? logits[k * G + o + 1] : logits[k * G + o];
    softmax(chosen, seen.q + o * K, seen.lq + o * K);
  }
#endif
}
// Returns log(p / ((p + q) / 2)) from the logarithms of p and q. It is exactly 0 for equal policies, and has all its
// digits for nearly equal ones: Adam would turn the rounding errors of a plain logarithm into steps.
__device__ __forceinline__ float above_middle(float lp, float lq) {
  const float z = lq - lp, s = sinhf(0.25f * fminf(fmaxf(z, -16.f), 16.f));
  return fabsf(z) < 16.f ? -0.5f * z - log1pf(2.f * s * s) : 0.6931472f - fmaxf(z, 0.f);
}
template <int KIND> __device__ __forceinline__ float mean_divergence(const Seen& seen) {
  float mean = 0.f;
  #pragma unroll
  for (int o = 0; o < O; o++) {
    if constexpr (KIND == 0 && K == 2) {  // shorter, since this is on the critical path
      mean = (o ? mean : -0.f) + fmaf(seen.p[1], seen.z - seen.zq[o], seen.lp[0] - seen.lq[o * K]);
      continue;
    }
    float total = 0.f;
    #pragma unroll
    for (int k = 0; k < K; k++) {
      const float p = seen.p[k], q = seen.q[o * K + k], lp = seen.lp[k], lq = seen.lq[o * K + k];
      if constexpr (KIND == 0) total += p * (lp - lq);
      if constexpr (KIND == 1) total += 0.5f * (p * above_middle(lp, lq) + q * above_middle(lq, lp));
      if constexpr (KIND == 2) total += 0.5f * fabsf(p - q);
      if constexpr (KIND == 3) { const float gap = sqrtf(p) - sqrtf(q); total += 0.5f * gap * gap; }
    }
    mean += KIND == 3 ? sqrtf(total) : total;
  }
  return mean / OTHERS;
}

// The reward of one action; p, lp, q and lq belong to this action.
__device__ __forceinline__ float reward_of(const Model& m, int k, int label, float p, float lp, const float* q,
                                           const float* lq, const int* draws, float note, float price) {
  float reward = T > 0 ? -price : -0.f;  // adding to -0 needs no instruction
#if GAINS == 1
  reward += k == label ? 1.f : 0.f;
#elif GAINS == 2
  reward += __ldg(m.gains + label * K + k);
#endif
#if LIKELIHOOD
  if (k == label) reward += fminf(1.f / fmaxf(p, TINY), (float)m.clip);
#endif
#if KLD
  reward -= (float)m.kl * note;
#endif
  #pragma unroll
  for (int o = 0; o < O; o++) {
    float apart = 0.f;
#if LOG_RATIO
    apart += (float)m.log_ratio * (lp - lq[o]);
#endif
#if AGREEMENT
    apart += (float)m.agreement * (EXPECTED ? 1.f - q[o] : (draws[o] == k ? 0.f : 1.f));
#endif
#if JENSEN_SHANNON
    apart += (float)m.jensen_shannon * 0.5f * above_middle(lp, lq[o]);
#endif
    reward -= apart / OTHERS;
  }
  return reward;
}
// Computes the logit gradient of the o-th other policy, which listens.
__device__ __forceinline__ void listen(const Model& m, const Seen& seen, int o, int action, int heard, float* out) {
  const float *p = seen.p, *q = seen.q + o * K, *lp = seen.lp, *lq = seen.lq + o * K;
  float agreed = 0.f, halves = 0.f;
#if EXPECTED
  #pragma unroll
  for (int k = 0; k < K; k++) {
    agreed += p[k] * q[k];
#if JENSEN_SHANNON
    halves += q[k] * 0.5f * above_middle(lq[k], lp[k]);
#endif
  }
#elif JENSEN_SHANNON
  halves = 0.5f * above_middle(pick<K>(lq, heard), pick<K>(lp, heard));
#endif
  #pragma unroll
  for (int k = K - KL; k < K; k++) {
    float sum = 0.f;
#if LOG_RATIO
    sum += (float)m.log_ratio * ((EXPECTED ? p[k] : (k == action ? 1.f : 0.f)) - q[k]);
#endif
#if AGREEMENT
    sum += (float)m.agreement * (EXPECTED ? q[k] * (p[k] - agreed)
                                          : (heard == action ? 0.f : q[k] - (k == heard ? 1.f : 0.f)));
#endif
#if JENSEN_SHANNON
    sum += (float)m.jensen_shannon
           * (EXPECTED ? q[k] * (halves - 0.5f * above_middle(lq[k], lp[k]))
                       : halves * (q[k] - (k == heard ? 1.f : 0.f)));
#endif
    out[k - (K - KL)] = sum / OTHERS;
  }
}

