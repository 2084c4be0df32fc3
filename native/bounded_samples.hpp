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
// cut and the best cut moves there later. For that, from `least_for_grid` on, a grid of fixed
// buckets lies beside: exact at its borders in any order of arrival.
//
// add, remove    O(log n), and O(n) each time the capacity is reached, at most once in n / 4 calls
// merge          O(n + m)
//
// See docs/bounded.md for the proof.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "held_samples.hpp"
#include "run_tree.hpp"
#include "score_grid.hpp"

namespace limen {

template <class Tree = RunTree<>>
class BoundedSamples : public Measure {
public:
    static constexpr std::size_t least_capacity = 8, most_capacity = std::size_t{1} << 16;
    static constexpr std::size_t least_for_grid = 1024;
    // Bounds are sums and differences of what was seen, so they stay within 64 bits.
    static constexpr std::int64_t most_seen = std::int64_t{1} << 60;

    BoundedSamples(Unit unit, std::size_t capacity) : Measure(unit), capacity_(capacity) {}

    void set_costs(std::int64_t, std::int64_t) {}

    std::size_t capacity() const { return capacity_; }
    std::size_t samples() const { return samples_; }
    // How many runs are held, those of the grid included.
    std::size_t distinct() const { return tree_.size() + (grid_ ? grid_->tree().size() : 0); }
    std::size_t memory() const {
        return sizeof *this + tree_.memory() + (grid_ ? grid_->tree().memory() : 0);
    }
    std::int64_t total() const { return seen_; }
    const Tree& tree() const { return tree_; }
    const std::optional<ScoreGrid<Tree>>& grid() const { return grid_; }

    Held find(double score) const {
        const auto place = tree_.place(score + 0.0);
        const bool held = !place.before_all() && score <= tree_.at(place).last;
        return {score, 0, 0, held ? 1u : 0u};
    }

    // The cut that is offered, and the least it is worth.
    Cut best() const {
        Cut cut = offered(tree_);
        if (grid_ && offer(grid_->tree()) > cut.best) cut = offered(grid_->tree());
        return cut;
    }
    // The most that its loss can be.
    std::int64_t loss(const Cut& cut) const { return above_ - cut.best; }
    // By how much its loss can at most be above that of the best cut.
    std::int64_t bound() const {
        std::int64_t most = highest(tree_), worth = offer(tree_);
        if (grid_) {
            most = std::min(most, highest(grid_->tree()));
            worth = std::max(worth, offer(grid_->tree()));
        }
        return most - worth;
    }

    bool coarsen() { return false; }

    Refusal add(double score, const Losses& losses, int bits, bool = false) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        if (!fits(size_of(losses), bits)) return Refusal::too_large;
        score += 0.0;
        change(score, losses.above - losses.below, bits, 1);
        count(losses, 1);
        return Refusal::none;
    }

