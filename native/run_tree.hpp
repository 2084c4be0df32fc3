// SPDX-License-Identifier: Apache-2.0
//
// Runs of neighbouring scores in order, with bounds of the running sum at and between them.
//
// A tree of three levels: leaves of runs, branches of leaves, and one list of branches, which is
// looked through from end to end. That is short for the number of runs such a tree is made for,
// at most 2^16.
//
// place, changed, insert, erase    O(log n) for the leaf, O(n / 256) for the list of branches
// load, scan                       O(n)

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cut.hpp"
#include "runs.hpp"

namespace limen {

template <int leaf_slots = 16, int branch_slots = 16>
class RunTree {
    static_assert(branch_slots <= 32);

    struct Leaf {
        int size = 0;
        Run runs[leaf_slots];
    };
    struct Branch {
        int size = 0;
        double firsts[branch_slots];
        RunBounds sums[branch_slots];
        std::unique_ptr<Leaf> leaves[branch_slots];
    };

public:
    // Where a run is: its branch, its leaf there, and its slot there.
    struct Place {
        std::size_t branch = 0;
        int leaf = 0, slot = -1;
        bool before_all() const { return slot < 0; }
    };

    RunTree() = default;
    RunTree(RunTree&&) = default;
    RunTree& operator=(RunTree&&) = default;

    std::size_t size() const { return size_; }
    std::size_t memory() const {
        std::size_t bytes = branches_.capacity() * sizeof(branches_[0]) +
                            tops_.capacity() * (sizeof(Top) + sizeof(double)) +
                            (spare_leaf_ ? sizeof(Leaf) : 0) + (spare_branch_ ? sizeof(Branch) : 0);
        for (const auto& branch : branches_)
            bytes += sizeof(Branch) + static_cast<std::size_t>(branch->size) * sizeof(Leaf);
        return bytes;
    }

    // The sums over all runs. Those of changed leaves are added up when they are asked for.
    const RunBounds& sums() const {
        settle();
        return sums_;
    }

    // The last run that starts at this score or below. Counted without branches, which would be
    // guesses.
    Place place(double score) const {
        Place found;
        if (firsts_.empty()) return found;
        for (std::size_t i = 1; i < firsts_.size(); ++i) found.branch += firsts_[i] <= score;
        const Branch& branch = *branches_[found.branch];
        for (int i = 1; i < branch.size; ++i) found.leaf += branch.firsts[i] <= score;
        const Leaf& leaf = *branch.leaves[found.leaf];
        for (int i = 0; i < leaf.size; ++i) found.slot += leaf.runs[i].first <= score;
        return found;
    }
    // The one after it; before_all() when there is none.
    Place next(Place place) const {
        if (branches_.empty()) return {};
        if (++place.slot < branches_[place.branch]->leaves[place.leaf]->size) return place;
        place.slot = 0;
        if (++place.leaf < branches_[place.branch]->size) return place;
        place.leaf = 0;
        return ++place.branch < branches_.size() ? place : Place{};
    }

    const Run& at(const Place& place) const { return leaf(place).runs[place.slot]; }
    Run& at(const Place& place) { return leaf(place).runs[place.slot]; }

    // The run at this place was changed.
    void changed(const Place& place) {
        Branch& branch = *branches_[place.branch];
        branch.firsts[place.leaf] = branch.leaves[place.leaf]->runs[0].first;
        firsts_[place.branch] = branch.firsts[0];
        tops_[place.branch].stale |= 1u << place.leaf;
        stale_ = true;
    }

    // Make sure that insert() right after this place finds memory.
    void reserve(const Place& place) {
        const bool empty = branches_.empty();
        if (!empty && leaf(place).size < leaf_slots) return;
        if (!spare_leaf_) spare_leaf_ = std::make_unique<Leaf>();
        if (!empty && branches_[place.branch]->size < branch_slots) return;
        if (!spare_branch_) spare_branch_ = std::make_unique<Branch>();
        grow(branches_);
        grow(tops_);
        grow(firsts_);
    }

    // Put a run right after this place, or before all. reserve() comes first.
    void insert(Place place, const Run& run) {
        if (branches_.empty()) {
            branches_.push_back(std::move(spare_branch_));
            tops_.push_back({});
            firsts_.push_back(0);
            branches_[0]->leaves[0] = std::move(spare_leaf_);
            branches_[0]->size = 1;
        }
        ++place.slot;
        Leaf* leaf = &this->leaf(place);
        if (leaf->size == leaf_slots) {
            split_leaf(place);
            leaf = &this->leaf(place);
        }
        std::copy_backward(leaf->runs + place.slot, leaf->runs + leaf->size,
                           leaf->runs + leaf->size + 1);
        leaf->runs[place.slot] = run;
        ++leaf->size;
        ++size_;
        changed(place);
    }

