// SPDX-License-Identifier: Apache-2.0
//
// Memory: time passes, samples come to count and cease to. But for what is planned, nothing here
// fails; what is needed was reserved.

#pragma once

#include "memory/memory.hpp"

namespace limen {

// ---- times ----

// The time of a score; without one it is the next step.
template <class Tree>
bool Memory<Tree>::has_moment(const Time* time, Time& moment, MemoryRefusal& refusal) const {
    if (time) {
        moment = *time;
        refusal = counts_ == true ? MemoryRefusal::some_time : MemoryRefusal::none;
    } else if (counts_ == false) {
        refusal = MemoryRefusal::no_time;
    } else if (!clock_) {
        moment = Time::whole(1);
    } else if (clock_->real) {
        moment = Time::of(clock_->number() + 1);
    } else if (__builtin_add_overflow(clock_->bits, 1, &moment.bits)) {
        refusal = MemoryRefusal::far_time;
    }
    return refusal == MemoryRefusal::none;
}

// Whether every period that ends at this moment has another beginning: a real number that is far
// from zero minus a short period is itself.
template <class Tree>
bool Memory<Tree>::resolves_periods(const Time& moment) const {
    const auto distinct = [&](const std::optional<Time>& period) {
        return !period || before(moment, *period) < moment;
    };
    return (!last_period() || before(moment, settings_.period) < moment) &&
           distinct(settings_.time_to_live) && distinct(settings_.maturity) &&
           distinct(settings_.correctable) && distinct(settings_.horizon);
}

template <class Tree>
bool Memory<Tree>::too_far_ahead(const Time& moment) const {
    return settings_.max_ahead && clock_ && *clock_ < before(moment, *settings_.max_ahead);
}

// Whether a sample of this time may have been here and be forgotten.
template <class Tree>
bool Memory<Tree>::too_old(const Time& moment) const {
    if (!settings_.horizon || !clock_) return false;
    return moment <= horizon_edge_ || (dropped_ && moment <= *dropped_);
}

template <class Tree>
bool Memory<Tree>::is_young(std::uint32_t at, bool label, const Amount& amount) const {
    return is_negative(label, amount) &&
           younger(entries_[at].moment(), settings_.maturity, maturity_edge_);
}

template <class Tree>
void Memory<Tree>::set_clock(const Time& moment) {
    clock_ = moment;
    const auto move = [&](const std::optional<Time>& period, Time& edge) {
        if (period) edge = before(moment, *period);  // else it is never()
    };
    if (last_period()) window_edge_ = before(moment, settings_.period);
    move(settings_.time_to_live, ttl_edge_);
    move(settings_.maturity, maturity_edge_);
    move(settings_.correctable, final_edge_);
    move(settings_.horizon, horizon_edge_);
}

// What it will take to let it be this late.
template <class Tree>
MemoryRefusal Memory<Tree>::plan_tick(const Time& moment, Needs& needs, FadeRescale* division) {
    if (!moves(moment)) return MemoryRefusal::none;
    if (!resolves_periods(moment)) return MemoryRefusal::far_time;
    if (fading_by_time()) {
        bool far;
        if (divides_for(moment, far)) needs.copy = true;
        if (far) return MemoryRefusal::far_time;
    }
    if (!clock_) needs.scored += entries_.count(EntryState::waiting);
    if (settings_.maturity && entries_.count(EntryState::young)) {
        const Time edge = before(moment, *settings_.maturity);
        const auto each = [&](auto&& visit) {
            young_.look(entries_, edge, [&](std::uint32_t at) {
                if (entries_[at].state == EntryState::young) visit(at);
            });
        };
        each([&](std::uint32_t) { ++needs.entering; });
        each([&](std::uint32_t at) {
            Sample coming = sample(at);
            // Nobody knows yet in which order they come: at most after all the others.
            if (by_number() && !entries_[at].placed) coming.count += needs.entering;
            if (division && fading_by_time())
                division->prepare({0, false, {}, coming.group, 0, moment});
            else if (fading_by_time() && chain_lags(coming.group, moment))
                needs.copy = true;
            if (!want(coming, &moment)) needs.copy = true;
        });
    }
    return MemoryRefusal::none;
}

template <class Tree>
void Memory<Tree>::reserve(const Needs& needs) {
    entries_.reserve(needs.entries, needs.ids);
    if (settings_.time_to_live) open_.reserve(needs.scored);
    if (settings_.maturity) young_.reserve(needs.scored);
    if (settings_.correctable) final_.reserve(needs.scored);
    if (last_period()) window_.reserve(needs.entering);
    if (last_n()) line_.reserve(needs.entering);
}

// Let it be this late, unless it is later already. A sample that leaves may be left to the caller,
// who has another one to put in its place: `leaving` becomes the first.
template <class Tree>
void Memory<Tree>::tick(const Time& moment, std::uint32_t* leaving) {
    if (!moves(moment)) return;
    if (!resolves_periods(moment)) return refuse(MemoryRefusal::far_time);  // only in a copy
    if (fading_by_time()) advance_fading(moment);
    const bool first = !clock_;
    set_clock(moment);
    if (last_period()) {
        Place place;
        while (window_.first(entries_, window_edge_, place)) {
            window_.pop();
            if (entries_[place.at].state == EntryState::held && leaving &&
                *leaving == Entries::none)
                *leaving = place.at;
            else if (entries_[place.at].state == EntryState::held)
                leave(place.at);
            else
                entries_[place.at].placed = false;
        }
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
            line_up(at);
        }
}

// Let negatives count that are old enough, and drop what has run out.
template <class Tree>
void Memory<Tree>::settle() {
    Place place;
    if (settings_.maturity)
        while (young_.first(entries_, maturity_edge_, place)) {
            young_.pop();
            if (entries_[place.at].state != EntryState::young) continue;
            if (fading_by_time()) divide_groups(entries_[place.at].group);
            enter(place.at);
            settle_one(place.at);
        }
    if (settings_.time_to_live)
        while (open_.first(entries_, ttl_edge_, place)) {
            open_.pop();
            settle_one(place.at);
        }
    if (settings_.correctable)
        while (final_.first(entries_, final_edge_, place)) {
            final_.pop();
            settle_one(place.at);
        }
}

// Drop an entry that has run out, or its id when it cannot be corrected any more.
template <class Tree>
void Memory<Tree>::settle_one(std::uint32_t at) {
    const Entry& entry = entries_[at];
    if (entry.state == EntryState::gone || !entry.timed) return;
    const Time time = entry.moment();
    if (entry.state == EntryState::waiting || entry.state == EntryState::open ||
        entry.state == EntryState::empty) {
        if (settings_.time_to_live && time <= ttl_edge_) {
            expired_ += entry.state != EntryState::empty;
            return entries_.drop(at);
        }
    }
    if (entry.state == EntryState::waiting || entry.state == EntryState::open) return;
    if (!settings_.correctable || !(time <= final_edge_)) return;
    // Where samples leave no window, nobody will ask for one again that has no id.
    const bool leaves = entry.state == EntryState::held && (last_n() || last_period());
    if (leaves || entry.state == EntryState::young)
        entries_.forget_id(at);
    else
        entries_.drop(at);
}

// Let an entry be looked at again when it will be old enough for something.
template <class Tree>
void Memory<Tree>::line_up(std::uint32_t at) {
    const Time time = entries_[at].moment();
    const Place place{at, entries_[at].turn};
    const bool scored = entries_[at].state != EntryState::waiting;
    if (younger(time, settings_.time_to_live, ttl_edge_)) open_.add(entries_, time, place);
    if (scored && younger(time, settings_.maturity, maturity_edge_))
        young_.add(entries_, time, place);
    if (scored && younger(time, settings_.correctable, final_edge_))
        final_.add(entries_, time, place);
}

// ---- samples ----

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
    release_entry(at);
    const Wide before = price(at);
    set_outcome(at, label, losses);
    const bool empty = is_empty(entries_.amount(at));
    if (!young) hold_entry(at);
    count_cost(at, (young ? 0 : price(at)) - before);
    if (!young && !empty) return;
    leave_place(at);
    entries_.set_state(at, young ? EntryState::young : EntryState::empty);
}

