// SPDX-License-Identifier: Apache-2.0
//
// An ordered map from score to its two losses that knows the cheapest cut for every cost: the
// isotonic regression of the labels on the scores, kept under insertion and deletion.
//
// add, remove                O(log^2 n), where n is the number of distinct scores held
// best, sums_*, around       O(log n)
// blocks                     O(log n) per block at most, O(1) where blocks are dense
// load, scan                 O(n)
// memory                     960 bytes per leaf of 92 slots, about two thirds full, and 1,856 more
//                            where one of its scores is not single; 192 per inner node
//
// The cut above the k lowest scores is the point (weight, below) of the sums over them. A cut is
// cheapest for some cost if and only if it is a vertex of the greatest convex minorant, the
// hull, of all these points; the scores between two neighbouring vertices are a block of the
// isotonic fit, whose value is the slope between them, below / weight. Three points on a line
// are two vertices: equal values make one block.
//
// A balanced binary tree over leaves of neighbouring scores. A leaf keeps its points, counted
// from its own start, and which of them are vertices of its own hull. An inner node keeps only
// its bridge, the edge of its hull from the left child's to the right child's; below its lower
// end, the hull of the node is that of the left child, above its upper end that of the right. A
// run of scores owns the points after each of them, so no two runs share a point; the point
// below all scores belongs to the first leaf.
//
// Scores are doubles without nan, -0.0 given as 0.0. below and above are at least 0, not both 0
// for a score held, and the sum of all stays below 2^62; that is the caller's duty. Not safe for
// concurrent writers. check() throws on a broken invariant, in release builds too.
//
// Leaves are in hull_leaf.hpp, inner nodes in hull_bridge.hpp, questions in hull_view.hpp and
// changes of shape in hull_shape.hpp; here sums and bridges follow the samples that come and go.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/cut.hpp"
#include "core/hull_bridge.hpp"
#include "core/hull_check.hpp"
#include "core/hull_leaf.hpp"
#include "core/hull_shape.hpp"

namespace limen {

class HullTree : public HullShape {
public:
    // Fewer slots per leaf make splits and merges common: for tests.
    explicit HullTree(int leaf_capacity = leaf_slots) : HullShape(leaf_capacity) {}

    HullTree(HullTree&& other) noexcept : HullShape(other.leaf_capacity_) { swap(other); }
    HullTree& operator=(HullTree&& other) noexcept {
        swap(other);
        return *this;
    }

    // Add the sums of `held.count` >= 1 samples of one score, which weigh something. `seen` is
    // shown what was held of it before, once nothing can fail any more.
    void add(const ScoreSums& held) {
        add(held, [](const ScoreSums&) {});
    }

    template <class Seen>
    void add(const ScoreSums& held, Seen&& seen) {
        if (!weighs(held))
            throw std::invalid_argument("a score without weight, or with a negative one");
        if (!root_) plant(held);
        Path path;
        Leaf* leaf = descend(held.score, path);
        if (leaf->ties) prefetch(leaf->ties);
        int slot = leaf->rank(held.score);
        const Change change{held.score, point_of(held), held.count, false};
        if (leaf->holds(slot, held.score)) {
            const ScoreSums before = leaf->held(slot);
            if (held.count > std::numeric_limits<std::uint32_t>::max() - before.count)
                throw std::overflow_error("more than 4294967295 samples of one score");
            if (is_single(before)) make_multi(leaf);
            seen(before);
            shift(path, change);
            leaf->add(slot, change.delta, held.count);
        } else {
            if (leaf->used == leaf_capacity_) {
                leaf = split(path, held.score);
                slot = leaf->rank(held.score);
            }
            if (!is_single(held)) make_multi(leaf);
            seen(ScoreSums{held.score, 0, 0, 0});
            shift(path, change);
            leaf->open(slot, held);
            ++distinct_;
        }
        mend(path, change, leaf->point(slot + 1));
        reserved_ -= reserved_ > 0;
    }

