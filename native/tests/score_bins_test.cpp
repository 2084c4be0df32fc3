// SPDX-License-Identifier: Apache-2.0
//
// Bins of scores, and where maps over them would cut, against their definition over all scores.

#define LIMEN_TEST_MAIN
#include "samples/score_bins.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "instances.hpp"
#include "samples/map_decision.hpp"
#include "samples/ranked.hpp"
#include "tests/testing.hpp"

namespace {

using namespace limen;
using limen::testing::effort;
using Random = std::mt19937_64;

int below(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// Distinct scores in ascending order, and how many samples of each label have them.
struct Drawn {
    std::vector<double> scores;
    std::vector<std::int64_t> ones, zeros;

    std::size_t size() const { return scores.size(); }
    std::int64_t weight(std::size_t i) const { return ones[i] + zeros[i]; }
    Ranked<Counts> ranked(const WholeCosts& costs) const {
        return {scores.data(), ones.data(), zeros.data(), scores.size(), costs};
    }
};

Drawn drawn(Random& random, int distinct, int most) {
    Drawn found;
    for (int i = 0; i < distinct; ++i) {
        found.scores.push_back((i + 0.5) / distinct);
        const int heavy = below(random, 20) ? most : 50 * most;
        const std::int64_t ones = below(random, heavy + 1);
        found.ones.push_back(ones);
        found.zeros.push_back(ones ? below(random, heavy + 1) : 1 + below(random, heavy));
    }
    return found;
}

// The bin of each score, by the middle of its weight; in twice the weight, where every middle is a
// whole number and none is rounded to the other side of an edge.
std::vector<int> bin_of_each(const Drawn& given) {
    constexpr int half = 96;
    double all = 0, below = 0;
    for (std::size_t i = 0; i < given.size(); ++i) all += static_cast<double>(given.weight(i));
    std::vector<double> middle;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const double own = static_cast<double>(given.weight(i));
        middle.push_back(2 * below + own);
        below += own;
    }
    const double low = portable::normal_quantile(middle.front() / (2 * all));
    const double high = portable::normal_quantile(middle.back() / (2 * all));
    std::vector<double> edges;
    for (int i = 1; i < half; ++i) {
        edges.push_back(2 * all * i / half);
        edges.push_back(2 * all * portable::normal_share(low + (high - low) * i / half));
    }
    std::vector<int> bins;
    for (const double each : middle)
        bins.push_back(static_cast<int>(
            std::count_if(edges.begin(), edges.end(), [=](double edge) { return edge <= each; })));
    return bins;
}

template <class Bins>
void agree(const Bins& found, const Bins& expected, const std::string& note) {
    CHECK_NOTE(found.size() == expected.size(), note);
    for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK_NOTE(found[i].ones == expected[i].ones && found[i].zeros == expected[i].zeros, note);
        CHECK_NOTE(found[i].score == expected[i].score, note);
    }
}

}  // namespace

TEST_CASE("few scores have a bin each") {
    Random random(1);
    const Drawn given = drawn(random, 192, 3);
    const Ranked<Counts> ranked = given.ranked({1, 1});
    const BinnedScores binned(ranked.parts());
    const ScoreBins found = binned.bins();
    CHECK(binned.is_whole());
    CHECK(found.bins.size() == 192);
    for (std::size_t i = 0; i < 192; ++i) {
        CHECK(found.bins[i].score == given.scores[i]);
        CHECK(found.bins[i].ones == static_cast<double>(given.ones[i]));
        CHECK(found.bins[i].zeros == static_cast<double>(given.zeros[i]));
    }
}

TEST_CASE("many scores are in the bins that the middles of their weights fall into") {
    Random random(2);
    for (int step = 0; step < effort(5, 40); ++step) {
        const Drawn given = drawn(random, 193 + below(random, 3000), 1 + below(random, 4));
        const std::vector<int> bins = bin_of_each(given);
        std::vector<ScoreBins::Bin> expected;
        std::vector<double> before;
        double below = 0;
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (i == 0 || bins[i] != bins[i - 1]) {
                expected.push_back({0, 0, 0});
                before.push_back(below);
            }
            expected.back().ones += static_cast<double>(given.ones[i]);
            expected.back().zeros += static_cast<double>(given.zeros[i]);
            below += static_cast<double>(given.weight(i));
        }
        for (std::size_t b = 0; b < expected.size(); ++b) {
            const double middle = before[b] + (expected[b].ones + expected[b].zeros) / 2;
            double upto = 0;
            std::size_t i = 0;
            while ((upto += static_cast<double>(given.weight(i))) < middle) ++i;
            expected[b].score = given.scores[i];
        }
        const Ranked<Counts> ranked = given.ranked({1, 1});
        agree(BinnedScores(ranked.parts()).bins().bins, expected, "step " + std::to_string(step));
    }
}

TEST_CASE("a tree has the bins of the array") {
    Random random(3);
    for (int step = 0; step < effort(3, 20); ++step) {
        const Drawn given = drawn(random, 100 + below(random, 900), 2);
        const WholeCosts costs{1, 3};
        OnlineHull held({}, 4);
        held.set_costs(1, 1);
        for (std::size_t i = 0; i < given.size(); ++i) {
            for (std::int64_t k = 0; k < given.ones[i]; ++k)
                held.add(given.scores[i], {1, 0}, 0, true);
            for (std::int64_t k = 0; k < given.zeros[i]; ++k)
                held.add(given.scores[i], {0, 1}, 0, true);
        }
        const Ranked<Counts> ranked = given.ranked(costs);
        seen(held, costs, [&](const auto& parts, const auto&) {
            const auto& counts = parts.counts();
            agree(BinnedScores(counts).bins().bins, BinnedScores(ranked.parts()).bins().bins,
                  "step " + std::to_string(step));
            return 0;
        });
    }
}

TEST_CASE("maps cut where the chance of label 1 crosses the ratio of the costs") {
    ScoreBins calibrated;
    for (int i = 1; i < 100; ++i) calibrated.bins.push_back({2.0 * i, 2.0 * (100 - i), i / 100.0});
    calibrated.kind = ScoreKind::probabilities;
    const AveragedMap map(calibrated);
    for (const double ratio : {0.05, 0.25, 1.0, 4.0, 20.0}) {
        const MapDecision decision(map, ratio, 1);
        const double score = decision.below_cut() / 200;  // each score has 200 samples
        CHECK(std::fabs(score - (ratio / (1 + ratio) * 100 - 0.5)) < 1.5);
    }
}

TEST_CASE("inside a gap the threshold lies where the maps cross, and never outside") {
    ScoreBins calibrated;
    for (const int percent : {5, 10, 90, 95})
        calibrated.bins.push_back({1.0 * percent, 100.0 - percent, percent / 100.0});
    calibrated.kind = ScoreKind::probabilities;
    const AveragedMap map(calibrated);
    WeighedGap gap;
    gap.cut.has_lower = gap.cut.has_upper = true;
    gap.cut.lower = 0.1;
    gap.cut.upper = 0.9;
    gap.below = 200;
    gap.lower_middle = 150;
    gap.upper_middle = 250;
    double last = 0.1;
    for (const double ratio : {0.2, 0.5, 1.0, 2.0, 5.0}) {
        const double found = MapDecision(map, ratio, 1).inside(gap);
        CHECK(found > last);
        CHECK(found <= 0.9);
        CHECK(std::fabs(found - ratio / (1 + ratio)) < 0.06);
        last = found;
    }
}
