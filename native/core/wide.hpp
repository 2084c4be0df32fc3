// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers of more than 64 bits, and products that are compared without rounding.

#pragma once

#include <cstdint>

namespace limen {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;

// units * 2^bits; where bits is negative, units must be a multiple of 2^-bits.
template <class Units>
Units scaled(Units units, int bits) {
    return bits >= 0 ? units * (Units{1} << bits) : units / (Units{1} << -bits);
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
