// SPDX-License-Identifier: Apache-2.0
//
// Points and edges of a convex hull, and a run of up to 92 neighbouring scores with their points
// and a hull of its own.
//
// add, open, close   O(slots), but only the part of the hull around the change is walked again
// rank               O(log slots)
//
// Most scores have a single sample with a label, and most samples weigh the same, their unit. The
// points of such single scores are whole numbers of units, at most as many as there are slots, so a
// byte each is enough. Where one score of a leaf is not single, tie columns keep all its points in
// full.
//
// Coordinates are sums of weights and stay below 2^62, so the product of two of them fits in 128
// bits. Nothing is rounded: with doubles, edges that are nearly parallel would be taken for one
// another and the fit would be wrong.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/cut.hpp"
#include "core/wide.hpp"

namespace limen {

// How much weight lies below a cut, and how much of it is lost there.
struct Point {
    std::int64_t weight = 0, below = 0;

    bool operator==(const Point&) const = default;
    Point operator+(const Point& other) const {
        return {weight + other.weight, below + other.below};
    }
    Point operator-(const Point& other) const {
        return {weight - other.weight, below - other.below};
    }
    Point operator-() const { return {-weight, -below}; }
    Point& operator+=(const Point& other) { return *this = *this + other; }
};

// Above 0 when b is steeper than a, 0 when they are parallel.
inline Wide cross(const Point& a, const Point& b) {
    return Wide{a.weight} * b.below - Wide{a.below} * b.weight;
}

inline Point point_of(const ScoreSums& held) { return {held.below + held.above, held.below}; }

// The edges of a child's hull before and after the point where the bridge touches it: no
// point of the child on that side lies below the line of the edge. The bridge touches there
// as long as its slope stays between them. Only directions count; where there is no edge,
// straight down and straight up stand for it.
struct HullBounds {
    Point low{0, -1}, high{0, 1};

    void narrow_low(const Point& edge) {
        if (cross(low, edge) > 0) low = edge;
    }
    void narrow_high(const Point& edge) {
        if (cross(edge, high) > 0) high = edge;
    }
    // Of several points on the line of the bridge it touches the first on the left, the
    // last on the right.
    bool allow(const Point& bridge, bool right) const {
        const Wide after_low = cross(low, bridge), before_high = cross(bridge, high);
        return right ? after_low >= 0 && before_high > 0 : after_low > 0 && before_high >= 0;
    }
};

// Point k of a leaf lies after its k lowest scores; point 0 is the start of the leaf and
// belongs to it only when it is the first of the tree.
inline constexpr int hull_leaf_slots = 92;

// What a leaf keeps besides where one of its scores is not single.
struct alignas(64) HullTieColumns {
    Point points[hull_leaf_slots + 1];
    std::uint32_t count[hull_leaf_slots];

    void reset() { points[0] = {}; }
};

struct alignas(64) HullLeaf {
    static constexpr int slots = hull_leaf_slots;

    std::uint8_t used;
    std::uint8_t vertices;
    std::uint8_t multi;  // how many scores are not single
    bool first;
    HullTieColumns* ties;          // null when none is multi
    std::int64_t unit;             // what single scores weigh, where there are no tie columns
    std::uint8_t hull[slots + 1];  // the points that are vertices of the leaf's hull
    std::uint8_t ones[slots + 1];  // `below` of each point in units, where there are no tie columns
    double score[slots];

