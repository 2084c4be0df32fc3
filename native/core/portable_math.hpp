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

// The point below which a normal law has this share, which lies strictly between 0 and 1; to about
// 16 digits. Wichura (1988), algorithm AS 241.
inline double normal_quantile(double share) {
    const auto ratio = [](const double(&over)[8], const double(&under)[8], double x) {
        double a = over[7], b = under[7];
        for (int i = 6; i >= 0; --i) {
            a = a * x + over[i];
            b = b * x + under[i];
        }
        return a / b;
    };
    constexpr double middle[2][8] = {
        {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
         1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
         3.3430575583588128105e+4, 2.5090809287301226727e+3},
        {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
         2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
         5.2264952788528545610e+3}};
    constexpr double outer[2][8] = {
        {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
         3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
         2.27238449892691845833e-2, 7.74545014278341407640e-4},
        {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
         1.05075007164441684324e-9}};
    constexpr double tail[2][8] = {
        {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
         2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
         2.71155556874348757815e-5, 2.01033439929228813265e-7},
        {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
         2.04426310338993978564e-15}};
    const double q = share - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(middle[0], middle[1], 0.180625 - q * q);
    const double r = std::sqrt(-log(q <= 0 ? share : 1 - share));
    const double x = r <= 5 ? ratio(outer[0], outer[1], r - 1.6) : ratio(tail[0], tail[1], r - 5);
    return q < 0 ? -x : x;
}

}  // namespace limen::portable
