// SPDX-License-Identifier: Apache-2.0
//
// Memory: samples go into the trees of their groups and out of them, with their own weights or
// with weights that stand for their age.

#pragma once

#include "memory/memory.hpp"

namespace limen {

template <class Tree>
typename Memory<Tree>::Sample Memory<Tree>::sample(std::uint32_t at) const {
    const Entry& entry = entries_[at];
    Sample made{entry.score, entry.label,   entries_.amount(at), last_n() ? 0 : entry.group,
                count_,      entry.moment()};
    if (by_number() && entry.placed) made.count = static_cast<std::uint64_t>(entries_.place(at));
    return made;
}

// ---- what will be needed ----

// A sample may be added; false when its losses are too large for any tree.
template <class Tree>
bool Memory<Tree>::want(const Sample& sample, const Time* front) {
    if (is_empty(sample.amount)) return true;
    if (fading()) return want_faded(sample, front);
    Losses losses;
    if (!losses_of(sample.amount, sample.label, losses)) return false;
    const Wide size = (Wide{magnitude(losses.below)} + magnitude(losses.above))
                      << (sum_bits() ? finest_bits - sample.amount.bits : 0);
    for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside) {
        Demand& demand = group(of).demand;
        if (demand.samples++ == 0) touched_.push_back(of);
        demand.size += size;
        demand.uneven |= sample.amount != normal({});
        if (demand.bits < sample.amount.bits) demand.bits = sample.amount.bits;
    }
    return true;
}

// The same at its place in time; false also when weights have to be divided first, by the clock
// or by a later time to which it will be moved.
template <class Tree>
bool Memory<Tree>::want_faded(const Sample& sample, const Time* front) {
    const Time* latest = clock_ ? &*clock_ : nullptr;
    if (front && (!latest || *latest < *front)) latest = front;
    for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside) {
        Group& in = group(of);
        const double base = static_cast<double>(base_of(of).value_or(-HalfLives::low));
        double ahead, numbers[2];
        if (!lives_.position(sample.count, sample.time, origin_, base, ahead)) return false;
        if (ahead >= HalfLives::high) return false;
        if (settings_.by_time && latest && lags(of, *latest)) return false;
        if (!scaled(sample, ahead, numbers)) continue;
        int bits = 0;
        Losses losses;
        if (measure(*in.held, sample, numbers, bits, losses) != Refusal::none) return false;
        if (in.demand.samples++ == 0) touched_.push_back(of);
        in.demand.size += (Wide{magnitude(losses.below)} + magnitude(losses.above))
                          << (sum_bits() ? finest_bits - bits : 0);
        if (in.demand.bits < bits) in.demand.bits = bits;
    }
    return true;
}

// A sample may be taken back. One that has faded leaves a remainder, for which a tree may need as
// much memory as for a sample that comes.
template <class Tree>
void Memory<Tree>::want_back(std::uint32_t at) {
    if (!bounded && (!fading() || entries_[at].state != EntryState::held)) return;
    for (std::uint32_t of = entries_[at].group; of != no_group; of = group(of).inside)
        if (group(of).demand.samples++ == 0) touched_.push_back(of);
}

template <class Tree>
bool Memory<Tree>::has_room() const {
    for (const std::uint32_t of : touched_) {
        const HeldSamples<Tree>& held = *group(of).held;
        const Demand& demand = group(of).demand;
        const int bits = demand.bits > held.bits() ? demand.bits : held.bits();
        if (!held.has_room(demand.size >> (sum_bits() ? finest_bits - bits : 0), bits,
                           demand.samples))
            return false;
    }
    return true;
}

template <class Tree>
void Memory<Tree>::reserve_trees() {
    for (const std::uint32_t of : touched_)
        group(of).held->reserve(group(of).demand.samples, group(of).demand.uneven);
}

template <class Tree>
void Memory<Tree>::forget_demands() {
    for (const std::uint32_t of : touched_) group(of).demand = {};
    touched_.clear();
}

// ---- with their own weights ----

template <class Tree>
void Memory<Tree>::hold(const Sample& sample) {
    if (is_empty(sample.amount)) return;
    if (gathers_) return pending_.push_back(sample);  // into memory that was reserved
    Losses own;
    if (!losses_of(sample.amount, sample.label, own)) return refuse(MemoryRefusal::too_large);
    for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside) {
        HeldSamples<Tree>& held = *group(of).held;
        const auto finer = [&] {
            return held.bits() > sample.amount.bits ? held.bits() - sample.amount.bits : 0;
        };
        Losses losses = own;
        if (!shifted(losses, finer())) {
            held.coarsen();
            losses = own;
            if (!shifted(losses, finer())) return refuse(MemoryRefusal::too_large);
        }
        refuse(held.add(sample.score, losses, sample.amount.bits + finer(), settings_.labelled));
    }
}

// Samples that were gathered go into the tree: sorted and together, which is faster, or one by one,
// for which all memory is had.
template <class Tree>
void Memory<Tree>::hold_pending() {
    gathers_ = false;
    if (!add_pending())
        for (const Sample& sample : pending_) hold(sample);
    pending_.clear();
}

