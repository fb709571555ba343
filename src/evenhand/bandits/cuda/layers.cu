// The work of a lane: its units start at `unit`, and it takes every S-th column, starting at `part`. An idle lane reads
// the row of zeros for every column (`stride` 0), and never changes it, so that lanes need no branches. In the tail, a
// lane has the `dealt`-th weight of every second column, starting at its `half`.
struct Base { Offset first, tail; };
struct Lane {
  int lane, part, unit; bool alive; unsigned stride;
  int half, dealt; bool in_tail; unsigned tail_stride;

  // Where the weights of the first column are for this lane; the policies start at `lies`.
  __device__ __forceinline__ Base base(unsigned lies, i64 d) const {
    const Offset zeros = (Offset)d * (ROW * 4);
    return {lies + (alive ? unit * (G * 4) : zeros), lies + (in_tail ? (32 * G + dealt) * 4 : zeros)};
  }
};
__device__ __forceinline__ Lane this_lane() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));  // kept, because reading it again at every step takes longer
  const int l = lane % LANES;
  const bool alive = l * U < HP, in_tail = lane % 16 < TAIL * G;
  return {lane, S == 1 ? 0 : lane / LANES, alive ? l * U : 0, alive, alive ? ROW * 4u : 0u,
          lane / 16, in_tail ? lane % 16 : 0, in_tail, in_tail ? ROW * 4u : 0u};
}

// The columns of a row, as this lane reads them: the position of its weights, in bytes, and the values. Short rows are
// kept in registers. `base` is the position of the first column: an address in shared memory, or an offset in bytes.
#if NNZ > 0
#define PAIRS (TAIL ? PITCH / 2 : 0)
struct Columns {
  unsigned at[COLUMNS + PAIRS]; float value[COLUMNS + PAIRS], w[COLUMNS][N], tail[PAIRS + 1];
};
__device__ __forceinline__ void open(Columns& columns, const int2* row, const Base& base, const Lane& me) {
#if S == 1
  #pragma unroll
  for (int k = 0; k < PITCH; k += 2) {
    const int4 two = *(const int4*)(row + k);
    columns.at[k] = two.x * me.stride + base.first;
    columns.value[k] = __int_as_float(two.y);
    if (k + 1 < NNZ) {
      columns.at[k + 1] = two.z * me.stride + base.first;
      columns.value[k + 1] = __int_as_float(two.w);
    }
#if TAIL
    columns.at[COLUMNS + k / 2] = (me.half ? two.z : two.x) * me.tail_stride + base.tail;
    columns.value[COLUMNS + k / 2] = __int_as_float(me.half ? two.w : two.y);
#endif
  }
#else
  #pragma unroll
  for (int k = 0; k < COLUMNS; k++) {
    const int2 e = row[k * S + me.part];
    columns.at[k] = e.x * me.stride + base.first;
    columns.value[k] = __int_as_float(e.y);
  }
#endif
}
// All loads come before any store, since the compiler doesn't know that columns differ.
__device__ __forceinline__ void fetch(Columns& columns, const Weights& from) {
  #pragma unroll
  for (int k = 0; k < PAIRS; k++) from.load<1>(columns.at[COLUMNS + k], columns.tail + k);
  #pragma unroll
  for (int k = 0; k < COLUMNS; k++) from.load<N>(columns.at[k], columns.w[k]);
}
#else
#define FEW (N <= 4 ? 8 : N <= 8 ? 4 : N <= 16 ? 2 : 1)  // columns whose weights are loaded at a time
struct Columns { const int2* row; int count, none; Base base; };  // `none`: the column of the row of zeros
// Calls use(where, values) for a few columns of a row at a time; the last few are padded with the row of zeros.
template <class F> __device__ __forceinline__ void every_few(const Columns& columns, const Lane& me, F use) {
  const auto pair = [&](int at) { return at < columns.count ? columns.row[at] : make_int2(columns.none, 0); };
  int2 next = pair(me.lane);
  for (int from = 0; from < columns.count; from += 32) {
    const int2 mine = next;
    next = pair(from + 32 + me.lane);
    const int here = columns.count - from < 32 ? columns.count - from : 32;
    for (int k = 0; k < here; k += FEW) {
      Offset at[FEW];
      float value[FEW];
      #pragma unroll
      for (int j = 0; j < FEW; j++) {
        at[j] = (Offset)__shfl_sync(FULL, mine.x, k + j) * me.stride + columns.base.first;
        value[j] = __int_as_float(__shfl_sync(FULL, mine.y, k + j));
      }
      use(at, value);
    }
  }
}
#endif
// Adds the values times `back` to the weights of the columns of a row.
__device__ __forceinline__ void add(Columns& columns, const Weights& into, const float* back, const Lane& me) {
#if NNZ > 0
#if OPT > 0
  fetch(columns, into);
#endif
  #pragma unroll
  for (int k = 0; k < COLUMNS; k++) {
    #pragma unroll
    for (int i = 0; i < N; i++) columns.w[k][i] = fmaf(columns.value[k], back[i], columns.w[k][i]);
    into.store<N>(columns.at[k], columns.w[k]);
  }
  #pragma unroll
  for (int k = 0; k < PAIRS; k++) {
    columns.tail[k] = fmaf(columns.value[COLUMNS + k], back[SLOTS - 1], columns.tail[k]);
    into.store<1>(columns.at[COLUMNS + k], columns.tail + k);
  }
#else
  every_few(columns, me, [&](const Offset* at, const float* value) {
    float w[FEW][N];
    #pragma unroll
    for (int k = 0; k < FEW; k++) into.load<N>(at[k], w[k]);
    #pragma unroll
    for (int k = 0; k < FEW; k++) {
      #pragma unroll
      for (int i = 0; i < N; i++) w[k][i] = fmaf(value[k], back[i], w[k][i]);
      into.store<N>(at[k], w[k]);
    }
  });
#endif
}

