// SPDX-License-Identifier: Apache-2.0
//
// The inner nodes of a hull tree and their bridges: the edge of a node's hull from the hull of the
// left child to that of the right one.
//
// find_bridge    O(log n): descends two hulls at once
// build_bridge   O(log n): the same for the children of a node
// bridge_holds   O(1) usually, else O(log n): descends the child that changed

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/hull_leaf.hpp"
#include "core/isa.hpp"
#include "core/wide.hpp"

namespace limen {

// Stands for the score below a point where there is none.
inline constexpr double no_score = std::numeric_limits<double>::quiet_NaN();

struct HullNode;

// A leaf or a node, distinguished by the lowest bit of its address.
class HullLink {
public:
    HullLink() = default;
    explicit HullLink(const HullLeaf* leaf) : bits_(reinterpret_cast<std::uintptr_t>(leaf) | 1) {}
    explicit HullLink(const HullNode* node) : bits_(reinterpret_cast<std::uintptr_t>(node)) {}
    explicit operator bool() const { return bits_ != 0; }
    bool is_leaf() const { return bits_ & 1; }
    HullLeaf* leaf() const { return reinterpret_cast<HullLeaf*>(bits_ - 1); }
    HullNode* node() const { return reinterpret_cast<HullNode*>(bits_); }
    int height() const;

private:
    std::uintptr_t bits_ = 0;
};

struct alignas(64) HullNode {
    HullLink child[2];
    double separator;             // the first score of the right child
    double from_score, to_score;  // the last scores below the ends of the bridge
    std::int64_t left_count;
    Point left;      // the sums over the left child
    Point from, to;  // the bridge, counted from the node's start
    std::int32_t height;
    bool stale;            // the bridge must be built
    HullBounds bounds[2];  // where the bridge touches the children

    void reset() { stale = true; }
    void measure() { height = 1 + std::max(child[0].height(), child[1].height()); }
    int leaning() const { return child[1].height() - child[0].height(); }
    const Point& touch(bool right) const { return right ? to : from; }
};

inline int HullLink::height() const { return is_leaf() ? 0 : node()->height; }

// What happens to a score. One that comes takes the place of its predecessor's point, and
// shifts that and all before it as seen from above.
struct HullChange {
    double score;
    Point delta;
    std::int64_t count;
    bool closes;  // the score goes
};

// The part of a child's hull that may still touch the bridge, seen by one edge in its
// middle, or by its only point once it is settled.
struct BridgeSide {
    HullLink at;
    Point start;
    int low = 0, middle = 0, high = 0;  // vertices, in a leaf
    Point from, to;
    bool settled = false;
    HullBounds bounds;

    BridgeSide(HullLink link, const Point& begin) : at(link), start(begin) { enter(); }