    void erase(const Place& place) {
        Branch& branch = *branches_[place.branch];
        Leaf& leaf = *branch.leaves[place.leaf];
        std::copy(leaf.runs + place.slot + 1, leaf.runs + leaf.size, leaf.runs + place.slot);
        --size_;
        if (--leaf.size) return changed(place);
        std::move(branch.leaves + place.leaf + 1, branch.leaves + branch.size,
                  branch.leaves + place.leaf);
        branch.leaves[--branch.size].reset();
        if (branch.size) return all_changed(place.branch);
        const auto at = static_cast<std::ptrdiff_t>(place.branch);
        branches_.erase(branches_.begin() + at);
        tops_.erase(tops_.begin() + at);
        firsts_.erase(firsts_.begin() + at);
        stale_ = true;
    }

    // The highest of the cuts at the ends of runs that reach sums().best.
    Gap best() const {
        settle();
        Gap gap;
        std::size_t at = 0;
        const auto last = [&](std::size_t count, std::int64_t best, auto&& sums_of) {
            std::int64_t low = 0, start = 0;
            at = count;
            for (std::size_t i = 0; i < count; ++i) {
                const RunBounds& sums = sums_of(i);
                if (low + sums.best == best) at = i, start = low;
                low += sums.low;
            }
            return best - start;
        };
        Place found;
        std::int64_t best = sums_.best;
        best = last(tops_.size(), best,
                    [&](std::size_t i) -> const RunBounds& { return tops_[i].sums; });
        found.branch = at;
        const Branch& branch = *branches_[at];
        best = last(static_cast<std::size_t>(branch.size), best,
                    [&](std::size_t i) -> const RunBounds& { return branch.sums[i]; });
        found.leaf = static_cast<int>(at);
        const Leaf& leaf = *branch.leaves[at];
        std::int64_t low = 0;
        for (int slot = 0; slot < leaf.size; ++slot)
            if ((low += leaf.runs[slot].low) == best) found.slot = slot;
        gap.lower = leaf.runs[found.slot].last;
        gap.has_lower = true;
        const Place after = next(found);
        if (!after.before_all()) gap.upper = at_(after).first, gap.has_upper = true;
        return gap;
    }
    double first() const { return firsts_[0]; }

    template <class Visit>
    void scan(Visit&& visit) const {
        for (const auto& branch : branches_)
            for (int i = 0; i < branch->size; ++i)
                for (int slot = 0; slot < branch->leaves[i]->size; ++slot)
                    visit(branch->leaves[i]->runs[slot]);
    }

    // A tree of these runs, with room for more in every leaf.
    static RunTree of(const std::vector<Run>& runs) {
        constexpr std::size_t fill = std::max(1, leaf_slots * 3 / 4);
        constexpr int leaves = std::max(1, branch_slots * 3 / 4);
        RunTree tree;
        for (std::size_t from = 0; from < runs.size(); from += fill) {
            if (tree.branches_.empty() || tree.branches_.back()->size == leaves) {
                tree.branches_.push_back(std::make_unique<Branch>());
                tree.tops_.push_back({});
                tree.firsts_.push_back(0);
            }
            Branch& branch = *tree.branches_.back();
            const std::size_t count = std::min(fill, runs.size() - from);
            branch.leaves[branch.size] = std::make_unique<Leaf>();
            Leaf& leaf = *branch.leaves[branch.size++];
            std::copy_n(runs.begin() + static_cast<std::ptrdiff_t>(from), count, leaf.runs);
            leaf.size = static_cast<int>(count);
        }
        tree.size_ = runs.size();
        for (std::size_t i = 0; i < tree.branches_.size(); ++i) tree.all_changed(i);
        return tree;
    }

