// SPDX-License-Identifier: Apache-2.0
//
// Times and periods: whole numbers (steps, or microseconds) or doubles, compared exactly.
//
// Both kinds may meet, as 1 and 1.5 may, and are then compared without rounding. A period that is
// subtracted from a time is exact where both are whole and rounded once where one is a double.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/isa.hpp"

namespace limen {

// A time or a length of time; never nan.
struct Time {
    std::int64_t bits = 0;  // the number, or the bits of the double
    bool real = false;

    static Time whole(std::int64_t number) { return {number, false}; }
    static Time of(double number) { return {std::bit_cast<std::int64_t>(number), true}; }
    // Before all others.
    static Time never() { return of(-std::numeric_limits<double>::infinity()); }

    double number() const { return real ? std::bit_cast<double>(bits) : static_cast<double>(bits); }
};

namespace moment_detail {

// whole < real, exact also where rounding the whole number to a double would not be.
inline bool less(std::int64_t whole, double real) {
    if (real >= 0x1p63) return true;
    if (!(real >= -0x1p63)) return false;
    const double floor = std::floor(real);
    const auto below = static_cast<std::int64_t>(floor);
    return whole < below || (whole == below && floor < real);
}

inline bool less(double real, std::int64_t whole) {
    if (real >= 0x1p63) return false;
    if (!(real >= -0x1p63)) return true;
    return static_cast<std::int64_t>(std::floor(real)) < whole;
}

inline bool less_mixed(const Time& a, const Time& b) {
    return a.real ? less(std::bit_cast<double>(a.bits), b.bits)
                  : less(a.bits, std::bit_cast<double>(b.bits));
}

}  // namespace moment_detail

LIMEN_INLINE bool operator<(const Time& a, const Time& b) {
    if (a.real != b.real) return moment_detail::less_mixed(a, b);
    return a.real ? std::bit_cast<double>(a.bits) < std::bit_cast<double>(b.bits) : a.bits < b.bits;
}
inline bool operator>(const Time& a, const Time& b) { return b < a; }
inline bool operator<=(const Time& a, const Time& b) { return !(b < a); }
inline bool operator>=(const Time& a, const Time& b) { return !(a < b); }
inline bool operator==(const Time& a, const Time& b) { return !(a < b) && !(b < a); }

// The time that is a period earlier; never() where no whole number is that early.
inline Time before(const Time& time, const Time& period) {
    if (time.real || period.real) return Time::of(time.number() - period.number());
    std::int64_t edge;
    if (__builtin_sub_overflow(time.bits, period.bits, &edge)) return Time::never();
    return Time::whole(edge);
}

}  // namespace limen
