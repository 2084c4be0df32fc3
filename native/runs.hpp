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

namespace limen {

// Scores that are not told apart any more, or a single one. The running sum before a run lies
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
    Run both{left.first, right.last, left.up + right.up, left.low + right.low, left.up, left.low};
    if (!left.single()) {
        both.highest = std::max(both.highest, left.highest);
        both.lowest = std::min(both.lowest, left.lowest);
    }
    if (!right.single()) {
        both.highest = std::max(both.highest, left.up + right.highest);
        both.lowest = std::min(both.lowest, left.low + right.lowest);
    }
    return both;
}

// What some neighbouring runs add to the bounds, and how high these rise on the way.
struct RunBounds {
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min() / 2;

    std::int64_t up = 0, low = 0;
    std::int64_t highest = none;  // the upper bound, at any cut after the start
    std::int64_t best = none;     // the lower bound, at the end of a run

    void add(const Run& run) {
        if (!run.single()) highest = std::max(highest, up + run.highest);
        add(RunBounds{run.up, run.low, run.up, run.low});
    }
    void add(const RunBounds& next) {
        highest = std::max(highest, up + next.highest);
        best = std::max(best, low + next.best);
        up += next.up;
        low += next.low;
    }
    bool operator==(const RunBounds&) const = default;
};

// The neighbours of a score among all numbers; -0.0 is none of them.
inline double next_above(double score) {
    return std::nextafter(score, std::numeric_limits<double>::infinity()) + 0.0;
}
inline double next_below(double score) {
    return std::nextafter(score, -std::numeric_limits<double>::infinity()) + 0.0;
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

// Join neighbours so that at most `goal` runs are left. They are joined while the bounds inside
// stay close: range^3 <= factor * slack^2, where range is how far the bounds part beyond those of
// the cuts given up, and slack how far the sum stays below the best one. Any rule is sound; this
// one keeps bounds tight where the best cut may move to. What obeys it obeys it in parts, so that
// greedy from the left needs the fewest runs, and the least factor is found by trying.
inline std::vector<Run> fewer(const std::vector<Run>& runs, std::size_t goal, Closeness& how) {
    std::int64_t low = 0, highest_low = 0;
    std::size_t offered = runs.size();  // never joined across: the end of this run
    for (std::size_t i = 0; i < runs.size(); ++i)
        if ((low += runs[i].low) >= highest_low) highest_low = low, offered = i;
    const auto pass = [&](int step, std::vector<Run>* out) {
        const double factor = Closeness::factor(step);
        std::size_t count = 0;
        std::int64_t up_before = 0, low_before = 0;
        constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
        std::int64_t least = far;
        Run open = runs[0];
        for (std::size_t i = 1; i <= runs.size(); ++i) {
            if (i < runs.size() && i - 1 != offered) {
                const Run both = joined(open, runs[i]);
                const std::int64_t given_up =
                    std::min(least, up_before + open.up - low_before - open.low);
                const auto range = static_cast<double>(up_before + both.highest - low_before -
                                                       both.lowest - given_up);
                const auto slack = static_cast<double>(
                    std::max<std::int64_t>(0, how.best - up_before - both.highest));
                if (range * range * range <= factor * (slack + how.mean) * (slack + how.mean)) {
                    open = both;
                    least = given_up;
                    continue;
                }
            }
            if (out && count <= goal) out->push_back(open);
            ++count;
            up_before += open.up;
            low_before += open.low;
            least = far;
            if (i < runs.size()) open = runs[i];
        }
        return count;
    };
    std::vector<Run> out;
    out.reserve(goal + 1);
    // What was close enough last time mostly still is.
    const std::size_t before = pass(how.step, &out);
    if (before <= goal && before >= goal - goal / 8) return out;
    const auto enough = [&](int step) {
        return step >= Closeness::most || (step > -Closeness::most && pass(step, nullptr) <= goal);
    };
    int too_close = how.step, step = how.step;
    for (int stride = 1; !enough(step); stride *= 2) {
        too_close = step;
        step = std::min(Closeness::most, step + stride);
    }
    for (int stride = 1; too_close == step || enough(too_close); stride *= 2) {
        step = too_close;
        too_close -= stride;
    }
    while (step - too_close > 1) {
        const int middle = too_close + (step - too_close) / 2;
        (enough(middle) ? step : too_close) = middle;
    }
    how.step = step;
    out.clear();
    pass(step, &out);
    return out;
}

}  // namespace limen
