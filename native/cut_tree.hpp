// SPDX-License-Identifier: Apache-2.0
//
// An ordered map from score to its two losses that always knows the cheapest cut.
//
// add, remove   O(log n), where n is the number of distinct scores held
// best          O(1) unless the last change moved it, then O(log n)
// load, scan    O(n)
// memory        832 bytes per leaf of 48 slots, which are about four fifths full, and 576 more
//               where a score of the leaf has several samples or losses on both sides
//
// A B+-tree. A leaf holds scores in ascending order with the running sum of z = above - below
// inside the leaf; an inner node holds for each child where it starts (`before`) and the best
// running sum that ends in it (`best`), both counted from the node's own start. The cut after
// a score is worth the running sum up to that score; the best cut has the largest one, and of
// equal ones the highest. This is the merge lemma of the paper with wide nodes: of two
// neighbouring runs, the best cut lies in one, and `before` and `best` tell which.
//
// Scores are doubles without nan, -0.0 given as 0.0. The sum of all |z| stays below 2^62;
// both are the caller's duty. Not safe for concurrent use, not even of best(), which remembers.
// check() throws on a broken invariant, in release builds too.
//
// One file although long: one class, every method of which needs the layout of leaves and nodes.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cut.hpp"
#include "kernels.hpp"
#include "pool.hpp"
#include "wide.hpp"

namespace limen {

class CutTree {
public:
    // Fewer slots per node make splits and merges common: for tests.
    explicit CutTree(int leaf_capacity = leaf_slots, int node_capacity = node_slots,
                     Isa isa = active_isa())
        : isa_(isa), leaf_capacity_(leaf_capacity), node_capacity_(node_capacity) {
        if (leaf_capacity < 4 || leaf_capacity > leaf_slots || node_capacity < 4 ||
            node_capacity > node_slots)
            throw std::invalid_argument("capacities must be from 4 to the slots of a leaf or node");
    }

    CutTree(CutTree&& other) noexcept : isa_(other.isa_) { swap(other); }
    CutTree& operator=(CutTree&& other) noexcept {
        swap(other);
        return *this;
    }

    std::size_t distinct() const { return distinct_; }
    std::size_t memory() const { return leaves_.memory() + sides_.memory() + nodes_.memory(); }
    int leaf_capacity() const { return leaf_capacity_; }
    int node_capacity() const { return node_capacity_; }

    // What is held of a score; count 0 when it is not held.
    Held find(double score) const {
        if (!root_) return {score, 0, 0, 0};
        return with_kernels(isa_, [&]<class K>(K) {
            const void* at = root_;
            for (int level = height_; level > 0; --level) {
                const Node* node = static_cast<const Node*>(at);
                at = node->child[K::node_rank(node->separator, score) - 1];
            }
            const Leaf* leaf = static_cast<const Leaf*>(at);
            const int slot = K::leaf_rank(leaf->score, score);
            return leaf->holds(slot, score) ? leaf->held(slot) : Held{score, 0, 0, 0};
        });
    }

    // Add the sums of `held.count` >= 1 samples of one score. `seen` is shown what was held
    // of it before, once nothing can fail any more.
    void add(const Held& held) {
        add(held, [](const Held&) {});
    }

    template <class Seen>
    void add(const Held& held, Seen&& seen) {
        with_kernels(isa_, [&]<class K>(K) { add_by<K>(held, seen); });
    }

    // The same for the scores from `first` to `last`, which ascend strictly; `done` is where the
    // next one stands when memory runs out.
    template <class Seen>
    void add_all(const Held*& done, const Held* last, Seen&& seen) {
        with_kernels(isa_, [&]<class K>(K) { add_all_by<K>(done, last, seen); });
    }

    // Take sums away from a score if it is held with at least `held.count` samples and
    // `allows` agrees to what is held; otherwise change nothing and return false. A score
    // left without samples goes, and must be left without losses. Needs no memory, unless
    // losses go without a sample and leave a single one with losses on both sides.
    template <class Allows>
    bool remove(const Held& held, Allows&& allows) {
        return with_kernels(isa_, [&]<class K>(K) { return remove_by<K>(held, allows); });
    }

    // The same for the scores from `first` to `last`, which ascend strictly and are held with at
    // least so many samples each, and as much as is taken: nothing can fail.
    void remove_all(const Held* first, const Held* last) {
        with_kernels(isa_, [&]<class K>(K) { remove_all_by<K>(first, last); });
    }

    // remove() one sample and add another, for which memory was reserved. Both leaves are looked
    // for before either is needed, so that the one comes while the other is worked on. False when
    // nothing was changed.
    template <class Allows, class Seen>
    bool replace(const Held& old, const Held& held, Allows&& allows, Seen&& seen) {
        return with_kernels(isa_,
                            [&]<class K>(K) { return replace_by<K>(old, held, allows, seen); });
    }

