// SPDX-License-Identifier: Apache-2.0
//
// Why samples are refused: one of them, or a column of them.

#pragma once

#include <cmath>
#include <cstddef>

#include "core/units.hpp"

namespace limen {

enum class Refusal {
    none,
    lost,       // a loss that is not 0 would round to 0
    too_large,  // the sum of all losses would reach 2^62 units
    too_many,   // 2^32 samples of one score
    not_held,
};

struct Trouble {
    enum Kind { none, nan_score, negative, not_finite, lost, too_large } kind = none;
    std::size_t index = 0;
    const char* name = "";
    double value = 0;  // the number at that place
    double size = 0;   // too_large: about the sum that does not fit, in the numbers given
    int bits = 0;      // too_large: the places it was measured in

    explicit operator bool() const { return kind != none; }
};

inline double unit_size(const Unit& unit, int bits) {
    if (unit.automatic) return std::ldexp(1.0, -bits);
    return static_cast<double>(unit.numerator) / static_cast<double>(unit.denominator);
}

}  // namespace limen
