// SPDX-License-Identifier: Apache-2.0
//
// Weights that grow instead of ageing: what is older counts less, by a half-life.
//
// The cheapest cut does not change when all losses are multiplied alike. So nothing old is touched
// as it ages; newer samples are added with larger weights instead, and when these have become
// large everything held is divided by a power of two.
//
// Positions are counted in half-lives from the first sample. A sample at the base, which is a
// whole number of half-lives, is held with its own weight. All is O(1).

#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "core/wide.hpp"
#include "memory/moment.hpp"
#include "memory/terms.hpp"

namespace limen {

class HalfLives {
public:
    // The weight of the newest sample is held as 2^low to 2^high times itself.
    static constexpr int low = 10, high = 20;

    HalfLives(const Time& length, bool by_time) : length_(length), by_time_(by_time) {}

    bool by_time() const { return by_time_; }

    // How many half-lives after the base lies the sample that came after `count` others, or at
    // this moment. Far behind is written as -2^52; false when it is as far ahead.
    bool position(std::uint64_t count, const Time& moment, const std::optional<Time>& origin,
                  double base, double& ahead) const {
        Sum since{static_cast<double>(count), 0};
        if (by_time_)
            since = origin ? difference(moment, *origin) : Sum{0, 0};
        else if (count >> 53)
            since = split(static_cast<Wide>(count));
        const double length = length_.number();
        const double about = since.high / length;
        ahead = about - base;
        if (std::fabs(about) < near) return true;
        if (std::isinf(about) || std::fabs(about) >= 2 * far) {
            ahead = -far;
            return about < 0;
        }
        // What the division rounded away, and the difference before it.
        const double rest = std::fma(-about, length, since.high) + since.low;
        ahead = (about - base) + (rest - about * split_length()) / length;
        if (ahead >= far) return false;
        if (ahead <= -far) ahead = -far;
        return true;
    }

    // By how many half-lives everything held is to be divided before a sample is added so far
    // ahead.
    static int to_divide(double ahead, std::int64_t& bits) {
        bits = ahead >= high ? static_cast<std::int64_t>(std::floor(ahead)) - low : 0;
        return static_cast<int>(bits < nothing_left ? bits : nothing_left);
    }

private:
    static constexpr double near = 0x1p20, far = 0x1p52;
    // Divided so often, 2^62 units of the finest kind are none.
    static constexpr std::int64_t nothing_left = 63 + finest_bits;

    // Two doubles that together hold a number to more than 100 bits.
    struct Sum {
        double high, low;
    };

    static Sum split(Wide number) {
        const auto high = static_cast<double>(number);
        return {high, static_cast<double>(number - static_cast<Wide>(high))};
    }
    static Sum split(const Time& time) {
        return time.real ? Sum{time.number(), 0} : split(Wide{time.bits});
    }
    // a - b; the high part is rounded once, as doubles do it.
    static Sum difference(const Time& a, const Time& b) {
        if (!a.real && !b.real) return split(Wide{a.bits} - b.bits);
        const Sum x = split(a), y = split(b);
        const double high = x.high - y.high;
        const double part = high - x.high;
        const double lost = (x.high - (high - part)) - (y.high + part);
        return {high, lost + (x.low - y.low)};
    }
    // What a whole half-life is more than its nearest double.
    double split_length() const { return length_.real ? 0 : split(Wide{length_.bits}).low; }

    Time length_;
    bool by_time_;
};

}  // namespace limen
