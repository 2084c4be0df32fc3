// SPDX-License-Identifier: Apache-2.0
//
// Bounds that hold: every run against sums over all samples, after every step.

#define LIMEN_TEST_MAIN
#include "samples/bounded_samples.hpp"

#include <map>
#include <random>
#include <vector>

#include "instances.hpp"
#include "tests/testing.hpp"
#include "tests/testing_memory.hpp"

using namespace limen;
using limen::testing::effort;
using limen::testing::succeeds_with;

namespace {

using Small = BoundedSamples<RunTree<3, 2>>;

// All samples, by score: what they add to the running sum, and how many they are.
struct Oracle {
    std::map<double, std::pair<std::int64_t, int>> z;
    std::int64_t above = 0;

    void add(double score, const Losses& losses, int sign) {
        auto& [sum, count] = z[score + 0.0];
        sum += sign * (losses.above - losses.below);
        count += sign;
        above += sign * losses.above;
        if (count == 0) z.erase(score + 0.0);
    }
    // The largest sum at any cut, and where it is first reached from above.
    Cut best() const {
        Cut best;
        best.has_upper = !z.empty();
        if (!z.empty()) best.upper = z.begin()->first;
        std::int64_t sum = 0;
        for (auto at = z.begin(); at != z.end(); ++at) {
            sum += at->second.first;
            if (sum < best.best) continue;
            best.best = sum;
            best.lower = at->first;
            best.has_lower = true;
            const auto next = std::next(at);
            best.has_upper = next != z.end();
            best.upper = best.has_upper ? next->first : 0;
        }
        return best;
    }
    // The sum over all scores that a threshold answers 0.
    std::int64_t below(double threshold) const {
        std::int64_t sum = 0;
        for (const auto& [score, held] : z)
            if (!(score >= threshold)) sum += held.first;
        return sum;
    }
};

template <class Tree>
void require_bounds(const Tree& tree, const Oracle& oracle) {
    std::int64_t up = 0, low = 0, sum = 0;
    auto at = oracle.z.begin();
    tree.scan([&](const Run& run) {
        CHECK(at == oracle.z.end() || at->first >= run.first);  // every score lies in a run
        for (bool first = true; at != oracle.z.end() && at->first <= run.last; ++at) {
            if (!first) {
                CHECK(sum <= up + run.highest);
                CHECK(sum >= low + run.lowest);
            }
            first = false;
            sum += at->second.first;
        }
        up += run.up;
        low += run.low;
        CHECK(low <= sum && sum <= up);
    });
    CHECK(at == oracle.z.end());
}

template <class Bounded>
void require_certificate(const Bounded& bounded, const Oracle& oracle) {
    const Cut offered = bounded.best();
    const Cut best = oracle.best();
    const std::int64_t loss = bounded.loss(offered), least = oracle.above - best.best;
    CHECK(bounded.bound() >= 0);
    CHECK(least <= loss);
    CHECK(least >= loss - bounded.bound());
    CHECK(oracle.above - oracle.below(threshold_of(offered)) <= loss);
}

template <class Bounded>
void require_all(const Bounded& bounded, const Oracle& oracle) {
    bounded.check();
    require_bounds(bounded.tree(), oracle);
    require_certificate(bounded, oracle);
}

// Scores as streams bring them: anywhere, ascending, zigzag, ends inward, few of them.
double score_of_shape(int shape, int step, int steps, std::mt19937_64& random) {
    const double drawn = static_cast<double>(random() % 4096) / 4096;
    const double way = static_cast<double>(step) / steps;
    switch (shape) {
        case 0:
            return drawn;
        case 1:
            return way;
        case 2:
            return step % 2 ? way : -way;
        case 3:
            return step % 2 ? way : 2 - way;
        case 4:
            return static_cast<double>(random() % 12) - 6;
        case 5:
            return drawn + 3 * way;
        default: {
            const double rare[] = {
                -std::numeric_limits<double>::infinity(), -0.0, 0.0, 5e-324, -5e-324,
                std::numeric_limits<double>::infinity()};
            return random() % 4 ? drawn : rare[random() % 6];
        }
    }
}

struct Sample {
    double score;
    Losses losses;
};

Losses draw_losses(std::mt19937_64& random) {
    const auto weight = static_cast<std::int64_t>(random() % 3 ? 1 : random() % 50);
    switch (random() % 4) {
        case 0:
            return {weight, 0};
        case 1:
            return {0, weight};
        case 2:
            return {5, 0};
        default:
            return {static_cast<std::int64_t>(random() % 9) - 4, weight};
    }
}

}  // namespace

