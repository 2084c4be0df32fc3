// SPDX-License-Identifier: Apache-2.0
//
// Memory: the calls. Each finds out what it will need, has it, and then does what cannot fail.
// One file although long: each call and what it needs to be all or nothing are read together.

#pragma once

#include "memory/memory.hpp"

namespace limen {

// ---- all or nothing ----

template <class Tree>
struct Memory<Tree>::Copy {
    explicit Copy(const Memory& of) : memory(first(trees, of), of.settings_, of.options_) {
        memory.placement_.copy(of.placement_, trees);
        memory.entries_.copy(of.entries_);
        memory.clock_ = of.clock_;
        memory.account_ = of.account_;
        memory.expired_ = of.expired_;
        memory.refused_ = of.refused_;
    }

    std::vector<HeldSamples<Tree>> trees;
    Memory memory;

private:
    static HeldSamples<Tree>& first(std::vector<HeldSamples<Tree>>& trees, const Memory& of) {
        trees.reserve(of.placement_.groups().size());
        for (const Group& group : of.placement_.groups()) trees.push_back(group.held->copy());
        return trees[0];
    }
};

template <class Tree>
void Memory<Tree>::swap(Memory& other) noexcept {
    placement_.swap(other.placement_);
    entries_.swap(other.entries_);
    std::swap(clock_, other.clock_);
    std::swap(account_, other.account_);
    std::swap(expired_, other.expired_);
    std::swap(refused_, other.refused_);
}

// Let `work` happen to this memory where it cannot fail, else to a copy that is kept if it did not.
template <class Tree>
template <class Work>
Result Memory<Tree>::perform(const Needs& needs, Work&& work) {
    if (entries_.full(needs.entries)) return refused(MemoryRefusal::too_many);
    if (!needs.copy && placement_.has_room()) {
        reserve(needs);
        placement_.reserve();
        return work(*this);
    }
    Copy copy(*this);
    copy.memory.reserve(needs);
    Result done = work(copy.memory);
    if (done.refusal == MemoryRefusal::none &&
        copy.memory.placement_.refusal != MemoryRefusal::none)
        done = refused(copy.memory.placement_.refusal, done.row);
    if (done.refusal == MemoryRefusal::none) swap(copy.memory);
    return done;
}

// ---- without ids ----

// The common step of a window: all samples weigh 1, one leaves, and the new one takes its place in
// the tree and in the entries. False where that is not so, and nothing was changed.
template <class Tree>
LIMEN_INLINE bool Memory<Tree>::step(double score, bool label, const Amount& amount,
                                     const Time* time) {
    if constexpr (std::is_same_v<Tree, CutTree>) {
        std::uint32_t at = 0;
        if (!settings_.labelled || !entries_.is_usual(amount) ||
            !clock_.leaves_for(entries_, time, at))
            return false;
        const Entry& entry = entries_[at];
        HeldSamples<Tree>& held = *placement_.group(0).held;
        held.reserve(1, false);
        if (!held.replace_one(entry.score, entry.label, score, label)) return false;
        entries_.renew(at);
        clock_.pop_leaving();
        if (time) tick(*time);
        set_sample(at, score, label, amount, time);
        warm_next(true);
        return true;
    }
    return false;
}

template <class Tree>
Result Memory<Tree>::update(double score, bool label, const Amount& given, const Time* time) {
    const Amount amount = normal(given);
    if (step(score, label, amount, time)) return {};
    if (!fading() && placement_.has_plain_room(amount, label) && !entries_.full(1)) {
        if (last_period() && clock_.moves(*time) && !(before(*time, settings_.period) < *time))
            return refused(MemoryRefusal::far_time);
        entries_.reserve_amount(amount);
        reserve({.entries = 1, .entering = 1});
        placement_.group(0).held->reserve(1, !entries_.is_usual(amount));
        return put_sample(score, label, amount, time);
    }
    const Sample sample{score, label, amount, 0, placement_.count, time ? *time : Time{}};
    if (fading() && placement_.add_faded(sample, time)) {
        if (time && clock_.moves(*time)) clock_.set(*time);
        return {};
    }
    return plan_and_put(score, label, amount, time);
}

// All other samples. By itself, so that the common ones need no more of the stack.
template <class Tree>
LIMEN_NOINLINE Result Memory<Tree>::plan_and_put(double score, bool label, const Amount& amount,
                                                 const Time* time) {
    FadeRescale division(placement_);
    if (fading() && !(time && clock_.too_far_ahead(*time)) && (time || !is_empty(amount)))
        division.prepare({score, label, amount, 0, placement_.count, time ? *time : Time{}});
    placement_.begin_plan();
    Needs needs;
    const MemoryRefusal refusal = plan_sample(score, label, amount, time, needs);
    if (refusal != MemoryRefusal::none) return refused(refusal);
    if (!fading()) entries_.reserve_amount(amount);
    return division.kept_if(
        perform(needs, [&](Memory& in) { return in.put_sample(score, label, amount, time); }));
}

template <class Tree>
MemoryRefusal Memory<Tree>::plan_sample(double score, bool label, const Amount& amount,
                                        const Time* time, Needs& needs) {
    if (time && clock_.too_far_ahead(*time)) return MemoryRefusal::none;
    if (last_period() && !clock_.moves(*time) && !clock_.in_window(*time))
        return MemoryRefusal::none;
    if (time) {
        const MemoryRefusal refusal = plan_tick(*time, needs);
        if (refusal != MemoryRefusal::none) return refusal;
    }
    if (is_empty(amount)) return MemoryRefusal::none;
    if (!placement_.want({score, label, amount, 0, placement_.count, time ? *time : Time{}}))
        needs.copy = true;
    if (fading()) return MemoryRefusal::none;
    needs.entries = needs.entering = 1;
    return MemoryRefusal::none;
}

template <class Tree>
Result Memory<Tree>::put_sample(double score, bool label, const Amount& amount, const Time* time) {
    const bool empty = is_empty(amount);
    const bool too_old = last_period() && !clock_.moves(*time) && !clock_.in_window(*time);
    if (too_old || (time && clock_.too_far_ahead(*time))) {
        refused_ += !empty;  // what weighs nothing is left out anyway
        return {.yes = false};
    }
    const Sample sample{score, label, amount, 0, placement_.count, time ? *time : Time{}};
    if (fading() && !empty) {
        const bool late = time && clock_.is_late(*time);
        if (!placement_.hold(sample)) {
            ++refused_;
            return {.yes = false};
        }
        ++placement_.count;
        if (time && !late) {
            clock_.set(*time);
            if (!placement_.origin) placement_.origin = *time;
        }
        return {};
    }
    std::uint32_t leaving = Entries::none;
    if (time) tick(*time, &leaving);
    if (empty) {
        if (leaving != Entries::none) leave(leaving);
        return {};
    }
    if (last_n() && entries_.count(EntryState::held) >= settings_.n)
        clock_.take_oldest(entries_, leaving);  // without ids all stand where they came
    if (leaving == Entries::none || !exchange(leaving, score, label, amount)) {
        if (leaving != Entries::none) leave(leaving);
        placement_.hold(sample);
        leaving = entries_.make(EntryState::held, nullptr, 0, nullptr);
    }
    set_sample(leaving, score, label, amount, time);
    warm_next(std::is_same_v<Tree, CutTree>);
    return {};
}

// Let an entry that has left its line be a new one, and its sample be replaced in the tree, which
// is faster than one after the other. False where that cannot be: nothing was changed.
template <class Tree>
bool Memory<Tree>::exchange(std::uint32_t leaving, double score, bool label, const Amount& amount) {
    const Entry& entry = entries_[leaving];
    const bool replaced = placement_.replace(entry.score, entry.label, entries_.amount(leaving),
                                             score, label, amount);
    if (replaced) entries_.renew(leaving);
    return replaced;
}

// A new entry becomes a sample of a window, in its place in line.
template <class Tree>
LIMEN_INLINE void Memory<Tree>::set_sample(std::uint32_t at, double score, bool label,
                                           const Amount& amount, const Time* time) {
    Entry& entry = entries_[at];
    entry.score = score + 0.0;
    entry.label = label;
    entries_.set_amount(at, amount);
    entries_.set_time(at, time);
    clock_.enter_window(entries_, at);
}

// ---- with ids ----

template <class Tree>
Result Memory<Tree>::score(const Id& id, double score, const Amount& weight, const Time* time,
                           int answer, std::uint32_t in) {
    const Amount amount = settings_.labelled ? normal(weight) : normal({});
    const std::uint32_t hash = entries_.hash_of(id), at = entries_.find(id, hash);
    if (at != Entries::none && entries_[at].state != EntryState::waiting)
        return known_score(at, score + 0.0, amount, in);
    Time moment;
    MemoryRefusal refusal = MemoryRefusal::none;
    if (!clock_.read(time, moment, refusal)) return refused(refusal);
    FadeRescale division(placement_);
    const bool refuses = clock_.too_far_ahead(moment) || clock_.too_old(moment);
    // By number, what matures comes first and in the weights it finds: a copy divides in turn.
    if (fading_by_time())
        division.prepare(
            {score, false, amount, in, placement_.count, refuses ? *clock_.now() : moment});
    placement_.begin_plan();
    Needs needs;
    if (!refuses) refusal = plan_tick(moment, needs, &division);
    if (refusal != MemoryRefusal::none) return refused(refusal);
    needs.entries = needs.ids = 1;
    ++needs.scored;
    if (at != Entries::none && !stays_young(at, amount, moment)) {
        const Amount holds = settings_.labelled ? amount : entries_.amount(at);
        if (!placement_.want(
                {score, entries_[at].label, holds, in, placement_.count + needs.entering, moment},
                &moment))
            needs.copy = true;
        ++needs.entering;
    }
    entries_.reserve_amount(amount);
    NameCopy name(id);
    return division.kept_if(perform(needs, [&](Memory& memory) {
        return memory.record(id, hash, at, score + 0.0, amount, moment, !time, answer, in, name);
    }));
}

// The same score again changes nothing.
template <class Tree>
Result Memory<Tree>::known_score(std::uint32_t at, double score, const Amount& weight,
                                 std::uint32_t in) const {
    const Entry& entry = entries_[at];
    const Amount amount = settings_.labelled ? entries_.amount(at) : normal({});
    const std::uint32_t group = last_n() ? 0 : entry.group;
    Result done{.answer = entry.answer, .score = entry.score, .amount = amount, .group = group};
    if (entry.score != score || amount != weight || group != in)
        done.refusal = MemoryRefusal::other_score;
    return done;
}

template <class Tree>
Result Memory<Tree>::record(const Id& id, std::uint32_t hash, std::uint32_t at, double score,
                            const Amount& weight, const Time& moment, bool counts, int answer,
                            std::uint32_t in, NameCopy& name) {
    const bool refuses = clock_.too_far_ahead(moment) || clock_.too_old(moment);
    if (!refuses) {
        tick(moment);
        clock_.counts = counts;
    }
    if (fading_by_time()) placement_.divide_groups(in);
    if (answer < 0) answer = score >= threshold(answering(in));
    if (refuses) {
        ++refused_;
        return {.yes = false, .answer = answer};
    }
    // Again, because a label that waited may be gone.
    if (at != Entries::none) at = entries_.find(id, hash);
    const bool waited = at != Entries::none;
    if (!waited) at = entries_.make(EntryState::open, &id, hash, name.release());
    Entry& entry = entries_[at];
    if (waited) ++entry.turn;  // where it waited, it waits no longer
    entry.score = score;
    entry.answer = answer != 0;
    if (!last_n()) entry.group = in;
    entries_.set_time(at, &moment);
    if (settings_.labelled) entries_.set_amount(at, weight);
    if (waited) change(at, entry.label, entries_.amount(at));
    if (entry.state != EntryState::gone) {  // it may have come too late for the window
        clock_.line_up(entries_, at);
        settle_one(at);
    }
    if (waited) warm_next();
    return {.answer = answer};
}

template <class Tree>
Result Memory<Tree>::label(const Id& id, bool label, const Amount& given, const Time* as_of) {
    const Amount losses = settings_.labelled ? normal({}) : normal(given);
    const std::uint32_t hash = entries_.hash_of(id), at = entries_.find(id, hash);
    FadeRescale division(placement_);
    const bool changing = at != Entries::none && changes(at, label, losses, as_of);
    if (changing &&
        (fading_by_time() || (by_number() && !is_young(at, label, losses) &&
                              !is_empty(settings_.labelled ? entries_.amount(at) : losses))))
        division.prepare(sample(at));
    placement_.begin_plan();
    Needs needs;
    if (at == Entries::none || changing) plan_label(at, label, losses, needs);
    entries_.reserve_amount(losses);
    if (as_of) entries_.reserve_as_of();
    NameCopy name;
    if (at == Entries::none) name = NameCopy(id);
    return division.kept_if(perform(
        needs, [&](Memory& in) { return in.put_label(id, hash, at, label, losses, as_of, name); }));
}

// Whether the sample of an entry is not what it was after this label.
template <class Tree>
bool Memory<Tree>::changes(std::uint32_t at, bool label, const Amount& losses,
                           const Time* as_of) const {
    const Entry& entry = entries_[at];
    const bool outdated = as_of && entry.as_of && *as_of < entries_.as_of(at);
    return entry.state != EntryState::waiting && !outdated && !has_outcome(at, label, losses);
}

template <class Tree>
bool Memory<Tree>::has_outcome(std::uint32_t at, bool label, const Amount& losses) const {
    const Entry& entry = entries_[at];
    return entry.labelled &&
           (settings_.labelled ? entry.label == label : entries_.amount(at) == losses);
}

// Whether a label that waits would not count yet with a score of this moment.
template <class Tree>
bool Memory<Tree>::stays_young(std::uint32_t at, const Amount& weight, const Time& moment) const {
    const Amount amount = settings_.labelled ? weight : entries_.amount(at);
    if (is_empty(amount)) return true;
    const Time clock = clock_.moves(moment) ? moment : *clock_.now();
    return is_negative(entries_[at].label, amount) && settings_.maturity &&
           before(clock, *settings_.maturity) < moment;
}

template <class Tree>
void Memory<Tree>::plan_label(std::uint32_t at, bool label, const Amount& losses, Needs& needs) {
    if (at == Entries::none) {
        ++needs.entries;
        ++needs.ids;
        ++needs.scored;
        return;
    }
    const Entry& entry = entries_[at];
    want_back(at);
    if (entry.state == EntryState::waiting) return;
    if (fading_by_time() && placement_.chain_lags(entry.group, *clock_.now())) needs.copy = true;
    if (is_young(at, label, losses)) return;
    Sample coming = sample(at);
    coming.label = label;
    if (!settings_.labelled) coming.amount = losses;
    if (by_number() && !entry.placed) coming.count += needs.entering;
    if (!placement_.want(coming)) needs.copy = true;
    ++needs.entering;
}

template <class Tree>
Result Memory<Tree>::put_label(const Id& id, std::uint32_t hash, std::uint32_t at, bool label,
                               const Amount& losses, const Time* as_of, NameCopy& name) {
    if (at == Entries::none) {
        at = entries_.make(EntryState::waiting, &id, hash, name.release());
        if (clock_.now()) {
            entries_.set_time(at, &*clock_.now());
            clock_.line_up(entries_, at);
        }
    }
    const Entry& entry = entries_[at];
    const bool scored = entry.state != EntryState::waiting;
    if (as_of && entry.as_of && *as_of < entries_.as_of(at)) return {.yes = scored};
    if (as_of || entry.as_of) entries_.set_as_of(at, as_of);
    if (!scored) {
        set_outcome(at, label, losses);
        return {.yes = false};
    }
    if (!has_outcome(at, label, losses)) {
        if (fading_by_time()) placement_.divide_groups(entry.group);
        change(at, label, losses);
        settle_one(at);
        warm_next();
    }
    return {};
}

template <class Tree>
Result Memory<Tree>::forget(const Id& id) {
    const std::uint32_t at = entries_.find(id, entries_.hash_of(id));
    if (at == Entries::none) return {.yes = false};
    placement_.begin_plan();
    want_back(at);
    placement_.reserve();
    if (entries_[at].state == EntryState::held) {
        placement_.release(sample(at));
        count_cost(at, -price(at));
        if (last_n()) clock_.leave_place(entries_, at);
    }
    entries_.drop(at);
    return {};
}

template <class Tree>
Result Memory<Tree>::advance(const Time& time) {
    FadeRescale division(placement_);
    if (fading_by_time()) division.prepare({0, false, {}, 0, 0, time});
    placement_.begin_plan();
    Needs needs;
    const MemoryRefusal refusal = plan_tick(time, needs, &division);
    if (refusal != MemoryRefusal::none) return refused(refusal);
    return division.kept_if(perform(needs, [&](Memory& in) {
        in.tick(time);
        return Result{};
    }));
}

}  // namespace limen
