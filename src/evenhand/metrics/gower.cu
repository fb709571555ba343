// Exact Gower neighbours: one lane for each person asked about, one warp for 32 of them who are much alike.
// As on the CPU, a coarse distance of 16-bit integers finds the candidates, and an exact one ranks them. Boxes around
// BLOCK people are skipped if they are too far for all 32. Two people, or two boxes, lie in one 32-bit word.
// The sum of all costs is below 2^16, so the halves of a word never run over into each other.
typedef unsigned int u32;
typedef long long i64;
constexpr int GROUP = 8;  // people, or boxes, that one 16-byte load has one feature of
constexpr u32 ONES = 0x00010001u, NOBODY = 0xffffffffu;
constexpr double NEVER = 1e300;

// Add to a sum how far apart feature f is, where both are known; `mark` is all ones where it is missing.
__device__ __forceinline__ u32 plus(u32 sum, u32 mine, u32 theirs, u32 mark, int f) {
  constexpr u32 costs[] = COSTS;
  constexpr bool holed[] = HOLED;  // features that somebody lacks
  u32 apart = f < NUMBERS ? __vmaxu2(mine, theirs) - __vminu2(mine, theirs) : __vminu2(mine ^ theirs, ONES);
  if (holed[f]) apart = mine == NOBODY ? 0 : apart & __vcmpne2(mark, NOBODY);
  return f < NUMBERS ? sum + apart : sum + apart * costs[f];
}

__device__ __forceinline__ void to_people(u32* sums, const u32* mine, const uint4* people, int stride) {
  #pragma unroll UNROLLED
  for (int f = 0; f < FEATURES; f++) {
    const uint4 them = people[f * stride];
    sums[0] = plus(sums[0], mine[f], them.x, them.x, f);
    sums[1] = plus(sums[1], mine[f], them.y, them.y, f);
    sums[2] = plus(sums[2], mine[f], them.z, them.z, f);
    sums[3] = plus(sums[3], mine[f], them.w, them.w, f);
  }
}

__device__ __forceinline__ u32 nearest_in(u32 mine, u32 low, u32 high) { return __vminu2(__vmaxu2(mine, low), high); }

__device__ __forceinline__ void to_boxes(u32* sums, const u32* mine, const uint4* lows, const uint4* highs) {
  #pragma unroll UNROLLED
  for (int f = 0; f < FEATURES; f++) {
    const uint4 low = lows[f], high = highs[f];
    sums[0] = plus(sums[0], mine[f], nearest_in(mine[f], low.x, high.x), low.x, f);
    sums[1] = plus(sums[1], mine[f], nearest_in(mine[f], low.y, high.y), low.y, f);
    sums[2] = plus(sums[2], mine[f], nearest_in(mine[f], low.z, high.z), low.z, f);
    sums[3] = plus(sums[3], mine[f], nearest_in(mine[f], low.w, high.w), low.w, f);
  }
}

// Which of the eight are within the limit, as bits.
__device__ __forceinline__ u32 within(const u32* sums, int limit) {
  const u32 least = __vminu2(__vminu2(sums[0], sums[1]), __vminu2(sums[2], sums[3]));
  if ((int)(least & 0xffff) > limit && (int)(least >> 16) > limit) return 0;
  u32 bits = 0;
  #pragma unroll
  for (int w = 0; w < 4; w++) {
    bits |= (u32)((int)(sums[w] & 0xffff) <= limit) << (2 * w);
    bits |= (u32)((int)(sums[w] >> 16) <= limit) << (2 * w + 1);
  }
  return bits;
}

