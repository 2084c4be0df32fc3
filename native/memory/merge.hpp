// SPDX-License-Identifier: Apache-2.0
//
// Memory: know what another one knows too, as if one had seen all of it by the later clock.

#pragma once

#include "memory/memory.hpp"

namespace limen {

template <class Tree>
bool Memory<Tree>::is_like(const Memory& other, const std::vector<std::uint32_t>& into) const {
    const MemorySettings &a = settings_, &b = other.settings_;
    const Unit &x = placement_.group(0).held->unit(), &y = other.placement_.group(0).held->unit();
    const auto same = [](const Costs& c, const Costs& d) {
        return c.false_positive == d.false_positive && c.false_negative == d.false_negative;
    };
    if (into.size() != other.placement_.groups().size() || into[0] != 0) return false;
    for (std::size_t i = 1; i < into.size(); ++i)
        if (into[i] >= placement_.groups().size() ||
            placement_.groups()[into[i]].inside != into[other.placement_.groups()[i].inside])
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
        for (std::uint32_t of = 0; of < placement_.groups().size(); ++of) into.push_back(of);
    if (!is_like(other, into)) return refused(MemoryRefusal::not_alike);
    // Without times the order of the samples is unknown.
    const bool steps =
        (clock_.counts == true && other.newest()) || (other.clock_.counts == true && newest());
    if (last_n() || by_number() || steps) return refused(MemoryRefusal::not_merged);
    for (std::uint32_t at = 0; at < other.entries_.made(); ++at) {
        const Entry& entry = other.entries_[at];
        if (entry.state != EntryState::gone && entry.named() && contains(entry.id()))
            return refused(MemoryRefusal::same_id);
    }
    Copy ours(*this), theirs(other);
    std::optional<Time> latest = newest();
    if (other.newest() && clock_.moves(*other.newest())) latest = other.newest();
    if (latest) {
        ours.memory.catch_up(*latest);
        theirs.memory.catch_up(*latest);
    }
    ours.memory.take_over(theirs.memory, into);
    for (const Memory* memory : {&ours.memory, &theirs.memory})
        if (memory->placement_.refusal != MemoryRefusal::none)
            return refused(memory->placement_.refusal);
    swap(ours.memory);
    return {};
}

// Let it be this late, and weights of all groups be divided.
template <class Tree>
void Memory<Tree>::catch_up(const Time& moment) {
    Needs needs;
    const MemoryRefusal refusal = plan_tick(moment, needs);
    if (refusal != MemoryRefusal::none) return placement_.refuse(refusal);
    reserve(needs);
    tick(moment);
    placement_.divide_all();
}

// Both clocks show the same.
template <class Tree>
void Memory<Tree>::take_over(const Memory& other, const std::vector<std::uint32_t>& into) {
    for (std::uint32_t of = 0; of < into.size(); ++of)
        placement_.refuse(placement_.group(into[of]).held->merge(
            {placement_.part_of(other.placement_, of, into[of])}));
    const std::vector<std::uint32_t> order = other.ordered(into);
    Needs needs;
    needs.entries = needs.ids = needs.scored = needs.entering = order.size();
    if (entries_.full(needs.entries)) return placement_.refuse(MemoryRefusal::too_many);
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
        if (entry.placed && last_period()) clock_.enter_window(entries_, at);
        if (fading()) made.placed = entry.placed;
        if (entry.timed && (entry.labelled || entry.state == EntryState::open))
            clock_.line_up(entries_, at);
    }
    take_sums(other);
}

template <class Tree>
void Memory<Tree>::take_sums(const Memory& other) {
    if (!clock_.counts) clock_.counts = other.clock_.counts;
    expired_ += other.expired_;
    refused_ += other.refused_;
    placement_.count += other.placement_.count;
    const std::optional<Time>& theirs = other.placement_.origin;
    const double since = theirs ? placement_.position({0, false, {}, 0, 0, *theirs}, 0) : 0;
    account_.merge(other.account_, since);
}

}  // namespace limen