TEST_CASE("bounds hold after every step") {
    const int steps = effort(200, 600);
    for (unsigned seed = 0; static_cast<int>(seed) < effort(7, 42); ++seed) {
        std::mt19937_64 random(seed);
        const std::size_t capacity = 8 + random() % 57;
        Small bounded(Unit{}, capacity);
        Oracle oracle;
        std::vector<Sample> held;
        for (int step = 0; step < steps; ++step) {
            if (!held.empty() && random() % 5 == 0) {
                const std::size_t which = random() % held.size();
                const Sample sample = held[which];
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
                CHECK(bounded.remove(sample.score, sample.losses, 0, false) == Refusal::none);
                oracle.add(sample.score, sample.losses, -1);
            } else {
                const Sample sample{score_of_shape(static_cast<int>(seed % 7), step, steps, random),
                                    draw_losses(random)};
                if (sample.losses.below == 0 && sample.losses.above == 0) continue;
                held.push_back(sample);
                CHECK(bounded.add(sample.score, sample.losses, 0) == Refusal::none);
                oracle.add(sample.score, sample.losses, 1);
            }
            CHECK(bounded.samples() == held.size());
            CHECK(bounded.distinct() <= capacity);
            require_all(bounded, oracle);
        }
    }
}

TEST_CASE("equals the exact model while scores are few") {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937_64 random(seed);
        Small bounded(Unit{}, 32);
        Oracle oracle;
        std::vector<Sample> held;
        for (int step = 0; step < 300; ++step) {
            if (!held.empty() && random() % 3 == 0) {
                const Sample sample = held.back();
                held.pop_back();
                CHECK(bounded.remove(sample.score, sample.losses, 0, false) == Refusal::none);
                oracle.add(sample.score, sample.losses, -1);
            } else {
                const Sample sample{static_cast<double>(random() % 31), draw_losses(random)};
                if (sample.losses.below == 0 && sample.losses.above == 0) continue;
                held.push_back(sample);
                CHECK(bounded.add(sample.score, sample.losses, 0) == Refusal::none);
                oracle.add(sample.score, sample.losses, 1);
            }
            CHECK(bounded.best() == oracle.best());
            CHECK(bounded.bound() == 0);
            CHECK(bounded.tree().size() == oracle.z.size());
        }
    }
}

// Someone who knows the runs and always strikes the widest one.
TEST_CASE("an adversary widens the bound but never breaks it") {
    Small bounded(Unit{}, 16);
    Oracle oracle;
    std::mt19937_64 random(7);
    for (int step = 0; step < effort(300, 3000); ++step) {
        double score = static_cast<double>(random() % 1000);
        std::int64_t widest = -1;
        bounded.tree().scan([&](const Run& run) {
            if (run.single() || run.highest - run.lowest <= widest) return;
            widest = run.highest - run.lowest;
            score = std::floor(run.first / 2 + run.last / 2);
        });
        const Losses losses = random() % 2 ? Losses{0, 3} : Losses{1, 0};
        CHECK(bounded.add(score, losses, 0) == Refusal::none);
        oracle.add(score, losses, 1);
        require_all(bounded, oracle);
    }
}

TEST_CASE("bounds hold where many runs are held") {
    for (int shape : {0, 1, 3, 5, 6}) {
        std::mt19937_64 random(static_cast<unsigned>(shape));
        BoundedSamples<> bounded(Unit{}, 1024);
        Oracle oracle;
        const int steps = effort(3000, 20000);
        for (int step = 0; step < steps; ++step) {
            const double noise = static_cast<double>(random()) * 0x1p-70;
            const double score = score_of_shape(shape, step, steps, random) + noise;
            const Losses losses = random() % 3 ? Losses{0, 1} : Losses{2, 0};
            CHECK(bounded.add(score, losses, 0) == Refusal::none);
            oracle.add(score, losses, 1);
            if (step % 997 == 0) require_all(bounded, oracle);
        }
        CHECK(bounded.distinct() <= 1024);
        require_all(bounded, oracle);
    }
}

TEST_CASE("merged bounds are bounds of the union") {
    for (unsigned seed = 0; static_cast<int>(seed) < effort(20, 200); ++seed) {
        std::mt19937_64 random(seed);
        const bool large = seed % 10 == 9;
        const std::size_t capacity = large ? 1024 : 8 + random() % 40;
        Oracle oracle;
        std::vector<Small> parts;
        for (int part = 0; part < 3; ++part) {
            Small bounded(Unit{}, capacity);
            const int steps = large ? part * 2000 : static_cast<int>(random() % 200);
            for (int step = 0; step < steps; ++step) {
                const double score =
                    score_of_shape(static_cast<int>((seed + static_cast<unsigned>(part)) % 7), step,
                                   steps, random) +
                    (large ? static_cast<double>(random()) * 0x1p-70 : 0);
                const Losses losses = random() % 2 ? Losses{0, 3} : Losses{2, 0};
                CHECK(bounded.add(score, losses, 0) == Refusal::none);
                oracle.add(score, losses, 1);
            }
            parts.push_back(std::move(bounded));
        }
        CHECK(parts[0].merge({parts[1].part(), parts[2].part()}) == Refusal::none);
        CHECK(parts[0].distinct() <= capacity);
        require_all(parts[0], oracle);
    }
}

