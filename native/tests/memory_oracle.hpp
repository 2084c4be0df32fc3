// SPDX-License-Identifier: Apache-2.0
//
// What a memory should do, written to be read instead of to be fast: a list of records, of which
// every step looks at all. The tests of memory.hpp walk with it side by side. Not for fading.

#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "memory/memory.hpp"

namespace limen::testing {

// A tree of small leaves and nodes, for samples of these costs.
template <class Tree>
HeldSamples<Tree> small_tree(const Unit& unit, const Costs& costs) {
    if constexpr (std::is_same_v<Tree, HullTree>) {
        HeldSamples<Tree> made(unit, 4);
        made.set_costs(costs.false_negative, costs.false_positive);
        return made;
    } else {
        HeldSamples<Tree> made(unit, 4, 4);
        made.set_costs(costs.false_negative, costs.false_positive);
        return made;
    }
}

// The same for a memory: losses that are not weights times costs have no costs.
template <class Tree>
HeldSamples<Tree> small_tree_for(const Unit& unit, const MemorySettings& settings) {
    if (settings.labelled) return small_tree<Tree>(unit, settings.costs);
    if constexpr (std::is_same_v<Tree, HullTree>)
        return HeldSamples<Tree>(unit, 4);
    else
        return HeldSamples<Tree>(unit, 4, 4);
}

// Numbers, short and long bytes; the same letters in two kinds are two ids.
inline std::string name_of(int number) {
    return number % 3 == 0   ? std::to_string(number)
           : number % 3 == 1 ? "s" + std::to_string(number / 6)
                             : "a rather long name of an id " + std::to_string(number / 6);
}

inline Id id_of(int number, const std::string& name) {
    if (number % 3 == 0) return Id::of(number);
    return Id::of(static_cast<std::uint8_t>(1 + number / 3 % 2), name.data(), name.size());
}

template <class Tree>
class MemoryOracle {
public:
    struct Record {
        std::string id;
        bool known = true, labelled = false, label = false, timed = false, sample = false;
        bool has_as_of = false;
        EntryState state = EntryState::waiting;
        double score = 0;
        int answer = 0;
        Amount amount{};
        Time time{}, as_of{};
        std::uint32_t group = 0;
        int turn = 0, place = 0;
    };

    MemoryOracle(const MemorySettings& settings, const Unit& unit,
                 std::vector<std::uint32_t> inside = {~0u})
        : settings(settings), unit(unit), inside(std::move(inside)) {}

    // ---- calls ----

    Result update(double score, bool label, const Amount& amount, const Time* time) {
        if (time && clock) {
            const bool ahead = settings.max_ahead && *clock < before(*time, *settings.max_ahead);
            if (ahead || (settings.keep == Keep::last_period && *time <= edge(settings.period))) {
                refused += !is_empty(amount);
                return {.yes = false};
            }
        }
        if (time) tick(*time);
        if (is_empty(amount)) return {};
        Record made;
        made.known = false;
        made.sample = true;
        made.score = score + 0.0;
        made.label = label;
        made.amount = amount;
        made.timed = time != nullptr;
        if (time) made.time = *time;
        made.state = EntryState::held;
        made.place = ++places;
        records.push_back(made);
        shorten();
        sweep();
        return {};
    }

    Result score(const std::string& id, double score, const Amount& weight, const Time* time,
                 int answer, std::uint32_t group) {
        Record* found = find(id);
        if (found && found->state != EntryState::waiting) {
            const bool same = found->score == score && found->group == group &&
                              (!settings.labelled || found->amount == weight);
            if (same) return {.answer = found->answer};
            return {.refusal = MemoryRefusal::other_score};
        }
        if (time && counts == true) return {.refusal = MemoryRefusal::some_time};
        if (!time && counts == false) return {.refusal = MemoryRefusal::no_time};
        const Time moment = time ? *time : clock ? step(*clock) : Time::whole(1);
        const bool ahead =
            clock && settings.max_ahead && *clock < before(moment, *settings.max_ahead);
        const bool old = clock && settings.horizon &&
                         (moment <= edge(*settings.horizon) || (dropped && moment <= *dropped));
        if (!ahead && !old) {
            tick(moment);
            counts = time == nullptr;
        }
        const int given = answer < 0 ? score >= threshold(group) : answer;
        if (ahead || old) {
            ++refused;
            return {.yes = false, .answer = given};
        }
        found = find(id);
        const bool waited = found;
        if (!found) {
            records.push_back({});
            found = &records.back();
            found->id = id;
        }
        Record& record = *found;
        record.score = score;
        record.time = moment;
        record.timed = true;
        record.answer = given;
        record.group = group;
        record.turn = ++turns;
        if (settings.labelled) record.amount = weight;
        if (waited)
            change(record, record.label, record.amount);
        else
            record.state = EntryState::open;
        settle_one(record);
        sweep();
        return {.answer = given};
    }