    // The best cut, the highest of equals; the one below all scores is worth 0.
    const Cut& best() const {
        if (!cut_known_) {
            cut_ = with_kernels(isa_, [&]<class K>(K) { return find_best<K>(); });
            cut_known_ = true;
        }
        return cut_;
    }

    // Every score in ascending order.
    template <class Visit>
    void scan(Visit&& visit) const {
        if (root_) scan(root_, height_, visit);
    }

    // Become the tree of these scores, which ascend strictly. Leaves keep a sixth free.
    void load(const std::vector<Held>& held) {
        load_from([&](auto&& visit) {
            for (const Held& each : held) visit(each);
        });
    }

    // The same for scores that `all` shows one after the other to what it is given.
    template <class All>
    void load_from(All&& all) {
        CutTree built(leaf_capacity_, node_capacity_, isa_);
        std::vector<Subtree> level;
        // What waits is enough for two leaves, so that the last is not too small.
        const int target = filled(leaf_capacity_);
        Held waiting[2 * leaf_slots];
        int used = 0;
        const auto take = [&](int first, int end) {
            level.push_back(built.fill(built.leaves_.make(), waiting + first, end - first,
                                       waiting[first].score));
        };
        all([&](const Held& held) {
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
        built.reserve_sides(built.leaves_.in_use(), built.odd_);
        if (used) {
            built.root_ = level[0].at;
            built.best_ = level[0].best;
        }
        swap(built);
    }

    // Multiply every loss by 2^bits, for a finer or coarser unit. Where bits is negative, all
    // losses must be multiples of 2^-bits.
    void scale(int bits) {
        if (!root_) return;
        cut_known_ = false;
        scale(root_, height_, bits);
        best_ = scaled(best_, bits);
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
        if (height_ == 0 && distinct_ + scores <= static_cast<std::size_t>(leaf_capacity_)) {
            reserve_sides(1, odd_ + scores);  // one leaf is enough, as it is for most groups
            return leaves_.reserve(1 - leaves_.in_use());
        }
        const std::size_t levels = static_cast<std::size_t>(height_) + 2 + scores;
        reserve_sides(leaves_.in_use() + scores + 1, odd_ + scores);
        if (leaves_.spare() > scores && nodes_.spare() >= scores * levels + 2) return;
        const std::size_t held = std::max(distinct_, std::min(distinct_ + scores, most));
        const auto few = [](int capacity) { return static_cast<std::size_t>(fewest(capacity)); };
        const std::size_t leaves = held / few(leaf_capacity_) + 1;
        leaves_.reserve(std::min(scores, leaves - leaves_.in_use()) + 1);
        const std::size_t nodes = leaves / (few(node_capacity_) - 1) + 2;
        nodes_.reserve(std::min(scores * levels, nodes - nodes_.in_use()) + 2);
    }

    CutTree copy() const {
        CutTree made(leaf_capacity_, node_capacity_, isa_);
        made.load_from([&](auto&& visit) { scan(visit); });
        return made;
    }

    // A score is going to be removed soon: ask for its leaf.
    void warm(double score) const {
        if (height_ == 0) return;
        with_kernels(isa_, [&]<class K>(K) { warm_by<K>(score); });
    }

    void swap(CutTree& other) noexcept {
        std::swap(isa_, other.isa_);
        std::swap(leaf_capacity_, other.leaf_capacity_);
        std::swap(node_capacity_, other.node_capacity_);
        std::swap(root_, other.root_);
        std::swap(height_, other.height_);
        std::swap(distinct_, other.distinct_);
        std::swap(best_, other.best_);
        cut_known_ = other.cut_known_ = false;
        std::swap(reserved_, other.reserved_);
        std::swap(odd_, other.odd_);
        leaves_.swap(other.leaves_);
        sides_.swap(other.sides_);
        nodes_.swap(other.nodes_);
    }

    void check() const {
        std::size_t seen = 0, odd = 0;
        if (root_) {
            const Subtree root = check(root_, height_, -infinity, infinity, true, seen, odd);
            require(root.best == best_, "the best cut of the root is wrong");
        }
        require(odd == odd_, "the number of odd scores is wrong");
        require(sides_.in_use() + sides_.spare() >= std::min(leaves_.in_use(), odd_),
                "leaves could need memory to share");
        if (cut_known_) check_cut();
        require(seen == distinct_, "the number of distinct scores is wrong");
        require(!root_ || seen > 0, "an empty tree has a root");
    }

private:
    friend class CutParts;  // which looks into leaves and nodes

    static constexpr double infinity = std::numeric_limits<double>::infinity();
    // Below every running sum, and so far from the ends that adding one to it is safe.
    static constexpr std::int64_t no_cut = -(std::int64_t{1} << 62);

    // A single sample with a loss on one side only is known by its z; most are such.
    static bool plain(const Held& held) {
        return held.count == 1 && held.below >= 0 && held.above >= 0 &&
               (held.below == 0 || held.above == 0);
    }

    // What a leaf keeps besides where one of its scores is not plain.
    struct alignas(64) Side {
        std::int64_t below[leaf_slots];
        std::uint32_t count[leaf_slots];

        void reset() {}
        void move(int from, int to, int slots) {
            const auto n = static_cast<std::size_t>(slots);
            std::memmove(below + to, below + from, n * sizeof *below);
            std::memmove(count + to, count + from, n * sizeof *count);
        }
    };

    struct alignas(64) Leaf {
        int used;
        int odd;                          // how many scores are not plain
        Side* side;                       // null when none is odd
        std::int64_t zeros[6];            // prefix[-1] is the running sum before the leaf
        std::int64_t prefix[leaf_slots];  // running sum of z, from the leaf's start; free
                                          // slots repeat the last one
        double score[leaf_slots];         // free slots: +inf

        void reset() {
            std::fill_n(score, leaf_slots, infinity);
            std::fill_n(zeros, 6, std::int64_t{0});
            std::fill_n(prefix, leaf_slots, std::int64_t{0});
            used = odd = 0;
            side = nullptr;
        }
        bool holds(int slot, double wanted) const { return slot < used && score[slot] == wanted; }
        std::int64_t z(int slot) const { return prefix[slot] - (slot ? prefix[slot - 1] : 0); }
        Held held(int slot) const {
            const std::int64_t own = z(slot);
            if (!side) return {score[slot], own < 0 ? -own : 0, own > 0 ? own : 0, 1};
            return {score[slot], side->below[slot], side->below[slot] + own, side->count[slot]};
        }
        // How many samples the lowest scores have.
        std::int64_t samples(int scores) const {
            return side ? std::accumulate(side->count, side->count + scores, std::int64_t{0})
                        : scores;
        }
        void put_side(int slot, const Held& held) {
            side->below[slot] = held.below;
            side->count[slot] = held.count;
        }
    };

    struct alignas(64) Node {
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
            const Leaf* leaf = static_cast<const Leaf*>(child[at]);
            return leaf->samples(leaf->used);
        }
        std::int64_t in_child(int at, int own_height) const {
            return own_height == 1 ? in_leaf(at) : static_cast<const Node*>(child[at])->samples;
        }
    };

    // The inner nodes from the root to a leaf, and the child taken in each.
    struct Path {
        Node* node[24];
        int child[24];
        std::int64_t others[24];  // the best sum of the children not taken
        int depth = 0;
    };

    // A child as its parent must know it.
    struct Subtree {
        void* at;
        double first;
        std::int64_t sum, best, samples;
    };

    // Cuts above the best one, by the range of their lower scores: from here up to the next.
    struct Rivals {
        double from;
        std::int64_t lead;  // of the best cut over the best of these, or less
    };
    static constexpr int most_rivals = 8;

    // The best cut, and how far it leads: right of the path, near rivals last.
    template <class K>
    Cut find_best() const {
        Cut cut;
        rivals_used_ = 0;
        if (!root_) return cut;
        if (best_ < 0) {
            cut.has_upper = true;
            cut.upper = first_score(root_, height_);
            meet({cut.upper, -best_});
            return cut;
        }
        cut.best = best_;
        cut.has_lower = true;
        const void* at = root_;
        std::int64_t wanted = best_;
        for (int level = height_; level > 0; --level) {
            const Node* node = static_cast<const Node*>(at);
            const int child = K::node_last(node->best, wanted);
            if (child + 1 < node->used) {
                cut.has_upper = true;
                cut.upper = first_score(node->child[child + 1], level - 1);
                meet({cut.upper,
                      wanted - *std::max_element(node->best + child + 1, node->best + node->used)});
            }
            wanted -= node->before[child];
            at = node->child[child];
        }
        const Leaf* leaf = static_cast<const Leaf*>(at);
        const int slot = std::min(K::leaf_last(leaf->prefix, wanted), leaf->used - 1);
        cut.lower = leaf->score[slot];
        if (slot + 1 < leaf->used) {
            cut.has_upper = true;
            cut.upper = leaf->score[slot + 1];
            meet({cut.upper,
                  wanted - *std::max_element(leaf->prefix + slot + 1, leaf->prefix + leaf->used)});
        }
        return cut;
    }

    // Rivals come from far to near; when there is no room, the two nearest become one.
    void meet(const Rivals& rivals) const {
        if (rivals_used_ < most_rivals) {
            rivals_[rivals_used_++] = rivals;
        } else {
            Rivals& nearest = rivals_[most_rivals - 1];
            nearest = {rivals.from, std::min(rivals.lead, nearest.lead)};
        }
    }

    // ---- one change; the path it takes is compiled for each instruction set as one piece ----

    template <class K, class Seen>
    LIMEN_INLINE void add_by(const Held& held, Seen& seen) {
        Path path;
        int slot;
        Leaf* leaf = leaf_for<K>(held, path, slot);
        add_at<K>(path, leaf, slot, held, seen);
    }

    template <class K, class Seen>
    LIMEN_INLINE void add_at(Path& path, Leaf* leaf, int slot, const Held& held, Seen& seen) {
        const std::int64_t z = held.above - held.below;
        prepare(leaf, slot, held, seen);
        shift<K>(path, z, held.count);  // before the leaf, which it need not wait for
        finish(path, put<K>(leaf, slot, held));
        keep_cut(held.score, z);
        reserved_ -= reserved_ > 0;
    }

    // Neighbours mostly go into one leaf or leaves of one node, and the nodes above learn of all of
    // them at once. Only what can fail is looked for from the root, as they do not know yet what
    // has changed.
    template <class K, class Seen>
    LIMEN_INLINE void add_all_by(const Held*& done, const Held* last, Seen& seen) {
        while (done != last) {
            Path path;
            int slot;
            Leaf* leaf = leaf_for<K>(*done, path, slot);
            prepare(leaf, slot, *done, seen);
            cut_known_ = false;
            if (path.depth == 0) {
                best_ = put_run<K>(leaf, slot, done, last, infinity, seen).best;
                continue;
            }
            Node* const node = path.node[--path.depth];
            const double end = end_of(path);
            std::int64_t z = 0, samples = 0, best;
            for (int child = path.child[path.depth];;) {
                if (child + 1 < node->used) prefetch(static_cast<Leaf*>(node->child[child + 1]));
                const double next = child + 1 < node->used ? node->separator[child + 1] : end;
                const Run run = put_run<K>(leaf, slot, done, last, next, seen);
                z += run.z;
                samples += run.samples;
                node->count_in(child, run.samples);
                best = K::node_add(node->before, node->best, child, run.z, node->used);
                node->best[child] = node->before[child] + run.best;
                best = std::max(best, node->best[child]);
                if (done == last || done->score >= end) break;
                child = K::node_rank(node->separator, done->score) - 1;
                leaf = static_cast<Leaf*>(node->child[child]);
                if (!takes<K>(leaf, slot, *done)) break;
                seen(Held{done->score, 0, 0, 0});
            }
            node->sum += z;
            shift<K>(path, z, samples);
            finish(path, best);
        }
    }

    struct Run {
        std::int64_t z, best, samples;
    };

    // Add to the leaf what lies below `end` and cannot fail. The first is prepared.
    template <class K, class Seen>
    LIMEN_INLINE Run put_run(Leaf* leaf, int slot, const Held*& done, const Held* last, double end,
                             Seen& seen) {
        for (Run run{0, 0, 0};;) {
            run.best = put<K>(leaf, slot, *done);
            run.z += done->above - done->below;
            run.samples += done->count;
            if (++done == last || done->score >= end || !takes<K>(leaf, slot, *done)) return run;
            seen(Held{done->score, 0, 0, 0});
        }
    }

    // Whether the leaf can take a score without memory; at which slot.
    template <class K>
    LIMEN_INLINE bool takes(const Leaf* leaf, int& slot, const Held& held) const {
        slot = K::leaf_rank(leaf->score, held.score);
        return leaf->used < leaf_capacity_ && plain(held) && !leaf->holds(slot, held.score);
    }

    // The leaf and the slot that the score belongs to, with room for it if it is not held.
    template <class K>
    LIMEN_INLINE Leaf* leaf_for(const Held& held, Path& path, int& slot) {
        if (!root_) {
            if (!plain(held)) reserve_sides(1, 1);
            root_ = leaves_.make();
            height_ = 0;
        }
        Leaf* leaf = descend<K>(held.score, path);
        slot = K::leaf_rank(leaf->score, held.score);
        while (!leaf->holds(slot, held.score) && leaf->used == leaf_capacity_) {
            make_room(path);
            leaf = descend<K>(held.score, path);
            slot = K::leaf_rank(leaf->score, held.score);
        }
        return leaf;
    }

    // All of an addition that can fail.
    template <class Seen>
    LIMEN_INLINE void prepare(Leaf* leaf, int slot, const Held& held, Seen& seen) {
        if (!leaf->holds(slot, held.score)) {
            if (!plain(held)) make_odd(leaf);
            seen(Held{held.score, 0, 0, 0});
            return;
        }
        const Held before = leaf->held(slot);
        if (held.count > std::numeric_limits<std::uint32_t>::max() - before.count)
            throw std::overflow_error("more than 4294967295 samples of one score");
        if (plain(before)) make_odd(leaf);
        seen(before);
    }

    // Add to the leaf; the best sum in it.
    template <class K>
    LIMEN_INLINE std::int64_t put(Leaf* leaf, int slot, const Held& held) {
        const std::int64_t z = held.above - held.below;
        if (leaf->holds(slot, held.score)) {
            leaf->side->below[slot] += held.below;
            leaf->side->count[slot] += held.count;
            return K::leaf_add(leaf->prefix, slot, z);
        }
        const std::int64_t best = K::leaf_open(leaf->score, leaf->prefix, slot, z);
        leaf->score[slot] = held.score;
        if (leaf->side) {
            leaf->side->move(slot, slot + 1, leaf->used - slot);
            leaf->put_side(slot, held);
        }
        ++leaf->used;
        ++distinct_;
        return best;
    }

    // Where the next child starts, of any node; infinity at the end of the tree.
    static double end_of(const Path& path) {
        for (int i = path.depth - 1; i >= 0; --i)
            if (path.child[i] + 1 < path.node[i]->used)
                return path.node[i]->separator[path.child[i] + 1];
        return infinity;
    }

    template <class K, class Allows>
    LIMEN_INLINE bool remove_by(const Held& held, Allows& allows) {
        if (!root_) return false;
        Path path;
        Leaf* leaf = descend<K>(held.score, path);
        return remove_at<K>(path, leaf, held, allows);
    }

    template <class K, class Allows, class Seen>
    LIMEN_INLINE bool replace_by(const Held& old, const Held& held, Allows& allows, Seen& seen) {
        if (!root_) return false;
        Path out, in;
        Leaf *const from = descend<K>(old.score, out), *const to = descend<K>(held.score, in);
        const bool keeps_shape = from->used > fewest(leaf_capacity_);
        if (!remove_at<K>(out, from, old, allows)) return false;
        if (keeps_shape) {
            const int slot = K::leaf_rank(to->score, held.score);
            if (to->used < leaf_capacity_ || to->holds(slot, held.score)) {
                add_at<K>(in, to, slot, held, seen);
                return true;
            }
        }
        add_by<K>(held, seen);
        return true;
    }

    template <class K>
    LIMEN_INLINE void warm_by(double score) const {
        Path path;
        prefetch(descend<K>(score, path));
    }

    template <class K, class Allows>
    LIMEN_INLINE bool remove_at(Path& path, Leaf* leaf, const Held& held, Allows& allows) {
        const int slot = K::leaf_rank(leaf->score, held.score);
        if (!leaf->holds(slot, held.score)) return false;
        const Held before = leaf->held(slot);
        if (before.count < held.count || !allows(before)) return false;
        const std::int64_t z = held.above - held.below;
        if (before.count == held.count) {
            if (distinct_ == 1) {
                let_go(leaf);
                return true;
            }
        } else if (plain(before) && !plain(rest(before, held))) {
            make_odd(leaf);
        }
        shift<K>(path, -z, -std::int64_t{held.count});
        finish(path, take<K>(leaf, slot, held, before));
        keep_cut(held.score, -z);
        if (leaf->used < fewest(leaf_capacity_)) shrink(path);
        return true;
    }

    // The nodes above a leaf learn at once of all that goes from it, but for what changes shapes.
    template <class K>
    LIMEN_INLINE void remove_all_by(const Held* held, const Held* last) {
        const auto always = [](const Held&) { return true; };
        while (held != last) {
            Path path;
            Leaf* const leaf = descend<K>(held->score, path);
            if (leaf->used <= fewest(leaf_capacity_)) {
                remove_at<K>(path, leaf, *held++, always);
                continue;
            }
            cut_known_ = false;
            const double end = end_of(path);
            std::int64_t z = 0, samples = 0, best = 0;
            do {
                const int slot = K::leaf_rank(leaf->score, held->score);
                best = take<K>(leaf, slot, *held, leaf->held(slot));
                z += held->above - held->below;
                samples += held->count;
            } while (++held != last && held->score < end && leaf->used > fewest(leaf_capacity_));
            shift<K>(path, -z, -samples);
            finish(path, best);
        }
    }

    static Held rest(const Held& held, const Held& less) {
        return {held.score, held.below - less.below, held.above - less.above,
                held.count - less.count};
    }

    // Take from what a leaf holds of a score; the best sum in the leaf. Its side is as it must be.
    template <class K>
    LIMEN_INLINE std::int64_t take(Leaf* leaf, int slot, const Held& held, const Held& before) {
        const std::int64_t z = held.above - held.below;
        if (before.count > held.count) {
            const Held after = rest(before, held);
            if (leaf->side) leaf->put_side(slot, after);
            if (!plain(before) && plain(after)) make_plain(leaf);
            return K::leaf_add(leaf->prefix, slot, -z);
        }
        --distinct_;
        if (held.score == cut_.lower || held.score == cut_.upper) cut_known_ = false;
        const std::int64_t best = K::leaf_close(leaf->score, leaf->prefix, slot, -z);
        --leaf->used;
        if (leaf->side) {
            leaf->side->move(slot + 1, slot, leaf->used - slot);
            if (!plain(before)) make_plain(leaf);
        }
        return leaf->used ? best : no_cut;
    }

    // Most changes leave the best cut where it was, which costs less to see than to find out:
    // a change of z at a score shifts all cuts above it alike, so only cuts above a score
    // whose z grows can overtake a cut below it, and only once they have made up its lead.
    // best_ is already up to date.
    LIMEN_INLINE void keep_cut(double score, std::int64_t z) {
        if (!cut_known_) return;
        if (cut_.has_lower && score <= cut_.lower) {
            cut_.best += z;
        } else if (z >= 0) {
            cut_known_ = still_leads(score, z);
            if (!cut_known_) return;
        } else if (!cut_.has_upper || score < cut_.upper) {
            cut_.has_upper = true;
            cut_.upper = score;
        }
        cut_known_ = cut_.has_lower ? best_ == cut_.best && best_ >= 0 : best_ < 0;
    }

    // All cuts above the score gain z. False when that may be enough, or nothing is known.
    // A lead is also one over the cut just below its range: when the first score of a range
    // goes, either its z was not negative, or the range has gained what that score had lost.
    // So a new score at the start of a range brings no closer cut than told.
    LIMEN_INLINE bool still_leads(double score, std::int64_t z) {
        if (rivals_used_ == 0 || score < rivals_[rivals_used_ - 1].from) return false;
        bool leads = true;
        for (int i = 0; i < rivals_used_; ++i) {
            rivals_[i].lead -= z;
            leads &= rivals_[i].lead > 0;
            if (rivals_[i].from <= score) break;  // nearer ones lie below the score
        }
        return leads;
    }

    template <class K>
    LIMEN_INLINE Leaf* descend(double score, Path& path) const {
        void* at = root_;
        path.depth = 0;
        for (int level = height_; level > 0; --level) {
            Node* node = static_cast<Node*>(at);
            const int child = K::node_rank(node->separator, score) - 1;
            path.node[path.depth] = node;
            path.child[path.depth++] = child;
            at = node->child[child];
            if (height_ <= 2) continue;
            if (level == 1) prefetch(static_cast<const Leaf*>(at));
            if (level == 2) prefetch(static_cast<const Node*>(at));
        }
        return static_cast<Leaf*>(at);
    }

    // A leaf of a large tree and the node above it are in no near cache, and all their lines are
    // soon needed: ask for them at once instead of one array after the other.
    template <class Block>
    LIMEN_INLINE static void prefetch(const Block* block) {
#if defined(__GNUC__) || defined(__clang__)
        const char* line = reinterpret_cast<const char*>(block);
        for (std::size_t i = 0; i < sizeof(Block); i += 64) __builtin_prefetch(line + i, 1);
        asm volatile("" : : "r"(block));  // else GCC takes warm() for a function without effect
#endif
    }

    // Tell the nodes of the path that the leaf below them grows by z and by some samples. They do
    // not wait for each other nor for the leaf, so the processor works on all of them at once;
    // finish() then needs one comparison per node.
    template <class K>
    LIMEN_INLINE void shift(Path& path, std::int64_t z, std::int64_t samples) const {
        for (int i = 0; i < path.depth; ++i) {
            Node* node = path.node[i];
            node->sum += z;
            node->count_in(path.child[i], samples);
            path.others[i] = K::node_add(node->before, node->best, path.child[i], z, node->used);
        }
    }

    LIMEN_INLINE void finish(const Path& path, std::int64_t best) {
        for (int i = path.depth - 1; i >= 0; --i) {
            const int child = path.child[i];
            best += path.node[i]->before[child];
            path.node[i]->best[child] = best;
            best = std::max(best, path.others[i]);
        }
        best_ = best;
    }

    static double first_score(const void* at, int height) {
        for (; height > 0; --height) at = static_cast<const Node*>(at)->child[0];
        return static_cast<const Leaf*>(at)->score[0];
    }

    // ---- changes of shape ----

    // The last score is gone. Memory that was reserved stays.
    LIMEN_APART void let_go(Leaf* leaf) {
        if (!reserved_) return clear();
        give_back_side(leaf);
        leaves_.give_back(leaf);
        forget_all();
    }

    void forget_all() {
        odd_ = 0;
        root_ = nullptr;
        height_ = 0;
        distinct_ = 0;
        best_ = 0;
        cut_known_ = false;
    }

    // Scores that are not plain need a side each at most, and no more than there are leaves. So
    // many are always there, so that leaves can share and merge without memory.
    void reserve_sides(std::size_t leaves, std::size_t odd) {
        const std::size_t needed = std::min(leaves, odd), in_use = sides_.in_use();
        if (needed > in_use) sides_.reserve(needed - in_use);
    }

    // One more score of the leaf will not be plain; it has a side from now on.
    LIMEN_APART void make_odd(Leaf* leaf) {
        reserve_sides(leaves_.in_use(), odd_ + 1);
        ++odd_;
        if (leaf->odd++) return;
        Side* const side = sides_.make();
        for (int i = 0; i < leaf->used; ++i) {
            const Held held = leaf->held(i);
            side->below[i] = held.below;
            side->count[i] = held.count;
        }
        leaf->side = side;
    }
    LIMEN_APART void make_plain(Leaf* leaf) {
        --odd_;
        if (--leaf->odd == 0) give_back_side(leaf);
    }
    void give_back_side(Leaf* leaf) {
        if (leaf->side) sides_.give_back(std::exchange(leaf->side, nullptr));
    }

    Subtree fill(Leaf* leaf, const Held* held, int used, double first) {
        Subtree made{leaf, first, 0, lowest, 0};
        for (int i = 0; i < used; ++i) {
            made.samples += held[i].count;
            leaf->score[i] = held[i].score;
            leaf->prefix[i] = made.sum += held[i].above - held[i].below;
            leaf->odd += !plain(held[i]);
            made.best = std::max(made.best, made.sum);
        }
        odd_ += static_cast<std::size_t>(leaf->odd);
        if (leaf->odd) {
            leaf->side = sides_.make();
            for (int i = 0; i < used; ++i) leaf->put_side(i, held[i]);
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
            all.with_sides |= parts[i]->odd > 0;
        }
        for (int i = 0; i < from; ++i) {
            all.append(*parts[i]);
            give_back_side(parts[i]);
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
            if (parts[i]->odd) all.copy_side(start, end, *(parts[i]->side = sides_.make()));
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
        bool with_sides = false;  // else `below` and `count` are not set

        void append(const Leaf& leaf) {
            const std::int64_t base = used ? sum[used - 1] : 0;
            for (int i = 0; i < leaf.used; ++i) {
                score[used + i] = leaf.score[i];
                sum[used + i] = base + leaf.prefix[i];
            }
            for (int i = 0; with_sides && i < leaf.used; ++i) {
                const Held held = leaf.held(i);
                below[used + i] = held.below;
                count[used + i] = held.count;
            }
            used += leaf.used;
        }

        // All but the side, for which `odd` is set; the best sum, counted from the leaf's start.
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
            leaf.odd = 0;
            for (int i = 0; with_sides && i < leaf.used; ++i) {
                const std::int64_t low = below[start + i];
                leaf.odd += !plain({leaf.score[i], low, low + leaf.z(i), count[start + i]});
            }
            return best;
        }

        std::int64_t samples(int start, int end) const {
            return with_sides ? std::accumulate(count + start, count + end, std::int64_t{0})
                              : end - start;
        }

        void copy_side(int start, int end, Side& side) const {
            std::copy(below + start, below + end, side.below);
            std::copy(count + start, count + end, side.count);
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

    // One change of shape towards room in the full leaf at the end of the path. All memory
    // is had before anything changes.
    LIMEN_APART void make_room(const Path& path) {
        leaves_.reserve(1);
        reserve_sides(leaves_.in_use() + 1, odd_);
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

    static int fewest(int capacity) { return std::max(2, capacity / 4); }

    // Merge or share what has become too small, from the leaf upwards.
    LIMEN_APART void shrink(const Path& path) {
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

    // ---- whole trees ----

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

    template <class Visit>
    static void scan(const void* at, int height, Visit& visit) {
        if (height == 0) {
            const Leaf* leaf = static_cast<const Leaf*>(at);
            for (int i = 0; i < leaf->used; ++i) visit(leaf->held(i));
        } else {
            const Node* node = static_cast<const Node*>(at);
            for (int i = 0; i < node->used; ++i) scan(node->child[i], height - 1, visit);
        }
    }

    static void scale(void* at, int height, int bits) {
        if (height == 0) {
            Leaf* leaf = static_cast<Leaf*>(at);
            for (int i = 0; leaf->side && i < leaf->used; ++i)
                leaf->side->below[i] = scaled(leaf->side->below[i], bits);
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

    static void require(bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken cut tree: ") + otherwise);
    }

    // The cut kept must be the one that would be found, and no rival may be closer than told.
    void check_cut() const {
        const Cut kept = cut_;
        Rivals rivals[most_rivals];
        const int used = rivals_used_;
        std::copy(rivals_, rivals_ + used, rivals);
        require(kept == find_best<BaselineKernels>(), "the best cut kept is not the best");
        std::copy(rivals, rivals + used, rivals_);
        rivals_used_ = used;
        std::int64_t value = 0;
        scan([&](const Held& held) {
            value += held.above - held.below;
            if (used == 0 || held.score < rivals[used - 1].from) return;
            int at = 0;
            while (rivals[at].from > held.score) ++at;
            require(kept.best - value >= rivals[at].lead, "a rival is closer than told");
        });
    }

    // Recompute sum and best from below, with every score in [low, high).
    Subtree check(const void* at, int height, double low, double high, bool root, std::size_t& seen,
                  std::size_t& odd) const {
        Subtree found{nullptr, low, 0, lowest, 0};
        if (height == 0) {
            const Leaf* leaf = static_cast<const Leaf*>(at);
            require(leaf->used <= leaf_capacity_, "a leaf is too full");
            require(root || leaf->used >= fewest(leaf_capacity_), "a leaf is too empty");
            require(leaf->zeros[5] == 0, "a leaf does not start at 0");
            require((leaf->odd > 0) == (leaf->side != nullptr), "a side is missing or left over");
            int not_plain = 0;
            for (int i = 0; i < leaf_slots; ++i) {
                if (i >= leaf->used) {
                    require(leaf->score[i] == infinity, "a free slot is not +inf");
                    require(leaf->prefix[i] == found.sum, "a free slot has a sum of its own");
                    continue;
                }
                const double score = leaf->score[i];
                require(i == 0 || leaf->score[i - 1] < score, "scores do not ascend");
                require(score >= low && (score < high || high == infinity), "a score is astray");
                require(leaf->held(i).count > 0, "a score is held without samples");
                found.samples += leaf->held(i).count;
                not_plain += !plain(leaf->held(i));
                found.sum += leaf->z(i);
                require(found.sum == leaf->prefix[i], "a running sum is wrong");
                found.best = std::max(found.best, found.sum);
            }
            require(not_plain == leaf->odd, "the number of odd scores of a leaf is wrong");
            seen += static_cast<std::size_t>(leaf->used);
            odd += static_cast<std::size_t>(leaf->odd);
            return found;
        }
        const Node* node = static_cast<const Node*>(at);
        require(node->used <= node_capacity_, "a node is too full");
        require(node->used >= (root ? 2 : fewest(node_capacity_)), "a node is too empty");
        require(node->separator[0] == -infinity, "the first separator is not -inf");
        for (int i = 0; i < node_slots; ++i) {
            if (i >= node->used) {
                require(node->separator[i] != node->separator[i], "a free separator is not nan");
                require(node->best[i] == lowest, "a free slot has a best cut");
                require(node->count[i] == 0, "a free slot has samples");
                continue;
            }
            const double from = i ? node->separator[i] : low;
            const double to = i + 1 < node->used ? node->separator[i + 1] : high;
            const Subtree child = check(node->child[i], height - 1, from, to, false, seen, odd);
            require(node->before[i] == found.sum, "a child starts at a wrong sum");
            require(node->best[i] == found.sum + child.best, "the best cut of a child is wrong");
            require(node->in_child(i, height) == child.samples &&
                        node->count[i] == static_cast<std::uint16_t>(child.samples),
                    "the samples of a child are miscounted");
            found.best = std::max(found.best, node->best[i]);
            found.sum += child.sum;
            found.samples += child.samples;
        }
        require(node->samples == found.samples, "the samples of a node are miscounted");
        require(node->sum == found.sum, "the sum of a node is wrong");
        return found;
    }

    Isa isa_;
    int leaf_capacity_ = leaf_slots, node_capacity_ = node_slots;
    void* root_ = nullptr;  // a leaf when height_ is 0
    int height_ = 0;
    std::size_t distinct_ = 0;
    std::int64_t best_ = 0;  // of the root
    mutable bool cut_known_ = false;
    mutable Cut cut_;  // these are valid while cut_known_
    mutable Rivals rivals_[most_rivals];
    mutable int rivals_used_ = 0;  // 0 also when nothing is known of them
    std::size_t reserved_ = 0;     // for so many scores memory is kept, even when all are gone
    std::size_t odd_ = 0;          // how many scores are not plain
    Pool<Leaf> leaves_;
    Pool<Side> sides_;
    Pool<Node> nodes_;
};

}  // namespace limen
