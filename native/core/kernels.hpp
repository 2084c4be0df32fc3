// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of the cut tree: fixed trip counts, no branches, whole numbers only.
//
// Plain loops for any processor; wide ones where vectors of 64-bit numbers can be compared. A leaf
// has leaf_slots slots and an inner node node_slots children; the slots in use come first. Every
// set of kernels is a struct of static functions:
//
// leaf_rank    How many keys of a leaf lie below the score. Free slots hold +inf and never count.
// leaf_add     Add delta to the running sums of a leaf from a slot on; the largest sum that
//              results. Free slots repeat the last sum, before and after, so they never change the
//              largest.
// leaf_open    The same after opening that slot, for scores and sums. The number before the first
//              sum is 0. The score of the slot is for the caller to set.
// leaf_close   The same after closing that slot, which frees the last one. The number behind the
//              last sum may be read.
// leaf_last    The last slot that holds `value`, free slots included; -1 when none does.
// node_rank    How many separators are at or below the score. Free slots hold nan and never count.
// node_add     Child `child` of `used` grows by delta: shift what comes after it; the best sum of
//              all other children. Free slots of `best` hold `lowest`.
// node_add_two The same for two different children that each grow by a delta of their own.
// node_last    As leaf_last.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/isa.hpp"

#if LIMEN_X86
// GCC 12 takes the operands that these leave undefined on purpose for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace limen {

#if defined(__clang__)
#define LIMEN_UNROLL _Pragma("unroll")
#else
#define LIMEN_UNROLL _Pragma("GCC unroll 32")
#endif

inline constexpr int leaf_slots = 48;
inline constexpr int node_slots = 32;

inline constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();

// One number at a time, for processors without wide compares of 64-bit whole numbers.
struct BaselineKernels {
    static int leaf_rank(const double* keys, double score) {
        int rank = 0;
        for (int i = 0; i < leaf_slots; ++i) rank += keys[i] < score;
        return rank;
    }

    static std::int64_t leaf_add(std::int64_t* prefix, int slot, std::int64_t delta) {
        for (int i = slot; i < leaf_slots; ++i) prefix[i] += delta;
        return *std::max_element(prefix, prefix + leaf_slots);
    }

    static std::int64_t leaf_open(double* scores, std::int64_t* prefix, int slot,
                                  std::int64_t delta) {
        std::memmove(scores + slot + 1, scores + slot, bytes_after(slot));
        for (int i = leaf_slots - 1; i >= slot; --i) prefix[i] = prefix[i - 1];
        return leaf_add(prefix, slot, delta);
    }

    static std::int64_t leaf_close(double* scores, std::int64_t* prefix, int slot,
                                   std::int64_t delta) {
        std::memmove(scores + slot, scores + slot + 1, bytes_after(slot));
        scores[leaf_slots - 1] = std::numeric_limits<double>::infinity();
        for (int i = slot; i < leaf_slots - 1; ++i) prefix[i] = prefix[i + 1];
        return leaf_add(prefix, slot, delta);
    }

    static int leaf_last(const std::int64_t* prefix, std::int64_t value) {
        return last_of<leaf_slots>(prefix, value);
    }

    static int node_rank(const double* separators, double score) {
        int rank = 0;
        for (int i = 0; i < node_slots; ++i) rank += separators[i] <= score;
        return rank;
    }

    static std::int64_t node_add(std::int64_t* before, std::int64_t* best, int child,
                                 std::int64_t delta, int used) {
        for (int i = child + 1; i < used; ++i) before[i] += delta, best[i] += delta;
        std::int64_t others = child ? *std::max_element(best, best + child) : lowest;
        for (int i = child + 1; i < used; ++i) others = std::max(others, best[i]);
        return others;
    }

    static std::int64_t node_add_two(std::int64_t* before, std::int64_t* best, int one,
                                     std::int64_t delta, int other, std::int64_t other_delta,
                                     int used) {
        node_add(before, best, one, delta, used);
        node_add(before, best, other, other_delta, used);
        std::int64_t others = lowest;
        for (int i = 0; i < used; ++i)
            if (i != one && i != other) others = std::max(others, best[i]);
        return others;
    }

    static int node_last(const std::int64_t* best, std::int64_t value) {
        return last_of<node_slots>(best, value);
    }

private:
    template <int slots>
    static int last_of(const std::int64_t* values, std::int64_t value) {
        int last = slots - 1;
        while (last >= 0 && values[last] != value) --last;
        return last;
    }
    static std::size_t bytes_after(int slot) {
        return static_cast<std::size_t>(leaf_slots - 1 - slot) * sizeof(double);
    }
};

