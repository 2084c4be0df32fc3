// SPDX-License-Identifier: Apache-2.0
//
// From what a sample costs to whole units, and how fine these must be.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/cut.hpp"
#include "core/refusal.hpp"
#include "core/units.hpp"

namespace limen {

inline std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }

// What one sample costs on either side of the cut, in units.
struct Losses {
    std::int64_t below = 0, above = 0;
};
inline std::int64_t size_of(const Losses& losses) {
    return magnitude(losses.below) + magnitude(losses.above);
}
inline std::int64_t size_of(const ScoreSums& held) {
    return magnitude(held.below) + magnitude(held.above);
}
template <class Row>
std::int64_t size_of(const Row& row) requires requires {
    row.below();
}
{ return magnitude(row.below()) + magnitude(row.above()); }

// What numbers are measured in: a unit and, where it is automatic, its binary places in use.
class Measure {
public:
    explicit Measure(Unit unit) : unit_(unit) {}

    const Unit& unit() const { return unit_; }
    int bits() const { return bits_; }

    // The binary places to measure these numbers in: those in use, or more if one needs it.
    template <class Number>
    int bits_for(Number value) const {
        return unit_.automatic ? std::max(bits_, bits_needed(value)) : 0;
    }

    // A number times a whole cost, in units of the given fineness.
    template <class Number>
    Refusal measure(Number value, std::int64_t cost, int bits, std::int64_t& units) const {
        const Whole whole = to_units(value, unit_, bits);
        if (whole.rounding == Rounding::lost) return Refusal::lost;
        if (whole.rounding == Rounding::too_large ||
            __builtin_mul_overflow(whole.units, cost, &units) || units >= most_units ||
            units <= -most_units)
            return Refusal::too_large;
        return Refusal::none;
    }

protected:
    Unit unit_;
    int bits_ = 0;
};

// How many samples need exactly 1, 2, ... binary places; all others are whole. Sums do not show it:
// two halves make a whole, and each of them must find its places when it is taken back.
class FractionBits {
public:
    // 0 when all are whole.
    int finest() const {
        int places = fine_ ? finest_bits : 0;
        while (places > 0 && counts_[index(places)] == 0) --places;
        return places;
    }
    std::uint64_t fine() const { return fine_; }
    std::uint64_t of(int places) const { return counts_[index(places)]; }

    void add(int places, std::uint64_t samples = 1) {
        if (places == 0) return;
        counts_[index(places)] += samples;
        fine_ += samples;
    }
    void add(const FractionBits& others) {
        for (int places = 1; places <= finest_bits; ++places) add(places, others.of(places));
    }
    // One of `samples` goes. Where bytes did not have all places, none may need so many: then
    // the next finer goes, so that those who stay are never taken for coarser than they are.
    void remove(int places, std::size_t samples) {
        const auto take = [&](int from) {
            if (from == 0) return samples > fine_;
            if (counts_[index(from)] == 0) return false;
            --counts_[index(from)];
            --fine_;
            return true;
        };
        for (int from = places; from <= finest_bits; ++from)
            if (take(from)) return;
        while (places > 0 && !take(--places)) {
        }
    }

    bool operator==(const FractionBits&) const = default;

private:
    static std::size_t index(int places) { return static_cast<std::size_t>(places) - 1; }

    std::array<std::uint64_t, finest_bits> counts_{};
    std::uint64_t fine_ = 0;
};

}  // namespace limen
