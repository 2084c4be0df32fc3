// SPDX-License-Identifier: Apache-2.0
//
// The hull of a tree, copied: what depends on the hull alone is answered while the tree changes.
//
// take             O(log n) per vertex at most, O(1) where vertices are dense
// best, around     O(log v) for v vertices, 48 bytes each

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hull_tree.hpp"
#include "core/wide.hpp"

namespace limen {

class HullCopy {
public:
    // False, and nothing known, where there are more vertices than `most`.
    bool take(const HullTree& tree, std::size_t most) {
        cuts_.clear();
        const bool all = tree.vertices_while([&](const HullCut& cut) {
            if (cuts_.size() == most) return false;
            cuts_.push_back(cut);
            return true;
        });
        if (!all) forget();
        return all;
    }
    void forget() { cuts_ = {}; }
    // The hull of a tree without scores is a vertex too.
    bool known() const { return !cuts_.empty(); }

    // As the tree answers; only where a hull is known.
    RunSums totals() const { return cuts_.back().under; }

    HullCut best(std::int64_t false_positive, std::int64_t false_negative) const {
        // The first vertex from which the next edge does not pay.
        std::size_t low = 0, high = cuts_.size() - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            const RunSums &from = cuts_[middle].under, &to = cuts_[middle + 1].under;
            const bool pays = Wide{false_positive} * (to.above - from.above) >=
                              Wide{false_negative} * (to.below - from.below);
            pays ? low = middle + 1 : high = middle;
        }
        return cuts_[low];
    }

    BlocksAround around(double score) const {
        BlocksAround found;
        // The first vertex that is not below the score: the block of the score ends there.
        const auto end = std::partition_point(
            cuts_.begin() + 1, cuts_.end(), [=](const HullCut& cut) { return cut.lower < score; });
        const auto i = static_cast<std::size_t>(end - cuts_.begin());
        found.has_upper = i < cuts_.size();
        if (found.has_upper) found.upper = block_between(cuts_[i - 1], cuts_[i]);
        if (found.has_upper && found.upper.first <= score) {
            found.lower = found.upper;
            found.has_lower = true;
        } else if (i > 1) {
            found.lower = block_between(cuts_[i - 2], cuts_[i - 1]);
            found.has_lower = true;
        }
        return found;
    }

    template <class Visit>
    void blocks(Visit&& visit) const {
        for (std::size_t i = 1; i < cuts_.size(); ++i) visit(block_between(cuts_[i - 1], cuts_[i]));
    }

    template <class Visit>
    void vertices(Visit&& visit) const {
        for (const HullCut& cut : cuts_) visit(cut);
    }

private:
    std::vector<HullCut> cuts_;
};

}  // namespace limen
