// SPDX-License-Identifier: Apache-2.0
//
// The leaves and nodes of a cut tree: the memory they live in, and their changes of shape.
//
// make_room, shrink   O(log n): split, share or merge, from a leaf upwards
// load_from, scan     O(n)
//
// A change of shape leaves every cut worth what it was.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/cut_node.hpp"
#include "core/pool.hpp"
#include "core/wide.hpp"

namespace limen {

class CutShape {
public:
    std::size_t distinct() const { return distinct_; }
    std::size_t memory() const { return leaves_.memory() + ties_.memory() + nodes_.memory(); }
    int leaf_capacity() const { return leaf_capacity_; }
    int node_capacity() const { return node_capacity_; }

    // For those who walk the tree themselves: a leaf when the height is 0, null when nothing is
    // held; the best running sum.
    const void* root() const { return root_; }
    int height() const { return height_; }
    std::int64_t best_sum() const { return best_; }

    // Every score in ascending order.
    template <class Visit>
    void scan(Visit&& visit) const {
        if (root_) scan_part(root_, height_, visit);
    }

    // Make sure that the next `scores` calls of add() find memory, whatever goes in between, as
    // long as never more than `most` are held.
    void reserve(std::size_t scores, std::size_t most = ~std::size_t{0}) {
        reserved_ = scores;
        if (height_ == 0 && distinct_ + scores <= static_cast<std::size_t>(leaf_capacity_)) {
            reserve_ties(1, multi_ + scores);  // one leaf is enough, as it is for most groups
            return leaves_.reserve(1 - leaves_.in_use());
        }
        const std::size_t levels = static_cast<std::size_t>(height_) + 2 + scores;
        reserve_ties(leaves_.in_use() + scores + 1, multi_ + scores);
        if (leaves_.spare() > scores && nodes_.spare() >= scores * levels + 2) return;
        const std::size_t held = std::max(distinct_, std::min(distinct_ + scores, most));
        const auto few = [](int capacity) { return static_cast<std::size_t>(fewest(capacity)); };
        const std::size_t leaves = held / few(leaf_capacity_) + 1;
        leaves_.reserve(std::min(scores, leaves - leaves_.in_use()) + 1);
        const std::size_t nodes = leaves / (few(node_capacity_) - 1) + 2;
        nodes_.reserve(std::min(scores * levels, nodes - nodes_.in_use()) + 2);
    }

protected:
    friend class CutCheck;

    static constexpr double infinity = std::numeric_limits<double>::infinity();
    using Leaf = CutLeaf;
    using Node = CutNode;
    using Path = CutPath;

    CutShape(int leaf_capacity, int node_capacity)
        : leaf_capacity_(leaf_capacity), node_capacity_(node_capacity) {
        if (leaf_capacity < 4 || leaf_capacity > leaf_slots || node_capacity < 4 ||
            node_capacity > node_slots)
            throw std::invalid_argument("capacities must be from 4 to the slots of a leaf or node");
    }

    // Become the tree of the scores that `all` shows one after the other, ascending strictly, to
    // what it is given. Leaves keep a sixth free.
    template <class All>
    void load_from(All&& all) {
        CutShape built(leaf_capacity_, node_capacity_);
        std::vector<Subtree> level;
        // What waits is enough for two leaves, so that the last is not too small.
        const int target = filled(leaf_capacity_);
        ScoreSums waiting[2 * leaf_slots];
        int used = 0;
        const auto take = [&](int first, int end) {
            level.push_back(built.fill(built.leaves_.make(), waiting + first, end - first,
                                       waiting[first].score));
        };
        all([&](const ScoreSums& held) {
            if (used == 2 * target) {
                take(0, target);
                std::copy(waiting + target, waiting + used, waiting);
                used = target;
            }
            waiting[used++] = held;
            ++built.distinct_;
        });
        const int half = used > target ? used / 2 : 0;
        if (half) take(0, half);
        if (used) take(half, used);
        for (; level.size() > 1; ++built.height_) level = built.load_nodes(level);
        built.reserve_ties(built.leaves_.in_use(), built.multi_);
        if (used) {
            built.root_ = level[0].at;
            built.best_ = level[0].best;
        }
        swap(built);
    }

