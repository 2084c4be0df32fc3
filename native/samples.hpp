// SPDX-License-Identifier: Apache-2.0
//
// Many samples at once: sorted by score, equal scores joined.
//
// sorted    O(n): a radix sort on the bits of the score, passes without effect left out
// joined    O(n)
// memory    one copy of the rows while sorting

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cut.hpp"
#include "score_key.hpp"

namespace limen {

// The key of a score with the order of unsigned numbers, and back.
inline std::uint64_t ordered_bits(double score) {
    return static_cast<std::uint64_t>(key_of(score)) ^ std::uint64_t{1} << 63;
}
inline double score_of(std::uint64_t ordered) {
    return score_of(static_cast<Key>(ordered ^ std::uint64_t{1} << 63));
}

// A sample that costs something on one side only: z > 0 above, z < 0 below the cut.
struct SignedRow {
    std::uint64_t order;
    std::int64_t z;
    std::int64_t below() const { return z < 0 ? -z : 0; }
    std::int64_t above() const { return z > 0 ? z : 0; }
    void divide(std::int64_t by) { z /= by; }
};

struct LossRow {
    std::uint64_t order;
    std::int64_t losses[2];
    std::int64_t below() const { return losses[0]; }
    std::int64_t above() const { return losses[1]; }
    void divide(std::int64_t by) { losses[0] /= by, losses[1] /= by; }
};

// The sums of some samples of one score.
struct HeldRow {
    std::uint64_t order;
    std::int64_t losses[2];
    std::uint32_t count;
};

template <class Row>
void sort_rows(std::vector<Row>& rows) {
    const auto earlier = [](const Row& a, const Row& b) { return a.order < b.order; };
    if (rows.size() < 512) return std::sort(rows.begin(), rows.end(), earlier);
    constexpr int digit_bits = 8, digits = 8, buckets = 1 << digit_bits;
    std::vector<std::array<std::size_t, buckets>> counts(digits);
    for (const Row& row : rows)
        for (int digit = 0; digit < digits; ++digit)
            ++counts[static_cast<std::size_t>(digit)][row.order >> (digit * digit_bits) & 255];
    std::vector<Row> other(rows.size());
    for (int digit = 0; digit < digits; ++digit) {
        auto& starts = counts[static_cast<std::size_t>(digit)];
        const int shift = digit * digit_bits;
        if (starts[rows[0].order >> shift & 255] == rows.size()) continue;
        std::size_t start = 0;
        for (std::size_t& count : starts) start += std::exchange(count, start);
        for (const Row& row : rows) other[starts[row.order >> shift & 255]++] = row;
        rows.swap(other);
    }
}

// Sort the rows and join those of equal score. At most 2^32 - 1 rows.
template <class Row>
std::vector<Held> joined(std::vector<Row>& rows) {
    sort_rows(rows);
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        distinct += i == 0 || rows[i].order != rows[i - 1].order;
    std::vector<Held> held;
    held.reserve(distinct);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i].order != rows[i - 1].order)
            held.push_back({score_of(rows[i].order), 0, 0, 0});
        held.back().below += rows[i].below();
        held.back().above += rows[i].above();
        ++held.back().count;
    }
    return held;
}

}  // namespace limen
