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
//                            where one of its scores is not plain; 192 per inner node
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
// One file although long: one class, every method of which needs the layout of the inner nodes;
// what knows only leaves or bridges is in hull_leaf.hpp and hull_bridge.hpp.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cut.hpp"
#include "hull_bridge.hpp"
#include "hull_leaf.hpp"
#include "pool.hpp"
#include "wide.hpp"

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

class HullTree {
public:
    static constexpr int leaf_slots = HullLeaf::slots;

    // Fewer slots per leaf make splits and merges common: for tests.
    explicit HullTree(int leaf_capacity = leaf_slots) : leaf_capacity_(leaf_capacity) {
        if (leaf_capacity < 4 || leaf_capacity > leaf_slots)
            throw std::invalid_argument("the capacity of a leaf must be from 4 to 92");
    }

    HullTree(HullTree&& other) noexcept { swap(other); }
    HullTree& operator=(HullTree&& other) noexcept {
        swap(other);
        return *this;
    }

    std::size_t distinct() const { return distinct_; }
    std::size_t memory() const { return leaves_.memory() + sides_.memory() + nodes_.memory(); }
    int leaf_capacity() const { return leaf_capacity_; }
    RunSums totals() const { return sums(total_, count_); }
    HullLink root() const { return root_; }

    // What is held of a score; count 0 when it is not held.
    Held find(double score) const {
        if (!root_) return {score, 0, 0, 0};
        Link at = root_;
        while (!at.is_leaf()) at = at.node()->child[score >= at.node()->separator];
        const Leaf* leaf = at.leaf();
        const int slot = leaf->rank(score);
        if (!leaf->holds(slot, score)) return {score, 0, 0, 0};
        return leaf->held(slot);
    }

    // Add the sums of `held.count` >= 1 samples of one score, which weigh something. `seen` is
    // shown what was held of it before, once nothing can fail any more.
    void add(const Held& held) {
        add(held, [](const Held&) {});
    }

