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
// A B+-tree. A leaf holds scores with running sums of z = above - below, an inner node for each
// child where it starts (`before`) and the best running sum that ends in it (`best`). The cut after
// a score is worth the running sum up to that score; the best cut has the largest one, and of
// equal ones the highest. This is the merge lemma of the paper with wide nodes: of two
// neighbouring runs, the best cut lies in one, and `before` and `best` say which.
//
// Scores are doubles without nan, -0.0 given as 0.0. The sum of all |z| stays below 2^62;
// both are the caller's duty. Not safe for concurrent use, not even of best(), which remembers.
// check() throws on a broken invariant, in release builds too.
//
// Leaves and nodes are laid out in cut_node.hpp and split and merged in cut_shape.hpp; here they
// are changed by samples that come and go.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/cut_check.hpp"
#include "core/cut_shape.hpp"
#include "core/kept_cut.hpp"
#include "core/kernels.hpp"

namespace limen {

class CutTree : public CutShape {
public:
    // Fewer slots per node make splits and merges common: for tests.
    explicit CutTree(int leaf_capacity = leaf_slots, int node_capacity = node_slots,
                     Isa isa = active_isa())
        : CutShape(leaf_capacity, node_capacity), isa_(isa) {}

    CutTree(CutTree&& other) noexcept
        : CutShape(other.leaf_capacity_, other.node_capacity_), isa_(other.isa_) {
        swap(other);
    }
    CutTree& operator=(CutTree&& other) noexcept {
        swap(other);
        return *this;
    }

    // What is held of a score; count 0 when it is not held.
    ScoreSums find(double score) const {
        if (!root_) return {score, 0, 0, 0};
        return with_kernels(isa_, [&]<class K>(K) {
            const void* at = root_;
            for (int level = height_; level > 0; --level) {
                const Node* node = static_cast<const Node*>(at);
                at = node->child[K::node_rank(node->separator, score) - 1];
            }
            const Leaf* leaf = static_cast<const Leaf*>(at);
            const int slot = K::leaf_rank(leaf->score, score);
            return leaf->holds(slot, score) ? leaf->held(slot) : ScoreSums{score, 0, 0, 0};
        });
    }

    // Add the sums of `held.count` >= 1 samples of one score. `seen` is shown what was held
    // of it before, once nothing can fail any more.
    void add(const ScoreSums& held) {
        add(held, [](const ScoreSums&) {});
    }

    template <class Seen>
    void add(const ScoreSums& held, Seen&& seen) {
        with_kernels(isa_, [&]<class K>(K) { add_by<K>(held, seen); });
    }

    // The same for the scores from `first` to `last`, which ascend strictly; `done` is where the
    // next one stands when memory runs out.
    template <class Seen>
    void add_all(const ScoreSums*& done, const ScoreSums* last, Seen&& seen) {
        with_kernels(isa_, [&]<class K>(K) { add_all_by<K>(done, last, seen); });
    }

    // Take sums away from a score if it is held with at least `held.count` samples and
    // `allows` agrees to what is held; otherwise change nothing and return false. A score
    // left without samples goes, and must be left without losses. Needs no memory, unless
    // losses go without a sample and leave a single one with losses on both sides.
    template <class Allows>
    bool remove(const ScoreSums& held, Allows&& allows) {
        return with_kernels(isa_, [&]<class K>(K) { return remove_by<K>(held, allows); });
    }

    // The same for the scores from `first` to `last`, which ascend strictly and are held with at
    // least so many samples each, and as much as is taken: nothing can fail.
    void remove_all(const ScoreSums* first, const ScoreSums* last) {
        with_kernels(isa_, [&]<class K>(K) { remove_all_by<K>(first, last); });
    }

    // remove() one sample and add another, for which memory was reserved. Both leaves are looked
    // for before either is needed, so that the one comes while the other is worked on. False when
    // nothing was changed.
    template <class Allows, class Seen>
    bool replace(const ScoreSums& old, const ScoreSums& held, Allows&& allows, Seen&& seen) {
        return with_kernels(isa_,
                            [&]<class K>(K) { return replace_by<K>(old, held, allows, seen); });
    }

    // The best cut, the highest of equals; the one below all scores is worth 0.
    const Cut& best() const {
        if (!kept_.known()) with_kernels(isa_, [&]<class K>(K) { kept_.template find<K>(*this); });
        return kept_.cut();
    }

    // Become the tree of these scores, which ascend strictly. Leaves keep a sixth free.
    void load(const std::vector<ScoreSums>& held) {
        load_from([&](auto&& visit) {
            for (const ScoreSums& each : held) visit(each);
        });
    }