#if LIMEN_X86
struct MaskTable {
    std::int64_t values[2 * leaf_slots + 16] = {};
    constexpr MaskTable() {
        for (int i = leaf_slots; i < 2 * leaf_slots + 16; ++i) values[i] = -1;
    }
};
alignas(64) inline constexpr MaskTable mask_table;

// Vectors of four numbers, as wide as the registers: compilers take wider ones apart number by
// number, and did not vectorise the same loops written over single numbers.
struct Avx2Kernels {
    // Counting the bits of a mask is the shortest way from a comparison to a number, and an update
    // waits for one such count per node.
    LIMEN_AVX2 static int leaf_rank(const double* keys, double score) {
        return count<_CMP_LT_OQ, leaf_slots>(keys, score);
    }

    LIMEN_AVX2 static std::int64_t leaf_add(std::int64_t* prefix, int slot, std::int64_t delta) {
        Largest largest;
        const std::int64_t* const on = from(slot);
        LIMEN_UNROLL
        for (int i = 0; i < leaf_slots; i += lanes) {
            const Units value = units_at(prefix + i) + (any_units_at(on + i).units & delta);
            units_at(prefix + i) = value;
            largest.see(value, i);
        }
        return largest.get();
    }

    // The next two read vectors before the same memory is written shifted: a load that straddles
    // recent stores would wait for them.
    LIMEN_AVX2 static std::int64_t leaf_open(double* scores, std::int64_t* prefix, int slot,
                                             std::int64_t delta) {
        const std::int64_t* const on = from(slot);
        LIMEN_UNROLL
        for (int i = leaf_slots - lanes; i >= 0; i -= lanes) {
            const __m256d old = _mm256_load_pd(scores + i);
            const __m256d moved = i ? _mm256_loadu_pd(scores + i - 1)
                                    : _mm256_permute4x64_pd(old, _MM_SHUFFLE(2, 1, 0, 0));
            _mm256_store_pd(scores + i, _mm256_blendv_pd(old, moved, mask_at(on + i)));
        }
        Largest largest;
        LIMEN_UNROLL
        for (int i = leaf_slots - lanes; i >= 0; i -= lanes) {
            const Units moved = any_units_at(prefix + i - 1).units + delta;
            const Units yes = any_units_at(on + i).units;
            const Units value = (yes & moved) | (~yes & units_at(prefix + i));
            units_at(prefix + i) = value;
            largest.see(value, i);
        }
        return largest.get();
    }

    LIMEN_AVX2 static std::int64_t leaf_close(double* scores, std::int64_t* prefix, int slot,
                                              std::int64_t delta) {
        const std::int64_t* const on = from(slot);
        LIMEN_UNROLL
        for (int i = 0; i < leaf_slots; i += lanes) {
            const __m256d old = _mm256_load_pd(scores + i);
            const __m256d moved = i + lanes < leaf_slots
                                      ? _mm256_loadu_pd(scores + i + 1)
                                      : _mm256_permute4x64_pd(old, _MM_SHUFFLE(3, 3, 2, 1));
            _mm256_store_pd(scores + i, _mm256_blendv_pd(old, moved, mask_at(on + i)));
        }
        scores[leaf_slots - 1] = std::numeric_limits<double>::infinity();
        Largest largest;
        const std::int64_t last = prefix[leaf_slots - 1];
        LIMEN_UNROLL
        for (int i = 0; i < leaf_slots; i += lanes) {
            Units moved = any_units_at(prefix + i + 1).units;
            if (i + lanes == leaf_slots) moved[lanes - 1] = last;
            moved += delta;
            const Units yes = any_units_at(on + i).units;
            const Units value = (yes & moved) | (~yes & units_at(prefix + i));
            units_at(prefix + i) = value;
            largest.see(value, i);
        }
        return largest.get();
    }

    LIMEN_AVX2 static int leaf_last(const std::int64_t* prefix, std::int64_t value) {
        return last_of<leaf_slots>(prefix, value);
    }

    LIMEN_AVX2 static int node_rank(const double* separators, double score) {
        return count<_CMP_LE_OQ, node_slots>(separators, score);
    }

