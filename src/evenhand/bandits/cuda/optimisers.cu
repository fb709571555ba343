// Updates the policies with the gradient of a batch. One warp trains; all warps of a block update the weights.
#if OPT > 0
#define AT_ONCE 4  // elements that a thread reads before it writes any

#if PLACED == 0
typedef i64 Index;  // policies too large for shared memory may have more than 2^31 numbers
#else
typedef int Index;
#endif

struct Move { float share, decayed, apart, size[G], root[G]; bool touched[G], more; };

__device__ void move(const Move& how, float* W, float* gradient, float* moments, Index d, int thread, int threads) {
  const Index all = (Index)elements(d), bias = (d + 1) * HP, after = (d + 2) * HP, last = all - KL;
  for (Index from = thread; from < all; from += AT_ONCE * threads) {
    float w[AT_ONCE][G], got[AT_ONCE][G];
#if OPT == 3
    float *const means = moments + all * FD, *const seconds = means + all, *const mean_seconds = seconds + all;
    float first[AT_ONCE][FD], mean_first[AT_ONCE], second[AT_ONCE], mean_second[AT_ONCE];
#elif OPT == 2
    float first[AT_ONCE][G], second[AT_ONCE][G];
#endif
    #pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const Index e = from + i * threads;
      if (e >= all) break;
      get<G>(W + e * G, w[i]);
      get<G>(gradient + e * G, got[i]);
#if OPT == 3
      get<FD>(moments + e * FD, first[i]);
      mean_first[i] = means[e]; second[i] = seconds[e]; mean_second[i] = mean_seconds[e];
#elif OPT == 2
      get<G>(moments + e * G, first[i]);
      get<G>(moments + (all + e) * G, second[i]);
#endif
    }
    #pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const Index e = from + i * threads;
      const float keep = (e >= bias && e < after) || e >= last ? 1.f : how.decayed;
#if OPT == 3
      float mean = 0.f, scale = 0.f;
      #pragma unroll
      for (int g = 0; g < G; g++) mean += got[i][g];
      mean /= G;
      #pragma unroll
      for (int g = 0; g < G; g++) { got[i][g] = how.share * (got[i][g] - mean); scale += got[i][g] * got[i][g]; }
      mean *= how.share;
      second[i] = 0.999f * second[i] + (0.001f / G) * scale;
      mean_second[i] = 0.999f * mean_second[i] + 0.001f * mean * mean;
      mean_first[i] = 0.9f * mean_first[i] + 0.1f * mean;
      const float together = how.size[0] * mean_first[i] / (sqrtf(mean_second[i]) * how.root[0] + 1e-8f);
      const float each = how.apart * how.size[0] / (sqrtf(second[i]) * how.root[0] + 1e-8f);
      #pragma unroll
      for (int g = 0; g < FD; g++) first[i][g] = 0.9f * first[i][g] + 0.1f * got[i][g];
      #pragma unroll
      for (int g = 0; g < G; g++)
        w[i][g] = keep * w[i][g] + each * (G == 2 && g == 1 ? -first[i][0] : first[i][g % FD]) + together;
#else
      #pragma unroll
      for (int g = 0; g < G; g++) if (how.touched[g]) {
        const float now = how.share * got[i][g];
#if OPT == 2
        first[i][g] = 0.9f * first[i][g] + 0.1f * now;
        second[i][g] = 0.999f * second[i][g] + 0.001f * now * now;
        w[i][g] = keep * w[i][g] + how.size[g] * first[i][g] / (sqrtf(second[i][g]) * how.root[g] + 1e-8f);
#else
        w[i][g] = keep * w[i][g] + how.size[g] * now;
#endif
      }
#endif
      #pragma unroll
      for (int g = 0; g < G; g++) got[i][g] = 0.f;
    }
    #pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const Index e = from + i * threads;
      if (e >= all) break;
      put<G>(W + e * G, w[i]);
      put<G>(gradient + e * G, got[i]);
#if OPT == 3
      put<FD>(moments + e * FD, first[i]);
      means[e] = mean_first[i]; seconds[e] = second[i]; mean_seconds[e] = mean_second[i];
#elif OPT == 2
      put<G>(moments + e * G, first[i]);
      put<G>(moments + (all + e) * G, second[i]);
#endif
    }
  }
}

struct Batch {
  bool touched[G]; i64 updates[G]; double power_1[G], power_2[G], shrunk[G];

  __device__ void load(const double* kept) {
    for (int g = 0; g < G; g++) {
      touched[g] = kept[g] > 0; updates[g] = (i64)kept[G + g]; shrunk[g] = kept[2 * G + g];
      power_1[g] = pow(0.9, (double)updates[g]); power_2[g] = pow(0.999, (double)updates[g]);
    }
  }
  __device__ void store(double* kept) const {
    for (int g = 0; g < G; g++) {
      kept[g] = touched[g]; kept[G + g] = (double)updates[g]; kept[2 * G + g] = shrunk[g];
    }
  }
  __device__ void close(Move& how, int pending, double rate, double apart, double decay, int lane) {
    if (lane == 0) {
      how.share = 1.f / pending; how.decayed = (float)(1.0 - rate * decay); how.apart = (float)apart; how.more = true;
    }
    #pragma unroll
    for (int g = 0; g < G; g++) {
      if (OPT == 3 || touched[g]) {
        updates[g]++; power_1[g] *= 0.9; power_2[g] *= 0.999; shrunk[g] *= 1.0 - rate * decay;
      }
      if (lane == 0) {
        how.touched[g] = touched[g];
        how.size[g] = (float)(OPT == 1 ? rate : rate / (1.0 - power_1[g]));
        how.root[g] = (float)(1.0 / sqrt(1.0 - power_2[g]));
      }
      touched[g] = false;
    }
  }
};
#endif

