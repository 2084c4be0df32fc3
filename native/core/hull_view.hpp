// SPDX-License-Identifier: Apache-2.0
//
// What a hull tree answers: the cut that is best for a cost, the sums below a score, the blocks of
// the isotonic fit. Touches nothing.
//
// find, best, sums_*, around   O(log n), where n is the number of distinct scores held
// blocks, vertices             O(log n) per block at most, O(1) where blocks are dense
// scan                         O(n)

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cut.hpp"
#include "core/hull_bridge.hpp"
#include "core/hull_leaf.hpp"
#include "core/pool.hpp"
#include "core/wide.hpp"

namespace limen {

// The sums over a run of scores.
struct RunSums {
    std::int64_t below = 0, above = 0;
    std::uint64_t count = 0;

    bool operator==(const RunSums&) const = default;
};

// A cut of the hull, and the sums over all scores below it.
struct HullCut : Gap {
    RunSums under;

    bool operator==(const HullCut&) const = default;
};

// Neighbouring scores that share one value of the isotonic fit, below / (below + above).
struct Block {
    double first = 0, last = 0;
    RunSums sums;

    bool operator==(const Block&) const = default;
};

// The block between two neighbouring cuts of the hull.
inline Block block_between(const HullCut& from, const HullCut& to) {
    return {from.upper,
            to.lower,
            {to.under.below - from.under.below, to.under.above - from.under.above,
             to.under.count - from.under.count}};
}

// The blocks of the next score held at or below a score, and at or above it. They are the same
// when the score lies between the ends of a block, and always when it is held.
struct BlocksAround {
    Block lower, upper;
    bool has_lower = false, has_upper = false;
};

class HullView {
public:
    std::size_t distinct() const { return distinct_; }
    RunSums totals() const { return sums(total_, count_); }
    HullLink root() const { return root_; }

    // What is held of a score; count 0 when it is not held.
    ScoreSums find(double score) const {
        if (!root_) return {score, 0, 0, 0};
        Link at = root_;
        while (!at.is_leaf()) at = at.node()->child[score >= at.node()->separator];
        const Leaf* leaf = at.leaf();
        const int slot = leaf->rank(score);
        if (!leaf->holds(slot, score)) return {score, 0, 0, 0};
        return leaf->held(slot);
    }

    // The cut that costs least when an answer of 1 to a sample above it costs false_positive
    // per unit of `above` and one of 0 below it false_negative per unit of `below`, both at
    // least 0; the highest of equals.
    HullCut best(std::int64_t false_positive, std::int64_t false_negative) const {
        const auto pays = [&](const Point& edge) {
            return Wide{false_positive} * (edge.weight - edge.below) >=
                   Wide{false_negative} * edge.below;
        };
        return cut_where(
            [&](const Node* node) { return pays(node->to - node->from); },
            [&](const Leaf* leaf) { return leaf->hull[leaf->last_vertex_where(pays)]; });
    }

    // The sums over all scores below a score, and over those at or below it.
    RunSums sums_below(double score) const {
        return locate([=](double held) { return held < score; }).under;
    }
    RunSums sums_at_or_below(double score) const {
        return locate([=](double held) { return held <= score; }).under;
    }

    BlocksAround around(double score) const {
        BlocksAround found;
        if (!root_) return found;
        const double last = last_score();
        found.has_upper = score <= last;
        if (!found.has_upper) {
            found.has_lower = true;
            found.lower = block_of(edge_at(last));
            return found;
        }
        const Edge edge = edge_at(score);
        found.upper = block_of(edge);
        if (found.upper.first <= score) {
            found.lower = found.upper;
            found.has_lower = true;
        } else if (edge.has_lower()) {
            found.lower = block_of(edge_at(edge.lower));
            found.has_lower = true;
        }
        return found;
    }

    // Every block in ascending order.
    template <class Visit>
    void blocks(Visit&& visit) const {
        if (!root_) return;
        HullCut before;
        vertices([&](const HullCut& cut) {
            if (cut.has_lower) visit(block_between(before, cut));
            before = cut;
        });
    }

    // Every cut that is the best for some cost, in ascending order, from the one below all
    // scores to the one above them.
    template <class Visit>
    void vertices(Visit&& visit) const {
        vertices_while([&](const HullCut& cut) {
            visit(cut);
            return true;
        });
    }
    // The same until `visit` returns false; whether it was shown all.
    template <class Visit>
    bool vertices_while(Visit&& visit) const {
        if (!root_) return visit(HullCut{});
        return vertices_while(root_, {}, 0, {0, total_.weight, 0, false}, visit);
    }

    // Every score in ascending order.
    template <class Visit>
    void scan(Visit&& visit) const {
        if (root_) scan(root_, visit);
    }

    // A score is going to be removed soon: ask for its leaf.
    void warm(double score) const {
        if (!root_) return;
        Link at = root_;
        while (!at.is_leaf()) at = at.node()->child[score >= at.node()->separator];
        prefetch(at.leaf());
    }

protected:
    using Leaf = HullLeaf;
    using Node = HullNode;
    using Link = HullLink;

