// SPDX-License-Identifier: Apache-2.0
//
// What a cut tree is made of: leaves of neighbouring scores, inner nodes, and the way to a leaf.
//
// A leaf holds scores in ascending order with the running sum of z = above - below inside the leaf;
// an inner node holds for each child where it starts (`before`) and the best running sum that ends
// in it (`best`), both counted from the node's own start.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "core/cut.hpp"
#include "core/kernels.hpp"

namespace limen {

// What does not hold breaks the tree: for those who check it.
inline void require_sound(bool holds, const char* otherwise) {
    if (!holds) throw std::logic_error(std::string("broken cut tree: ") + otherwise);
}

// A single sample with a loss on one side only is known by its z; most are such.
inline bool is_single(const ScoreSums& held) {
    return held.count == 1 && held.below >= 0 && held.above >= 0 &&
           (held.below == 0 || held.above == 0);
}

// What a leaf keeps besides where one of its scores is not single.
struct alignas(64) TieColumns {
    std::int64_t below[leaf_slots];
    std::uint32_t count[leaf_slots];

    void reset() {}
    void move(int from, int to, int slots) {
        const auto n = static_cast<std::size_t>(slots);
        std::memmove(below + to, below + from, n * sizeof *below);
        std::memmove(count + to, count + from, n * sizeof *count);
    }
};

struct alignas(64) CutLeaf {
    int used;
    int multi;                        // how many scores are not single
    TieColumns* ties;                 // null when none is multi
    std::int64_t zeros[6];            // prefix[-1] is the running sum before the leaf
    std::int64_t prefix[leaf_slots];  // running sum of z, from the leaf's start; free
                                      // slots repeat the last one
    double score[leaf_slots];         // free slots: +inf

    void reset() {
        std::fill_n(score, leaf_slots, std::numeric_limits<double>::infinity());
        std::fill_n(zeros, 6, std::int64_t{0});
        std::fill_n(prefix, leaf_slots, std::int64_t{0});
        used = multi = 0;
        ties = nullptr;
    }
    bool holds(int slot, double wanted) const { return slot < used && score[slot] == wanted; }
    std::int64_t z(int slot) const { return prefix[slot] - (slot ? prefix[slot - 1] : 0); }
    ScoreSums held(int slot) const {
        const std::int64_t own = z(slot);
        if (!ties) return {score[slot], own < 0 ? -own : 0, own > 0 ? own : 0, 1};
        return {score[slot], ties->below[slot], ties->below[slot] + own, ties->count[slot]};
    }
    // How many samples the lowest scores have.
    std::int64_t samples(int scores) const {
        return ties ? std::accumulate(ties->count, ties->count + scores, std::int64_t{0}) : scores;
    }
    void put_ties(int slot, const ScoreSums& held) {
        ties->below[slot] = held.below;
        ties->count[slot] = held.count;
    }
};

struct alignas(64) CutNode {
    double separator[node_slots];  // [0] is -inf; free slots: nan
    std::int64_t before[node_slots];
    std::int64_t best[node_slots];
    void* child[node_slots];
    std::int64_t sum;  // of all children
    std::int32_t used;
    std::int64_t samples;             // of all children
    std::uint16_t count[node_slots];  // samples of each child, modulo 2^16

    void reset() {
        std::fill_n(separator, node_slots, std::numeric_limits<double>::quiet_NaN());
        std::fill_n(before, node_slots, std::int64_t{0});
        std::fill_n(best, node_slots, lowest);
        std::fill_n(count, node_slots, std::uint16_t{0});
        sum = samples = 0;
        used = 0;
    }
    void count_in(int at, std::int64_t more) {
        samples += more;
        count[at] = static_cast<std::uint16_t>(count[at] + more);
    }
    // How many samples a child that is a leaf has.
    std::int64_t in_leaf(int at) const {
        if (samples <= std::numeric_limits<std::uint16_t>::max()) return count[at];
        const CutLeaf* leaf = static_cast<const CutLeaf*>(child[at]);
        return leaf->samples(leaf->used);
    }
    std::int64_t in_child(int at, int own_height) const {
        return own_height == 1 ? in_leaf(at) : static_cast<const CutNode*>(child[at])->samples;
    }
};

// The inner nodes from the root to a leaf, and the child taken in each.
struct CutPath {
    CutNode* node[24];
    int child[24];
    std::int64_t others[24];  // the best sum of the children not taken
    int depth = 0;
};

// A child as its parent must know it.
struct CutSubtree {
    void* at;
    double first;
    std::int64_t sum, best, samples;
};

// The lowest score of a part.
inline double first_score(const void* at, int height) {
    for (; height > 0; --height) at = static_cast<const CutNode*>(at)->child[0];
    return static_cast<const CutLeaf*>(at)->score[0];
}

// Every score of a part in ascending order.
template <class Visit>
void scan_part(const void* at, int height, Visit& visit) {
    if (height == 0) {
        const CutLeaf* leaf = static_cast<const CutLeaf*>(at);
        for (int i = 0; i < leaf->used; ++i) visit(leaf->held(i));
    } else {
        const CutNode* node = static_cast<const CutNode*>(at);
        for (int i = 0; i < node->used; ++i) scan_part(node->child[i], height - 1, visit);
    }
}

}  // namespace limen