    // The same for the scores from `done` to `last`, which ascend strictly; `done` is where the
    // next one stands when memory runs out. Where many go into one part of the tree, each of its
    // bridges is built once.
    template <class Seen>
    void add_all(const ScoreSums*& done, const ScoreSums* last, Seen&& seen) {
        std::size_t multi = 0;
        std::int64_t unit = -1;  // no unit yet
        while (done != last) {
            const ScoreSums* const first = done;
            if (root_) {
                if (unit != unit_) {
                    unit = unit_;
                    multi = static_cast<std::size_t>(std::count_if(
                        done, last, [&](const ScoreSums& held) { return !is_single(held); }));
                }
                if (multi) reserve_multi(multi);
                const Run run = add_run(root_, done, last, seen);
                total_ += run.sum;
                count_ += run.count;
            }
            const auto added = static_cast<std::size_t>(done - first);
            reserved_ -= std::min(reserved_, added);
            if (done == last) break;
            add(*done, seen);
            ++done;
        }
    }

    // Take sums away from a score if it is held with at least `held.count` samples and as much
    // below and above, and `allows` agrees to what is held; otherwise change nothing and return
    // false. A score goes with its last sample, which must leave it without losses, and only
    // that one may. Needs no memory, unless losses go without a sample.
    template <class Allows>
    bool remove(const ScoreSums& held, Allows&& allows) {
        if (!root_) return false;
        Path path;
        Leaf* leaf = descend(held.score, path);
        if (leaf->ties) prefetch(leaf->ties);
        const int slot = leaf->rank(held.score);
        if (!leaf->holds(slot, held.score)) return false;
        const ScoreSums now = leaf->held(slot);
        if (now.count < held.count || now.below < held.below || now.above < held.above)
            return false;
        const bool closes = now.below == held.below && now.above == held.above;
        if (closes != (now.count == held.count) || !allows(now)) return false;
        if (distinct_ == 1 && closes) {
            let_go(leaf);
            return true;
        }
        const Change change{held.score, -point_of(held), -std::int64_t{held.count}, closes};
        const ScoreSums after{held.score, now.below - held.below, now.above - held.above,
                              now.count - held.count};
        if (is_single(now) && !closes) make_multi(leaf);
        shift(path, change);
        if (closes) {
            --distinct_;
            leaf->close(slot, change.delta);
            if (slot == 0) path.new_first_score(leaf->score[0]);
        } else {
            leaf->add(slot, change.delta, change.count);
        }
        if (closes ? !is_single(now) : is_single(after)) make_single(leaf);
        Point point = leaf->point(closes ? slot : slot + 1);
        if (leaf->used < fewest() && path.depth > 0) shrink(path, point);
        mend(path, change, point);
        return true;
    }

    // The same for many scores, all of which are held so: nothing can fail.
    void remove_all(const ScoreSums* first, const ScoreSums* last) {
        for (; first != last; ++first) remove(*first, [](const ScoreSums&) { return true; });
    }

    HullTree copy() const {
        HullTree made(leaf_capacity_);
        std::vector<ScoreSums> all;
        all.reserve(distinct_);
        scan([&](const ScoreSums& held) { all.push_back(held); });
        made.load(all);
        return made;
    }

    void swap(HullTree& other) noexcept { HullShape::swap(other); }

    void check() const { HullCheck(*this).run(); }

private:
    using Bounds = HullBounds;
    using Change = HullChange;

    Leaf* descend(double score, Path& path) {
        path.end = &root_;
        while (!path.end->is_leaf()) {
            const Node* node = path.end->node();
            prefetch(node);
            path.push(path.end, score >= node->separator);
        }
        prefetch(path.end->leaf());
        return path.end->leaf();
    }

    // Pass on to the nodes of the path that the sums of a score change. A bridge whose ends lie
    // above the score moves along.
    void shift(const Path& path, const Change& change) {
        total_ += change.delta;
        count_ += change.count;
        for (int i = 0; i < path.depth; ++i) {
            Node* node = path.node(i);
            if (!path.right[i]) {
                node->left += change.delta;
                node->left_count += change.count;
            }
            if (change.score <= node->from_score) node->from += change.delta;
            if (change.score <= node->to_score) node->to += change.delta;
        }
    }