    template <class Seen>
    void add(const Held& held, Seen&& seen) {
        if (!weighs(held))
            throw std::invalid_argument("a score without weight, or with a negative one");
        if (!root_) {
            unit_ = usual_weight(&held, 1);
            if (!plain(held)) reserve_sides(1, 1);
            Leaf* leaf = make_leaf();
            leaf->first = true;
            root_ = Link(leaf);
        }
        Path path;
        Leaf* leaf = descend(held.score, path);
        if (leaf->side) prefetch(leaf->side);
        int slot = leaf->rank(held.score);
        const Change change{held.score, point_of(held), held.count, false};
        if (leaf->holds(slot, held.score)) {
            const Held before = leaf->held(slot);
            if (held.count > std::numeric_limits<std::uint32_t>::max() - before.count)
                throw std::overflow_error("more than 4294967295 samples of one score");
            if (plain(before)) make_odd(leaf);
            seen(before);
            shift(path, change);
            leaf->add(slot, change.delta, held.count);
        } else {
            if (leaf->used == leaf_capacity_) {
                leaf = split(path, held.score);
                slot = leaf->rank(held.score);
            }
            if (!plain(held)) make_odd(leaf);
            seen(Held{held.score, 0, 0, 0});
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
    void add_all(const Held*& done, const Held* last, Seen&& seen) {
        std::size_t odd = 0;
        std::int64_t unit = -1;  // no unit yet
        while (done != last) {
            const Held* const first = done;
            if (root_) {
                if (unit != unit_) {
                    unit = unit_;
                    odd = static_cast<std::size_t>(
                        std::count_if(done, last, [&](const Held& held) { return !plain(held); }));
                }
                if (odd) reserve_sides(leaves_.in_use(), odd_ + odd);
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
    bool remove(const Held& held, Allows&& allows) {
        if (!root_) return false;
        Path path;
        Leaf* leaf = descend(held.score, path);
        if (leaf->side) prefetch(leaf->side);
        const int slot = leaf->rank(held.score);
        if (!leaf->holds(slot, held.score)) return false;
        const Held now = leaf->held(slot);
        if (now.count < held.count || now.below < held.below || now.above < held.above)
            return false;
        const bool closes = now.below == held.below && now.above == held.above;
        if (closes != (now.count == held.count) || !allows(now)) return false;
        if (distinct_ == 1 && closes) {
            if (reserved_) {
                give_back_side(leaf);
                leaves_.give_back(leaf);
                forget_all();
            } else {
                clear();
            }
            return true;
        }
        const Change change{held.score, -point_of(held), -std::int64_t{held.count}, closes};
        const Held after{held.score, now.below - held.below, now.above - held.above,
                         now.count - held.count};
        if (plain(now) && !closes) make_odd(leaf);
        shift(path, change);
        if (closes) {
            --distinct_;
            leaf->close(slot, change.delta);
            if (slot == 0) path.new_first_score(leaf->score[0]);
        } else {
            leaf->add(slot, change.delta, change.count);
        }
        if (closes ? !plain(now) : plain(after)) make_plain(leaf);
        Point point = leaf->point(closes ? slot : slot + 1);
        if (leaf->used < fewest() && path.depth > 0) shrink(path, point);
        mend(path, change, point);
        return true;
    }

    // The same for many scores, all of which are held so: nothing can fail.
    void remove_all(const Held* first, const Held* last) {
        for (; first != last; ++first) remove(*first, [](const Held&) { return true; });
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

    // Become the tree of these scores, which ascend strictly. Leaves keep an eighth free.
    void load(const std::vector<Held>& held) {
        HullTree built(leaf_capacity_);
        if (!held.empty()) {
            built.unit_ = usual_weight(held.data(), held.size());
            const std::size_t target =
                static_cast<std::size_t>(leaf_capacity_ - std::max(1, leaf_capacity_ / 8));
            const std::size_t parts = (held.size() + target - 1) / target;
            const Subtree whole = built.load(held, parts, 0, parts);
            built.root_ = whole.at;
            built.total_ = whole.total;
            built.count_ = whole.count;
            built.distinct_ = held.size();
            built.reserve_sides(built.leaves_.in_use(), built.odd_);
        }
        swap(built);
    }

    // Multiply every loss by 2^bits, for a finer or coarser unit. Where bits is negative, all
    // losses must be multiples of 2^-bits. No slope changes, so no edge does.
    void scale(int bits) {
        if (!root_) return;
        // Where it cannot be scaled, no score is plain, and none will be.
        const bool exact = bits >= 0 ? unit_ <= std::numeric_limits<std::int64_t>::max() >> bits
                                     : unit_ % (std::int64_t{1} << -bits) == 0;
        unit_ = exact ? limen::scaled(unit_, bits) : 0;
        scale(root_, bits, unit_);
        total_ = scaled(total_, bits);
    }

    void clear() {
        leaves_.clear();
        sides_.clear();
        nodes_.clear();
        forget_all();
    }

    // Make sure that the next `scores` calls of add() find memory, whatever goes in between, as
    // long as never more than `most` are held.
    void reserve(std::size_t scores, std::size_t most = ~std::size_t{0}) {
        reserved_ = scores;
        if (leaves_.in_use() <= 1 &&
            distinct_ + scores <= static_cast<std::size_t>(leaf_capacity_)) {
            reserve_sides(1, odd_ + scores);  // one leaf is enough, as it is for most groups
            return leaves_.reserve(1 - leaves_.in_use());
        }
        const std::size_t held = std::max(distinct_, std::min(distinct_ + scores, most));
        const std::size_t leaves = held / static_cast<std::size_t>(fewest()) + 1;
        reserve_sides(leaves, odd_ + scores);
        if (leaves_.spare() > scores && nodes_.spare() > scores) return;
        leaves_.reserve(std::min(scores, leaves - leaves_.in_use()) + 1);
        nodes_.reserve(std::min(scores, leaves - nodes_.in_use()) + 1);
    }

    HullTree copy() const {
        HullTree made(leaf_capacity_);
        std::vector<Held> all;
        all.reserve(distinct_);
        scan([&](const Held& held) { all.push_back(held); });
        made.load(all);
        return made;
    }

    // A score is going to be removed soon: ask for its leaf.
    void warm(double score) const {
        if (!root_) return;
        Link at = root_;
        while (!at.is_leaf()) at = at.node()->child[score >= at.node()->separator];
        prefetch(at.leaf());
    }

    void swap(HullTree& other) noexcept {
        std::swap(leaf_capacity_, other.leaf_capacity_);
        std::swap(root_, other.root_);
        std::swap(distinct_, other.distinct_);
        std::swap(total_, other.total_);
        std::swap(count_, other.count_);
        std::swap(reserved_, other.reserved_);
        std::swap(unit_, other.unit_);
        std::swap(odd_, other.odd_);
        leaves_.swap(other.leaves_);
        sides_.swap(other.sides_);
        nodes_.swap(other.nodes_);
    }

    void check() const {
        std::size_t seen = 0, odd = 0;
        if (root_) {
            const Checked whole = check(root_, -infinity, infinity, true, true, seen, odd);
            require(whole.total == total_ && whole.count == count_, "the totals are wrong");
        } else {
            require(total_ == Point{} && count_ == 0, "an empty tree has totals");
        }
        require(seen == distinct_, "the number of distinct scores is wrong");
        require(odd == odd_, "the number of odd scores is wrong");
        require(sides_.in_use() + sides_.spare() >= std::min(leaves_.in_use(), odd_),
                "leaves could need memory to share");
        require(!root_ || seen > 0, "an empty tree has a root");
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    using Leaf = HullLeaf;
    using Node = HullNode;
    using Link = HullLink;
    using Bounds = HullBounds;
    using Change = HullChange;

    // The nodes from the root to a leaf: where each is linked, and which child was taken. More
    // than enough for as many leaves as memory can hold.
    struct Path {
        Link* link[72];
        bool right[72];
        int depth = 0;
        bool reshaped = false;  // heights may have changed
        Link* end = nullptr;    // where the leaf is linked

        Node* node(int i) const { return link[i]->node(); }
        void push(Link* at, bool to_the_right) {
            link[depth] = at;
            right[depth++] = to_the_right;
            end = &at->node()->child[to_the_right];
        }
        // The leaf at the end of the path now starts with another score.
        void new_first_score(double score) const {
            int i = depth - 1;
            while (i >= 0 && !right[i]) --i;
            if (i >= 0) node(i)->separator = score;
        }
    };

    // A part of the tree that its parent does not know yet.
    struct Subtree {
        Link at;
        double first;
        Point total;
        std::int64_t count;
    };

    static RunSums sums(const Point& total, std::int64_t count) {
        return {total.below, total.weight - total.below, static_cast<std::uint64_t>(count)};
    }

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

    // What is soon needed of a part that is in no near cache: ask for all its lines at once
    // instead of one after the other.
    template <class Part>
    static void prefetch(const Part* part) {
#if defined(__GNUC__) || defined(__clang__)
        const char* line = reinterpret_cast<const char*>(part);
        for (std::size_t i = 0; i < sizeof(Part); i += 64) __builtin_prefetch(line + i);
        asm volatile("" : : "r"(part));  // else GCC takes warm() for a function without effect
#else
        (void)part;
#endif
    }

    // Tell the nodes of the path that the sums of a score change. A bridge whose ends lie above
    // the score moves along.
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
    Run add_run(Link at, const Held*& done, const Held* end, Seen& seen) {
        if (at.is_leaf()) return add_run(at.leaf(), done, end, seen);
        Run run;
        if (end - done < fewest_of_run) return run;
        Node* node = at.node();
        const Held* const middle = std::partition_point(
            done, end, [=](const Held& held) { return held.score < node->separator; });
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
    Run add_run(Leaf* leaf, const Held*& done, const Held* end, Seen& seen) {
        Run run;
        for (; done != end; ++done) {
            const int slot = leaf->rank(done->score);
            if (leaf->used == leaf_capacity_ || leaf->holds(slot, done->score)) break;
            if (!weighs(*done)) break;
            if (!plain(*done)) make_odd(leaf);
            seen(Held{done->score, 0, 0, 0});
            leaf->open(slot, *done);
            ++distinct_;
            run.sum += point_of(*done);
            run.count += done->count;
        }
        return run;
    }

    void forget_all() {
        root_ = Link();
        distinct_ = odd_ = 0;
        total_ = {};
        count_ = 0;
    }

    // ---- changes of shape ----

    // Lift the given child above its parent. Neither knows its bridge afterwards.
    static void rotate(Link& link, bool right_child) {
        Node* parent = link.node();
        Node* child = parent->child[right_child].node();
        parent->child[right_child] = child->child[!right_child];
        child->child[!right_child] = link;
        if (right_child) {
            child->left += parent->left;
            child->left_count += parent->left_count;
        } else {
            parent->left = parent->left - child->left;
            parent->left_count -= child->left_count;
        }
        parent->measure();
        child->measure();
        parent->stale = child->stale = true;
        link = Link(child);
    }

    // To measure is to look at children off the path: only when the shape has changed.
    static bool needs_balance(Node* node) {
        node->measure();
        return std::abs(node->leaning()) > 1;
    }

    // Heights of two children differ by at most one, as in the tree of Adelson-Velsky and
    // Landis; put right a difference of two.
    static void balance(Link& link) {
        Node* node = link.node();
        const bool right = node->leaning() > 0;
        Link& tall = node->child[right];
        const int lean = tall.node()->leaning();
        if (right ? lean < 0 : lean > 0) rotate(tall, !right);
        rotate(link, right);
        for (const Link& child : link.node()->child)
            if (!child.is_leaf() && child.node()->stale) build_bridge(child.node());
        build_bridge(link.node());
    }

    static bool weighs(const Held& held) {
        return held.below >= 0 && held.above >= 0 && held.below + held.above > 0;
    }

    // A single sample with a label that weighs the unit; most are such.
    bool plain(const Held& held) const {
        return held.count == 1 && held.below + held.above == unit_ &&
               (held.below == 0 || held.above == 0);
    }

    // The weight of more than half of the single samples with a label, if there is one.
    static std::int64_t usual_weight(const Held* held, std::size_t n) {
        std::int64_t usual = 0, votes = 0;
        for (const Held* each = held; each != held + n; ++each) {
            if (each->count != 1 || (each->below && each->above)) continue;
            const std::int64_t weight = each->below + each->above;
            if (votes == 0) usual = weight;
            votes += weight == usual ? 1 : -1;
        }
        return usual;
    }

    Leaf* make_leaf() {
        Leaf* leaf = leaves_.make();
        leaf->unit = unit_;
        return leaf;
    }

    // As in the cut tree: scores that are not plain need a side each at most, and no more than
    // there are leaves. So many are always there, so that leaves can share and merge without
    // memory.
    void reserve_sides(std::size_t leaves, std::size_t odd) {
        const std::size_t needed = std::min(leaves, odd), in_use = sides_.in_use();
        if (needed > in_use) sides_.reserve(needed - in_use);
    }

    // One more score of the leaf will not be plain, or one less.
    void make_odd(Leaf* leaf) {
        reserve_sides(leaves_.in_use(), odd_ + 1);
        ++odd_;
        if (!leaf->odd++) leaf->take_side(sides_.make());
    }
    void make_plain(Leaf* leaf) {
        --odd_;
        if (--leaf->odd == 0) sides_.give_back(leaf->leave_side(unit_));
    }
    void give_back_side(Leaf* leaf) {
        if (leaf->side) sides_.give_back(std::exchange(leaf->side, nullptr));
    }

    std::int64_t fill(Leaf* leaf, const Held* held, int used) {
        int odd = 0;
        for (int i = 0; i < used; ++i) odd += !plain(held[i]);
        odd_ += static_cast<std::size_t>(odd);
        leaf->odd = static_cast<std::uint8_t>(odd);
        leaf->used = static_cast<std::uint8_t>(used);
        leaf->unit = unit_;
        if (odd) leaf->side = sides_.make();
        std::int64_t count = 0;
        for (int i = 0; i < used; ++i) {
            leaf->score[i] = held[i].score;
            if (odd) {
                leaf->side->points[i + 1] = leaf->side->points[i] + point_of(held[i]);
                leaf->side->count[i] = held[i].count;
            } else {
                leaf->ones[i + 1] = static_cast<std::uint8_t>(leaf->ones[i] + (held[i].below > 0));
            }
            count += held[i].count;
        }
        leaf->renew_hull();
        return count;
    }

    // Spread entries evenly over two leaves that a node joins.
    void fill(Node* node, Leaf* left, Leaf* right, const Held* held, int used) {
        const int half = used / 2;
        node->left_count = fill(left, held, half);
        node->left = left->total();
        fill(right, held + half, used - half);
        node->child[0] = Link(left);
        node->child[1] = Link(right);
        node->separator = right->score[0];
        node->from_score = node->to_score = no_score;
        node->height = 1;
        node->stale = true;
    }

    // Take all out of a leaf that is then filled anew or given back.
    int unload(Leaf* leaf, Held* out) {
        for (int i = 0; i < leaf->used; ++i) out[i] = leaf->held(i);
        odd_ -= leaf->odd;
        give_back_side(leaf);
        return leaf->used;
    }

    // Make two leaves of the full one at the end of the path, and go to the one for a score.
    // All memory is had before anything changes.
    Leaf* split(Path& path, double score) {
        leaves_.reserve(1);
        nodes_.reserve(1);
        reserve_sides(leaves_.in_use() + 1, odd_ + 1);
        Held held[leaf_slots];
        Leaf* left = path.end->leaf();
        const int used = unload(left, held);
        if (path.depth == 0) unit_ = usual_weight(held, static_cast<std::size_t>(used));
        Node* node = nodes_.make();
        fill(node, left, leaves_.make(), held, used);
        *path.end = Link(node);
        path.push(path.end, score >= node->separator);
        path.reshaped = true;
        return path.end->leaf();
    }

    int fewest() const { return std::max(2, leaf_capacity_ / 4); }

    // Merge the leaf at the end of the path, which has become too small, with its sibling or
    // share with it. The path then ends with what has become of both, and so does `point`.
    void shrink(Path& path, Point& point) {
        path.reshaped = true;
        const int last = path.depth - 1;
        Link& link = *path.link[last];
        const bool right = path.right[last];
        if (!link.node()->child[!right].is_leaf()) {
            rotate(link, !right);
            path.right[last] = right;
            path.push(&link.node()->child[right], right);
        }
        Link& joint = *path.link[--path.depth];
        Node* node = joint.node();
        if (right) point += node->left;
        Leaf *a = node->child[0].leaf(), *b = node->child[1].leaf();
        Held held[2 * leaf_slots];
        int used = unload(a, held);
        used += unload(b, held + used);
        if (used > leaf_capacity_ * 3 / 4) {
            fill(node, a, b, held, used);
            return build_bridge(node);
        }
        fill(a, held, used);
        joint = Link(a);
        leaves_.give_back(b);
        nodes_.give_back(node);
    }

    // ---- queries ----

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

    // ---- whole trees ----

    template <class Visit>
    static void scan(Link at, Visit& visit) {
        if (at.is_leaf()) {
            const Leaf* leaf = at.leaf();
            for (int i = 0; i < leaf->used; ++i) visit(leaf->held(i));
        } else {
            for (const Link& child : at.node()->child) scan(child, visit);
        }
    }

    // Parts `from` to `to` of the `parts` leaves over which the scores are spread evenly.
    Subtree load(const std::vector<Held>& held, std::size_t parts, std::size_t from,
                 std::size_t to) {
        if (to - from == 1) {
            const std::size_t start = held.size() * from / parts;
            const std::size_t end = held.size() * to / parts;
            Leaf* leaf = make_leaf();
            leaf->first = from == 0;
            const std::int64_t count =
                fill(leaf, held.data() + start, static_cast<int>(end - start));
            return {Link(leaf), leaf->score[0], leaf->total(), count};
        }
        const std::size_t middle = from + (to - from) / 2;
        const Subtree left = load(held, parts, from, middle);
        const Subtree right = load(held, parts, middle, to);
        Node* node = nodes_.make();
        node->child[0] = left.at;
        node->child[1] = right.at;
        node->left = left.total;
        node->left_count = left.count;
        node->separator = right.first;
        node->measure();
        build_bridge(node);
        return {Link(node), left.first, left.total + right.total, left.count + right.count};
    }

    static Point scaled(const Point& point, int bits) {
        return {limen::scaled(point.weight, bits), limen::scaled(point.below, bits)};
    }

    static void scale(Link at, int bits, std::int64_t unit) {
        if (at.is_leaf()) {
            Leaf* leaf = at.leaf();
            leaf->unit = unit;
            for (int k = 1; leaf->side && k <= leaf->used; ++k)
                leaf->side->points[k] = scaled(leaf->side->points[k], bits);
            return;
        }
        Node* node = at.node();
        node->left = scaled(node->left, bits);
        node->from = scaled(node->from, bits);
        node->to = scaled(node->to, bits);
        for (const Link& child : node->child) scale(child, bits, unit);
    }

    // ---- check ----

    static void require(bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken hull tree: ") + otherwise);
    }

    // A vertex counted from the start of a part, and the score below it.
    struct Vertex {
        Point point;
        double score;
    };

    struct Checked {
        Point total;
        std::int64_t count = 0;
        double first = 0;
        int height = 0;
        std::vector<Vertex> hull;

        // Points in ascending order.
        void see(const Vertex& next) {
            while (hull.size() >= 2) {
                const Point last = hull.back().point;
                if (cross(last - hull[hull.size() - 2].point, next.point - last) > 0) break;
                hull.pop_back();
            }
            hull.push_back(next);
        }
    };

    // Recompute everything from the scores, which lie in [low, high), upwards.
    Checked check(Link at, double low, double high, bool root, bool first, std::size_t& seen,
                  std::size_t& odd) const {
        if (at.is_leaf()) return check(at.leaf(), low, high, root, first, seen, odd);
        const Node* node = at.node();
        Checked found = check(node->child[0], low, node->separator, false, first, seen, odd);
        const Checked right = check(node->child[1], node->separator, high, false, false, seen, odd);
        require(node->left == found.total, "the sums of a left child are wrong");
        require(node->left_count == found.count, "the count of a left child is wrong");
        require(node->separator == right.first, "a separator is not the first score behind it");
        require(std::abs(right.height - found.height) <= 1, "a node is out of balance");
        found.height = 1 + std::max(found.height, right.height);
        require(node->height == found.height, "the height of a node is wrong");
        require(!node->stale, "a bridge was not built");
        const std::vector<Vertex> left_hull = found.hull;
        for (const Vertex& vertex : right.hull)
            found.see({found.total + vertex.point, vertex.score});
        std::size_t to = 0;
        while (found.hull[to].point.weight <= found.total.weight) ++to;
        const Vertex &lower = found.hull[to - 1], &upper = found.hull[to];
        require(node->from == lower.point && node->to == upper.point, "a bridge is wrong");
        require(node->to_score == upper.score &&
                    (node->from_score == lower.score ||
                     (lower.score != lower.score && node->from_score != node->from_score)),
                "the scores of a bridge are wrong");
        check_bounds(node->bounds[0], left_hull, node->from);
        check_bounds(node->bounds[1], right.hull, node->to - node->left);
        for (int side : {0, 1})
            require(node->bounds[side].allow(node->to - node->from, side),
                    "a bridge is out of its bounds");
        found.total += right.total;
        found.count += right.count;
        return found;
    }

    static void check_bounds(const Bounds& bounds, const std::vector<Vertex>& hull,
                             const Point& touch) {
        for (const Vertex& vertex : hull) {
            const Point& bound = vertex.point.weight < touch.weight ? bounds.low : bounds.high;
            require(cross(bound, vertex.point - touch) >= 0 || vertex.point == touch,
                    "a point lies below a bound");
        }
    }

    Checked check(const Leaf* leaf, double low, double high, bool root, bool first,
                  std::size_t& seen, std::size_t& odd) const {
        require(leaf->used <= leaf_capacity_, "a leaf is too full");
        require(root || leaf->used >= fewest(), "a leaf is too empty");
        require(leaf->first == first, "a leaf is wrong about being the first");
        require(leaf->point(0) == Point{}, "a leaf does not start at 0");
        require((leaf->odd > 0) == (leaf->side != nullptr), "a side is missing or left over");
        require(leaf->side || leaf->unit == unit_, "a leaf has another unit");
        int not_plain = 0;
        Checked found;
        if (first) found.see({{}, no_score});
        for (int i = 0; i < leaf->used; ++i) {
            const Held held = leaf->held(i);
            require(i == 0 || leaf->score[i - 1] < held.score, "scores do not ascend");
            require(held.score >= low && (held.score < high || high == infinity),
                    "a score is astray");
            require(held.count > 0, "a score is held without samples");
            require(held.below >= 0 && held.above >= 0 && held.below + held.above > 0,
                    "a score is held without weight");
            not_plain += !plain(held);
            found.count += held.count;
            found.see({leaf->point(i + 1), held.score});
        }
        require(not_plain == leaf->odd, "the number of odd scores of a leaf is wrong");
        odd += leaf->odd;
        require(leaf->vertices == found.hull.size(), "the hull of a leaf is wrong");
        for (std::size_t i = 0; i < found.hull.size(); ++i)
            require(leaf->point(leaf->hull[i]) == found.hull[i].point,
                    "the hull of a leaf is wrong");
        found.total = leaf->total();
        found.first = leaf->used ? leaf->score[0] : 0;
        seen += static_cast<std::size_t>(leaf->used);
        return found;
    }

    int leaf_capacity_ = leaf_slots;
    Link root_;
    std::size_t distinct_ = 0;
    Point total_;
    std::int64_t count_ = 0;
    std::size_t reserved_ = 0;  // for so many scores memory is kept, even when all are gone
    std::int64_t unit_ = 0;     // what plain scores weigh
    std::size_t odd_ = 0;       // how many scores are not plain
    Pool<Leaf> leaves_;
    Pool<HullSide> sides_;
    Pool<Node> nodes_;
};

}  // namespace limen