template <class Tree>
bool Memory<Tree>::add_pending() {
    constexpr std::size_t many = 64;
    if (pending_.size() < many) return false;
    HeldSamples<Tree>& held = *group(0).held;
    try {
        int bits = held.bits();
        for (const Sample& sample : pending_) bits = std::max(bits, int{sample.amount.bits});
        std::vector<LossRow> rows;
        rows.reserve(pending_.size());
        for (const Sample& sample : pending_) {
            Losses losses;
            if (!losses_of(sample.amount, sample.label, losses) ||
                !shifted(losses, bits - sample.amount.bits))
                return false;
            rows.push_back({ordered_bits(sample.score), {losses.below, losses.above}});
        }
        return held.add_many(rows, bits) == Refusal::none;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

template <class Tree>
void Memory<Tree>::release(const Sample& sample) {
    if (!pending_.empty()) hold_pending();
    Losses own;
    if (is_empty(sample.amount) || !losses_of(sample.amount, sample.label, own)) return;
    for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside) {
        HeldSamples<Tree>& held = *group(of).held;
        Losses losses = own;
        shifted(losses, held.bits() - sample.amount.bits);
        held.remove(sample.score, losses, held.bits(), settings_.labelled);
    }
}

// ---- with weights that stand for their age ----

// Far ahead was refused before.
template <class Tree>
double Memory<Tree>::position(const Sample& sample, double base) const {
    double ahead;
    lives_.position(sample.count, sample.time, origin_, base, ahead);
    return ahead;
}

// Where a sample counts its own weight: at the newest one.
template <class Tree>
double Memory<Tree>::now(double base) const {
    double ahead;
    lives_.position(count_ ? count_ - 1 : 0, clock_.value_or(Time{}), origin_, base, ahead);
    return ahead;
}

// 2^ahead times its weight, or its losses; false when that rounds to nothing.
template <class Tree>
bool Memory<Tree>::scaled(const Sample& sample, double ahead, double (&numbers)[2]) const {
    const double factor = std::pow(2.0, ahead);
    const Unit& unit = group(0).held->unit();
    const double least = (unit.automatic ? std::ldexp(1.0, -finest_bits)
                                         : static_cast<double>(unit.numerator) /
                                               static_cast<double>(unit.denominator)) /
                         2;
    numbers[0] = real(sample.amount.first) * factor;
    numbers[1] = settings_.labelled ? 0 : real(sample.amount.second) * factor;
    for (double& number : numbers)
        if (!(std::fabs(number) > least)) number = 0;
    return numbers[0] != 0 || numbers[1] != 0;
}

// As many places as a number that was scaled needs, and its losses.
template <class Tree>
Refusal Memory<Tree>::measure(const HeldSamples<Tree>& held, const Sample& sample,
                              const double (&numbers)[2], int& bits, Losses& losses) const {
    bits = held.bits_for(numbers[0]);
    if (settings_.labelled) {
        losses = {};
        return held.measure(numbers[0], cost_of(sample.label), bits,
                            sample.label ? losses.below : losses.above);
    }
    const int more = held.bits_for(numbers[1]);
    if (more > bits) bits = more;
    const Refusal refusal = held.measure(numbers[0], 1, bits, losses.below);
    return refusal == Refusal::none ? held.measure(numbers[1], 1, bits, losses.above) : refusal;
}

template <class Tree>
Refusal Memory<Tree>::add(HeldSamples<Tree>& held, const Sample& sample,
                          const double (&numbers)[2]) {
    int bits = 0;
    Losses losses;
    Refusal refusal = measure(held, sample, numbers, bits, losses);
    if (refusal == Refusal::too_large && held.coarsen())
        refusal = measure(held, sample, numbers, bits, losses);
    return refusal == Refusal::none ? held.add(sample.score, losses, bits, settings_.labelled)
                                    : refusal;
}

// Whether it counts anything in group 0.
template <class Tree>
bool Memory<Tree>::hold_faded(const Sample& sample) {
    bool counts = true;
    for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside)
        counts = hold_faded(of, sample);
    return counts;
}

template <class Tree>
bool Memory<Tree>::hold_faded(std::uint32_t of, const Sample& sample) {
    Group& in = group(of);
    HeldSamples<Tree>& held = *in.held;
    if (settings_.by_time && clock_) divide_group(of);
    in.base = base_of(of);
    std::int64_t base = in.base.value_or(-HalfLives::low), bits;
    const auto from = [&] { return static_cast<double>(base); };
    const bool late = settings_.by_time && is_late(sample.time);
    double ahead, numbers[2];
    if (!lives_.position(sample.count, sample.time, origin_, from(), ahead)) {
        refuse(MemoryRefusal::far_time);
        return false;
    }
    if (!late && ahead >= HalfLives::high) {  // only in a copy
        held.fade(HalfLives::to_divide(ahead, bits));
        in.base = base += bits;
        ahead = position(sample, from());
    }
    if (!scaled(sample, ahead, numbers)) return false;
    Refusal refusal = add(held, sample, numbers);
    if (refusal == Refusal::too_large) {  // the same
        bits = static_cast<std::int64_t>(std::floor(late ? now(from()) : ahead));
        if (bits >= 1) {
            held.fade(static_cast<int>(bits < 63 ? bits : 63));
            base += bits;
            const bool counts = scaled(sample, position(sample, from()), numbers);
            refusal = counts ? add(held, sample, numbers) : Refusal::none;
        }
    }
    refuse(refusal);
    in.base = base;
    return true;
}