    // Refused where it is certain that there is no such sample: outside all runs, and at a single
    // score whose only sample is another one.
    Refusal remove(double score, const Losses& losses, int bits, bool) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        score += 0.0;
        const auto place = tree_.place(score);
        if (place.before_all() || score > tree_.at(place).last || samples_ == 0)
            return Refusal::not_held;
        if (!fits(size_of(losses), bits)) return Refusal::too_large;
        const Run& run = tree_.at(place);
        const std::int64_t z = losses.above - losses.below;
        const Wide factor = Wide{1} << (bits > bits_ ? bits - bits_ : 0);
        if (run.single() && run.highest == 1 && run.up * factor != z) return Refusal::not_held;
        change(score, -z, bits, -1);
        count(losses, -1);
        return Refusal::none;
    }

    // All rows in the order given, or on an error none: what fails, fails on a copy.
    template <class Row>
    Refusal add_many(const std::vector<Row>& rows, int bits) {
        return all_or_none(rows, bits, [](BoundedSamples& changed, const Row& row, int places) {
            return changed.add(score_of(row.order), {row.below(), row.above()}, places);
        });
    }
    template <class Row>
    Refusal remove_many(const std::vector<Row>& rows, int bits, bool one_sided, double& missing) {
        return all_or_none(rows, bits, [&](BoundedSamples& changed, const Row& row, int places) {
            missing = score_of(row.order);
            return changed.remove(missing, {row.below(), row.above()}, places, one_sided);
        });
    }

    BoundedSamples copy() const {
        BoundedSamples other(unit_, capacity_);
        static_cast<Measure&>(other) = *this;
        other.tree_ = Tree::of(runs_of(tree_));
        if (grid_) other.grid_ = ScoreGrid<Tree>::of(grid_->runs(), grid_->shift(), most_buckets());
        other.samples_ = samples_;
        other.above_ = above_;
        other.seen_ = seen_;
        other.changes_ = changes_;
        other.step_ = step_;
        return other;
    }

    struct Part {
        std::vector<Run> runs;
        std::vector<Run> buckets;
        int shift = -1;  // without a grid
        std::size_t samples = 0;
        std::int64_t total = 0, above = 0, changes = 0;
        int bits = 0;
    };

    Part part() const {
        Part taken{runs_of(tree_), {}, -1, samples_, seen_, above_, changes_, bits_};
        if (grid_) taken.buckets = grid_->runs(), taken.shift = grid_->shift();
        return taken;
    }

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
        put(bytes, static_cast<std::uint64_t>(bits_));
        put(bytes, samples_);
        for (const std::int64_t number : {seen_, above_, changes_, std::int64_t{step_}})
            put(bytes, static_cast<std::uint64_t>(number));
        put(bytes, tree_.size());
        put(bytes, grid_ ? static_cast<std::uint64_t>(grid_->shift()) : 64);
        put_runs(bytes, tree_);
        if (grid_) put_runs(bytes, grid_->tree());
        return bytes;
    }

    bool restore(const std::string& bytes, bool = false) {
        if (bytes.size() % 8 != 0 || bytes.size() < 8 * head) return false;
        const std::uint64_t bits = get(bytes, 0), size = get(bytes, 6), shift = get(bytes, 7);
        const std::size_t words = bytes.size() / 8 - head, each = words_of_a_run;
        if (bits > (unit_.automatic ? finest_bits : 0) || words % each || size > words / each ||
            shift > 64 || (shift == 64 && size != words / each) ||
            (shift < 64 && capacity_ < least_for_grid))
            return false;
        BoundedSamples read(unit_, capacity_);
        read.bits_ = static_cast<int>(bits);
        read.samples_ = get(bytes, 1);
        read.seen_ = static_cast<std::int64_t>(get(bytes, 2));
        read.above_ = static_cast<std::int64_t>(get(bytes, 3));
        read.changes_ = static_cast<std::int64_t>(get(bytes, 4));
        const auto step = static_cast<std::int64_t>(get(bytes, 5));
        if (read.seen_ < 0 || read.seen_ >= most_seen || magnitude(read.above_) > read.seen_ ||
            read.changes_ < 0 || step < -Closeness::most || step > Closeness::most)
            return false;
        read.step_ = static_cast<int>(step);
        const std::vector<Run> runs = get_runs(bytes, head, size);
        std::vector<Run> buckets = get_runs(bytes, head + each * size, words / each - size);
        if (!read.plausible(runs) || !read.plausible(buckets)) return false;
        if (shift < 64) {
            const std::size_t given = buckets.size();
            if (given > most_buckets()) return false;
            read.grid_ = ScoreGrid<Tree>::of(std::move(buckets), static_cast<int>(shift), given);
            if (read.grid_->tree().size() != given) return false;
        }
        if (size > read.limit() || (read.samples_ == 0 && (size || read.seen_))) return false;
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
        require(plausible(runs_of(tree_)), "the runs cannot be");
        require(tree_.size() <= limit(), "there are too many runs");
        require(bound() >= 0, "the certificate is negative");
        if (!grid_) return;
        grid_->tree().check();
        require(plausible(grid_->runs()), "the buckets cannot be");
        require(grid_->tree().size() <= most_buckets(), "there are too many buckets");
    }

