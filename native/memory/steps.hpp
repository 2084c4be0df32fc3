// SPDX-License-Identifier: Apache-2.0
//
// Memory: time passes, samples come to count and cease to. But for what is planned, nothing here
// fails; what is needed was reserved.

#pragma once

#include "memory/memory.hpp"

namespace limen {

// ---- times ----

template <class Tree>
bool Memory<Tree>::is_young(std::uint32_t at, bool label, const Amount& amount) const {
    return is_negative(label, amount) && clock_.is_immature(entries_[at].moment());
}

// What it will take to let it be this late.
template <class Tree>
MemoryRefusal Memory<Tree>::plan_tick(const Time& moment, Needs& needs, FadeRescale* division) {
    if (!clock_.moves(moment)) return MemoryRefusal::none;
    if (!clock_.resolves(moment)) return MemoryRefusal::far_time;
    if (fading_by_time()) {
        bool far;
        if (placement_.divides_for(moment, far)) needs.copy = true;
        if (far) return MemoryRefusal::far_time;
    }
    if (!clock_.now()) needs.scored += entries_.count(EntryState::waiting);
    clock_.each_mature(entries_, moment, [&](std::uint32_t) { ++needs.entering; });
    clock_.each_mature(entries_, moment, [&](std::uint32_t at) {
        Sample coming = sample(at);
        // Nobody knows yet in which order they come: at most after all the others.
        if (by_number() && !entries_[at].placed) coming.count += needs.entering;
        if (division && fading_by_time())
            division->prepare({0, false, {}, coming.group, 0, moment});
        else if (fading_by_time() && placement_.chain_lags(coming.group, moment))
            needs.copy = true;
        if (!placement_.want(coming, &moment)) needs.copy = true;
    });
    return MemoryRefusal::none;
}

// Let it be this late, unless it is later already. A sample that leaves may be left to the caller,
// who has another one to put in its place: `leaving` becomes the first.
template <class Tree>
void Memory<Tree>::tick(const Time& moment, std::uint32_t* leaving) {
    if (!clock_.moves(moment)) return;
    if (!clock_.resolves(moment))
        return placement_.refuse(MemoryRefusal::far_time);  // only in a copy
    if (fading_by_time()) placement_.advance_fading(moment);
    const bool first = !clock_.now();
    clock_.set(moment);
    for (Place place; clock_.next_to_leave(entries_, place);) {
        if (entries_[place.at].state != EntryState::held)
            entries_[place.at].placed = false;
        else if (leaving && *leaving == Entries::none)
            *leaving = place.at;
        else
            leave(place.at);
    }
    if (first) wait_from(moment);
    settle();
}

// Labels that came before any time wait from the first on.
template <class Tree>
void Memory<Tree>::wait_from(const Time& moment) {
    if (entries_.count(EntryState::waiting) == 0) return;
    for (std::uint32_t at = 0; at < entries_.made(); ++at)
        if (entries_[at].state == EntryState::waiting) {
            entries_.set_time(at, &moment);
            clock_.line_up(entries_, at);
        }
}

// Let negatives count that are old enough, and drop what has run out.
template <class Tree>
void Memory<Tree>::settle() {
    Place place;
    while (clock_.next_mature(entries_, place)) {
        if (entries_[place.at].state != EntryState::young) continue;
        if (fading_by_time()) placement_.divide_groups(entries_[place.at].group);
        enter(place.at);
        settle_one(place.at);
    }
    while (clock_.next_expired(entries_, place)) settle_one(place.at);
    while (clock_.next_final(entries_, place)) settle_one(place.at);
}

// Drop an entry that has run out, or its id when it cannot be corrected any more.
template <class Tree>
void Memory<Tree>::settle_one(std::uint32_t at) {
    const Entry& entry = entries_[at];
    if (entry.state == EntryState::gone || !entry.timed) return;
    const Time time = entry.moment();
    if (entry.state == EntryState::waiting || entry.state == EntryState::open ||
        entry.state == EntryState::empty) {
        if (clock_.has_expired(time)) {
            expired_ += entry.state != EntryState::empty;
            return entries_.drop(at);
        }
    }
    if (entry.state == EntryState::waiting || entry.state == EntryState::open) return;
    if (!clock_.is_final(time)) return;
    // Where samples leave no window, nobody will ask for one again that has no id.
    const bool leaves = entry.state == EntryState::held && (last_n() || last_period());
    if (leaves || entry.state == EntryState::young)
        entries_.forget_id(at);
    else
        entries_.drop(at);
}

// ---- samples ----

template <class Tree>
typename Memory<Tree>::Sample Memory<Tree>::sample(std::uint32_t at) const {
    const Entry& entry = entries_[at];
    Sample made{entry.score,      entry.label,   entries_.amount(at), last_n() ? 0 : entry.group,
                placement_.count, entry.moment()};
    if (by_number() && entry.placed) made.count = static_cast<std::uint64_t>(entries_.place(at));
    return made;
}

template <class Tree>
void Memory<Tree>::set_outcome(std::uint32_t at, bool label, const Amount& losses) {
    Entry& entry = entries_[at];
    entry.labelled = true;
    entry.label = settings_.labelled && label;
    if (!settings_.labelled) entries_.set_amount(at, losses);
}

// Let an entry that has a score have this label.
template <class Tree>
void Memory<Tree>::change(std::uint32_t at, bool label, const Amount& losses) {
    Entry& entry = entries_[at];
    const bool young = is_young(at, label, losses);
    if (entry.state != EntryState::held) {
        set_outcome(at, label, losses);
        if (young)
            entries_.set_state(at, EntryState::young);
        else
            enter(at);
        return;
    }
    placement_.release(sample(at));
    const Wide before = price(at);
    set_outcome(at, label, losses);
    const bool empty = is_empty(entries_.amount(at));
    if (!young) hold_entry(at);
    count_cost(at, (young ? 0 : price(at)) - before);
    if (!young && !empty) return;
    if (last_n()) clock_.leave_place(entries_, at);
    entries_.set_state(at, young ? EntryState::young : EntryState::empty);
}

// Let an entry count from now on, unless it is too old for the window.
template <class Tree>
void Memory<Tree>::enter(std::uint32_t at) {
    const bool empty = is_empty(entries_.amount(at));
    if (!admits(entries_[at].moment())) {
        refused_ += !empty;  // what weighs nothing is left out anyway
        account_.miss(price(at));
        return entries_.drop(at);
    }
    if (last_n() && !empty)
        while (entries_.count(EntryState::held) >= settings_.n) leave_oldest();
    hold_entry(at);
    entries_.set_state(at, empty ? EntryState::empty : EntryState::held);
    if (empty) return;
    count_cost(at, price(at));
    clock_.enter_window(entries_, at);
}

template <class Tree>
bool Memory<Tree>::admits(const Time& time) const {
    if (last_period()) return clock_.in_window(time);
    return placement_.counts_at(time);
}

template <class Tree>
void Memory<Tree>::leave_oldest() {
    std::uint32_t at = 0;
    if (clock_.take_oldest(entries_, at)) leave(at);
}

// Take back a sample that has left the window.
template <class Tree>
void Memory<Tree>::leave(std::uint32_t at) {
    placement_.release(sample(at));
    const Entry& entry = entries_[at];
    if (entry.labelled) {  // else it has no answer
        account_.leave(price(at));
        std::optional<Time>& dropped = clock_.dropped;
        if (last_n() && settings_.horizon && (!dropped || *dropped < entry.moment()))
            dropped = entry.moment();
    }
    entries_.drop(at);
}

template <class Tree>
void Memory<Tree>::hold_entry(std::uint32_t at) {
    placement_.hold(sample(at));
    if (!fading() || entries_[at].placed) return;
    if (by_number()) entries_.set_place(at, static_cast<std::int64_t>(placement_.count));
    ++placement_.count;
    entries_[at].placed = true;
}

// What leaves next is known a call ahead, and its entry some calls. Where it will be exchanged for
// another, its leaf is looked for together with that one's, and only leaves of a large tree are so
// far away that it pays to look before.
template <class Tree>
void Memory<Tree>::warm_next(bool exchanges) const {
    constexpr std::size_t large = std::size_t{1} << 18;
    if (!last_n() && !last_period()) return;
    const Entry* next = clock_.leaves_next(entries_);
    if (!next || (exchanges && placement_.group(0).held->distinct() < large)) return;
    placement_.group(last_n() ? 0 : next->group).held->warm(next->score);
}

}  // namespace limen
