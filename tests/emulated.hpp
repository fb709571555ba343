// A CUDA device on the CPU. Every thread of a block is a fiber; another one goes on only where a thread waits for
// others. Threads that wait for one another in vain, or in different places, are an error, and so are shared memory
// that is not the block's own and local arrays that are left.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(size) alignas(size)
#define __shared__ static
#define threadIdx (*emulated::now)

struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Extent { unsigned x, y; };
static Extent blockIdx, blockDim, gridDim;

namespace emulated {
struct Thread;
struct Copy { char* to; const char* from; };
struct Barrier { std::vector<Thread*> waiting; size_t expected = 0; const char* what = ""; };
struct Warp { Barrier barrier; alignas(16) char slots[2][32][16]; };
struct Thread {
  unsigned x;
  Warp* warp;
  unsigned exchanges = 0;
  std::deque<std::vector<Copy>> groups;  // asynchronous copies that were sent off together
  std::vector<Copy> sent;
  ucontext_t context;
  std::unique_ptr<char[]> stack;
};
constexpr size_t STACK = 1 << 18, ROOM = 1 << 18;

static Thread* now;
static ucontext_t home;
static std::deque<Thread*> ready;
static Barrier block;
static std::function<void()> body;
static std::string problem;
static bool backwards;  // the last thread goes first, and asynchronous copies arrive as soon as they are sent
static size_t shared_bytes;
alignas(1024) static char shared_memory[ROOM];

[[noreturn]] static void fail(const std::string& why) { problem = why; setcontext(&home); __builtin_unreachable(); }
static void next_thread() {
  if (ready.empty()) fail("threads wait for one another for ever");
  Thread* before = now;
  now = ready.front();
  ready.pop_front();
  if (before != now) swapcontext(&before->context, &now->context);
}
static void release(Barrier& at) {
  auto& all = at.waiting;
  std::sort(all.begin(), all.end(), [](Thread* a, Thread* b) { return (a->x < b->x) != backwards; });
  ready.insert(ready.end(), all.begin(), all.end());
  all.clear();
}
static void wait(Barrier& at, const char* what) {
  if (!at.waiting.empty() && std::strcmp(at.what, what)) fail(std::string("some wait at ") + at.what + ", some at " + what);
  at.what = what;
  at.waiting.push_back(now);
  if (at.waiting.size() == at.expected) release(at);
  next_thread();
}
static void leave(Barrier& at) {
  if (--at.expected && at.waiting.size() == at.expected) release(at);
}
static void run() {
  body();
  leave(now->warp->barrier);
  leave(block);
  if (ready.empty()) {
    if (block.expected) fail("threads wait for one that has ended");
    setcontext(&home);
  }
  now = ready.front();
  ready.pop_front();
  setcontext(&now->context);
}

static void run_block(std::vector<Thread>& threads, std::vector<Warp>& warps) {
  std::memset(shared_memory, 0xff, ROOM);  // not a number: nobody may count on zeros
  for (auto& warp : warps) warp.barrier = {{}, std::min<size_t>(32, threads.size()), ""};
  block = {{}, threads.size(), ""};
  ready.clear();
  for (size_t at = 0; at < threads.size(); at++) {
    Thread& thread = threads[backwards ? threads.size() - 1 - at : at];
    thread.groups.clear();
    thread.sent.clear();
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = STACK;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, run, 0);
    ready.push_back(&thread);
  }
  volatile bool started = false;
  getcontext(&home);
  if (started) return;
  started = true;
  now = ready.front();
  ready.pop_front();
  setcontext(&now->context);
}
static const char* launch(Extent grid, unsigned size, size_t bytes, bool order, std::function<void()> kernel) {
  problem = bytes > ROOM ? "too much shared memory" : size % 32 ? "a warp that is not full" : "";
  body = std::move(kernel); backwards = order; shared_bytes = bytes;
  gridDim = grid; blockDim = {size, 1};
  std::vector<Warp> warps(size / 32);
  std::vector<Thread> threads(size);
  for (unsigned at = 0; at < size; at++) {
    threads[at].x = at;
    threads[at].warp = &warps[at / 32];
    threads[at].stack.reset(new char[STACK]);
  }
  for (unsigned y = 0; y < grid.y; y++)
    for (unsigned x = 0; x < grid.x && problem.empty(); x++) { blockIdx = {x, y}; run_block(threads, warps); }
  return problem.empty() ? nullptr : problem.c_str();
}

