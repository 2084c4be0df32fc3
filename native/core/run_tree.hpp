// SPDX-License-Identifier: Apache-2.0
//
// Runs of neighbouring scores in order, with bounds of the running sum at and between them.
//
// Leaves of runs, branches of leaves, and a list of branches, whose sums are kept in blocks. That
// is short for the number of runs such a tree is made for, at most 2^16.
//
// place, put, insert, erase    O(log n) for the leaf, and O(n / 4096) for the list of blocks;
//                              O(n / 256) when there is a branch more or less
// load, scan, transform        O(n)
//
// After reserve() nothing fails: leaves and branches that are given up are kept for the next.
//
// One file although long: one class, every method of which needs the layout of leaves and branches.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/isa.hpp"
#include "core/runs.hpp"

namespace limen {

// How many of these scores are no higher, two at a time; nan is not.
LIMEN_INLINE int at_most(const double* scores, int size, double score) {
    using Pair = double __attribute__((vector_size(16)));
    using Counts = std::int64_t __attribute__((vector_size(16)));
    const Pair both{score, score};
    Counts counts{0, 0};
    int i = 0;
    for (; i + 2 <= size; i += 2) {
        Pair pair;
        std::memcpy(&pair, scores + i, sizeof pair);
        counts -= static_cast<Counts>(pair <= both);
    }
    if (i < size) counts[0] += scores[i] <= score;
    return static_cast<int>(counts[0] + counts[1]);
}

template <int leaf_slots = 16, int branch_slots = 16>
class RunTree {
    static_assert(branch_slots <= 32);
    static constexpr double nowhere = std::numeric_limits<double>::quiet_NaN();

    // The first scores of what lies below, in order, and `nowhere` behind them: so that all can be
    // counted at once, without branches, which would be guesses.
    template <int slots>
    struct Firsts {
        double scores[slots];
        Firsts() { std::fill_n(scores, slots, nowhere); }
        int at_most(double score) const { return limen::at_most(scores, slots, score); }
    };
    struct Rest {
        double last;
        std::int64_t up, low, highest, lowest;
    };
    struct Leaf {
        int size = 0;
        Firsts<leaf_slots> firsts;
        Rest rests[leaf_slots];

        Run run(int slot) const {
            const Rest& rest = rests[slot];
            return {firsts.scores[slot], rest.last, rest.up, rest.low, rest.highest, rest.lowest};
        }
        void put(int slot, const Run& run) {
            firsts.scores[slot] = run.first;
            rests[slot] = {run.last, run.up, run.low, run.highest, run.lowest};
        }
        void resize(int to) {
            for (; size > to; --size) firsts.scores[size - 1] = nowhere;
            size = to;
        }
    };
    struct Branch {
        int size = 0;
        Firsts<branch_slots> firsts;
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
        return leaves_ * sizeof(Leaf) +
               (branches_.size() + spare_branches_.size()) * sizeof(Branch) +
               (spare_leaves_.capacity() + spare_branches_.capacity() + branches_.capacity()) *
                   sizeof(void*) +
               tops_.capacity() * sizeof(Top) + firsts_.capacity() * sizeof(double) +
               blocks_.capacity() * sizeof(Block);
    }

    // The sums over all runs. Those of changed leaves are added up when they are asked for.
    const RunBounds& sums() const {
        settle();
        return sums_;
    }