    Result label(const std::string& id, bool label, const Amount& losses, const Time* as_of) {
        Record* found = find(id);
        if (!found) {
            records.push_back({});
            found = &records.back();
            found->id = id;
            found->timed = clock.has_value();
            if (clock) found->time = *clock;
        }
        Record& record = *found;
        const bool scored = record.state != EntryState::waiting;
        if (as_of && record.has_as_of && *as_of < record.as_of) return {.yes = scored};
        record.has_as_of = as_of != nullptr;
        if (as_of) record.as_of = *as_of;
        const bool same = record.labelled &&
                          (settings.labelled ? record.label == label : record.amount == losses);
        if (!scored) {
            set_outcome(record, label, losses);
        } else if (!same) {
            change(record, label, losses);
            settle_one(record);
            sweep();
        }
        return {.yes = scored};
    }

    bool forget(const std::string& id) {
        Record* found = find(id);
        if (!found) return false;
        if (found->state == EntryState::held) ever -= price(*found);
        found->state = EntryState::gone;
        sweep();
        return true;
    }

    void tick(const Time& moment) {
        if (clock && moment <= *clock) return;
        const bool first = !clock;
        clock = moment;
        if (settings.keep == Keep::last_period)
            for (Record& record : records)
                if (record.state == EntryState::held && record.time <= edge(settings.period))
                    record.state = EntryState::gone;
        if (first)
            for (Record& record : records)
                if (record.state == EntryState::waiting) record.time = moment, record.timed = true;
        std::vector<Record*> ripe;
        for (Record& record : records)
            if (record.state == EntryState::young && record.time <= edge(*settings.maturity))
                ripe.push_back(&record);
        std::sort(ripe.begin(), ripe.end(), [](const Record* a, const Record* b) {
            return a->time == b->time ? a->turn < b->turn : a->time < b->time;
        });
        for (Record* record : ripe) {
            enter(*record);
            settle_one(*record);
        }
        for (Record& record : records) settle_one(record);
        sweep();
    }

    // ---- looks ----

    Wide cost() const {
        Wide sum = 0;
        for (const Record& record : records)
            if (record.state == EntryState::held && !record.sample) sum += price(record);
        return sum;
    }
    std::size_t ids() const {
        return static_cast<std::size_t>(
            std::count_if(records.begin(), records.end(), [](const Record& r) { return r.known; }));
    }
    bool contains(const std::string& id) const {
        return std::any_of(records.begin(), records.end(),
                           [&](const Record& r) { return r.known && r.id == id; });
    }
    // What the tree of a group should hold, added from scratch.
    HeldSamples<Tree> held(std::uint32_t group) const {
        HeldSamples<Tree> made(unit);
        if (settings.labelled)
            made.set_costs(settings.costs.false_negative, settings.costs.false_positive);
        for (const Record& record : records) {
            std::uint32_t in = record.group;
            while (in != ~0u && in != group) in = inside[in];
            if (record.state != EntryState::held || in != group) continue;
            const int bits = std::max(made.bits(), int{record.amount.bits});
            const std::int64_t factor = std::int64_t{1} << (bits - record.amount.bits);
            Losses losses{record.amount.first * factor, record.amount.second * factor};
            if (settings.labelled)
                losses = record.label ? Losses{losses.below * settings.costs.false_negative, 0}
                                      : Losses{0, losses.below * settings.costs.false_positive};
            made.add(record.score, losses, bits, settings.labelled);
        }
        return made;
    }
    double threshold(std::uint32_t group) const {
        const HeldSamples<Tree> now = held(group);
        if constexpr (std::is_same_v<Tree, HullTree>)
            return threshold_of(
                now.tree().best(settings.account.false_positive, settings.account.false_negative));
        else
            return threshold_of(now.best());
    }

