// What only some processors can do. What is drawn is the same on all of them.
#pragma once

#include <atomic>

// Inlined wherever it is called, and so compiled for the processor that the caller is compiled for.
#define BPE_HERE __attribute__((always_inline)) inline

#ifdef __x86_64__
#define BPE_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#else
#define BPE_AVX2
#endif

namespace bpe {

inline bool has_avx2() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

inline std::atomic<bool> with_avx2{has_avx2()};

// Whether functions that are compiled for AVX2, too, are called so. Tests switch it off; where there is none, it stays
// off.
inline bool uses_avx2() { return with_avx2.load(std::memory_order_relaxed); }
inline void use_avx2(bool use) { with_avx2 = use && has_avx2(); }

}  // namespace bpe
