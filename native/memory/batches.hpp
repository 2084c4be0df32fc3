// SPDX-License-Identifier: Apache-2.0
//
// Memory: many samples, scores or labels at once, as one by one but all or none.
//
// A batch is looked through before its first change. Where nothing in it can be refused, it is
// done in place; where something might be, in a copy, row by row. Rows ask early for what they
// will need from memory that is in no near cache.

#pragma once

#include "memory/memory.hpp"

namespace limen {

// ---- without ids ----

template <class Tree>
Result Memory<Tree>::update_many(const BatchColumns& rows, std::uint8_t* counted) {
    placement_.begin_plan();
    Needs needs;
    Amount unusual = normal({});
    std::optional<Time> newest = clock_.now();
    Time edge = clock_.window_edge();
    std::vector<std::size_t> coming;  // rows that count and cost something, not over fading
    std::size_t refusing = 0;
    for (std::size_t i = 0; i < rows.rows; ++i) {
        const Amount amount = normal(rows.amount(i));
        const bool empty = is_empty(amount);
        bool counts = true;
        Time time{};
        if (rows.times) {
            time = rows.time(i);
            const bool ahead =
                settings_.max_ahead && newest && *newest < before(time, *settings_.max_ahead);
            counts = !ahead && !(last_period() && time <= edge);
            if (counts && (!newest || *newest < time)) {
                newest = time;
                edge = before(time, settings_.period);
                if (last_period() && !(edge < time)) return refused(MemoryRefusal::far_time, i);
            }
        }
        if (counted) counted[i] = counts;
        refusing += !counts && !empty;
        if (counts && amount != normal({})) unusual = amount;
        if (!counts || empty) continue;
        if (!fading()) coming.push_back(i);
        if (!needs.copy && !placement_.want({rows.scores[i], rows.label(i), amount, 0,
                                             placement_.count + i, time}))
            needs.copy = true;
    }
    if (fading_by_time()) {
        bool far = false;
        needs.copy = needs.copy || !placement_.origin ||
                     (newest && placement_.divides_for(*newest, far)) || far;
    }
    if (!fading()) {
        const std::size_t room =
            last_n() ? settings_.n - entries_.count(EntryState::held) : rows.rows;
        needs.entries = std::min(rows.rows, room);
        needs.entering = needs.entries + 1;
        entries_.reserve_amount(unusual);
    }
    constexpr std::size_t many = 64;
    if (!fading() && !needs.copy && rows.rows >= many && placement_.has_room() &&
        !entries_.full(needs.entries)) {
        if (last_period())
            std::erase_if(coming, [&](std::size_t i) { return rows.time(i) <= edge; });
        return update_at_once(rows, needs, coming, refusing, newest);
    }
    return perform(needs, [&](Memory& in) {
        for (std::size_t i = 0; i < rows.rows; ++i) {
            Time time{};
            if (rows.times) time = rows.time(i);
            const Result done = in.put_sample(rows.scores[i], rows.label(i), normal(rows.amount(i)),
                                              rows.times ? &time : nullptr);
            if (in.placement_.refusal != MemoryRefusal::none)
                return refused(in.placement_.refusal, i);
            if (counted) counted[i] = done.yes;
        }
        return Result{};
    });
}

// There is room for all rows besides what is held: those that stay go into the tree together.
template <class Tree>
Result Memory<Tree>::update_at_once(const BatchColumns& rows, const Needs& needs,
                                    std::vector<std::size_t>& staying, std::size_t refusing,
                                    const std::optional<Time>& newest) {
    if (last_n() && staying.size() > settings_.n)
        staying.erase(staying.begin(), staying.end() - static_cast<std::ptrdiff_t>(settings_.n));
    HeldSamples<Tree>& held = *placement_.group(0).held;
    int bits = held.bits();
    for (const std::size_t i : staying) bits = std::max(bits, int{normal(rows.amount(i)).bits});
    std::vector<LossRow> coming;
    coming.reserve(staying.size());
    for (const std::size_t i : staying) {
        const Amount amount = normal(rows.amount(i));
        Losses losses;
        losses_of(amount, rows.label(i), losses);
        shifted(losses, bits - amount.bits);
        coming.push_back({ordered_bits(rows.scores[i]), {losses.below, losses.above}});
    }
    reserve(needs);
    if (held.add_many(coming, bits) != Refusal::none) return refused(MemoryRefusal::too_large);
    refused_ += refusing;
    if (newest && last_period()) tick(*newest);
    if (last_n())
        while (entries_.count(EntryState::held) + staying.size() > settings_.n) leave_oldest();
    for (const std::size_t i : staying) {
        Time time{};
        if (rows.times) time = rows.time(i);
        set_sample(entries_.make(EntryState::held, nullptr, 0, nullptr), rows.scores[i],
                   rows.label(i), normal(rows.amount(i)), rows.times ? &time : nullptr);
    }
    warm_next();
    return {};
}

// ---- with ids ----

// The hashes of all ids, and their entries before the batch.
template <class Tree>
void Memory<Tree>::look_up(const BatchColumns& rows, std::vector<std::uint32_t>& hashes,
                           std::vector<std::uint32_t>& found) const {
    constexpr std::size_t far = 32, near = 16;  // rows ahead
    hashes.resize(rows.rows);
    found.resize(rows.rows);
    for (std::size_t i = 0; i < rows.rows; ++i) {
        hashes[i] = entries_.hash_of(rows.ids[i]);
        entries_.warm_slot(hashes[i]);
        if (i >= near) entries_.warm_entry(hashes[i - near]);
        if (i >= far) found[i - far] = entries_.find(rows.ids[i - far], hashes[i - far]);
    }
    for (std::size_t i = rows.rows < far ? 0 : rows.rows - far; i < rows.rows; ++i)
        found[i] = entries_.find(rows.ids[i], hashes[i]);
}

// Copies of the long ids for which entries may be made.
template <class Tree>
std::vector<NameCopy> Memory<Tree>::copy_names(const BatchColumns& rows,
                                               const std::vector<std::uint32_t>& found) const {
    std::vector<NameCopy> names(rows.rows);
    for (std::size_t i = 0; i < rows.rows; ++i)
        if (found[i] == Entries::none || forgets_ids()) names[i] = NameCopy(rows.ids[i]);
    return names;
}

// Whether an id comes twice, and not with the same score, weight and group.
template <class Tree>
bool Memory<Tree>::contradicts_itself(const BatchColumns& rows,
                                      const std::vector<std::uint32_t>& hashes) const {
    std::size_t size = 8;
    while (size < 2 * rows.rows) size *= 2;
    std::vector<std::uint32_t> slots(size, Entries::none);
    const auto group_of_row = [&](std::size_t i) { return rows.groups ? rows.groups[i] : 0; };
    for (std::size_t i = 0; i < rows.rows; ++i) {
        std::size_t slot = hashes[i] & (size - 1);
        for (; slots[slot] != Entries::none; slot = (slot + 1) & (size - 1)) {
            const std::size_t other = slots[slot];
            if (hashes[other] != hashes[i] || compare(rows.ids[other], rows.ids[i]) != 0) continue;
            if (rows.scores[other] != rows.scores[i] || group_of_row(other) != group_of_row(i) ||
                (settings_.labelled && normal(rows.amount(other)) != normal(rows.amount(i))))
                return true;
            break;
        }
        if (slots[slot] == Entries::none) slots[slot] = static_cast<std::uint32_t>(i);
    }
    return false;
}

// Where the first of these scores brings the clock to where it stays, the weights of their groups
// are divided for that moment, as they are for single scores; else that is left to a copy, which
// divides in turn. So an idle group costs what it holds, not what all groups hold.
template <class Tree>
bool Memory<Tree>::divide_for_scores(const BatchColumns& rows,
                                     const std::vector<std::uint32_t>& found,
                                     FadeRescale& division) {
    if (!fading_by_time() || !rows.times || !rows.groups || !clock_.now() || settings_.max_ahead ||
        settings_.horizon)
        return false;
    const auto is_new = [&](std::size_t i) {
        return found[i] == Entries::none || entries_[found[i]].state == EntryState::waiting;
    };
    std::optional<Time> moment;
    for (std::size_t i = 0; i < rows.rows; ++i) {
        if (!is_new(i)) continue;
        if (!moment) moment = clock_.moves(rows.time(i)) ? rows.time(i) : *clock_.now();
        if (*moment < rows.time(i)) return false;
    }
    for (std::size_t i = 0; moment && i < rows.rows; ++i)
        if (is_new(i)) division.prepare({0, false, {}, rows.groups[i], 0, *moment});
    return moment.has_value();
}

// What it will take to record these scores; in a copy where one of them may be refused.
template <class Tree>
void Memory<Tree>::plan_scores(const BatchColumns& rows, const std::vector<std::uint32_t>& hashes,
                               const std::vector<std::uint32_t>& found, Needs& needs,
                               FadeRescale& division) {
    std::optional<Time> latest = clock_.now();
    const bool one_moment = divide_for_scores(rows, found, division);
    const auto see = [&](const Time& moment) {
        if (!latest || *latest < moment) latest = moment;
        if (!clock_.resolves(moment)) needs.copy = true;
    };
    const Amount usual = normal({});
    Amount unusual = usual;
    if (clock_.counts == (rows.times != nullptr)) needs.copy = true;
    if (!rows.times) {
        const auto steps = static_cast<std::int64_t>(rows.rows);
        Time last = Time::whole(steps);
        const std::optional<Time>& now = clock_.now();
        if (now && now->real) last = Time::of(now->number() + static_cast<double>(steps));
        if (now && !now->real && __builtin_add_overflow(now->bits, steps, &last.bits))
            needs.copy = true;
        else
            see(last);
    }
    for (std::size_t i = 0; i < rows.rows; ++i) {
        const Amount weight = settings_.labelled ? normal(rows.amount(i)) : usual;
        const std::uint32_t group = rows.groups ? rows.groups[i] : 0;
        if (weight != usual) unusual = weight;
        if (rows.times) see(rows.time(i));
        if (found[i] == Entries::none) {
            ++needs.entries;
            ++needs.ids;
            continue;
        }
        const Entry& entry = entries_[found[i]];
        if (entry.state != EntryState::waiting) {
            if (known_score(found[i], rows.scores[i] + 0.0, weight, group).refusal !=
                MemoryRefusal::none)
                needs.copy = true;
            continue;
        }
        const Amount amount = settings_.labelled ? weight : entries_.amount(found[i]);
        const Time time = rows.times ? rows.time(i) : clock_.now().value_or(Time{});
        if (!placement_.want(
                {rows.scores[i], entry.label, amount, group, placement_.count + rows.rows, time}))
            needs.copy = true;
        ++needs.entering;
    }
    if (fading_by_time() && !placement_.origin) needs.copy = true;
    for (std::size_t i = 0; fading_by_time() && rows.groups && latest && i < rows.rows; ++i)
        if (!needs.copy) needs.copy = placement_.chain_lags(rows.groups[i], *latest);
    if (latest &&
        plan_tick(*latest, needs, one_moment ? &division : nullptr) != MemoryRefusal::none)
        needs.copy = true;
    if (contradicts_itself(rows, hashes)) needs.copy = true;
    needs.scored += rows.rows;
    if (forgets_ids()) needs.entries = needs.ids = rows.rows;
    entries_.reserve_amount(unusual);
}

template <class Tree>
Result Memory<Tree>::score_many(const BatchColumns& rows, std::uint8_t* answers,
                                std::uint8_t* recorded) {
    std::vector<std::uint32_t> hashes, found;
    look_up(rows, hashes, found);
    placement_.begin_plan();
    Needs needs;
    FadeRescale division(placement_);
    plan_scores(rows, hashes, found, needs, division);
    std::vector<NameCopy> names = copy_names(rows, found);
    return division.kept_if(perform(needs, [&](Memory& in) {
        for (std::size_t i = 0; i < rows.rows; ++i) {
            Result done = in.score_row(rows, i, hashes[i], names[i]);
            if (done.refusal == MemoryRefusal::none) done.refusal = in.placement_.refusal;
            done.row = i;
            if (done.refusal != MemoryRefusal::none) return done;
            if (answers) answers[i] = static_cast<std::uint8_t>(done.answer);
            if (recorded) recorded[i] = done.yes;
        }
        return Result{};
    }));
}

template <class Tree>
Result Memory<Tree>::score_row(const BatchColumns& rows, std::size_t i, std::uint32_t hash,
                               NameCopy& name) {
    const Amount weight = settings_.labelled ? normal(rows.amount(i)) : normal({});
    const std::uint32_t group = rows.groups ? rows.groups[i] : 0;
    const std::uint32_t at = entries_.find(rows.ids[i], hash);
    const double score = rows.scores[i] + 0.0;
    if (at != Entries::none && entries_[at].state != EntryState::waiting)
        return known_score(at, score, weight, group);
    Time time{}, moment;
    if (rows.times) time = rows.time(i);
    MemoryRefusal refusal = MemoryRefusal::none;
    if (!clock_.read(rows.times ? &time : nullptr, moment, refusal)) return refused(refusal);
    return record(rows.ids[i], hash, at, score, weight, moment, !rows.times,
                  rows.answers ? rows.answers[i] : -1, group, name);
}

template <class Tree>
Result Memory<Tree>::label_many(const BatchColumns& rows, std::uint8_t* scored) {
    std::vector<std::uint32_t> hashes, found;
    look_up(rows, hashes, found);
    placement_.begin_plan();
    Needs needs;
    Amount unusual = normal({});
    const auto losses = [&](std::size_t i) {
        return settings_.labelled ? normal({}) : normal(rows.amount(i));
    };
    FadeRescale division(placement_);
    for (std::size_t i = 0; fading_by_time() && !rows.times && i < rows.rows; ++i)
        if (found[i] != Entries::none && changes(found[i], rows.label(i), losses(i), nullptr))
            division.prepare(sample(found[i]));
    for (std::size_t i = 0; i < rows.rows; ++i) {
        plan_label(found[i], rows.label(i), losses(i), needs);
        if (losses(i) != unusual) unusual = losses(i);
    }
    needs.scored = rows.rows;
    if (forgets_ids()) needs.entries = needs.ids = rows.rows;
    entries_.reserve_amount(unusual);
    if (rows.times) entries_.reserve_as_of();
    std::vector<NameCopy> names = copy_names(rows, found);
    // A window that is full lets one go for each that comes, and groups have trees of their own.
    const bool gathers = !fading() && placement_.groups().size() == 1 &&
                         (!last_n() || entries_.count(EntryState::held) + rows.rows <= settings_.n);
    std::vector<Sample> pending;
    if (gathers) pending.reserve(rows.rows);
    return division.kept_if(perform(needs, [&](Memory& in) {
        constexpr std::size_t ahead = 8;
        // A copy finds which row is refused.
        in.placement_.begin_gathering(pending, gathers && &in == this);
        for (std::size_t i = 0; i < rows.rows; ++i) {
            if (!in.placement_.gathers() && i + ahead < rows.rows &&
                found[i + ahead] != Entries::none) {
                const Entry& soon = in.entries_[found[i + ahead]];
                in.placement_.group(in.last_n() ? 0 : soon.group).held->warm(soon.score);
            }
            Time as_of{};
            if (rows.times) as_of = rows.time(i);
            const Result done =
                in.put_label(rows.ids[i], hashes[i], in.entries_.find(rows.ids[i], hashes[i]),
                             rows.label(i), losses(i), rows.times ? &as_of : nullptr, names[i]);
            if (in.placement_.refusal != MemoryRefusal::none)
                return refused(in.placement_.refusal, i);
            if (scored) scored[i] = done.yes;
        }
        in.placement_.end_gathering(pending);  // its memory goes with this call
        return in.placement_.refusal == MemoryRefusal::none ? Result{}
                                                            : refused(in.placement_.refusal);
    }));
}

}  // namespace limen