// Let an entry count from now on, unless it is too old for the window.
template <class Tree>
void Memory<Tree>::enter(std::uint32_t at) {
    const bool empty = is_empty(entries_.amount(at));
    if (!admits(entries_[at].moment())) {
        refused_ += !empty;  // what weighs nothing is left out anyway
        lifetime_cost_ += price(at);
        return entries_.drop(at);
    }
    if (last_n() && !empty)
        while (entries_.count(EntryState::held) >= settings_.n) leave_oldest();
    hold_entry(at);
    entries_.set_state(at, empty ? EntryState::empty : EntryState::held);
    if (empty) return;
    count_cost(at, price(at));
    enter_line(at);
}

template <class Tree>
bool Memory<Tree>::admits(const Time& time) const {
    if (last_period()) return window_edge_ < time;
    const Group& in = group(0);
    if (!fading_by_time() || !in.base) return true;
    Sample one{0, false, normal({}), 0, 0, time};
    double numbers[2];
    return scaled(one, position(one, static_cast<double>(*in.base)), numbers);
}

template <class Tree>
LIMEN_INLINE void Memory<Tree>::enter_line(std::uint32_t at) {
    Entry& entry = entries_[at];
    if (last_n()) {
        entry.group = ++places_;
        line_.push({at, places_});
    } else if (last_period() && !entry.placed) {
        window_.add(entries_, entry.moment(), {at, entry.turn});
    }
    if (!fading()) entry.placed = true;
}

