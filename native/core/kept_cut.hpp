// SPDX-License-Identifier: Apache-2.0
//
// The best cut of a cut tree, kept through the many changes that leave it where it is.
//
// find      O(log n)
// change    O(1)

#pragma once

#include <algorithm>
#include <cstdint>

#include "core/cut.hpp"
#include "core/cut_shape.hpp"

namespace limen {

class KeptCut {
public:
    bool known() const { return known_; }
    const Cut& cut() const { return cut_; }  // while it is known
    void forget() { known_ = false; }

    // Find the best cut, and how far it leads: right of the path, near rivals last.
    template <class K>
    void find(const CutShape& shape) {
        cut_ = {};
        known_ = true;
        rivals_used_ = 0;
        if (!shape.root()) return;
        if (shape.best_sum() < 0) {
            cut_.has_upper = true;
            cut_.upper = first_score(shape.root(), shape.height());
            meet({cut_.upper, -shape.best_sum()});
            return;
        }
        cut_.best = shape.best_sum();
        cut_.has_lower = true;
        const void* at = shape.root();
        std::int64_t wanted = cut_.best;
        for (int level = shape.height(); level > 0; --level) {
            const CutNode* node = static_cast<const CutNode*>(at);
            const int child = K::node_last(node->best, wanted);
            if (child + 1 < node->used) {
                cut_.has_upper = true;
                cut_.upper = first_score(node->child[child + 1], level - 1);
                meet({cut_.upper,
                      wanted - *std::max_element(node->best + child + 1, node->best + node->used)});
            }
            wanted -= node->before[child];
            at = node->child[child];
        }
        const CutLeaf* leaf = static_cast<const CutLeaf*>(at);
        const int slot = std::min(K::leaf_last(leaf->prefix, wanted), leaf->used - 1);
        cut_.lower = leaf->score[slot];
        if (slot + 1 < leaf->used) {
            cut_.has_upper = true;
            cut_.upper = leaf->score[slot + 1];
            meet({cut_.upper,
                  wanted - *std::max_element(leaf->prefix + slot + 1, leaf->prefix + leaf->used)});
        }
    }

    // Most changes leave the best cut where it was, which costs less to see than to find out:
    // a change of z at a score shifts all cuts above it alike, so only cuts above a score
    // whose z grows can overtake a cut below it, and only once they have made up its lead.
    // `best` is that of the tree after the change.
    LIMEN_INLINE void change(double score, std::int64_t z, std::int64_t best) {
        shift(score, z);
        confirm(best);
    }
    // The same for several changes: a shift for each, and one look at the tree after all of them.
    LIMEN_INLINE void shift(double score, std::int64_t z) {
        if (!known_) return;
        if (cut_.has_lower && score <= cut_.lower) {
            cut_.best += z;
        } else if (z >= 0) {
            known_ = still_leads(score, z);
        } else if (!cut_.has_upper || score < cut_.upper) {
            cut_.has_upper = true;
            cut_.upper = score;
        }
    }
    LIMEN_INLINE void confirm(std::int64_t best) {
        if (known_) known_ = cut_.has_lower ? best == cut_.best && best >= 0 : best < 0;
    }

    // A score goes: the cut is not next to it any more.
    LIMEN_INLINE void lose(double score) {
        if (score == cut_.lower || score == cut_.upper) known_ = false;
    }

    // The cut kept must be the one that would be found, and no rival may be closer than noted.
    void check(const CutShape& shape) const {
        if (!known_) return;
        KeptCut found;
        found.find<BaselineKernels>(shape);
        require_sound(cut_ == found.cut_, "the best cut kept is not the best");
        std::int64_t value = 0;
        shape.scan([&](const ScoreSums& held) {
            value += held.above - held.below;
            if (rivals_used_ == 0 || held.score < rivals_[rivals_used_ - 1].from) return;
            int at = 0;
            while (rivals_[at].from > held.score) ++at;
            require_sound(cut_.best - value >= rivals_[at].lead, "a rival is closer than noted");
        });
    }

private:
    // Cuts above the best one, by the range of their lower scores: from here up to the next.
    struct RunnersUp {
        double from;
        std::int64_t lead;  // of the best cut over the best of these, or less
    };
    static constexpr int most_rivals = 8;

    // RunnersUp come from far to near; when there is no room, the two nearest become one.
    void meet(const RunnersUp& rivals) {
        if (rivals_used_ < most_rivals) {
            rivals_[rivals_used_++] = rivals;
        } else {
            RunnersUp& nearest = rivals_[most_rivals - 1];
            nearest = {rivals.from, std::min(rivals.lead, nearest.lead)};
        }
    }

    // All cuts above the score gain z. False when that may be enough, or nothing is known.
    // A lead is also one over the cut just below its range: when the first score of a range
    // goes, either its z was not negative, or the range has gained what that score had lost.
    // So a new score at the start of a range brings no closer cut than noted.
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

    bool known_ = false;
    Cut cut_;  // these are valid while known_
    RunnersUp rivals_[most_rivals];
    int rivals_used_ = 0;  // 0 also when nothing is known of them
};

}  // namespace limen