    void clear() {
        leaves_.clear();
        ties_.clear();
        nodes_.clear();
        forget_all();
    }

    void scale(int bits) {
        if (!root_) return;
        scale(root_, height_, bits);
        best_ = scaled(best_, bits);
    }

    void swap(CutShape& other) noexcept {
        std::swap(leaf_capacity_, other.leaf_capacity_);
        std::swap(node_capacity_, other.node_capacity_);
        std::swap(root_, other.root_);
        std::swap(height_, other.height_);
        std::swap(distinct_, other.distinct_);
        std::swap(best_, other.best_);
        std::swap(reserved_, other.reserved_);
        std::swap(multi_, other.multi_);
        leaves_.swap(other.leaves_);
        ties_.swap(other.ties_);
        nodes_.swap(other.nodes_);
    }

    // The first leaf, for a score that comes.
    void plant(const ScoreSums& held) {
        if (!is_single(held)) reserve_ties(1, 1);
        root_ = leaves_.make();
        height_ = 0;
    }

    // The last score is gone. Memory that was reserved stays.
    LIMEN_NOINLINE void let_go(Leaf* leaf) {
        if (!reserved_) return clear();
        give_back_ties(leaf);
        leaves_.give_back(leaf);
        forget_all();
    }

    // One more score of the leaf will not be single; it has tie columns from now on.
    LIMEN_NOINLINE void make_multi(Leaf* leaf) {
        reserve_ties(leaves_.in_use(), multi_ + 1);
        ++multi_;
        if (leaf->multi++) return;
        TieColumns* const ties = ties_.make();
        for (int i = 0; i < leaf->used; ++i) {
            const ScoreSums held = leaf->held(i);
            ties->below[i] = held.below;
            ties->count[i] = held.count;
        }
        leaf->ties = ties;
    }
    LIMEN_NOINLINE void make_single(Leaf* leaf) {
        --multi_;
        if (--leaf->multi == 0) give_back_ties(leaf);
    }

    // One change of shape towards room in the full leaf at the end of the path. All memory
    // is had before anything changes.
    LIMEN_NOINLINE void make_room(const Path& path) {
        leaves_.reserve(1);
        reserve_ties(leaves_.in_use() + 1, multi_);
        nodes_.reserve(2);
        if (path.depth == 0) {
            const Leaf* leaf = static_cast<const Leaf*>(root_);
            grow(leaf->prefix[leaf->used - 1], leaf->samples(leaf->used));
            return reshape_leaves(static_cast<Node*>(root_), 0, 1, 2);
        }
        for (int depth = path.depth - 1; depth >= 0; --depth) {
            if (share_with_neighbour(path, depth)) return;
            if (path.node[depth]->used < node_capacity_)
                return reshape(path, depth, path.child[depth], 1, 2);
        }
        const Node* root = static_cast<const Node*>(root_);
        grow(root->sum, root->samples);
        reshape_nodes(static_cast<Node*>(root_), height_, 0, 1, 2);
    }

    // Merge or share what has become too small, from the leaf upwards.
    LIMEN_NOINLINE void shrink(const Path& path) {
        for (int depth = path.depth - 1; depth >= 0; --depth) {
            const int capacity = capacity_at(path, depth);
            if (used_in(path, depth, path.child[depth]) >= fewest(capacity)) break;
            const int left = std::max(0, path.child[depth] - 1);
            const bool fits =
                used_in(path, depth, left) + used_in(path, depth, left + 1) <= capacity * 3 / 4;
            reshape(path, depth, left, 2, fits ? 1 : 2);
            if (!fits) break;
        }
        while (height_ > 0 && static_cast<Node*>(root_)->used == 1) {
            Node* old = static_cast<Node*>(root_);
            root_ = old->child[0];
            --height_;
            nodes_.give_back(old);
        }
    }

