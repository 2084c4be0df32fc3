// SPDX-License-Identifier: Apache-2.0
//
// Which cuts the samples do not distinguish from the best one, and the one to recommend: of these
// the one nearest to where averaged calibration maps would cut.
//
// ends           O(log n) where the loss is not flat: a part is left out where even its cheapest
//                cut costs too much for its farthest
// recommended    the same besides 192 bins, O(192 log n), and the maps over them
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
#include "samples/map_average.hpp"
#include "samples/map_decision.hpp"
#include "samples/parts.hpp"
#include "samples/score_bins.hpp"

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
        return {gap(low).cut, gap(high).cut};
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

    // Of the cuts within reach the one nearest to where the maps would cut; of two as near the
    // cheaper, then the lower. The reach is 2 up to 300 samples, of ranks 0.75, and slowly less
    // beyond, so that the answer becomes the exact optimum as samples come in. Inside its gap, the
    // threshold lies where the maps say that it begins to pay to answer 1, if they know what scores
    // mean that nobody has seen.
    double recommended(const ScoreScale& scale, KeptMap& kept) const {
        const auto& counted = parts_.counts();
        const BinnedScores binned(counted);
        const AveragedMap& map = averaged(binned, scale, kept);
        const double reach = (map.kind() == ScoreKind::ranks ? 0.75 : 2) *
                             std::min(1.0, std::sqrt(std::sqrt(300 / effective_samples())));
        const MapDecision decision(map, positive_, negative_);
        const double goal =
            binned.is_whole() ? decision.below_cut() : binned.below_middle(decision.rank_of_cut());
        Found over, under;
        const bool none = near({}, reach);  // the cut below all scores
        const bool up =
            (goal <= 0 && none && take_lowest(over)) || lowest(whole_, goal, reach, over);
        const bool down = highest(whole_, goal, reach, under) || (none && take_lowest(under));
        const WeighedGap chosen = gap(!up ? under : !down ? over : nearer(under, over, goal));
        if (map.kind() != ScoreKind::probabilities) return threshold_of(chosen.cut);
        const double found = scale.score(decision.inside(scale.chances(chosen)));
        const bool inside = (!chosen.cut.has_lower || found > chosen.cut.lower) &&
                            (!chosen.cut.has_upper || found <= chosen.cut.upper);
        return inside ? found : threshold_of(chosen.cut);
    }

    // The maps of the samples.
    const AveragedMap& averaged(const ScoreScale& scale, KeptMap& kept) const {
        const auto& counted = parts_.counts();
        return averaged(BinnedScores(counted), scale, kept);
    }

private:
    struct Found {
        Sums sums, before;  // below the cut, and below the score under it
        double lower = 0;
        bool has_lower = false;
    };

    static double real(std::int64_t number) { return static_cast<double>(number); }

    std::pair<Found, Found> found_ends(double reach) const {
        Found low, high;
        const double all = real(whole_.to.weight());
        if (!near({}, reach) || !take_lowest(low)) lowest(whole_, 0, reach, low);
        if (!highest(whole_, all, reach, high)) take_lowest(high);
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

    // The cut below all scores.
    static bool take_lowest(Found& found) {
        found = {};
        return true;
    }
    bool take(const Part& leaf, int k, const Sums& sums, Found& found) const {
        found = {sums, parts_.at(leaf, k - 1), parts_.score(leaf, k - 1), true};
        return true;
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

    // Of two cuts the one whose weight below is nearer to the goal; of two as near the cheaper.
    const Found& nearer(const Found& under, const Found& over, double goal) const {
        const double above = std::fabs(real(over.sums.weight()) - goal);
        const double below = std::fabs(real(under.sums.weight()) - goal);
        const double slack = 1e-9 * real(whole_.to.weight()) / effective_samples();
        const double nearest = std::min(above, below) + slack;
        if (above > nearest) return under;
        if (below > nearest) return over;
        return costs_.between(under.sums, over.sums) < 0 ? over : under;
    }

    WeighedGap gap(const Found& found) const {
        WeighedGap gap;
        gap.below = real(found.sums.weight());
        gap.cut.has_lower = found.has_lower;
        gap.cut.lower = found.lower;
        gap.lower_middle = (real(found.before.weight()) + gap.below) / 2;
        gap.cut.has_upper = found.sums.weight() < whole_.to.weight();
        if (gap.cut.has_upper) find_above(found.sums.weight(), gap);
        return gap;
    }

    // The first score above a cut with so much weight below it.
    void find_above(std::int64_t weight, WeighedGap& gap) const {
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
        gap.cut.upper = parts_.score(part, low);
        gap.upper_middle = real(weight + parts_.at(part, low + 1).weight()) / 2;
    }

    template <class Binned>
    const AveragedMap& averaged(const Binned& binned, const ScoreScale& scale,
                                KeptMap& kept) const {
        ScoreBins bins = binned.bins();
        bins.worth = effective_samples() / real(whole_.to.weight());
        bins.kind = scale.kind;
        if (scale.kind == ScoreKind::probabilities)
            for (auto& bin : bins.bins) bin.score = scale.chance(bin.score);
        if (scale.kind == ScoreKind::raw) measure(binned, bins);
        return kept.of(std::move(bins));
    }

    // Where the middle of raw scores lies and how wide it is, by which they are measured. Where
    // that is not finite, nothing but the order of the scores is used.
    template <class Binned>
    static void measure(const Binned& binned, ScoreBins& bins) {
        const std::vector<double> at = binned.quantiles({0.16, 0.5, 0.84});
        bins.middle = at[1];
        bins.half = (at[2] - at[0]) / 2;
        if (!(bins.half > 0)) bins.half = (bins.bins.back().score - bins.bins.front().score) / 2;
        if (!(bins.half > 0)) bins.half = 1;
        if (!std::isfinite(bins.middle) || !std::isfinite(bins.half)) bins.kind = ScoreKind::ranks;
    }

    const Parts& parts_;
    WholeCosts costs_;
    Sums best_;
    Part whole_;
    double positive_, negative_;
};

}  // namespace limen
