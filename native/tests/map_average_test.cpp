// SPDX-License-Identifier: Apache-2.0
//
// Calibration maps against dense Gaussian processes, and the arithmetic they rest on against the C
// library.

#define LIMEN_TEST_MAIN
#include "samples/map_average.hpp"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/testing.hpp"

namespace {

using limen::AveragedMap;
using limen::MapFit;
using limen::MapPrior;
using limen::ScoreBins;
using limen::ScoreKind;
using limen::ScorePlace;
using limen::Sites;
using limen::testing::effort;
using Matrix = std::vector<std::vector<double>>;

Matrix cholesky(Matrix a) {
    const std::size_t n = a.size();
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t i = j; i < n; ++i) {
            double rest = a[i][j];
            for (std::size_t k = 0; k < j; ++k) rest -= a[i][k] * a[j][k];
            a[i][j] = i == j ? std::sqrt(rest) : rest / a[j][j];
        }
        for (std::size_t i = 0; i < j; ++i) a[i][j] = 0;
    }
    return a;
}

std::vector<double> solve_lower(const Matrix& l, std::vector<double> x) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) x[i] -= l[i][k] * x[k];
        x[i] /= l[i][i];
    }
    return x;
}

std::vector<double> solve(const Matrix& l, std::vector<double> x) {
    x = solve_lower(l, x);
    for (std::size_t i = x.size(); i-- > 0;) {
        for (std::size_t k = i + 1; k < x.size(); ++k) x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
    return x;
}

// Laplace's method as in the books, with the whole covariance of f: O(n^3) a step.
MapFit dense_fit(const Sites& sites, const MapPrior& prior) {
    const std::size_t n = sites.size();
    Matrix k(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            for (int c = 0; c < prior.feature_count; ++c)
                k[i][j] += prior.features[c][i] * prior.features[c][j];
            double d = std::fabs(prior.coordinate[i] - prior.coordinate[j]) / prior.path_length;
            if (prior.smooth) d *= std::sqrt(3.0);
            const double shape = prior.smooth ? (1 + d) * std::exp(-d) : std::exp(-d);
            k[i][j] += prior.path_deviation * prior.path_deviation * shape;
        }
    std::vector<double> a(n), f = prior.centre, w(n), e(n);
    const auto value = [&](const std::vector<double>& dual, const std::vector<double>& at) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i)
            sum +=
                sites.ones[i] * at[i] - dual[i] * (at[i] - prior.centre[i]) / 2 -
                sites.count[i] * (std::max(at[i], 0.0) + std::log1p(std::exp(-std::fabs(at[i]))));
        return sum;
    };
    const auto factor = [&] {
        Matrix b(n, std::vector<double>(n));
        for (std::size_t i = 0; i < n; ++i) {
            const double p = 1 / (1 + std::exp(-f[i]));
            w[i] = sites.count[i] * p * (1 - p);
            e[i] = sites.ones[i] - sites.count[i] * p;
        }
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                b[i][j] = (i == j) + std::sqrt(w[i]) * k[i][j] * std::sqrt(w[j]);
        return cholesky(b);
    };
    const auto times = [&](const std::vector<double>& x) {
        std::vector<double> out(n);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) out[i] += k[i][j] * x[j];
        return out;
    };
    double reached = value(a, f);
    for (int step = 0; step < 100; ++step) {
        const Matrix l = factor();
        std::vector<double> b(n), right(n), next(n), by(n);
        for (std::size_t i = 0; i < n; ++i) b[i] = w[i] * (f[i] - prior.centre[i]) + e[i];
        const auto kb = times(b);
        for (std::size_t i = 0; i < n; ++i) right[i] = std::sqrt(w[i]) * kb[i];
        right = solve(l, right);
        for (std::size_t i = 0; i < n; ++i) by[i] = b[i] - std::sqrt(w[i]) * right[i] - a[i];
        const auto kby = times(by);
        double size = 1, found = reached;
        for (; size > 1e-12; size /= 2) {
            auto dual = a, at = f;
            for (std::size_t i = 0; i < n; ++i) dual[i] += size * by[i], at[i] += size * kby[i];
            found = value(dual, at);
            if (found < reached - 1e-12 * std::fabs(reached)) continue;
            a = dual, f = at;
            break;
        }
        reached = found;
        double farthest = 0;
        for (const double each : kby) farthest = std::max(farthest, std::fabs(each));
        if (farthest < 1e-11) break;
    }
    const Matrix l = factor();
    MapFit fit{f, std::vector<double>(n), reached};
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> column(n);
        for (std::size_t j = 0; j < n; ++j) column[j] = std::sqrt(w[j]) * k[j][i];
        fit.variance[i] = k[i][i];
        for (const double part : solve_lower(l, column)) fit.variance[i] -= part * part;
        fit.log_evidence -= std::log(l[i][i]);
    }
    return fit;
}

