// SPDX-License-Identifier: Apache-2.0
//
// Runs of neighbouring scores, between which only bounds of the running sum are known.
//
// The running sum G(t) adds up z over all scores below t; the cheapest cut has the largest. Before
// the first run both bounds are 0.
//
// joined, split      O(1)
// overlaid, fewer    O(n)

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/isa.hpp"
#include "core/score_key.hpp"

namespace limen {

// A number that is known to lie between two.
struct Interval {
    std::int64_t low, high;
};

// Scores that are not distinguished any more, or a single one. The running sum before a run lies
// between a lower and an upper bound; `low` and `up` are what the run adds to these.
struct Run {
    double first, last;
    std::int64_t up, low;
    // At every cut inside, the sum lies between the lower bound before the run plus `lowest` and
    // the upper one plus `highest`. A single score has no cut inside: there, `highest` counts its
    // samples, or is 0 where some may have been counted in with a neighbour.
    std::int64_t highest = 0, lowest = 0;

    bool single() const { return first == last; }
    bool operator==(const Run&) const = default;
};

// Two neighbours as one: the cut between them is inside now.
inline Run joined(const Run& left, const Run& right) {
    const bool first = left.single(), second = right.single();
    Run both{left.first, right.last, left.up + right.up, left.low + right.low, left.up, left.low};
    both.highest = std::max(
        {both.highest, first ? left.up : left.highest, left.up + (second ? 0 : right.highest)});
    both.lowest = std::min(
        {both.lowest, first ? left.low : left.lowest, left.low + (second ? 0 : right.lowest)});
    return both;
}

// What some neighbouring runs add to the bounds, and how high these rise on the way.
struct RunBounds {
    // By value, so that no branch is guessed.
    static std::int64_t larger(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min() / 2;

    std::int64_t up = 0, low = 0;
    std::int64_t highest = none;  // the upper bound, at any cut after the start
    std::int64_t best = none;     // the lower bound, at the end of a run

    LIMEN_INLINE void add(const Run& run) {
        const std::int64_t inside = run.single() ? run.up : larger(run.up, run.highest);
        add(RunBounds{run.up, run.low, inside, run.low});
    }
    LIMEN_INLINE void add(const RunBounds& next) {
        highest = larger(highest, up + next.highest);
        best = larger(best, low + next.best);
        up += next.up;
        low += next.low;
    }
    bool operator==(const RunBounds&) const = default;
};

// The neighbours of a score among all numbers; -0.0, which has no key of its own, is left out.
inline double next_above(double score) { return score_of(key_of(score) + 1) + 0.0; }
inline double next_below(double score) {
    const Key key = key_of(score);
    return score_of(key - (key == 0 ? 2 : 1));
}

// Part a run at a cut inside: all that starts at `from` goes to the right.
inline std::pair<Run, Run> split(const Run& run, double from) {
    Run left = run, right = run;
    left.last = next_below(from);
    right.first = from;
    left.up = run.highest;
    left.low = run.lowest;
    right.up -= left.up;
    right.low -= left.low;
    right.highest = right.lowest = 0;
    if (left.single()) left.highest = left.lowest = 0;
    return {left, right};
}

// Makes runs whose running sums are others, one after another: of each sum, `up` makes an upper and
// `down` a lower bound of what it is to be. How many samples a single score has is lost.
template <class Up, class Down>
class Rescaled {
public:
    Rescaled(Up up, Down down) : up_(up), down_(down) {}

    Run operator()(const Run& run) {
        Run made = run;
        made.highest = run.single() ? 0 : up_(old_.high + run.highest) - new_.high;
        made.lowest = run.single() ? 0 : down_(old_.low + run.lowest) - new_.low;
        old_ = {old_.low + run.low, old_.high + run.up};
        const Interval after{down_(old_.low), up_(old_.high)};
        made.up = after.high - new_.high;
        made.low = after.low - new_.low;
        new_ = after;
        return made;
    }

private:
    Up up_;
    Down down_;
    Interval old_{0, 0}, new_{0, 0};  // the sums so far
};

// Bounds of the sum of two running sums: all runs are split at the cuts of the others.
inline std::vector<Run> overlaid(const std::vector<Run>& these, const std::vector<Run>& those) {
    std::vector<Run> all;
    all.reserve(these.size() + those.size());
    auto one = these.begin(), other = those.begin();
    Run a{}, b{};
    bool has_a = false, has_b = false;
    const auto fill = [](bool& has, Run& run, auto& next, const auto& end) {
        if (!has && next != end) run = *next++, has = true;
    };
    for (;;) {
        fill(has_a, a, one, these.end());
        fill(has_b, b, other, those.end());
        if (!has_a && !has_b) return all;
        if (!has_b || (has_a && a.last < b.first)) {
            all.push_back(a);
            has_a = false;
        } else if (!has_a || b.last < a.first) {
            all.push_back(b);
            has_b = false;
        } else if (a.first != b.first) {  // the part before the other one starts
            Run& longer = a.first < b.first ? a : b;
            const auto [left, right] = split(longer, std::max(a.first, b.first));
            all.push_back(left);
            longer = right;
        } else if (a.last != b.last) {  // the part after the other one ends
            Run& longer = a.last > b.last ? a : b;
            bool& shorter = a.last > b.last ? has_b : has_a;
            Run whole = a.last > b.last ? b : a;
            const auto [left, right] = split(longer, next_above(std::min(a.last, b.last)));
            whole.up += left.up;
            whole.low += left.low;
            whole.highest = whole.single() ? 0 : whole.highest + left.highest;
            whole.lowest = whole.single() ? 0 : whole.lowest + left.lowest;
            all.push_back(whole);
            longer = right;
            shorter = false;
        } else {
            Run both{a.first, a.last, a.up + b.up, a.low + b.low};
            const bool counted = !both.single() || (a.highest && b.highest);
            if (counted) both.highest = a.highest + b.highest;
            both.lowest = a.lowest + b.lowest;
            all.push_back(both);
            has_a = has_b = false;
        }
    }
}

// How far neighbours may be joined; see fewer().
struct Closeness {
    static constexpr int most = 8 * 240;  // steps of 2^(1/8) between 2^-240 and 2^240

