// SPDX-License-Identifier: Apache-2.0
//
// Samples in bounded memory: a cut, and by how much it can at most be worse than the best one.
//
// z is what a sample costs above the cut minus what it costs below it, and G(t) the sum of z over
// all scores below t; the cheapest cut has the largest G. Single scores are held until there are
// as many as the capacity. Then neighbours are joined to runs, in which only bounds of G are
// known. The cut that is offered is the end of a run with the largest lower bound; no cut has a G
// above the largest upper bound; the difference of the two is the certificate.
//
// A sample inside a run splits it: the cut at the sample was inside, so its bounds are known. So
// an update loses nothing, and bounds become loose only where runs are joined far from the best
// cut and the best cut moves there later.
//
// add, remove    O(log n), and O(n) each time the capacity is reached, at most once in n / 4 calls
// merge          O(n + m)
//
// One file although long: runs and sums change together or not at all.
//
// See docs/bounded.md for the proof.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/run_bytes.hpp"
#include "core/run_tree.hpp"
#include "samples/held_samples.hpp"
#include "samples/samples.hpp"

namespace limen {

// What is known of all samples together.
struct BoundedSums {
    std::size_t samples_ = 0;
    Interval above_{0, 0};      // the loss when everything lies above the cut
    std::int64_t seen_ = 0;     // the sum of all absolute losses that came and went
    std::int64_t changes_ = 0;  // how many these were
    int step_ = 0;              // how far runs were joined last time; see fewer()
};

template <class Tree = RunTree<>>
class BoundedSamples : public Measure, private BoundedSums {
    using Sums = BoundedSums;

public:
    static constexpr std::size_t least_capacity = 8, most_capacity = std::size_t{1} << 16;
    // Bounds are sums and differences of what was seen, so they stay within 64 bits.
    static constexpr std::int64_t most_seen = std::int64_t{1} << 60;

    BoundedSamples(Unit unit, std::size_t capacity) : Measure(unit), capacity_(capacity) {}

    void set_costs(std::int64_t, std::int64_t) {}

    std::size_t capacity() const { return capacity_; }
    std::size_t samples() const { return samples_; }
    // How many runs are held.
    std::size_t distinct() const { return tree_.size(); }
    std::size_t memory() const {
        return sizeof *this + tree_.memory() + (runs_.capacity() + fewer_.capacity()) * sizeof(Run);
    }
    std::int64_t total() const { return seen_; }
    const Tree& tree() const { return tree_; }

    ScoreSums find(double score) const {
        const auto place = tree_.place(score + 0.0);
        const bool held = !place.before_all() && score <= tree_.at(place).last;
        return {score, 0, 0, held ? 1u : 0u};
    }

    // The cut that is offered, and the least it is worth.
    Cut best() const {
        Cut cut;
        if (tree_.size() == 0) return cut;
        cut.best = offer();
        if (tree_.sums().best >= 0) {
            static_cast<Gap&>(cut) = tree_.best();
        } else {
            cut.upper = tree_.first();
            cut.has_upper = true;
        }
        return cut;
    }
    // The most that its loss can be.
    std::int64_t loss(const Cut& cut) const { return above_.high - cut.best; }
    // By how much that can at most be above the loss of the best cut.
    std::int64_t bound() const {
        const std::int64_t most = std::max<std::int64_t>(0, tree_.sums().highest);
        return most - offer() + (above_.high - above_.low);
    }

    bool coarsen() { return false; }

    // Whether so many samples of this size in all can be added without a refusal.
    bool has_room(Wide size, int bits, std::size_t = 0) const {
        return fits(size, bits, most_seen);
    }
    // The same for one sample in the places in use, nothing negative.
    bool has_plain_room(std::int64_t size) const { return size < most_seen - seen_; }

    // After this, so many calls of add(), remove() and withdraw() find memory; what was promised
    // before is not kept.
    void reserve(std::size_t samples, bool = true) {
        promised_ = 0;
        tree_.reserve(samples, capacity_);
        if (samples > Tree::few || tree_.size() + samples >= capacity_) {
            runs_.reserve(capacity_);
            fewer_.reserve(goal());
        } else {
            release();
        }
        promised_ = samples;
    }

