// SPDX-License-Identifier: Apache-2.0
//
// The samples of a tree in bins of ascending score: each score its own, or where there are more
// than 192 of them the union of 96 bins of equal weight and 96 of equal width in normal scores of
// the rank. A score is in the bin that the middle of its weight falls into.
//
// bins    O(192 log n)

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/portable_math.hpp"
#include "samples/map_average.hpp"

namespace limen {

// Parts are those of parts.hpp, of which only the sums of weights are asked for; they have to live
// as long.
template <class Parts>
class BinnedScores {
public:
    using Sums = typename Parts::Sums;
    using Part = typename Parts::Part;

    static constexpr std::size_t most_bins = 192;

    explicit BinnedScores(Parts&&) = delete;
    explicit BinnedScores(const Parts& parts) : parts_(parts), whole_(parts.whole()) {}

    // Whether each score has a bin of its own.
    bool is_whole() const { return parts_.distinct() <= most_bins; }

    ScoreBins bins() const {
        ScoreBins found;
        if (is_whole()) {
            each_score(whole_, found);
            return found;
        }
        std::vector<Sums> ends;
        Sums last;
        visit(edges(), Middle{}, [&](const Part& leaf, int k) {
            const Sums sums = parts_.at(leaf, k);
            if (sums.weight() > last.weight()) ends.push_back(last = sums);
        });
        if (whole_.to.weight() > last.weight()) ends.push_back(whole_.to);
        std::vector<double> middles;
        last = {};
        for (const Sums& end : ends) {
            found.bins.push_back({real(end.ones - last.ones), real(end.zeros - last.zeros), 0});
            middles.push_back(real(last.weight() + end.weight()));
            last = end;
        }
        std::size_t i = 0;
        visit(middles, End{},
              [&](const Part& leaf, int k) { found.bins[i++].score = parts_.score(leaf, k); });
        return found;
    }

    // The weight below the first score the middle of whose weight is not below this one.
    double below_middle(double weight) const {
        double found = 0;
        visit({2 * weight}, Middle{},
              [&](const Part& leaf, int k) { found = real(parts_.at(leaf, k).weight()); });
        return found;
    }

    // The scores below which these shares of the weight lie, in ascending order.
    std::vector<double> quantiles(const std::vector<double>& shares) const {
        std::vector<double> targets, found;
        for (const double share : shares) targets.push_back(2 * share * real(whole_.to.weight()));
        visit(targets, End{},
              [&](const Part& leaf, int k) { found.push_back(parts_.score(leaf, k)); });
        return found;
    }

private:
    static double real(std::int64_t number) { return static_cast<double>(number); }

    // By what a score is found: twice the weight below its middle, or below its end.
    struct Middle {
        double operator()(const Sums& before, const Sums& after) const {
            return real(before.weight() + after.weight());
        }
    };
    struct End {
        double operator()(const Sums&, const Sums& after) const { return 2 * real(after.weight()); }
    };

    void each_score(const Part& part, ScoreBins& found) const {
        if (parts_.is_leaf(part)) {
            Sums last = part.from;
            for (int k = 0; k < parts_.scores(part); ++k) {
                const Sums sums = parts_.at(part, k + 1);
                found.bins.push_back({real(sums.ones - last.ones), real(sums.zeros - last.zeros),
                                      parts_.score(part, k)});
                last = sums;
            }
            return;
        }
        Part inside[Parts::most];
        const int n = parts_.split(part, inside);
        for (int i = 0; i < n; ++i) each_score(inside[i], found);
    }

    // Twice the weight below the middle of a score at which bins begin.
    std::vector<double> edges() const {
        constexpr int half = most_bins / 2;
        const double weight = real(whole_.to.weight());
        const Part first = end_leaf(false), last = end_leaf(true);
        const double least = real(parts_.at(first, 1).weight());
        const double most =
            real(whole_.to.weight() + parts_.at(last, parts_.scores(last) - 1).weight());
        const double low = portable::normal_quantile(least / (2 * weight));
        const double high = portable::normal_quantile(std::min(most / (2 * weight), 1 - 1e-16));
        std::vector<double> found;
        for (int i = 1; i < half; ++i) {
            found.push_back(2 * weight * i / half);
            found.push_back(2 * weight * portable::normal_share(low + (high - low) * i / half));
        }
        std::sort(found.begin(), found.end());
        return found;
    }

    Part end_leaf(bool last) const {
        Part part = whole_, inside[Parts::most];
        while (!parts_.is_leaf(part)) {
            const int n = parts_.split(part, inside);
            part = inside[last ? n - 1 : 0];
        }
        return part;
    }

    // A part in which some scores are sought.
    struct Sought {
        Part part;
        std::size_t first, last;
    };

    // Show each leaf and the place in it of the first score that `by` says is not below a target,
    // one for each of the ascending targets; where none in its leaf is, the place behind the last.
    // Level by level, so that all parts of the next are on their way from far memory before the
    // first of them is looked into.
    template <class By, class Show>
    void visit(const std::vector<double>& targets, By by, Show&& show) const {
        std::vector<Sought> level{{whole_, 0, targets.size()}}, next;
        level.reserve(targets.size());
        next.reserve(targets.size());
        for (bool leaves = false; !leaves; level.swap(next)) {
            leaves = true;
            next.clear();
            for (const Sought& sought : level) {
                if (parts_.is_leaf(sought.part)) {
                    next.push_back(sought);
                } else {
                    split(sought, targets, next);
                    leaves = false;
                }
            }
        }
        for (const Sought& sought : level) {
            const int n = parts_.scores(sought.part);
            int from = 0;
            for (std::size_t i = sought.first; i < sought.last; ++i) {
                int low = from, high = n;
                while (low < high) {
                    const int middle = (low + high) / 2;
                    if (by(parts_.at(sought.part, middle), parts_.at(sought.part, middle + 1)) <
                        targets[i])
                        low = middle + 1;
                    else
                        high = middle;
                }
                show(sought.part, from = low);
            }
        }
    }

    void split(const Sought& sought, const std::vector<double>& targets,
               std::vector<Sought>& into) const {
        Part inside[Parts::most];
        const int n = parts_.split(sought.part, inside);
        std::size_t first = sought.first;
        for (int i = 0; i < n && first < sought.last; ++i) {
            const double end = 2 * real(inside[i].to.weight());
            std::size_t next = first;
            while (next < sought.last && (i + 1 == n || targets[next] <= end)) ++next;
            if (next == first) continue;
            parts_.prefetch(inside[i]);
            into.push_back({inside[i], first, next});
            first = next;
        }
    }

    const Parts& parts_;
    const Part whole_;
};

}  // namespace limen
