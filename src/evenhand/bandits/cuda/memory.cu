// One warp trains one model: the loop of `kernels/loop.py`, with the same random numbers, in single precision.
//
// A lane holds U hidden units of every group. If the layer is narrow, S parts of the warp share the columns of a row.
// If it is slightly wider than the warp, each lane takes one weight of the last TAIL units, and the two halves of the
// warp take the columns in turn. Weights are ordered by feature, then by unit, then by group, so that one load gets a
// unit's weights for all groups. After the features come a row of zeros, which pads short rows, then b1 and W2. With two
// labels, only half the difference of their weights is stored: the gradients of two logits are opposite, so the mean of
// the weights never learns.
//
// Compiled for G groups, K labels, H units, NNZ columns per row (0: any number), and the terms and optimiser in use.
typedef unsigned long long u64;
typedef long long i64;

#define N (U * G)              // weights of a lane in one row, without those of the tail
#define SLOTS (N + (TAIL > 0))
#define LANES (32 / S)
#define HP ((H + U - 1) / U * U)
#define ROW (HP * G)
#define KL (K == 2 ? 1 : K)    // stored logits
#define M (G * KL)
#define O (G - 1)              // other groups
#define OTHERS (O > 0 ? O : 1)
#define COLUMNS (NNZ / S)
#define PITCH ((NNZ + 1) / 2 * 2)  // pairs from one row to the next; two are copied at once
#define REACH (AHEAD ? 2 : 3)  // rows in transfer
#define RING (REACH + 1 - AHEAD)  // rows in transfer or in use
#define ITEMS (T * (K + 1) * K)
#define TURNS ((ITEMS + 31) / 32)
#define FD (G == 2 ? 1 : G)    // stored differences of the groups' moments
#define FULL 0xffffffffu
#define TINY 1e-37f

struct Model {                 // every field has eight bytes; `packing.py` has the same layout
  const int2* rows; const i64* starts; const unsigned* who; const float2* counts;
  float* policies; float* gradient; float* moments; double* state; double* history; i64* done;
  const float* gains; const float* rates;
  u64 seed;
  i64 first, stop, end, origin, horizon, interval, n, d, batch, order, schedule;
  double rate, apart, decay, clip, kl, log_ratio, agreement, jensen_shannon;
};

__device__ __forceinline__ u64 scramble(u64 seed, u64 counter) {
  u64 x = seed + (counter + 1) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}
__device__ __forceinline__ double uniform(u64 key, i64 step) {
  return (double)(scramble(key, step) >> 11) * (1.0 / 9007199254740992.0);
}
// The next person of a lane: the number of completed passes over the people, and the position in this pass.
struct Place {
  unsigned pass, met;

  __device__ __forceinline__ void on(const Model& m, int people) {
    met += people;
    while (met >= (unsigned)m.n) { met -= (unsigned)m.n; pass++; }  // faster than a division
  }
  __device__ __forceinline__ int person(const Model& m, i64 step) const {
    if (m.order == 1) return (int)met;
    if (m.order == 2) return (int)(uniform(scramble(m.seed, 0), step) * (double)m.n);
    const u64 key = scramble(m.seed, m.origin + pass);
    int width = 1;
    while ((1LL << width) < m.n) width++;
    const unsigned mask = (1U << width) - 1U, shift = (width + 1) / 2;  // fewer than 2^31 people
    unsigned x = met;
    do {
      for (int turn = 0; turn < 4; turn++) {
        const u64 bits = scramble(key, turn);
        x = (x ^ (unsigned)bits) & mask;
        x = (x * (unsigned)((bits >> 30) | 1ULL)) & mask;
        x ^= x >> shift;
      }
    } while (x >= (unsigned)m.n);
    return (int)x;
  }
};
__device__ double schedule_at(const Model& m, i64 step) {
  if (m.schedule == 3) return 1.0 / sqrt(1.0 + step / 10000.0);
  if (m.schedule == 0 || m.horizon == 0) return 1.0;
  const double done = fmin((double)step / m.horizon, 1.0);
  return 0.01 + 0.99 * (m.schedule == 1 ? 1.0 - done : 0.5 * (1.0 + cospi(done)));
}

