// SPDX-License-Identifier: Apache-2.0
//
// The isotonic fit as numbers: quotients against long division, blocks against the hull tree and
// against the definition, probabilities against a walk over all blocks.

#define LIMEN_TEST_MAIN
#include "samples/isotonic.hpp"

#include <random>
#include <string>

#include "core/hull_copy.hpp"
#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double huge = std::numeric_limits<double>::max();
constexpr std::int64_t limit = (std::int64_t{1} << 62) - 1;

using Random = std::mt19937_64;

// Whether part / whole lies within half a step of the double, decided in whole numbers.
bool is_nearest(double value, std::int64_t part, std::int64_t whole) {
    if (part == 0) return value == 0;
    int exponent;
    const double fraction = std::frexp(value, &exponent);
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));
    // |part / whole - mantissa * 2^(exponent - 53)| <= 2^(exponent - 54), times whole * 2^shift
    const int shift = 54 - exponent;
    if (shift > 64) return true;  // a ratio below 2^-10: the others show enough
    const Wide exact = Wide{part} << shift, shown = Wide{mantissa} * 2 * whole;
    return (exact > shown ? exact - shown : shown - exact) <= Wide{whole};
}

TEST_CASE("a quotient is rounded once") {
    Random random(1);
    const auto below = [&](std::int64_t most) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    };
    for (int i = 0; i < 200000; ++i) {
        const std::int64_t whole = 1 + below(limit >> (i % 61)), part = below(whole) + i % 2;
        const double value = nearest_ratio(part, whole);
        CHECK_NOTE(is_nearest(value, part, whole),
                   std::to_string(part) + " / " + std::to_string(whole));
        CHECK(value >= 0 && value <= 1);
    }
    CHECK(nearest_ratio(0, limit) == 0 && nearest_ratio(limit, limit) == 1);
    CHECK(nearest_ratio(1, limit) == std::ldexp(1.0, -62));
    CHECK(nearest_ratio(limit - 1, limit) == 1);
}

TEST_CASE("larger fractions never become smaller quotients") {
    Random random(2);
    for (int i = 0; i < 100000; ++i) {
        // Neighbours in a row of fractions with about as many bits as there are.
        const auto whole = static_cast<std::int64_t>(random() >> 2 | 1), part = whole / 3 + i;
        const std::int64_t other = whole - 1 - i % 5;
        const bool less = Wide{part} * other < Wide{part + 1} * whole;
        if (less) CHECK(nearest_ratio(part, whole) <= nearest_ratio(part + 1, other));
    }
}

std::vector<ScoreSums> random_scores(Random& random, std::size_t n, std::int64_t most) {
    std::vector<ScoreSums> held;
    double score = -5;
    for (std::size_t i = 0; i < n; ++i) {
        score += static_cast<double>(1 + random() % 4) / 8;
        const auto weight = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
        const bool both = random() % 4 == 0, one = random() % 2;
        held.push_back({score, both || one ? weight + 1 : 0, both || !one ? weight / 3 + 1 : 0,
                        static_cast<std::uint32_t>(1 + both)});
    }
    return held;
}

std::vector<Block> blocks_of(const std::vector<ScoreSums>& held) {
    HullTree tree(4);
    tree.load(held);
    std::vector<Block> blocks;
    tree.blocks([&](const Block& block) { blocks.push_back(block); });
    return blocks;
}

TEST_CASE("pooling gives the blocks of the tree") {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        Random random(seed);
        const std::int64_t most = seed % 2 ? 3 : std::int64_t{1} << 54;
        const std::vector<ScoreSums> held = random_scores(random, random() % 40, most);
        const std::vector<Block> blocks = fit_blocks(held);
        CHECK_NOTE(blocks_of(held) == blocks, "seed " + std::to_string(seed));
        for (std::size_t i = 1; i < blocks.size(); ++i) {
            const RunSums &a = blocks[i - 1].sums, &b = blocks[i].sums;
            CHECK(Wide{a.below} * b.above < Wide{b.below} * a.above);
            CHECK(value_of(blocks[i - 1]) <= value_of(blocks[i]));
        }
    }
    CHECK(fit_blocks({}).empty());
}

TEST_CASE("a tree and its columns give the same probability") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        std::vector<ScoreSums> held = random_scores(random, random() % 60, 5);
        if (seed % 3 == 1) held.insert(held.begin(), {-inf, 1, 2, 3});
        if (seed % 3 == 2) held.push_back({inf, 2, 1, 3});
        HullTree tree(4);
        tree.load(held);
        std::vector<double> asked = {-inf, inf, -huge, huge, 0.0, -0.0, tiny};
        for (const ScoreSums& one : held)
            for (double score : {one.score, one.score + 1.0 / 16, one.score - 1.0 / 16,
                                 std::nextafter(one.score, inf), std::nextafter(one.score, -inf)})
                asked.push_back(score);
        for (Between between : {Between::step, Between::linear}) {
            std::vector<double> found(asked.size());
            probabilities(tree, asked.data(), asked.size(), between, found.data());
            for (std::size_t i = 0; i < asked.size(); ++i) {
                const double one = probability_at(tree, asked[i], between);
                CHECK(one == found[i] || (held.empty() && one != one && found[i] != found[i]));
            }
        }
    }
}