    // Make bridges and heights right again, from the end of the path upwards. `point` is that
    // of the changed score, or of its predecessor when it is gone, counted from the start of
    // the part at the end of the path.
    void mend(const Path& path, const Change& change, Point point) {
        for (int i = path.depth - 1; i >= 0; --i) {
            Node* node = path.node(i);
            if (path.right[i]) point += node->left;
            if (path.reshaped && needs_balance(node))
                balance(*path.link[i]);
            else if (node->stale || !bridge_holds(node, path.right[i], change, point,
                                                  [&](bool before, Bounds& bounds) {
                                                      return still_touches(path, i, before, bounds);
                                                  }))
                build_bridge(node);
        }
    }

    // Whether the bridge of a node of the path still touches a vertex of the child that the path
    // goes to, whose own bridges are right; `bounds` are narrowed by edges on the side of the
    // change. Where the way to the vertex leaves the path nothing has changed. A node whose bridge
    // runs below the vertex leaves no slope between the bounds.
    static bool still_touches(const Path& path, int i, bool before, Bounds& bounds) {
        if (path.reshaped) return false;
        const Node* top = path.node(i);
        const double score = path.right[i] ? top->to_score : top->from_score;
        const auto narrow = [&](const Point& edge) {
            before ? bounds.narrow_low(edge) : bounds.narrow_high(edge);
        };
        for (int j = i + 1; j < path.depth; ++j) {
            const Node* node = path.node(j);
            const bool right = score >= node->separator;
            if (right == before) narrow(node->to - node->from);
            if (right != path.right[j]) return true;
        }
        const Leaf* leaf = path.end->leaf();
        const int k = leaf->count_where([=](double held) { return held <= score; });
        const int v = leaf->vertex_at(k);
        if (v < 0) return false;
        if (before && v > 0) narrow(leaf->vertex(v) - leaf->vertex(v - 1));
        if (!before && v + 1 < leaf->vertices) narrow(leaf->vertex(v + 1) - leaf->vertex(v));
        return true;
    }

    // What a run of scores has added to a part.
    struct Run {
        Point sum;
        std::int64_t count = 0;
    };
    // With fewer scores than so many on their way into a part, bridges are cheaper to keep.
    static constexpr std::ptrdiff_t fewest_of_run = 6;

    // Add scores from `done` on to a part that all up to `end` belong to, as long as that takes
    // neither memory nor another shape. Sides are reserved, and nothing here can fail.
    template <class Seen>
    Run add_run(Link at, const ScoreSums*& done, const ScoreSums* end, Seen& seen) {
        if (at.is_leaf()) return add_run(at.leaf(), done, end, seen);
        Run run;
        if (end - done < fewest_of_run) return run;
        Node* node = at.node();
        const ScoreSums* const middle = std::partition_point(
            done, end, [=](const ScoreSums& held) { return held.score < node->separator; });
        if (done != middle) {
            run = add_run(node->child[0], done, middle, seen);
            node->left += run.sum;
            node->left_count += run.count;
        }
        if (done == middle && done != end) {
            const Run right = add_run(node->child[1], done, end, seen);
            run.sum += right.sum;
            run.count += right.count;
        }
        if (run.count) build_bridge(node);
        return run;
    }

    template <class Seen>
    Run add_run(Leaf* leaf, const ScoreSums*& done, const ScoreSums* end, Seen& seen) {
        Run run;
        for (; done != end; ++done) {
            const int slot = leaf->rank(done->score);
            if (leaf->used == leaf_capacity_ || leaf->holds(slot, done->score)) break;
            if (!weighs(*done)) break;
            if (!is_single(*done)) make_multi(leaf);
            seen(ScoreSums{done->score, 0, 0, 0});
            leaf->open(slot, *done);
            ++distinct_;
            run.sum += point_of(*done);
            run.count += done->count;
        }
        return run;
    }

    static bool weighs(const ScoreSums& held) {
        return held.below >= 0 && held.above >= 0 && held.below + held.above > 0;
    }
};

}  // namespace limen