struct Random {
    std::mt19937 engine;
    double unit() { return std::uniform_real_distribution<>()(engine); }
    double normal() { return std::normal_distribution<>()(engine); }
    std::size_t below(std::size_t n) { return engine() % n; }
};

// Sites with heavy and light ones, ties of the coordinate, and places without a sample.
std::pair<Sites, MapPrior> drawn(Random& random, double deviation, double length, bool smooth) {
    const std::size_t n = 2 + random.below(40);
    Sites sites;
    MapPrior prior;
    prior.path_deviation = deviation;
    prior.path_length = length;
    prior.smooth = smooth;
    prior.feature_count = 2 + static_cast<int>(random.below(2));
    double x = -2;
    for (std::size_t i = 0; i < n; ++i) {
        x += random.below(4) ? random.unit() * (random.below(3) ? 0.3 : 1e-6) : 0;
        const double count = random.below(5) ? std::exp(4 * random.normal()) : 0;
        sites.count.push_back(count);
        sites.ones.push_back(random.below(3) ? count * random.unit() : random.below(2) ? count : 0);
        prior.coordinate.push_back(x);
        prior.centre.push_back(2 * x + random.normal() / 10);
        const double features[] = {1, x, x * x};
        for (int k = 0; k < prior.feature_count; ++k)
            prior.features[k].push_back(features[k] * (k ? 0.7 : 2));
    }
    return {sites, prior};
}

void agree(const std::vector<double>& a, const std::vector<double>& b, double most,
           const std::string& note) {
    for (std::size_t i = 0; i < a.size(); ++i)
        limen::testing::check(std::fabs(a[i] - b[i]) <= most * (1 + std::fabs(b[i])),
                              "both ways agree", __FILE__, __LINE__,
                              note + ": " + std::to_string(a[i]) + ", " + std::to_string(b[i]));
}

ScoreBins drawn_bins(Random& random, bool probabilities) {
    ScoreBins given;
    double score = probabilities ? 0 : -3;
    for (int i = 0; i < 60; ++i) {
        score += random.unit() * (probabilities ? 1.0 / 60 : 0.2);
        const double weight = 1 + static_cast<double>(random.below(5));
        const double share = random.unit() < score ? random.unit() : 0;
        given.bins.push_back({weight * share, weight * (1 - share), score});
    }
    return given;
}

}  // namespace