// The same arithmetic as the CPU's: all terms are whole numbers below 2^53, so their order does not matter.
__device__ double exact(const double* a, const double* b, const int* of_a, const int* of_b, const double* weights,
                        const double* scales, double enough) {
  double total = 0, weight = 0;
  for (int f = 0; f < NUMBERS; f++) {
    const double apart = fabs(a[f] - b[f]);
    if (apart == apart) { total += rint(apart * scales[f]); weight += weights[f]; }
  }
  if (total > enough) return NEVER;
  for (int c = 0; c < FEATURES - NUMBERS; c++)
    if (of_a[c] != -1 && of_b[c] != -1) {
      weight += weights[NUMBERS + c];
      if (of_a[c] != of_b[c]) total += weights[NUMBERS + c];
    }
  return weight > 0 ? total / weight : 1.0;
}

// numbers, codes and order go by place; near_by and near are (k, asked), nearest first, equal ones by index.
extern "C" __global__ void __launch_bounds__(32, 16) nearest(
    const unsigned short* __restrict__ blocks, const uint4* __restrict__ low, const uint4* __restrict__ high,
    const double* __restrict__ numbers, const int* __restrict__ codes, const double* __restrict__ weights,
    const double* __restrict__ scales, const int* __restrict__ order, const int* __restrict__ places, i64 first,
    i64 asked, i64 n, i64 n_boxes, int k, double span, double margin, double all_weight, double* near_by, int* near) {
  const i64 at = first + (i64)blockIdx.x * 32 + threadIdx.x;
  const bool is = at < asked;
  const i64 place = places[is ? at : asked - 1];
  u32 mine[FEATURES];
  #pragma unroll UNROLLED
  for (int f = 0; f < FEATURES; f++)
    mine[f] = blocks[(place / BLOCK * FEATURES + f) * BLOCK + place % BLOCK] * ONES;
  int limit = is ? 0xffff : -1;
  double farthest = NEVER;
  int last = (int)n;
  const i64 groups = n_boxes / GROUP, home = __shfl_sync(NOBODY, place, 0) / (BLOCK * GROUP);
  for (i64 step = 0; step < 2 * groups; step++) {
    const i64 g = step & 1 ? home + (step + 1) / 2 : home - step / 2;  // from home outwards: a tight limit soon
    if (g < 0 || g >= groups) continue;
    u32 sums[4] = {0, 0, 0, 0};
    to_boxes(sums, mine, low + g * FEATURES, high + g * FEATURES);
    const u32 boxes = within(sums, limit);
    for (int box = 0; box < GROUP; box++) {
      if (!__any_sync(NOBODY, boxes >> box & 1)) continue;
      const i64 b = g * GROUP + box;
      const uint4* people = (const uint4*)(blocks + b * FEATURES * BLOCK);
      for (int start = 0; start < BLOCK; start += GROUP) {
        u32 apart[4] = {0, 0, 0, 0};
        to_people(apart, mine, people + start / GROUP, BLOCK / GROUP);
        for (u32 found = within(apart, limit); found; found &= found - 1) {
          const i64 other = b * BLOCK + start + __ffs(found) - 1;
          if (other >= n || other == place) continue;
          const int j = order[other];
          if (farthest == 0 && j > last) continue;
          const double d = exact(numbers + place * NUMBERS, numbers + other * NUMBERS,
                                 codes + place * (FEATURES - NUMBERS), codes + other * (FEATURES - NUMBERS), weights,
                                 scales, farthest * all_weight);
          if (d > farthest || (d == farthest && j > last)) continue;
          int p = k - 1;
          for (; p > 0; p--) {
            const i64 before = (i64)(p - 1) * asked + at;
            if (d > near_by[before] || (d == near_by[before] && j > near[before])) break;
            near_by[before + asked] = near_by[before];
            near[before + asked] = near[before];
          }
          near_by[(i64)p * asked + at] = d;
          near[(i64)p * asked + at] = j;
          farthest = near_by[(i64)(k - 1) * asked + at];
          last = near[(i64)(k - 1) * asked + at];
          if (farthest <= 1) limit = (int)fmin(farthest * span + margin, 65535.0);
        }
      }
    }
  }
}