    Refusal add(double score, const Losses& losses, int bits, bool = false) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        if (!fits(size_of(losses), bits, most_seen)) return Refusal::too_large;
        const std::int64_t z = losses.above - losses.below;
        change(score + 0.0, {z, z}, bits, 1);
        count({losses.above, losses.above}, size_of(losses), 1);
        return Refusal::none;
    }

    // Refused where it is certain that there is no such sample: outside all runs, and at a single
    // score whose only sample is another one.
    Refusal remove(double score, const Losses& losses, int bits, bool) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        score += 0.0;
        if (!covers(score)) return Refusal::not_held;
        if (!fits(size_of(losses), bits, 2 * most_seen)) return Refusal::too_large;
        const Run run = tree_.at(tree_.place(score));
        const std::int64_t z = losses.above - losses.below;
        const Wide factor = Wide{1} << (bits > bits_ ? bits - bits_ : 0);
        if (run.single() && run.highest == 1 && run.up * factor != z) return Refusal::not_held;
        change(score, {-z, -z}, bits, -1);
        count({-losses.above, -losses.above}, size_of(losses), -1);
        return Refusal::none;
    }

    void warm(double) const {}
    // One sample for another: nothing is gained here.
    bool replace(double, const Losses&, double, const Losses&, bool) { return false; }

    // ---- samples that fade ----

    void set_fading() {}

    // Measure in at least so many places from now on, if there is room. O(n) where that is new.
    void refine_to(int bits) {
        if (samples_ && fits(0, bits, most_seen)) refine(bits);
    }

    // Divide every loss by 2^bits. Running sums are rounded away from one another, so that they
    // still bound what was divided exactly. Where all of it together is less than one unit, it is
    // dropped. O(n).
    void fade(int bits) {
        if (bits <= 0 || samples_ == 0) return;
        // As many places as there are left cost no rounding: the same units, each worth less.
        const int finer = unit_.automatic ? std::min(finest_bits - bits_, bits) : 0;
        bits -= finer;
        bits_ += finer;
        if (bits == 0) return;
        if (bits > 62 || seen_ >> bits == 0) return clear();
        tree_.transform(Rescaled([=](std::int64_t sum) { return raised(sum, bits); },
                                 [=](std::int64_t sum) { return floored(sum, bits); }));
        above_ = {floored(above_.low, bits), raised(above_.high, bits)};
        seen_ = raised(seen_, bits);
        changes_ = raised(changes_, bits);
    }

    // Take back one sample that has faded, which costs about so much by now: `position` and powers
    // of two are rounded, so what it was added with is known to less than 2^-40 and two units.
    bool withdraw(double score, const Losses& losses, bool) {
        score += 0.0;
        if (!covers(score)) return false;
        const std::int64_t size = size_of(losses), unsure = (size >> 40) + 2;
        const std::int64_t z = losses.above - losses.below;
        change(score, {-z - unsure, -z + unsure}, bits_, -1);
        count({-losses.above - unsure, -losses.above + unsure}, size + unsure, -1);
        return true;
    }

    // ---- many ----

    // All rows in the order given, or on an error none.
    template <class Row>
    Refusal add_many(const std::vector<Row>& rows, int bits) {
        Wide size = 0;
        for (const Row& row : rows) size += size_of({row.below(), row.above()});
        if (!fits(size, bits, most_seen)) return Refusal::too_large;
        const bool alone = promised_ == 0;
        if (promised_ < rows.size()) reserve(rows.size());
        for (const Row& row : rows) add(score_of(row.order), {row.below(), row.above()}, bits);
        if (alone) promised_ = 0;
        if (promised_ == 0) release();
        return Refusal::none;
    }
    // The same; what fails, fails on a copy.
    template <class Row>
    Refusal remove_many(const std::vector<Row>& rows, int bits, bool one_sided, double& missing) {
        BoundedSamples changed = copy();
        for (const Row& row : rows) {
            missing = score_of(row.order);
            const Refusal refusal =
                changed.remove(missing, {row.below(), row.above()}, bits, one_sided);
            if (refusal != Refusal::none) return refusal;
        }
        *this = std::move(changed);
        return Refusal::none;
    }

    BoundedSamples copy() const {
        BoundedSamples other(unit_, capacity_);
        static_cast<Measure&>(other) = *this;
        static_cast<Sums&>(other) = *this;
        other.tree_ = Tree::of(runs());
        return other;
    }

    struct Part {
        std::vector<Run> runs;
        std::size_t samples = 0;
        std::int64_t total = 0, changes = 0;
        Interval above{0, 0};
        int bits = 0;

        // All of it times a factor that is known to 2^-40, in units of so many places.
        Part times(double factor, int places) const {
            const auto about = [=](std::int64_t value) {
                return static_cast<double>(value) * factor;
            };
            const auto unsure = [](double value) { return 2 + std::fabs(value) * 0x1p-40; };
            const auto up = [=](std::int64_t value) {
                return std::llround(about(value) + unsure(about(value)));
            };
            const auto down = [=](std::int64_t value) {
                return std::llround(about(value) - unsure(about(value)));
            };
            Part made = *this;
            std::transform(runs.begin(), runs.end(), made.runs.begin(), Rescaled(up, down));
            made.total = up(total);
            made.above = {down(above.low), up(above.high)};
            made.bits = places;
            return made;
        }
    };

    Part part(bool = false) const { return {runs(), samples_, seen_, changes_, above_, bits_}; }

    // The samples of others besides those held: bounds are added at every cut of either.
    Refusal merge(const std::vector<Part>& parts) {
        int bits = bits_;
        for (const Part& part : parts) bits = std::max(bits, part.bits);
        Wide seen = Wide{seen_} << (bits - bits_);
        for (const Part& part : parts) seen += Wide{part.total} << (bits - part.bits);
        if (seen >= most_seen) return Refusal::too_large;
        BoundedSamples all = copy();
        all.refine(bits);
        for (const Part& part : parts) all.take(part, bits);
        *this = std::move(all);
        return Refusal::none;
    }

    // Everything in words of 64 bits, the same for all who saw the same samples in the same order.
    std::string state() const {
        std::string bytes;
        put_word(bytes, static_cast<std::uint64_t>(bits_));
        put_word(bytes, samples_);
        for (const std::int64_t number :
             {seen_, above_.low, above_.high, changes_, std::int64_t{step_}})
            put_word(bytes, static_cast<std::uint64_t>(number));
        put_word(bytes, tree_.size());
        put_runs(bytes, tree_);
        return bytes;
    }

    bool restore(const std::string& bytes, bool = false) {
        if (bytes.size() % 8 != 0 || bytes.size() < 8 * head) return false;
        const std::uint64_t bits = get_word(bytes, 0);
        const std::size_t words = bytes.size() / 8 - head, size = words / words_of_a_run;
        if (bits > (unit_.automatic ? finest_bits : 0) || words % words_of_a_run ||
            size != get_word(bytes, 7) || size > capacity_)
            return false;
        BoundedSamples read(unit_, capacity_);
        read.bits_ = static_cast<int>(bits);
        read.samples_ = get_word(bytes, 1);
        read.seen_ = static_cast<std::int64_t>(get_word(bytes, 2));
        read.above_ = {static_cast<std::int64_t>(get_word(bytes, 3)),
                       static_cast<std::int64_t>(get_word(bytes, 4))};
        read.changes_ = static_cast<std::int64_t>(get_word(bytes, 5));
        const auto step = static_cast<std::int64_t>(get_word(bytes, 6));
        if (read.seen_ < 0 || read.seen_ >= 2 * most_seen || !read.within(read.above_.low) ||
            !read.within(read.above_.high) || read.above_.low > read.above_.high ||
            read.changes_ < 0 || read.changes_ > most_seen || step < -Closeness::most ||
            step > Closeness::most)
            return false;
        read.step_ = static_cast<int>(step);
        const std::vector<Run> runs = get_runs(bytes, head, size);
        if (!read.plausible(runs) || (read.samples_ == 0 && (size || read.seen_))) return false;
        read.tree_ = Tree::of(runs);
        if (read.bound() < 0) return false;
        *this = std::move(read);
        return true;
    }

    void check() const {
        const auto require = [](bool holds, const char* fault) {
            if (!holds) throw std::logic_error(fault);
        };
        tree_.check();
        require(plausible(runs()), "the runs cannot be");
        require(tree_.size() <= capacity_, "there are too many runs");
        require(bound() >= 0, "the certificate is negative");
    }

