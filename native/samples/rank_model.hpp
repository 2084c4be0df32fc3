// SPDX-License-Identifier: Apache-2.0
//
// A model of two numbers: how the odds of label 1 grow with the rank of a score.
//
// fit    O(bins) for each of a few steps of Newton's method
//
// The rank is written as a normal score, so nothing depends on the scale of the scores. It is a
// rough model; it is used only where the samples cannot distinguish cuts.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace limen {

// The point below which a normal law has this share, which lies strictly between 0 and 1; to about
// 16 digits. Wichura (1988), algorithm AS 241.
inline double normal_quantile(double share) {
    const auto ratio = [](const double(&over)[8], const double(&under)[8], double x) {
        double a = over[7], b = under[7];
        for (int i = 6; i >= 0; --i) {
            a = a * x + over[i];
            b = b * x + under[i];
        }
        return a / b;
    };
    constexpr double middle[2][8] = {
        {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
         1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
         3.3430575583588128105e+4, 2.5090809287301226727e+3},
        {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
         2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
         5.2264952788528545610e+3}};
    constexpr double outer[2][8] = {
        {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
         3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
         2.27238449892691845833e-2, 7.74545014278341407640e-4},
        {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
         1.05075007164441684324e-9}};
    constexpr double tail[2][8] = {
        {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
         2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
         2.71155556874348757815e-5, 2.01033439929228813265e-7},
        {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
         2.04426310338993978564e-15}};
    const double q = share - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(middle[0], middle[1], 0.180625 - q * q);
    const double r = std::sqrt(-std::log(q <= 0 ? share : 1 - share));
    const double x = r <= 5 ? ratio(outer[0], outer[1], r - 1.6) : ratio(tail[0], tail[1], r - 5);
    return q < 0 ? -x : x;
}

// log odds of label 1 = slope * normal score of the rank + offset
struct RankModel {
    double slope = 1, offset = 0;

    // Which share of the weight should be answered 0 at these odds of the costs.
    double share_below(double false_positive, double false_negative) const {
        const double odds = std::log(false_positive / false_negative);
        if (slope > 0) return 0.5 * std::erfc((offset - odds) / slope / std::sqrt(2.0));
        return offset >= odds ? 0 : 1;
    }
};

// The weights of both labels in bins of ascending score, all of them above 0.
struct RankBins {
    std::vector<double> ones, zeros;

    void add(double one, double zero) {
        ones.push_back(one);
        zeros.push_back(zero);
    }
};

inline RankModel fit_ranks(const RankBins& bins) {
    constexpr int most_steps = 50;
    constexpr double longest_step = 5, ridge = 1e-6;
    const std::size_t n = bins.ones.size();
    double positive = 0, negative = 0;
    for (std::size_t i = 0; i < n; ++i) {
        positive += bins.ones[i];
        negative += bins.zeros[i];
    }
    // Targets as in Platt's method: never quite 0 or 1, so that the fit stays finite.
    const double of_ones = (positive + 1) / (positive + 2), of_zeros = 1 / (negative + 2);
    std::vector<double> x(n), both(n), target(n), guess(n);
    double before = 0;
    for (std::size_t i = 0; i < n; ++i) {
        both[i] = bins.ones[i] + bins.zeros[i];
        before += both[i];
        x[i] = normal_quantile((before - both[i] / 2) / (positive + negative));
        target[i] = bins.ones[i] * of_ones + bins.zeros[i] * of_zeros;
    }
    RankModel model;
    for (int step = 0; step < most_steps; ++step) {
        for (std::size_t i = 0; i < n; ++i)
            guess[i] =
                1 / (1 + std::exp(-std::clamp(model.slope * x[i] + model.offset, -35.0, 35.0)));
        double by_slope = ridge * model.slope, by_offset = 0, xx = ridge, xo = 0, oo = 1e-9;
        for (std::size_t i = 0; i < n; ++i) {
            const double error = both[i] * guess[i] - target[i];
            const double curve = both[i] * guess[i] * (1 - guess[i]);
            by_slope += error * x[i];
            by_offset += error;
            xx += curve * x[i] * x[i];
            xo += curve * x[i];
            oo += curve;
        }
        const double determinant = xx * oo - xo * xo;
        if (determinant <= 1e-14) break;
        const double slope = (oo * by_slope - xo * by_offset) / determinant;
        const double offset = (xx * by_offset - xo * by_slope) / determinant;
        const double size = std::max({std::fabs(slope), std::fabs(offset), 1e-300});
        const double shorter = std::min(1.0, longest_step / size);
        model.slope -= shorter * slope;
        model.offset -= shorter * offset;
        if (std::fabs(slope) + std::fabs(offset) < 1e-8) break;
    }
    return model;
}

}  // namespace limen
