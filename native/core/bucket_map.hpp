// SPDX-License-Identifier: Apache-2.0
//
// A monotone map from scores to buckets that share the samples about evenly.
//
// It is learnt from a few drawn scores: cells of equal width, and within a cell as many buckets
// of equal width as its share of the drawn scores deserves.
//
// BucketMap     O(drawn + buckets), at most twice as many buckets as wanted
// bucket        O(1), without a branch
//
// It is monotone for every double, as after key_of there are only whole numbers, and none of
// them overflows: an offset is shifted right to find its cell, shifted right by less to find its
// bucket, and the buckets of a cell follow those of the cell before.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/isa.hpp"
#include "core/score_key.hpp"

namespace limen::select_detail {

inline constexpr Key before_all = std::numeric_limits<Key>::min();
inline constexpr Key past_all = std::numeric_limits<Key>::max();

// Not the key of a nan, which lies beyond those of the infinities.
inline bool is_score(Key key) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return key >= key_of(-infinity) && key <= key_of(infinity);
}

// Unsigned, as the whole range of keys does not fit into a Key.
LIMEN_INLINE std::uint64_t distance(Key from, Key to) {
    return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}
LIMEN_INLINE Key key_at(Key from, std::uint64_t distance) {
    return static_cast<Key>(static_cast<std::uint64_t>(from) + distance);
}

inline int width_of(std::uint64_t number) { return 64 - std::countl_zero(number); }

struct BucketMap {
    struct Cell {
        std::uint32_t bias, shift;
    };
    Key low, high;
    std::uint32_t shift;
    std::vector<Cell> cells;
    std::vector<Key> starts;  // the lowest key of every bucket, then the end of the last
    std::vector<Key> common;  // a score drawn more than once from the bucket, else past_all

    // `drawn` is sorted and not empty, wanted >= 2. All keys to be mapped lie below `end`.
    BucketMap(const std::vector<Key>& drawn, std::size_t wanted, Key end)
        : low(drawn.front()), high(drawn.back()) {
        const std::uint64_t range = distance(low, high);
        shift = static_cast<std::uint32_t>(std::max(0, width_of(range) - width_of(wanted) + 1));
        cells.resize(static_cast<std::size_t>(range >> shift) + 1);
        starts.reserve(cells.size() + wanted + 1);
        std::size_t next = 0;
        for (std::uint64_t c = 0; c < cells.size(); ++c) {
            std::size_t distinct = 0;
            for (; next < drawn.size() && distance(low, drawn[next]) >> shift == c; ++next)
                distinct += next == 0 || drawn[next] != drawn[next - 1];
            const int share = width_of(distinct * wanted / drawn.size() | 1u) - 1;
            const std::uint32_t bits = std::min(static_cast<std::uint32_t>(share), shift);
            cells[c].shift = shift - bits;
            cells[c].bias = static_cast<std::uint32_t>(starts.size() - (c << bits));
            for (std::uint64_t b = c << bits; b < (c + 1) << bits; ++b) {
                const std::uint64_t offset = b << cells[c].shift;
                starts.push_back(offset <= range ? key_at(low, offset) : end);
            }
        }
        starts.push_back(end);
        find_common(drawn);
    }

    std::size_t size() const { return starts.size() - 1; }

    LIMEN_INLINE static std::uint32_t bucket(const Cell* cells, std::uint32_t shift,
                                             std::uint64_t offset) {
        const Cell cell = cells[offset >> shift];
        return cell.bias + static_cast<std::uint32_t>(offset >> cell.shift);
    }

private:
    void find_common(const std::vector<Key>& drawn) {
        common.assign(size(), past_all);
        std::size_t last = size(), longest = 1;
        for (std::size_t i = 0, first; i < drawn.size();) {
            for (first = i; i < drawn.size() && drawn[i] == drawn[first]; ++i) {
            }
            const std::size_t b = bucket(cells.data(), shift, distance(low, drawn[first]));
            if (b != last) last = b, longest = 1;
            if (i - first > longest) common[b] = drawn[first], longest = i - first;
        }
    }
};

}  // namespace limen::select_detail
