// SPDX-License-Identifier: Apache-2.0
//
// The leaves and nodes of a hull tree: the memory they live in, and their changes of shape.
//
// split, shrink, balance   O(log n): the bridges of the nodes that changed are built again
// load, scale              O(n)

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/hull_bridge.hpp"
#include "core/hull_leaf.hpp"
#include "core/hull_view.hpp"
#include "core/pool.hpp"
#include "core/wide.hpp"

namespace limen {

// The nodes from the root to a leaf: where each is linked, and which child was taken. More
// than enough for as many leaves as memory can hold.
struct HullPath {
    HullLink* link[72];
    bool right[72];
    int depth = 0;
    bool reshaped = false;    // heights may have changed
    HullLink* end = nullptr;  // where the leaf is linked

    HullNode* node(int i) const { return link[i]->node(); }
    void push(HullLink* at, bool to_the_right) {
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

class HullShape : public HullView {
public:
    static constexpr int leaf_slots = HullLeaf::slots;

    std::size_t memory() const { return leaves_.memory() + ties_.memory() + nodes_.memory(); }
    int leaf_capacity() const { return leaf_capacity_; }

    // Become the tree of these scores, which ascend strictly. Leaves keep an eighth free.
    void load(const std::vector<ScoreSums>& held) {
        HullShape built(leaf_capacity_);
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
            built.reserve_ties(built.leaves_.in_use(), built.multi_);
        }
        swap(built);
    }

    // Multiply every loss by 2^bits, for a finer or coarser unit. Where bits is negative, all
    // losses must be multiples of 2^-bits. No slope changes, so no edge does.
    void scale(int bits) {
        if (!root_) return;
        // Where it cannot be scaled, no score is single, and none will be.
        const bool exact = bits >= 0 ? unit_ <= std::numeric_limits<std::int64_t>::max() >> bits
                                     : unit_ % (std::int64_t{1} << -bits) == 0;
        unit_ = exact ? limen::scaled(unit_, bits) : 0;
        scale(root_, bits, unit_);
        total_ = scaled(total_, bits);
    }

    void clear() {
        leaves_.clear();
        ties_.clear();
        nodes_.clear();
        forget_all();
    }

    // Make sure that the next `scores` calls of add() find memory, whatever goes in between, as
    // long as never more than `most` are held.
    void reserve(std::size_t scores, std::size_t most = ~std::size_t{0}) {
        reserved_ = scores;
        if (leaves_.in_use() <= 1 &&
            distinct_ + scores <= static_cast<std::size_t>(leaf_capacity_)) {
            reserve_ties(1, multi_ + scores);  // one leaf is enough, as it is for most groups
            return leaves_.reserve(1 - leaves_.in_use());
        }
        const std::size_t held = std::max(distinct_, std::min(distinct_ + scores, most));
        const std::size_t leaves = held / static_cast<std::size_t>(fewest()) + 1;
        reserve_ties(leaves, multi_ + scores);
        if (leaves_.spare() > scores && nodes_.spare() > scores) return;
        leaves_.reserve(std::min(scores, leaves - leaves_.in_use()) + 1);
        nodes_.reserve(std::min(scores, leaves - nodes_.in_use()) + 1);
    }

protected:
    friend class HullCheck;

    using Path = HullPath;

    explicit HullShape(int leaf_capacity) : leaf_capacity_(leaf_capacity) {
        if (leaf_capacity < 4 || leaf_capacity > leaf_slots)
            throw std::invalid_argument("the capacity of a leaf must be from 4 to 92");
    }

    void swap(HullShape& other) noexcept {
        std::swap(leaf_capacity_, other.leaf_capacity_);
        std::swap(root_, other.root_);
        std::swap(distinct_, other.distinct_);
        std::swap(total_, other.total_);
        std::swap(count_, other.count_);
        std::swap(reserved_, other.reserved_);
        std::swap(unit_, other.unit_);
        std::swap(multi_, other.multi_);
        leaves_.swap(other.leaves_);
        ties_.swap(other.ties_);
        nodes_.swap(other.nodes_);
    }

    // The first leaf, for a score that comes.
    void plant(const ScoreSums& held) {
        unit_ = usual_weight(&held, 1);
        if (!is_single(held)) reserve_ties(1, 1);
        Leaf* leaf = make_leaf();
        leaf->first = true;
        root_ = Link(leaf);
    }

    // The last score is gone. Memory that was reserved stays.
    void let_go(Leaf* leaf) {
        if (!reserved_) return clear();
        give_back_ties(leaf);
        leaves_.give_back(leaf);
        forget_all();
    }

    // A single sample with a label that weighs the unit; most are such.
    bool is_single(const ScoreSums& held) const {
        return held.count == 1 && held.below + held.above == unit_ &&
               (held.below == 0 || held.above == 0);
    }

    // Make sure that so many more scores need not be single.
    void reserve_multi(std::size_t scores) { reserve_ties(leaves_.in_use(), multi_ + scores); }

    // One more score of the leaf will not be single, or one less.
    void make_multi(Leaf* leaf) {
        reserve_multi(1);
        ++multi_;
        if (!leaf->multi++) leaf->take_ties(ties_.make());
    }
    void make_single(Leaf* leaf) {
        --multi_;
        if (--leaf->multi == 0) ties_.give_back(leaf->leave_ties(unit_));
    }

    // Make two leaves of the full one at the end of the path, and go to the one for a score.
    // All memory is had before anything changes.
    Leaf* split(Path& path, double score) {
        leaves_.reserve(1);
        nodes_.reserve(1);
        reserve_ties(leaves_.in_use() + 1, multi_ + 1);
        ScoreSums held[leaf_slots];
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
        ScoreSums held[2 * leaf_slots];
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

    int fewest() const { return std::max(2, leaf_capacity_ / 4); }

    int leaf_capacity_;
    std::size_t reserved_ = 0;  // for so many scores memory is kept, even when all are gone
    std::int64_t unit_ = 0;     // what single scores weigh
    std::size_t multi_ = 0;     // how many scores are not single

private:
    // A part of the tree that its parent does not know yet.
    struct Subtree {
        Link at;
        double first;
        Point total;
        std::int64_t count;
    };

    void forget_all() {
        root_ = Link();
        distinct_ = multi_ = 0;
        total_ = {};
        count_ = 0;
    }

    // The weight of more than half of the single samples with a label, if there is one.
    static std::int64_t usual_weight(const ScoreSums* held, std::size_t n) {
        std::int64_t usual = 0, votes = 0;
        for (const ScoreSums* each = held; each != held + n; ++each) {
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

    // As in the cut tree, scores that are not single need tie columns, one set each at most, and no
    // more than there are leaves. So many are always there, so that leaves can share and merge
    // without memory.
    void reserve_ties(std::size_t leaves, std::size_t multi) {
        const std::size_t needed = std::min(leaves, multi), in_use = ties_.in_use();
        if (needed > in_use) ties_.reserve(needed - in_use);
    }

    void give_back_ties(Leaf* leaf) {
        if (leaf->ties) ties_.give_back(std::exchange(leaf->ties, nullptr));
    }

    std::int64_t fill(Leaf* leaf, const ScoreSums* held, int used) {
        int multi = 0;
        for (int i = 0; i < used; ++i) multi += !is_single(held[i]);
        multi_ += static_cast<std::size_t>(multi);
        leaf->multi = static_cast<std::uint8_t>(multi);
        leaf->used = static_cast<std::uint8_t>(used);
        leaf->unit = unit_;
        if (multi) leaf->ties = ties_.make();
        std::int64_t count = 0;
        for (int i = 0; i < used; ++i) {
            leaf->score[i] = held[i].score;
            if (multi) {
                leaf->ties->points[i + 1] = leaf->ties->points[i] + point_of(held[i]);
                leaf->ties->count[i] = held[i].count;
            } else {
                leaf->ones[i + 1] = static_cast<std::uint8_t>(leaf->ones[i] + (held[i].below > 0));
            }
            count += held[i].count;
        }
        leaf->renew_hull();
        return count;
    }

    // Spread entries evenly over two leaves that a node joins.
    void fill(Node* node, Leaf* left, Leaf* right, const ScoreSums* held, int used) {
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

    // Take all out of a leaf that is then filled again or given back.
    int unload(Leaf* leaf, ScoreSums* out) {
        for (int i = 0; i < leaf->used; ++i) out[i] = leaf->held(i);
        multi_ -= leaf->multi;
        give_back_ties(leaf);
        return leaf->used;
    }

    // Parts `from` to `to` of the `parts` leaves over which the scores are spread evenly.
    Subtree load(const std::vector<ScoreSums>& held, std::size_t parts, std::size_t from,
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
            for (int k = 1; leaf->ties && k <= leaf->used; ++k)
                leaf->ties->points[k] = scaled(leaf->ties->points[k], bits);
            return;
        }
        Node* node = at.node();
        node->left = scaled(node->left, bits);
        node->from = scaled(node->from, bits);
        node->to = scaled(node->to, bits);
        for (const Link& child : node->child) scale(child, bits, unit);
    }

    Pool<Leaf> leaves_;
    Pool<HullTieColumns> ties_;
    Pool<Node> nodes_;
};

}  // namespace limen
