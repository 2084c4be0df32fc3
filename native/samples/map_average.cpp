// SPDX-License-Identifier: Apache-2.0
//
// Averaged calibration maps. A file of its own, so that its loops can be compiled for speed.

#include "samples/map_average.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/portable_math.hpp"

namespace limen {

namespace {

using enum CalibrationMap::Centre;

constexpr std::array probabilities{
    CalibrationMap{identity, 0.1, 0.1, 0, 1, true, 0.35},
    CalibrationMap{identity, 0.3, 0.3, 0, 1, true, 0.15},
    CalibrationMap{identity, 0.3, 0.3, 0.5, 1, true, 0.10},
    CalibrationMap{identity, 1, 1, 2, 1, false, 0.08},
    CalibrationMap{rank, 2, 2, 0.7, 1, true, 0.16},
    CalibrationMap{rank, 2, 2, 2, 1, true, 0.06},
    CalibrationMap{rank, 2, 2, 3, 1, false, 0.07},
    CalibrationMap{rank, 2, 2, 4, 0.3, false, 0.03},
};
constexpr std::array other_scores{
    CalibrationMap{raw, 3, 2, 0, 1, true, 0.20},    CalibrationMap{raw, 3, 2, 1, 1, true, 0.15},
    CalibrationMap{raw, 3, 2, 2, 1, false, 0.20},   CalibrationMap{rank, 2, 2, 0, 1, true, 0.15},
    CalibrationMap{rank, 2, 2, 0.7, 1, true, 0.10}, CalibrationMap{rank, 2, 2, 2, 1, true, 0.06},
    CalibrationMap{rank, 2, 2, 3, 1, false, 0.08},  CalibrationMap{rank, 2, 2, 4, 0.3, false, 0.04},
};

constexpr double negligible = 1e-9;

// What the maps are made of, at bins and places in ascending order of rank.
struct Design {
    Sites sites;
    std::vector<std::size_t> from;     // which bin, or which place after all bins
    std::vector<double> x;             // normal score of the rank
    std::vector<double> low, high, u;  // ln s and -ln(1 - s); the score in half widths

    Design(const ScoreBins& given, std::span<const ScorePlace> places) {
        double all = 0;
        for (const auto& bin : given.bins) all += bin.ones + bin.zeros;
        std::vector<double> rank;
        double below = 0;
        for (const auto& bin : given.bins) {
            const double weight = bin.ones + bin.zeros;
            rank.push_back((below + weight / 2) / all);
            below += weight;
        }
        // A place beyond all samples is as far out as a quarter of one.
        const double end = std::min(0.5, 0.25 / std::max(all * given.worth, 1.0));
        for (const ScorePlace& place : places)
            rank.push_back(std::clamp(place.below / all, end, 1 - end));
        from.resize(rank.size());
        std::iota(from.begin(), from.end(), std::size_t{0});
        // Not std::stable_sort, which asks for memory by the side.
        std::sort(from.begin(), from.end(), [&](std::size_t a, std::size_t b) {
            return rank[a] != rank[b] ? rank[a] < rank[b] : a < b;
        });
        for (const std::size_t each : from) {
            const bool bin = each < given.bins.size();
            const double one = bin ? given.bins[each].ones : 0;
            const double zero = bin ? given.bins[each].zeros : 0;
            const double score =
                bin ? given.bins[each].score : places[each - given.bins.size()].score;
            sites.ones.push_back(one * given.worth);
            sites.count.push_back((one + zero) * given.worth);
            x.push_back(portable::normal_quantile(rank[each]));
            if (given.kind == ScoreKind::probabilities) {
                const double s = std::clamp(score, 1e-6, 1 - 1e-6);
                low.push_back(portable::log(s));
                high.push_back(-portable::log(1 - s));
            } else if (given.kind == ScoreKind::raw) {
                u.push_back(std::clamp((score - given.middle) / given.half, -5.0, 5.0));
            }
        }
    }

