// SPDX-License-Identifier: Apache-2.0
//
// The sums of squared losses, which a tree does not hold: how sure a threshold is depends on them.
//
// A score with one sample has its own square, and where every sample weighs 1, counts are enough.
// Only a score with several samples of which some weigh other than 1 needs its squares kept, and
// only such scores cost anything: O(1) and about 80 bytes each.
//
// Once somebody has asked for weights(), the sums of weights and squares below every cut are kept
// too, as long as they are asked for now and then. A change only notes its score: the next read
// brings the sums up to date, so that updates pay next to nothing for them.
//
// Only reserve() and weights() fail. Where there is no memory for the squares of a score and none
// was reserved, its samples are taken to weigh the same from then on.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/weight_index.hpp"
#include "core/wide.hpp"

namespace limen {

// Sums of squared losses of samples, on either side of the cut.
struct Squares {
    Wide below = 0, above = 0;

    bool operator==(const Squares&) const = default;
    Squares& operator+=(const Squares& other) {
        below += other.below;
        above += other.above;
        return *this;
    }
    Squares& operator-=(const Squares& other) {
        below -= other.below;
        above -= other.above;
        return *this;
    }
};

inline Squares square_of(std::int64_t below, std::int64_t above) {
    return {Wide{below} * below, Wide{above} * above};
}

// The losses of a sample that weighs 1; 0 where there is none such, or losses are not weights.
struct Ones {
    std::int64_t below = 0, above = 0;

    bool is(std::int64_t low, std::int64_t high) const {
        return (low == below && high == 0) || (high == above && low == 0);
    }
    // Whether samples of these sums could all weigh 1; then they do, unless stated otherwise.
    bool may_be(const ScoreSums& held) const {
        return below > 0 && above > 0 && held.below % below == 0 && held.above % above == 0 &&
               held.below / below + held.above / above == held.count;
    }
    Squares squares(const ScoreSums& held) const {
        return {Wide{held.below} * below, Wide{held.above} * above};
    }
};

class SquaresOfTies {
public:
    const Squares& all() const { return all_; }
    std::size_t size() const { return ties_.size(); }
    std::size_t memory() const {  // about
        return 80 * (ties_.size() + spare_.size()) + index_.memory();
    }
    // Make sure that the squares of so many more scores can be kept.
    void reserve(std::size_t scores) {
        while (spare_.size() < scores) spare_.try_emplace(static_cast<double>(spare_.size()));
        const std::size_t all = ties_.size() + spare_.size();
        if (all >= ties_.bucket_count()) ties_.reserve(2 * all);
    }
    // Whether all that is held weighs 1; `ones_only` where others may have come and gone.
    bool even() const { return !uneven_; }
    bool ones_only(std::int64_t below, std::int64_t above, std::uint64_t samples,
                   const Ones& ones) const {
        return even() || (ones.below > 0 && ones.above > 0 && below % ones.below == 0 &&
                          above % ones.above == 0 &&
                          static_cast<std::uint64_t>(below / ones.below) +
                                  static_cast<std::uint64_t>(above / ones.above) ==
                              samples &&
                          all_ == Squares{Wide{below} * ones.below, Wide{above} * ones.above});
    }
    // Whether the sums of a score that a sample is added to must be known.
    bool asks_about(std::int64_t below, std::int64_t above, const Ones& ones) const {
        return uneven_ || !ones.is(below, above);
    }

    // What is kept of a score, if anything.
    const Squares* kept(double score) const {
        if (ties_.empty()) return nullptr;
        const auto at = ties_.find(score);
        return at == ties_.end() ? nullptr : &at->second;
    }

    // The sums of squares over the samples of a score.
    Squares of(const ScoreSums& held, const Ones& ones) const {
        if (held.count <= 1) return square_of(held.below, held.above);
        if (const Squares* own = kept(held.score)) return *own;
        if (ones.may_be(held)) return ones.squares(held);
        // Not known: as if all weighed the same.
        const Wide low = Wide{held.below} * ones.above, high = Wide{held.above} * ones.below;
        const double share =
            low + high > 0 ? static_cast<double>(low) / static_cast<double>(low + high) : 0.5;
        const auto alike = [&](std::int64_t sum, double samples) {
            const double value = static_cast<double>(sum);
            return sum ? static_cast<Wide>(value * value / samples + 0.5) : Wide{0};
        };
        const double count = held.count;
        return {alike(held.below, share * count), alike(held.above, (1 - share) * count)};
    }