TEST_CASE("exp, log and the normal law are those of the C library") {
    Random random{std::mt19937(1)};
    for (int i = 0; i < effort(1000, 20'000); ++i) {
        const double x = 60 * (random.unit() - 0.5), y = std::exp(x), unit = random.unit();
        CHECK(std::fabs(limen::portable::exp(x) / y - 1) < 1e-15);
        CHECK(std::fabs(limen::portable::log(y) - std::log(y)) <= 1e-15 * std::fabs(std::log(y)));
        CHECK(std::fabs(limen::portable::log1p(unit) - std::log1p(unit)) < 1e-15);
        CHECK(std::fabs(limen::portable::normal_share(x / 5) -
                        std::erfc(-x / 5 / std::sqrt(2)) / 2) < 2e-15);
    }
    CHECK(limen::portable::exp(-1e300) > 0);
    CHECK(std::isfinite(limen::portable::exp(1e300)));
    CHECK(limen::portable::log(1) == 0);
}

TEST_CASE("each map is the one of the dense method") {
    Random random{std::mt19937(2)};
    for (int i = 0; i < effort(20, 150); ++i) {
        const double deviations[] = {0, 0.5, 2, 4}, lengths[] = {1, 0.3};
        const double deviation = deviations[random.below(4)], length = lengths[random.below(2)];
        const auto [sites, prior] = drawn(random, deviation, length, random.below(2));
        const std::string note = "case " + std::to_string(i);
        const MapFit dense = dense_fit(sites, prior), found = fit_map(sites, prior);
        agree(found.log_odds, dense.log_odds, 1e-6, note);
        agree(found.variance, dense.variance, 1e-6, note);
        agree({found.log_evidence}, {dense.log_evidence}, 1e-8, note);
    }
}

TEST_CASE("a map does not depend on where the search begins") {
    Random random{std::mt19937(3)};
    for (int i = 0; i < effort(20, 150); ++i) {
        const auto [sites, prior] = drawn(random, 2, 1, random.below(2));
        std::vector<double> start;
        for (std::size_t k = 0; k < sites.size(); ++k) start.push_back(4 * random.normal());
        const MapFit plain = fit_map(sites, prior), from = fit_map(sites, prior, &start);
        agree(from.log_odds, plain.log_odds, 1e-6, "case " + std::to_string(i));
        agree({from.log_evidence}, {plain.log_evidence}, 1e-8, "case " + std::to_string(i));
    }
}

TEST_CASE("a place at a bin has the log odds of the bin") {
    Random random{std::mt19937(4)};
    for (const ScoreKind kind : {ScoreKind::probabilities, ScoreKind::raw, ScoreKind::ranks}) {
        ScoreBins given = drawn_bins(random, kind == ScoreKind::probabilities);
        given.kind = kind;
        const AveragedMap map(given);
        std::vector<ScorePlace> places;
        std::vector<double> expected;
        double below = 0;
        for (std::size_t i = 0; i < given.bins.size(); ++i) {
            const double weight = given.bins[i].ones + given.bins[i].zeros;
            if (i % 7 == 3) {
                places.push_back({below + weight / 2, given.bins[i].score});
                expected.push_back(map.log_odds()[i]);
            }
            below += weight;
        }
        agree(map.log_odds_at(places), expected, 1e-7, "places");
    }
}

TEST_CASE("maps of ranks see no scale") {
    Random random{std::mt19937(5)};
    ScoreBins given = drawn_bins(random, false);
    const AveragedMap before(given);
    for (auto& bin : given.bins) bin.score = std::exp(bin.score) * 1e6;
    CHECK(AveragedMap(given).log_odds() == before.log_odds());
}

TEST_CASE("scores that are probabilities are taken as they are, and others are not") {
    ScoreBins calibrated, reversed;
    for (int i = 1; i < 50; ++i) {
        const double score = i / 50.0;
        calibrated.bins.push_back({20 * score, 20 * (1 - score), score});
        reversed.bins.push_back({20 * (1 - score), 20 * score, score});
    }
    calibrated.kind = reversed.kind = ScoreKind::probabilities;
    const AveragedMap close(calibrated);
    const AveragedMap far(reversed);
    CHECK(close.shares()[0] + close.shares()[1] > 0.5);
    CHECK(far.shares()[0] + far.shares()[1] < 1e-6);
    CHECK(std::fabs(close.log_odds()[24]) < 0.05);
}
