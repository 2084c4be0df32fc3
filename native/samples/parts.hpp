// SPDX-License-Identifier: Apache-2.0
//
// Trees as searches see them: runs of neighbouring scores, what lies below them, and their parts.
//
// A part knows the sums of both labels below its start and below its end, and owns the cuts after
// each of its scores, so no two parts share a cut; the cut below all scores belongs to none. The
// parts of a part follow one another, and the smallest are leaves. A tree is seen through a class
// with
//
// Sums, Part          what lies below a cut; a part
// whole, split        the part of all scores; the parts of one that is not a leaf, at most `most`
// is_leaf, scores     whether a part is a leaf; how many scores it has
// at, score           what lies below the cut after the k lowest scores of a leaf; one of them
// counts              the same parts, for those who ask for sums of weights alone
// least               what the cheapest cut of a part costs more than a cut, or less
//
// Touches nothing: no lock, no change.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cut_tree.hpp"
#include "core/hull_tree.hpp"
#include "core/weight_index.hpp"
#include "core/wide.hpp"
#include "samples/held_samples.hpp"

namespace limen {

// Whole costs in the ratio of those given.
struct WholeCosts {
    std::int64_t false_positive, false_negative;

    // What predicting all of it negative costs more than positive.
    template <class Sums>
    Wide of(const Sums& sums) const {
        return Wide{false_negative} * sums.ones - Wide{false_positive} * sums.zeros;
    }
    template <class Sums>
    Wide between(const Sums& from, const Sums& to) const {
        return Wide{false_negative} * (to.ones - from.ones) -
               Wide{false_positive} * (to.zeros - from.zeros);
    }
    // A cut of a part costs at least what either end allows: all zeros of the part come first, or
    // all ones last.
    template <class Part, class Sums>
    Wide least(const Part& part, const Sums& than) const {
        return std::max(
            between(than, part.from) - Wide{false_positive} * (part.to.zeros - part.from.zeros),
            between(than, part.to) - Wide{false_negative} * (part.to.ones - part.from.ones));
    }
};

// A cut tree of samples that weigh `one` unit each and cost the given costs.
class CutParts {
public:
    using Sums = Counts;
    static constexpr int most = node_slots;

    struct Part {
        const void* at;
        int height;
        std::int64_t z, count;  // below its start
        std::int64_t best;      // the best running sum, counted from the start of the tree
        Sums from, to;
    };

    CutParts(const CutTree& tree, const WholeCosts& costs, std::int64_t one)
        : tree_(tree), costs_(costs), one_(one),
          step_(Wide{one} * (Wide{costs.false_positive} + costs.false_negative)) {
        fits_ =
            step_ < most_units && Wide{costs.false_positive} * one * (samples() + 1) < most_units;
    }

    std::size_t distinct() const { return tree_.distinct(); }

    Part whole() const {
        std::int64_t sum = 0;
        if (tree_.root() && tree_.height() > 0)
            sum = static_cast<const CutNode*>(tree_.root())->sum;
        else if (tree_.root())
            sum = last_of(leaf(tree_.root()));
        return {tree_.root(), tree_.height(), 0, 0, tree_.best_sum(), {}, sums(sum, samples())};
    }
    // What lies below the cut that the tree keeps.
    Sums under(const Cut& cut) const {
        if (!cut.has_lower) return {};
        const void* at = tree_.root();
        std::int64_t count = 0;
        for (int height = tree_.height(); height > 0; --height) {
            const auto* node = static_cast<const CutNode*>(at);
            int child = 0;
            for (; child + 1 < node->used && node->separator[child + 1] <= cut.lower; ++child)
                count += node->in_child(child, height);
            at = node->child[child];
        }
        const CutLeaf* held = leaf(at);
        const auto scores = std::upper_bound(held->score, held->score + held->used, cut.lower);
        count += held->samples(static_cast<int>(scores - held->score));
        return sums(cut.best, count);
    }
    bool is_leaf(const Part& part) const { return part.height == 0; }
    int split(const Part& part, Part* out) const {
        const auto* node = static_cast<const CutNode*>(part.at);
        std::int64_t count = part.count;
        Sums from = part.from;
        for (int i = 0; i < node->used; ++i) {
            const bool last = i + 1 == node->used;
            out[i] = {node->child[i], part.height - 1,        part.z + node->before[i],
                      count,          part.z + node->best[i], from,
                      part.to};
            count += node->in_child(i, part.height);
            if (!last) from = out[i].to = sums(part.z + node->before[i + 1], count);
        }
        return node->used;
    }
    int scores(const Part& part) const { return leaf(part.at)->used; }
    Sums at(const Part& part, int k) const {
        if (k == 0) return part.from;
        const CutLeaf* held = leaf(part.at);
        return sums(part.z + held->prefix[k - 1], part.count + held->samples(k));
    }
    double score(const Part& part, int i) const { return leaf(part.at)->score[i]; }
    const CutParts& counts() const { return *this; }
    static void prefetch(const Part& part) {
        if (part.height == 0) limen::prefetch<1>(leaf(part.at));
    }
    Wide least(const Part& part, const Sums& than) const {
        return -costs_.of(than) - part.best / one_;
    }

private:
    static const CutLeaf* leaf(const void* at) { return static_cast<const CutLeaf*>(at); }
    static std::int64_t last_of(const CutLeaf* leaf) {
        return leaf->used ? leaf->prefix[leaf->used - 1] : 0;
    }
    std::int64_t samples() const {
        if (!tree_.root()) return 0;
        if (tree_.height() == 0) {
            const CutLeaf* root = leaf(tree_.root());
            return root->samples(root->used);
        }
        return static_cast<const CutNode*>(tree_.root())->samples;
    }
    // z = one * (false_positive * zeros - false_negative * ones)
    Sums sums(std::int64_t z, std::int64_t count) const {
        std::int64_t ones;
        if (fits_)
            ones = (costs_.false_positive * one_ * count - z) / static_cast<std::int64_t>(step_);
        else
            ones =
                static_cast<std::int64_t>((Wide{costs_.false_positive} * one_ * count - z) / step_);
        return {ones, count - ones};
    }

