// SPDX-License-Identifier: Apache-2.0
//
// Scores as whole numbers of the same order, so that they can be shifted, counted and compared
// without rounding. Every double but nan has a key; -0.0 has that of 0.0.

#pragma once

#include <bit>
#include <cstdint>

#include "core/isa.hpp"

namespace limen {

using Key = std::int64_t;

LIMEN_INLINE std::int64_t flip_negative(std::int64_t bits) {
    return bits ^ static_cast<std::int64_t>(static_cast<std::uint64_t>(bits >> 63) >> 1);
}
LIMEN_INLINE Key key_of(double score) {
    return flip_negative(std::bit_cast<std::int64_t>(score + 0.0));  // -0.0 + 0.0 is 0.0
}
LIMEN_INLINE double score_of(Key key) { return std::bit_cast<double>(flip_negative(key)); }

}  // namespace limen