    LIMEN_AVX2 static std::int64_t node_add(std::int64_t* before, std::int64_t* best, int child,
                                            std::int64_t delta, int used) {
        Largest others;
        const std::int64_t *const on = from(child), *const behind = from(used);
        LIMEN_UNROLL
        for (int i = 0; i < node_slots; i += lanes) {
            const Units later = any_units_at(on + i - 1).units;
            const Units here = any_units_at(on + i).units & ~later;
            const Units shift = later & ~any_units_at(behind + i).units & delta;
            units_at(before + i) += shift;
            const Units value = units_at(best + i) + shift;
            units_at(best + i) = value;
            const Units other = (value & ~here) | (here & lowest);
            others.see(other, i);
        }
        return others.get();
    }

    LIMEN_AVX2 static std::int64_t node_add_two(std::int64_t* before, std::int64_t* best, int one,
                                                std::int64_t delta, int other,
                                                std::int64_t other_delta, int used) {
        Largest others;
        const std::int64_t *const on = from(one), *const also = from(other);
        const std::int64_t* const behind = from(used);
        LIMEN_UNROLL
        for (int i = 0; i < node_slots; i += lanes) {
            const Units later = any_units_at(on + i - 1).units;
            const Units also_later = any_units_at(also + i - 1).units;
            const Units here = (any_units_at(on + i).units & ~later) |
                               (any_units_at(also + i).units & ~also_later);
            const Units shift =
                ~any_units_at(behind + i).units & ((later & delta) + (also_later & other_delta));
            units_at(before + i) += shift;
            const Units value = units_at(best + i) + shift;
            units_at(best + i) = value;
            const Units rest = (value & ~here) | (here & lowest);
            others.see(rest, i);
        }
        return others.get();
    }

    LIMEN_AVX2 static int node_last(const std::int64_t* best, std::int64_t value) {
        return last_of<node_slots>(best, value);
    }

private:
    static constexpr int lanes = 4;
    typedef std::int64_t Units __attribute__((vector_size(8 * lanes), may_alias));
    // Units at any address. A packed struct, because clang may forget the alignment of a typedef,
    // and then loads as if the address were a multiple of the vector's size.
    struct __attribute__((packed, may_alias)) AnyUnits {
        Units units;
    };
    LIMEN_AVX2 static Units& units_at(std::int64_t* at) { return *reinterpret_cast<Units*>(at); }
    LIMEN_AVX2 static const Units& units_at(const std::int64_t* at) {
        return *reinterpret_cast<const Units*>(at);
    }
    LIMEN_AVX2 static const AnyUnits& any_units_at(const std::int64_t* at) {
        return *reinterpret_cast<const AnyUnits*>(at);
    }

    // -1 for slots from `slot` on, else 0: read from a table, cheaper than comparing.
    LIMEN_AVX2 static const std::int64_t* from(int slot) {
        return mask_table.values + leaf_slots - slot;
    }
    LIMEN_AVX2 static __m256d mask_at(const std::int64_t* mask) {
        return _mm256_loadu_pd(reinterpret_cast<const double*>(mask));
    }

    LIMEN_AVX2 static std::int64_t largest_of(const Units& values) {
        std::int64_t best = values[0];
        for (int i = 1; i < lanes; ++i) best = values[i] > best ? values[i] : best;
        return best;
    }
    // A maximum in several strands, because each step waits for the one before it.
    struct Largest {
        static constexpr int strands = 4;
        Units found[strands];
        LIMEN_AVX2 Largest() {
            for (Units& strand : found) strand = Units{} + lowest;
        }
        LIMEN_AVX2 void see(const Units& values, int i) {
            Units& strand = found[i / lanes % strands];
            strand = values > strand ? values : strand;
        }
        LIMEN_AVX2 std::int64_t get() const {
            const Units left = found[0] > found[1] ? found[0] : found[1];
            const Units right = found[2] > found[3] ? found[2] : found[3];
            const Units both = left > right ? left : right;
            return largest_of(both);
        }
    };

    template <int slots>
    LIMEN_AVX2 static int last_of(const std::int64_t* values, std::int64_t value) {
        Units slot, last = Units{} - 1;
        for (int i = 0; i < lanes; ++i) slot[i] = i;
        LIMEN_UNROLL
        for (int i = 0; i < slots; i += lanes, slot += lanes)
            last = units_at(values + i) == value ? slot : last;
        return static_cast<int>(largest_of(last));
    }
    template <int compared, int slots>
    LIMEN_AVX2 static int count(const double* keys, double score) {
        static_assert(slots <= 64);
        const __m256d wanted = _mm256_set1_pd(score);
        std::uint64_t found = 0;
        LIMEN_UNROLL
        for (int i = 0; i < slots; i += 4) {
            const __m256d yes = _mm256_cmp_pd(_mm256_load_pd(keys + i), wanted, compared);
            found |= static_cast<std::uint64_t>(_mm256_movemask_pd(yes)) << i;
        }
        return std::popcount(found);
    }
};

