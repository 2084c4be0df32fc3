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
        memory.groups_ = of.groups_;
        memory.touched_.reserve(of.groups_.size());
        for (std::size_t i = 0; i < trees.size(); ++i) {
            memory.groups_[i].held = &trees[i];
            memory.groups_[i].demand = {};
        }
        memory.entries_.copy(of.entries_);
        static_cast<MemoryMarks&>(memory) = of;
    }

    std::vector<HeldSamples<Tree>> trees;
    Memory memory;

private:
    static HeldSamples<Tree>& first(std::vector<HeldSamples<Tree>>& trees, const Memory& of) {
        trees.reserve(of.groups_.size());
        for (const Group& group : of.groups_) trees.push_back(group.held->copy());
        return trees[0];
    }
};

template <class Tree>
void Memory<Tree>::swap(Memory& other) noexcept {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (groups_[i].held != other.groups_[i].held)
            std::swap(*groups_[i].held, *other.groups_[i].held);
        std::swap(groups_[i].base, other.groups_[i].base);
    }
    entries_.swap(other.entries_);
    std::swap(static_cast<MemoryMarks&>(*this), static_cast<MemoryMarks&>(other));
}

// Let `work` happen to this memory where it cannot fail, else to a copy that is kept if it did not.
template <class Tree>
template <class Work>
Result Memory<Tree>::perform(const Needs& needs, Work&& work) {
    if (entries_.full(needs.entries)) return refused(MemoryRefusal::too_many);
    if (!needs.copy && has_room()) {
        reserve(needs);
        reserve_trees();
        return work(*this);
    }
    Copy copy(*this);
    copy.memory.reserve(needs);
    Result done = work(copy.memory);
    if (done.refusal == MemoryRefusal::none && copy.memory.refusal_ != MemoryRefusal::none)
        done = refused(copy.memory.refusal_, done.row);
    if (done.refusal == MemoryRefusal::none) swap(copy.memory);
    return done;
}

// Weights are divided ahead of a call, so that it finds them as it needs them; where the call then
// does not happen, they are what they were.
template <class Tree>
class Memory<Tree>::FadeRescale {
public:
    explicit FadeRescale(Memory& of) : of_(of) {}
    ~FadeRescale() {
        for (Before& before : before_) put(before);
    }
    FadeRescale(const FadeRescale&) = delete;
    FadeRescale& operator=(const FadeRescale&) = delete;

    // For a sample of this place and time. O(n), every ten half-lives.
    void prepare(const Sample& coming) {
        if (!of_.fading()) return;
        const bool late = of_.settings_.by_time && of_.is_late(coming.time);
        const Time& time = late ? *of_.clock_ : coming.time;
        for (std::uint32_t in = coming.group; in != no_group; in = of_.group(in).inside) {
            Group& group = of_.group(in);
            double ahead;
            std::int64_t bits;
            if (of_.has_no_base(in) || !group.base ||
                !of_.lives_.position(coming.count, time, of_.origin_,
                                     static_cast<double>(*group.base), ahead))
                continue;
            const int divide = HalfLives::to_divide(ahead, bits);
            if (divide == 0) continue;
            before_.reserve(before_.size() + 1);
            HeldSamples<Tree> divided = group.held->copy();
            divided.fade(divide);
            before_.push_back({in, *group.base + bits, std::move(divided)});
            put(before_.back());
        }
    }
    Result kept_if(const Result& done) {
        if (done.refusal == MemoryRefusal::none) before_.clear();
        return done;
    }

private:
    struct Before {
        std::uint32_t group;
        std::int64_t base;
        HeldSamples<Tree> held;
    };
    void put(Before& other) noexcept {
        Group& group = of_.group(other.group);
        std::swap(*group.held, other.held);
        std::swap(*group.base, other.base);
    }

    Memory& of_;
    std::vector<Before> before_;
};

// ---- without ids ----