    // The same for scores that `all` shows one after the other to what it is given.
    template <class All>
    void load_from(All&& all) {
        CutShape::load_from(all);
        kept_.forget();
    }

    // Multiply every loss by 2^bits, for a finer or coarser unit. Where bits is negative, all
    // losses must be multiples of 2^-bits.
    void scale(int bits) {
        CutShape::scale(bits);
        kept_.forget();
    }

    void clear() {
        CutShape::clear();
        kept_.forget();
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
        CutShape::swap(other);
        std::swap(isa_, other.isa_);
        kept_.forget();
        other.kept_.forget();
    }

    void check() const {
        CutCheck(*this).run();
        kept_.check(*this);
    }

private:
    // Below every running sum, and so far from the ends that adding one to it is safe.
    static constexpr std::int64_t no_cut = -(std::int64_t{1} << 62);

    // ---- one change; the path it takes is compiled for each instruction set as one piece ----

    template <class K, class Seen>
    LIMEN_INLINE void add_by(const ScoreSums& held, Seen& seen) {
        Path path;
        int slot;
        Leaf* leaf = leaf_for<K>(held, path, slot);
        add_at<K>(path, leaf, slot, held, seen);
    }

    template <class K, class Seen>
    LIMEN_INLINE void add_at(Path& path, Leaf* leaf, int slot, const ScoreSums& held, Seen& seen) {
        const std::int64_t z = held.above - held.below;
        prepare(leaf, slot, held, seen);
        shift<K>(path, z, held.count);  // before the leaf, which it need not wait for
        finish(path, put<K>(leaf, slot, held));
        kept_.change(held.score, z, best_);
        reserved_ -= reserved_ > 0;
    }

