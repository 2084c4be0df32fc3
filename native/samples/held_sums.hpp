// SPDX-License-Identifier: Apache-2.0
//
// The totals of the samples held, in whole units, and what they say of a change without the tree.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/cut.hpp"
#include "core/measure.hpp"
#include "core/refusal.hpp"
#include "core/units.hpp"
#include "core/wide.hpp"
#include "samples/squares.hpp"

namespace limen {

inline constexpr std::uint32_t most_of_a_score = std::numeric_limits<std::uint32_t>::max();

// How the absolute sums of a score change when losses are added or taken away.
inline Wide growth(const ScoreSums& held, const ScoreSums& other, int sign) {
    return Wide{magnitude(held.below + sign * other.below)} +
           magnitude(held.above + sign * other.above) - size_of(held);
}

// Whether what is held of a score can be what is asked for, and more.
inline bool covers(const ScoreSums& held, const ScoreSums& asked, bool one_sided) {
    if (held.count < asked.count) return false;
    if (held.count == asked.count) return held.below == asked.below && held.above == asked.above;
    if (!one_sided) return true;
    return held.below >= asked.below && held.above >= asked.above &&
           (held.below != asked.below || held.above != asked.above);
}

class HeldSums : public Measure {
public:
    explicit HeldSums(Unit unit) : Measure(unit) {}

    // Losses are weights times these whole costs: a half that costs 2 still needs one place.
    void set_costs(std::int64_t below, std::int64_t above) {
        cost_below_ = below;
        cost_above_ = above;
        ones_bits_ = -1;
        whole_ones_ =
            unit_.automatic && below > 0 && above > 0 && below < most_units && above < most_units;
        twos_below_ = std::countr_zero(static_cast<std::uint64_t>(below));
        twos_above_ = std::countr_zero(static_cast<std::uint64_t>(above));
    }

    // Samples that fade are taken back as about what they are by then: how many places each of
    // them needs is not known, and not kept.
    void set_fading() { fading_ = true; }

    std::size_t samples() const { return samples_; }
    // The sum of all absolute losses.
    std::int64_t total() const { return total_; }

    // The losses of a sample that weighs 1, where losses are weights times costs.
    const Ones& ones() const {
        if (ones_bits_ != bits_) {
            ones_ = ones(bits_);
            ones_bits_ = bits_;
        }
        return ones_;
    }

    // Whether so many samples of this size in all can be added in any order, and whatever is
    // removed in between, without a refusal.
    bool has_room(Wide size, int bits, std::size_t samples) const {
        return samples_ + samples <= most_of_a_score && fits(size, bits);
    }
    // The same for one sample in the places in use, nothing negative.
    bool has_plain_room(std::int64_t size) const {
        return samples_ < most_of_a_score && size < most_units - total_;
    }

protected:
    // Whether losses are weights times costs.
    bool labelled() const { return cost_below_ != 0; }

    // What a labelled sample costs that weighs 1; whether it does so where all is whole.
    // Without a branch, because which label comes cannot be predicted.
    Losses losses_of_one(bool label) const {
        const std::int64_t yes = -std::int64_t{label};
        return {yes & cost_below_, ~yes & cost_above_};
    }
    Ones ones(int bits) const {
        Ones made;
        if (measure(std::int64_t{1}, cost_below_, bits, made.below) != Refusal::none ||
            measure(std::int64_t{1}, cost_above_, bits, made.above) != Refusal::none)
            return {};
        return made;
    }

    // The samples that stay have at least the absolute losses of their sums; a removal after
    // which they could not was never added.
    bool leaves_enough(Wide change, Wide size) const {
        return summed_ + change <= Wide{total_} - size;
    }

    bool fits(Wide more, int bits) const {
        const int finer = bits > bits_ ? bits - bits_ : 0;
        return (Wide{total_} << finer) + more < most_units;
    }

    // The binary places that a sample needs whose losses are measured in `bits` places.
    int places_of(std::int64_t below, std::int64_t above, int bits) const {
        if (fading_) return 0;
        const auto spare = [&](std::int64_t loss, int twos) {
            return loss ? std::countr_zero(static_cast<std::uint64_t>(loss)) - twos : bits;
        };
        return bits -
               std::clamp(std::min(spare(below, twos_below_), spare(above, twos_above_)), 0, bits);
    }
    int places_of(const ScoreSums& held, int bits) const {
        return places_of(held.below, held.above, bits);
    }
    template <class Row>
    int places_of(const Row& row, int bits) const {
        return places_of(row.below(), row.above(), bits);
    }

    std::size_t samples_ = 0;
    std::int64_t above_ = 0;  // the loss when everything lies above the cut
    std::int64_t total_ = 0;  // the sum of the absolute losses of all samples
    Wide summed_ = 0;         // the sum of the absolute sums of all scores
    FractionBits places_;     // those that samples need, so that bits_ stays fine enough
    bool fading_ = false;
    int twos_below_ = 0, twos_above_ = 0;  // the factors 2 that losses have from their costs
    std::int64_t cost_below_ = 0, cost_above_ = 0;  // 0 where losses are not weights times costs
    bool whole_ones_ = false;  // a sample that weighs 1 costs its cost, as a whole number of units

private:
    mutable Ones ones_;  // at so many places
    mutable int ones_bits_ = -1;
};

}  // namespace limen
