// Measures what this machine can do: copy bandwidth at several sizes and single precision FMA rate, all threads.
// Prints lines "copy BYTES GB_PER_S", one line "fma GFLOP_PER_S" and one line "vector ARCHITECTURE BITS".
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#if defined(__AVX512F__)
constexpr const char* ARCHITECTURE = "avx512";
constexpr int VL = 16;
static inline void stream(float* to, const float* from) { _mm512_stream_ps(to, _mm512_load_ps(from)); }
#elif defined(__AVX__)
#if defined(__AVX2__)
constexpr const char* ARCHITECTURE = "avx2";
#else
constexpr const char* ARCHITECTURE = "avx";
#endif
constexpr int VL = 8;
static inline void stream(float* to, const float* from) { _mm256_stream_ps(to, _mm256_load_ps(from)); }
#else
constexpr const char* ARCHITECTURE = "sse";
constexpr int VL = 4;
static inline void stream(float* to, const float* from) { for (int i = 0; i < VL; ++i) to[i] = from[i]; }
#endif
typedef float vec __attribute__((vector_size(VL * 4)));

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double copy_once(float* to, const float* from, long n, int repeats, bool past_cache) {
  double start = now();
#pragma omp parallel
  {
    long size = n / omp_get_num_threads() / VL * VL, begin = size * omp_get_thread_num();
    for (int r = 0; r < repeats; ++r) {
      if (past_cache) {
        for (long i = begin; i < begin + size; i += VL) stream(to + i, from + i);
      } else {
        for (long i = begin; i < begin + size; i += VL) *(vec*)(to + i) = *(const vec*)(from + i);
      }
      asm volatile("" ::: "memory");
    }
  }
  return now() - start;
}

static double copy_rate(long bytes) {
  long n = bytes / 8;
  float* from = (float*)std::aligned_alloc(64, n * 4 + 64);
  float* to = (float*)std::aligned_alloc(64, n * 4 + 64);
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; ++i) from[i] = to[i] = 1.0f;
  int repeats = (int)std::max(1L, (64L << 20) / bytes);
  double best = 0;
  for (int trial = 0; trial < 12; ++trial)
    for (bool past_cache : {false, true})
      best = std::max(best, 8.0 * n * repeats / copy_once(to, from, n, repeats, past_cache) / 1e9);
  std::free(from);
  std::free(to);
  return best;
}

static double fma_rate() {
  constexpr int CHAINS = 12;
  constexpr long STEPS = 100000;
  double best = 0;
  // Many short trials: the best one is a stretch in which nothing else ran.
  for (int trial = 0; trial < 60; ++trial) {
    double start = now();
#pragma omp parallel
    {
      vec sum[CHAINS], a = vec{} + 1.0001f, b = vec{} + 1e-7f;
      for (auto& s : sum) s = vec{} + 1.0f;
      for (long i = 0; i < STEPS; ++i) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; ++c) sum[c] = sum[c] * a + b;
        asm volatile("" : "+v"(a));
      }
      for (auto& s : sum) asm volatile("" ::"v"(s));
    }
    double seconds = now() - start;
    best = std::max(best, 2.0 * VL * CHAINS * STEPS * omp_get_max_threads() / seconds / 1e9);
  }
  return best;
}

int main() {
  for (long bytes : {256L << 10, 2L << 20, 8L << 20, 32L << 20, 64L << 20, 256L << 20}) std::printf("copy %ld %.3f\n", bytes, copy_rate(bytes));
  std::printf("fma %.3f\n", fma_rate());
  std::printf("vector %s %d\n", ARCHITECTURE, VL * 32);
}
