// SPDX-License-Identifier: Apache-2.0
//
// Memory: what the answers cost that were given, in whole numbers that add up without drift.

#pragma once

#include "memory/memory.hpp"

namespace limen {

template <class Tree>
Wide Memory<Tree>::grains(std::int64_t word, std::uint8_t bits) const {
    if (bits != Amount::real) return Wide{word} << (sum_bits() ? finest_bits - bits : 0);
    const Unit& unit = group(0).held->unit();
    const Whole whole = to_units(real(word), unit, finest_bits);
    if (whole.rounding != Rounding::too_large) return whole.units;
    return static_cast<Wide>(std::ldexp(real(word), sum_bits()));
}

// What the answer to an entry costs that has a label.
template <class Tree>
Wide Memory<Tree>::price(std::uint32_t at) const {
    const Entry& entry = entries_[at];
    const Amount amount = entries_.amount(at);
    if (!settings_.labelled)
        return grains(entry.answer ? amount.second : amount.first, amount.bits);
    if (entry.answer == entry.label) return 0;
    const Costs& costs = settings_.account;
    return grains(amount.first, amount.bits) *
           (entry.label ? costs.false_negative : costs.false_positive);
}

// Count what an answer costs as much as its sample counts.
template <class Tree>
void Memory<Tree>::spend(std::uint32_t at, Wide change) {
    const Sample of = sample(at);
    const double place = position(of, 0);
    const double latest = place > spent_at_ ? place : spent_at_;
    spent_ = spent_ * std::pow(2.0, spent_at_ - latest) +
             static_cast<double>(change) * std::pow(2.0, position(of, latest));
    spent_at_ = latest;
}

// Let the answer to an entry cost so much more.
template <class Tree>
void Memory<Tree>::count_cost(std::uint32_t at, Wide change) {
    if (settings_.keep == Keep::fading)
        spend(at, change);
    else
        cost_ += change;
    lifetime_cost_ += change;
}

template <class Tree>
Wide Memory<Tree>::loss(std::uint32_t of) const {
    const HeldSamples<Tree>& held = *group(of).held;
    const int finer = sum_bits() ? finest_bits - held.bits() : 0;
    if constexpr (std::is_same_v<Tree, HullTree>) {
        const Costs& costs = settings_.account;
        const HullCut cut = held.tree().best(costs.false_positive, costs.false_negative);
        return (Wide{costs.false_positive} * (held.tree().totals().above - cut.under.above) +
                Wide{costs.false_negative} * cut.under.below)
               << finer;
    } else {
        return Wide{held.loss(held.best())} << finer;
    }
}

template <class Tree>
double Memory<Tree>::threshold(std::uint32_t of) const {
    const HeldSamples<Tree>& held = *group(of).held;
    if constexpr (std::is_same_v<Tree, HullTree>)
        return threshold_of(
            held.tree().best(settings_.account.false_positive, settings_.account.false_negative));
    else
        return threshold_of(held.best());
}

template <class Tree>
double Memory<Tree>::scale(std::uint32_t of) const {
    const std::optional<std::int64_t>& base = group(of).base;
    return base ? std::pow(2.0, now(static_cast<double>(*base))) : 1.0;
}

template <class Tree>
double Memory<Tree>::faded_cost() const {
    return spent_ * std::pow(2.0, -now(spent_at_));
}

}  // namespace limen