    MapPrior prior(const CalibrationMap& map) const {
        const std::size_t n = x.size();
        MapPrior prior;
        prior.path_deviation = map.path_deviation;
        prior.path_length = map.path_length;
        prior.smooth = map.smooth;
        prior.coordinate = map.centre == CalibrationMap::raw ? u : x;
        prior.features[0].assign(n, map.offset);
        prior.centre.resize(n);
        if (map.centre == CalibrationMap::identity) {
            prior.feature_count = 3;
            prior.features[1] = times(low, map.slope);
            prior.features[2] = times(high, map.slope);
            for (std::size_t i = 0; i < n; ++i) prior.centre[i] = low[i] + high[i];
        } else {
            prior.feature_count = 2;
            prior.features[1] = times(prior.coordinate, map.slope);
            prior.centre = times(prior.coordinate, 2);
        }
        return prior;
    }

private:
    static std::vector<double> times(std::vector<double> values, double factor) {
        for (double& value : values) value *= factor;
        return values;
    }
};

// The mean of the chances of log odds that are known up to a normal law, by nine points of
// Gauss and Hermite.
void add_chances(const MapFit& fit, double share, std::vector<double>& chance) {
    constexpr double point[] = {0, 1.0232556637891326, 2.07684797867783, 3.20542900285647,
                                4.512745863399783};
    constexpr double weight[] = {0.40634920634920635, 0.24409750289493953, 0.04991640676521782,
                                 0.0027891413212317692, 2.2345844007746607e-05};
    for (std::size_t i = 0; i < chance.size(); ++i) {
        const double f = fit.log_odds[i], deviation = std::sqrt(fit.variance[i]);
        double mean = weight[0] / (1 + portable::exp(-f));
        for (int k = 1; k < 5; ++k) {
            const double step = deviation * point[k];
            mean += weight[k] *
                    (1 / (1 + portable::exp(-f - step)) + 1 / (1 + portable::exp(-f + step)));
        }
        chance[i] += share * mean;
    }
}

}  // namespace

std::span<const CalibrationMap> calibration_maps(ScoreKind kind) {
    if (kind == ScoreKind::probabilities) return probabilities;
    const std::span<const CalibrationMap> all = other_scores;
    return kind == ScoreKind::raw ? all : all.subspan(3);  // those of ranks
}

AveragedMap::AveragedMap(ScoreBins given) : given_(std::move(given)) {
    const Design design(given_, {});
    const auto maps = calibration_maps(given_.kind);
    fits_.reserve(maps.size());
    for (const CalibrationMap& map : maps) {
        fits_.push_back(fit_map(design.sites, design.prior(map),
                                fits_.empty() ? nullptr : &fits_.back().log_odds));
        shares_.push_back(fits_.back().log_evidence + portable::log(map.prior));
    }
    const double most = *std::max_element(shares_.begin(), shares_.end());
    double sum = 0;
    for (double& share : shares_) sum += share = portable::exp(share - most);
    for (double& share : shares_) share /= sum;
    log_odds_ = averaged(fits_);
}

std::vector<double> AveragedMap::log_odds_at(std::span<const ScorePlace> places) const {
    const Design design(given_, places);
    const auto maps = calibration_maps(given_.kind);
    std::vector<MapFit> fits(maps.size());
    for (std::size_t m = 0; m < maps.size(); ++m) {
        if (shares_[m] <= negligible) continue;
        std::vector<double> mode(design.from.size(), 0.0);
        for (std::size_t i = 0; i < mode.size(); ++i)
            if (design.from[i] < log_odds_.size()) mode[i] = fits_[m].log_odds[design.from[i]];
        fits[m] = map_around(design.sites, design.prior(maps[m]), mode);
    }
    const std::vector<double> all = averaged(fits);
    std::vector<double> found(places.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        if (design.from[i] >= log_odds_.size()) found[design.from[i] - log_odds_.size()] = all[i];
    return found;
}

std::vector<double> AveragedMap::chances_at(std::span<const double> scores) const {
    const auto& bins = given_.bins;
    std::vector<double> middles;
    double all = 0;
    for (const auto& bin : bins) {
        middles.push_back(all + (bin.ones + bin.zeros) / 2);
        all += bin.ones + bin.zeros;
    }
    // Between the middles of two bins, ranks run straight along the scores.
    std::vector<ScorePlace> places;
    for (const double score : scores) {
        const auto next =
            std::lower_bound(bins.begin(), bins.end(), score,
                             [](const auto& bin, double at) { return bin.score < at; });
        const auto i = static_cast<std::size_t>(next - bins.begin());
        double below = all;
        if (i < bins.size() && bins[i].score == score) {
            below = middles[i];
        } else if (i == 0) {
            below = 0;
        } else if (i < bins.size()) {
            const double share = (score - bins[i - 1].score) / (bins[i].score - bins[i - 1].score);
            const bool known = share >= 0 && share <= 1;  // and not beside a score of infinity
            below = middles[i - 1] + (known ? share : 0.5) * (middles[i] - middles[i - 1]);
        }
        places.push_back({below, score});
    }
    std::vector<double> found = log_odds_at(places);
    for (double& each : found) each = 1 / (1 + portable::exp(-each));
    return found;
}

std::vector<double> AveragedMap::averaged(const std::vector<MapFit>& fits) const {
    std::vector<double> chance;
    for (std::size_t m = 0; m < fits.size(); ++m) {
        if (shares_[m] <= negligible) continue;
        chance.resize(fits[m].log_odds.size());
        add_chances(fits[m], shares_[m], chance);
    }
    for (double& each : chance) {
        each = std::clamp(each, 1e-9, 1 - 1e-9);
        each = portable::log(each / (1 - each));
    }
    return chance;
}

}  // namespace limen