template <class T> T exchanged(unsigned mask, T value, unsigned from, const char* what) {
  if (mask != ~0u) fail("only part of a warp exchanges values");
  auto& slots = now->warp->slots[now->exchanges++ % 2];  // in turns: nobody writes to one that is still read
  std::memcpy(slots[now->x % 32], &value, sizeof value);
  wait(now->warp->barrier, what);
  std::memcpy(&value, slots[from % 32], sizeof value);
  return value;
}
inline float* shared_at(unsigned at, unsigned count) {
  if (at % (4 * count) || at + 4 * count > shared_bytes) fail("an address of shared memory is wrong");
  return (float*)(shared_memory + at);
}
inline void arrive(const std::vector<Copy>& copies) { for (auto& each : copies) std::memcpy(each.to, each.from, 16); }
}  // namespace emulated

// Barriers and exchanges.
inline void __syncthreads() { emulated::wait(emulated::block, "__syncthreads"); }
inline void __syncwarp() { emulated::wait(emulated::now->warp->barrier, "__syncwarp"); }
template <class T> T __shfl_sync(unsigned mask, T value, int from) { return emulated::exchanged(mask, value, from, "__shfl_sync"); }
template <class T> T __shfl_xor_sync(unsigned mask, T value, int apart) {
  return emulated::exchanged(mask, value, emulated::now->x ^ apart, "__shfl_xor_sync");
}
inline bool __any_sync(unsigned mask, bool value) {
  for (int apart = 1; apart < 32; apart *= 2)
    value |= emulated::exchanged(mask, value, emulated::now->x ^ apart, "__any_sync");
  return value;
}
inline unsigned atomicAdd(unsigned* to, unsigned more) { *to += more; return *to - more; }

// Arithmetic.
using std::fabs; using std::fmin; using std::rint;
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }
inline float __int_as_float(int bits) { float x; std::memcpy(&x, &bits, 4); return x; }
inline int __ffs(unsigned bits) { return __builtin_ffs(bits); }
template <class T> T __ldg(const T* from) { return *from; }
template <class Each> unsigned halves(unsigned a, unsigned b, Each each) {
  return each(a & 0xffff, b & 0xffff) | each(a >> 16, b >> 16) << 16;
}
inline unsigned __vmaxu2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return std::max(x, y); }); }
inline unsigned __vminu2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return std::min(x, y); }); }
inline unsigned __vcmpne2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return x != y ? 0xffffu : 0u; }); }

// Instructions that are written in PTX: each is called by its name.
inline unsigned __cvta_generic_to_shared(const void* at) { return (const char*)at - emulated::shared_memory; }
inline void mov_u32(int& lane) { lane = emulated::now->x % 32; }
inline void mad_wide_u32(unsigned long long& sum, unsigned a, unsigned b, const void* c) {
  sum = (unsigned long long)a * b + (unsigned long long)c;
}
inline void ld_shared_f32(float& a, unsigned at) { a = *emulated::shared_at(at, 1); }
inline void ld_shared_v2_f32(float& a, float& b, unsigned at) { const float* v = emulated::shared_at(at, 2); a = v[0]; b = v[1]; }
inline void ld_shared_v4_f32(float& a, float& b, float& c, float& d, unsigned at) {
  const float* v = emulated::shared_at(at, 4); a = v[0]; b = v[1]; c = v[2]; d = v[3];
}
inline void st_shared_f32(unsigned at, float a) { *emulated::shared_at(at, 1) = a; }
inline void st_shared_v2_f32(unsigned at, float a, float b) { float* v = emulated::shared_at(at, 2); v[0] = a; v[1] = b; }
inline void st_shared_v4_f32(unsigned at, float a, float b, float c, float d) {
  float* v = emulated::shared_at(at, 4); v[0] = a; v[1] = b; v[2] = c; v[3] = d;
}
inline void cp_async_cg_shared_global(unsigned to, unsigned long long from) {
  const emulated::Copy one = {(char*)emulated::shared_at(to, 4), (const char*)from};
  if (emulated::backwards) emulated::arrive({one});
  else emulated::now->sent.push_back(one);
}
inline void cp_async_commit_group() { emulated::now->groups.push_back(std::move(emulated::now->sent)); emulated::now->sent.clear(); }
inline void cp_async_wait_group(size_t left) {
  auto& groups = emulated::now->groups;
  for (; groups.size() > left; groups.pop_front()) emulated::arrive(groups.front());
}
inline void cp_async_wait_all() { cp_async_commit_group(); cp_async_wait_group(0); }