    // What lies below every cut of the tree. Losses are weights times these costs. O(log n) for
    // each score that changed since it was last asked for; O(n) at first, and after n/8 changes.
    template <class Tree>
    const WeightIndex& weights(std::int64_t cost_below, std::int64_t cost_above, const Tree& tree,
                               const Ones& ones) const {
        const auto own = [&](const ScoreSums& held) {
            const Squares squares = of(held, ones);
            const Wide below = cost_below, above = cost_above;
            return WeightSums{held.below / cost_below,
                              held.above / cost_above,
                              {squares.above / (above * above), squares.below / (below * below)}};
        };
        if (index_.made && index_.made->is_worn()) index_.forget();
        if (!index_.made) {
            auto made = std::make_unique<WeightIndex>(tree.leaf_capacity());
            made->load(tree.distinct(), [&](auto&& take) {
                tree.scan([&](const ScoreSums& held) { take(held.score, own(held)); });
            });
            index_.made = std::move(made);
        }
        try {
            auto& changed = index_.changed;
            std::sort(changed.begin(), changed.end());
            changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
            for (std::size_t i = 0, warm = 0; i < changed.size(); ++i) {
                for (; warm < std::min(i + 8, changed.size()); ++warm) {
                    tree.warm(changed[warm]);
                    index_.made->warm(changed[warm]);
                }
                const ScoreSums held = tree.find(changed[i]);
                index_.made->set(changed[i], held.count ? own(held) : WeightSums{});
            }
        } catch (...) {  // it is made again when it is next needed
            index_.forget();
            throw;
        }
        index_.changed.clear();
        return *index_.made;
    }
    void check_weights() const {
        if (index_.made) index_.made->check();
    }

    // Samples of this sum that all weigh 1, where only such are held.
    void count(const Squares& more) { all_ += more; }
    void uncount(const Squares& less) { all_ -= less; }

    // A score that held `before` has these sums, and squares, from now on.
    // No samples have more than the square of their sum: what faded was rounded.
    void become(const ScoreSums& before, const ScoreSums& after, Squares squares,
                const Ones& ones) {
        const Squares most = square_of(after.below, after.above);
        squares.below = std::clamp(squares.below, Wide{0}, most.below);
        squares.above = std::clamp(squares.above, Wide{0}, most.above);
        all_ -= of(before, ones);
        const Squares now = set(after, squares, ones);
        all_ += now;
        uneven_ |= !(ones.may_be(after) && ones.squares(after) == squares);
        index_.change(after.score);
    }

    // Samples are added to a score, or taken from it. Mostly it is the only one.
    void add(const ScoreSums& before, const ScoreSums& more, const Squares& own, const Ones& ones) {
        if (before.count == 0 && more.count == 1) {
            const Squares only = square_of(more.below, more.above);
            all_ += only;
            uneven_ |= !ones.is(more.below, more.above);
            index_.change(before.score);
            return;
        }
        Squares squares = of(before, ones);
        squares += own;
        become(before,
               {before.score, before.below + more.below, before.above + more.above,
                before.count + more.count},
               squares, ones);
    }
    void remove(const ScoreSums& before, const ScoreSums& less, const Squares& own,
                const Ones& ones) {
        if (before.count == 1 && less.count == 1 && before.below == less.below &&
            before.above == less.above) {
            all_ -= square_of(before.below, before.above);
            index_.change(before.score);
            return;
        }
        if (even() && less.count == 1 && ones.is(less.below, less.above)) {
            all_ -= own;
            return;
        }
        Squares squares = of(before, ones);
        squares -= own;
        become(before,
               {before.score, before.below - less.below, before.above - less.above,
                before.count - less.count},
               squares, ones);
    }

    // Squares that faded are no longer of whole units, and each is rounded down on its own.
    void scale(int bits) {
        index_.forget();
        for (const auto& [score, squares] : ties_) all_ -= squares;
        all_ = scaled(all_, 2 * bits);
        for (auto& [score, squares] : ties_) all_ += squares = scaled(squares, 2 * bits);
    }
    // What was reserved stays.
    void clear() {
        index_.forget();
        all_ = {};
        uneven_ = false;
        ties_.clear();
    }

private:
    static Squares scaled(const Squares& squares, int bits) {
        return {limen::scaled(squares.below, bits), limen::scaled(squares.above, bits)};
    }

    Squares set(const ScoreSums& held, const Squares& squares, const Ones& ones) noexcept {
        if (held.count <= 1 || (ones.may_be(held) && ones.squares(held) == squares)) {
            if (!ties_.empty()) ties_.erase(held.score);
            return held.count == 0 ? Squares{} : of(held, ones);
        }
        if (const auto at = ties_.find(held.score); at != ties_.end()) return at->second = squares;
        try {
            reserve(1);
            auto node = spare_.extract(static_cast<double>(spare_.size() - 1));
            node.key() = held.score;
            node.mapped() = squares;
            ties_.insert(std::move(node));
        } catch (const std::bad_alloc&) {
            return of(held, ones);
        }
        return squares;
    }

    // The sums below every cut, and the scores that have changed since. A copy makes its own.
    struct Index {
        Index() = default;
        Index(const Index&) {}
        Index(Index&&) = default;
        Index& operator=(Index&&) = default;

        std::size_t memory() const {
            return made ? made->memory() + changed.capacity() * sizeof(double) : 0;
        }
        void change(double score) noexcept {
            if (!made) return;
            try {
                if (changed.size() < 64 + made->distinct() / 8) return changed.push_back(score);
            } catch (const std::bad_alloc&) {
            }
            forget();
        }
        void forget() noexcept {
            made.reset();
            changed = {};
        }

        std::unique_ptr<WeightIndex> made;
        std::vector<double> changed;
    };

    Squares all_;  // over all samples
    mutable Index index_;
    bool uneven_ = false;
    std::unordered_map<double, Squares> ties_;
    std::unordered_map<double, Squares> spare_;  // memory for further ties, named 0, 1, 2, ...
};

}  // namespace limen