    std::int64_t best;  // the sum that the best cut is known to reach
    double mean;        // the mean size of z
    int step;           // where to look first

    static double factor(int step) {
        constexpr std::array<double, 8> eighths = {
            1.0,
            1.0905077326652577,
            1.189207115002721,
            1.2968395546510096,
            1.4142135623730951,
            1.5422108254079407,
            1.681792830507429,
            1.8340080864093424,
        };
        const int octave = (step < 0 ? step - 7 : step) / 8;
        return std::ldexp(eighths[static_cast<std::size_t>(step - 8 * octave)], octave);
    }
};

// Join neighbours so that at most `goal` runs are left, and not many fewer. They are joined while
// the bounds inside stay close: range^3 <= factor * slack^2, where range is how far the bounds part
// beyond those of the cuts given up, and slack how far the sum stays below the best one. Any rule
// is sound; this one keeps bounds tight where the best cut may move to. What obeys it obeys it in
// parts, so that greedy from the left needs the fewest runs, and a factor is found by trying.
// `out` needs room for `goal` runs, at least two.
//
// Every search in it ends. Upwards, because the largest factor joins all but the offered cut: a
// range is below 2^63 and slack at least how.mean >= 2^-20, so range^3 < 2^189 < 2^240 * slack^2.
// Downwards, because `far` falls to its limit; in between, because their distance is halved.
inline void fewer(const std::vector<Run>& runs, std::size_t goal, Closeness& how,
                  std::vector<Run>& out) {
    std::int64_t low = 0, highest_low = 0;
    std::size_t offered = runs.size();  // never joined across: the end of this run
    for (std::size_t i = 0; i < runs.size(); ++i)
        if ((low += runs[i].low) >= highest_low) highest_low = low, offered = i;
    // Whether that leaves few enough.
    const auto pass = [&](int step) {
        const double factor = Closeness::factor(step);
        std::int64_t up_before = 0, low_before = 0;
        constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
        std::int64_t least = far;
        Run open = runs[0];
        out.clear();
        for (std::size_t i = 1; i <= runs.size(); ++i) {
            if (i < runs.size() && i - 1 != offered) {
                const Run both = joined(open, runs[i]);
                const std::int64_t given_up =
                    std::min(least, up_before + open.up - low_before - open.low);
                const auto range = static_cast<double>(up_before + both.highest - low_before -
                                                       both.lowest - given_up);
                const auto slack = static_cast<double>(std::max<std::int64_t>(
                                       0, how.best - up_before - both.highest)) +
                                   how.mean;
                if (range * range * range <= factor * slack * slack) {
                    open = both;
                    least = given_up;
                    continue;
                }
            }
            if (out.size() == goal) return false;
            out.push_back(open);
            up_before += open.up;
            low_before += open.low;
            least = far;
            if (i < runs.size()) open = runs[i];
        }
        return true;
    };
    // What was close enough last time mostly still is.
    const std::size_t fewest = goal - goal / 8;
    int close = how.step, far = how.step;  // the one leaves too many, the other does not
    bool valid = pass(far);                // whether `out` is what the latter leaves
    for (int stride = 1; !valid; stride *= 2) {
        close = far;
        far = std::min(Closeness::most, far + stride);
        valid = pass(far);
    }
    if (close == far) {
        for (int stride = 1; valid && out.size() < fewest && far > -Closeness::most; stride *= 2) {
            close = std::max(-Closeness::most, far - stride);
            valid = pass(close);
            if (valid) far = close;
        }
    }
    while (!(valid && out.size() >= fewest) && far - close > 1) {
        const int middle = close + (far - close) / 2;
        valid = pass(middle);
        (valid ? far : close) = middle;
    }
    if (!valid) pass(far);
    how.step = far;
}

}  // namespace limen
