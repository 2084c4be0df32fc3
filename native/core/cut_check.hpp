// SPDX-License-Identifier: Apache-2.0
//
// Whether a cut tree keeps what its scores say: all is computed again, from the leaves upwards, and
// std::logic_error names the first thing that is wrong, in release builds too. O(n).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/cut_shape.hpp"

namespace limen {

class CutCheck {
public:
    explicit CutCheck(const CutShape& shape) : shape_(shape) {}

    void run() {
        if (shape_.root_) {
            const CutSubtree root = part(shape_.root_, shape_.height_, -infinity, infinity, true);
            require_sound(root.best == shape_.best_, "the best cut of the root is wrong");
        }
        require_sound(multi_ == shape_.multi_, "the number of multi scores is wrong");
        require_sound(shape_.ties_.in_use() + shape_.ties_.spare() >=
                          std::min(shape_.leaves_.in_use(), shape_.multi_),
                      "leaves could need memory to share");
        require_sound(seen_ == shape_.distinct_, "the number of distinct scores is wrong");
        require_sound(!shape_.root_ || seen_ > 0, "an empty tree has a root");
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    // Sum and best of a part, with every score in [low, high).
    CutSubtree part(const void* at, int height, double low, double high, bool root) {
        return height == 0 ? part(static_cast<const CutLeaf*>(at), low, high, root)
                           : part(static_cast<const CutNode*>(at), height, low, high, root);
    }

    CutSubtree part(const CutLeaf* leaf, double low, double high, bool root) {
        CutSubtree found{nullptr, low, 0, lowest, 0};
        require_sound(leaf->used <= shape_.leaf_capacity(), "a leaf is too full");
        require_sound(root || leaf->used >= CutShape::fewest(shape_.leaf_capacity()),
                      "a leaf is too empty");
        require_sound(leaf->zeros[5] == 0, "a leaf does not start at 0");
        require_sound((leaf->multi > 0) == (leaf->ties != nullptr),
                      "tie columns are missing or left over");
        int not_single = 0;
        for (int i = 0; i < leaf_slots; ++i) {
            if (i >= leaf->used) {
                require_sound(leaf->score[i] == infinity, "a free slot is not +inf");
                require_sound(leaf->prefix[i] == found.sum, "a free slot has a sum of its own");
                continue;
            }
            const double score = leaf->score[i];
            require_sound(i == 0 || leaf->score[i - 1] < score, "scores do not ascend");
            require_sound(score >= low && (score < high || high == infinity), "a score is astray");
            require_sound(leaf->held(i).count > 0, "a score is held without samples");
            found.samples += leaf->held(i).count;
            not_single += !is_single(leaf->held(i));
            found.sum += leaf->z(i);
            require_sound(found.sum == leaf->prefix[i], "a running sum is wrong");
            found.best = std::max(found.best, found.sum);
        }
        require_sound(not_single == leaf->multi, "the number of multi scores of a leaf is wrong");
        seen_ += static_cast<std::size_t>(leaf->used);
        multi_ += static_cast<std::size_t>(leaf->multi);
        return found;
    }

    CutSubtree part(const CutNode* node, int height, double low, double high, bool root) {
        CutSubtree found{nullptr, low, 0, lowest, 0};
        require_sound(node->used <= shape_.node_capacity(), "a node is too full");
        require_sound(node->used >= (root ? 2 : CutShape::fewest(shape_.node_capacity())),
                      "a node is too empty");
        require_sound(node->separator[0] == -infinity, "the first separator is not -inf");
        for (int i = 0; i < node_slots; ++i) {
            if (i >= node->used) {
                require_sound(node->separator[i] != node->separator[i],
                              "a free separator is not nan");
                require_sound(node->best[i] == lowest, "a free slot has a best cut");
                require_sound(node->count[i] == 0, "a free slot has samples");
                continue;
            }
            const double from = i ? node->separator[i] : low;
            const double to = i + 1 < node->used ? node->separator[i + 1] : high;
            const CutSubtree child = part(node->child[i], height - 1, from, to, false);
            require_sound(node->before[i] == found.sum, "a child starts at a wrong sum");
            require_sound(node->best[i] == found.sum + child.best,
                          "the best cut of a child is wrong");
            require_sound(node->in_child(i, height) == child.samples &&
                              node->count[i] == static_cast<std::uint16_t>(child.samples),
                          "the samples of a child are miscounted");
            found.best = std::max(found.best, node->best[i]);
            found.sum += child.sum;
            found.samples += child.samples;
        }
        require_sound(node->samples == found.samples, "the samples of a node are miscounted");
        require_sound(node->sum == found.sum, "the sum of a node is wrong");
        return found;
    }

    const CutShape& shape_;
    std::size_t seen_ = 0, multi_ = 0;  // scores, and how many of them are not single
};

}  // namespace limen