// With AVX-512 a comparison is a mask, and masks count, select and find. Compilers take the sum,
// the maximum and the last place out of a vector of eight through memory, which costs more than
// the vectors save, so all of it is spelled out.
struct Avx512Kernels {
    LIMEN_AVX512 static int leaf_rank(const double* keys, double score) {
        return count<_CMP_LT_OQ, leaf_slots>(keys, score);
    }
    LIMEN_AVX512 static int node_rank(const double* separators, double score) {
        return count<_CMP_LE_OQ, node_slots>(separators, score);
    }
    LIMEN_AVX512 static std::int64_t leaf_add(std::int64_t* prefix, int slot, std::int64_t delta) {
        const __m512i by = _mm512_set1_epi64(delta);
        const std::uint64_t on = from(slot);
        Largest largest;
        LIMEN_UNROLL
        for (int i = 0; i < leaf_slots; i += 8) {
            const __m512i old = _mm512_load_si512(prefix + i);
            const __m512i value = _mm512_mask_add_epi64(old, at(on, i), old, by);
            _mm512_store_si512(prefix + i, value);
            largest.see(value, i);
        }
        return largest.get();
    }
    // What moves by one slot comes out of registers: a load that straddles recent stores waits.
    LIMEN_AVX512 static std::int64_t leaf_open(double* scores, std::int64_t* prefix, int slot,
                                               std::int64_t delta) {
        const __m512i by = _mm512_set1_epi64(delta);
        const std::uint64_t on = from(slot);
        __m512i lower = _mm512_setzero_si512(), lower_scores = lower;
        Largest largest;
        LIMEN_UNROLL
        for (int i = 0; i < leaf_slots; i += 8) {
            const __m512i old = _mm512_load_si512(prefix + i);
            const __m512i moved = _mm512_alignr_epi64(old, lower, 7);
            const __m512i value = _mm512_mask_add_epi64(old, at(on, i), moved, by);
            _mm512_store_si512(prefix + i, value);
            largest.see(value, i);
            lower = old;
            const __m512i here = _mm512_load_si512(scores + i);
            _mm512_store_si512(scores + i,
                               _mm512_mask_alignr_epi64(here, at(on, i), here, lower_scores, 7));
            lower_scores = here;
        }
        return largest.get();
    }