    // How many scores a leaf, or children a node, has at least unless it is the root.
    static int fewest(int capacity) { return std::max(2, capacity / 4); }

    int leaf_capacity_, node_capacity_;
    void* root_ = nullptr;
    int height_ = 0;
    std::size_t distinct_ = 0;
    std::int64_t best_ = 0;     // of the root
    std::size_t reserved_ = 0;  // for so many scores memory is kept, even when all are gone

private:
    using Subtree = CutSubtree;

    void forget_all() {
        multi_ = 0;
        root_ = nullptr;
        height_ = 0;
        distinct_ = 0;
        best_ = 0;
    }

    // Scores that are not single need tie columns, one set each at most, and no more than there are
    // leaves. So many are always there, so that leaves can share and merge without memory.
    void reserve_ties(std::size_t leaves, std::size_t multi) {
        const std::size_t needed = std::min(leaves, multi), in_use = ties_.in_use();
        if (needed > in_use) ties_.reserve(needed - in_use);
    }

    void give_back_ties(Leaf* leaf) {
        if (leaf->ties) ties_.give_back(std::exchange(leaf->ties, nullptr));
    }

    Subtree fill(Leaf* leaf, const ScoreSums* held, int used, double first) {
        Subtree made{leaf, first, 0, lowest, 0};
        for (int i = 0; i < used; ++i) {
            made.samples += held[i].count;
            leaf->score[i] = held[i].score;
            leaf->prefix[i] = made.sum += held[i].above - held[i].below;
            leaf->multi += !is_single(held[i]);
            made.best = std::max(made.best, made.sum);
        }
        multi_ += static_cast<std::size_t>(leaf->multi);
        if (leaf->multi) {
            leaf->ties = ties_.make();
            for (int i = 0; i < used; ++i) leaf->put_ties(i, held[i]);
        }
        std::fill(leaf->prefix + used, leaf->prefix + leaf_slots, made.sum);
        leaf->used = used;
        return made;
    }

    static Subtree fill(Node* node, const Subtree* children, int used, double first) {
        node->reset();
        Subtree made{node, first, 0, lowest, 0};
        for (int i = 0; i < used; ++i) {
            node->count_in(i, children[i].samples);
            node->separator[i] = i ? children[i].first : -infinity;
            node->before[i] = made.sum;
            node->best[i] = made.sum + children[i].best;
            node->child[i] = children[i].at;
            made.sum += children[i].sum;
            made.best = std::max(made.best, node->best[i]);
        }
        node->sum = made.sum;
        made.samples = node->samples;
        node->used = used;
        return made;
    }

    static int unload(const Node* node, int height, Subtree* out, double first) {
        for (int i = 0; i < node->used; ++i) {
            const std::int64_t end = i + 1 < node->used ? node->before[i + 1] : node->sum;
            out[i] = {node->child[i], i ? node->separator[i] : first, end - node->before[i],
                      node->best[i] - node->before[i], node->in_child(i, height)};
        }
        return node->used;
    }

    // Spread the contents of `from` neighbouring children of a node evenly over `to`:
    // 1 to 2 splits, 2 to 2 shares, 2 to 1 merges. The cuts stay the same, so nothing above
    // the node changes.
    void reshape(const Path& path, int depth, int child, int from, int to) {
        if (depth == path.depth - 1)
            reshape_leaves(path.node[depth], child, from, to);
        else
            reshape_nodes(path.node[depth], height_ - depth, child, from, to);
    }