// A lane's part of all layers except the first. `tail[k]` leads from the tail's unit to label k of its own group.
struct Small { float b1[SLOTS], w2[U * M], b2[M], tail[KL]; };
// Turns the sums of a hidden layer into its units, and into the logits, which every lane gets.
__device__ __forceinline__ void conclude(const Small& small, const Lane& me, float* hidden, float* logits) {
  #pragma unroll
  for (int apart = LANES; apart < 32; apart *= 2) {
    #pragma unroll
    for (int i = 0; i < N; i++) hidden[i] += __shfl_xor_sync(FULL, hidden[i], apart);
  }
  #pragma unroll
  for (int i = 0; i < N; i++) hidden[i] = fmaxf(hidden[i], 0.f);
#if TAIL
  float tail[M];
  #pragma unroll
  for (int i = 0; i < M; i++) {
    tail[i] = me.half == 0 && me.dealt % G == i % G ? hidden[N] * small.tail[i / G] : 0.f;
#if OPT > 1
    // Adam would turn rounding errors into steps, so equal policies must get exactly equal logits. With a sum of its own,
    // the tail is added up in the same order for every group, if their number is a power of two (see `layout`).
    #pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) tail[i] += __shfl_xor_sync(FULL, tail[i], apart);
#endif
  }
#endif
  #pragma unroll
  for (int i = 0; i < M; i++) {
    logits[i] = 0.f;
#if TAIL && OPT <= 1
    logits[i] = tail[i];
#endif
    #pragma unroll
    for (int u = 0; u < U; u++) logits[i] = fmaf(hidden[u * G + i % G], small.w2[u * M + i], logits[i]);
  }
  #pragma unroll
  for (int apart = LANES / 2; apart > 0; apart /= 2) {
    #pragma unroll
    for (int i = 0; i < M; i++) logits[i] += __shfl_xor_sync(FULL, logits[i], apart);
  }
  #pragma unroll
  for (int i = 0; i < M; i++) {
#if TAIL && OPT > 1
    logits[i] += tail[i];
#endif
    logits[i] += small.b2[i];
  }
}
// Computes the hidden units of all groups for a row, and the logits, which every lane gets. The units of idle lanes are
// zero. The tail's unit comes last.
__device__ __forceinline__ void forward(const Weights& W, const Small& small, Columns& columns, const Lane& me,
                                        float* hidden, float* logits) {
  #pragma unroll
  for (int i = 0; i < N; i++) hidden[i] = me.part == 0 ? small.b1[i] : 0.f;
#if NNZ > 0
  fetch(columns, W);
#if TAIL
  float tail = me.half == 0 ? small.b1[N] : 0.f;
  #pragma unroll
  for (int k = 0; k < PAIRS; k++) tail = fmaf(columns.value[COLUMNS + k], columns.tail[k], tail);
  hidden[N] = fmaxf(tail + __shfl_xor_sync(FULL, tail, 16), 0.f);
#endif
  float second[N] = {};
  #pragma unroll
  for (int k = 0; k < COLUMNS; k++) {
    #pragma unroll
    for (int i = 0; i < N; i++) {
      float& sum = k % 2 ? second[i] : hidden[i];
      sum = fmaf(columns.value[k], columns.w[k][i], sum);
    }
  }
  #pragma unroll
  for (int i = 0; i < N; i++) hidden[i] += second[i];
#else
  every_few(columns, me, [&](const Offset* at, const float* value) {
    float w[FEW][N];
    #pragma unroll
    for (int k = 0; k < FEW; k++) W.load<N>(at[k], w[k]);
    #pragma unroll
    for (int k = 0; k < FEW; k++) {
      #pragma unroll
      for (int i = 0; i < N; i++) hidden[i] = fmaf(value[k], w[k][i], hidden[i]);
    }
  });
#endif
  conclude(small, me, hidden, logits);
}
__device__ __forceinline__ void load_small(const float* W, i64 d, const Lane& me, Small& small) {
  const float* b1 = W + (d + 1) * ROW;
  get<N>(b1 + me.unit * G, small.b1);
  #pragma unroll
  for (int i = 0; i < N; i++) small.b1[i] = me.alive ? small.b1[i] : 0.f;
  #pragma unroll
  for (int k = 0; k < KL; k++) {
    float w[N];
    get<N>(b1 + (1 + k) * ROW + me.unit * G, w);
    #pragma unroll
    for (int i = 0; i < N; i++) small.w2[(i / G) * M + k * G + i % G] = me.alive ? w[i] : 0.f;
  }
  for (int i = 0; i < M; i++) small.b2[i] = b1[(1 + KL) * ROW + i];
#if TAIL
  const float* tail = b1 + 32 * G + me.dealt;
  small.b1[N] = me.in_tail ? tail[0] : 0.f;
  #pragma unroll
  for (int k = 0; k < KL; k++) small.tail[k] = me.in_tail ? tail[(1 + k) * ROW] : 0.f;
#endif
}
__device__ __forceinline__ void store_small(float* W, i64 d, const Lane& me, const Small& small) {
  float* b1 = W + (d + 1) * ROW;
  if (me.alive && me.part == 0) {
    put<N>(b1 + me.unit * G, small.b1);
    #pragma unroll
    for (int k = 0; k < KL; k++) {
      float w[N];
      #pragma unroll
      for (int i = 0; i < N; i++) w[i] = small.w2[(i / G) * M + k * G + i % G];
      put<N>(b1 + (1 + k) * ROW + me.unit * G, w);
    }
  }
  if (me.lane == 0) for (int i = 0; i < M; i++) b1[(1 + KL) * ROW + i] = small.b2[i];
#if TAIL
  if (me.in_tail && me.half == 0) {
    float* tail = b1 + 32 * G + me.dealt;
    tail[0] = small.b1[N];
    #pragma unroll
    for (int k = 0; k < KL; k++) tail[(1 + k) * ROW] = small.tail[k];
  }
#endif
}
__device__ __forceinline__ i64 elements(i64 d) { return (d + 2 + KL) * HP + KL; }

// Computes the probabilities of one policy, and their logarithms.
__device__ __forceinline__ void softmax(const float* logits, float* said, float* logs) {
  float top = logits[0], total = 0.f;
  #pragma unroll
  for (int k = 1; k < K; k++) top = fmaxf(top, logits[k]);
  #pragma unroll
  for (int k = 0; k < K; k++) { said[k] = __expf(logits[k] - top); total += said[k]; }
  const float log_total = __logf(total), share = __fdividef(1.f, total);
  #pragma unroll
  for (int k = 0; k < K; k++) { logs[k] = logits[k] - top - log_total; said[k] *= share; }
}
__device__ __forceinline__ int draw(const float* said, float u) {
  int action = K - 1;
  #pragma unroll
  for (int k = K - 2; k >= 0; k--) {
    float upto = said[0];
    #pragma unroll
    for (int j = 1; j <= k; j++) upto += said[j];
    if (u < upto) action = k;
  }
  return action;
}

