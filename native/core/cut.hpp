// SPDX-License-Identifier: Apache-2.0
//
// What is held of a score, a cut between two scores, and the threshold that is published for it.

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace limen {

// What is held of one score: the sums over its samples.
struct ScoreSums {
    double score;
    std::int64_t below, above;
    std::uint32_t count;
};

// Where a cut lies: the highest score below it and the lowest above, where there are such.
struct Gap {
    double lower = 0, upper = 0;
    bool has_lower = false, has_upper = false;

    bool operator==(const Gap&) const = default;
};

// The best cut, and the running sum it is worth.
struct Cut : Gap {
    std::int64_t best = 0;

    bool operator==(const Cut&) const = default;
};

// The number strictly inside the gap that is published as the threshold; `upper` where no double
// lies inside. nan, which no score reaches, when even a score of infinity is answered 0.
inline double threshold_of(const Gap& cut) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (!cut.has_upper)
        return cut.has_lower && cut.lower == infinity ? std::numeric_limits<double>::quiet_NaN()
                                                      : infinity;
    if (!cut.has_lower) return -infinity;
    double middle = (cut.lower + cut.upper) / 2;
    if (std::isinf(middle)) middle = cut.lower / 2 + cut.upper / 2;
    return middle > cut.lower && middle < cut.upper ? middle : cut.upper;
}

}  // namespace limen