    // Neighbours mostly go into one leaf or leaves of one node, and the nodes above learn of all of
    // them at once. Only what can fail is looked for from the root, as they do not know yet what
    // has changed.
    template <class K, class Seen>
    LIMEN_INLINE void add_all_by(const ScoreSums*& done, const ScoreSums* last, Seen& seen) {
        while (done != last) {
            Path path;
            int slot;
            Leaf* leaf = leaf_for<K>(*done, path, slot);
            prepare(leaf, slot, *done, seen);
            kept_.forget();
            if (path.depth == 0) {
                best_ = put_run<K>(leaf, slot, done, last, infinity, seen).best;
                continue;
            }
            Node* const node = path.node[--path.depth];
            const double end = end_of(path);
            std::int64_t z = 0, samples = 0, best;
            for (int child = path.child[path.depth];;) {
                if (child + 1 < node->used) prefetch<1>(static_cast<Leaf*>(node->child[child + 1]));
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
                seen(ScoreSums{done->score, 0, 0, 0});
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
    LIMEN_INLINE Run put_run(Leaf* leaf, int slot, const ScoreSums*& done, const ScoreSums* last,
                             double end, Seen& seen) {
        for (Run run{0, 0, 0};;) {
            run.best = put<K>(leaf, slot, *done);
            run.z += done->above - done->below;
            run.samples += done->count;
            if (++done == last || done->score >= end || !takes<K>(leaf, slot, *done)) return run;
            seen(ScoreSums{done->score, 0, 0, 0});
        }
    }

    // Whether the leaf can take a score without memory; at which slot.
    template <class K>
    LIMEN_INLINE bool takes(const Leaf* leaf, int& slot, const ScoreSums& held) const {
        slot = K::leaf_rank(leaf->score, held.score);
        return takes(leaf, slot, held);
    }
    LIMEN_INLINE bool takes(const Leaf* leaf, int slot, const ScoreSums& held) const {
        return leaf->used < leaf_capacity_ && is_single(held) && !leaf->holds(slot, held.score);
    }

    // The leaf and the slot that the score belongs to, with room for it if it is not held.
    template <class K>
    LIMEN_INLINE Leaf* leaf_for(const ScoreSums& held, Path& path, int& slot) {
        if (!root_) plant(held);
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
    LIMEN_INLINE void prepare(Leaf* leaf, int slot, const ScoreSums& held, Seen& seen) {
        if (!leaf->holds(slot, held.score)) {
            if (!is_single(held)) make_multi(leaf);
            seen(ScoreSums{held.score, 0, 0, 0});
            return;
        }
        const ScoreSums before = leaf->held(slot);
        if (held.count > std::numeric_limits<std::uint32_t>::max() - before.count)
            throw std::overflow_error("more than 4294967295 samples of one score");
        if (is_single(before)) make_multi(leaf);
        seen(before);
    }

    // Add to the leaf; the best sum in it.
    template <class K>
    LIMEN_INLINE std::int64_t put(Leaf* leaf, int slot, const ScoreSums& held) {
        const std::int64_t z = held.above - held.below;
        if (leaf->holds(slot, held.score)) {
            leaf->ties->below[slot] += held.below;
            leaf->ties->count[slot] += held.count;
            return K::leaf_add(leaf->prefix, slot, z);
        }
        const std::int64_t best = K::leaf_open(leaf->score, leaf->prefix, slot, z);
        leaf->score[slot] = held.score;
        if (leaf->ties) {
            leaf->ties->move(slot, slot + 1, leaf->used - slot);
            leaf->put_ties(slot, held);
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
    LIMEN_INLINE bool remove_by(const ScoreSums& held, Allows& allows) {
        if (!root_) return false;
        Path path;
        Leaf* leaf = descend<K>(held.score, path);
        return remove_at<K>(path, leaf, held, allows);
    }

    template <class K, class Allows, class Seen>
    LIMEN_INLINE bool replace_by(const ScoreSums& old, const ScoreSums& held, Allows& allows,
                                 Seen& seen) {
        if (!root_) return false;
        Path out, in;
        Leaf *from, *to;
        descend_both<K>(old.score, held.score, out, in, from, to);
        const int gone = K::leaf_rank(from->score, old.score);
        int slot = K::leaf_rank(to->score, held.score);
        const bool keeps_shape = from->used > fewest(leaf_capacity_);
        if (from != to && keeps_shape && !from->ties && from->holds(gone, old.score) &&
            takes(to, slot, held) && !to->ties) {
            if (old.count != 1 || !allows(from->held(gone))) return false;
            seen(ScoreSums{held.score, 0, 0, 0});
            exchange<K>(out, in, from, to, gone, slot, old, held);
            return true;
        }
        if (!remove_at<K>(out, from, old, allows)) return false;
        if (keeps_shape) {
            slot = K::leaf_rank(to->score, held.score);
            if (to->used < leaf_capacity_ || to->holds(slot, held.score)) {
                add_at<K>(in, to, slot, held, seen);
                return true;
            }
        }
        add_by<K>(held, seen);
        return true;
    }

    // Nodes above both leaves learn of both changes at once, and the parts of the tree that do not
    // wait for each other are worked on side by side.
    template <class K>
    LIMEN_INLINE void exchange(Path& out, Path& in, Leaf* from, Leaf* to, int gone, int slot,
                               const ScoreSums& old, const ScoreSums& held) {
        const std::int64_t less = old.below - old.above, more = held.above - held.below;
        int fork = 0;
        while (out.child[fork] == in.child[fork]) ++fork;
        shift<K>(out, less, -1, fork + 1, out.depth);
        shift<K>(in, more, 1, fork + 1, in.depth);
        const std::int64_t left = K::leaf_close(from->score, from->prefix, gone, less);
        const std::int64_t right = K::leaf_open(to->score, to->prefix, slot, more);
        to->score[slot] = held.score;
        --from->used;
        ++to->used;
        const std::int64_t below[2] = {finished(out, left, fork + 1, out.depth),
                                       finished(in, right, fork + 1, in.depth)};
        Node* const node = out.node[fork];
        const int children[2] = {out.child[fork], in.child[fork]};
        std::int64_t best = K::node_add_two(node->before, node->best, children[0], less,
                                            children[1], more, node->used);
        for (int i = 0; i < 2; ++i) {
            const std::int64_t own = below[i] + node->before[children[i]];
            node->best[children[i]] = own;
            best = std::max(best, own);
        }
        node->sum += less + more;
        --node->count[children[0]];
        ++node->count[children[1]];
        shift<K>(out, less + more, 0, 0, fork);
        best_ = finished(out, best, 0, fork);
        kept_.lose(old.score);
        kept_.shift(old.score, less);
        kept_.shift(held.score, more);
        kept_.confirm(best_);
        reserved_ -= reserved_ > 0;
    }

    template <class K>
    LIMEN_INLINE void warm_by(double score) const {
        Path path;
        prefetch<1>(descend<K>(score, path));
    }

    template <class K, class Allows>
    LIMEN_INLINE bool remove_at(Path& path, Leaf* leaf, const ScoreSums& held, Allows& allows) {
        const int slot = K::leaf_rank(leaf->score, held.score);
        if (!leaf->holds(slot, held.score)) return false;
        const ScoreSums before = leaf->held(slot);
        if (before.count < held.count || !allows(before)) return false;
        const std::int64_t z = held.above - held.below;
        if (before.count == held.count) {
            if (distinct_ == 1) {
                let_go(leaf);
                kept_.forget();
                return true;
            }
        } else if (is_single(before) && !is_single(rest(before, held))) {
            make_multi(leaf);
        }
        shift<K>(path, -z, -std::int64_t{held.count});
        finish(path, take<K>(leaf, slot, held, before));
        kept_.change(held.score, -z, best_);
        if (leaf->used < fewest(leaf_capacity_)) shrink(path);
        return true;
    }

    // The nodes above a leaf learn at once of all that goes from it, but for what changes shapes.
    template <class K>
    LIMEN_INLINE void remove_all_by(const ScoreSums* held, const ScoreSums* last) {
        const auto always = [](const ScoreSums&) { return true; };
        while (held != last) {
            Path path;
            Leaf* const leaf = descend<K>(held->score, path);
            if (leaf->used <= fewest(leaf_capacity_)) {
                remove_at<K>(path, leaf, *held++, always);
                continue;
            }
            kept_.forget();
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

    static ScoreSums rest(const ScoreSums& held, const ScoreSums& less) {
        return {held.score, held.below - less.below, held.above - less.above,
                held.count - less.count};
    }

    // Take from what a leaf holds of a score; the best sum in the leaf. Its tie columns are as they
    // must be.
    template <class K>
    LIMEN_INLINE std::int64_t take(Leaf* leaf, int slot, const ScoreSums& held,
                                   const ScoreSums& before) {
        const std::int64_t z = held.above - held.below;
        if (before.count > held.count) {
            const ScoreSums after = rest(before, held);
            if (leaf->ties) leaf->put_ties(slot, after);
            if (!is_single(before) && is_single(after)) make_single(leaf);
            return K::leaf_add(leaf->prefix, slot, -z);
        }
        --distinct_;
        kept_.lose(held.score);
        const std::int64_t best = K::leaf_close(leaf->score, leaf->prefix, slot, -z);
        --leaf->used;
        if (leaf->ties) {
            leaf->ties->move(slot + 1, slot, leaf->used - slot);
            if (!is_single(before)) make_single(leaf);
        }
        return leaf->used ? best : no_cut;
    }

    template <class K>
    LIMEN_INLINE Leaf* descend(double score, Path& path) const {
        void* at = root_;
        path.depth = 0;
        for (int level = height_; level > 0; --level) at = step_down<K>(at, level, score, path);
        return static_cast<Leaf*>(at);
    }
    template <class K>
    LIMEN_INLINE void* step_down(void* at, int level, double score, Path& path) const {
        Node* node = static_cast<Node*>(at);
        const int child = K::node_rank(node->separator, score) - 1;
        path.node[path.depth] = node;
        path.child[path.depth++] = child;
        at = node->child[child];
        if (height_ > 2 && level == 1) prefetch<1>(static_cast<const Leaf*>(at));
        if (height_ > 3 && level == 2) prefetch<1>(static_cast<const Node*>(at));
        return at;
    }
    // The same for two scores at once, so that the one comes while the other is worked on.
    template <class K>
    LIMEN_INLINE void descend_both(double one, double other, Path& path, Path& other_path,
                                   Leaf*& leaf, Leaf*& other_leaf) const {
        void *at = root_, *also = root_;
        path.depth = other_path.depth = 0;
        for (int level = height_; level > 0; --level) {
            at = step_down<K>(at, level, one, path);
            also = step_down<K>(also, level, other, other_path);
        }
        leaf = static_cast<Leaf*>(at);
        other_leaf = static_cast<Leaf*>(also);
    }

    // Pass on to the nodes of the path that the leaf below them grows by z and by some samples.
    // They do not wait for each other nor for the leaf, so the processor works on all of them at
    // once; finish() then needs one comparison per node.
    template <class K>
    LIMEN_INLINE void shift(Path& path, std::int64_t z, std::int64_t samples) const {
        shift<K>(path, z, samples, 0, path.depth);
    }
    template <class K>
    LIMEN_INLINE void shift(Path& path, std::int64_t z, std::int64_t samples, int from,
                            int end) const {
        for (int i = from; i < end; ++i) {
            Node* node = path.node[i];
            node->sum += z;
            node->count_in(path.child[i], samples);
            path.others[i] = K::node_add(node->before, node->best, path.child[i], z, node->used);
        }
    }

    LIMEN_INLINE void finish(const Path& path, std::int64_t best) {
        best_ = finished(path, best, 0, path.depth);
    }
    // The same between two places of the path; the best sum of the node at the first.
    LIMEN_INLINE static std::int64_t finished(const Path& path, std::int64_t best, int from,
                                              int end) {
        for (int i = end - 1; i >= from; --i) {
            const int child = path.child[i];
            best += path.node[i]->before[child];
            path.node[i]->best[child] = best;
            best = std::max(best, path.others[i]);
        }
        return best;
    }

    Isa isa_;
    mutable KeptCut kept_;
};

}  // namespace limen