TEST_CASE("bytes bring back the same object") {
    std::mt19937_64 random(3);
    for (std::size_t capacity : {8u, 64u, 1024u}) {
        Small one(Unit{}, capacity), other(Unit{}, capacity);
        for (int step = 0; step < 3000; ++step) {
            const double score = static_cast<double>(random()) * 0x1p-64;
            const Losses losses = random() % 2 ? Losses{0, 3} : Losses{2, 0};
            one.add(score, losses, 0);
            if (step == 1700) CHECK(other.restore(one.state()));
            if (step > 1700) other.add(score, losses, 0);
        }
        CHECK(one.state() == other.state());
        CHECK(one.copy().state() == one.state());
        const std::string sound = one.state();
        CHECK(!other.restore(sound.substr(8)));
        std::string claim = sound;  // more changes than can have been, which would not add up
        claim[5 * 8 + 7] = 0x7f;
        CHECK(!other.restore(claim));
        for (int fault = 0; fault < 300; ++fault) {  // refused, or an object that holds together
            std::string changed = sound;
            changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
            Small read(Unit{}, capacity);
            if (read.restore(changed)) read.check();
        }
    }
}

TEST_CASE("finer units scale all that is held") {
    Small bounded(Unit{}, 8);
    Oracle oracle;
    std::mt19937_64 random(5);
    int bits = 0;
    std::int64_t factor = 1;
    for (int step = 0; step < 200; ++step) {
        if (step == 100) bits = 3, factor = 8;
        if (step == 100) {
            for (auto& [score, held] : oracle.z) held.first *= 8;
            oracle.above *= 8;
        }
        const Losses losses = random() % 2 ? Losses{0, 3 * factor} : Losses{2 * factor + bits, 0};
        const double score = static_cast<double>(random() % 1000);
        CHECK(bounded.add(score, losses, bits) == Refusal::none);
        oracle.add(score, losses, 1);
        require_all(bounded, oracle);
    }
    CHECK(bounded.bits() == 3);
}

TEST_CASE("what was certainly never added is refused") {
    Small bounded(Unit{}, 8);
    CHECK(bounded.remove(0.5, {0, 1}, 0, true) == Refusal::not_held);
    bounded.add(0.5, {0, 1}, 0);
    CHECK(bounded.remove(0.25, {0, 1}, 0, true) == Refusal::not_held);
    CHECK(bounded.remove(0.5, {1, 0}, 0, true) == Refusal::not_held);
    CHECK(bounded.remove(0.5, {0, 1}, 0, true) == Refusal::none);
    CHECK(bounded.samples() == 0 && bounded.tree().size() == 0);
}

TEST_CASE("what would overflow is refused") {
    Small bounded(Unit{}, 8);
    CHECK(bounded.add(0.5, {Small::most_seen - 1, 0}, 0) == Refusal::none);
    const std::string before = bounded.state();
    CHECK(bounded.add(0.25, {0, 1}, 0) == Refusal::too_large);
    CHECK(bounded.state() == before);
}

TEST_CASE("an allocation that fails changes no bound and no threshold") {
    for (std::size_t capacity : {8u, 1024u}) {
        std::mt19937_64 random(11);
        Small bounded(Unit{}, capacity);
        Oracle oracle;
        long failures = 0;
        for (int step = 0; step < (capacity > 8 ? effort(1200, 2500) : effort(100, 400)); ++step) {
            const double score = static_cast<double>(random()) * 0x1p-64;
            const Losses losses = random() % 2 ? Losses{0, 3} : Losses{2, 0};
            for (long allowed = 0;; ++allowed) {
                const auto samples = bounded.samples();
                if (succeeds_with(allowed, [&] { bounded.add(score, losses, 0); })) break;
                ++failures;
                CHECK(bounded.samples() == samples);
                if (failures % 50 == 1) require_all(bounded, oracle);
            }
            oracle.add(score, losses, 1);
        }
        CHECK(failures > 0);
        require_all(bounded, oracle);
    }
}