    MemorySettings settings;
    Unit unit;
    std::vector<std::uint32_t> inside;
    std::vector<Record> records;
    std::optional<Time> clock, dropped;
    std::optional<bool> counts;
    std::uint64_t expired = 0, refused = 0;
    Wide ever = 0;

private:
    static Time step(const Time& time) {
        return time.real ? Time::of(time.number() + 1) : Time::whole(time.bits + 1);
    }
    Time edge(const Time& period) const { return before(*clock, period); }
    bool is_empty(const Amount& amount) const {
        return amount.first == 0 && (settings.labelled || amount.second == 0);
    }
    Record* find(const std::string& id) {
        for (Record& record : records)
            if (record.known && record.id == id) return &record;
        return nullptr;
    }
    void sweep() {
        std::erase_if(records, [](const Record& r) { return r.state == EntryState::gone; });
    }
    Wide price(const Record& record) const {
        const auto grains = [&](std::int64_t units) {
            return Wide{units} << (unit.automatic ? finest_bits - record.amount.bits : 0);
        };
        if (!settings.labelled)
            return grains(record.answer ? record.amount.second : record.amount.first);
        if ((record.answer != 0) == record.label) return 0;
        return grains(record.amount.first) *
               (record.label ? settings.account.false_negative : settings.account.false_positive);
    }
    void set_outcome(Record& record, bool label, const Amount& losses) {
        record.labelled = true;
        record.label = settings.labelled && label;
        if (!settings.labelled) record.amount = losses;
    }
    void change(Record& record, bool label, const Amount& losses) {
        const bool negative = settings.labelled ? !label : losses.first < losses.second;
        const bool young = negative && settings.maturity && edge(*settings.maturity) < record.time;
        const bool was_held = record.state == EntryState::held;
        if (was_held) ever -= price(record);
        set_outcome(record, label, losses);
        if (young) {
            record.state = EntryState::young;
            record.place = 0;
        } else if (was_held) {
            ever += price(record);
            if (is_empty(record.amount)) record.state = EntryState::empty, record.place = 0;
        } else {
            enter(record);
        }
    }
    void enter(Record& record) {
        if (settings.keep == Keep::last_period && record.time <= edge(settings.period)) {
            refused += !is_empty(record.amount);
            ever += price(record);
            record.state = EntryState::gone;
            record.known = false;
            return;
        }
        record.state = is_empty(record.amount) ? EntryState::empty : EntryState::held;
        if (record.state == EntryState::empty) return;
        ever += price(record);
        record.place = ++places;
        shorten();
    }
    void shorten() {
        if (settings.keep != Keep::last_n) return;
        for (;;) {
            std::size_t held = 0;
            Record* oldest = nullptr;
            for (Record& record : records) {
                if (record.state != EntryState::held) continue;
                ++held;
                if (!oldest || record.place < oldest->place) oldest = &record;
            }
            if (held <= settings.n) return;
            if (settings.horizon && !oldest->sample && (!dropped || *dropped < oldest->time))
                dropped = oldest->time;
            oldest->state = EntryState::gone;
            oldest->known = false;
        }
    }
    void settle_one(Record& record) {
        const EntryState state = record.state;
        if (state == EntryState::gone || record.sample || !record.timed) return;
        const bool waits =
            state == EntryState::waiting || state == EntryState::open || state == EntryState::empty;
        if (waits && settings.time_to_live && record.time <= edge(*settings.time_to_live)) {
            expired += state != EntryState::empty;
            record.state = EntryState::gone;
            record.known = false;
            return;
        }
        if (state == EntryState::waiting || state == EntryState::open) return;
        if (settings.correctable && record.time <= edge(*settings.correctable)) {
            record.known = false;
            if (state == EntryState::empty) record.state = EntryState::gone;
        }
    }

    int turns = 0, places = 0;
};

}  // namespace limen::testing
