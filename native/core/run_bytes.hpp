// SPDX-License-Identifier: Apache-2.0
//
// Runs as bytes: words of 64 bits, the lowest byte first.

#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/runs.hpp"
#include "core/words.hpp"

namespace limen {

constexpr std::size_t words_of_a_run = 6;

template <class Tree>
void put_runs(std::string& bytes, const Tree& tree) {
    tree.scan([&](const Run& run) {
        for (const double end : {run.first, run.last})
            put_word(bytes, std::bit_cast<std::uint64_t>(end));
        for (const std::int64_t part : {run.up, run.low, run.highest, run.lowest})
            put_word(bytes, static_cast<std::uint64_t>(part));
    });
}
inline std::vector<Run> get_runs(const std::string& bytes, std::size_t from, std::size_t size) {
    std::vector<Run> runs;
    runs.reserve(size);
    const auto whole = [&](std::size_t at) {
        return static_cast<std::int64_t>(get_word(bytes, at));
    };
    for (std::size_t at = from; runs.size() < size; at += words_of_a_run)
        runs.push_back({std::bit_cast<double>(get_word(bytes, at)),
                        std::bit_cast<double>(get_word(bytes, at + 1)), whole(at + 2),
                        whole(at + 3), whole(at + 4), whole(at + 5)});
    return runs;
}

// Whether scores are in order, and none of them is nan or -0.0.
inline bool in_order(const std::vector<Run>& runs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const Run& run = runs[i];
        if (!(run.first <= run.last) || (i && !(runs[i - 1].last < run.first))) return false;
        for (const double end : {run.first, run.last})
            if (end == 0 && std::signbit(end)) return false;
    }
    return true;
}

}  // namespace limen