namespace {

// Samples with weights that were halved, exactly: in 2^-100.
struct FadedOracle {
    struct One {
        Sample sample;
        int places;  // in which its losses were measured, and how often they were halved since
        Wide of(std::int64_t loss) const { return Wide{loss} << (100 - places); }
    };
    std::vector<One> held;

    Wide loss(double threshold) const {
        Wide sum = 0;
        for (const One& one : held)
            sum += one.of(one.sample.score >= threshold ? one.sample.losses.above
                                                        : one.sample.losses.below);
        return sum;
    }
    // G just above each score, in order.
    std::map<double, Wide> sums() const {
        std::map<double, Wide> found;
        for (const One& one : held)
            found[one.sample.score + 0.0] +=
                one.of(one.sample.losses.above - one.sample.losses.below);
        Wide sum = 0;
        for (auto& [score, z] : found) z = sum += z;
        return found;
    }
};

template <class Tree>
void require_faded_bounds(const Tree& tree, const FadedOracle& oracle, int bits) {
    const std::map<double, Wide> sums = oracle.sums();
    const auto wide = [&](std::int64_t units) { return Wide{units} * (Wide{1} << (100 - bits)); };
    std::int64_t up = 0, low = 0;
    Wide sum = 0;
    auto at = sums.begin();
    tree.scan([&](const Run& run) {
        CHECK(at == sums.end() || at->first >= run.first);
        for (; at != sums.end() && at->first <= run.last; ++at) {
            sum = at->second;
            if (at->first == run.last) continue;  // the border above it comes next
            CHECK(sum <= wide(up + run.highest) && sum >= wide(low + run.lowest));
        }
        up += run.up;
        low += run.low;
        CHECK(wide(low) <= sum && sum <= wide(up));
    });
    CHECK(at == sums.end());
}

template <class Bounded>
void require_faded(const Bounded& bounded, const FadedOracle& oracle) {
    bounded.check();
    require_faded_bounds(bounded.tree(), oracle, bounded.bits());
    const auto wide = [&](std::int64_t units) {
        return Wide{units} * (Wide{1} << (100 - bounded.bits()));
    };
    const Cut offered = bounded.best();
    const std::int64_t loss = bounded.loss(offered);
    Wide least = oracle.loss(-std::numeric_limits<double>::infinity());
    const Wide all = least;
    for (const auto& [score, sum] : oracle.sums()) least = std::min(least, all - sum);
    CHECK(oracle.loss(threshold_of(offered)) <= wide(loss));
    CHECK(least >= wide(loss - bounded.bound()));
}

}  // namespace

TEST_CASE("bounds of weights that fade hold against exact fractions") {
    for (unsigned seed = 0; static_cast<int>(seed) < effort(8, 60); ++seed) {
        std::mt19937_64 random(seed);
        const bool large = seed % 8 == 7;
        const std::size_t capacity = large ? 1024 : 8 + random() % 40;
        const int steps = large ? 2000 : 200;
        Small bounded(Unit{}, capacity);
        FadedOracle oracle;
        int faded = 0;
        for (int step = 0; step < steps; ++step) {
            if (random() % 30 == 0 && faded < 60) {
                const int by = 1 + static_cast<int>(random() % 7);
                faded += by;
                bounded.fade(by);
                for (auto& one : oracle.held) one.places += by;
                if (bounded.samples() == 0) oracle.held.clear();
            } else if (!oracle.held.empty() && random() % 6 == 0) {
                const std::size_t which = random() % oracle.held.size();
                const FadedOracle::One one = oracle.held[which];
                oracle.held.erase(oracle.held.begin() + static_cast<std::ptrdiff_t>(which));
                const double scale = std::ldexp(1.0, bounded.bits() - one.places);
                const auto about = [&](std::int64_t loss) {
                    return std::llround(static_cast<double>(loss) * scale);
                };
                const Losses& own = one.sample.losses;
                CHECK(bounded.withdraw(one.sample.score, {about(own.below), about(own.above)},
                                       false));
            } else {
                const double noise = large ? static_cast<double>(random()) * 0x1p-70 : 0;
                const Sample sample{
                    score_of_shape(static_cast<int>(seed % 7), step, steps, random) + noise,
                    draw_losses(random)};
                if (sample.losses.below == 0 && sample.losses.above == 0) continue;
                const int bits = bounded.bits();
                CHECK(bounded.add(sample.score, sample.losses, bits) == Refusal::none);
                oracle.held.push_back({sample, bits});
            }
            if (!large || step % 97 == 0) require_faded(bounded, oracle);
        }
        Small other(Unit{}, capacity);
        CHECK(other.restore(bounded.state()));
        CHECK(other.state() == bounded.state());
        // What another one holds, as if it had faded too.
        Small both(Unit{}, capacity);
        both.add(0.5, {7, 0}, 0);
        FadedOracle of_both = oracle;
        const int ahead = 3 - bounded.bits() + finest_bits;
        for (auto& one : of_both.held) one.places += 3;
        CHECK(both.merge({bounded.part().times(std::ldexp(1.0, ahead - 6), finest_bits)}) ==
              Refusal::none);
        of_both.held.push_back({{0.5, {7, 0}}, 0});
        require_faded(both, of_both);
    }
}

