// SPDX-License-Identifier: Apache-2.0
//
// One Bayesian calibration map: how the log odds of label 1 run along the scores.
//
//     f = centre + features * theta + path,    theta ~ N(0, 1) each
//
// The path is a Gaussian process along a coordinate that grows with the score: none, of
// Ornstein-Uhlenbeck (a tie of neighbours) or Matern 3/2 (one that is smooth).
//
// fit    O(sites) for each step of Newton's method, three to seven of them
//
// The most likely f and the spread around it (Laplace's method). A step of Newton's method is a
// regression on a process with the Markov property: a Kalman filter up the sites, which carries the
// labels and each feature as series side by side, and a smoother down. No matrix is inverted but
// one of the few features, and sites may lie as close together as they like, or in one place.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/portable_math.hpp"

namespace limen {

// What is known at places in ascending order of the coordinate. At places without a sample, counts
// are 0: they only ask for an answer.
struct Sites {
    std::vector<double> ones, count;  // in samples of one weight

    std::size_t size() const { return count.size(); }
};

inline constexpr int most_features = 3;

// The prior of a map at the sites. Features are multiplied by their standard deviations.
struct MapPrior {
    std::vector<double> centre;
    std::vector<double> features[most_features];
    int feature_count = 0;
    std::vector<double> coordinate;  // of the path
    double path_deviation = 0, path_length = 1;
    bool smooth = false;
};

struct MapFit {
    std::vector<double> log_odds, variance;  // at each site
    double log_evidence = 0;
};

// The covariance of a path between two sites: x' = T x + noise of covariance Q. The first of at
// most two states is the path, the second its slope.
template <int states>
struct PathStep {
    double t[2][2] = {{0, 0}, {0, 0}}, q[2][2] = {{0, 0}, {0, 0}};

    PathStep() = default;
    PathStep(double distance, double deviation, double length) {
        const double variance = deviation * deviation;
        if constexpr (states == 1) {
            const double a = distance / length;
            t[0][0] = portable::exp(-a);
            q[0][0] = variance * (a > 1e-3 ? 1 - t[0][0] * t[0][0] : tail(2 * a, 1));
        } else if constexpr (states == 2) {
            constexpr double root_three = 1.7320508075688772;
            const double rate = root_three / length, a = rate * distance;
            const double decay = portable::exp(-a), squared = decay * decay;
            t[0][0] = decay * (1 + a);
            t[0][1] = decay * distance;
            t[1][0] = -decay * rate * a;
            t[1][1] = decay * (1 - a);
            // What stationary covariance is left over, written without a difference of like
            // numbers.
            const double cubic = tail(2 * a, 3);
            q[0][0] = variance * cubic;
            q[0][1] = q[1][0] = variance * rate * 2 * a * a * squared;
            q[1][1] = variance * rate * rate * (4 * a * squared + cubic);
        }
    }

private:
    // The share of a Poisson law of mean x that is `from` or more.
    static double tail(double x, int from) {
        double term = portable::exp(-x), less = 0, sum = 0;
        for (int k = 0; k < from; ++k) {
            less += term;
            term *= x / (k + 1);
        }
        if (x > 1) return 1 - less;
        for (int k = from; term > sum * 1e-17; ++k) {
            sum += term;
            term *= x / (k + 1);
        }
        return sum;
    }
};

template <int states, int k_>
class MapFitter {
public:
    MapFitter(const Sites& sites, const MapPrior& prior)
        : sites_(sites), prior_(prior), n_(sites.size()), row_(n_), path_(n_),
          log_odds_(prior.centre), dual_(n_), weight_(n_), error_(n_), next_(n_), by_(n_),
          dual_by_(n_), small_(n_), soft_(n_) {
        for (std::size_t i = 0; states > 0 && i < n_; ++i) {
            const double distance =
                i ? prior.coordinate[i] - prior.coordinate[i - 1] : 1e3 * prior.path_length;
            path_[i] = PathStep<states>(distance, prior.path_deviation, prior.path_length);
        }
    }

    // `start` may be any log odds at the sites; only the number of steps depends on it.
    MapFit fit(const std::vector<double>* start = nullptr) {
        double value = look(log_odds_);
        if (start) value = leap(*start, value);
        for (int step = 0; step < 60 && !arrived_; ++step) {
            regress<false>(log_odds_);
            value = walk(value);
        }
        MapFit found;
        regress<true>(log_odds_, &found.variance);
        found.log_odds = std::move(log_odds_);
        found.log_evidence = value - log_determinant_ / 2;
        return found;
    }