    Link root_;
    std::size_t distinct_ = 0;
    Point total_;
    std::int64_t count_ = 0;

private:
    static RunSums sums(const Point& total, std::int64_t count) {
        return {total.below, total.weight - total.below, static_cast<std::uint64_t>(count)};
    }

    double last_score() const {
        Link at = root_;
        while (!at.is_leaf()) at = at.node()->child[1];
        return at.leaf()->score[at.leaf()->used - 1];
    }

    // The cut above all scores of which `below` says that they lie below it.
    template <class Below>
    HullCut locate(const Below& below) const {
        return cut_where([&](const Node* node) { return below(node->separator); },
                         [&](const Leaf* leaf) { return leaf->count_where(below); });
    }

    // The cut after so many scores of a leaf, found by going right in a node or not.
    template <class GoRight, class InLeaf>
    HullCut cut_where(const GoRight& go_right, const InLeaf& in_leaf) const {
        HullCut cut;
        if (!root_) return cut;
        Link at = root_;
        Point start;
        std::int64_t count = 0;
        while (!at.is_leaf()) {
            const Node* node = at.node();
            const bool right = go_right(node);
            if (right) {
                start += node->left;
                count += node->left_count;
            } else {
                cut.upper = node->separator;
                cut.has_upper = true;
            }
            at = node->child[right];
        }
        const Leaf* leaf = at.leaf();
        const int k = in_leaf(leaf);
        cut.under = sums(start + leaf->point(k), count + leaf->count_below(k));
        cut.has_lower = k > 0;
        if (k > 0) cut.lower = leaf->score[k - 1];
        if (k < leaf->used) cut.has_upper = true, cut.upper = leaf->score[k];
        return cut;
    }

    // An edge of the hull by the last scores below its ends.
    struct Edge {
        double lower, upper;
        bool has_lower() const { return lower == lower; }
    };

    // The edge across a score that is not above all.
    Edge edge_at(double score) const {
        Link at = root_;
        while (!at.is_leaf()) {
            const Node* node = at.node();
            const bool right = score > node->to_score;
            if (!right && !(score <= node->from_score)) return {node->from_score, node->to_score};
            at = node->child[right];
        }
        const Leaf* leaf = at.leaf();
        int low = 0, high = leaf->vertices - 1;
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            (leaf->score[leaf->hull[middle] - 1] < score ? low : high) = middle;
        }
        const int from = leaf->hull[low];
        return {from > 0 ? leaf->score[from - 1] : no_score, leaf->score[leaf->hull[high] - 1]};
    }

    Block block_of(const Edge& edge) const {
        const HullCut to = locate([&](double held) { return held <= edge.upper; });
        const HullCut from = locate([&](double held) { return held <= edge.lower; });
        return {from.upper,
                edge.upper,
                {to.under.below - from.under.below, to.under.above - from.under.above,
                 to.under.count - from.under.count}};
    }

    // Which points of a part are vertices of the whole, by their weight, and what follows it.
    struct Range {
        std::int64_t low, high;
        double upper;
        bool has_upper;
    };

    template <class Visit>
    static bool vertices_while(Link at, const Point& start, std::int64_t count, Range range,
                               Visit& visit) {
        if (at.is_leaf()) return vertices_while(at.leaf(), start, count, range, visit);
        const Node* node = at.node();
        const std::int64_t from = start.weight + node->from.weight;
        const std::int64_t to = start.weight + node->to.weight;
        const Range left{range.low, std::min(range.high, from), node->separator, true};
        const Range right{std::max(range.low, to), range.high, range.upper, range.has_upper};
        return (range.low > from || vertices_while(node->child[0], start, count, left, visit)) &&
               (range.high < to || vertices_while(node->child[1], start + node->left,
                                                  count + node->left_count, right, visit));
    }

    template <class Visit>
    static bool vertices_while(const Leaf* leaf, const Point& start, std::int64_t count,
                               const Range& range, Visit& visit) {
        int counted = 0;
        for (int i = 0; i < leaf->vertices; ++i) {
            const int k = leaf->hull[i];
            for (; counted < k; ++counted) count += leaf->count(counted);
            const Point vertex = start + leaf->point(k);
            if (vertex.weight < range.low || vertex.weight > range.high) continue;
            const bool last = k == leaf->used;
            const HullCut cut{{k > 0 ? leaf->score[k - 1] : 0, last ? range.upper : leaf->score[k],
                               k > 0, !last || range.has_upper},
                              sums(vertex, count)};
            if (!visit(cut)) return false;
        }
        return true;
    }

    template <class Visit>
    static void scan(Link at, Visit& visit) {
        if (at.is_leaf()) {
            const Leaf* leaf = at.leaf();
            for (int i = 0; i < leaf->used; ++i) visit(leaf->held(i));
        } else {
            for (const Link& child : at.node()->child) scan(child, visit);
        }
    }
};

}  // namespace limen
