// Counts the policies' decisions on other people: counts[label][own decision] by group, then the number of people whose
// decision differs between groups. Labels that the policies don't know are counted together, after the others. The
// blocks of a model share its people.
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
  constexpr int cells = G * (K + 1) * K + 1;
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
  const auto count = [&](i64 person, const float* logits) {
    const unsigned is = m.who[person];
    const int group = is & 0xffff, label = is >> 16 < K ? is >> 16 : K;
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
      atomicAdd(counts + (group * (K + 1) + label) * K + (int)pick<G>(decided, group), 1u);
      if (flips) atomicAdd(counts + cells - 1, 1u);
    }
  };
  const i64 warps = gridDim.x * (blockDim.x / 32), mine = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
#if NNZ == 0
  if (m.starts[m.n] == m.n * m.d) {  // all rows are full: a few people share each load of the weights
    constexpr int crowd = N <= 4 ? 4 : N <= 8 ? 2 : 1;
    for (i64 person = mine * crowd; person < m.n; person += warps * crowd) {
      float hidden[crowd][N];
      #pragma unroll
      for (int i = 0; i < crowd * N; i++) hidden[i / N][i % N] = small.b1[i % N];
      for (int from = 0; from < (int)m.d; from += 32) {
        const int here = m.d - from < 32 ? (int)m.d - from : 32;
        float value[crowd];
        #pragma unroll
        for (int p = 0; p < crowd; p++) {
          const i64 row = (person + p < m.n ? person + p : person) * m.d;
          value[p] = me.lane < here ? __int_as_float(m.rows[row + from + me.lane].y) : 0.f;
        }
        #pragma unroll 8
        for (int k = 0; k < here; k++) {
          float w[N];
          policies.load<N>((Offset)(from + k) * me.stride + base.first, w);
          #pragma unroll
          for (int p = 0; p < crowd; p++) {
            const float each = __shfl_sync(FULL, value[p], k);
            #pragma unroll
            for (int i = 0; i < N; i++) hidden[p][i] = fmaf(each, w[i], hidden[p][i]);
          }
        }
      }
      #pragma unroll
      for (int p = 0; p < crowd; p++) {
        float logits[M];
        conclude(small, me, hidden[p], logits);
        if (person + p < m.n) count(person + p, logits);
      }
    }
  } else
#endif
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
    count(person, logits);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < cells; i += blockDim.x) if (counts[i]) atomicAdd(m.counts + i, counts[i]);
}
