// SPDX-License-Identifier: Apache-2.0
//
// exp, log and the normal law by additions, multiplications, divisions and square roots alone, so
// that every processor and every C library gives the same bits. About 1e-15 of the value off.
//
// O(1) each, without a branch in exp: loops over it are turned into vector instructions.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace limen::portable {

inline constexpr double ln2_high = 6.93147180369123816490e-01;  // 32 bits: exact times any exponent
inline constexpr double ln2_low = 1.90821492927058770002e-10;

// Beyond 700 on either side, what 700 gives.
inline double exp(double x) {
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52: the sum's last bits are an integer
    x = x > 700.0 ? 700.0 : x;
    x = x < -700.0 ? -700.0 : x;
    const double shifted = x * 1.44269504088896338700 + shift;
    const double power = shifted - shift;
    const double r = (x - power * ln2_high) - power * ln2_low;  // at most ln 2 / 2
    double sum = 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600.0;
    sum = sum * r + 1.0 / 39916800.0;
    sum = sum * r + 1.0 / 3628800.0;
    sum = sum * r + 1.0 / 362880.0;
    sum = sum * r + 1.0 / 40320.0;
    sum = sum * r + 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) + 1023;
    return sum * std::bit_cast<double>(exponent << 52);
}

// 1/3 + x/5 + x^2/7 + ..., of an x of at most 0.03.
inline double atanh_tail(double x) {
    double sum = 1.0 / 23;
    sum = sum * x + 1.0 / 21;
    sum = sum * x + 1.0 / 19;
    sum = sum * x + 1.0 / 17;
    sum = sum * x + 1.0 / 15;
    sum = sum * x + 1.0 / 13;
    sum = sum * x + 1.0 / 11;
    sum = sum * x + 1.0 / 9;
    sum = sum * x + 1.0 / 7;
    sum = sum * x + 1.0 / 5;
    return sum * x + 1.0 / 3;
}

// Of a normal number above 0.
inline double log(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    // The exponent for which the rest lies between the roots of a half and of two.
    const std::uint64_t root_half = 0x3FE6A09E667F3BCDULL;
    const auto exponent = static_cast<std::int64_t>(bits - root_half) >> 52;
    const double rest = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
    const double s = (rest - 1) / (rest + 1), square = s * s;
    const double power = static_cast<double>(exponent);
    return power * ln2_high + (power * ln2_low + (2 * s + 2 * s * square * atanh_tail(square)));
}

// log(1 + x) of an x between 0 and 1.
inline double log1p(double x) {
    const bool large = x > 0.41421356237309503;
    const double near = large ? (x - 1) / 2 : x;  // of 1 + x, or of its half: without an error
    const double s = near / (2 + near), square = s * s;
    return (large ? 0.69314718055994531 : 0.0) + 2 * s * (1 + square * atanh_tail(square));
}

// The share of a normal law below x; the error of 1e-16 is absolute.
inline double normal_share(double x) {
    const double size = std::min(std::fabs(x), 9.0), square = size * size;
    double term = size, sum = size;
    for (int odd = 3; term > sum * 1e-17; odd += 2) sum += term *= square / odd;
    const double half = std::min(0.5, sum * exp(-square / 2) * 0.39894228040143267794);
    return x < 0 ? 0.5 - half : 0.5 + half;
}

}  // namespace limen::portable
