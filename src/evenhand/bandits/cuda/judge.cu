// What the policies decide about other people: counts[label][own decision] by group, then whose decision differs
// between groups. Blocks of one model share the people out among themselves.
struct Judged {
  const float* policies; const int2* rows; const i64* starts; const unsigned* who; unsigned* counts;
  i64 n, d;
};

extern "C" __global__ void __launch_bounds__(256) judge(const Judged* all) {
  extern __shared__ __align__(16) float shared[];
  const Judged m = all[blockIdx.y];
  const Lane me = this_lane();
  const i64 size = padded(elements(m.d) * G);
  unsigned* counts = (unsigned*)shared;
  constexpr int cells = G * K * K + 1;
  for (int i = threadIdx.x; i < cells; i += blockDim.x) counts[i] = 0;
#if PLACED >= 1
  float* W = shared + (cells + 3) / 4 * 4;
  copy(W, m.policies, size, threadIdx.x, blockDim.x);
  const Base base = me.base((unsigned)__cvta_generic_to_shared(W), m.d);
  const Weights policies = {W, 0, true};
#else
  float* W = (float*)m.policies;
  const Base base = me.base(0, m.d);
  const Weights policies = {W, 0, false};
#endif
  __syncthreads();
  Small small;
  load_small(W, m.d, me, small);
  const i64 warps = gridDim.x * (blockDim.x / 32), mine = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  for (i64 person = mine; person < m.n; person += warps) {
#if NNZ > 0
    Columns columns;
    open(columns, m.rows + person * PITCH, base, me);
#else
    const i64 from = m.starts[person];
    Columns columns = {m.rows + from, (int)(m.starts[person + 1] - from), (int)m.d, base};
#endif
    float hidden[SLOTS], logits[M];
    forward(policies, small, columns, me, hidden, logits);
    const unsigned is = m.who[person];
    const int group = is & 0xffff, label = is >> 16;
    float decided[G];
    bool flips = false;
    #pragma unroll
    for (int g = 0; g < G; g++) {
      int top = 0;
      if constexpr (K == 2) top = logits[g] > 0.f;
      else {
        float best = logits[g];
        #pragma unroll
        for (int k = 1; k < KL; k++) if (logits[k * G + g] > best) { best = logits[k * G + g]; top = k; }
      }
      decided[g] = (float)top;
      flips |= decided[g] != decided[0];
    }
    if (me.lane == 0) {
      atomicAdd(counts + (group * K + label) * K + (int)pick<G>(decided, group), 1u);
      if (flips) atomicAdd(counts + cells - 1, 1u);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < cells; i += blockDim.x) if (counts[i]) atomicAdd(m.counts + i, counts[i]);
}