namespace {

template <class Bounded>
void keep_promises(std::size_t capacity) {
    std::mt19937_64 random(capacity);
    Bounded bounded(Unit{}, capacity);
    Oracle oracle;
    std::vector<Sample> held;
    double highest = 0;
    for (int round = 0; round < (capacity > 40 ? effort(40, 200) : effort(200, 1000)); ++round) {
        const std::size_t count = round % 4 ? 1 + random() % 3 : random() % (2 * capacity);
        const unsigned back = round % 3 ? 3 : 2;
        bounded.reserve(count);
        const bool found = succeeds_with(0, [&] {
            for (std::size_t i = 0; i < count; ++i) {
                if (!held.empty() && random() % back == 0) {
                    std::swap(held[random() % held.size()], held.back());
                    const Sample sample = held.back();
                    held.pop_back();
                    bounded.remove(sample.score, sample.losses, 0, false);
                    limen::testing::allocations_left = -1;  // the oracle may
                    oracle.add(sample.score, sample.losses, -1);
                } else {
                    const double drawn = static_cast<double>(random()) * 0x1p-64;
                    const double score = round % 8 < 5 ? highest += drawn : highest * drawn;
                    const Sample sample{score, random() % 2 ? Losses{0, 3} : Losses{2, 0}};
                    bounded.add(sample.score, sample.losses, 0);
                    limen::testing::allocations_left = -1;
                    held.push_back(sample);
                    oracle.add(sample.score, sample.losses, 1);
                }
                limen::testing::allocations_left = 0;
            }
        });
        CHECK(found);
        if (capacity <= 40 || round % 10 == 0) require_all(bounded, oracle);
    }
}

}  // namespace

TEST_CASE("changes that were promised find memory") {
    for (std::size_t capacity : {8u, 40u, 64u, 1024u}) {
        keep_promises<Small>(capacity);
        keep_promises<BoundedSamples<>>(capacity);
    }
}

// Walks of every kind: adding, taking back, merging, and an adversary who strikes the widest run.
// A million looks in `make thorough`.
TEST_CASE("the certificate holds at every look of long walks") {
    const int wanted = effort(2'000, 100'000);
    int looks = 0;
    for (unsigned seed = 0; looks < wanted; ++seed) {
        std::mt19937_64 random(1000 + seed);
        const std::size_t capacity = 8 + random() % 57;
        const int shape = static_cast<int>(random() % 8),
                  steps = 100 + static_cast<int>(random() % 300);
        const unsigned back = random() % 3 ? static_cast<unsigned>(2 + random() % 20) : ~0u;
        BoundedSamples<> bounded(Unit{}, capacity);
        Oracle oracle;
        std::vector<Sample> held;
        for (int step = 0; step < steps; ++step) {
            if (!held.empty() && random() % back == 0) {
                std::swap(held[random() % held.size()], held.back());
                const Sample sample = held.back();
                held.pop_back();
                CHECK(bounded.remove(sample.score, sample.losses, 0, false) == Refusal::none);
                oracle.add(sample.score, sample.losses, -1);
            } else {
                double score = score_of_shape(shape, step, steps, random);
                if (shape == 7) {
                    std::int64_t widest = -1;
                    bounded.tree().scan([&](const Run& run) {
                        if (run.single() || run.highest - run.lowest <= widest) return;
                        widest = run.highest - run.lowest;
                        score = run.first / 2 + run.last / 2;
                    });
                }
                const Sample sample{score, draw_losses(random)};
                if (sample.losses.below == 0 && sample.losses.above == 0) continue;
                const bool merged = random() % 50 == 0;
                BoundedSamples<> other(Unit{}, capacity);
                BoundedSamples<>& into = merged ? other : bounded;
                CHECK(into.add(sample.score, sample.losses, 0) == Refusal::none);
                if (merged) CHECK(bounded.merge({other.part()}) == Refusal::none);
                held.push_back(sample);
                oracle.add(sample.score, sample.losses, 1);
            }
            require_certificate(bounded, oracle);
            ++looks;
        }
    }
}
