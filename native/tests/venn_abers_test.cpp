// SPDX-License-Identifier: Apache-2.0
//
// Venn-Abers intervals against their definition: the largest, over starts, of the smallest slope,
// over ends, of all cuts with one more sample; and against pooling where trees are large. Leaves
// are so small that every query joins parts of many.

#define LIMEN_TEST_MAIN
#include "samples/venn_abers.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr std::int64_t limit = std::int64_t{1} << 62;

using Random = std::mt19937_64;

std::vector<ScoreSums> with(std::vector<ScoreSums> held, const ScoreSums& sample) {
    auto at = std::lower_bound(held.begin(), held.end(), sample.score,
                               [](const ScoreSums& a, double score) { return a.score < score; });
    if (at == held.end() || at->score != sample.score)
        held.insert(at, sample);
    else
        at->below += sample.below, at->above += sample.above;
    return held;
}

double by_definition(const std::vector<ScoreSums>& held, double score) {
    std::vector<Point> points(1);
    std::size_t k = 0;
    for (const ScoreSums& each : held) {
        if (each.score < score) ++k;
        points.push_back(points.back() + point_of(each));
    }
    Point largest{1, -1};
    for (std::size_t i = 0; i <= k; ++i) {
        Point smallest = points[k + 1] - points[i];
        for (std::size_t j = k + 2; j < points.size(); ++j)
            if (cross(points[j] - points[i], smallest) > 0) smallest = points[j] - points[i];
        if (cross(largest, smallest) > 0) largest = smallest;
    }
    return nearest_ratio(largest.below, largest.weight);
}

double by_pooling(const std::vector<ScoreSums>& held, double score) {
    for (const Block& block : fit_blocks(held))
        if (block.last >= score) return value_of(block);
    return -1;
}

using Fit = double (*)(const std::vector<ScoreSums>&, double);

void check_at(const HullTree& tree, const std::vector<ScoreSums>& held, std::int64_t weight,
              Fit fit, const std::vector<double>& scores, const std::string& note) {
    VennAbers one(tree, weight);
    const VennAbersColumns many(tree, {weight, 0});
    for (double score : scores) {
        const double low = fit(with(held, {score, 0, weight, 1}), score);
        const double high = fit(with(held, {score, weight, 0, 1}), score);
        const std::string where = note + ", at " + std::to_string(score);
        const ProbabilityInterval walked = one.at(score), swept = many.at(score);
        CHECK_NOTE(walked.low == low && walked.high == high, where);
        CHECK_NOTE(swept.low == low && swept.high == high, where);
        CHECK_NOTE(low <= high, where);
    }
}

std::vector<double> around(const std::vector<ScoreSums>& held, std::size_t stride) {
    std::vector<double> scores{-inf, 0.0, inf};
    for (std::size_t i = 0; i < held.size(); i += stride) {
        const double score = held[i].score;
        for (double near : {std::nextafter(score, -inf), score, std::nextafter(score, inf)})
            scores.push_back(near);
    }
    return scores;
}

struct Kind {
    const char* name;
    std::function<ScoreSums(Random&, double)> sample;
};

ScoreSums labelled(double score, bool label, std::int64_t weight) {
    return label ? ScoreSums{score, weight, 0, 1} : ScoreSums{score, 0, weight, 1};
}

const std::vector<Kind> kinds = {
    {"coin tosses", [](Random& r, double score) { return labelled(score, r() % 2, 1); }},
    {"calibrated",
     [](Random& r, double score) { return labelled(score, double(r() % 64) < score, 1); }},
    {"descending",
     [](Random& r, double score) { return labelled(score, double(r() % 64) > score, 1); }},
    {"one to two to the forty",
     [](Random& r, double score) { return labelled(score, r() % 2, std::int64_t{1} << r() % 41); }},
    {"nearly parallel",
     [](Random& r, double score) {
         const auto large = (std::int64_t{1} << 48) + static_cast<std::int64_t>(r() % 3);
         return ScoreSums{score, large + static_cast<std::int64_t>(r() % 3), large, 1};
     }},
};

std::vector<ScoreSums> drawn(const Kind& kind, Random& random, int samples, unsigned distinct,
                             HullTree& tree) {
    for (int i = 0; i < samples; ++i) {
        double score = double(random() % distinct) * 64 / distinct;
        if (random() % 40 == 0) score = random() % 2 ? inf : -inf;
        tree.add(kind.sample(random, score));
    }
    std::vector<ScoreSums> held;
    tree.scan([&](const ScoreSums& each) { held.push_back(each); });
    return held;
}

}  // namespace

TEST_CASE("nothing held leaves everything possible") {
    const HullTree tree(4);
    for (double score : {-inf, 0.0, inf}) {
        for (const ProbabilityInterval& found :
             {VennAbers(tree, 1).at(score), VennAbersColumns(tree, {1, 0}).at(score)})
            CHECK(found.low == 0 && found.high == 1);
    }
}

TEST_CASE("one walk and one sweep give what the definition says") {
    for (int capacity : {4, 5, 8, HullTree::leaf_slots})
        for (const Kind& kind : kinds)
            for (int seed = 0; seed < testing::effort(4, 30); ++seed) {
                Random random(static_cast<std::uint64_t>(seed));
                HullTree tree(capacity);
                const int samples = 1 + seed * 4;
                const std::vector<ScoreSums> held =
                    drawn(kind, random, samples, 1 + static_cast<unsigned>(random() % 60), tree);
                const std::int64_t weight = seed % 3 ? 1 : std::int64_t{1} << random() % 42;
                check_at(tree, held, weight, by_definition, around(held, 1),
                         kind.name + (", seed " + std::to_string(seed)));
            }
}