TEST_CASE("a copy of the hull answers as the tree did before it changed") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        std::vector<ScoreSums> held = random_scores(random, random() % 60, 5);
        if (seed % 3 == 1) held.insert(held.begin(), {-inf, 1, 2, 3});
        if (seed % 3 == 2) held.push_back({inf, 2, 1, 3});
        HullTree tree(4), before(4);
        tree.load(held);
        before.load(held);
        std::size_t vertices = 0;
        tree.vertices([&](const HullCut&) { ++vertices; });
        HullCopy copy;
        CHECK(!copy.take(tree, vertices - 1) && !copy.known());
        CHECK(copy.take(tree, vertices) && copy.known());
        tree.load(random_scores(random, 30, 5));
        CHECK(copy.totals() == before.totals());
        for (std::int64_t positive : {0, 1, 2, 3, 7})
            for (std::int64_t negative : {0, 1, 2, 5, 9})
                CHECK(copy.best(positive, negative) == before.best(positive, negative));
        std::vector<Block> own;
        copy.blocks([&](const Block& block) { own.push_back(block); });
        CHECK(own == blocks_of(held));
        std::vector<HullCut> cuts, theirs;
        copy.vertices([&](const HullCut& cut) { cuts.push_back(cut); });
        before.vertices([&](const HullCut& cut) { theirs.push_back(cut); });
        CHECK(cuts == theirs);
        std::vector<double> asked = {-inf, inf, -huge, huge, 0.0};
        for (const ScoreSums& one : held)
            for (double score : {one.score, one.score + 1.0 / 16, one.score - 1.0 / 16})
                asked.push_back(score);
        for (Between between : {Between::step, Between::linear}) {
            std::vector<double> found(asked.size());
            probabilities(copy, asked.data(), asked.size(), between, found.data());
            for (std::size_t i = 0; i < asked.size(); ++i) {
                const double one = probability_at(before, asked[i], between);
                const double other = probability_at(copy, asked[i], between);
                CHECK((one == found[i] && one == other) || (held.empty() && one != one));
            }
        }
    }
}

TEST_CASE("few scores are asked one by one") {
    Random random(3);
    HullTree tree;
    tree.load(random_scores(random, 5000, 5));
    const double asked[2] = {3.0, 11.0625};
    double found[2];
    probabilities(tree, asked, 2, Between::step, found);
    for (int i = 0; i < 2; ++i) CHECK(found[i] == probability_at(tree, asked[i], Between::step));
}

TEST_CASE("a step lies at the threshold and a line between the scores") {
    HullTree tree;
    tree.load({{0.0, 1, 3, 4}, {1.0, 3, 1, 4}});
    CHECK(probability_at(tree, 0.25, Between::step) == 0.25);
    CHECK(probability_at(tree, 0.5, Between::step) == 0.75);
    CHECK(probability_at(tree, std::nextafter(0.5, 0.0), Between::step) == 0.25);
    CHECK(probability_at(tree, 0.25, Between::linear) == 0.375);
    CHECK(probability_at(tree, -1, Between::linear) == 0.25);
    CHECK(probability_at(tree, 2, Between::linear) == 0.75);
}

TEST_CASE("infinite scores leave a line nothing to lean on") {
    HullTree left, right, both, wide, narrow;
    left.load({{-inf, 0, 1, 1}, {0.0, 1, 0, 1}});
    right.load({{0.0, 0, 1, 1}, {inf, 1, 0, 1}});
    both.load({{-inf, 0, 1, 1}, {inf, 1, 0, 1}});
    wide.load({{-huge, 0, 1, 1}, {huge, 1, 0, 1}});
    narrow.load({{0.0, 0, 1, 1}, {2 * tiny, 1, 0, 1}});
    CHECK(probability_at(left, -1, Between::linear) == 1);
    CHECK(probability_at(left, -inf, Between::linear) == 0);
    CHECK(probability_at(right, 1, Between::linear) == 0);
    CHECK(probability_at(right, inf, Between::linear) == 1);
    CHECK(probability_at(both, 7, Between::linear) == 0.5);
    CHECK(probability_at(wide, 0, Between::linear) == 0.5);
    CHECK(probability_at(narrow, tiny, Between::linear) == 0.5);
}

TEST_CASE("probabilities never fall") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Random random(seed);
        HullTree tree(4);
        tree.load(random_scores(random, 30, std::int64_t{1} << 55));
        for (Between between : {Between::step, Between::linear}) {
            double before = 0;
            for (double score = -6; score < 12; score += 1.0 / 64) {
                const double now = probability_at(tree, score, between);
                CHECK_NOTE(now >= before, "seed " + std::to_string(seed));
                before = now;
            }
        }
    }
}

}  // namespace