    // What the mode at the sites with samples says of all sites, and how sure it is.
    MapFit around(const std::vector<double>& mode) {
        MapFit found;
        look(mode);
        regress<true>(mode, &found.variance);
        found.log_odds = std::move(next_);
        return found;
    }

private:
    // The states of the labels' series and of each feature's.
    struct Series {
        double of[1 + k_][2] = {};
    };

    // A gain of the log density that is left at which the next step ends: each squares what is
    // left. It is reckoned from the step, as the density itself may be too large to show it.
    static constexpr double enough = 1e-8;

    // What the filter says of a site before its labels are seen.
    struct Row {
        double p[2][2];  // covariance of the states
        Series mean;
        double pull[1 + k_];  // by how much each moves the states
        double weight;        // curvature over 1 + curvature * variance
    };

    // The log likelihood of log odds; its slope and curvature are kept for the next step. In
    // several passes, those that take long without a sum that would tie one site to the next.
    double look(const std::vector<double>& f) {
        double* small = small_.data();
        double* soft = soft_.data();
        for (std::size_t i = 0; i < n_; ++i) small[i] = portable::exp(-std::fabs(f[i]));
        for (std::size_t i = 0; i < n_; ++i) soft[i] = portable::log1p(small[i]);
        double sum = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            const double less = small[i] / (1 + small[i]);
            const double chance = f[i] < 0 ? less : 1 - less;
            error_[i] = sites_.ones[i] - sites_.count[i] * chance;
            weight_[i] = sites_.count[i] * less * (1 - less);
            sum += sites_.ones[i] * f[i] - sites_.count[i] * (std::max(f[i], 0.0) + soft[i]);
        }
        return sum;
    }