    // The last run that starts at this score or below.
    Place place(double score) const {
        Place found;
        if (firsts_.empty()) return found;
        std::size_t from = 0, count = firsts_.size();
        if (count > 2 * block) {  // the last block that starts there
            for (std::size_t i = block; i < count; i += block) from += firsts_[i] <= score;
            from *= block;
            count = std::min(count - from, block);
        }
        const int before = limen::at_most(firsts_.data() + from, static_cast<int>(count), score);
        found.branch = from + static_cast<std::size_t>(std::max(1, before) - 1);
        const Branch& branch = *branches_[found.branch];
        found.leaf = std::max(1, branch.firsts.at_most(score)) - 1;
        found.slot = branch.leaves[found.leaf]->firsts.at_most(score) - 1;
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

    Run at(const Place& place) const { return leaf(place).run(place.slot); }
    double last_at(const Place& place) const { return leaf(place).rests[place.slot].last; }

    void put(const Place& place, const Run& run) {
        leaf(place).put(place.slot, run);
        changed(place);
    }

    // Whether insert() right after this place finds memory.
    bool has_room(const Place& place) const {
        if (branches_.empty()) return !spare_leaves_.empty() && !spare_branches_.empty();
        return leaf(place).size < leaf_slots ||
               (!spare_leaves_.empty() &&
                (branches_[place.branch]->size < branch_slots || !spare_branches_.empty()));
    }
    // Make sure that it does.
    void reserve(const Place& place) {
        const bool empty = branches_.empty();
        if (!empty && leaf(place).size < leaf_slots) return;
        reserve_leaves(leaves_in_use() + 1);
        if (empty || branches_[place.branch]->size == branch_slots)
            reserve_branches(branches_.size() + 1);
    }
    // The same for so many calls of insert(), wherever they are, as long as there are never more
    // than `most` runs. Where has_room() is false after more than a few of them, load() of what is
    // held makes room.
    static constexpr std::size_t few = 16;
    void reserve(std::size_t inserts, std::size_t most) {
        if (size_ > 0 && size_ + inserts <= leaf_slots) return;
        const std::size_t in_use = leaves_in_use();
        const std::size_t leaves =
            inserts <= few ? in_use + inserts
                           : std::min(in_use + inserts, std::max(in_use, leaves_for(most)) + 1);
        reserve_leaves(leaves);
        if (in_use > 0 && leaves <= branch_slots) return;
        const std::size_t branches = branches_.size();
        reserve_branches(inserts <= few ? branches + inserts
                                        : std::min(branches + inserts,
                                                   std::max(branches, branches_for(leaves)) + 1));
    }
    // The same for load() of so many runs.
    void reserve_runs(std::size_t runs) {
        reserve_leaves(leaves_for(runs));
        reserve_branches(branches_for(leaves_for(runs)));
    }

    // Put a run right after this place, or before all. reserve() comes first.
    void insert(Place place, const Run& run) {
        if (branches_.empty()) {
            add_branch(0);
            add_leaf(*branches_[0]);
        }
        ++place.slot;
        if (leaf(place).size == leaf_slots) split_leaf(place);
        Leaf& leaf = this->leaf(place);
        const auto shift = [&](auto* slots) {
            std::copy_backward(slots + place.slot, slots + leaf.size, slots + leaf.size + 1);
        };
        shift(leaf.firsts.scores);
        shift(leaf.rests);
        ++leaf.size;
        ++size_;
        put(place, run);
    }

    void erase(const Place& place) {
        Branch& branch = *branches_[place.branch];
        Leaf& leaf = *branch.leaves[place.leaf];
        const auto close = [&](auto* slots) {
            std::copy(slots + place.slot + 1, slots + leaf.size, slots + place.slot);
        };
        close(leaf.firsts.scores);
        close(leaf.rests);
        leaf.resize(leaf.size - 1);
        --size_;
        if (leaf.size) return changed(place);
        spare_leaves_.push_back(std::move(branch.leaves[place.leaf]));
        std::move(branch.leaves + place.leaf + 1, branch.leaves + branch.size,
                  branch.leaves + place.leaf);
        --branch.size;
        if (branch.size) return all_changed(place.branch);
        const auto at = static_cast<std::ptrdiff_t>(place.branch);
        spare_branches_.push_back(std::move(branches_[place.branch]));
        branches_.erase(branches_.begin() + at);
        tops_.erase(tops_.begin() + at);
        firsts_.erase(firsts_.begin() + at);
        regroup(place.branch);
    }

    // The highest of the cuts at the ends of runs that reach sums().best.
    Gap best() const {
        settle();
        std::int64_t best = sums_.best;  // seen from the start of what is looked at
        // The last that reaches it, of those from `from` on.
        const auto last = [&](std::size_t from, std::size_t to, auto&& sums_of) {
            std::int64_t low = 0, start = 0;
            std::size_t at = from;
            for (std::size_t i = from; i < to; ++i) {
                const RunBounds& sums = sums_of(i);
                if (low + sums.best == best) at = i, start = low;
                low += sums.low;
            }
            best -= start;
            return at;
        };
        Place found;
        const std::size_t in = last(
            0, blocks_.size(), [&](std::size_t i) -> const RunBounds& { return blocks_[i].sums; });
        found.branch = last(block * in, std::min(tops_.size(), block * in + block),
                            [&](std::size_t i) -> const RunBounds& { return tops_[i].sums; });
        const Branch& branch = *branches_[found.branch];
        found.leaf = static_cast<int>(
            last(0, static_cast<std::size_t>(branch.size),
                 [&](std::size_t i) -> const RunBounds& { return branch.sums[i]; }));
        const Leaf& leaf = *branch.leaves[found.leaf];
        std::int64_t low = 0;
        for (int slot = 0; slot < leaf.size; ++slot)
            if ((low += leaf.rests[slot].low) == best) found.slot = slot;
        Gap gap;
        gap.lower = last_at(found);
        gap.has_lower = true;
        const Place after = next(found);
        if (!after.before_all())
            gap.upper = this->leaf(after).firsts.scores[after.slot], gap.has_upper = true;
        return gap;
    }
    double first() const { return firsts_[0]; }

    template <class Visit>
    void scan(Visit&& visit) const {
        for (const auto& branch : branches_)
            for (int i = 0; i < branch->size; ++i)
                for (int slot = 0; slot < branch->leaves[i]->size; ++slot)
                    visit(branch->leaves[i]->run(slot));
    }

    // Make something else of every run, from the first to the last; their scores stay.
    template <class Make>
    void transform(Make&& make) {
        for (std::size_t at = 0; at < branches_.size(); ++at) {
            Branch& branch = *branches_[at];
            for (int i = 0; i < branch.size; ++i) {
                Leaf& leaf = *branch.leaves[i];
                for (int slot = 0; slot < leaf.size; ++slot) leaf.put(slot, make(leaf.run(slot)));
            }
            all_changed(at);
        }
    }

    // Give up all runs, and keep the memory.
    void clear() {
        for (auto& branch : branches_) {
            for (int i = 0; i < branch->size; ++i) {
                branch->leaves[i]->resize(0);
                spare_leaves_.push_back(std::move(branch->leaves[i]));
            }
            branch->size = 0;
            branch->firsts = {};
            spare_branches_.push_back(std::move(branch));
        }
        branches_.clear();
        tops_.clear();
        firsts_.clear();
        blocks_.clear();
        size_ = 0;
        stale_ = true;
    }

    // Hold these runs instead, with room for more in every leaf. They find memory after
    // reserve_runs(), and where more runs than these were held.
    void load(const std::vector<Run>& runs) {
        clear();
        const std::size_t wanted = leaves_for(runs.size());
        const std::size_t most = spare_branches_.size();  // branches
        const std::size_t leaves = std::min({wanted, spare_leaves_.size(), most * branch_slots});
        const std::size_t in_a_branch =
            most ? std::max(branch_fill, (leaves + most - 1) / most) : 0;
        size_ = runs.size();
        auto from = runs.begin();
        for (std::size_t i = 0; i < leaves; ++i) {
            if (branches_.empty() ||
                static_cast<std::size_t>(branches_.back()->size) == in_a_branch)
                add_branch(branches_.size());
            Leaf& leaf = add_leaf(*branches_.back());
            const auto left = static_cast<std::size_t>(runs.end() - from);
            const std::size_t count = (left + leaves - i - 1) / (leaves - i);
            leaf.size = static_cast<int>(count);
            for (int slot = 0; slot < leaf.size; ++slot) leaf.put(slot, *from++);
        }
        for (std::size_t i = 0; i < branches_.size(); ++i) all_changed(i);
    }
    // Give back memory that will not be needed soon.
    void trim() {
        const std::size_t spare = leaves_in_use() / 8;
        for (; spare_leaves_.size() > spare; --leaves_) spare_leaves_.pop_back();
    }
    static RunTree of(const std::vector<Run>& runs) {
        RunTree tree;
        tree.reserve_runs(runs.size());
        tree.load(runs);
        return tree;
    }

    // Throw logic_error unless every sum is that of what lies below it.
    void check() const {
        settle();
        RunBounds all;
        std::size_t size = 0, leaves = spare_leaves_.size();
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const Branch& branch = *branches_[i];
            RunBounds of_branch;
            if (branch.size == 0) throw std::logic_error("a branch is empty");
            for (int j = 0; j < branch.size; ++j) {
                const Leaf& leaf = *branch.leaves[j];
                RunBounds of_leaf;
                if (leaf.size == 0) throw std::logic_error("a leaf is empty");
                for (int slot = 0; slot < leaf.size; ++slot) of_leaf.add(leaf.run(slot));
                for (int slot = leaf.size; slot < leaf_slots; ++slot)
                    if (leaf.firsts.scores[slot] == leaf.firsts.scores[slot])
                        throw std::logic_error("a leaf has scores behind its last");
                size += static_cast<std::size_t>(leaf.size);
                if (!(of_leaf == branch.sums[j]) ||
                    branch.firsts.scores[j] != leaf.firsts.scores[0])
                    throw std::logic_error("the sums of a leaf are wrong");
                of_branch.add(of_leaf);
            }
            leaves += static_cast<std::size_t>(branch.size);
            for (int j = branch.size; j < branch_slots; ++j)
                if (branch.firsts.scores[j] == branch.firsts.scores[j])
                    throw std::logic_error("a branch has scores behind its last");
            if (!(of_branch == tops_[i].sums) || firsts_[i] != branch.firsts.scores[0])
                throw std::logic_error("the sums of a branch are wrong");
            all.add(of_branch);
        }
        if (size != size_ || !(all == sums_)) throw std::logic_error("the sums of all are wrong");
        if (leaves != leaves_) throw std::logic_error("the leaves are counted wrong");
    }

private:
    // So that leaves are full when runs are joined the next time, and few are split until then.
    static constexpr std::size_t leaf_fill = std::max(1, leaf_slots * 5 / 8);
    static constexpr std::size_t branch_fill = std::max(1, branch_slots * 3 / 4);
    static constexpr std::size_t block = 16;  // so many branches share a sum