template <class Tree>
Result Memory<Tree>::update(double score, bool label, const Amount& given, const Time* time) {
    const Amount amount = normal(given);
    if (has_plain_room(amount, label)) {
        if (last_period() && moves(*time) && !(before(*time, settings_.period) < *time))
            return refused(MemoryRefusal::far_time);
        entries_.reserve_amount(amount);
        reserve({.entries = 1, .entering = 1});
        group(0).held->reserve(1, !entries_.is_usual(amount));
        return put_sample(score, label, amount, time);
    }
    if (fading() && add_faded({score, label, amount, 0, count_, time ? *time : Time{}}, time))
        return {};
    return plan_and_put(score, label, amount, time);
}

// All other samples. By itself, so that the common ones need no more of the stack.
template <class Tree>
LIMEN_NOINLINE Result Memory<Tree>::plan_and_put(double score, bool label, const Amount& amount,
                                                 const Time* time) {
    FadeRescale division(*this);
    if (fading() && !(time && too_far_ahead(*time)) && (time || !is_empty(amount)))
        division.prepare({score, label, amount, 0, count_, time ? *time : Time{}});
    forget_demands();
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
    if (time && too_far_ahead(*time)) return MemoryRefusal::none;
    if (last_period() && !moves(*time) && !(window_edge_ < *time)) return MemoryRefusal::none;
    if (time) {
        const MemoryRefusal refusal = plan_tick(*time, needs);
        if (refusal != MemoryRefusal::none) return refusal;
    }
    if (is_empty(amount)) return MemoryRefusal::none;
    if (!want({score, label, amount, 0, count_, time ? *time : Time{}})) needs.copy = true;
    if (fading()) return MemoryRefusal::none;
    needs.entries = needs.entering = 1;
    return MemoryRefusal::none;
}

template <class Tree>
Result Memory<Tree>::put_sample(double score, bool label, const Amount& amount, const Time* time) {
    const bool empty = is_empty(amount);
    const bool too_old = last_period() && !moves(*time) && !(window_edge_ < *time);
    if (too_old || (time && too_far_ahead(*time))) {
        refused_ += !empty;  // what weighs nothing is left out anyway
        return {.yes = false};
    }
    if (fading() && !empty) {
        const bool late = time && is_late(*time);
        if (!hold_faded({score, label, amount, 0, count_, time ? *time : Time{}})) {
            ++refused_;
            return {.yes = false};
        }
        ++count_;
        if (time && !late) {
            set_clock(*time);
            if (!origin_) origin_ = *time;
        }
        return {};
    }
    std::uint32_t leaving = Entries::none;
    if (time) tick(*time, &leaving);
    if (empty) {
        if (leaving != Entries::none) leave(leaving);
        return {};
    }
    if (last_n() && entries_.count(EntryState::held) >= settings_.n) {
        leaving = line_.front().at;  // without ids all stand where they came
        line_.pop();
    }
    if (leaving == Entries::none || !exchange(leaving, score, label, amount)) {
        if (leaving != Entries::none) leave(leaving);
        hold({score, label, amount, 0, 0, {}});
        leaving = entries_.make(EntryState::held, nullptr, 0, nullptr);
    }
    set_sample(leaving, score, label, amount, time);
    warm_next(std::is_same_v<Tree, CutTree>);
    return {};
}

