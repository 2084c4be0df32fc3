// SPDX-License-Identifier: Apache-2.0
//
// What the tests of trees have in common: comparing what is held, soundness, and streams of scores.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/cut.hpp"
#include "tests/testing.hpp"
#include "tests/testing_memory.hpp"

namespace limen::testing {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double tiny = std::numeric_limits<double>::denorm_min();

using Random = std::mt19937_64;

inline std::string with_seed(std::uint64_t seed) { return ", seed " + std::to_string(seed); }

inline bool same(const ScoreSums& a, const ScoreSums& b) {
    return a.score == b.score && a.below == b.below && a.above == b.above && a.count == b.count;
}

inline bool same(const std::vector<ScoreSums>& a, const std::vector<ScoreSums>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const ScoreSums& x, const ScoreSums& y) { return same(x, y); });
}

inline constexpr auto always = [](const ScoreSums&) { return true; };

// All that is held, by scan().
template <class Tree>
std::vector<ScoreSums> listed(const Tree& tree) {
    std::vector<ScoreSums> all;
    tree.scan([&](const ScoreSums& held) { all.push_back(held); });
    return all;
}

// What check() says of a broken invariant.
template <class Tree>
std::string complaint(const Tree& tree) {
    try {
        tree.check();
    } catch (const std::logic_error& broken) {
        return broken.what();
    }
    return "none";
}

template <class Tree>
void check_sound(const Tree& tree, const std::string& note) {
    const std::string found = complaint(tree);
    CHECK_NOTE(found == "none", found + ", " + note);
}

// A stream of scores.
struct Shape {
    const char* name;
    std::function<double(Random&, int)> score;  // of a step
};

// The double so many steps above, or below.
inline double steps_from(double start, int steps) {
    for (; steps > 0; --steps) start = std::nextafter(start, inf);
    for (; steps < 0; ++steps) start = std::nextafter(start, -inf);
    return start + 0.0;
}

// Memory that was reserved is enough, whatever goes in between: for scores that come in order, or
// from anywhere, into trees that are full, empty or new, alike or each in its own way.
template <class Make>
void check_reserved(Make&& make) {
    for (int seed = 0; seed < 40; ++seed) {
        auto tree = make();
        Random random(static_cast<std::uint64_t>(seed));
        const auto sample = [&](int i) {
            const double score = seed % 3 ? double(random() % 4000) : double(i);
            if (seed % 5 < 3) return ScoreSums{score, 0, 1, 1};
            return ScoreSums{score, static_cast<std::int64_t>(random() % 3), 1, 1};
        };
        std::vector<ScoreSums> held, script;
        for (int i = 0; i < seed * 5; ++i) {
            held.push_back(sample(i));
            tree.add(held.back());
        }
        const std::size_t before = held.size(), scores = 1 + random() % 60;
        for (std::size_t i = 0; i < scores; ++i) {
            script.push_back(sample(1000 + int(i)));
            held.push_back(script.back());
        }
        tree.reserve(scores, seed % 2 ? ~std::size_t{0} : before + scores);
        std::size_t removed = 0;
        const bool enough = succeeds_with(0, [&] {
            for (std::size_t i = 0; i < scores; ++i) {
                for (int gone = seed % 4; gone > 0 && removed < before + i; --gone)
                    tree.remove(held[removed++], always);
                tree.add(script[i]);
            }
        });
        tree.check();
        CHECK(enough);
        const auto copy = tree.copy();
        copy.check();
        CHECK(same(listed(tree), listed(copy)));
        if (!held.empty()) tree.warm(held.back().score);
    }
}

}  // namespace limen::testing