    struct Top {
        std::uint32_t stale = 0;  // a bit for each leaf whose sums are to be added up
        RunBounds sums;
    };
    struct Block {
        bool stale = true;  // something in it is
        RunBounds sums;
    };

    const Leaf& leaf(const Place& place) const {
        return *branches_[place.branch]->leaves[place.leaf];
    }
    Leaf& leaf(const Place& place) { return *branches_[place.branch]->leaves[place.leaf]; }

    // ---- memory ----

    static std::size_t leaves_for(std::size_t runs) { return (runs + leaf_fill - 1) / leaf_fill; }
    static std::size_t branches_for(std::size_t leaves) {
        return (leaves + branch_fill - 1) / branch_fill;
    }
    std::size_t leaves_in_use() const { return leaves_ - spare_leaves_.size(); }

    template <class T>
    static void grow(std::vector<T>& list, std::size_t to) {
        if (to > list.capacity()) list.reserve(std::max(to, list.size() + list.size() / 2));
    }
    // So many in all; and room to give each of them back.
    void reserve_leaves(std::size_t leaves) {
        if (leaves <= leaves_) return;
        grow(spare_leaves_, leaves);
        for (; leaves_ < leaves; ++leaves_) spare_leaves_.push_back(std::make_unique<Leaf>());
    }
    void reserve_branches(std::size_t branches) {
        const std::size_t made = branches_.size() + spare_branches_.size();
        if (branches <= made && branches <= branches_.capacity()) return;
        grow(branches_, branches);
        grow(tops_, branches);
        grow(firsts_, branches);
        grow(blocks_, branches / block + 1);
        grow(spare_branches_, branches);
        for (std::size_t i = made; i < branches; ++i)
            spare_branches_.push_back(std::make_unique<Branch>());
    }
    void add_branch(std::size_t at) {
        const auto to = static_cast<std::ptrdiff_t>(at);
        branches_.insert(branches_.begin() + to, std::move(spare_branches_.back()));
        spare_branches_.pop_back();
        tops_.insert(tops_.begin() + to, Top{});
        firsts_.insert(firsts_.begin() + to, nowhere);
        regroup(at);
    }
    Leaf& add_leaf(Branch& branch) {
        branch.leaves[branch.size] = std::move(spare_leaves_.back());
        spare_leaves_.pop_back();
        return *branch.leaves[branch.size++];
    }
    // ---- sums ----

