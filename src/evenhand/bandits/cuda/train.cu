// A block trains one model with WARPS warps. With updates after each person, it trains one model per warp, each with
// `room_each` floats of shared memory: the driver reserves some in every block, so more models fit into a single block.
extern "C" __global__ void __launch_bounds__(32 * WARPS * MATES, BLOCKS)
train(const Model* models, const int count, const int room_each) {
  extern __shared__ __align__(16) float shared[];
#if OPT == 0
  const int mate = threadIdx.x / 32, which = blockIdx.x * (blockDim.x / 32) + mate, thread = threadIdx.x % 32;
  if (which >= count) return;
#else
  const int mate = 0, which = blockIdx.x, thread = threadIdx.x;
#endif
  const Model m = models[which];
  const Lane me = this_lane();
  const i64 d = m.d, size = padded(elements(d) * G);
  float* room = shared + mate * room_each;
#if NNZ > 0
  int2* ring = (int2*)room;
  room += RING * PITCH * 2;
#endif
#if PLACED >= 1
  const i64 near = OPT == 0 ? padded((d + 1) * ROW) : size;  // then registers hold the other layers
  float* W = room; room += near;
  copy(W, m.policies, near, thread, 32 * WARPS);
#else
  float* W = m.policies;
#endif
#if OPT > 0
#if PLACED >= 2
  float* gradient = room; room += size;
  copy(gradient, m.gradient, size, thread, 32 * WARPS);
#else
  float* gradient = m.gradient;
#endif
#if PLACED >= 3
  float* moments = room;
  const i64 memory = OPT == 3 ? padded(elements(d) * (FD + 3)) : OPT == 2 ? 2 * elements(d) * G : 0;
  copy(moments, m.moments, memory, thread, 32 * WARPS);
#else
  float* moments = m.moments;
#endif
#endif
#if PLACED >= 1
  const unsigned lies = (unsigned)__cvta_generic_to_shared(W);
  const Weights policies = {W, 0, true};
#else
  const unsigned lies = 0;
  const Weights policies = {W, 0, false};
#endif
  const Base base = me.base(lies, d);
#if OPT == 0
  const Weights& moved = policies;
#elif PLACED >= 2
  const Weights moved = {gradient, (unsigned)((char*)gradient - (char*)W), true};
#else
  const Weights moved = {(float*)((char*)gradient - lies), 0, false};
#endif
#if OPT == 0
  __syncwarp();
#else
  __syncthreads();
  __shared__ Move how;
  if (threadIdx.x >= 32) {  // a warp that only helps to update the weights
    for (;;) {
      __syncthreads();
      if (!how.more) return;
      move(how, W, gradient, moments, (Index)d, threadIdx.x, 32 * WARPS);
      __syncthreads();
    }
  }
  i64 pending = (m.first - m.origin) % m.batch;
#endif
  Small small;
  load_small(OPT == 0 ? m.policies : W, d, me, small);
#if OPT > 0
  Batch batch;
  batch.load(m.state);
  Small summed;
  load_small(gradient, d, me, summed);
#endif
#if T > 0
  Watched rates;
  rates.load(m.state + 3 * G, m.rates, me.lane);
#endif
  const u64 acts = scramble(m.seed, 1);
  i64 step = m.first, left = m.interval - (m.first - m.origin) % m.interval, broken = 0;
  double* history = m.history + 2 * ((m.first - m.origin) / m.interval);
  double rewarded = 0.0, parted = 0.0;
  Place place = {(unsigned)((m.first - m.origin) / m.n), (unsigned)((m.first - m.origin) % m.n)};
  place.on(m, me.lane);
  int person = place.person(m, step + me.lane);
  unsigned who = m.who[person];
  unsigned slot = 0;
#if NNZ > 0
  const unsigned ring_at = (unsigned)__cvta_generic_to_shared(ring) + me.lane * 16;
  const int2* const row_at = m.rows + me.lane * 2;
  #define SEND(whom, into)                                                                              \
    do {                                                                                                \
      u64 from;                                                                                         \
      asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(from) : "r"(whom), "n"(PITCH * 8), "l"(row_at));        \
      if (me.lane < PITCH / 2)                                                                          \
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ring_at + (into) * (PITCH * 8)), \
                     "l"(from));                                                                        \
      asm volatile("cp.async.commit_group;");                                                           \
    } while (0)
  for (int i = 0; i < REACH; i++) {
    const int whom = __shfl_sync(FULL, person, i);
    SEND(whom, i);
  }
  // Waits, at the end of a step, for the row that the next step opens, so that the step itself need not wait.
  #define ARRIVE asm volatile("cp.async.wait_group %0;" ::"n"(REACH - 1 - AHEAD))
  ARRIVE;
  __syncwarp();
