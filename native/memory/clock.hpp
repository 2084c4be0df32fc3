// SPDX-License-Identifier: Apache-2.0
//
// What time it is, what is too old or too far ahead for it, and which entries come up next: those
// that have waited too long, are old enough to count, can be corrected no more, or leave the
// window.
//
// All is O(1) but for entries that come late. After reserve() nothing fails.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/entries.hpp"
#include "memory/rules.hpp"
#include "memory/terms.hpp"
#include "memory/timeline.hpp"

namespace limen {

class Clock : private MemoryRules {
public:
    explicit Clock(const MemorySettings& settings) : MemoryRules(settings) {}

    std::size_t memory() const {
        return line_.memory() + window_.memory() + open_.memory() + young_.memory() +
               final_.memory();
    }

    // ---- what time it is ----

    const std::optional<Time>& now() const { return now_; }
    void set(const Time& moment) {
        now_ = moment;
        const auto move = [&](const std::optional<Time>& period, Time& edge) {
            if (period) edge = before(moment, *period);  // else it is never()
        };
        if (last_period()) window_edge_ = before(moment, settings_.period);
        move(settings_.time_to_live, ttl_edge_);
        move(settings_.maturity, maturity_edge_);
        move(settings_.correctable, final_edge_);
        move(settings_.horizon, horizon_edge_);
    }
    bool moves(const Time& moment) const { return !now_ || *now_ < moment; }
    bool is_late(const Time& time) const { return now_ && time < *now_; }
    bool too_far_ahead(const Time& moment) const {
        return settings_.max_ahead && now_ && *now_ < before(moment, *settings_.max_ahead);
    }
    // Whether a sample of this time may have been here and be forgotten.
    bool too_old(const Time& moment) const {
        if (!settings_.horizon || !now_) return false;
        return moment <= horizon_edge_ || (dropped && moment <= *dropped);
    }
    // Whether every period that ends at this moment has another beginning: a real number that is
    // far from zero minus a short period is itself.
    bool resolves(const Time& moment) const {
        const auto distinct = [&](const std::optional<Time>& period) {
            return !period || before(moment, *period) < moment;
        };
        return (!last_period() || before(moment, settings_.period) < moment) &&
               distinct(settings_.time_to_live) && distinct(settings_.maturity) &&
               distinct(settings_.correctable) && distinct(settings_.horizon);
    }
    // The time of a score; without one it is the next step.
    bool read(const Time* time, Time& moment, MemoryRefusal& refusal) const {
        if (time) {
            moment = *time;
            refusal = counts == true ? MemoryRefusal::some_time : MemoryRefusal::none;
        } else if (counts == false) {
            refusal = MemoryRefusal::no_time;
        } else if (!now_) {
            moment = Time::whole(1);
        } else if (now_->real) {
            moment = Time::of(now_->number() + 1);
        } else if (__builtin_add_overflow(now_->bits, 1, &moment.bits)) {
            refusal = MemoryRefusal::far_time;
        }
        return refusal == MemoryRefusal::none;
    }

    // ---- how old something is by now ----

    bool in_window(const Time& time) const { return window_edge_ < time; }
    const Time& window_edge() const { return window_edge_; }
    bool is_immature(const Time& time) const { return settings_.maturity && maturity_edge_ < time; }
    bool has_expired(const Time& time) const { return settings_.time_to_live && time <= ttl_edge_; }
    bool is_final(const Time& time) const { return settings_.correctable && time <= final_edge_; }

    // ---- which entries come up ----

    // Make sure that so many scores can line up, and so many samples enter the window.
    void reserve(std::size_t scored, std::size_t entering) {
        if (settings_.time_to_live) open_.reserve(scored);
        if (settings_.maturity) young_.reserve(scored);
        if (settings_.correctable) final_.reserve(scored);
        if (last_period()) window_.reserve(entering);
        if (last_n()) line_.reserve(entering);
    }
    // Let an entry be looked at again when it will be old enough for something.
    void line_up(const Entries& entries, std::uint32_t at) {
        const Time time = entries[at].moment();
        const Place place{at, entries[at].turn};
        const Waits waits = waits_for(entries[at]);
        if (waits.expiry) open_.add(entries, time, place);
        if (waits.maturity) young_.add(entries, time, place);
        if (waits.end) final_.add(entries, time, place);
    }
    // Take out the next entry that has left the window by time, waits no longer, counts from now
    // on, or is final; false where there is none.
    bool next_to_leave(const Entries& entries, Place& place) {
        return last_period() && next(window_, entries, window_edge_, place);
    }
    bool next_expired(const Entries& entries, Place& place) {
        return settings_.time_to_live && next(open_, entries, ttl_edge_, place);
    }
    bool next_mature(const Entries& entries, Place& place) {
        return settings_.maturity && next(young_, entries, maturity_edge_, place);
    }
    bool next_final(const Entries& entries, Place& place) {
        return settings_.correctable && next(final_, entries, final_edge_, place);
    }
    // Every young entry that will be mature at a later moment, in no order.
    template <class Visit>
    void each_mature(const Entries& entries, const Time& moment, Visit&& visit) const {
        if (!settings_.maturity || !entries.count(EntryState::young)) return;
        young_.look(entries, before(moment, *settings_.maturity), [&](std::uint32_t at) {
            if (entries[at].state == EntryState::young) visit(at);
        });
    }
    // All that have waited for maturity, in the order in which they come up.
    std::vector<std::uint32_t> by_maturity(const Entries& entries) const {
        return young_.in_order(entries);
    }

    // ---- the window ----

