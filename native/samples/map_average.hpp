// SPDX-License-Identifier: Apache-2.0
//
// The chance of label 1 along the scores: an average of Bayesian calibration maps, each weighted by
// how well it explains the labels.
//
//     identity    the scores are probabilities, a little off: centre ln(s / (1 - s)), as in beta
//                 calibration shrunk towards the scores themselves
//     rank        nothing is known of the scores but their order: centre 2 x, x the normal score of
//                 the rank
//     raw         scores on any scale: centre 2 u, u the score in half widths of its middle 68 %
//
// Each comes stiff and with paths of several kinds; see map_fit.hpp. Few samples leave the weight
// with the stiff maps, many give it to those that follow them.
//
// AveragedMap    O(sites) for each of five to eight maps
//
// Compiled once, in map_average.cpp.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "samples/map_fit.hpp"

namespace limen {

enum class ScoreKind { ranks, probabilities, raw };

// Samples in bins of ascending score.
struct ScoreBins {
    struct Bin {
        double ones, zeros;  // weights
        double score;        // that in the middle of its weight

        bool operator==(const Bin&) const = default;
    };

    std::vector<Bin> bins;
    ScoreKind kind = ScoreKind::ranks;
    double worth = 1;             // how many samples of weight 1 a weight of 1 is worth
    double middle = 0, half = 1;  // of raw scores

    bool operator==(const ScoreBins&) const = default;
};

// A place between the scores where an answer is wanted.
struct ScorePlace {
    double below;  // the weight of all scores below it
    double score;
};

struct CalibrationMap {
    enum Centre { identity, rank, raw } centre;
    double offset, slope;  // standard deviations
    double path_deviation, path_length;
    bool smooth;
    double prior;
};

// Those that are averaged.
std::span<const CalibrationMap> calibration_maps(ScoreKind kind);

class AveragedMap {
public:
    explicit AveragedMap(ScoreBins given);

    const ScoreBins& given() const { return given_; }
    ScoreKind kind() const { return given_.kind; }
    const std::vector<ScoreBins::Bin>& bins() const { return given_.bins; }
    // The log odds of label 1 at each bin.
    const std::vector<double>& log_odds() const { return log_odds_; }
    // The weight of each map, which together are 1.
    const std::vector<double>& shares() const { return shares_; }

    // The log odds of label 1 at places in ascending order. O(sites) a map.
    std::vector<double> log_odds_at(std::span<const ScorePlace> places) const;

    // The chance of label 1 at scores in ascending order, on the scale of the bins. O(sites) a map.
    std::vector<double> chances_at(std::span<const double> scores) const;

private:
    std::vector<double> averaged(const std::vector<MapFit>& fits) const;

    ScoreBins given_;
    std::vector<MapFit> fits_;
    std::vector<double> log_odds_, shares_;
};

// The map that was asked for last. It depends on the bins alone, so nobody can see whether it was
// made again.
class KeptMap {
public:
    const AveragedMap& of(ScoreBins bins) {
        if (!map_ || map_->given() != bins) map_ = std::make_unique<AveragedMap>(std::move(bins));
        return *map_;
    }

private:
    std::unique_ptr<const AveragedMap> map_;
};

}  // namespace limen