#if AHEAD
  Columns columns;
  open(columns, ring, base, me);
  __syncwarp();  // the first row to be sent overwrites it
#endif
#else
  #define ARRIVE
#endif
  while (step < m.stop) {
    // The next 32 people, one per lane, are looked up at once, one turn ahead.
    const i64 most = m.stop - step < left ? m.stop - step : left;
    const int here = most < 32 ? (int)most : 32;
    place.on(m, here);
    const int person_next = place.person(m, step + here + me.lane);
    const unsigned who_next = m.who[person_next];
#if OPT == 0 || T > 0
    const float scheduled = (float)schedule_at(m, step + me.lane);
#endif
#if !EXPECTED
    const float drawn = (float)uniform(acts, step + me.lane);
#endif
#if WEIGHTED
    const float2 counted = m.counts[person];
#endif
    float reward_sum = 0.f, apart_sum = 0.f;
    #pragma unroll 2
    for (int i = 0; i < here; i++) {
#if NNZ > 0
      {
        const int ahead = i + REACH;
        const bool now = ahead < here;
        const int whom = __shfl_sync(FULL, now ? person : person_next, now ? ahead : ahead - here);
        SEND(whom, (slot + REACH) % RING);
      }
      slot = (slot + 1) % RING;
#else
      const i64 whom = __shfl_sync(FULL, person, i), from = m.starts[whom];
      Columns columns = {m.rows + from, (int)(m.starts[whom + 1] - from), (int)d, base};
#endif
      const unsigned is = __shfl_sync(FULL, who, i);
      const int group = is & 0xffff, label = is >> 16;
      float hidden[SLOTS], logits[M];
#if NNZ > 0 && !AHEAD
      Columns columns;
      open(columns, ring + (slot + RING - 1) % RING * PITCH, base, me);
#endif
      forward(policies, small, columns, me, hidden, logits);
#if NNZ > 0 && AHEAD
      Columns next;  // loaded while this person is processed
      open(next, ring + slot * PITCH, base, me);
#endif
      Seen seen;
      look(logits, group, seen);
#if OPT == 0 || T > 0
      const float share = __shfl_sync(FULL, scheduled, i);
#endif
      float scale = 1.f;
#if WEIGHTED
      scale = __shfl_sync(FULL, counted.x, i);
      const float people = __shfl_sync(FULL, counted.y, i);
#else
      const float people = 1.f;
#endif
#if T > 0
      rates.watch(seen.p, group, label, share, people);
#endif
      int action = -1, draws[OTHERS];
#if !EXPECTED
      action = draw(seen.p, __shfl_sync(FULL, drawn, i));
#if AGREEMENT || JENSEN_SHANNON
      #pragma unroll
      for (int o = 0; o < O; o++)
        draws[o] = draw(seen.q + o * K, (float)uniform(scramble(m.seed, 2 + (o >= group ? o + 1 : o)), step + i));
#endif
#endif
      const float apart = mean_divergence<0>(seen);
      float note = apart;
#if KLD > 1
      note = mean_divergence<KLD - 1>(seen);
#endif
      // The acting policy's logit gradient is `gain` times `acting`.
      float reward = 0.f, gain = 1.f, acting[KL];
#if EXPECTED
      float earned[K];
      #pragma unroll
      for (int k = 0; k < K; k++) {
        float q[OTHERS], lq[OTHERS], price = 0.f;
        #pragma unroll
        for (int o = 0; o < O; o++) { q[o] = seen.q[o * K + k]; lq[o] = seen.lq[o * K + k]; }
#if T > 0
        price = rates.price_of(k, label);
#endif
        earned[k] = reward_of(m, k, label, seen.p[k], seen.lp[k], q, lq, draws, note, price);
        reward += seen.p[k] * earned[k];
      }
      #pragma unroll
      for (int k = 0; k < KL; k++) acting[k] = seen.p[k + K - KL] * (earned[k + K - KL] - reward);
#else
      {
        float q[OTHERS], lq[OTHERS], price = 0.f;
        #pragma unroll
        for (int o = 0; o < O; o++) {
          q[o] = pick<K>(seen.q + o * K, action);
          lq[o] = pick<K>(seen.lq + o * K, action);
        }
#if T > 0
        price = rates.price_of(action, label);
#endif
        const float p = pick<K>(seen.p, action), lp = pick<K>(seen.lp, action);
        gain = reward = reward_of(m, action, label, p, lp, q, lq, draws, note, price);
        #pragma unroll
        for (int k = 0; k < KL; k++) acting[k] = (action == k + K - KL ? 1.f : 0.f) - seen.p[k + K - KL];
      }
#endif
      reward_sum += reward;
      apart_sum += apart;

      // Every group's logit gradient: that of the acting or of a listening policy, or zero; each times its `gains`.
      float moves[M], gains[G];
#if LISTENS
      float heard[OTHERS * KL];
      #pragma unroll
      for (int o = 0; o < O; o++) listen(m, seen, o, action, draws[o], heard + o * KL);
#endif
#if OPT == 0
      scale *= share * (float)m.rate;
#endif
      #pragma unroll
      for (int g = 0; g < G; g++) {
        gains[g] = !LISTENS || g == group ? gain : 1.f;
        #pragma unroll
        for (int k = 0; k < KL; k++) {
          float other = 0.f;
#if LISTENS
          other = g < group ? heard[(g < O ? g : 0) * KL + k] : heard[(g > 0 ? g - 1 : 0) * KL + k];
#endif
          moves[k * G + g] = scale * (g == group ? acting[k] : other);
        }
      }
#if OPT == 0
      Small& target = small;
#else
      Small& target = summed;
#endif
      // Gains are multiplied last, because a sampled reward is known last.
      float back[SLOTS];
      #pragma unroll
      for (int j = 0; j < SLOTS; j++) {
        const float mine = j < N ? gains[j % G] : pick<G>(gains, me.dealt % G);
        back[j] = 0.f;
        #pragma unroll
        for (int k = 0; k < KL; k++) {
          const int at = (j / G) * M + k * G + j % G;
          const float move = j < N ? moves[k * G + j % G] : pick<G>(moves + k * G, me.dealt % G);
          const float weight = j < N ? small.w2[at] : small.tail[k];
          back[j] = fmaf(move, hidden[j] > 0.f ? (K == 2 ? 2.f : 1.f) * weight : 0.f, back[j]);
          float& moved_too = j < N ? target.w2[at] : target.tail[k];
          moved_too = fmaf(mine, move * hidden[j], moved_too);
        }
        back[j] *= mine;
        target.b1[j] += back[j];
      }
      #pragma unroll
      for (int j = 0; j < M; j++) target.b2[j] = fmaf(gains[j % G], moves[j], target.b2[j]);
      add(columns, moved, back, me);
#if NNZ > 0 && AHEAD
      #pragma unroll
      for (int k = 0; k < COLUMNS + PAIRS; k++) { columns.at[k] = next.at[k]; columns.value[k] = next.value[k]; }
#endif
#if OPT > 0
      pending++;
      #pragma unroll
      for (int g = 0; g < G; g++) batch.touched[g] |= LISTENS || g == group;
      if (pending >= m.batch || step + i + 1 == m.end) {
        store_small(gradient, d, me, summed);
        batch.close(how, (int)pending, m.rate * schedule_at(m, step + i), m.apart, m.decay, me.lane);
        pending = 0;
        __syncthreads();
        move(how, W, gradient, moments, (Index)d, threadIdx.x, 32 * WARPS);
        __syncthreads();
        load_small(W, d, me, small);
        load_small(gradient, d, me, summed);
      }
#endif
      ARRIVE;
      __syncwarp();
    }
    // No early exit: if a warp could diverge here, it would have to reconverge at every shuffle.
    if (!(fabsf(reward_sum) < __int_as_float(0x7f800000)) && !broken) broken = step + here;
    rewarded += reward_sum;
    parted += apart_sum;
    step += here;
    left -= here;
    if (left == 0 || step == m.stop) {
      if (me.lane == 0) { history[0] += rewarded; history[1] += parted; }
      history += 2;
      left = m.interval; rewarded = 0.0; parted = 0.0;
    }
    person = person_next; who = who_next;
  }
#if NNZ > 0
  asm volatile("cp.async.wait_all;");
#endif
  if (me.lane == 0 && broken && m.done[0] == 0) m.done[0] = -broken;
#if OPT > 0
  store_small(W, d, me, small);
  store_small(gradient, d, me, summed);
  if (me.lane == 0) { batch.store(m.state); how.more = false; }
  __syncthreads();
#endif
#if T > 0
  rates.store(m.state + 3 * G, me.lane);
#endif
  __syncwarp();
#if PLACED >= 1
  copy(m.policies, W, near, me.lane, 32);
#endif
#if OPT == 0
  __syncwarp();
  store_small(m.policies, d, me, small);
#endif
#if OPT > 0 && PLACED >= 2
  copy(m.gradient, gradient, size, me.lane, 32);
#endif
#if OPT > 1 && PLACED >= 3
  copy(m.moments, moments, memory, me.lane, 32);
#endif
}