    Point edge() const { return to - from; }
    void enter() {
        if (at.is_leaf()) high = at.leaf()->vertices - 1;
        look();
    }
    void look() {
        if (!at.is_leaf()) {
            from = start + at.node()->from;
            to = start + at.node()->to;
            return;
        }
        const HullLeaf* leaf = at.leaf();
        middle = (low + high) / 2;
        settled = low == high;
        from = start + leaf->vertex(middle);
        if (settled)
            leaf->narrow(bounds, middle);
        else
            to = start + leaf->vertex(middle + 1);
    }
    void go_left() {
        if (at.is_leaf()) {
            high = middle;
            return look();
        }
        bounds.narrow_high(edge());
        at = at.node()->child[0];
        enter();
    }
    void go_right() {
        if (at.is_leaf()) {
            low = middle + 1;
            return look();
        }
        bounds.narrow_low(edge());
        start += at.node()->left;
        at = at.node()->child[1];
        enter();
    }
    double score() const {
        const int k = at.leaf()->hull[low];
        return k > 0 ? at.leaf()->score[k - 1] : no_score;
    }
};

// Descend two neighbouring hulls at once to the points where the bridge touches them: on the
// left the first of several on its line, on the right the last, so that the bridge is as
// long as it can be. Points are counted from the last one of the left hull, so the left
// hull lies at or before 0 and the right hull after it.
//
// An edge of the left hull whose line has a point of the right hull on or below it is at
// least as steep as the bridge, which then touches before it; the mirror image holds for
// the right. If neither is so, the lines of both edges meet between them, and if they meet
// after 0, then nothing of the left hull lies on or below the right edge's line, so the
// bridge is less steep than that edge; else it is steeper than the left edge.
LIMEN_INLINE void find_bridge(BridgeSide& left, BridgeSide& right) {
    while (!left.settled || !right.settled) {
        const Point left_edge = left.edge(), right_edge = right.edge();
        if (left.settled) {
            cross(right_edge, left.from - right.from) <= 0 ? right.go_right() : right.go_left();
            continue;
        }
        if (right.settled) {
            cross(left_edge, right.from - left.from) <= 0 ? left.go_left() : left.go_right();
            continue;
        }
        const Point gap = right.from - left.to;
        const Wide turn = cross(left_edge, right_edge);
        const Wide over_left = cross(left_edge, gap), over_right = cross(right_edge, gap);
        // Of each edge, the end that lies lower for the other one.
        const Wide nearer = std::min<Wide>(turn, 0);
        const bool left_known = over_left + nearer <= 0, right_known = over_right >= nearer;
        if (left_known || right_known) {
            if (left_known) left.go_left();
            if (right_known) right.go_right();
        } else if (product_greater(static_cast<WideUnsigned>(-over_right),
                                   static_cast<std::uint64_t>(left_edge.weight),
                                   static_cast<WideUnsigned>(turn),
                                   static_cast<std::uint64_t>(-left.to.weight))) {
            right.go_left();
        } else {
            left.go_right();
        }
    }
}

inline void build_bridge(HullNode* node) {
    BridgeSide left(node->child[0], -node->left), right(node->child[1], {});
    find_bridge(left, right);
    node->from = left.from + node->left;
    node->to = right.from + node->left;
    node->from_score = left.score();
    node->to_score = right.score();
    node->bounds[0] = left.bounds;
    node->bounds[1] = right.bounds;
    node->stale = false;
}

struct BridgeTouch {
    Point point;
    HullBounds bounds;
};

// Where a line in the direction of a bridge touches a hull from below; of several points the
// first, or the last when the hull is that of a right child.
template <bool right>
BridgeTouch touch(HullLink at, const Point& bridge) {
    const auto before = [&](const Point& edge) {
        const Wide turn = cross(edge, bridge);
        return right ? turn >= 0 : turn > 0;
    };
    BridgeTouch found;
    while (!at.is_leaf()) {
        const HullNode* node = at.node();
        const Point edge = node->to - node->from;
        const bool further = before(edge);
        if (further) {
            found.point += node->left;
            found.bounds.narrow_low(edge);
        } else {
            found.bounds.narrow_high(edge);
        }
        at = node->child[further];
    }
    const HullLeaf* leaf = at.leaf();
    const int i = leaf->last_vertex_where(before);
    found.point += leaf->vertex(i);
    leaf->narrow(found.bounds, i);
    return found;
}

// Points on or above the line of a bound, `distance` or more from where the bridge touches,
// are shifted towards that line. A bound for them afterwards runs through the corner where
// the nearest could now be; false when there is none.
inline bool bend(Point& bound, std::int64_t distance, const HullChange& change, bool before) {
    const std::int64_t weight = distance + change.delta.weight;
    if (bound.weight == 0 || distance < 0 || weight <= 0) return false;
    const WideUnsigned rise = static_cast<WideUnsigned>(Wide{distance} * bound.below);
    const auto run = static_cast<std::uint64_t>(bound.weight);
    const bool small = rise >> 64 == 0;
    const WideUnsigned whole = small ? static_cast<std::uint64_t>(rise) / run : rise / run;
    // Round away from the bridge on both sides: a bound may be too weak, not too strong.
    const bool more = before && whole * run != rise;
    bound = {weight, static_cast<std::int64_t>(whole) + more + change.delta.below};
    return true;
}

// Does the bridge still touch both hulls in the same scores? Only one child has changed: on
// one side of the touching point, its points beyond the changed score were shifted, all by
// the same step. If that is away from the bounding line, none of them can have come below
// it; if it is towards it, by little or far away, a weaker bound will do. Otherwise
// `still_touches` looks along the path of the change, all of which is in a near cache, whether
// the point is still a vertex of the child's hull, and narrows the bounds by the edges there. Only
// where the bridge itself has turned may that not be enough; then look into the child from
// above. Usually the other child is in no near cache and need not be touched. `point` is that
// of the changed score, or of its predecessor when it is gone.
//
// A score that has just come needs no look of its own: it has a predecessor in the same
// child, because separators are first scores and the first leaf owns the start, and seen
// from beyond it takes the place that its predecessor had.
template <class StillTouches>
bool bridge_holds(HullNode* node, bool right, const HullChange& change, const Point& point,
                  const StillTouches& still_touches) {
    const bool over_from = change.score <= node->from_score;  // not if that is no score
    const bool over_to = change.score <= node->to_score;
    if (change.closes && (change.score == node->from_score || change.score == node->to_score))
        return false;
    const Point bridge = node->to - node->from;
    const bool turned = over_to && !over_from;
    if (turned && !node->bounds[!right].allow(bridge, !right)) return false;

    const Point beyond = point - node->touch(right);
    const bool before = right ? over_to : over_from;
    HullBounds bounds = node->bounds[right];
    Point& bound = before ? bounds.low : bounds.high;
    const Wide away = cross(bound, change.delta);
    const bool towards = before ? away > 0 : away < 0;
    // As it was before the shift, of the nearest point that was shifted.
    const std::int64_t distance = (before ? -beyond.weight : beyond.weight) -
                                  (before == change.closes ? change.delta.weight : 0);
    if ((!towards || bend(bound, distance, change, before)) &&
        (!(towards || turned) || bounds.allow(bridge, right))) {
        if (towards) node->bounds[right] = bounds;
        return true;
    }
    // Low parts are near, and a look from above leaves the strongest bounds.
    constexpr int low = 3;
    if (towards && node->height > low) {
        bounds = node->bounds[right];
        if (!still_touches(before, bounds)) return false;
        if (bounds.allow(bridge, right)) {
            node->bounds[right] = bounds;
            return true;
        }
        if (!turned) return false;
    }
    BridgeTouch found =
        right ? touch<true>(node->child[1], bridge) : touch<false>(node->child[0], bridge);
    if (right) found.point += node->left;
    if (found.point != node->touch(right)) return false;
    node->bounds[right] = found.bounds;
    return true;
}

}  // namespace limen