private:
    // What the offered cut is worth at least.
    std::int64_t offer() const { return std::max<std::int64_t>(0, tree_.sums().best); }

    static std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }
    static std::int64_t size_of(const Losses& losses) {
        return magnitude(losses.below) + magnitude(losses.above);
    }
    // Divided by 2^bits, rounded up and down.
    static std::int64_t raised(std::int64_t value, int bits) { return -(-value >> bits); }
    static std::int64_t floored(std::int64_t value, int bits) { return value >> bits; }

    void copy_runs(std::vector<Run>& runs) const {
        runs.clear();
        tree_.scan([&](const Run& run) { runs.push_back(run); });
    }
    std::vector<Run> runs() const {
        std::vector<Run> runs;
        runs.reserve(tree_.size());
        copy_runs(runs);
        return runs;
    }
    bool within(std::int64_t sum) const { return magnitude(sum) <= seen_; }

    // To how many runs the tree is reduced, or a few less. Where there are many, more are given up,
    // so that the longer pauses are fewer.
    std::size_t goal() const {
        return capacity_ -
               (capacity_ >= 1024 ? capacity_ * 3 / 8 : std::max<std::size_t>(2, capacity_ / 4));
    }
    bool fits(Wide more, int bits, std::int64_t most) const {
        const int finer = bits > bits_ ? bits - bits_ : 0;
        return (Wide{seen_} << finer) + more < most;
    }
    bool covers(double score) const {
        const auto place = tree_.place(score);
        return samples_ > 0 && !place.before_all() && score <= tree_.last_at(place);
    }

    // Measure in more places from now on.
    void refine(int bits) {
        if (bits <= bits_) return;
        const std::int64_t factor = std::int64_t{1} << (bits - bits_);
        tree_.transform([=](const Run& run) { return times(run, factor); });
        above_ = {above_.low * factor, above_.high * factor};
        seen_ *= factor;
        bits_ = bits;
    }
    static Run times(Run run, std::int64_t factor) {
        run.up *= factor;
        run.low *= factor;
        if (run.single()) return run;
        run.highest *= factor;
        run.lowest *= factor;
        return run;
    }
    static std::vector<Run> times(std::vector<Run> runs, std::int64_t factor) {
        for (Run& run : runs) run = times(run, factor);
        return runs;
    }

    // z at every cut above the score, for one sample more or less. Nothing fails once memory and
    // places have been found.
    void change(double score, const Interval& z, int bits, int sign) {
        if (tree_.size() >= capacity_) {
            runs_.reserve(capacity_);
            copy_runs(runs_);
            hold(runs_);
        }
        const auto place = room_for(score);
        refine(bits);
        apply(place, score, z, sign);
        if (promised_ == 0 || --promised_ == 0) release();
    }

    // Where a score belongs, with memory for a run that is put there.
    typename Tree::Place room_for(double score) {
        const auto place = tree_.place(score);
        if (tree_.has_room(place)) return place;
        if (promised_ == 0) {
            tree_.reserve(place);
            return place;
        }
        copy_runs(runs_);
        tree_.load(runs_);
        return tree_.place(score);
    }
    void release() {
        if (runs_.capacity() == 0) return;
        runs_ = std::vector<Run>();
        fewer_ = std::vector<Run>();
        tree_.trim();
    }

    void apply(const typename Tree::Place& place, double score, const Interval& z, int sign) {
        if (place.before_all() || score > tree_.last_at(place))
            return tree_.insert(place, {score, score, z.high, z.low, 1, 0});
        Run run = tree_.at(place);
        if (!run.single() && score != run.first && score != run.last) {
            if (z.low || z.high) part_run(place, run, score, z);
            return;
        }
        run.up += z.high;
        run.low += z.low;
        if (run.single()) {
            if (run.highest && (run.highest += sign) == 0) return tree_.erase(place);
        } else if (score == run.first) {
            run.highest += z.high;
            run.lowest += z.low;
        }
        tree_.put(place, run);
    }

    // The cut next to the score, above it for z > 0 and else below it, was inside the run, so its
    // bounds are known.
    void part_run(const typename Tree::Place& place, const Run& run, double score,
                  const Interval& z) {
        const bool above = z.high > 0;
        auto [left, right] = split(run, above ? next_above(score) : score);
        Run& changed = above ? left : right;
        changed.up += z.high;
        changed.low += z.low;
        if (!above && !right.single()) right.highest = z.high, right.lowest = z.low;
        tree_.put(place, left);
        tree_.insert(place, right);
    }

    // Hold these runs, joined where there are too many.
    void hold(const std::vector<Run>& runs) {
        if (runs.size() < capacity_) return tree_.load(runs);
        fewer_.reserve(goal());
        // What cannot fail.
        const double mean =
            changes_ == 0 ? 0 : static_cast<double>(seen_) / static_cast<double>(changes_);
        std::int64_t low = 0, best = 0;  // what the best cut is known to be worth
        for (const Run& run : runs) best = std::max(best, low += run.low);
        Closeness how{best, std::max(mean, 0x1p-20), step_};
        fewer(runs, goal(), how, fewer_);
        tree_.load(fewer_);
        step_ = how.step;
    }

    // The runs of another object, in units of `bits` places.
    void take(const Part& part, int bits) {
        const std::int64_t factor = std::int64_t{1} << (bits - part.bits);
        // First what was seen: hold() needs its mean.
        samples_ += part.samples;
        above_ = {above_.low + part.above.low * factor, above_.high + part.above.high * factor};
        seen_ += part.total * factor;
        changes_ = std::min(changes_ + part.changes, most_seen);  // bytes may claim any number
        const std::vector<Run> both = overlaid(runs(), times(part.runs, factor));
        tree_.reserve_runs(std::min(both.size(), capacity_));
        hold(both);
        release();
    }

    void count(const Interval& above, std::int64_t size, int sign) {
        samples_ = sign > 0 ? samples_ + 1 : samples_ - 1;
        above_ = {above_.low + above.low, above_.high + above.high};
        seen_ += size;
        ++changes_;
        if (samples_ == 0) clear();
    }
    // Be like new, but keep what was promised.
    void clear() {
        bits_ = 0;
        static_cast<Sums&>(*this) = {};
        tree_.clear();
        if (!promised_) tree_ = {};
    }

    // Whether samples could have left runs like these: in order, and every lower bound below its
    // upper one and no larger than all that was seen.
    bool plausible(const std::vector<Run>& runs) const {
        const auto in_range = [&](std::int64_t sum) { return within(sum); };
        std::int64_t up = 0, low = 0;
        if (!in_order(runs)) return false;
        for (const Run& run : runs) {
            for (const std::int64_t part : {run.up, run.low, run.highest, run.lowest})
                if (part > 2 * seen_ || part < -2 * seen_) return false;
            if (run.single() ? run.highest < 0 || run.lowest != 0
                             : !in_range(up + run.highest) || !in_range(low + run.lowest) ||
                                   up + run.highest < low + run.lowest)
                return false;
            up += run.up;
            low += run.low;
            if (!in_range(up) || !in_range(low) || low > up) return false;
        }
        return true;
    }

    static constexpr std::size_t head = 8;  // the words before the runs in state()

    Tree tree_;
    std::size_t capacity_;

    // Memory for the changes that were promised.
    std::size_t promised_ = 0;
    std::vector<Run> runs_, fewer_;
};

// Memories work on these as on samples that are all held.
template <int leaf_slots, int branch_slots>
class HeldSamples<RunTree<leaf_slots, branch_slots>>
    : public BoundedSamples<RunTree<leaf_slots, branch_slots>> {
public:
    using Bounded = BoundedSamples<RunTree<leaf_slots, branch_slots>>;
    using Bounded::Bounded;
    HeldSamples copy() const { return HeldSamples(Bounded::copy()); }

private:
    explicit HeldSamples(Bounded&& samples) : Bounded(std::move(samples)) {}
};
using BoundedHeld = HeldSamples<RunTree<>>;

}  // namespace limen