    void reshape_nodes(Node* node, int height, int child, int from, int to) {
        Subtree children[node_slots + 1], entries[2 * node_slots];
        int used = unload(node, height, children, -infinity), total = 0;
        Node* parts[2];
        for (int i = 0; i < from; ++i) {
            const Subtree& part = children[child + i];
            parts[i] = static_cast<Node*>(part.at);
            total += unload(parts[i], height - 1, entries + total, part.first);
        }
        for (int i = from; i < to; ++i) parts[i] = nodes_.make();
        for (int i = to; i < from; ++i) nodes_.give_back(parts[i]);
        std::memmove(children + child + to, children + child + from,
                     sizeof(Subtree) * static_cast<std::size_t>(used - child - from));
        used += to - from;
        const double first = children[child].first;
        for (int i = 0; i < to; ++i) {
            const int start = total * i / to, end = total * (i + 1) / to;
            children[child + i] =
                fill(parts[i], entries + start, end - start, i ? entries[start].first : first);
        }
        fill(node, children, used, -infinity);
    }

    // Leaves change shape far more often: their arrays are copied as they are, and of the node
    // only what changes is written.
    void reshape_leaves(Node* node, int child, int from, int to) {
        Contents all;
        Leaf* parts[2] = {};
        for (int i = 0; i < from; ++i) {
            parts[i] = static_cast<Leaf*>(node->child[child + i]);
            all.with_ties |= parts[i]->multi > 0;
        }
        for (int i = 0; i < from; ++i) {
            all.append(*parts[i]);
            give_back_ties(parts[i]);
        }
        for (int i = to; i < from; ++i) leaves_.give_back(parts[i]);
        for (int i = from; i < to; ++i) parts[i] = leaves_.make();
        if (from != to) move_children(node, child + from, child + to);
        const std::int64_t before = node->before[child];
        for (int i = 0; i < to; ++i) {
            const int start = all.used * i / to, end = all.used * (i + 1) / to;
            const std::int64_t base = start ? all.sum[start - 1] : 0;
            node->child[child + i] = parts[i];
            node->best[child + i] = before + base + all.copy(start, end, base, *parts[i]);
            node->count[child + i] = static_cast<std::uint16_t>(all.samples(start, end));
            if (parts[i]->multi) all.copy_ties(start, end, *(parts[i]->ties = ties_.make()));
            if (i) node->before[child + i] = before + base;
            if (i) node->separator[child + i] = all.score[start];
        }
    }

    // The entries of one or two leaves on their way into others.
    struct Contents {
        double score[2 * leaf_slots];
        std::int64_t sum[2 * leaf_slots];  // from the start of the first leaf
        std::int64_t below[2 * leaf_slots];
        std::uint32_t count[2 * leaf_slots];
        int used = 0;
        bool with_ties = false;  // else `below` and `count` are not set

        void append(const Leaf& leaf) {
            const std::int64_t base = used ? sum[used - 1] : 0;
            for (int i = 0; i < leaf.used; ++i) {
                score[used + i] = leaf.score[i];
                sum[used + i] = base + leaf.prefix[i];
            }
            for (int i = 0; with_ties && i < leaf.used; ++i) {
                const ScoreSums held = leaf.held(i);
                below[used + i] = held.below;
                count[used + i] = held.count;
            }
            used += leaf.used;
        }

        // All but the tie columns, for which `multi` is set; the best sum, counted from the leaf's
        // start.
        std::int64_t copy(int start, int end, std::int64_t base, Leaf& leaf) const {
            leaf.used = end - start;
            std::int64_t best = lowest;
            for (int i = 0; i < leaf.used; ++i) {
                leaf.score[i] = score[start + i];
                leaf.prefix[i] = sum[start + i] - base;
                best = std::max(best, leaf.prefix[i]);
            }
            std::fill(leaf.score + leaf.used, leaf.score + leaf_slots, infinity);
            std::fill(leaf.prefix + leaf.used, leaf.prefix + leaf_slots,
                      leaf.used ? leaf.prefix[leaf.used - 1] : 0);
            leaf.multi = 0;
            for (int i = 0; with_ties && i < leaf.used; ++i) {
                const std::int64_t low = below[start + i];
                leaf.multi += !is_single({leaf.score[i], low, low + leaf.z(i), count[start + i]});
            }
            return best;
        }

