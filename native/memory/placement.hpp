// SPDX-License-Identifier: Apache-2.0
//
// How samples lie in the trees of their groups: with their own weights, or with weights that stand
// for their age.
//
// A change is planned before it is made: want() each sample that may come, see whether there
// is room for all of them, reserve() it, and then hold() and release(), which do not fail. Where
// there is no room, or weights are to be divided first, that happens to a copy, in which
// `refusal` says why it is not kept.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/clock.hpp"
#include "memory/fading.hpp"
#include "memory/rules.hpp"
#include "memory/terms.hpp"

namespace limen {

template <class Tree>
class Placement : protected MemoryRules {
public:
    static constexpr std::uint32_t no_group = ~std::uint32_t{0};
    // Single samples are not known any more: to take one back may need memory as well.
    static constexpr bool bounded = requires(const HeldSamples<Tree>& held) { held.bound(); };

    // A sample that is to be held: what an entry knows, or an update without one.
    struct Sample {
        double score;
        bool label;
        Amount amount;
        std::uint32_t group;
        std::uint64_t count;  // fading by number: how many came before
        Time time;
    };

    // What is going to be added to a tree at most.
    struct Demand {
        std::size_t samples = 0;
        Wide size = 0;  // in 2^-sum_bits units
        int bits = 0;
        bool uneven = false;  // some weigh other than 1
    };
    struct Group {
        std::uint32_t inside;
        HeldSamples<Tree>* held;
        std::optional<std::int64_t> base;  // fading: where a sample is held with its own weight
        Demand demand;
    };
    // `clock` must outlive this.
    Placement(HeldSamples<Tree>& held, const MemorySettings& settings, const Clock& clock)
        : MemoryRules(settings), clock_(clock), lives_(settings.period, settings.by_time) {
        touched_.reserve(1);
        add_group(held, no_group);
    }
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;

    // ---- groups ----

    std::vector<Group>& groups() { return groups_; }
    const std::vector<Group>& groups() const { return groups_; }
    Group& group(std::uint32_t of) { return groups_[of]; }
    const Group& group(std::uint32_t of) const { return groups_[of]; }
    std::uint32_t add_group(HeldSamples<Tree>& held, std::uint32_t inside) {
        reserve_group();
        groups_.push_back({inside, &held, {}, {}});
        if (fading()) held.set_fading();
        return static_cast<std::uint32_t>(groups_.size() - 1);
    }
    // After this, add_group() does not fail.
    void reserve_group() {
        if (groups_.size() == groups_.capacity()) groups_.reserve(2 * groups_.size() + 1);
        touched_.reserve(groups_.capacity());
    }
    // The group that answers for this one: it holds enough samples, or is the one of all.
    std::uint32_t answering(std::uint32_t of) const {
        while (of != 0 && group(of).held->samples() < settings_.at_least) of = group(of).inside;
        return of;
    }
    int sum_bits() const { return group(0).held->unit().automatic ? finest_bits : 0; }

    // Become a copy of another one, with these trees for those of its groups.
    void copy(const Placement& of, std::vector<HeldSamples<Tree>>& trees) {
        groups_ = of.groups_;
        touched_.reserve(groups_.size());
        for (std::size_t i = 0; i < trees.size(); ++i) {
            groups_[i].held = &trees[i];
            groups_[i].demand = {};
        }
        count = of.count;
        origin = of.origin;
    }
    void swap(Placement& other) noexcept {
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            if (groups_[i].held != other.groups_[i].held)
                std::swap(*groups_[i].held, *other.groups_[i].held);
            std::swap(groups_[i].base, other.groups_[i].base);
        }
        std::swap(count, other.count);
        std::swap(origin, other.origin);
    }

    // Weights are divided ahead of a call, so that it finds them as it needs them; where the call
    // then does not happen, they are what they were.
    class FadeRescale {
    public:
        explicit FadeRescale(Placement& of) : of_(of) {}
        ~FadeRescale() {
            for (Before& before : before_) put(before);
        }
        FadeRescale(const FadeRescale&) = delete;
        FadeRescale& operator=(const FadeRescale&) = delete;