    LIMEN_INLINE void enter_window(Entries& entries, std::uint32_t at) {
        Entry& entry = entries[at];
        if (last_n()) {
            entry.group = ++places_;
            line_.push({at, places_});
        } else if (last_period() && !entry.placed) {
            window_.add(entries, entry.moment(), {at, entry.turn});
        }
        if (!fading()) entry.placed = true;
    }
    // Without ids, where a sample comes at this time: whether another one leaves for it, which is
    // then the first to be popped. There is room in the window for the one that comes.
    LIMEN_INLINE bool leaves_for(const Entries& entries, const Time* time, std::uint32_t& at) {
        Place place;
        if (last_n()) {
            if (entries.count(EntryState::held) < settings_.n) return false;
            place = line_.front();
        } else {
            if (!last_period() || !moves(*time) || too_far_ahead(*time)) return false;
            const Time edge = before(*time, settings_.period);
            if (!(edge < *time) || !window_.first(entries, edge, place)) return false;
            window_.reserve(1);
        }
        at = place.at;
        return true;
    }
    LIMEN_INLINE void pop_leaving() {
        if (last_n())
            line_.pop();
        else
            window_.pop();
    }
    // last_n: the oldest place, which is taken out; whether an entry still stands there.
    bool take_oldest(const Entries& entries, std::uint32_t& at) {
        const Place place = line_.front();
        line_.pop();
        at = place.at;
        return stands(entries, place);
    }
    // last_n: an entry is held no longer but may enter again. Its place in line is cleared when it
    // is the oldest, or with many others.
    void leave_place(Entries& entries, std::uint32_t at) {
        entries[at].placed = false;
        if (line_.size() > 2 * entries.count(EntryState::held) + 8)
            line_.keep_if([&](const Place& place) { return stands(entries, place); });
    }
    // last_n: those in line, from the oldest on.
    template <class Visit>
    void each_in_line(const Entries& entries, Visit&& visit) const {
        for (std::size_t i = 0; i < line_.size(); ++i)
            if (stands(entries, line_[i])) visit(line_[i].at);
    }
    // The entry that leaves next, unless that is not known; those after it are asked for early.
    const Entry* leaves_next(const Entries& entries) const {
        constexpr std::size_t calls = 4;
        Place place;
        if (last_n()) {
            if (line_.size() < settings_.n || line_.empty()) return nullptr;
            if (line_.size() > calls) __builtin_prefetch(&entries[line_[calls].at]);
            place = line_.front();
        } else {
            if (window_.ahead(calls, place)) __builtin_prefetch(&entries[place.at]);
            if (window_.late(place)) __builtin_prefetch(&entries[place.at]);
            if (!window_.ahead(0, place)) return nullptr;
        }
        const Entry& next = entries[place.at];
        return next.state == EntryState::held ? &next : nullptr;
    }

    void check(const Entries& entries) const {
        const Timeline* lines[4] = {&window_, &open_, &young_, &final_};
        std::size_t in_lines[4] = {}, placed = 0;
        for (std::uint32_t at = 0; at < entries.made(); ++at) {
            const Entry& entry = entries[at];
            if (entry.state == EntryState::gone) continue;
            const bool held = entry.state == EntryState::held;
            require(!held || !last_period() || entry.placed, "a sample stands in no line");
            in_lines[0] += last_period() && entry.placed;
            if (!entry.timed || (held && !entry.labelled)) continue;
            const Waits waits = waits_for(entry);
            in_lines[1] += waits.expiry;
            in_lines[2] += waits.maturity;
            in_lines[3] += waits.end;
        }
        for (int i = 0; i < 4; ++i) {
            lines[i]->check(entries);
            require(lines[i]->in_order(entries).size() == in_lines[i],
                    "an entry stands in no line, or in one too many");
        }
        if (!last_n()) return;
        each_in_line(entries, [&](std::uint32_t) { ++placed; });
        require(placed == entries.count(EntryState::held) && placed <= settings_.n,
                "a sample has no place in line");
    }

    std::optional<bool> counts;   // whether scores come without times
    std::optional<Time> dropped;  // last_n with a horizon: the newest time that left by number

private:
    static void require(bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken clock: ") + otherwise);
    }
    static bool next(Timeline& line, const Entries& entries, const Time& edge, Place& place) {
        if (!line.first(entries, edge, place)) return false;
        line.pop();
        return true;
    }
    // Whether this is where an entry stands in line, and not where it stood.
    static bool stands(const Entries& entries, const Place& place) {
        const Entry& entry = entries[place.at];
        return entry.state == EntryState::held && entry.placed && entry.group == place.turn;
    }
    // What an entry is still too young for.
    struct Waits {
        bool expiry, maturity, end;
    };
    Waits waits_for(const Entry& entry) const {
        const Time time = entry.moment();
        const bool scored = entry.state != EntryState::waiting;
        return {settings_.time_to_live && ttl_edge_ < time, scored && is_immature(time),
                scored && settings_.correctable && final_edge_ < time};
    }

    std::optional<Time> now_;
    // So long before now; without such a period before all times.
    Time window_edge_ = Time::never(), ttl_edge_ = Time::never(), maturity_edge_ = Time::never(),
         final_edge_ = Time::never(), horizon_edge_ = Time::never();
    Ring<Place> line_;  // last_n: samples in the order in which they leave; turns are places
    std::uint32_t places_ = 0;
    Timeline window_;                // last_period: samples by time
    Timeline open_, young_, final_;  // what waits for its time to live, maturity, end of correction
};

}  // namespace limen
