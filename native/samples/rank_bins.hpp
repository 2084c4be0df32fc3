// SPDX-License-Identifier: Apache-2.0
//
// The weights of both labels in bins of ascending score: each score its own, or 1,024 bins of equal
// weight, searched in a tree. A score is in the bin that the middle of its weight falls into.
//
// bins    O(1,024 log n), or O(n) where there are fewer scores

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "samples/rank_model.hpp"

namespace limen {

// Parts are those of parts.hpp, of which only the sums of weights are asked for.
template <class Parts>
class BinnedParts {
public:
    using Sums = typename Parts::Sums;
    using Part = typename Parts::Part;

    explicit BinnedParts(const Parts& parts) : parts_(parts), whole_(parts.whole()) {}

    // Weights are multiplied by `share`.
    RankBins bins(double share) const {
        RankBins bins;
        Sums last;
        const auto take = [&](const Sums& sums) {
            if (sums.weight() > last.weight())
                bins.add(real(sums.ones - last.ones) * share,
                         real(sums.zeros - last.zeros) * share);
            last = sums;
        };
        if (parts_.distinct() <= most_bins)
            each_cut(whole_, take);
        else
            bin_ends(take);
        take(whole_.to);
        return bins;
    }

private:
    static constexpr std::size_t most_bins = 1024;

    static double real(std::int64_t number) { return static_cast<double>(number); }

    template <class Visit>
    void each_cut(const Part& part, Visit& visit) const {
        if (parts_.is_leaf(part)) {
            for (int k = 1; k <= parts_.scores(part); ++k) visit(parts_.at(part, k));
            return;
        }
        Part inside[Parts::most];
        const int n = parts_.split(part, inside);
        for (int i = 0; i < n; ++i) each_cut(inside[i], visit);
    }

    // Twice the weight below the middle of a score at which bin `i` begins.
    double bin_start(std::size_t i) const {
        return static_cast<double>(i) * (2 * real(whole_.to.weight()) / most_bins);
    }

    // A part in which some bins may begin.
    struct Begin {
        Part part;
        std::size_t first, last;
    };

    // The leaves in which bins may begin. Level by level, so that all parts of the next are on
    // their way from far memory before the first of them is looked into.
    std::vector<Begin> begins() const {
        std::vector<Begin> level{{whole_, 1, most_bins}}, next;
        level.reserve(most_bins);
        next.reserve(most_bins);
        for (bool leaves = false; !leaves; level.swap(next)) {
            leaves = true;
            next.clear();
            for (const Begin& begin : level) {
                if (parts_.is_leaf(begin.part)) {
                    next.push_back(begin);
                } else {
                    split(begin, next);
                    leaves = false;
                }
            }
        }
        return level;
    }

    void split(const Begin& begin, std::vector<Begin>& into) const {
        Part inside[Parts::most];
        const int n = parts_.split(begin.part, inside);
        std::size_t first = begin.first;
        for (int i = 0; i < n && first < begin.last; ++i) {
            const double end = 2 * real(inside[i].to.weight());
            std::size_t next = first;
            while (next < begin.last && (i + 1 == n || bin_start(next) < end)) ++next;
            if (next == first) continue;
            parts_.prefetch(inside[i]);
            into.push_back({inside[i], first, next});
            first = next;
        }
    }

    // Visit the cut below the first score of every bin but the first. Where no score of a leaf
    // begins the bin, the first one behind it does.
    template <class Visit>
    void bin_ends(Visit& visit) const {
        for (const Begin& begin : begins()) {
            const int n = parts_.scores(begin.part);
            int from = 0;
            for (std::size_t bin = begin.first; bin < begin.last; ++bin) {
                const double start = bin_start(bin);
                int low = from, high = n;  // the first score whose middle is not before the start
                while (low < high) {
                    const int middle = (low + high) / 2;
                    const double twice = real(parts_.at(begin.part, middle).weight() +
                                              parts_.at(begin.part, middle + 1).weight());
                    if (twice < start)
                        low = middle + 1;
                    else
                        high = middle;
                }
                visit(parts_.at(begin.part, from = low));
            }
        }
    }

    const Parts parts_;
    const Part whole_;
};

}  // namespace limen
