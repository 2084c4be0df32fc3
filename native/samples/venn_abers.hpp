// SPDX-License-Identifier: Apache-2.0
//
// The Venn-Abers interval of a score: what the isotonic fit would say there with one more sample
// of this score, once of label 0 and once of label 1. Nothing is ever added to the tree.
//
// VennAbers::at   O(log^2 n)
// intervals       O(m log^2 n), or O(n + m log n) where many scores are asked for; then it takes
//                 some 80 bytes per distinct score while it works
//
// One more sample shifts all points from its score on by one vector. So the fit there is the
// slope of the bridge from the hull of the points below the score to the shifted hull of those at
// or above it. With the new sample, no coordinate reaches 2^63, and no product of two 2^126.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hull_bridge.hpp"
#include "core/hull_leaf.hpp"
#include "core/hull_tree.hpp"
#include "core/wide.hpp"
#include "samples/held_samples.hpp"
#include "samples/isotonic.hpp"

namespace limen {

// The fit after a sample of label 0, and after one of label 1.
struct ProbabilityInterval {
    double low = 0, high = 1;
};

// What the new sample weighs, in units of 2^-finer of those in the tree.
struct Trial {
    std::int64_t weight = 0;
    int finer = 0;
};

// As an update would measure it, but for a weight so fine that the sums held have no room for it.
inline Refusal measure_trial(const OnlineHull& held, double weight, Trial& trial) {
    int bits = held.bits_for(weight);
    while (bits > held.bits() && Wide{held.total()} << (bits - held.bits()) >= most_units) --bits;
    trial.finer = bits - held.bits();
    return held.measure(weight, 1, bits, trial.weight);
}

// One score after the other. The hulls on both sides of it are made of leaves and nodes of the
// tree, joined by nodes that live here.
class VennAbers {
public:
    // `weight` in units of the tree, above 0 and below 2^62.
    VennAbers(const HullTree& tree, std::int64_t weight) : root_(tree.root()), weight_(weight) {
        if (root_) joints_.reserve(static_cast<std::size_t>(root_.height()));
    }

    ProbabilityInterval at(double score) {
        if (!root_) return {};
        split(score + 0.0);
        return {slope({weight_, 0}), slope({weight_, weight_})};
    }

private:
    // The hulls of the points before the score and from it on. `start_` and `end_` are where the
    // one ends and the other begins, counted from the start of the part that has been climbed to.
    void split(double score) {
        const HullNode* path[72];
        int depth = 0;
        HullLink at = root_;
        while (!at.is_leaf()) {
            path[depth++] = at.node();
            at = at.node()->child[score >= at.node()->separator];
        }
        joints_.clear();
        split(at.leaf(), score);
        while (depth > 0) {
            const HullNode* node = path[--depth];
            if (score >= node->separator)
                join_before(node);
            else
                join_after(node);
        }
    }

    void split(const HullLeaf* leaf, double score) {
        const int from = leaf->rank(score), to = from + leaf->holds(from, score);
        start_ = leaf->point(from);
        end_ = leaf->point(to);
        // The point between two runs belongs to the lower one; here, both sides own theirs.
        fill(before_leaf_, before_ties_, leaf, 0, from, leaf->first);
        fill(after_leaf_, after_ties_, leaf, to, leaf->used, true);
        before_ = before_leaf_.vertices ? HullLink(&before_leaf_) : HullLink();
        after_ = HullLink(&after_leaf_);
    }

    // Scores and counts are not needed.
    static void fill(HullLeaf& part, HullTieColumns& ties, const HullLeaf* leaf, int from, int to,
                     bool first) {
        part.used = static_cast<std::uint8_t>(to - from);
        part.first = first;
        part.ties = &ties;
        for (int k = from; k <= to; ++k) ties.points[k - from] = leaf->point(k) - leaf->point(from);
        part.renew_hull();
    }

    // The left child lies before the score. The bridge stays if it ends before the score too.
    void join_before(const HullNode* node) {
        start_ += node->left;
        end_ += node->left;
        if (!before_) {
            before_ = node->child[0];
            return;
        }
        before_ =
            joint(node->child[0], node->left, before_, node->to.weight <= start_.weight, node, {});
    }

    // The right child lies after the score.
    void join_after(const HullNode* node) {
        after_ = joint(after_, node->left - end_, node->child[1], node->from.weight >= end_.weight,
                       node, end_);
    }

    // What a node would be with a part of a child instead, counted from another start.
    HullLink joint(HullLink left, const Point& left_sum, HullLink right, bool bridge_stays,
                   const HullNode* node, const Point& start) {
        HullNode& made = joints_.emplace_back();
        made.child[0] = left;
        made.child[1] = right;
        made.left = left_sum;
        if (bridge_stays) {
            made.from = node->from - start;
            made.to = node->to - start;
        } else {
            const Edge edge = bridge(left, left_sum, right, {});
            made.from = edge.from + left_sum;
            made.to = edge.to + left_sum;
        }
        return HullLink(&made);
    }

    struct Edge {
        Point from, to;
    };