    // Throw logic_error unless every sum is that of what lies below it.
    void check() const {
        settle();
        RunBounds all;
        std::size_t size = 0;
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const Branch& branch = *branches_[i];
            RunBounds of_branch;
            if (branch.size == 0) throw std::logic_error("a branch is empty");
            for (int j = 0; j < branch.size; ++j) {
                const Leaf& leaf = *branch.leaves[j];
                RunBounds of_leaf;
                if (leaf.size == 0) throw std::logic_error("a leaf is empty");
                for (int slot = 0; slot < leaf.size; ++slot) of_leaf.add(leaf.runs[slot]);
                size += static_cast<std::size_t>(leaf.size);
                if (!(of_leaf == branch.sums[j]) || branch.firsts[j] != leaf.runs[0].first)
                    throw std::logic_error("the sums of a leaf are wrong");
                of_branch.add(of_leaf);
            }
            if (!(of_branch == tops_[i].sums) || firsts_[i] != branch.firsts[0])
                throw std::logic_error("the sums of a branch are wrong");
            all.add(of_branch);
        }
        if (size != size_ || !(all == sums_)) throw std::logic_error("the sums of all are wrong");
    }

private:
    struct Top {
        std::uint32_t stale = 0;  // a bit for each leaf whose sums are to be added up
        RunBounds sums;
    };

    const Leaf& leaf(const Place& place) const {
        return *branches_[place.branch]->leaves[place.leaf];
    }
    Leaf& leaf(const Place& place) { return *branches_[place.branch]->leaves[place.leaf]; }
    const Run& at_(const Place& place) const { return leaf(place).runs[place.slot]; }

    template <class T>
    static void grow(std::vector<T>& list) {
        if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(1, 2 * list.size()));
    }

    // Leaves of this branch came, went or moved.
    void all_changed(std::size_t at) {
        Branch& branch = *branches_[at];
        for (int i = 0; i < branch.size; ++i) branch.firsts[i] = branch.leaves[i]->runs[0].first;
        firsts_[at] = branch.firsts[0];
        tops_[at].stale = ~0u >> (32 - branch.size);
        stale_ = true;
    }

    void settle() const {
        if (!stale_) return;
        sums_ = {};
        for (std::size_t i = 0; i < tops_.size(); ++i) {
            Top& top = tops_[i];
            if (top.stale) settle(*branches_[i], top);
            sums_.add(top.sums);
        }
        stale_ = false;
    }
    static void settle(Branch& branch, Top& top) {
        for (; top.stale; top.stale &= top.stale - 1) {
            const int at = std::countr_zero(top.stale);
            const Leaf& leaf = *branch.leaves[at];
            RunBounds sums;
            for (int slot = 0; slot < leaf.size; ++slot) sums.add(leaf.runs[slot]);
            branch.sums[at] = sums;
        }
        top.sums = {};
        for (int i = 0; i < branch.size; ++i) top.sums.add(branch.sums[i]);
    }

    // Make two of a full leaf, and of its branch where that is full; `place` moves along.
    void split_leaf(Place& place) {
        if (branches_[place.branch]->size == branch_slots) split_branch(place);
        Branch& branch = *branches_[place.branch];
        std::move_backward(branch.leaves + place.leaf + 1, branch.leaves + branch.size,
                           branch.leaves + branch.size + 1);
        ++branch.size;
        Leaf& left = *branch.leaves[place.leaf];
        Leaf& right = *(branch.leaves[place.leaf + 1] = std::move(spare_leaf_));
        constexpr int half = (leaf_slots + 1) / 2;
        right.size = leaf_slots - half;
        std::copy(left.runs + half, left.runs + leaf_slots, right.runs);
        left.size = half;
        all_changed(place.branch);
        if (place.slot > half) ++place.leaf, place.slot -= half;
    }
    void split_branch(Place& place) {
        Branch& left = *branches_[place.branch];
        constexpr int half = branch_slots / 2;
        Branch& right = *spare_branch_;
        std::move(left.leaves + half, left.leaves + branch_slots, right.leaves);
        right.size = branch_slots - half;
        left.size = half;
        const auto after = static_cast<std::ptrdiff_t>(place.branch) + 1;
        branches_.insert(branches_.begin() + after, std::move(spare_branch_));
        tops_.insert(tops_.begin() + after, Top{});
        firsts_.insert(firsts_.begin() + after, 0.0);
        all_changed(place.branch);
        all_changed(place.branch + 1);
        if (place.leaf >= half) ++place.branch, place.leaf -= half;
    }

    std::vector<std::unique_ptr<Branch>> branches_;
    mutable std::vector<Top> tops_;
    std::vector<double> firsts_;  // of the branches
    std::unique_ptr<Leaf> spare_leaf_;
    std::unique_ptr<Branch> spare_branch_;
    std::size_t size_ = 0;
    mutable RunBounds sums_;
    mutable bool stale_ = false;
};

}  // namespace limen
