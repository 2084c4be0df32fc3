// SPDX-License-Identifier: Apache-2.0
//
// What samples held, taken out so that others can hold it too.
//
// join    O(n log k) for k parts

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/cut.hpp"
#include "core/measure.hpp"
#include "core/wide.hpp"
#include "samples/held_sums.hpp"
#include "samples/squares.hpp"

namespace limen {

// In as few places as it needs.
struct HeldPart {
    std::vector<ScoreSums> held;
    std::size_t samples = 0;
    std::int64_t total = 0;
    int bits = 0;
    FractionBits places;
    std::vector<Squares> squares{};  // of each score; none where every sample weighs 1
};

// What all parts hold, in `bits` places and in ascending order. Neighbours are joined until one
// run is left. False when a score would have too many samples.
inline bool join(const std::vector<HeldPart>& parts, int bits, std::vector<ScoreSums>& out) {
    std::vector<std::size_t> ends;
    std::size_t size = 0;
    for (const HeldPart& part : parts) ends.push_back(size += part.held.size());
    out.reserve(size);
    for (const HeldPart& part : parts) {
        const int finer = bits - part.bits;
        for (const ScoreSums& held : part.held)
            out.push_back(
                {held.score, scaled(held.below, finer), scaled(held.above, finer), held.count});
    }
    std::vector<ScoreSums> other(parts.size() > 1 ? size : 0);
    while (ends.size() > 1) {
        std::size_t start = 0, runs = 0;
        for (std::size_t i = 0; i < ends.size(); i += 2) {
            const std::size_t middle = ends[i], end = i + 1 < ends.size() ? ends[i + 1] : middle;
            const ScoreSums *left = out.data() + start, *right = out.data() + middle;
            const ScoreSums *const left_end = right, *const right_end = out.data() + end;
            ScoreSums* to = other.data() + start;
            while (left != left_end && right != right_end) {
                const bool is_right = right->score < left->score;  // no branch to guess
                *to++ = *(is_right ? right : left);
                right += is_right;
                left += !is_right;
            }
            std::copy(right, right_end, std::copy(left, left_end, to));
            ends[runs++] = start = end;
        }
        ends.resize(runs);
        out.swap(other);
    }
    std::size_t used = 0;
    for (const ScoreSums& held : out) {
        if (used == 0 || out[used - 1].score != held.score) {
            out[used++] = held;
            continue;
        }
        ScoreSums& same = out[used - 1];
        if (held.count > most_of_a_score - same.count) return false;
        same.below += held.below;
        same.above += held.above;
        same.count += held.count;
    }
    out.resize(used);
    return true;
}

}  // namespace limen
