// SPDX-License-Identifier: Apache-2.0
//
// Both labels in buckets: for any costs the offered cut costs what is said, and no cut costs less
// than the bound allows.

#define LIMEN_TEST_MAIN
#include "samples/class_grid.hpp"

#include <map>
#include <random>
#include <vector>

#include "tests/testing.hpp"

using namespace limen;
using limen::testing::effort;

namespace {

struct Sample {
    double score;
    Losses losses;
};

void require_offers(const ClassGrid& grid, const std::vector<Sample>& held) {
    grid.check();
    CHECK(grid.samples() == held.size());
    for (const auto& [positive, negative] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {1, 5}, {7, 2}, {1000000, 1}, {1, std::int64_t{1} << 40}}) {
        const auto offer = grid.best(positive, negative);
        const double threshold = threshold_of(offer.cut);
        std::map<double, Wide> z;
        Wide paid = 0, all = 0, best = 0, sum = 0;
        for (const Sample& sample : held) {
            const Wide above = Wide{positive} * sample.losses.above;
            const Wide below = Wide{negative} * sample.losses.below;
            paid += sample.score >= threshold ? above : below;
            all += above;
            z[sample.score] += above - below;
        }
        for (const auto& [score, own] : z) best = std::max(best, sum += own);
        CHECK(paid == offer.loss);
        CHECK(offer.bound >= 0);
        CHECK(all - best <= offer.loss);
        CHECK(all - best >= offer.loss - offer.bound);
    }
}

Sample draw(std::mt19937_64& random, bool ties) {
    const double score = ties ? static_cast<double>(random() % 40) - 20
                              : static_cast<double>(random()) * 0x1p-64 - 0.25;
    const auto weight = static_cast<std::int64_t>(random() % 3 ? 1 : 1 + random() % 9);
    return {score + 0.0, random() % 3 ? Losses{0, weight} : Losses{weight, 0}};
}

}  // namespace

TEST_CASE("offers and bounds hold for any costs after every step") {
    for (unsigned seed = 0; static_cast<int>(seed) < effort(12, 100); ++seed) {
        std::mt19937_64 random(seed);
        const std::size_t capacity = 8 + random() % 57;
        ClassGrid grid(Unit{}, capacity);
        std::vector<Sample> held;
        for (int step = 0; step < 250; ++step) {
            if (!held.empty() && random() % 4 == 0) {
                std::swap(held[random() % held.size()], held.back());
                CHECK(grid.remove(held.back().score, held.back().losses, 0, true) == Refusal::none);
                held.pop_back();
            } else {
                held.push_back(draw(random, seed % 2));
                CHECK(grid.add(held.back().score, held.back().losses, 0) == Refusal::none);
            }
            CHECK(grid.distinct() <= capacity);
            require_offers(grid, held);
        }
    }
}

TEST_CASE("merged grids hold the samples of both, and bytes bring them back") {
    for (unsigned seed = 0; static_cast<int>(seed) < effort(20, 200); ++seed) {
        std::mt19937_64 random(seed);
        ClassGrid all(Unit{}, 16), other(Unit{}, 16);
        std::vector<Sample> held;
        for (int i = 0; i < 200; ++i) {
            held.push_back(draw(random, seed % 3 == 0));
            (random() % 4 ? all : other).add(held.back().score, held.back().losses, 0);
        }
        CHECK(all.merge({other.part()}) == Refusal::none);
        CHECK(all.distinct() <= 16);
        require_offers(all, held);
        ClassGrid again(Unit{}, 16);
        CHECK(again.restore(all.state()));
        CHECK(again.state() == all.state());
        CHECK(all.copy().state() == all.state());
        for (int fault = 0; fault < 50; ++fault) {  // refused, or an object that holds together
            std::string changed = all.state();
            changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
            ClassGrid read(Unit{}, 16);
            if (read.restore(changed)) read.check();
        }
    }
}

TEST_CASE("what was certainly never added is refused") {
    ClassGrid grid(Unit{}, 8);
    grid.add(0.5, {0, 2}, 0);
    const std::string before = grid.state();
    for (const Sample& sample : {Sample{0.25, {0, 2}}, {0.5, {2, 0}}, {0.5, {0, 1}}, {0.5, {0, 3}}})
        CHECK(grid.remove(sample.score, sample.losses, 0, true) == Refusal::not_held);
    CHECK(grid.state() == before);
    CHECK(grid.remove(0.5, {0, 2}, 0, true) == Refusal::none);
    CHECK(grid.samples() == 0);
}