    const CutTree& tree_;
    WholeCosts costs_;
    std::int64_t one_;
    Wide step_;
    bool fits_;
};

// A hull tree of samples that weigh `one` unit each.
class HullParts {
public:
    using Sums = Counts;
    static constexpr int most = 2;

    struct Part {
        HullLink at;
        Point start;
        Sums from, to;
    };

    HullParts(const HullTree& tree, const WholeCosts& costs, std::int64_t one)
        : tree_(tree), costs_(costs), one_(one) {}

    std::size_t distinct() const { return tree_.distinct(); }

    Part whole() const {
        const RunSums all = tree_.totals();
        return {tree_.root(), {}, {}, {all.below / one_, all.above / one_}};
    }
    Sums under(const HullCut& cut) const {
        return {cut.under.below / one_, cut.under.above / one_};
    }
    bool is_leaf(const Part& part) const { return part.at.is_leaf(); }
    int split(const Part& part, Part* out) const {
        const HullNode* node = part.at.node();
        const Point middle = part.start + node->left;
        const Sums sums = sums_of(middle);
        out[0] = {node->child[0], part.start, part.from, sums};
        out[1] = {node->child[1], middle, sums, part.to};
        return 2;
    }
    int scores(const Part& part) const { return part.at.leaf()->used; }
    Sums at(const Part& part, int k) const {
        return sums_of(part.start + part.at.leaf()->point(k));
    }
    double score(const Part& part, int i) const { return part.at.leaf()->score[i]; }
    const HullParts& counts() const { return *this; }
    static void prefetch(const Part& part) {
#if defined(__GNUC__) || defined(__clang__)
        if (!part.at.is_leaf()) return __builtin_prefetch(part.at.node());  // its first line does
        const char* line = reinterpret_cast<const char*>(part.at.leaf());
        for (std::size_t i = 0; i < sizeof(HullLeaf); i += 64) __builtin_prefetch(line + i);
#else
        (void)part;
#endif
    }
    Wide least(const Part& part, const Sums& than) const { return costs_.least(part, than); }

private:
    Sums sums_of(const Point& point) const {
        if (one_ == 1) return {point.below, point.weight - point.below};
        return {point.below / one_, (point.weight - point.below) / one_};
    }

    const HullTree& tree_;
    WholeCosts costs_;
    std::int64_t one_;
};

// Samples whose weights differ.
template <class S>
class WeightedParts {
public:
    using Sums = S;
    static constexpr int most = WeightIndex::slots;

    struct Part {
        const WeightIndex::Block* at;
        int height;
        Sums from, to;
    };

    WeightedParts(const WeightIndex& index, const WholeCosts& costs)
        : index_(index), costs_(costs) {}

    std::size_t distinct() const { return index_.distinct(); }
    Part whole() const {
        const WeightIndex::Block* root = index_.root_;
        return {root, index_.height_, {}, root->template upto<Sums>(root->used)};
    }
    Sums under(const Gap& cut) const { return cut.has_lower ? index_.under(cut.lower) : Sums{}; }
    bool is_leaf(const Part& part) const { return part.height == 0; }
    int split(const Part& part, Part* out) const {
        Sums from = part.from;
        for (int i = 0; i < part.at->used; ++i) {
            const Sums to = at(part, i + 1);
            out[i] = {WeightIndex::node(part.at).child[i], part.height - 1, from, to};
            from = to;
        }
        return part.at->used;
    }
    int scores(const Part& part) const { return part.at->used; }
    Sums at(const Part& part, int k) const { return part.from + part.at->template upto<Sums>(k); }
    double score(const Part& part, int i) const { return part.at->score[i]; }
    WeightedParts<Counts> counts() const { return {index_, costs_}; }
    static void prefetch(const Part& part) {
        WeightIndex::fetch(part.at, sizeof(int));
        WeightIndex::fetch(part.at->ones, 2 * sizeof(part.at->ones));
    }
    Wide least(const Part& part, const Sums& than) const { return costs_.least(part, than); }

private:
    const WeightIndex& index_;
    WholeCosts costs_;
};

template <class Tree, class Best, class Look>
auto seen_weighted(const HeldSamples<Tree>& held, const WholeCosts& costs, const Best& best,
                   Look& look) {
    const WeightedParts<WeightSums> parts(held.weights(), costs);
    return look(parts, parts.under(best));
}

// Show a model of labelled samples to `look`, with what lies below its best cut, as the quickest of
// these.
template <class Look>
auto seen(const OnlineCut& held, const WholeCosts& costs, Look&& look) {
    if (!held.ones_only()) return seen_weighted(held, costs, held.best(), look);
    const std::int64_t one = held.ones().above / costs.false_positive;
    const CutParts parts(held.tree(), costs, one);
    return look(parts, parts.under(held.best()));
}

// The model knows no costs: its weights are losses at costs of 1.
template <class Look>
auto seen(const OnlineHull& held, const WholeCosts& costs, Look&& look) {
    const HullCut best = held.tree().best(costs.false_positive, costs.false_negative);
    if (!held.ones_only()) return seen_weighted(held, costs, best, look);
    const HullParts parts(held.tree(), costs, held.ones().above);
    return look(parts, parts.under(best));
}

}  // namespace limen