    LIMEN_AVX512 static std::int64_t leaf_close(double* scores, std::int64_t* prefix, int slot,
                                                std::int64_t delta) {
        const __m512i by = _mm512_set1_epi64(delta);
        const std::uint64_t on = from(slot);
        __m512i upper = _mm512_set1_epi64(prefix[leaf_slots - 1]);
        __m512i upper_scores =
            _mm512_castpd_si512(_mm512_set1_pd(std::numeric_limits<double>::infinity()));
        Largest largest;
        LIMEN_UNROLL
        for (int i = leaf_slots - 8; i >= 0; i -= 8) {
            const __m512i old = _mm512_load_si512(prefix + i);
            const __m512i moved = _mm512_alignr_epi64(upper, old, 1);
            const __m512i value = _mm512_mask_add_epi64(old, at(on, i), moved, by);
            _mm512_store_si512(prefix + i, value);
            largest.see(value, i);
            upper = old;
            const __m512i here = _mm512_load_si512(scores + i);
            _mm512_store_si512(scores + i,
                               _mm512_mask_alignr_epi64(here, at(on, i), upper_scores, here, 1));
            upper_scores = here;
        }
        return largest.get();
    }
    LIMEN_AVX512 static int leaf_last(const std::int64_t* prefix, std::int64_t value) {
        return last_of<leaf_slots>(prefix, value);
    }
    LIMEN_AVX512 static std::int64_t node_add(std::int64_t* before, std::int64_t* best, int child,
                                              std::int64_t delta, int used) {
        const __m512i by = _mm512_set1_epi64(delta);
        const std::uint64_t later = from(child + 1) & ~from(used);
        const std::uint64_t others = ~(std::uint64_t{1} << child);
        __m512i found = _mm512_set1_epi64(lowest);
        LIMEN_UNROLL
        for (int i = 0; i < node_slots; i += 8) {
            const __m512i start = _mm512_load_si512(before + i), old = _mm512_load_si512(best + i);
            _mm512_store_si512(before + i, _mm512_mask_add_epi64(start, at(later, i), start, by));
            const __m512i value = _mm512_mask_add_epi64(old, at(later, i), old, by);
            _mm512_store_si512(best + i, value);
            found = _mm512_mask_max_epi64(found, at(others, i), found, value);
        }
        return largest_of(found);
    }
    LIMEN_AVX512 static std::int64_t node_add_two(std::int64_t* before, std::int64_t* best, int one,
                                                  std::int64_t delta, int other,
                                                  std::int64_t other_delta, int used) {
        const __m512i by = _mm512_set1_epi64(delta), also_by = _mm512_set1_epi64(other_delta);
        const std::uint64_t later = from(one + 1) & ~from(used);
        const std::uint64_t also_later = from(other + 1) & ~from(used);
        const std::uint64_t others = ~(std::uint64_t{1} << one | std::uint64_t{1} << other);
        __m512i found = _mm512_set1_epi64(lowest);
        LIMEN_UNROLL
        for (int i = 0; i < node_slots; i += 8) {
            const __m512i start = _mm512_load_si512(before + i), old = _mm512_load_si512(best + i);
            const __m512i shift =
                _mm512_mask_add_epi64(_mm512_maskz_mov_epi64(at(later, i), by), at(also_later, i),
                                      _mm512_maskz_mov_epi64(at(later, i), by), also_by);
            _mm512_store_si512(before + i, _mm512_add_epi64(start, shift));
            const __m512i value = _mm512_add_epi64(old, shift);
            _mm512_store_si512(best + i, value);
            found = _mm512_mask_max_epi64(found, at(others, i), found, value);
        }
        return largest_of(found);
    }
    LIMEN_AVX512 static int node_last(const std::int64_t* best, std::int64_t value) {
        return last_of<node_slots>(best, value);
    }

private:
    // A bit for each slot from this one on, and those of the eight slots at a place.
    LIMEN_AVX512 static std::uint64_t from(int slot) { return ~std::uint64_t{0} << slot; }
    LIMEN_AVX512 static __mmask8 at(std::uint64_t slots, int first) {
        return static_cast<__mmask8>(slots >> first);
    }
    LIMEN_AVX512 static std::int64_t largest_of(__m512i values) {
        const __m256i four =
            _mm256_max_epi64(_mm512_castsi512_si256(values), _mm512_extracti64x4_epi64(values, 1));
        const __m128i two =
            _mm_max_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
        return _mm_cvtsi128_si64(_mm_max_epi64(two, _mm_unpackhi_epi64(two, two)));
    }
    // In two strands, because each step waits for the one before it.
    struct Largest {
        __m512i found[2];
        LIMEN_AVX512 Largest() { found[0] = found[1] = _mm512_set1_epi64(lowest); }
        LIMEN_AVX512 void see(__m512i values, int i) {
            found[i / 8 % 2] = _mm512_max_epi64(found[i / 8 % 2], values);
        }
        LIMEN_AVX512 std::int64_t get() const {
            return largest_of(_mm512_max_epi64(found[0], found[1]));
        }
    };

    template <int slots>
    LIMEN_AVX512 static int last_of(const std::int64_t* values, std::int64_t value) {
        const __m512i wanted = _mm512_set1_epi64(value);
        std::uint64_t found = 0;
        LIMEN_UNROLL
        for (int i = 0; i < slots; i += 8)
            found |= std::uint64_t{_mm512_cmpeq_epi64_mask(_mm512_load_si512(values + i), wanted)}
                     << i;
        return 63 - std::countl_zero(found);
    }
    template <int compared, int slots>
    LIMEN_AVX512 static int count(const double* keys, double score) {
        static_assert(slots <= 64);
        const __m512d wanted = _mm512_set1_pd(score);
        std::uint64_t found = 0;
        LIMEN_UNROLL
        for (int i = 0; i < slots; i += 8)
            found |= std::uint64_t{_mm512_cmp_pd_mask(_mm512_load_pd(keys + i), wanted, compared)}
                     << i;
        return std::popcount(found);
    }
};
#endif

template <Isa>
struct Kernels : BaselineKernels {};
#if LIMEN_X86
template <>
struct Kernels<Isa::avx2> : Avx2Kernels {};
template <>
struct Kernels<Isa::avx512> : Avx512Kernels {};
#endif

// Call `work` with the kernels of an instruction set, an object whose type is all that counts:
// with_kernels(isa, [&]<class K>(K) { return K::leaf_rank(keys, score); }).
template <class Work>
auto with_kernels(Isa isa, Work&& work) {
    return with_isa(isa, [&]<Isa chosen>(IsaConstant<chosen>) { return work(Kernels<chosen>{}); });
}

}  // namespace limen
