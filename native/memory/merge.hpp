// SPDX-License-Identifier: Apache-2.0
//
// Memory: know what another one knows too, as if one had seen all of it by the later clock.

#pragma once

#include "memory/memory.hpp"

namespace limen {

template <class Tree>
bool Memory<Tree>::is_like(const Memory& other, const std::vector<std::uint32_t>& into) const {
    const MemorySettings &a = settings_, &b = other.settings_;
    const Unit &x = group(0).held->unit(), &y = other.group(0).held->unit();
    const auto same = [](const Costs& c, const Costs& d) {
        return c.false_positive == d.false_positive && c.false_negative == d.false_negative;
    };
    if (into.size() != other.groups_.size() || into[0] != 0) return false;
    for (std::size_t i = 1; i < into.size(); ++i)
        if (into[i] >= groups_.size() || groups_[into[i]].inside != into[other.groups_[i].inside])
            return false;
    return a.keep == b.keep && a.at_least == b.at_least && a.n == b.n && a.period == b.period &&
           a.by_time == b.by_time && a.labelled == b.labelled && same(a.costs, b.costs) &&
           same(a.account, b.account) && a.time_to_live == b.time_to_live &&
           a.maturity == b.maturity && a.correctable == b.correctable && a.horizon == b.horizon &&
           a.max_ahead == b.max_ahead && x.automatic == y.automatic && x.numerator == y.numerator &&
           x.denominator == y.denominator;
}

template <class Tree>
Result Memory<Tree>::merge(const Memory& other, std::vector<std::uint32_t> into) {
    if (into.empty())
        for (std::uint32_t of = 0; of < groups_.size(); ++of) into.push_back(of);
    if (!is_like(other, into)) return refused(MemoryRefusal::not_alike);
    // Without times the order of the samples is unknown.
    const bool steps = (counts_ == true && other.clock_) || (other.counts_ == true && clock_);
    if (last_n() || by_number() || steps) return refused(MemoryRefusal::not_merged);
    for (std::uint32_t at = 0; at < other.entries_.made(); ++at) {
        const Entry& entry = other.entries_[at];
        if (entry.state != EntryState::gone && entry.named() && contains(entry.id()))
            return refused(MemoryRefusal::same_id);
    }
    Copy ours(*this), theirs(other);
    const std::optional<Time> latest = !clock_                                   ? other.clock_
                                       : other.clock_ && *clock_ < *other.clock_ ? other.clock_
                                                                                 : clock_;
    if (latest) {
        ours.memory.catch_up(*latest);
        theirs.memory.catch_up(*latest);
    }
    ours.memory.take_over(theirs.memory, into);
    for (const Memory* memory : {&ours.memory, &theirs.memory})
        if (memory->refusal_ != MemoryRefusal::none) return refused(memory->refusal_);
    swap(ours.memory);
    return {};
}

// Let it be this late, and weights of all groups be divided.
template <class Tree>
void Memory<Tree>::catch_up(const Time& moment) {
    Needs needs;
    const MemoryRefusal refusal = plan_tick(moment, needs);
    if (refusal != MemoryRefusal::none) return refuse(refusal);
    reserve(needs);
    tick(moment);
    for (Group& in : groups_) {
        if (!fading()) break;
        if (!in.base) in.base = group(0).base;
        std::int64_t bits;
        const int divide = HalfLives::to_divide(now(static_cast<double>(*in.base)), bits);
        in.held->fade(divide);
        *in.base += bits;
    }
}

// What a group of another memory holds, in our terms.
template <class Tree>
typename HeldSamples<Tree>::Part Memory<Tree>::part_of(const Memory& other, std::uint32_t of,
                                                       std::uint32_t into) const {
    auto part = other.group(of).held->part(fading());
    if (!fading() || part.samples == 0) return part;
    double ahead;
    lives_.position(0, *other.origin_, origin_, 0, ahead);
    ahead += static_cast<double>(*other.group(of).base - *group(into).base);
    const double factor = std::pow(2.0, ahead + sum_bits() - part.bits);
    if constexpr (bounded) {
        return part.times(factor, sum_bits());
    } else {
        std::vector<ScoreSums> all;
        all.swap(part.held);
        std::vector<Squares> squares;
        squares.swap(part.squares);
        const auto faded = [=](Wide sum) {
            return static_cast<Wide>(static_cast<double>(sum) * factor * factor + 0.5);
        };
        part = {};
        part.bits = sum_bits();
        for (std::size_t i = 0; i < all.size(); ++i) {
            ScoreSums held = all[i];
            held.below = std::llround(static_cast<double>(held.below) * factor);
            held.above = std::llround(static_cast<double>(held.above) * factor);
            if (held.below == 0 && held.above == 0) continue;
            part.samples += held.count;
            part.total += std::llabs(held.below) + std::llabs(held.above);
            part.held.push_back(held);
            if (!squares.empty())
                part.squares.push_back({faded(squares[i].below), faded(squares[i].above)});
        }
        return part;
    }
}

// Both clocks show the same.
template <class Tree>
void Memory<Tree>::take_over(const Memory& other, const std::vector<std::uint32_t>& into) {
    for (std::uint32_t of = 0; of < into.size(); ++of)
        refuse(group(into[of]).held->merge({part_of(other, of, into[of])}));
    const std::vector<std::uint32_t> order = other.ordered(into);
    Needs needs;
    needs.entries = needs.ids = needs.scored = needs.entering = order.size();
    if (entries_.full(needs.entries)) return refuse(MemoryRefusal::too_many);
    for (const std::uint32_t from : order) {
        entries_.reserve_amount(other.entries_.amount(from));
        if (other.entries_[from].as_of) entries_.reserve_as_of();
    }
    reserve(needs);
    for (const std::uint32_t from : order) {
        const Entry& entry = other.entries_[from];
        const Id id = entry.id();
        NameCopy name(id);
        const std::uint32_t at =
            entries_.make(entry.state, entry.named() ? &id : nullptr,
                          entry.named() ? entries_.hash_of(id) : 0, name.release());
        Entry& made = entries_[at];
        made.score = entry.score;
        made.answer = entry.answer;
        made.label = entry.label;
        made.labelled = entry.labelled;
        made.group = into[entry.group];
        const Time time = entry.moment();
        entries_.set_time(at, entry.timed ? &time : nullptr);
        entries_.set_amount(at, other.entries_.amount(from));
        if (entry.as_of) {
            const Time as_of = other.entries_.as_of(from);
            entries_.set_as_of(at, &as_of);
        }
        if (entry.placed && last_period()) enter_line(at);
        if (fading()) made.placed = entry.placed;
        if (entry.timed && (entry.labelled || entry.state == EntryState::open)) line_up(at);
    }
    take_sums(other);
}

template <class Tree>
void Memory<Tree>::take_sums(const Memory& other) {
    if (!counts_) counts_ = other.counts_;
    expired_ += other.expired_;
    refused_ += other.refused_;
    count_ += other.count_;
    cost_ += other.cost_;
    lifetime_cost_ += other.lifetime_cost_;
    if (!fading() || other.spent_ == 0) return;
    double since;
    lives_.position(0, *other.origin_, origin_, 0, since);
    const double theirs = other.spent_at_ + since;
    const double latest = theirs > spent_at_ ? theirs : spent_at_;
    spent_ =
        spent_ * std::pow(2.0, spent_at_ - latest) + other.spent_ * std::pow(2.0, theirs - latest);
    spent_at_ = latest;
}

}  // namespace limen
