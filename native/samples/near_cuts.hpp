// SPDX-License-Identifier: Apache-2.0
//
// Which cuts the samples do not distinguish from the best one, and the one to recommend: of these
// the one nearest to where a model of ranks would cut.
//
// ends, recommended  O(log n) where the loss is not flat: a part is left out where even its
//                    cheapest cut costs too much for its farthest
// rank_bins          as in rank_bins.hpp
//
// A cut is within reach of the best when it costs at most `reach` standard errors more. Near the
// minimum the scale of the loss cancels, so that the reach of a confidence is one number for all
// data (limen.confidence). The standard error grows away from the best cut, so that of a part is at
// most that of its ends.
//
// tests/recommended_oracle.py is the same over all cuts of whole arrays, in NumPy.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/cut.hpp"
#include "samples/parts.hpp"
#include "samples/rank_bins.hpp"
#include "samples/rank_model.hpp"

namespace limen {

inline double effective(double weight, double squared) {
    return squared != 0 ? weight * weight / squared : 0;
}

template <class Parts>
class NearCuts {
public:
    using Sums = typename Parts::Sums;
    using Part = typename Parts::Part;

    // `best` is what lies below the best cut.
    NearCuts(const Parts& parts, const WholeCosts& costs, const Sums& best)
        : parts_(parts), costs_(costs), best_(best), whole_(parts.whole()),
          positive_(static_cast<double>(costs.false_positive)),
          negative_(static_cast<double>(costs.false_negative)) {}

    // How many samples of one weight would be worth as much, in all and of one label.
    double effective_samples() const {
        return effective(real(whole_.to.weight()),
                         whole_.to.ones_squared() + whole_.to.zeros_squared());
    }
    double effective_of(bool label) const {
        return label ? effective(real(whole_.to.ones), whole_.to.ones_squared())
                     : effective(real(whole_.to.zeros), whole_.to.zeros_squared());
    }

    // The lowest and the highest cut within reach of the best one.
    std::pair<Gap, Gap> ends(double reach) const {
        const auto [low, high] = found_ends(reach);
        return {gap(low), gap(high)};
    }
    // Whether a threshold lies between them: it answers as one of these cuts or one between.
    bool keeps(double threshold, double reach) const {
        const auto [low, high] = ends(reach);
        return !(low.has_lower && threshold <= low.lower) &&
               (!high.has_upper || threshold <= high.upper);
    }

    // How many standard errors more than the best one a cut costs that has these sums below it.
    double distance(const Sums& sums) const {
        const double spread = error(sums);
        return spread != 0 ? static_cast<double>(costs_.between(best_, sums)) / spread : 0;
    }

    // What the best cut of such samples costs more per weight than the best of all rows, in whole
    // costs; within a factor of about two.
    double regret() const {
        const auto [low, high] = found_ends(1);
        const double squares = (high.sums.ones_squared() + high.sums.zeros_squared()) -
                               (low.sums.ones_squared() + low.sums.zeros_squared());
        const auto costs = static_cast<double>(Wide{costs_.false_positive} * costs_.false_negative);
        return 0.24 * std::sqrt(costs * squares) / real(whole_.to.weight());
    }

    // Of the cuts within reach the one nearest to where the model of ranks would cut; of two as
    // near the cheaper, then the lower. The reach is 0.75 up to 300 samples and slowly less beyond,
    // so that the answer becomes the exact optimum as samples come in.
    Gap recommended() const {
        const double samples = effective_samples(), weight = real(whole_.to.weight());
        const double reach = 0.75 * std::min(1.0, std::pow(300 / samples, 0.25));
        const RankModel model = fit_ranks(rank_bins());
        const double goal = weight * model.share_below(positive_, negative_);
        Found over, under;
        const bool none = near({}, reach);  // the cut below all scores
        const bool up =
            (goal <= 0 && none && take({}, 0, over)) || lowest(whole_, goal, reach, over);
        const bool down = highest(whole_, goal, reach, under) || (none && take({}, 0, under));
        if (!up) return gap(under);
        if (!down) return gap(over);
        const double above = std::fabs(real(over.sums.weight()) - goal);
        const double below = std::fabs(real(under.sums.weight()) - goal);
        const double nearest = std::min(above, below) + 1e-9 * weight / samples;
        if (above > nearest) return gap(under);
        if (below > nearest) return gap(over);
        return gap(costs_.between(under.sums, over.sums) < 0 ? over : under);
    }