TEST_CASE("large trees give what pooling says") {
    for (int capacity : {4, HullTree::leaf_slots})
        for (const Kind& kind : kinds) {
            Random random(7);
            HullTree tree(capacity);
            const std::vector<ScoreSums> held = drawn(kind, random, 4000, 1u << 20, tree);
            check_at(tree, held, 1, by_pooling,
                     around(held, held.size() / testing::effort(10, 60) + 1), kind.name);
        }
}

TEST_CASE("sums and a sample close to two to the 62 do not overflow") {
    const std::int64_t most = limit - 1;
    for (int seed = 0; seed < 40; ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        HullTree tree(4);
        std::int64_t left = most;
        for (int i = 0; i < 20 && left > 0; ++i) {
            const std::int64_t part =
                i == 19 ? left : 1 + static_cast<std::int64_t>(random() % 4) * (left / 8);
            tree.add(labelled(double(random() % 30), random() % 2, part));
            left -= part;
        }
        std::vector<ScoreSums> held;
        tree.scan([&](const ScoreSums& each) { held.push_back(each); });
        for (std::int64_t weight : {std::int64_t{1}, most / 3, most})
            check_at(tree, held, weight, by_definition, around(held, 1),
                     "seed " + std::to_string(seed));
    }
}

TEST_CASE("a sample between two scores counts with the next, or with the last") {
    HullTree tree(4);
    for (int i = 0; i < 30; ++i) tree.add(labelled(i, i % 3 == 0 || i > 20, 1));
    VennAbers one(tree, 1);
    CHECK(one.at(-1).low == 0 && one.at(30).high == 1);
    for (int i = 0; i + 1 < 30; ++i) {
        CHECK(one.at(i + 0.5).low == one.at(i).low);
        CHECK(one.at(i + 0.5).high == one.at(i + 1).high);
    }
}

TEST_CASE("the tree stays as it was") {
    Random random(3);
    HullTree tree(4);
    const std::vector<ScoreSums> held = drawn(kinds[0], random, 300, 200, tree);
    const RunSums totals = tree.totals();
    const std::size_t memory = tree.memory();
    const std::vector<double> scores = around(held, 1);
    std::vector<double> low(scores.size()), high(scores.size());
    intervals(tree, scores.data(), 1, {1, 0}, low.data(), high.data());
    intervals(tree, scores.data(), scores.size(), {1, 0}, low.data(), high.data());
    tree.check();
    std::size_t i = 0;
    tree.scan([&](const ScoreSums& each) {
        CHECK(each.score == held[i].score && each.below == held[i].below &&
              each.above == held[i].above && each.count == held[i].count);
        ++i;
    });
    CHECK(i == held.size() && totals == tree.totals() && memory == tree.memory());
}

TEST_CASE("few scores are asked one by one, and many at once, with one answer") {
    Random random(5);
    HullTree tree(8);
    const std::vector<ScoreSums> held = drawn(kinds[1], random, 2000, 900, tree);
    const std::vector<double> scores = around(held, 3);
    std::vector<double> low(scores.size()), high(scores.size());
    intervals(tree, scores.data(), scores.size(), {1, 0}, low.data(), high.data());
    CHECK(scores.size() >= tree.distinct() / 16);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        double one_low = -1, one_high = -1;
        intervals(tree, &scores[i], 1, {1, 0}, &one_low, &one_high);
        const ProbabilityInterval single = interval_at(tree, scores[i], {1, 0});
        CHECK(one_low == low[i] && one_high == high[i]);
        CHECK(single.low == low[i] && single.high == high[i]);
    }
}

TEST_CASE("a sample is measured as an update would, and finer than the samples held if need be") {
    OnlineHull held;
    for (int i = 0; i < 50; ++i) held.add(i % 17, i % 5 < 2 ? Losses{3, 0} : Losses{0, 3}, 0, true);
    Trial trial;
    CHECK(measure_trial(held, 1, trial) == Refusal::none && trial.weight == 1 && trial.finer == 0);
    CHECK(measure_trial(held, 2.75, trial) == Refusal::none);
    CHECK(trial.weight == 11 && trial.finer == 2 && held.bits() == 0);
    OnlineHull finer;
    for (int i = 0; i < 50; ++i)
        finer.add(i % 17, i % 5 < 2 ? Losses{12, 0} : Losses{0, 12}, 2, true);
    for (double score : {-1.0, 0.0, 3.5, 4.0, 16.0, 20.0}) {
        const ProbabilityInterval found = interval_at(held.tree(), score, trial);
        const ProbabilityInterval expected = interval_at(finer.tree(), score, {11, 0});
        CHECK(found.low == expected.low && found.high == expected.high);
    }
    // Where there is no room for the places, it is measured in those that fit.
    held.add(3, {limit / 4, 0}, 0, true);
    CHECK(measure_trial(held, 2.75, trial) == Refusal::none && trial.finer == 1 &&
          trial.weight == 6);
    CHECK(measure_trial(OnlineHull({false, 10, 1}), 1, trial) == Refusal::lost);
    CHECK(measure_trial(OnlineHull({false, 1, limit - 1}), 2, trial) == Refusal::too_large);
}