    // One whole step from log odds that need not be possible under the prior; kept where it is
    // better than to begin at the centre.
    double leap(const std::vector<double>& start, double value) {
        look(start);
        regress<false>(start);
        double inner = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            dual_[i] = error_[i] + weight_[i] * (start[i] - next_[i]);
            inner += dual_[i] * (next_[i] - prior_.centre[i]);
        }
        const double reached = look(next_) - inner / 2;
        if (reached > value) {
            log_odds_ = next_;
            return reached;
        }
        std::fill(dual_.begin(), dual_.end(), 0.0);
        return look(log_odds_);
    }

    // Go as far towards `next_` as the posterior density grows.
    double walk(double value) {
        double inner = 0, crossed = 0, square = 0, bent = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            by_[i] = next_[i] - log_odds_[i];
            dual_by_[i] = error_[i] - weight_[i] * by_[i] - dual_[i];
            const double off = log_odds_[i] - prior_.centre[i];
            inner += dual_[i] * off;
            crossed += dual_[i] * by_[i] + dual_by_[i] * off;
            square += dual_by_[i] * by_[i];
            bent += weight_[i] * by_[i] * by_[i];
        }
        arrived_ = square + bent < 2 * enough;
        for (double step = 1; step > 1e-12; step /= 2) {
            for (std::size_t i = 0; i < n_; ++i) next_[i] = log_odds_[i] + step * by_[i];
            const double reached = look(next_) - (inner + step * (crossed + step * square)) / 2;
            if (!arrived_ && !(reached >= value - 1e-12 * std::fabs(value))) continue;
            log_odds_.swap(next_);
            for (std::size_t i = 0; i < n_; ++i) dual_[i] += step * dual_by_[i];
            return reached;
        }
        look(log_odds_);
        arrived_ = true;
        return value;
    }

    // The log odds that are best where the likelihood is replaced by its parabola at `f`: into
    // `next_`, and with `whole` also their variance and the determinant.
    template <bool whole>
    void regress(const std::vector<double>& f, std::vector<double>* variance = nullptr) {
        double normal[k_][k_] = {}, right[k_] = {};
        up<whole>(f, normal, right);
        for (int j = 0; j < k_; ++j) normal[j][j] += 1;
        double lower[k_][k_] = {};
        cholesky(normal, lower);
        double theta[k_] = {};
        for (int j = 0; j < k_; ++j) theta[j] = right[j];
        solve_lower(lower, theta);
        for (int j = k_; j-- > 0;) {
            for (int l = j + 1; l < k_; ++l) theta[j] -= lower[l][j] * theta[l];
            theta[j] /= lower[j][j];
        }
        if constexpr (whole) {
            for (int j = 0; j < k_; ++j) log_determinant_ += 2 * portable::log(lower[j][j]);
            variance->resize(n_);
        }
        down<whole>(theta, lower, variance);
    }

    void cholesky(const double (&a)[k_][k_], double (&lower)[k_][k_]) const {
        for (int j = 0; j < k_; ++j)
            for (int l = 0; l <= j; ++l) {
                double rest = a[j][l];
                for (int m = 0; m < l; ++m) rest -= lower[j][m] * lower[l][m];
                lower[j][l] = l == j ? std::sqrt(rest) : rest / lower[l][l];
            }
    }
    void solve_lower(const double (&lower)[k_][k_], double (&x)[k_]) const {
        for (int j = 0; j < k_; ++j) {
            for (int l = 0; l < j; ++l) x[j] -= lower[j][l] * x[l];
            x[j] /= lower[j][j];
        }
    }

    template <bool whole>
    void up(const std::vector<double>& f, double (&normal)[k_][k_], double (&right)[k_]) {
        double p[2][2] = {};
        Series mean;
        log_determinant_ = 0;
        if constexpr (states > 0) {  // far from all others: the stationary law
            p[0][0] = path_[0].q[0][0];
            if constexpr (states == 2) p[1][1] = path_[0].q[1][1];
        }
        for (std::size_t i = 0; i < n_; ++i) {
            if constexpr (states > 0)
                if (i) predict(path_[i], p, mean);
            Row& row = row_[i];
            const double weight = weight_[i], share = 1 + weight * p[0][0];
            double off[1 + k_];
            off[0] = weight * (f[i] - prior_.centre[i] - mean.of[0][0]) + error_[i];
            for (int j = 0; j < k_; ++j) off[1 + j] = prior_.features[j][i] - mean.of[1 + j][0];
            row.weight = weight / share;
            row.pull[0] = off[0] / share;
            for (int j = 0; j < k_; ++j) row.pull[1 + j] = off[1 + j] * row.weight;
            for (int j = 0; j < k_; ++j) {
                right[j] += off[1 + j] * row.pull[0];
                for (int l = 0; l <= j; ++l) normal[j][l] += off[1 + j] * row.pull[1 + l];
            }
            if constexpr (whole && states > 0) log_determinant_ += portable::log(share);
            if constexpr (states > 0) {
                for (int a = 0; a < states; ++a)
                    for (int b = 0; b < states; ++b) row.p[a][b] = p[a][b];
                row.mean = mean;
                for (int c = 0; c <= k_; ++c)
                    for (int a = 0; a < states; ++a) mean.of[c][a] += p[a][0] * row.pull[c];
                for (int a = 0; a < states; ++a)
                    for (int b = 0; b < states; ++b)
                        p[a][b] = row.p[a][b] - row.p[a][0] * row.p[0][b] * row.weight;
            }
        }
    }

    void predict(const PathStep<states>& path, double (&p)[2][2], Series& mean) const {
        const auto& t = path.t;
        if constexpr (states == 1) {
            p[0][0] = t[0][0] * t[0][0] * p[0][0] + path.q[0][0];
            for (int c = 0; c <= k_; ++c) mean.of[c][0] *= t[0][0];
        } else {
            double half[2][2];
            for (int a = 0; a < 2; ++a)
                for (int b = 0; b < 2; ++b) half[a][b] = t[a][0] * p[0][b] + t[a][1] * p[1][b];
            p[0][0] = half[0][0] * t[0][0] + half[0][1] * t[0][1] + path.q[0][0];
            p[0][1] = p[1][0] = half[0][0] * t[1][0] + half[0][1] * t[1][1] + path.q[0][1];
            p[1][1] = half[1][0] * t[1][0] + half[1][1] * t[1][1] + path.q[1][1];
            for (int c = 0; c <= k_; ++c) {
                const double first = mean.of[c][0], second = mean.of[c][1];
                mean.of[c][0] = t[0][0] * first + t[0][1] * second;
                mean.of[c][1] = t[1][0] * first + t[1][1] * second;
            }
        }
    }

    // What the sites above say of each site, for the series of the labels less the features' share
    // and, with `whole`, for each feature.
    template <bool whole>
    void down(const double (&theta)[k_], const double (&lower)[k_][k_],
              std::vector<double>* variance) {
        constexpr int columns = whole ? 1 + k_ : 1;
        double back[columns][2] = {};
        double n[2][2] = {};
        for (std::size_t i = n_; i-- > 0;) {
            const Row& row = row_[i];
            double value = prior_.centre[i];
            for (int j = 0; j < k_; ++j) value += prior_.features[j][i] * theta[j];
            double response[1 + k_] = {};
            double spread = 0;
            if constexpr (states > 0) {
                if (i + 1 < n_) {
                    for (auto& r : back) transpose_times(path_[i + 1], r);
                    if constexpr (whole) sandwich(path_[i + 1], n);
                }
                for (int c = 0; c < columns; ++c) {
                    if (c > k_) break;
                    double pull = row.pull[c], mean = row.mean.of[c][0];
                    for (int j = 0; c == 0 && j < k_; ++j) {
                        pull -= theta[j] * row.pull[1 + j];
                        mean -= theta[j] * row.mean.of[1 + j][0];
                    }
                    back[c][0] += pull - row.weight * ahead(row, back[c]);
                    response[c] = mean + ahead(row, back[c]);
                }
                value += response[0];
                if constexpr (whole) {
                    gather(row, n);
                    double taken = 0;
                    for (int a = 0; a < states; ++a)
                        for (int b = 0; b < states; ++b)
                            taken += row.p[0][a] * n[a][b] * row.p[b][0];
                    spread = std::max(row.p[0][0] - taken, 0.0);
                }
            }
            next_[i] = value;
            if constexpr (whole) {
                double own[k_] = {};
                for (int j = 0; j < k_; ++j) own[j] = prior_.features[j][i] - response[1 + j];
                solve_lower(lower, own);
                for (int j = 0; j < k_; ++j) spread += own[j] * own[j];
                (*variance)[i] = spread;
            }
        }
    }

    static double ahead(const Row& row, const double (&r)[2]) {
        double sum = row.p[0][0] * r[0];
        if constexpr (states == 2) sum += row.p[0][1] * r[1];
        return sum;
    }
    static void transpose_times(const PathStep<states>& path, double (&r)[2]) {
        const double first = r[0], second = r[1];
        r[0] = path.t[0][0] * first;
        if constexpr (states == 2) {
            r[0] += path.t[1][0] * second;
            r[1] = path.t[0][1] * first + path.t[1][1] * second;
        }
    }
    static void sandwich(const PathStep<states>& path, double (&n)[2][2]) {
        double half[2][2] = {}, out[2][2] = {};
        for (int a = 0; a < states; ++a)
            for (int b = 0; b < states; ++b)
                for (int c = 0; c < states; ++c) half[a][b] += n[a][c] * path.t[c][b];
        for (int a = 0; a < states; ++a)
            for (int b = 0; b < states; ++b)
                for (int c = 0; c < states; ++c) out[a][b] += path.t[c][a] * half[c][b];
        for (int a = 0; a < states; ++a)
            for (int b = 0; b < states; ++b) n[a][b] = out[a][b];
    }
    // What the site itself adds to the precision of what comes from above.
    static void gather(const Row& row, double (&n)[2][2]) {
        double j[2][2] = {{1, 0}, {0, 1}}, half[2][2] = {}, out[2][2] = {};
        for (int a = 0; a < states; ++a) j[a][0] -= row.weight * row.p[a][0];
        for (int a = 0; a < states; ++a)
            for (int b = 0; b < states; ++b)
                for (int c = 0; c < states; ++c) half[a][b] += n[a][c] * j[c][b];
        for (int a = 0; a < states; ++a)
            for (int b = 0; b < states; ++b)
                for (int c = 0; c < states; ++c) out[a][b] += j[c][a] * half[c][b];
        out[0][0] += row.weight;
        for (int a = 0; a < states; ++a)
            for (int b = 0; b < states; ++b) n[a][b] = out[a][b];
    }

    const Sites& sites_;
    const MapPrior& prior_;
    std::size_t n_;
    std::vector<Row> row_;
    std::vector<PathStep<states>> path_;
    std::vector<double> log_odds_, dual_;  // the mode so far, and the prior's precision times it
    std::vector<double> weight_, error_;   // of the likelihood there
    std::vector<double> next_, by_, dual_by_;  // where a step leads
    std::vector<double> small_, soft_;
    double log_determinant_ = 0;
    bool arrived_ = false;
};

// Call `use` with the fitter of a map.
template <class Use>
MapFit with_fitter(const Sites& sites, const MapPrior& prior, Use&& use) {
    const auto of = [&]<int features>() {
        if (prior.path_deviation == 0) return use(MapFitter<0, features>(sites, prior));
        if (prior.smooth) return use(MapFitter<2, features>(sites, prior));
        return use(MapFitter<1, features>(sites, prior));
    };
    return prior.feature_count == 2 ? of.template operator()<2>() : of.template operator()<3>();
}

inline MapFit fit_map(const Sites& sites, const MapPrior& prior,
                      const std::vector<double>* start = nullptr) {
    return with_fitter(sites, prior, [&](auto&& fitter) { return fitter.fit(start); });
}

inline MapFit map_around(const Sites& sites, const MapPrior& prior,
                         const std::vector<double>& mode) {
    return with_fitter(sites, prior, [&](auto&& fitter) { return fitter.around(mode); });
}

}  // namespace limen
