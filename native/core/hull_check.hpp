// SPDX-License-Identifier: Apache-2.0
//
// Whether a hull tree keeps what its scores say: all is computed again, from the leaves upwards,
// and std::logic_error names the first thing that is wrong, in release builds too. O(n log n).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/hull_bridge.hpp"
#include "core/hull_leaf.hpp"
#include "core/hull_shape.hpp"

namespace limen {

class HullCheck {
public:
    explicit HullCheck(const HullShape& shape) : shape_(shape) {}

    void run() {
        if (shape_.root_) {
            const Part whole = part(shape_.root_, -infinity, infinity, true, true);
            require(whole.total == shape_.total_ && whole.count == shape_.count_,
                    "the totals are wrong");
        } else {
            require(shape_.total_ == Point{} && shape_.count_ == 0, "an empty tree has totals");
        }
        require(seen_ == shape_.distinct_, "the number of distinct scores is wrong");
        require(multi_ == shape_.multi_, "the number of multi scores is wrong");
        require(shape_.ties_.in_use() + shape_.ties_.spare() >=
                    std::min(shape_.leaves_.in_use(), shape_.multi_),
                "leaves could need memory to share");
        require(!shape_.root_ || seen_ > 0, "an empty tree has a root");
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    static void require(bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken hull tree: ") + otherwise);
    }

    // A vertex counted from the start of a part, and the score below it.
    struct Vertex {
        Point point;
        double score;
    };

    struct Part {
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
    Part part(HullLink at, double low, double high, bool root, bool first) {
        if (at.is_leaf()) return part(at.leaf(), low, high, root, first);
        const HullNode* node = at.node();
        Part found = part(node->child[0], low, node->separator, false, first);
        const Part right = part(node->child[1], node->separator, high, false, false);
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

    static void check_bounds(const HullBounds& bounds, const std::vector<Vertex>& hull,
                             const Point& touch) {
        for (const Vertex& vertex : hull) {
            const Point& bound = vertex.point.weight < touch.weight ? bounds.low : bounds.high;
            require(cross(bound, vertex.point - touch) >= 0 || vertex.point == touch,
                    "a point lies below a bound");
        }
    }

    Part part(const HullLeaf* leaf, double low, double high, bool root, bool first) {
        require(leaf->used <= shape_.leaf_capacity_, "a leaf is too full");
        require(root || leaf->used >= shape_.fewest(), "a leaf is too empty");
        require(leaf->first == first, "a leaf is wrong about being the first");
        require(leaf->point(0) == Point{}, "a leaf does not start at 0");
        require((leaf->multi > 0) == (leaf->ties != nullptr),
                "tie columns are missing or left over");
        require(leaf->ties || leaf->unit == shape_.unit_, "a leaf has another unit");
        int not_single = 0;
        Part found;
        if (first) found.see({{}, no_score});
        for (int i = 0; i < leaf->used; ++i) {
            const ScoreSums held = leaf->held(i);
            require(i == 0 || leaf->score[i - 1] < held.score, "scores do not ascend");
            require(held.score >= low && (held.score < high || high == infinity),
                    "a score is astray");
            require(held.count > 0, "a score is held without samples");
            require(held.below >= 0 && held.above >= 0 && held.below + held.above > 0,
                    "a score is held without weight");
            not_single += !shape_.is_single(held);
            found.count += held.count;
            found.see({leaf->point(i + 1), held.score});
        }
        require(not_single == leaf->multi, "the number of multi scores of a leaf is wrong");
        multi_ += leaf->multi;
        require(leaf->vertices == found.hull.size(), "the hull of a leaf is wrong");
        for (std::size_t i = 0; i < found.hull.size(); ++i)
            require(leaf->point(leaf->hull[i]) == found.hull[i].point,
                    "the hull of a leaf is wrong");
        found.total = leaf->total();
        found.first = leaf->used ? leaf->score[0] : 0;
        seen_ += static_cast<std::size_t>(leaf->used);
        return found;
    }

    const HullShape& shape_;
    std::size_t seen_ = 0, multi_ = 0;  // scores, and how many of them are not single
};

}  // namespace limen