// Let an entry that has left its line be a new one, and its sample be replaced in the tree, which
// is faster than one after the other. False where that cannot be: nothing was changed.
template <class Tree>
LIMEN_INLINE bool Memory<Tree>::exchange(std::uint32_t leaving, double score, bool label,
                                         const Amount& amount) {
    if (!pending_.empty()) return false;
    const Entry& entry = entries_[leaving];
    HeldSamples<Tree>& held = *group(0).held;
    bool replaced = false;
    if constexpr (std::is_same_v<Tree, CutTree>)
        replaced = settings_.labelled && entries_.is_usual(amount) &&
                   held.replace_one(entry.score, entry.label, score, label);
    Losses gone, losses;
    replaced = replaced || (in_use(entries_.amount(leaving), entry.label, gone) &&
                            in_use(amount, label, losses) &&
                            held.replace(entry.score, gone, score, losses, settings_.labelled));
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
    enter_line(at);
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
    if (!has_moment(time, moment, refusal)) return refused(refusal);
    FadeRescale division(*this);
    const bool refuses = too_far_ahead(moment) || too_old(moment);
    // By number, what matures comes first and in the weights it finds: a copy divides in turn.
    if (fading_by_time())
        division.prepare({score, false, amount, in, count_, refuses ? *clock_ : moment});
    forget_demands();
    Needs needs;
    if (!refuses) refusal = plan_tick(moment, needs, &division);
    if (refusal != MemoryRefusal::none) return refused(refusal);
    needs.entries = needs.ids = 1;
    ++needs.scored;
    if (at != Entries::none && !stays_young(at, amount, moment)) {
        const Amount holds = settings_.labelled ? amount : entries_.amount(at);
        if (!want({score, entries_[at].label, holds, in, count_ + needs.entering, moment}, &moment))
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
    const bool refuses = too_far_ahead(moment) || too_old(moment);
    if (!refuses) {
        tick(moment);
        counts_ = counts;
    }
    if (fading_by_time()) divide_groups(in);
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
        line_up(at);
        settle_one(at);
    }
    if (waited) warm_next();
    return {.answer = answer};
}

template <class Tree>
Result Memory<Tree>::label(const Id& id, bool label, const Amount& given, const Time* as_of) {
    const Amount losses = settings_.labelled ? normal({}) : normal(given);
    const std::uint32_t hash = entries_.hash_of(id), at = entries_.find(id, hash);
    FadeRescale division(*this);
    const bool changing = at != Entries::none && changes(at, label, losses, as_of);
    if (changing &&
        (fading_by_time() || (by_number() && !is_young(at, label, losses) &&
                              !is_empty(settings_.labelled ? entries_.amount(at) : losses))))
        division.prepare(sample(at));
    forget_demands();
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
    const Time clock = moves(moment) ? moment : *clock_;
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
    if (fading_by_time() && chain_lags(entry.group, *clock_)) needs.copy = true;
    if (is_young(at, label, losses)) return;
    Sample coming = sample(at);
    coming.label = label;
    if (!settings_.labelled) coming.amount = losses;
    if (by_number() && !entry.placed) coming.count += needs.entering;
    if (!want(coming)) needs.copy = true;
    ++needs.entering;
}

template <class Tree>
Result Memory<Tree>::put_label(const Id& id, std::uint32_t hash, std::uint32_t at, bool label,
                               const Amount& losses, const Time* as_of, NameCopy& name) {
    if (at == Entries::none) {
        at = entries_.make(EntryState::waiting, &id, hash, name.release());
        if (clock_) {
            entries_.set_time(at, &*clock_);
            line_up(at);
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
        if (fading_by_time()) divide_groups(entry.group);
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
    forget_demands();
    want_back(at);
    reserve_trees();
    if (entries_[at].state == EntryState::held) {
        release_entry(at);
        count_cost(at, -price(at));
        leave_place(at);
    }
    entries_.drop(at);
    return {};
}

template <class Tree>
Result Memory<Tree>::advance(const Time& time) {
    FadeRescale division(*this);
    if (fading_by_time()) division.prepare({0, false, {}, 0, 0, time});
    forget_demands();
    Needs needs;
    const MemoryRefusal refusal = plan_tick(time, needs, &division);
    if (refusal != MemoryRefusal::none) return refused(refusal);
    return division.kept_if(perform(needs, [&](Memory& in) {
        in.tick(time);
        return Result{};
    }));
}

}  // namespace limen
