// SPDX-License-Identifier: Apache-2.0
//
// Which vector instructions to use, decided once per process.
//
// What is fast on wide registers is compiled once for each instruction set, as one piece, and
// with_isa() is the only place that chooses between the pieces. They hold whole numbers and
// comparisons only, so all of them give the same answer.
// LIMEN_ISA=sse2|avx2|avx512|generic forces one of them.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#if (defined(__x86_64__) || defined(__amd64__)) && (defined(__GNUC__) || defined(__clang__))
#define LIMEN_X86 1
#define LIMEN_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define LIMEN_AVX512 \
    __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512dq,avx512vl,avx512bw")))
#include <cpuid.h>
#else
#define LIMEN_X86 0
#endif

#if defined(__GNUC__) || defined(__clang__)
#define LIMEN_INLINE inline __attribute__((always_inline))
#define LIMEN_NOINLINE __attribute__((noinline))
#define LIMEN_FLATTEN __attribute__((flatten))  // with all that it calls, but LIMEN_NOINLINE
#else
#define LIMEN_INLINE inline
#define LIMEN_NOINLINE
#define LIMEN_FLATTEN
#endif

namespace limen {

enum class Isa { baseline, avx2, avx512 };

inline const char* isa_name(Isa isa) {
#if LIMEN_X86
    return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "sse2";
#else
    (void)isa;
    return "generic";
#endif
}

#if LIMEN_X86
// What the processor has, and the registers that the operating system saves when it changes
// threads. Asked here and not by __builtin_cpu_supports, which not every C++ runtime has for
// shared libraries.
inline bool x86_supported(Isa isa) {
    constexpr std::uint32_t osxsave = 1u << 27, avx = 1u << 28, popcnt = 1u << 23;
    constexpr std::uint32_t bmi = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
    constexpr std::uint32_t avx512f = 1u << 16, avx512dq = 1u << 17, avx512bw = 1u << 30,
                            avx512vl = 1u << 31;
    constexpr std::uint32_t xmm_and_ymm = 0x06, and_zmm = 0xe6;  // of the register XCR0
    const auto all = [](std::uint32_t wanted, std::uint32_t given) {
        return (given & wanted) == wanted;
    };

    std::uint32_t a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all(osxsave | avx | popcnt, c)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !all(avx2 | bmi | bmi2, b)) return false;
    std::uint32_t saved = 0, high = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (isa == Isa::avx2) return all(xmm_and_ymm, saved);
    return all(avx512f | avx512dq | avx512bw | avx512vl, b) && all(and_zmm, saved);
}
#endif

// Whether this processor has every instruction that the target attributes above allow.
inline bool isa_supported(Isa isa) {
#if LIMEN_X86
    if (isa != Isa::baseline) return x86_supported(isa);
#endif
    return isa == Isa::baseline;
}

// The forced or the widest supported instruction set. Throws std::invalid_argument when
// LIMEN_ISA names one that is unknown or that this processor lacks.
inline Isa choose_isa() {
    constexpr Isa all[] = {Isa::avx512, Isa::avx2, Isa::baseline};
    const char* forced = std::getenv("LIMEN_ISA");
    std::string supported;
    for (Isa isa : all) {
        if (!isa_supported(isa)) continue;
        if (!forced || !*forced || std::string(forced) == isa_name(isa)) return isa;
        supported += supported.empty() ? isa_name(isa) : std::string(", ") + isa_name(isa);
    }
    throw std::invalid_argument("LIMEN_ISA is '" + std::string(forced) +
                                "', but this processor and build support: " + supported +
                                ". Unset it to let limen choose.");
}

// Chosen at first use and fixed from then on.
inline Isa active_isa() {
    static const Isa isa = choose_isa();
    return isa;
}

// An instruction set that is known while compiling.
template <Isa isa>
using IsaConstant = std::integral_constant<Isa, isa>;

template <class Work>
LIMEN_FLATTEN LIMEN_NOINLINE auto with_baseline(Work& work) {
    return work(IsaConstant<Isa::baseline>{});
}
#if LIMEN_X86
template <class Work>
LIMEN_FLATTEN LIMEN_AVX2 auto with_avx2(Work& work) {
    return work(IsaConstant<Isa::avx2>{});
}
template <class Work>
LIMEN_FLATTEN LIMEN_AVX512 auto with_avx512(Work& work) {
    return work(IsaConstant<Isa::avx512>{});
}
#endif

// Call `work` with the IsaConstant of an instruction set. It is compiled for each of them, with
// all that it calls.
template <class Work>
auto with_isa(Isa isa, Work&& work) {
#if LIMEN_X86
    if (isa == Isa::avx512) return with_avx512(work);
    if (isa == Isa::avx2) return with_avx2(work);
#endif
    (void)isa;
    return with_baseline(work);
}

}  // namespace limen