        std::int64_t samples(int start, int end) const {
            return with_ties ? std::accumulate(count + start, count + end, std::int64_t{0})
                             : end - start;
        }

        void copy_ties(int start, int end, TieColumns& ties) const {
            std::copy(below + start, below + end, ties.below);
            std::copy(count + start, count + end, ties.count);
        }
    };

    // The children from one place on move to another, next to it; what they leave free is reset.
    static void move_children(Node* node, int from, int to) {
        const auto move = [&](auto* values) {
            std::memmove(values + to, values + from,
                         static_cast<std::size_t>(node->used - from) * sizeof *values);
        };
        move(node->separator);
        move(node->before);
        move(node->best);
        move(node->child);
        move(node->count);
        node->used += to - from;
        if (to > from) return;
        node->separator[node->used] = std::numeric_limits<double>::quiet_NaN();
        node->before[node->used] = 0;
        node->best[node->used] = lowest;
        node->count[node->used] = 0;
    }

    // Put a new root above the old one.
    void grow(std::int64_t sum, std::int64_t samples) {
        Node* node = nodes_.make();
        const Subtree old{root_, -infinity, sum, best_, samples};
        fill(node, &old, 1, -infinity);
        root_ = node;
        ++height_;
    }

    // How full a child of the node at some depth is, and could be. Beyond the ends all are full.
    int capacity_at(const Path& path, int depth) const {
        return depth == path.depth - 1 ? leaf_capacity_ : node_capacity_;
    }
    int used_in(const Path& path, int depth, int child) const {
        const Node* node = path.node[depth];
        if (child < 0 || child >= node->used) return capacity_at(path, depth);
        return depth == path.depth - 1 ? static_cast<const Leaf*>(node->child[child])->used
                                       : static_cast<const Node*>(node->child[child])->used;
    }

    // Sharing before splitting keeps leaves about four fifths full instead of two thirds.
    bool share_with_neighbour(const Path& path, int depth) {
        const int child = path.child[depth], capacity = capacity_at(path, depth);
        const int left = used_in(path, depth, child - 1), right = used_in(path, depth, child + 1);
        // With a single free slot between them, one of the two would stay full.
        if (std::min(left, right) > capacity - std::max(2, capacity / 8)) return false;
        reshape(path, depth, left <= right ? child - 1 : child, 2, 2);
        return true;
    }

    // How many entries a loaded leaf or node has.
    static int filled(int capacity) { return capacity - std::max(1, capacity / 6); }

    std::vector<Subtree> load_nodes(const std::vector<Subtree>& children) {
        const std::size_t total = children.size();
        const auto target = static_cast<std::size_t>(filled(node_capacity_));
        const std::size_t parts = (total + target - 1) / target;
        std::vector<Subtree> level(parts);
        for (std::size_t i = 0; i < parts; ++i) {
            const std::size_t start = total * i / parts, end = total * (i + 1) / parts;
            level[i] = fill(nodes_.make(), children.data() + start, static_cast<int>(end - start),
                            children[start].first);
        }
        return level;
    }

    static void scale(void* at, int height, int bits) {
        if (height == 0) {
            Leaf* leaf = static_cast<Leaf*>(at);
            for (int i = 0; leaf->ties && i < leaf->used; ++i)
                leaf->ties->below[i] = scaled(leaf->ties->below[i], bits);
            for (std::int64_t& sum : leaf->prefix) sum = scaled(sum, bits);
            return;
        }
        Node* node = static_cast<Node*>(at);
        node->sum = scaled(node->sum, bits);
        for (int i = 0; i < node->used; ++i) {
            node->before[i] = scaled(node->before[i], bits);
            node->best[i] = scaled(node->best[i], bits);
            scale(node->child[i], height - 1, bits);
        }
    }

    std::size_t multi_ = 0;  // how many scores are not single
    Pool<Leaf> leaves_;
    Pool<TieColumns> ties_;
    Pool<Node> nodes_;
};

}  // namespace limen
