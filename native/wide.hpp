// SPDX-License-Identifier: Apache-2.0
//
// Exact predicates on points of whole numbers: which of two edges is steeper, and on which side
// of an upright line two others meet.
//
// Coordinates are sums of weights and stay below 2^62, so the product of two of them fits in 128
// bits and the product of three in 192. Nothing is rounded: with doubles, edges that are nearly
// parallel would be taken for one another and the fit would be wrong.

#pragma once

#include <cstdint>

#include "units.hpp"

namespace limen {

// How much weight lies below a cut, and how much of it is lost there.
struct Point {
    std::int64_t weight = 0, below = 0;

    bool operator==(const Point&) const = default;
    Point operator+(const Point& other) const {
        return {weight + other.weight, below + other.below};
    }
    Point operator-(const Point& other) const {
        return {weight - other.weight, below - other.below};
    }
    Point operator-() const { return {-weight, -below}; }
    Point& operator+=(const Point& other) { return *this = *this + other; }
};

// Above 0 when b is steeper than a, 0 when they are parallel.
inline Wide cross(const Point& a, const Point& b) {
    return Wide{a.weight} * b.below - Wide{a.below} * b.weight;
}

// a * b > c * d in all 192 bits.
inline bool product_greater_exact(WideUnsigned a, std::uint64_t b, WideUnsigned c,
                                  std::uint64_t d) {
    constexpr WideUnsigned low_half = ~std::uint64_t{0};
    const WideUnsigned a_low = (a & low_half) * b, c_low = (c & low_half) * d;
    const WideUnsigned a_high = (a >> 64) * b + (a_low >> 64);
    const WideUnsigned c_high = (c >> 64) * d + (c_low >> 64);
    return a_high != c_high ? a_high > c_high : (a_low & low_half) > (c_low & low_half);
}

// a * b > c * d. Small weights make small products, for which one multiplication is enough.
inline bool product_greater(WideUnsigned a, std::uint64_t b, WideUnsigned c, std::uint64_t d) {
    if ((a | c) >> 64 == 0) return a * b > c * d;
    return product_greater_exact(a, b, c, d);
}

}  // namespace limen
