// SPDX-License-Identifier: Apache-2.0
//
// What a ledger tells the trial of a candidate threshold, where there is one. While locked, without
// Python: the ledger has changed, and nothing of this can fail.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../trial.hpp"
#include "memories.hpp"

namespace limen::bindings {

inline bool happened(const Done& done) { return done.refusal == MemoryRefusal::none; }

// The next step of a clock that counts scores.
inline Time step_after(const std::optional<Time>& clock) {
    if (!clock) return Time::whole(1);
    return clock->real ? Time::of(clock->number() + 1) : Time::whole(clock->bits + 1);
}

// Score by `act`; `time` is null where each score is a step.
template <class Memory, class Act>
LIMEN_INLINE Done score_on_trial(LedgerBook& ledger, Memory& memory, const Id& id, double score,
                                 const Time* time, const Amount& weight, Act&& act) {
    CandidateTrial* const trial = ledger.trial.get();
    if (!trial) [[likely]]
        return act();
    const bool known = memory.has_score(id);
    const Done done = act();
    if (!happened(done) || !memory.newest()) return done;
    if (done.yes && !known)
        trial->scored(id, score, time ? *time : *memory.newest(), memory.outcome(id),
                      weight == ledger.keeper->one);
    trial->advance(*memory.newest());
    return done;
}

template <class Memory>
LIMEN_INLINE Done label_on_trial(LedgerBook& ledger, Memory& memory, const Id& id,
                                 const Done& done) {
    if (ledger.trial && happened(done)) [[unlikely]]
        ledger.trial->labelled(id, memory.outcome(id));
    return done;
}

// Many scores by the memory; those that are new join the trial one after the other, as if they had
// come so.
template <class Memory>
Done score_many_on_trial(LedgerBook& ledger, Memory& memory, const BatchColumns& rows,
                         std::uint8_t* answers) {
    std::vector<std::uint8_t> known(rows.rows), recorded(rows.rows);
    std::set<std::string> came;  // an id may come twice
    for (std::size_t i = 0; i < rows.rows; ++i) known[i] = memory.has_score(rows.ids[i]);
    std::optional<Time> clock = memory.newest();
    const Done done = memory.score_many(rows, answers, recorded.data());
    if (!happened(done)) return done;
    for (std::size_t i = 0; i < rows.rows; ++i) {
        if (known[i] || !recorded[i] || !came.insert(CandidateTrial::key_of(rows.ids[i])).second)
            continue;
        const Time moment = rows.times ? rows.time(i) : step_after(clock);
        if (!clock || *clock < moment) clock = moment;
        ledger.trial->scored(rows.ids[i], rows.scores[i], moment, memory.outcome(rows.ids[i]),
                             rows.amount(i) == ledger.keeper->one);
        ledger.trial->advance(*clock);
    }
    if (memory.newest()) ledger.trial->advance(*memory.newest());
    return done;
}

}  // namespace limen::bindings