    void reset() {
        ones[0] = 0;
        used = vertices = multi = 0;
        first = false;
        ties = nullptr;
    }
    Point point(int k) const { return ties ? ties->points[k] : Point{unit * k, unit * ones[k]}; }
    Point total() const { return point(used); }
    Point vertex(int i) const { return point(hull[i]); }
    void narrow(HullBounds& bounds, int i) const {
        if (i > 0) bounds.narrow_low(vertex(i) - vertex(i - 1));
        if (i + 1 < vertices) bounds.narrow_high(vertex(i + 1) - vertex(i));
    }
    bool holds(int slot, double wanted) const { return slot < used && score[slot] == wanted; }
    ScoreSums held(int slot) const {
        const Point sum = point(slot + 1) - point(slot);
        return {score[slot], sum.below, sum.weight - sum.below, count(slot)};
    }
    std::uint32_t count(int slot) const { return ties ? ties->count[slot] : 1; }
    // How many scores lie below the given one.
    int rank(double wanted) const {
        return count_where([=](double held) { return held < wanted; });
    }
    template <class Yes>
    int count_where(const Yes& yes) const {
        const double* at = score;
        for (int left = used; left > 0;) {
            const int half = (left + 1) / 2;
            at += yes(at[half - 1]) ? half : 0;
            left -= half;
        }
        return static_cast<int>(at - score);
    }
    std::int64_t count_below(int k) const {
        if (!ties) return k;
        std::int64_t sum = 0;
        for (int i = 0; i < k; ++i) sum += ties->count[i];
        return sum;
    }
    // Which vertex point k is; -1 when it is none.
    int vertex_at(int k) const {
        const void* found = std::memchr(hull, k, vertices);
        return found ? static_cast<int>(static_cast<const std::uint8_t*>(found) - hull) : -1;
    }
    // The last vertex that is reached when an edge is taken as long as `pays` says so; it
    // says so for all edges up to some slope.
    template <class Pays>
    int last_vertex_where(const Pays& pays) const {
        int low = 0, high = vertices - 1;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (pays(vertex(middle + 1) - vertex(middle)))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    // The next three where the leaf has tie columns if it needs them afterwards.
    void add(int slot, const Point& delta, std::int64_t samples) {
        for (int k = slot + 1; k <= used; ++k) ties->points[k] += delta;
        ties->count[slot] += static_cast<std::uint32_t>(samples);
        renew_hull(slot + 1, 0);
    }
    void open(int slot, const ScoreSums& held) {
        move(score, slot, slot + 1);
        score[slot] = held.score;
        if (ties) {
            const Point delta = point_of(held);
            move(ties->count, slot, slot + 1);
            ties->count[slot] = held.count;
            for (int k = used; k >= slot; --k) ties->points[k + 1] = ties->points[k] + delta;
        } else {
            std::memmove(ones + slot + 1, ones + slot, static_cast<std::size_t>(used - slot + 1));
            if (held.below)
                for (int k = slot + 1; k <= used + 1; ++k) ++ones[k];
        }
        ++used;
        renew_hull(slot + 1, 1);
    }
    void close(int slot, const Point& delta) {
        move(score, slot + 1, slot);
        if (ties) move(ties->count, slot + 1, slot);
        const int one = ties ? 0 : ones[slot + 1] - ones[slot];
        --used;
        if (ties)
            for (int k = slot + 1; k <= used; ++k) ties->points[k] = ties->points[k + 1] + delta;
        else
            for (int k = slot + 1; k <= used; ++k)
                ones[k] = static_cast<std::uint8_t>(ones[k + 1] - one);
        renew_hull(slot + 1, -1);
    }

    // Keep all points in full from now on, or only as the single ones that they are.
    void take_ties(HullTieColumns* taken) {
        for (int k = 0; k <= used; ++k) taken->points[k] = point(k);
        for (int i = 0; i < used; ++i) taken->count[i] = count(i);
        ties = taken;
    }
    HullTieColumns* leave_ties(std::int64_t single) {
        unit = single;
        for (int k = 1; k <= used; ++k)
            ones[k] = static_cast<std::uint8_t>(
                ones[k - 1] + (ties->points[k].below > ties->points[k - 1].below));
        return std::exchange(ties, nullptr);
    }

    // The hull of all points, one after the other.
    void renew_hull() {
        vertices = 0;
        for (int k = first ? 0 : 1; k <= used; ++k) push_vertex(k);
    }

private:
    // The values of the slots from one on move to another, next to it.
    template <class T>
    void move(T* values, int from, int to) {
        std::memmove(values + to, values + from,
                     static_cast<std::size_t>(used - from) * sizeof *values);
    }

    // Whether point b lies strictly below the line from a to c.
    bool below_line(int a, int b, int c) const {
        if (!ties) return (b - a) * (ones[c] - ones[b]) > (ones[b] - ones[a]) * (c - b);
        const Point middle = ties->points[b];
        return cross(middle - ties->points[a], ties->points[c] - middle) > 0;
    }

    // Points after the last vertex in ascending order: a vertex goes when it does not lie
    // strictly below the line from its predecessor to a later point.
    void push_vertex(int k) {
        while (vertices >= 2 && !below_line(hull[vertices - 2], hull[vertices - 1], k)) --vertices;
        hull[vertices++] = static_cast<std::uint8_t>(k);
    }

    // The hull after point k changed, was opened (moved 1) or closed (moved -1). The points
    // on either side of it kept their places among themselves, so of these only those below
    // the old edge across k can become vertices.
    void renew_hull(int k, int moved) {
        std::uint8_t old[slots + 1];
        const int old_vertices = vertices;
        std::memcpy(old, hull, sizeof old);
        int next = 0;
        while (next < old_vertices && old[next] < k) ++next;
        vertices = static_cast<std::uint8_t>(next);
        int candidate = next ? old[next - 1] + 1 : first ? 0 : 1;
        if (moved < 0 && next < old_vertices && old[next] == k) ++next;
        const int last = next < old_vertices ? old[next] + moved : used + 1;
        for (; candidate < last; ++candidate) push_vertex(candidate);
        const int joint = next;
        for (; next < old_vertices; ++next) {
            const int before = vertices;
            push_vertex(old[next] + moved);
            // From here on every vertex meets the edge that it met before.
            if (next > joint && vertices > before) break;
        }
        for (++next; next < old_vertices; ++next)
            hull[vertices++] = static_cast<std::uint8_t>(old[next] + moved);
    }
};

}  // namespace limen