template <int C> __device__ __forceinline__ void get(const float* from, float* to) {
  if constexpr (C % 4 == 0) {
    #pragma unroll
    for (int i = 0; i < C; i += 4) {
      const float4 v = *(const float4*)(from + i);
      to[i] = v.x; to[i + 1] = v.y; to[i + 2] = v.z; to[i + 3] = v.w;
    }
  } else if constexpr (C % 2 == 0) {
    #pragma unroll
    for (int i = 0; i < C; i += 2) { const float2 v = *(const float2*)(from + i); to[i] = v.x; to[i + 1] = v.y; }
  } else {
    #pragma unroll
    for (int i = 0; i < C; i++) to[i] = from[i];
  }
}
template <int C> __device__ __forceinline__ void put(float* to, const float* from) {
  if constexpr (C % 4 == 0) {
    #pragma unroll
    for (int i = 0; i < C; i += 4) *(float4*)(to + i) = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  } else if constexpr (C % 2 == 0) {
    #pragma unroll
    for (int i = 0; i < C; i += 2) *(float2*)(to + i) = make_float2(from[i], from[i + 1]);
  } else {
    #pragma unroll
    for (int i = 0; i < C; i++) to[i] = from[i];
  }
}
// Policies too large for shared memory may be larger than 4 GB.
#if NNZ == 0 && PLACED == 0
typedef u64 Offset;
#else
typedef unsigned Offset;
#endif
// Policies or their gradient, read and written at an offset in bytes from the policies. In shared memory, offsets are
// its own addresses: these are short, and need no addition.
struct Weights {
  float* first; unsigned apart; bool shared;  // `apart`: the distance from the policies, in bytes

  template <int C> __device__ __forceinline__ void load(Offset at, float* to) const {
    if (!shared) { get<C>((const float*)((const char*)first + at), to); return; }
    constexpr int wide = C % 4 == 0 ? 4 : C % 2 == 0 ? 2 : 1;
    #pragma unroll
    for (int i = 0; i < C; i += wide) {
      const unsigned from = (unsigned)at + apart + 4 * i;
      if constexpr (wide == 4)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(to[i]), "=f"(to[i + 1]), "=f"(to[i + 2]), "=f"(to[i + 3]) : "r"(from));
      else if constexpr (wide == 2)
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[i]), "=f"(to[i + 1]) : "r"(from));
      else
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(to[i]) : "r"(from));
    }
  }
  template <int C> __device__ __forceinline__ void store(Offset at, const float* from) const {
    if (!shared) { put<C>((float*)((char*)first + at), from); return; }
    constexpr int wide = C % 4 == 0 ? 4 : C % 2 == 0 ? 2 : 1;
    #pragma unroll
    for (int i = 0; i < C; i += wide) {
      const unsigned to = (unsigned)at + apart + 4 * i;
      if constexpr (wide == 4)
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                     ::"r"(to), "f"(from[i]), "f"(from[i + 1]), "f"(from[i + 2]), "f"(from[i + 3]));
      else if constexpr (wide == 2)
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(from[i]), "f"(from[i + 1]));
      else
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(from[i]));
    }
  }
};
template <int C> __device__ __forceinline__ float pick(const float* from, int at) {
  if constexpr (C > 32) return from[at];
  float found = from[0];
  #pragma unroll
  for (int i = 1; i < C; i++) found = at == i ? from[i] : found;
  return found;
}
__device__ __forceinline__ float outside(float value, float half) { return value - fminf(fmaxf(value, -half), half); }

__device__ __forceinline__ void copy(float* to, const float* from, i64 count, int lane, int lanes) {
  for (i64 i = lane; i < (count + 3) / 4; i += lanes) ((float4*)to)[i] = ((const float4*)from)[i];
}
__device__ __forceinline__ i64 padded(i64 count) { return (count + 3) / 4 * 4; }