        // For a sample of this place and time. O(n), every ten half-lives.
        void prepare(const Sample& coming) {
            if (!of_.fading()) return;
            const bool late = of_.settings_.by_time && of_.clock_.is_late(coming.time);
            const Time& time = late ? *of_.clock_.now() : coming.time;
            for (std::uint32_t in = coming.group; in != no_group; in = of_.group(in).inside) {
                Group& group = of_.group(in);
                double ahead;
                std::int64_t bits;
                if (of_.has_no_base(in) || !group.base ||
                    !of_.lives_.position(coming.count, time, of_.origin,
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

        Placement& of_;
        std::vector<Before> before_;
    };

    // ---- the plan of a change ----

    // Nothing is wanted yet.
    void begin_plan() {
        for (const std::uint32_t of : touched_) group(of).demand = {};
        touched_.clear();
    }
    // A sample may be added; false when its losses are too large for any tree.
    bool want(const Sample& sample, const Time* front = nullptr) {
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
    // A sample may be taken back: a tree may need as much memory for that as for one that comes.
    void want_back(std::uint32_t of) {
        for (; of != no_group; of = group(of).inside)
            if (group(of).demand.samples++ == 0) touched_.push_back(of);
    }
    // Whether all trees can hold what may come besides what they hold.
    bool has_room() const {
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
    // Make sure that what may come finds memory.
    void reserve() {
        for (const std::uint32_t of : touched_)
            group(of).held->reserve(group(of).demand.samples, group(of).demand.uneven);
    }
    // The common case, in whole numbers of the unit in use and far from any limit.
    bool has_plain_room(const Amount& amount, bool label) const {
        Losses losses;
        return !fading() && in_use(amount, label, losses) &&
               group(0).held->has_plain_room(magnitude(losses.below) + magnitude(losses.above));
    }

    // ---- the change ----

    // Whether it counts anything in group 0.
    bool hold(const Sample& sample) {
        if (fading()) return hold_faded(sample);
        hold_own(sample);
        return true;
    }
    void release(const Sample& sample) {
        return fading() ? release_faded(sample) : release_own(sample);
    }
    // Let a sample be replaced by another, which is faster than one after the other. False where
    // that cannot be: nothing was changed.
    bool replace(double old, bool old_label, const Amount& old_amount, double score, bool label,
                 const Amount& amount) {
        if (!pending_.empty()) return false;
        Losses gone, losses;
        return in_use(old_amount, old_label, gone) && in_use(amount, label, losses) &&
               group(0).held->replace(old, gone, score, losses, settings_.labelled);
    }
    // The common case of fading: nothing is divided and there is room, so that what is added is
    // measured once. False where that is not so, and nothing was changed.
    bool add_faded(const Sample& sample, const Time* time) {
        HeldSamples<Tree>& held = *group(0).held;
        double ahead, numbers[2];
        int bits = 0;
        Losses losses;
        if (!group(0).base || is_empty(sample.amount) ||
            (time && (!clock_.now() || !origin || clock_.too_far_ahead(*time))) ||
            !lives_.position(sample.count, sample.time, origin, static_cast<double>(*group(0).base),
                             ahead) ||
            ahead >= HalfLives::high || !scaled(sample, ahead, numbers) ||
            measure(held, sample, numbers, bits, losses) != Refusal::none || bits > held.bits() ||
            !held.has_plain_room(magnitude(losses.below) + magnitude(losses.above)))
            return false;
        held.reserve(1);
        if (held.add(sample.score, losses, bits, settings_.labelled) != Refusal::none) return false;
        ++count;
        return true;
    }
    // Samples that come may be gathered in memory that was reserved, until end_gathering() or until
    // one has to leave.
    void begin_gathering(std::vector<Sample>& memory, bool gathers) {
        pending_.swap(memory);
        gathers_ = gathers;
    }
    bool gathers() const { return gathers_; }
    void end_gathering(std::vector<Sample>& memory) {
        hold_pending();
        pending_.swap(memory);
    }
    void refuse(MemoryRefusal refusal) {
        if (this->refusal == MemoryRefusal::none) this->refusal = refusal;
    }
    void refuse(Refusal refusal) {
        if (refusal == Refusal::none) return;
        refuse(refusal == Refusal::too_many ? MemoryRefusal::too_many : MemoryRefusal::too_large);
    }

    // ---- weights that stand for their age ----

    // Far ahead was refused before.
    double position(const Sample& sample, double base) const {
        double ahead;
        lives_.position(sample.count, sample.time, origin, base, ahead);
        return ahead;
    }
    // Where a sample counts its own weight: at the newest one.
    double now(double base) const {
        double ahead;
        lives_.position(count ? count - 1 : 0, clock_.now().value_or(Time{}), origin, base, ahead);
        return ahead;
    }
    // Whether a sample of this time, that weighs 1, would count anything.
    bool counts_at(const Time& time) const {
        const Group& in = group(0);
        if (!fading_by_time() || !in.base) return true;
        Sample one{0, false, normal({}), 0, 0, time};
        double numbers[2];
        return scaled(one, position(one, static_cast<double>(*in.base)), numbers);
    }
    // Where nothing is held but in group 0, weights have no base yet: it will be that of group 0.
    bool has_no_base(std::uint32_t of) const { return of != 0 && group(of).held->samples() == 0; }
    // Whether a group, or one around it, lags.
    bool chain_lags(std::uint32_t of, const Time& moment) const {
        while (of != no_group && !lags(of, moment)) of = group(of).inside;
        return of != no_group;
    }
    // Whether weights are to be divided when time goes on to this moment; `far` when it is so far
    // that nothing can be recommended.
    bool divides_for(const Time& moment, bool& far) const {
        const Group& in = group(0);
        const double base = in.base ? static_cast<double>(*in.base) : -HalfLives::low;
        double ahead;
        far = !lives_.position(0, moment, origin, base, ahead);
        return !far && ahead >= HalfLives::high && in.base;
    }
    // The same for those around it, too.
    void divide_groups(std::uint32_t of) {
        for (; of != no_group && clock_.now(); of = group(of).inside) divide_group(of);
    }
    // Divide the weights of all groups as far as they can be by now.
    void divide_all() {
        for (Group& in : groups_) {
            if (!fading()) break;
            if (!in.base) in.base = group(0).base;
            std::int64_t bits;
            const int divide = HalfLives::to_divide(now(static_cast<double>(*in.base)), bits);
            in.held->fade(divide);
            *in.base += bits;
        }
    }
    // All have aged: the base of group 0 follows at once, others when they are needed.
    void advance_fading(const Time& moment) {
        Group& in = group(0);
        std::int64_t base = in.base.value_or(-HalfLives::low), bits;
        double ahead;
        if (!lives_.position(0, moment, origin, static_cast<double>(base), ahead))
            return refuse(MemoryRefusal::far_time);
        const int divide = HalfLives::to_divide(ahead, bits);
        if (divide > 0) in.held->fade(divide);  // only in a copy, or where nothing is held
        in.base = base + bits;
        if (!origin) origin = moment;
    }
    // Let a group without events drop what has faded by now. O(n) at most.
    void refresh(std::uint32_t of) {
        if (!fading_by_time() || !clock_.now()) return;
        FadeRescale division(*this);
        division.prepare({0, false, {}, of, 0, *clock_.now()});
        division.kept_if({});
    }
    // What a group of another memory holds, in our terms.
    typename HeldSamples<Tree>::Part part_of(const Placement& other, std::uint32_t of,
                                             std::uint32_t into) const {
        auto part = other.group(of).held->part(fading());
        if (!fading() || part.samples == 0) return part;
        double ahead;
        lives_.position(0, *other.origin, origin, 0, ahead);
        ahead += static_cast<double>(*other.group(of).base - *group(into).base);
        const double factor = std::pow(2.0, ahead + sum_bits() - part.bits);
        if constexpr (bounded) {
            return part.times(factor, sum_bits());
        } else {
            std::vector<ScoreSums> all;
            all.swap(part.held);
            std::vector<Squares> squares;
            squares.swap(part.squares);
            const auto faded = [=](Wide sum) {
                return static_cast<Wide>(static_cast<double>(sum) * factor * factor + 0.5);
            };
            part = {};
            part.bits = sum_bits();
            for (std::size_t i = 0; i < all.size(); ++i) {
                ScoreSums held = all[i];
                held.below = std::llround(static_cast<double>(held.below) * factor);
                held.above = std::llround(static_cast<double>(held.above) * factor);
                if (held.below == 0 && held.above == 0) continue;
                part.samples += held.count;
                part.total += std::llabs(held.below) + std::llabs(held.above);
                part.held.push_back(held);
                if (!squares.empty())
                    part.squares.push_back({faded(squares[i].below), faded(squares[i].above)});
            }
            return part;
        }
    }

    // ---- what the trees answer ----

    Wide loss(std::uint32_t of = 0) const {
        const HeldSamples<Tree>& held = *group(of).held;
        const int finer = sum_bits() ? finest_bits - held.bits() : 0;
        if constexpr (std::is_same_v<Tree, HullTree>) {
            const Costs& costs = settings_.account;
            const HullCut cut = held.tree().best(costs.false_positive, costs.false_negative);
            return (Wide{costs.false_positive} * (held.tree().totals().above - cut.under.above) +
                    Wide{costs.false_negative} * cut.under.below)
                   << finer;
        } else {
            return Wide{held.loss(held.best())} << finer;
        }
    }
    double threshold(std::uint32_t of = 0) const {
        const HeldSamples<Tree>& held = *group(of).held;
        if constexpr (std::is_same_v<Tree, HullTree>)
            return threshold_of(held.tree().best(settings_.account.false_positive,
                                                 settings_.account.false_negative));
        else
            return threshold_of(held.best());
    }
    double scale(std::uint32_t of = 0) const {
        const std::optional<std::int64_t>& base = group(of).base;
        return base ? std::pow(2.0, now(static_cast<double>(*base))) : 1.0;
    }

    std::uint64_t count = 0;  // fading: samples so far
    std::optional<Time> origin;
    MemoryRefusal refusal = MemoryRefusal::none;  // in a copy: why it is not kept

private:
    // Losses in the places in use of group 0; false where they need more, or are too large.
    bool in_use(const Amount& amount, bool label, Losses& losses) const {
        const int finer = group(0).held->bits() - amount.bits;
        return finer >= 0 && losses_of(amount, label, losses) && shifted(losses, finer);
    }
    // With its own weight.
    void hold_own(const Sample& sample) {
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
            refuse(
                held.add(sample.score, losses, sample.amount.bits + finer(), settings_.labelled));
        }
    }
    void release_own(const Sample& sample) {
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
    // Samples that were gathered go into the tree: sorted and together, which is faster, or one by
    // one, for which all memory is had.
    void hold_pending() {
        gathers_ = false;
        if (!add_pending())
            for (const Sample& sample : pending_) hold_own(sample);
        pending_.clear();
    }
    bool add_pending() {
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
    // The same at its place in time; false also when weights have to be divided first, by the clock
    // or by a later time to which it will be moved.
    bool want_faded(const Sample& sample, const Time* front) {
        const Time* latest = clock_.now() ? &*clock_.now() : nullptr;
        if (front && (!latest || *latest < *front)) latest = front;
        for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside) {
            Group& in = group(of);
            const double base = static_cast<double>(base_of(of).value_or(-HalfLives::low));
            double ahead, numbers[2];
            if (!lives_.position(sample.count, sample.time, origin, base, ahead)) return false;
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
    // Whether it counts anything in group 0.
    bool hold_faded(const Sample& sample) {
        bool counts = true;
        for (std::uint32_t of = sample.group; of != no_group; of = group(of).inside)
            counts = hold_faded(of, sample);
        return counts;
    }
    bool hold_faded(std::uint32_t of, const Sample& sample) {
        Group& in = group(of);
        HeldSamples<Tree>& held = *in.held;
        if (settings_.by_time && clock_.now()) divide_group(of);
        in.base = base_of(of);
        std::int64_t base = in.base.value_or(-HalfLives::low), bits;
        const auto from = [&] { return static_cast<double>(base); };
        const bool late = settings_.by_time && clock_.is_late(sample.time);
        double ahead, numbers[2];
        if (!lives_.position(sample.count, sample.time, origin, from(), ahead)) {
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
    void release_faded(const Sample& sample) {
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
                (sample.label ? losses.below : losses.above) =
                    units(numbers[0], cost_of(sample.label));
            in.held->withdraw(sample.score, losses, settings_.labelled);
        }
    }
    // 2^ahead times its weight, or its losses; false when that rounds to nothing.
    bool scaled(const Sample& sample, double ahead, double (&numbers)[2]) const {
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
    Refusal measure(const HeldSamples<Tree>& held, const Sample& sample, const double (&numbers)[2],
                    int& bits, Losses& losses) const {
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
    Refusal add(HeldSamples<Tree>& held, const Sample& sample, const double (&numbers)[2]) {
        int bits = 0;
        Losses losses;
        Refusal refusal = measure(held, sample, numbers, bits, losses);
        if (refusal == Refusal::too_large && held.coarsen())
            refusal = measure(held, sample, numbers, bits, losses);
        return refusal == Refusal::none ? held.add(sample.score, losses, bits, settings_.labelled)
                                        : refusal;
    }
    std::optional<std::int64_t> base_of(std::uint32_t of) const {
        return group(has_no_base(of) ? 0 : of).base;
    }
    // Whether the weights of a group are to be divided before it is looked at or added to then.
    bool lags(std::uint32_t of, const Time& moment) const {
        double ahead;
        return !has_no_base(of) && group(of).base &&
               (!lives_.position(0, moment, origin, static_cast<double>(*group(of).base), ahead) ||
                ahead >= HalfLives::high);
    }
    // Divide the weights of a group where that is due: only in a copy.
    void divide_group(std::uint32_t of) {
        if (!lags(of, *clock_.now())) return;
        Group& in = group(of);
        std::int64_t bits;
        in.held->fade(HalfLives::to_divide(now(static_cast<double>(*in.base)), bits));
        *in.base += bits;
    }

    const Clock& clock_;
    HalfLives lives_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> touched_;  // groups with a demand
    // Of a batch: samples that go into the tree together, unless one has to leave before.
    std::vector<Sample> pending_;
    bool gathers_ = false;
};

}  // namespace limen
