// SPDX-License-Identifier: Apache-2.0
//
// Many samples at once: sorted by score, equal scores joined.
//
// sorted    O(n): a radix sort on the bits of the score, passes without effect left out, and all
//           of them where the rows ascend already
// joined    O(n)
// memory    one copy of the rows while sorting
//
// A row is as short as what is known of the samples allows, because sorting moves it several
// times: labelled samples that weigh the same are a score each, one array for each label.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/huge_pages.hpp"
#include "core/score_key.hpp"

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

template <class Row>
std::uint64_t order_of(const Row& row) {
    return row.order;
}
inline std::uint64_t order_of(std::uint64_t order) { return order; }

// Sort n rows with room for as many others; where they are then, in either place.
template <class Row>
Row* sort_rows(Row* rows, Row* other, std::size_t n) {
    const auto earlier = [](const Row& a, const Row& b) { return order_of(a) < order_of(b); };
    if (std::is_sorted(rows, rows + n, earlier)) return rows;
    if (n < 512) {
        std::sort(rows, rows + n, earlier);
        return rows;
    }
    constexpr int digit_bits = 8, digits = 8, buckets = 1 << digit_bits;
    std::array<std::array<std::size_t, buckets>, digits> counts = {};
    for (std::size_t i = 0; i < n; ++i)
        for (int digit = 0; digit < digits; ++digit)
            ++counts[static_cast<std::size_t>(digit)]
                    [order_of(rows[i]) >> (digit * digit_bits) & 255];
    for (int digit = 0; digit < digits; ++digit) {
        auto& starts = counts[static_cast<std::size_t>(digit)];
        const int shift = digit * digit_bits;
        if (starts[order_of(rows[0]) >> shift & 255] == n) continue;
        std::size_t start = 0;
        for (std::size_t& count : starts) start += std::exchange(count, start);
        for (std::size_t i = 0; i < n; ++i)
            other[starts[order_of(rows[i]) >> shift & 255]++] = rows[i];
        std::swap(rows, other);
    }
    return rows;
}

template <class Row>
void sort_rows(std::vector<Row>& rows) {
    std::vector<Row> other(rows.size() < 512 ? 0 : rows.size());
    if (sort_rows(rows.data(), other.data(), rows.size()) != rows.data()) rows.swap(other);
}

// Sort the rows and join those of equal score. At most 2^32 - 1 rows.
template <class Row>
std::vector<ScoreSums> joined(std::vector<Row>& rows) {
    sort_rows(rows);
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        distinct += i == 0 || rows[i].order != rows[i - 1].order;
    std::vector<ScoreSums> held;
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

// Labelled samples that all weigh the same: nothing but their scores, those of either label in a
// place of their own.
class LabelledScores {
public:
    // Samples of label 0 cost z_of_0 > 0 above the cut, those of label 1 z_of_1 > 0 below it.
    LabelledScores(std::size_t n, std::int64_t z_of_0, std::int64_t z_of_1)
        : orders_(make_chunk<std::uint64_t>(2 * n, n >= huge_page / 32)), ones_(n), size_(n),
          z_of_0_(z_of_0), z_of_1_(z_of_1) {}

    std::size_t size() const { return size_; }
    std::int64_t z_of_0() const { return z_of_0_; }
    std::int64_t z_of_1() const { return z_of_1_; }
    std::size_t zeros() const { return zeros_; }
    std::size_t ones() const { return size_ - ones_; }

    // As many as there is room for. Zeros grow from the start and ones from the end, without a
    // branch, which would be a guess.
    LIMEN_INLINE void put(double score, bool label) {
        ones_ -= label;
        orders_[label ? ones_ : zeros_] = ordered_bits(score);
        zeros_ += !label;
    }

    // What they cost may be known later than the scores, but before anything else is asked.
    void set_losses(std::int64_t z_of_0, std::int64_t z_of_1) {
        z_of_0_ = z_of_0;
        z_of_1_ = z_of_1;
    }

    // All are there. joined() does so as well, unless it is done.
    void sort() {
        if (sorted_zeros_) return;
        std::uint64_t* const other = orders_.get() + size_;
        sorted_zeros_ = sort_rows(orders_.get(), other, zeros_);
        sorted_ones_ = sort_rows(orders_.get() + zeros_, other + zeros_, ones());
    }

    std::vector<SignedRow> rows() const {
        std::vector<SignedRow> all;
        all.reserve(size_);
        for (std::size_t i = 0; i < size_; ++i)
            all.push_back({orders_[i], i < zeros_ ? z_of_0_ : -z_of_1_});
        return all;
    }

    // Every score in ascending order with the sums of its samples: visit(held).
    template <class Visit>
    void joined(Visit&& visit) {
        sort();
        const std::uint64_t *zero = sorted_zeros_, *one = sorted_ones_;
        const std::uint64_t *const zeros_end = zero + zeros(), *const ones_end = one + ones();
        constexpr std::uint64_t past_all = ~std::uint64_t{0};
        while (zero != zeros_end || one != ones_end) {
            const std::uint64_t low = zero != zeros_end ? *zero : past_all,
                                high = one != ones_end ? *one : past_all;
            const std::uint64_t order = std::min(low, high);
            std::int64_t counts[2] = {low == order, high == order};
            zero += counts[0];
            one += counts[1];
            for (; zero != zeros_end && *zero == order; ++zero) ++counts[0];
            for (; one != ones_end && *one == order; ++one) ++counts[1];
            visit(ScoreSums{score_of(order), counts[1] * z_of_1_, counts[0] * z_of_0_,
                            static_cast<std::uint32_t>(counts[0] + counts[1])});
        }
    }

private:
    Chunk<std::uint64_t> orders_;          // and as much room for sorting
    std::size_t zeros_ = 0, ones_, size_;  // zeros lie below zeros_, ones from ones_ on
    std::int64_t z_of_0_, z_of_1_;
    const std::uint64_t *sorted_zeros_ = nullptr, *sorted_ones_ = nullptr;
};

}  // namespace limen