    // The run at this place was changed.
    void changed(const Place& place) {
        Branch& branch = *branches_[place.branch];
        if (place.slot == 0) {  // else writing them delays the next place(), which reads them
            branch.firsts.scores[place.leaf] = branch.leaves[place.leaf]->firsts.scores[0];
            firsts_[place.branch] = branch.firsts.scores[0];
        }
        tops_[place.branch].stale |= 1u << place.leaf;
        blocks_[place.branch / block].stale = stale_ = true;
    }
    // Leaves of this branch came, went or moved.
    void all_changed(std::size_t at) {
        Branch& branch = *branches_[at];
        for (int i = 0; i < branch_slots; ++i)
            branch.firsts.scores[i] =
                i < branch.size ? branch.leaves[i]->firsts.scores[0] : nowhere;
        firsts_[at] = branch.firsts.scores[0];
        tops_[at].stale = ~0u >> (32 - branch.size);
        blocks_[at / block].stale = stale_ = true;
    }
    // Branches from this one on are in other blocks now.
    void regroup(std::size_t from) {
        blocks_.resize((branches_.size() + block - 1) / block);
        for (std::size_t i = from / block; i < blocks_.size(); ++i) blocks_[i].stale = true;
        stale_ = true;
    }

    void settle() const {
        if (!stale_) return;
        sums_ = {};
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            if (blocks_[i].stale) settle_block(i);
            sums_.add(blocks_[i].sums);
        }
        stale_ = false;
    }
    void settle_block(std::size_t of) const {
        RunBounds sums;
        const std::size_t end = std::min(tops_.size(), block * of + block);
        for (std::size_t i = block * of; i < end; ++i) {
            if (tops_[i].stale) settle(*branches_[i], tops_[i]);
            sums.add(tops_[i].sums);
        }
        blocks_[of] = {false, sums};
    }
    static void settle(Branch& branch, Top& top) {
        for (; top.stale; top.stale &= top.stale - 1) {
            const int at = std::countr_zero(top.stale);
            const Leaf& leaf = *branch.leaves[at];
            RunBounds sums;
            for (int slot = 0; slot < leaf.size; ++slot) sums.add(leaf.run(slot));
            branch.sums[at] = sums;
        }
        RunBounds sums;
        for (int i = 0; i < branch.size; ++i) sums.add(branch.sums[i]);
        top.sums = sums;
    }

