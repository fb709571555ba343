// Running rates and prices of the bounded terms: each lane holds some of the (term, label, action), for all groups.
#if T > 0
struct Watched {
  float rate[TURNS][G], dual[TURNS][G], price[TURNS];
  double count[TURNS][G];  // a float would stop at 2^24 people
  float averaging[TURNS][G], bound[TURNS], step[TURNS], pull[TURNS], cut[TURNS];
  int slot[TURNS], k[TURNS]; unsigned held[TURNS]; bool mask[TURNS];

  __device__ void load(const double* kept, const float* told, int lane) {
    const float *averages = told + 4 * T, *holds = averages + T * G, *masks = holds + T * G;
    #pragma unroll
    for (int i = 0; i < TURNS; i++) {
      const int item = i * 32 + lane, at = item < ITEMS ? item : 0, t = at / ((K + 1) * K);
      slot[i] = item < ITEMS ? at / K % (K + 1) : -1;
      k[i] = at % K; price[i] = 0.f; held[i] = 0;
      bound[i] = told[t]; step[i] = told[T + t]; pull[i] = told[2 * T + t]; cut[i] = told[3 * T + t];
      mask[i] = masks[at] > 0.f;
      #pragma unroll
      for (int g = 0; g < G; g++) {
        const int of = ((t * G + g) * (K + 1) + at / K % (K + 1)) * K + k[i];
        rate[i][g] = kept[of]; dual[i][g] = kept[ITEMS * G + of];
        count[i][g] = kept[2 * ITEMS * G + g * (K + 1) + at / K % (K + 1)];
        averaging[i][g] = averages[t * G + g];
        held[i] |= (holds[t * G + g] > 0.f ? 1u : 0u) << g;
      }
    }
  }
  __device__ void store(double* kept, int lane) const {
    #pragma unroll
    for (int i = 0; i < TURNS; i++) {
      const int item = i * 32 + lane, t = item / ((K + 1) * K);
      if (item >= ITEMS) continue;
      #pragma unroll
      for (int g = 0; g < G; g++) {
        const int of = ((t * G + g) * (K + 1) + slot[i]) * K + k[i];
        kept[of] = rate[i][g]; kept[ITEMS * G + of] = dual[i][g];
        if (t == 0 && k[i] == 0) kept[2 * ITEMS * G + g * (K + 1) + slot[i]] = count[i][g];
      }
    }
  }
  __device__ __forceinline__ void watch(const float* p, int group, int label, float share, float people) {
    int likeliest = 0;
    #pragma unroll
    for (int j = 1; j < K; j++) if (p[j] > pick<K>(p, likeliest)) likeliest = j;
    #pragma unroll
    for (int i = 0; i < TURNS; i++) {
      price[i] = 0.f;
      if (slot[i] != label && slot[i] != K) continue;
      const int top = cut[i] == 0.f ? likeliest : (p[1] >= cut[i] ? 1 : 0);
      const float seen = cut[i] >= 0.f ? (k[i] == top ? 1.f : 0.f) : pick<K>(p, k[i]);
      float low = 1e30f, high = -1e30f, total = 0.f, mean = 0.f, mine = 0.f, own = 0.f;
      #pragma unroll
      for (int g = 0; g < G; g++) {
        if (g == group) {
          count[i][g] += people;
          const float weight = fminf(people * fmaxf(averaging[i][g], 1.f / (float)count[i][g]), 1.f);
          rate[i][g] += weight * (seen - rate[i][g]);
          mine = rate[i][g]; own = (float)count[i][g];
        }
        total += (float)count[i][g];
        if (count[i][g] > 0. && (held[i] >> g & 1u)) { low = fminf(low, rate[i][g]); high = fmaxf(high, rate[i][g]); }
      }
      if (!mask[i]) continue;
      const float middle = 0.5f * (low + high), move = people * share * step[i];
      float acting = 0.f;
      #pragma unroll
      for (int g = 0; g < G; g++) {
        if (count[i][g] > 0. && (held[i] >> g & 1u))
          dual[i][g] = outside(dual[i][g] + move * (rate[i][g] - middle), move * 0.5f * bound[i]);
        mean += dual[i][g] / G;
        if (g == group) acting = dual[i][g];
      }
      if (held[i] >> group & 1u)
        price[i] = total / (G * own) * (acting - mean + pull[i] * outside(mine - middle, 0.5f * bound[i]));
    }
  }
  __device__ __forceinline__ float at(int item) const {
    float found = 0.f;
    #pragma unroll
    for (int i = 0; i < TURNS; i++) {
      const float there = __shfl_sync(FULL, price[i], item & 31);
      if (TURNS == 1 || item >> 5 == i) found = there;
    }
    return found;
  }
  __device__ __forceinline__ float price_of(int k, int label) const {
    float sum = 0.f;
    #pragma unroll
    for (int t = 0; t < T; t++) {
      if (BY_LABEL >> t & 1) sum += at((t * (K + 1) + label) * K + k);
      if (OVERALL >> t & 1) sum += at((t * (K + 1) + K) * K + k);
    }
    return sum;
  }
};
#endif