    // The weights of both labels in bins of ascending score, in samples of one weight.
    RankBins rank_bins() const {
        return BinnedParts(parts_.counts()).bins(effective_samples() / real(whole_.to.weight()));
    }

private:
    struct Found {
        Sums sums;
        double lower = 0;
        bool has_lower = false;
    };

    static double real(std::int64_t number) { return static_cast<double>(number); }

    std::pair<Found, Found> found_ends(double reach) const {
        Found low, high;
        const double all = real(whole_.to.weight());
        if (!near({}, reach) || !take({}, 0, low)) lowest(whole_, 0, reach, low);
        if (!highest(whole_, all, reach, high)) take({}, 0, high);
        return {low, high};
    }

    // The standard error of a cut's loss minus that of the best: the larger of two variances of
    // what lies between, that of the labels seen and that of labels for which either answer costs
    // the same. Without the second, rare and expensive labels would not show where there happen to
    // be none.
    double error(const Sums& sums) const {
        const double ones = std::fabs(sums.ones_squared() - best_.ones_squared());
        const double zeros = std::fabs(sums.zeros_squared() - best_.zeros_squared());
        const double seen = negative_ * negative_ * ones + positive_ * positive_ * zeros;
        return std::sqrt(std::max(seen, positive_ * negative_ * (ones + zeros)));
    }
    bool near(const Sums& sums, double reach) const {
        return static_cast<double>(costs_.between(best_, sums)) <= reach * error(sums);
    }
    bool may_be_near(const Part& part, double reach) const {
        return static_cast<double>(parts_.least(part, best_)) <=
               reach * std::max(error(part.from), error(part.to));
    }

    static bool take(const Sums& sums, double lower, Found& found) {
        found = {sums, lower, sums.weight() > 0};
        return true;
    }
    bool take(const Part& leaf, int k, const Sums& sums, Found& found) const {
        return take(sums, parts_.score(leaf, k - 1), found);
    }

    // The lowest cut of a part within reach that has at least so much weight below it.
    bool lowest(const Part& part, double weight, double reach, Found& found) const {
        if (real(part.to.weight()) < weight || !may_be_near(part, reach)) return false;
        if (parts_.is_leaf(part)) {
            const int n = parts_.scores(part);
            for (int k = 1; k <= n; ++k) {
                const Sums sums = parts_.at(part, k);
                if (real(sums.weight()) >= weight && near(sums, reach))
                    return take(part, k, sums, found);
            }
            return false;
        }
        Part inside[Parts::most];
        const int n = parts_.split(part, inside);
        for (int i = 0; i < n; ++i)
            if (lowest(inside[i], weight, reach, found)) return true;
        return false;
    }

    // The highest cut of a part within reach that has at most so much weight below it.
    bool highest(const Part& part, double weight, double reach, Found& found) const {
        if (real(part.from.weight()) >= weight || !may_be_near(part, reach)) return false;
        if (parts_.is_leaf(part)) {
            for (int k = parts_.scores(part); k >= 1; --k) {
                const Sums sums = parts_.at(part, k);
                if (real(sums.weight()) <= weight && near(sums, reach))
                    return take(part, k, sums, found);
            }
            return false;
        }
        Part inside[Parts::most];
        for (int i = parts_.split(part, inside); i-- > 0;)
            if (highest(inside[i], weight, reach, found)) return true;
        return false;
    }

    Gap gap(const Found& found) const {
        Gap cut;
        cut.has_lower = found.has_lower;
        cut.lower = found.lower;
        cut.has_upper = found.sums.weight() < whole_.to.weight();
        if (cut.has_upper) cut.upper = score_above(found.sums.weight());
        return cut;
    }

    // The first score above a cut with so much weight below it.
    double score_above(std::int64_t weight) const {
        Part part = whole_, inside[Parts::most];
        while (!parts_.is_leaf(part)) {
            const int n = parts_.split(part, inside);
            int i = 0;
            while (i + 1 < n && inside[i].to.weight() <= weight) ++i;
            part = inside[i];
        }
        int low = 0, high = parts_.scores(part) - 1;  // the last one with no more below it
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (parts_.at(part, middle).weight() <= weight)
                low = middle;
            else
                high = middle - 1;
        }
        return parts_.score(part, low);
    }

    const Parts& parts_;
    WholeCosts costs_;
    Sums best_;
    Part whole_;
    double positive_, negative_;
};

}  // namespace limen