// Whether this is where an entry stands, and not where it stood.
template <class Tree>
bool Memory<Tree>::in_line(const Place& place) const {
    const Entry& entry = entries_[place.at];
    return entry.state == EntryState::held && entry.placed && entry.group == place.turn;
}

template <class Tree>
void Memory<Tree>::leave_oldest() {
    const Place place = line_.front();
    line_.pop();
    if (in_line(place)) leave(place.at);
}

// Take back a sample that has left the window.
template <class Tree>
void Memory<Tree>::leave(std::uint32_t at) {
    release_entry(at);
    const Entry& entry = entries_[at];
    if (entry.labelled) {  // else it has no answer
        cost_ -= price(at);
        if (last_n() && settings_.horizon && (!dropped_ || *dropped_ < entry.moment()))
            dropped_ = entry.moment();
    }
    entries_.drop(at);
}

// An entry is held no longer but may enter again. Over last_period its time is the same then.
template <class Tree>
void Memory<Tree>::leave_place(std::uint32_t at) {
    if (!last_n()) return;
    entries_[at].placed = false;
    // Its place in line is cleared when it is the oldest, or with many others.
    if (line_.size() > 2 * entries_.count(EntryState::held) + 8)
        line_.keep_if([&](const Place& place) { return in_line(place); });
}

template <class Tree>
void Memory<Tree>::hold_entry(std::uint32_t at) {
    if (!fading()) return hold(sample(at));
    hold_faded(sample(at));
    if (entries_[at].placed) return;
    if (by_number()) entries_.set_place(at, static_cast<std::int64_t>(count_));
    ++count_;
    entries_[at].placed = true;
}

template <class Tree>
void Memory<Tree>::release_entry(std::uint32_t at) {
    if (fading())
        release_faded(sample(at));
    else
        release(sample(at));
}

// What leaves next is known a call ahead, and its entry some calls. Where it will be exchanged for
// another, its leaf is looked for together with that one's, and only leaves of a large tree are so
// far away that it pays to look before.
template <class Tree>
void Memory<Tree>::warm_next(bool exchanges) const {
    constexpr std::size_t calls = 4, large = std::size_t{1} << 18;
    Place place;
    if (last_n()) {
        if (line_.size() < settings_.n || line_.empty()) return;
        if (line_.size() > calls) __builtin_prefetch(&entries_[line_[calls].at]);
        place = line_.front();
    } else {
        if (!last_period()) return;
        if (window_.ahead(calls, place)) __builtin_prefetch(&entries_[place.at]);
        if (window_.late(place)) __builtin_prefetch(&entries_[place.at]);
        if (!window_.ahead(0, place)) return;
    }
    if (exchanges && group(0).held->distinct() < large) return;
    const Entry& next = entries_[place.at];
    if (next.state == EntryState::held) group(last_n() ? 0 : next.group).held->warm(next.score);
}

}  // namespace limen
