// SPDX-License-Identifier: Apache-2.0
//
// Where averaged calibration maps would cut at given costs, and where inside a gap.
//
// MapDecision    O(bins)
// inside         O(bins) a map where the gap is wide enough to hold points of its own

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/cut.hpp"
#include "core/portable_math.hpp"
#include "samples/map_average.hpp"

namespace limen {

// A gap between two scores, and weights: of all scores below it, and below the middle of the weight
// of the score at either end.
struct WeighedGap {
    Gap cut;
    double below = 0, lower_middle = 0, upper_middle = 0;
};

// What scores are. Where lower ones mean positive, the core has a score s as -s; as a probability
// it is that of label 0.
struct ScoreScale {
    ScoreKind kind = ScoreKind::ranks;
    bool lower_is_positive = false;

    // The chance of label 1 that a score says, and back.
    double chance(double score) const { return lower_is_positive ? 1 + score : score; }
    double score(double chance) const { return lower_is_positive ? chance - 1 : chance; }
    WeighedGap chances(WeighedGap gap) const {
        gap.cut.lower = chance(gap.cut.lower);
        gap.cut.upper = chance(gap.cut.upper);
        return gap;
    }
};

class MapDecision {
public:
    // Looks at the map, which has to live as long.
    MapDecision(const AveragedMap& map, double false_positive, double false_negative)
        : map_(map), odds_(portable::log(false_positive / false_negative)) {
        const auto& bins = map_.bins();
        const double chance = false_positive / (false_positive + false_negative);
        double below = 0, cost = 0, least = 0, all = 0;
        for (const auto& bin : bins) all += bin.ones + bin.zeros;
        for (std::size_t i = 0; i < bins.size(); ++i) {
            const double weight = bins[i].ones + bins[i].zeros;
            middle_.push_back(below + weight / 2);
            below += weight;
            cost += weight * (1 / (1 + portable::exp(-map_.log_odds()[i])) - chance);
            if (cost <= least + 1e-12 * all) {  // of cuts that cost the same, the highest
                least = std::min(cost, least);
                cut_ = i + 1;
                below_ = below;
            }
        }
    }

    // The weight below the cheapest cut between two bins.
    double below_cut() const { return below_; }

    // The weight below the middle of the first score that is to be answered 1, where bins hold
    // several: the maps' log odds run straight from the middle of a bin to that of the next.
    double rank_of_cut() const {
        if (cut_ == 0) return 0;
        if (cut_ == middle_.size()) return std::numeric_limits<double>::infinity();
        const double low = map_.log_odds()[cut_ - 1], high = map_.log_odds()[cut_];
        const double share = high > low ? std::clamp((odds_ - low) / (high - low), 0.0, 1.0) : 0.5;
        return middle_[cut_ - 1] + share * (middle_[cut_] - middle_[cut_ - 1]);
    }

    // The score of a gap from which on it pays to answer 1, where scores are probabilities.
    double inside(const WeighedGap& gap) const {
        const double low = gap.cut.has_lower ? gap.cut.lower : -1;
        const double high = gap.cut.has_upper ? gap.cut.upper : 2;
        std::vector<double> z, odds;
        if (gap.cut.has_lower) {
            z.push_back(log_odds_of(gap.cut.lower));
            odds.push_back(std::min(odds_at(gap.lower_middle), odds_ - 1e-9));
        }
        std::vector<ScorePlace> places;
        for (int i = -27; i <= 27; ++i) {
            const double score = 1 / (1 + portable::exp(-0.5 * i));
            if (score <= low || score >= high) continue;
            places.push_back({gap.below, score});
            z.push_back(0.5 * i);
        }
        if (!places.empty())
            for (const double each : map_.log_odds_at(places)) odds.push_back(each);
        if (gap.cut.has_upper) {
            z.push_back(log_odds_of(gap.cut.upper));
            odds.push_back(std::max(odds_at(gap.upper_middle), odds_));
        }
        std::size_t i = 0;
        if (!gap.cut.has_lower) {  // from the lowest score down, as long as it pays to answer 1
            i = odds.size() - 1;
            while (i > 0 && odds[i - 1] >= odds_) --i;
            if (i == 0) return threshold_of(gap.cut);
            --i;
        } else {  // up to the first point where it does
            while (i + 1 < odds.size() && odds[i + 1] < odds_) ++i;
            if (i + 1 == odds.size()) return threshold_of(gap.cut);
        }
        const double share = (odds_ - odds[i]) / (odds[i + 1] - odds[i]);
        const double score = 1 / (1 + portable::exp(-(z[i] + share * (z[i + 1] - z[i]))));
        if (score > low && score <= high) return score;
        return threshold_of(gap.cut);
    }

private:
    static double log_odds_of(double score) {
        const double s = std::clamp(score, 1e-6, 1 - 1e-6);
        return portable::log(s) - portable::log(1 - s);
    }

    // The log odds of label 1 at a score with so much weight below its middle.
    double odds_at(double weight) const {
        const auto& odds = map_.log_odds();
        const auto next = std::upper_bound(middle_.begin(), middle_.end(), weight);
        const auto i = static_cast<std::size_t>(next - middle_.begin());
        if (i == 0) return odds.front();
        if (i == middle_.size()) return odds.back();
        const double share = (weight - middle_[i - 1]) / (middle_[i] - middle_[i - 1]);
        return odds[i - 1] + share * (odds[i] - odds[i - 1]);
    }

    const AveragedMap& map_;
    double odds_;  // above which it pays to answer 1
    std::vector<double> middle_;
    std::size_t cut_ = 0;
    double below_ = 0;
};

}  // namespace limen