    // ---- growth ----

    // Make two of a full leaf, and of its branch where that is full; `place` moves along.
    void split_leaf(Place& place) {
        if (branches_[place.branch]->size == branch_slots) split_branch(place);
        Branch& branch = *branches_[place.branch];
        add_leaf(branch);
        std::rotate(branch.leaves + place.leaf + 1, branch.leaves + branch.size - 1,
                    branch.leaves + branch.size);
        Leaf& left = *branch.leaves[place.leaf];
        Leaf& right = *branch.leaves[place.leaf + 1];
        constexpr int half = (leaf_slots + 1) / 2;
        right.size = leaf_slots - half;
        std::copy_n(left.firsts.scores + half, right.size, right.firsts.scores);
        std::copy_n(left.rests + half, right.size, right.rests);
        left.resize(half);
        all_changed(place.branch);
        if (place.slot > half) ++place.leaf, place.slot -= half;
    }
    void split_branch(Place& place) {
        add_branch(place.branch + 1);
        Branch& left = *branches_[place.branch];
        Branch& right = *branches_[place.branch + 1];
        constexpr int half = branch_slots / 2;
        std::move(left.leaves + half, left.leaves + branch_slots, right.leaves);
        right.size = branch_slots - half;
        left.size = half;
        all_changed(place.branch);
        all_changed(place.branch + 1);
        if (place.leaf >= half) ++place.branch, place.leaf -= half;
    }

    std::vector<std::unique_ptr<Branch>> branches_;
    mutable std::vector<Top> tops_;
    std::vector<double> firsts_;  // of the branches
    mutable std::vector<Block> blocks_;
    std::vector<std::unique_ptr<Leaf>> spare_leaves_;
    std::vector<std::unique_ptr<Branch>> spare_branches_;
    std::size_t leaves_ = 0;  // in use and spare
    std::size_t size_ = 0;
    mutable RunBounds sums_;
    mutable bool stale_ = false;
};

}  // namespace limen
