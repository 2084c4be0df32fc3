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

#include "cut.hpp"
#include "testing.hpp"

namespace limen::testing {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double tiny = std::numeric_limits<double>::denorm_min();

using Random = std::mt19937_64;

inline std::string with_seed(std::uint64_t seed) { return ", seed " + std::to_string(seed); }

inline bool same(const Held& a, const Held& b) {
    return a.score == b.score && a.below == b.below && a.above == b.above && a.count == b.count;
}

inline bool same(const std::vector<Held>& a, const std::vector<Held>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Held& x, const Held& y) { return same(x, y); });
}

inline constexpr auto always = [](const Held&) { return true; };

// All that is held, by scan().
template <class Tree>
std::vector<Held> listed(const Tree& tree) {
    std::vector<Held> all;
    tree.scan([&](const Held& held) { all.push_back(held); });
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
    const std::string told = complaint(tree);
    CHECK_NOTE(told == "none", told + ", " + note);
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

}  // namespace limen::testing