private:
    static std::int64_t offer(const Tree& tree) {
        return std::max<std::int64_t>(0, tree.sums().best);
    }
    static std::int64_t highest(const Tree& tree) {
        return std::max<std::int64_t>(0, tree.sums().highest);
    }
    static Cut offered(const Tree& tree) {
        Cut cut;
        if (tree.size() == 0) return cut;
        cut.best = offer(tree);
        if (tree.sums().best >= 0) {
            static_cast<Gap&>(cut) = tree.best();
        } else {
            cut.upper = tree.first();
            cut.has_upper = true;
        }
        return cut;
    }

    static std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }
    static std::int64_t size_of(const Losses& losses) {
        return magnitude(losses.below) + magnitude(losses.above);
    }
    static std::int64_t above(std::int64_t value, int bits) { return -(-value >> bits); }
    static std::int64_t below(std::int64_t value, int bits) { return value >> bits; }

    static std::vector<Run> runs_of(const Tree& tree) {
        std::vector<Run> runs;
        runs.reserve(tree.size());
        tree.scan([&](const Run& run) { runs.push_back(run); });
        return runs;
    }

    std::size_t most_buckets() const { return capacity_ / 4; }
    std::size_t limit() const { return grid_ ? capacity_ - most_buckets() : capacity_; }
    bool fits(Wide more, int bits) const {
        const int finer = bits > bits_ ? bits - bits_ : 0;
        return (Wide{seen_} << finer) + more < most_seen;
    }

    // Measure in more places from now on.
    void refine(int bits) {
        if (bits <= bits_) return;
        const std::int64_t factor = std::int64_t{1} << (bits - bits_);
        Tree tree = Tree::of(times(runs_of(tree_), factor));
        if (grid_)
            grid_ =
                ScoreGrid<Tree>::of(times(grid_->runs(), factor), grid_->shift(), most_buckets());
        tree_ = std::move(tree);
        above_ *= factor;
        seen_ *= factor;
        bits_ = bits;
    }
    static std::vector<Run> times(std::vector<Run> runs, std::int64_t factor) {
        for (Run& run : runs) {
            run.up *= factor;
            run.low *= factor;
            if (run.single()) continue;
            run.highest *= factor;
            run.lowest *= factor;
        }
        return runs;
    }

    // z at every cut above the score, for one sample more or less. Nothing fails once memory and
    // places have been found.
    void change(double score, std::int64_t z, int bits, int sign) {
        if (tree_.size() >= limit()) hold(runs_of(tree_));
        refine(bits);
        if (grid_) grid_->make_room(most_buckets());
        const auto place = tree_.place(score);
        tree_.reserve(place);
        if (grid_) grid_->add(grid_->reserve(score), score, z);
        apply(place, score, z, sign);
    }

    void apply(const typename Tree::Place& place, double score, std::int64_t z, int sign) {
        if (place.before_all() || score > tree_.at(place).last)
            return tree_.insert(place, {score, score, z, z, 1, 0});
        Run& run = tree_.at(place);
        if (!run.single() && score != run.first && score != run.last) {
            if (z) part_run(place, score, z);
            return;
        }
        run.up += z;
        run.low += z;
        if (run.single()) {
            if (run.highest && (run.highest += sign) == 0) return tree_.erase(place);
        } else if (score == run.first) {
            run.highest += z;
            run.lowest += z;
        }
        tree_.changed(place);
    }

    // The cut next to the score, above it for z > 0 and else below it, was inside the run, so its
    // bounds are known.
    void part_run(const typename Tree::Place& place, double score, std::int64_t z) {
        auto [left, right] = split(tree_.at(place), z > 0 ? next_above(score) : score);
        Run& changed = z > 0 ? left : right;
        changed.up += z;
        changed.low += z;
        if (z < 0) right.highest = right.lowest = z;
        tree_.at(place) = left;
        tree_.insert(place, right);
    }

    // Hold these runs, joined where they are too many. The first time, a grid of them is made.
    void hold(std::vector<Run> runs) {
        std::optional<ScoreGrid<Tree>> grid;
        Closeness how{best_of(runs), static_cast<double>(seen_) / static_cast<double>(changes_),
                      step_};
        if (runs.size() >= limit()) {
            const bool first = !grid_ && capacity_ >= least_for_grid;
            if (first) grid = ScoreGrid<Tree>::of(runs, 0, most_buckets() * 3 / 4);
            const std::size_t most = first ? capacity_ - most_buckets() : limit();
            runs = fewer(runs, most * 3 / 4, how);
        }
        tree_ = Tree::of(runs);
        if (grid) grid_ = std::move(grid);
        step_ = how.step;
    }
    // What the best cut is known to be worth.
    std::int64_t best_of(const std::vector<Run>& runs) const {
        std::int64_t low = 0, best = grid_ ? offer(grid_->tree()) : 0;
        for (const Run& run : runs) best = std::max(best, low += run.low);
        return best;
    }

    // The runs of another object, in units of `bits` places.
    void take(const Part& part, int bits) {
        const std::int64_t factor = std::int64_t{1} << (bits - part.bits);
        const std::vector<Run> mine = runs_of(tree_), theirs = times(part.runs, factor);
        if (grid_ || part.shift >= 0) {
            const auto grid_of = [&](const std::vector<Run>& runs) {
                return ScoreGrid<Tree>::of(runs, 0, most_buckets());
            };
            const auto their_grid = part.shift < 0
                                        ? grid_of(theirs)
                                        : ScoreGrid<Tree>::of(times(part.buckets, factor),
                                                              part.shift, part.buckets.size());
            grid_ = ScoreGrid<Tree>::merged(grid_ ? std::move(*grid_) : grid_of(mine), their_grid,
                                            most_buckets());
        }
        hold(overlaid(mine, theirs));
        samples_ += part.samples;
        above_ += part.above * factor;
        seen_ += part.total * factor;
        changes_ += part.changes;
    }

    void count(const Losses& losses, int sign) {
        samples_ = sign > 0 ? samples_ + 1 : samples_ - 1;
        above_ += sign * losses.above;
        seen_ += size_of(losses);
        ++changes_;
        if (samples_ == 0) *this = BoundedSamples(unit_, capacity_);
    }

    // Whether samples could have left runs like these: in order, and every lower bound below its
    // upper one and no larger than all that was seen.
    bool plausible(const std::vector<Run>& runs) const {
        const auto in_range = [&](std::int64_t sum) { return magnitude(sum) <= seen_; };
        std::int64_t up = 0, low = 0;
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const Run& run = runs[i];
            if (!(run.first <= run.last) || (i && !(runs[i - 1].last < run.first))) return false;
            for (const double end : {run.first, run.last})
                if (end == 0 && std::signbit(end)) return false;
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

    template <class Row, class Change>
    Refusal all_or_none(const std::vector<Row>& rows, int bits, Change&& change) {
        BoundedSamples changed = copy();
        for (const Row& row : rows)
            if (const Refusal refusal = change(changed, row, bits); refusal != Refusal::none)
                return refusal;
        *this = std::move(changed);
        return Refusal::none;
    }

    static constexpr std::size_t head = 8;  // the words before the runs in state()

    static void put(std::string& bytes, std::uint64_t word) {
        for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
    }
    static std::uint64_t get(const std::string& bytes, std::size_t word) {
        std::uint64_t value = 0;
        for (std::size_t i = 8; i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(bytes[8 * word + i]);
        return value;
    }
    static void put_runs(std::string& bytes, const Tree& tree) {
        tree.scan([&](const Run& run) {
            for (const double end : {run.first, run.last})
                put(bytes, std::bit_cast<std::uint64_t>(end));
            for (const std::int64_t part : {run.up, run.low, run.highest, run.lowest})
                put(bytes, static_cast<std::uint64_t>(part));
        });
    }
    static std::vector<Run> get_runs(const std::string& bytes, std::size_t from, std::size_t size) {
        std::vector<Run> runs;
        runs.reserve(size);
        const auto whole = [&](std::size_t at) {
            return static_cast<std::int64_t>(get(bytes, at));
        };
        for (std::size_t at = from; runs.size() < size; at += words_of_a_run)
            runs.push_back({std::bit_cast<double>(get(bytes, at)),
                            std::bit_cast<double>(get(bytes, at + 1)), whole(at + 2), whole(at + 3),
                            whole(at + 4), whole(at + 5)});
        return runs;
    }
    static constexpr std::size_t words_of_a_run = 6;

    Tree tree_;
    std::optional<ScoreGrid<Tree>> grid_;
    std::size_t capacity_;
    std::size_t samples_ = 0;
    std::int64_t above_ = 0;    // the loss when everything lies above the cut
    std::int64_t seen_ = 0;     // the sum of all absolute losses that came and went
    std::int64_t changes_ = 0;  // how many these were
    int step_ = 0;              // how far runs were joined last time; see collapse()
};

}  // namespace limen
