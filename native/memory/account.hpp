// SPDX-License-Identifier: Apache-2.0
//
// What the answers cost that were given, in whole numbers that add up without drift; where samples
// fade, as much of it as they count.

#pragma once

#include <cmath>
#include <cstdint>

#include "core/units.hpp"
#include "core/wide.hpp"
#include "memory/entries.hpp"
#include "memory/terms.hpp"

namespace limen {

class Account {
public:
    Account(const MemorySettings& settings, const Unit& unit)
        : unit_(unit), costs_(settings.account), labelled_(settings.labelled) {}

    // All sums are in units of 2^-sum_bits() (of a fixed unit 2^0), times the whole costs: exact.
    int sum_bits() const { return unit_.automatic ? finest_bits : 0; }
    Wide cost() const { return cost_; }  // of the answers to the samples that are held
    Wide lifetime_cost() const { return lifetime_cost_; }
    // Fading, at a moment that lies so many half-lives after a base.
    template <class Now>
    double faded_cost(Now&& now) const {
        return spent_ * std::pow(2.0, -now(spent_at_));
    }

    // What the answer to an entry costs that has a label.
    Wide price(const Entry& entry, const Amount& amount) const {
        if (!labelled_) return grains(entry.answer ? amount.second : amount.first, amount.bits);
        if (entry.answer == entry.label) return 0;
        return grains(amount.first, amount.bits) *
               (entry.label ? costs_.false_negative : costs_.false_positive);
    }

    // The answer to a sample that is held costs so much more.
    void add(Wide change) {
        cost_ += change;
        lifetime_cost_ += change;
    }
    // The same for one that fades: position(base) is how many half-lives after a base it lies.
    template <class Position>
    void add_faded(Wide change, Position&& position) {
        const double place = position(0.0), latest = place > spent_at_ ? place : spent_at_;
        move_to(latest);
        spent_ += static_cast<double>(change) * std::pow(2.0, position(latest));
        lifetime_cost_ += change;
    }
    // A sample has left the window; one came too late to be held.
    void leave(Wide price) { cost_ -= price; }
    void miss(Wide price) { lifetime_cost_ += price; }

    // Know what another account knows, whose positions count from so many half-lives later.
    void merge(const Account& other, double since) {
        cost_ += other.cost_;
        lifetime_cost_ += other.lifetime_cost_;
        if (other.spent_ == 0) return;
        const double theirs = other.spent_at_ + since;
        const double latest = theirs > spent_at_ ? theirs : spent_at_;
        move_to(latest);
        spent_ += other.spent_ * std::pow(2.0, theirs - latest);
    }

    void put(MemoryColumns& out) const {
        out.cost = cost_;
        out.ever = lifetime_cost_;
        out.spent = spent_;
        out.spent_at = spent_at_;
    }
    bool take(const MemoryColumns& in) {
        cost_ = in.cost;
        lifetime_cost_ = in.ever;
        spent_ = in.spent;
        spent_at_ = in.spent_at;
        return std::isfinite(spent_) && std::isfinite(spent_at_);
    }

private:
    Wide grains(std::int64_t word, std::uint8_t bits) const {
        if (bits != Amount::real) return Wide{word} << (sum_bits() ? finest_bits - bits : 0);
        const double number = std::bit_cast<double>(word);
        const Whole whole = to_units(number, unit_, finest_bits);
        if (whole.rounding != Rounding::too_large) return whole.units;
        return static_cast<Wide>(std::ldexp(number, sum_bits()));
    }
    void move_to(double latest) {
        spent_ *= std::pow(2.0, spent_at_ - latest);
        spent_at_ = latest;
    }

    Unit unit_;
    Costs costs_;
    bool labelled_;
    Wide cost_ = 0, lifetime_cost_ = 0;
    double spent_ = 0, spent_at_ = 0;  // fading: in terms of this position
};

}  // namespace limen
