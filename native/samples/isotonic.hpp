// SPDX-License-Identifier: Apache-2.0
//
// The isotonic fit as numbers: its blocks out of sorted scores, and the probability of a score.
//
// fit_blocks       O(n), exact: pooling adjacent violators in whole units
// probability_at   O(log n)
// probabilities    O(m log n), or O(n + m log b) for b blocks where many scores are asked for

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/cut.hpp"
#include "core/hull_tree.hpp"
#include "core/wide.hpp"

namespace limen {

// part / whole, rounded once, for 0 <= part <= whole and whole > 0. Rounding both before they
// are divided could put a larger fraction below a smaller one.
inline double nearest_ratio(std::int64_t part, std::int64_t whole) {
    constexpr std::int64_t exact = std::int64_t{1} << 53;
    if (whole < exact) return static_cast<double>(part) / static_cast<double>(whole);
    if (part == 0) return 0;
    const int shift = 64 + std::countl_zero(static_cast<std::uint64_t>(part)) - 1;
    const WideUnsigned top = static_cast<WideUnsigned>(part) << shift;
    const WideUnsigned bottom = static_cast<WideUnsigned>(whole);
    // More than 64 bits, the lowest of which stands for all that follow.
    const WideUnsigned quotient = top / bottom | (top % bottom != 0 ? 1 : 0);
    return std::ldexp(static_cast<double>(quotient), -shift);
}

inline double value_of(const Block& block) {
    return nearest_ratio(block.sums.below, block.sums.below + block.sums.above);
}

// The blocks of scores that ascend strictly.
inline std::vector<Block> fit_blocks(const std::vector<ScoreSums>& held) {
    std::vector<Block> blocks;
    const auto direction = [](const Block& block) {
        return Point{block.sums.below + block.sums.above, block.sums.below};
    };
    for (const ScoreSums& next : held) {
        Block block{next.score, next.score, {next.below, next.above, next.count}};
        while (!blocks.empty() && cross(direction(blocks.back()), direction(block)) <= 0) {
            const Block& last = blocks.back();
            block.first = last.first;
            block.sums.below += last.sums.below;
            block.sums.above += last.sums.above;
            block.sums.count += last.sums.count;
            blocks.pop_back();
        }
        blocks.push_back(block);
    }
    return blocks;
}

// What a score between two blocks is given.
enum class Between {
    step,    // the value of the block on its side of the threshold between them
    linear,  // on the straight line between their nearest scores
};

inline double probability_between(double score, double lower, double low, double upper, double high,
                                  Between between) {
    if (between == Between::step) {
        const bool above = score >= threshold_of({lower, upper, true, true});
        return above ? high : low;
    }
    const bool left = std::isinf(lower), right = std::isinf(upper);
    if (left && right) return low + (high - low) / 2;
    if (left || right) return left ? high : low;
    // A gap wider than the largest double is measured in halves.
    const double half = std::isinf(upper - lower) ? 0.5 : 1;
    const double part = (score * half - lower * half) / (upper * half - lower * half);
    return std::min(low + part * (high - low), high);
}

// nan where nothing is held. `tree` may be a HullCopy.
template <class Hull>
double probability_at(const Hull& tree, double score, Between between) {
    const BlocksAround around = tree.around(score + 0.0);
    if (!around.has_lower && !around.has_upper) return std::numeric_limits<double>::quiet_NaN();
    if (!around.has_lower) return value_of(around.upper);
    const double low = value_of(around.lower);
    if (!around.has_upper || around.lower.first == around.upper.first) return low;
    return probability_between(score, around.lower.last, low, around.upper.first,
                               value_of(around.upper), between);
}

// The same for the blocks of a fit that stand in columns.
struct BlockColumns {
    const double *first, *last, *values;
    std::size_t n;

    double probability_at(double score, Between between) const {
        if (n == 0) return std::numeric_limits<double>::quiet_NaN();
        const auto i = static_cast<std::size_t>(std::lower_bound(last, last + n, score) - last);
        if (i == n) return values[n - 1];
        if (i == 0 || first[i] <= score) return values[i];
        return probability_between(score, last[i - 1], values[i - 1], first[i], values[i], between);
    }
};

template <class Hull>
void probabilities(const Hull& tree, const double* scores, std::size_t n, Between between,
                   double* out) {
    std::size_t few = 0;
    if constexpr (requires { tree.distinct(); }) few = tree.distinct() / 16;
    if (n < few) {
        for (std::size_t i = 0; i < n; ++i) out[i] = probability_at(tree, scores[i], between);
        return;
    }
    std::vector<double> first, last, values;
    tree.blocks([&](const Block& block) {
        first.push_back(block.first);
        last.push_back(block.last);
        values.push_back(value_of(block));
    });
    const BlockColumns blocks{first.data(), last.data(), values.data(), values.size()};
    for (std::size_t i = 0; i < n; ++i) out[i] = blocks.probability_at(scores[i], between);
}

}  // namespace limen
