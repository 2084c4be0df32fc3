// SPDX-License-Identifier: Apache-2.0
//
// Scores in buckets by their leading bits: the running sum is exact at every border of buckets, in
// whatever order samples come, and bounded inside.
//
// A bucket is a run that is never split, so the sums of a RunTree serve here too. When there are
// too many, all buckets become twice as wide.
//
// add     O(log n), and O(n) when the buckets become wider, at most 63 times
// merge   O(n + m)

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "run_tree.hpp"
#include "samples.hpp"

namespace limen {

template <class Tree>
class ScoreGrid {
public:
    const Tree& tree() const { return tree_; }
    int shift() const { return shift_; }

    // A grid of at most `most` buckets for runs that are single scores each, or buckets already.
    static ScoreGrid of(std::vector<Run> runs, int shift, std::size_t most) {
        ScoreGrid grid;
        grid.tree_.reserve_runs(std::min(most, runs.size()));
        grid.load(runs, shift, most);
        return grid;
    }

    // Hold these runs instead, of which most are joined; reserve() comes first.
    void load(std::vector<Run>& runs, int shift, std::size_t most) {
        for (Run& run : runs)
            if (run.single()) run.highest = run.lowest = 0;
        shift_ = shift;
        join(runs, shift_);
        while (runs.size() > most) join(runs, ++shift_);
        tree_.load(runs);
    }

    // Make room for one more in `most` buckets, by way of this list.
    void make_room(std::size_t most, std::vector<Run>& scratch) {
        if (tree_.size() < most) return;
        copy_runs(scratch);
        load(scratch, shift_ + 1, most * 3 / 4);
    }

    Tree& tree() { return tree_; }

    // A sample that adds z to the sum at every cut above it.
    void add(typename Tree::Place place, double score, const Interval& z) {
        if (place.before_all() || !together(tree_.last_at(place), score, shift_)) {
            const auto next = tree_.next(place);
            if (next.before_all() || !together(tree_.last_at(next), score, shift_))
                return tree_.insert(place, {score, score, z.high, z.low});
            place = next;
        }
        Run run = tree_.at(place);
        const bool single = run.single();
        if (score < run.first) {  // every cut that was inside, and the new one above the score
            run.highest = z.high + (single ? 0 : std::max<std::int64_t>(0, run.highest));
            run.lowest = z.low + (single ? 0 : std::min<std::int64_t>(0, run.lowest));
            run.first = score;
        } else if (score > run.last) {  // the cut at the old end is inside now
            run.highest = single ? run.up : std::max(run.highest, run.up);
            run.lowest = single ? run.low : std::min(run.lowest, run.low);
            run.last = score;
        } else if (!single && score == run.first) {
            run.highest += z.high;
            run.lowest += z.low;
        } else if (score != run.last) {  // cuts above the score and cuts below it, none is known
            run.highest += std::max<std::int64_t>(0, z.high);
            run.lowest += std::min<std::int64_t>(0, z.low);
        }
        run.up += z.high;
        run.low += z.low;
        tree_.put(place, run);
    }

    template <class Make>
    void transform(Make&& make) {
        tree_.transform(make);
    }

    void copy_runs(std::vector<Run>& runs) const {
        runs.clear();
        tree_.scan([&](const Run& run) { runs.push_back(run); });
    }
    std::vector<Run> runs() const {
        std::vector<Run> all;
        all.reserve(tree_.size());
        copy_runs(all);
        return all;
    }

    // The grid of the samples of both.
    static ScoreGrid merged(const ScoreGrid& left, const ScoreGrid& right, std::size_t most) {
        const int shift = std::max(left.shift_, right.shift_);
        std::vector<Run> mine = left.runs(), theirs = right.runs(), all;
        join(mine, shift);
        join(theirs, shift);
        all.reserve(mine.size() + theirs.size());
        auto one = mine.begin(), other = theirs.begin();
        while (one != mine.end() || other != theirs.end()) {
            if (other == theirs.end())
                all.push_back(*one++);
            else if (one == mine.end())
                all.push_back(*other++);
            else if (together(one->first, other->first, shift))
                all.push_back(overlaid(*one++, *other++));
            else
                all.push_back(one->first < other->first ? *one++ : *other++);
        }
        return of(std::move(all), shift, most);
    }

    static bool together(double first, double second, int shift) {
        return shift > 63 || ordered_bits(first) >> shift == ordered_bits(second) >> shift;
    }

private:
    // Neighbours that share a bucket become one run.
    static void join(std::vector<Run>& runs, int shift) {
        std::size_t used = 0;
        for (const Run& run : runs) {
            if (used && together(runs[used - 1].first, run.first, shift))
                runs[used - 1] = joined(runs[used - 1], run);
            else
                runs[used++] = run;
        }
        runs.resize(used);
    }

    // Two runs of one bucket. At a cut inside, each has added nothing, all of it, or what it may
    // have added at a cut inside of its own.
    static Run overlaid(const Run& one, const Run& other) {
        if (one.last < other.first) return joined(one, other);
        if (other.last < one.first) return joined(other, one);
        Run both{std::min(one.first, other.first), std::max(one.last, other.last),
                 one.up + other.up, one.low + other.low};
        if (both.single()) return both;
        for (const Run& run : {one, other}) {
            const std::int64_t inner = run.single() ? 0 : run.highest;
            const std::int64_t least = run.single() ? 0 : run.lowest;
            both.highest += std::max({std::int64_t{0}, run.up, inner});
            both.lowest += std::min({std::int64_t{0}, run.low, least});
        }
        return both;
    }

    Tree tree_;
    int shift_ = 0;
};

}  // namespace limen