// The common case of fading: nothing is divided and there is room, so that what is added is
// measured once. False where that is not so, and nothing was changed.
template <class Tree>
bool Memory<Tree>::add_faded(const Sample& sample, const Time* time) {
    HeldSamples<Tree>& held = *group(0).held;
    double ahead, numbers[2];
    int bits = 0;
    Losses losses;
    if (!group(0).base || is_empty(sample.amount) ||
        (time && (!clock_ || !origin_ || too_far_ahead(*time))) ||
        !lives_.position(sample.count, sample.time, origin_, static_cast<double>(*group(0).base),
                         ahead) ||
        ahead >= HalfLives::high || !scaled(sample, ahead, numbers) ||
        measure(held, sample, numbers, bits, losses) != Refusal::none || bits > held.bits() ||
        !held.has_plain_room(magnitude(losses.below) + magnitude(losses.above)))
        return false;
    held.reserve(1);
    if (held.add(sample.score, losses, bits, settings_.labelled) != Refusal::none) return false;
    ++count_;
    if (time && moves(*time)) set_clock(*time);
    return true;
}

template <class Tree>
void Memory<Tree>::release_faded(const Sample& sample) {
    for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside) {
        Group& in = group(of);
        double numbers[2];
        const double base = static_cast<double>(in.base.value_or(0));
        if (!scaled(sample, position(sample, base), numbers)) continue;
        // What is held may be measured in fewer places than when the sample was added.
        for (const double number : numbers) in.held->refine_to(in.held->bits_for(number));
        const auto units = [&](double number, std::int64_t cost) {
            std::int64_t found = 0;
            const Refusal refusal = in.held->measure(number, cost, in.held->bits(), found);
            if (refusal == Refusal::lost) return std::int64_t{0};
            return refusal == Refusal::none ? found : most_units - 1;
        };
        Losses losses;
        if (!settings_.labelled)
            losses = {units(numbers[0], 1), units(numbers[1], 1)};
        else
            (sample.label ? losses.below : losses.above) = units(numbers[0], cost_of(sample.label));
        in.held->withdraw(sample.score, losses, settings_.labelled);
    }
}

// Whether weights are to be divided when time goes on to this moment; `far` when it is so far
// that nothing can be recommended.
template <class Tree>
bool Memory<Tree>::divides_for(const Time& moment, bool& far) const {
    const Group& in = group(0);
    const double base = in.base ? static_cast<double>(*in.base) : -HalfLives::low;
    double ahead;
    far = !lives_.position(0, moment, origin_, base, ahead);
    return !far && ahead >= HalfLives::high && in.base;
}

// Whether the weights of a group are to be divided before it is looked at or added to then.
template <class Tree>
bool Memory<Tree>::lags(std::uint32_t of, const Time& moment) const {
    double ahead;
    return !has_no_base(of) && group(of).base &&
           (!lives_.position(0, moment, origin_, static_cast<double>(*group(of).base), ahead) ||
            ahead >= HalfLives::high);
}

// Divide the weights of a group where that is due: only in a copy.
template <class Tree>
void Memory<Tree>::divide_group(std::uint32_t of) {
    if (!lags(of, *clock_)) return;
    Group& in = group(of);
    std::int64_t bits;
    in.held->fade(HalfLives::to_divide(now(static_cast<double>(*in.base)), bits));
    *in.base += bits;
}

// The same for those around it, too.
template <class Tree>
void Memory<Tree>::divide_groups(std::uint32_t of) {
    for (; of != no_group && clock_; of = group(of).inside) divide_group(of);
}

template <class Tree>
void Memory<Tree>::refresh(std::uint32_t of) {
    if (!fading_by_time() || !clock_) return;
    FadeRescale division(*this);
    division.prepare({0, false, {}, of, 0, *clock_});
    division.kept_if({});
}

// All have aged: the base of group 0 follows at once, others when they are needed.
template <class Tree>
void Memory<Tree>::advance_fading(const Time& moment) {
    Group& in = group(0);
    std::int64_t base = in.base.value_or(-HalfLives::low), bits;
    double ahead;
    if (!lives_.position(0, moment, origin_, static_cast<double>(base), ahead))
        return refuse(MemoryRefusal::far_time);
    const int divide = HalfLives::to_divide(ahead, bits);
    if (divide > 0) in.held->fade(divide);  // only in a copy, or where nothing is held
    in.base = base + bits;
    if (!origin_) origin_ = moment;
}

}  // namespace limen
