// SPDX-License-Identifier: Apache-2.0
//
// What a ledger passes on to the trials of candidate thresholds, where there are some. While
// locked, without Python: the ledger has changed, and nothing of this can fail.

#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/memories.hpp"
#include "memory/judge.hpp"

namespace limen::bindings {

inline bool happened(const Result& done) { return done.refusal == MemoryRefusal::none; }

// The next step of a clock that counts scores.
inline Time step_after(const std::optional<Time>& clock) {
    if (!clock) return Time::whole(1);
    return clock->real ? Time::of(clock->number() + 1) : Time::whole(clock->bits + 1);
}

// A weight as a number, without Python.
inline double plain_weight(const Unit& unit, const Amount& amount) {
    if (amount.bits == Amount::real) return std::bit_cast<double>(amount.first);
    const double units = std::ldexp(static_cast<double>(amount.first), -amount.bits);
    if (unit.automatic) return units;
    return units * static_cast<double>(unit.numerator) / static_cast<double>(unit.denominator);
}

// The label that a memory knows of an id.
template <class Memory>
Judge::Label label_of(const Memory& memory, const Id& id) {
    const int label = memory.outcome(id);
    return label < 0 ? Judge::none : static_cast<Judge::Label>(label);
}

// The trials of a group and of those around it, at the time of the clock.
template <class Memory, class Notify>
void each_trial(LedgerObject& ledger, const Memory& memory, std::uint32_t group, Notify&& notify) {
    for (;; group = memory.around(group)) {
        if (const auto at = ledger.trials.find(group); at != ledger.trials.end()) {
            if (memory.newest()) at->second.judge.advance(*memory.newest());
            notify(at->second);
        }
        if (group == 0) return;
    }
}

// A score that the ledger has recorded; only samples between the two thresholds judge.
template <class Memory>
void score_in_trials(LedgerObject& ledger, const Memory& memory, std::uint32_t group, const Id& id,
                     double score, const Time& moment, const Amount& amount) {
    const double weight = plain_weight(ledger.keeper->unit(), amount);
    each_trial(ledger, memory, group, [&](Trial& trial) {
        const bool now = score >= trial.current, then = score >= trial.candidate;
        if (now != then) trial.judge.score(id, now, then, moment, weight, {}, label_of(memory, id));
    });
}

// Score by `act`; `time` is null where each score is a step.
template <class Memory, class Act>
LIMEN_INLINE Result score_on_trial(LedgerObject& ledger, Memory& memory, const Id& id,
                                   const Request& asked, const Time* time, Act&& act) {
    if (ledger.trials.empty()) [[likely]]
        return act();
    const bool known = memory.has_score(id);
    const Result done = act();
    if (!happened(done) || !done.yes || known || !memory.newest()) return done;
    score_in_trials(ledger, memory, asked.number, id, asked.score, time ? *time : *memory.newest(),
                    asked.amount);
    return done;
}

// What became of an id by `act`: it has the label that is known now, or is forgotten.
template <class Memory, class Act>
LIMEN_INLINE Result label_on_trial(LedgerObject& ledger, Memory& memory, const Id& id, Act&& act) {
    if (ledger.trials.empty()) [[likely]]
        return act();
    const std::uint32_t group = memory.group_of(id);
    const Result done = act();
    if (!happened(done)) return done;
    const Judge::Label label = label_of(memory, id);
    each_trial(ledger, memory, group, [&](Trial& trial) { trial.judge.label(id, label); });
    return done;
}
template <class Memory>
Result forget_on_trial(LedgerObject& ledger, Memory& memory, const Id& id) {
    const std::uint32_t group = ledger.trials.empty() ? 0 : memory.group_of(id);
    const Result done = memory.forget(id);
    each_trial(ledger, memory, group, [&](Trial& trial) { trial.judge.forget(id); });
    return done;
}

// Many scores by the memory; those that are new join the trials one after the other, as if they had
// come so.
template <class Memory>
Result score_many_on_trial(LedgerObject& ledger, Memory& memory, const BatchColumns& rows,
                           std::uint8_t* answers) {
    std::vector<std::uint8_t> known(rows.rows), recorded(rows.rows);
    std::set<std::string> came;  // an id may come twice
    for (std::size_t i = 0; i < rows.rows; ++i) known[i] = memory.has_score(rows.ids[i]);
    std::optional<Time> clock = memory.newest();
    const Result done = memory.score_many(rows, answers, recorded.data());
    if (!happened(done)) return done;
    for (std::size_t i = 0; i < rows.rows; ++i) {
        if (known[i] || !recorded[i] || !came.insert(Judge::key_of(rows.ids[i])).second) continue;
        const Time moment = rows.times ? rows.time(i) : step_after(clock);
        if (!clock || *clock < moment) clock = moment;
        const Amount weight = rows.firsts ? rows.amount(i) : ledger.keeper->one;
        score_in_trials(ledger, memory, rows.groups ? rows.groups[i] : 0, rows.ids[i],
                        rows.scores[i], moment, weight);
    }
    return done;
}

// Many labels by `act`.
template <class Memory, class Act>
Result label_many_on_trial(LedgerObject& ledger, Memory& memory, const Id* ids, std::size_t rows,
                           Act&& act) {
    std::vector<std::uint32_t> groups(ledger.trials.empty() ? 0 : rows);
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = memory.group_of(ids[i]);
    const Result done = act();
    for (std::size_t i = 0; happened(done) && i < groups.size(); ++i)
        each_trial(ledger, memory, groups[i],
                   [&](Trial& trial) { trial.judge.label(ids[i], label_of(memory, ids[i])); });
    return done;
}

}  // namespace limen::bindings