    // Counted from the end of the left hull, as far from which the right one begins.
    static Edge bridge(HullLink left, const Point& left_sum, HullLink right, const Point& gap) {
        BridgeSide lower(left, -left_sum), upper(right, gap);
        find_bridge(lower, upper);
        return {lower.from, upper.from};
    }

    double slope(const Point& sample) const {
        const Edge edge = bridge(before_, start_, after_, end_ - start_ + sample);
        const Point run = edge.to - edge.from;
        return nearest_ratio(run.below, run.weight);
    }

    HullLink root_;
    std::int64_t weight_;
    HullLink before_, after_;
    Point start_, end_;
    HullLeaf before_leaf_, after_leaf_;
    HullTieColumns before_ties_, after_ties_;
    std::vector<HullNode> joints_;
};

// The runs whose slopes are the fit at each score after one more sample of label 1 there, for all
// cuts of ascending scores. O(n).
//
// From score to score these values do not fall. A sample of label 1 only raises the fit, so the
// bridge ends at or after the vertex, of the hull of all points, at which the block of the score
// ends: its upper end moves along that hull. Its lower end moves along the hull of the points
// before the score, which grows at its end as in any scan; where the vertex that it stood on goes,
// all before the new last one are less steep than the bridge, which starts there or later.
template <class Visit>
void raised_runs(const std::vector<Point>& points, std::int64_t weight, Visit&& visit) {
    const auto push = [&](std::vector<std::size_t>& hull, std::size_t k) {
        while (hull.size() >= 2) {
            const Point& last = points[hull.back()];
            if (cross(last - points[hull[hull.size() - 2]], points[k] - last) > 0) break;
            hull.pop_back();
        }
        hull.push_back(k);
    };
    std::vector<std::size_t> all, before;
    for (std::size_t k = 0; k < points.size(); ++k) push(all, k);
    const Point sample{weight, weight};
    std::size_t from = 0, to = 0;
    for (std::size_t k = 1; k < points.size(); ++k) {
        push(before, k - 1);
        from = std::min(from, before.size() - 1);
        while (all[to] < k) ++to;
        Point run;
        for (;;) {
            const Point start = points[before[from]], end = points[all[to]] + sample;
            run = end - start;
            if (to + 1 < all.size() && cross(run, points[all[to + 1]] - points[all[to]]) <= 0)
                ++to;
            else if (from + 1 < before.size() && cross(points[before[from + 1]] - start, run) > 0)
                ++from;
            else
                break;
        }
        visit(k - 1, run);
    }
}

// The intervals of all scores held, in columns.
class VennAbersColumns {
public:
    VennAbersColumns(const HullTree& tree, const Trial& trial) {
        const std::size_t n = tree.distinct();
        std::vector<Point> points(1);
        points.reserve(n + 1);
        scores_.reserve(n);
        tree.scan([&](const ScoreSums& held) {
            const Point sum = point_of(held);
            points.push_back(points.back() + Point{scaled(sum.weight, trial.finer),
                                                   scaled(sum.below, trial.finer)});
            scores_.push_back(held.score);
        });
        high_.resize(n);
        raised_runs(points, trial.weight, [&](std::size_t k, const Point& run) {
            high_[k] = nearest_ratio(run.below, run.weight);
        });
        // The same from the other end, with the labels exchanged.
        const Point total = points.back();
        std::reverse(points.begin(), points.end());
        for (Point& point : points) {
            point = total - point;
            point.below = point.weight - point.below;
        }
        low_.resize(n);
        raised_runs(points, trial.weight, [&](std::size_t k, const Point& run) {
            low_[n - 1 - k] = nearest_ratio(run.weight - run.below, run.weight);
        });
    }

    // Between two scores, a sample of label 1 joins the block of the next score, and one of
    // label 0 that of the last: no fit is above 1 or below 0.
    ProbabilityInterval at(double score) const {
        const auto next = std::lower_bound(scores_.begin(), scores_.end(), score);
        const auto i = static_cast<std::size_t>(next - scores_.begin());
        const std::size_t below = i + (next != scores_.end() && *next == score);
        return {below > 0 ? low_[below - 1] : 0, i < scores_.size() ? high_[i] : 1};
    }

private:
    std::vector<double> scores_, low_, high_;
};

// A trial that is finer than the tree is rare, and no reason for a second way to walk the tree.
inline ProbabilityInterval interval_at(const HullTree& tree, double score, const Trial& trial) {
    if (trial.finer == 0) return VennAbers(tree, trial.weight).at(score);
    return VennAbersColumns(tree, trial).at(score);
}

inline void intervals(const HullTree& tree, const double* scores, std::size_t n, const Trial& trial,
                      double* low, double* high) {
    const auto each = [&](auto&& answers) {
        for (std::size_t i = 0; i < n; ++i) {
            const ProbabilityInterval found = answers.at(scores[i]);
            low[i] = found.low;
            high[i] = found.high;
        }
    };
    if (trial.finer == 0 && n < tree.distinct() / 16)
        each(VennAbers(tree, trial.weight));
    else
        each(VennAbersColumns(tree, trial));
}

}  // namespace limen
