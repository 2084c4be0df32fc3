// SPDX-License-Identifier: Apache-2.0
//
// From the numbers people give to whole numbers of a unit, rounded once and to the nearest.
//
// A unit is either fixed (a fraction, say 1/100) or automatic: a power of two that starts at 1
// and becomes finer, down to 2^-20, when a number needs it. Whole numbers so keep all 62 bits
// for themselves until the first number with a fraction arrives.
//
// to_units      O(1), exact: the nearest whole number, ties to even
// bits_needed   O(1)

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/wide.hpp"

namespace limen {

// Sums of absolute losses stay below this many units.
inline constexpr std::int64_t most_units = std::int64_t{1} << 62;
inline constexpr int finest_bits = 20;

// What a mistake costs, as whole numbers.
struct Costs {
    std::int64_t false_positive = 1, false_negative = 1;
};

struct Unit {
    bool automatic = true;
    std::int64_t numerator = 1, denominator = 1;  // each from 1 to below 2^62
};

enum class Rounding {
    done,
    lost,       // a number that is not 0 would become 0
    too_large,  // 2^62 units or more
};

struct Whole {
    std::int64_t units;
    Rounding rounding;
};

// A finite double as mantissa * 2^exponent with an odd mantissa; 0 as 0 * 2^0.
struct Dyadic {
    std::int64_t mantissa;
    int exponent;
};

inline Dyadic dyadic(double value) {
    if (value == 0) return {0, 0};
    int exponent;
    const double fraction = std::frexp(value, &exponent);
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));
    const int zeros = std::countr_zero(static_cast<std::uint64_t>(mantissa));
    return {mantissa >> zeros, exponent - 53 + zeros};
}

// Without the library call that rounding takes on old instruction sets.
inline bool is_whole(double value) {
    return std::fabs(value) < static_cast<double>(most_units) &&
           static_cast<double>(static_cast<std::int64_t>(value)) == value;
}

// The nearest whole number to top * 2^exponent / bottom, ties to even. top and bottom > 0.
inline Whole divide(WideUnsigned top, int exponent, WideUnsigned bottom, bool negative) {
    // A product of a double's mantissa is below 2^115, and only such come with an exponent:
    // what cannot be shifted inside 126 bits is far out of range, above 2^64 or below 2^-10.
    if (exponent < 0 && (exponent < -126 || bottom >> (126 + exponent))) return {0, Rounding::lost};
    if (exponent > 0) {
        if (exponent > 126 || top >> (126 - exponent)) return {0, Rounding::too_large};
        top <<= exponent;
    } else {
        bottom <<= -exponent;
    }
    WideUnsigned units = top / bottom;
    const WideUnsigned left = top - units * bottom, missing = bottom - left;
    if (left > missing || (left == missing && (units & 1))) ++units;
    if (units >= static_cast<WideUnsigned>(most_units)) return {0, Rounding::too_large};
    if (units == 0) return {0, Rounding::lost};
    const auto whole = static_cast<std::int64_t>(units);
    return {negative ? -whole : whole, Rounding::done};
}

// The number in units of 2^-bits (automatic) or of the fixed fraction. What is not finite is too
// large.
inline Whole to_units(double value, const Unit& unit, int bits) {
    if (value == 0) return {0, Rounding::done};
    if (unit.automatic) {
        const double scaled = value * static_cast<double>(std::int64_t{1} << bits);  // exact
        if (!(std::fabs(scaled) < static_cast<double>(most_units))) return {0, Rounding::too_large};
        const auto whole =
            static_cast<std::int64_t>(is_whole(scaled) ? scaled : std::nearbyint(scaled));
        return {whole, whole == 0 ? Rounding::lost : Rounding::done};
    }
    if (!std::isfinite(value)) return {0, Rounding::too_large};
    const Dyadic parts = dyadic(std::fabs(value));
    return divide(static_cast<WideUnsigned>(parts.mantissa) *
                      static_cast<WideUnsigned>(unit.denominator),
                  parts.exponent, static_cast<WideUnsigned>(unit.numerator), value < 0);
}

inline Whole to_units(std::int64_t value, const Unit& unit, int bits) {
    if (value == 0) return {0, Rounding::done};
    const bool negative = value < 0;
    const std::uint64_t size =
        negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    if (unit.automatic) {
        if (size > static_cast<std::uint64_t>(most_units - 1) >> bits)
            return {0, Rounding::too_large};
        return {value * (std::int64_t{1} << bits), Rounding::done};
    }
    return divide(static_cast<WideUnsigned>(size) * static_cast<WideUnsigned>(unit.denominator), 0,
                  static_cast<WideUnsigned>(unit.numerator), negative);
}

// How many binary places the number needs once it is rounded to the finest automatic unit.
inline int bits_needed(double value) {
    if (is_whole(value)) return 0;
    const Dyadic parts = dyadic(value);
    if (parts.exponent >= -finest_bits) return parts.exponent < 0 ? -parts.exponent : 0;
    // An odd mantissa below 2^53 and so many places: the number is small enough to round.
    const auto whole = static_cast<std::int64_t>(std::nearbyint(std::ldexp(value, finest_bits)));
    if (whole == 0) return finest_bits;
    const int zeros = std::countr_zero(static_cast<std::uint64_t>(whole));
    return zeros < finest_bits ? finest_bits - zeros : 0;
}

inline int bits_needed(std::int64_t) { return 0; }

}  // namespace limen
