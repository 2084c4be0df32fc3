// SPDX-License-Identifier: Apache-2.0
//
// A tree of scores with its unit and its totals, changed by one sample at a time.
//
// The tree answers questions: CutTree knows the cheapest cut, HullTree that of every cost.
// Losses come in as numbers, are rounded once to whole units, and from then on are only added
// and taken away, so that any order of arrival leaves the same sums. Every call either does
// all it was asked for or says why and leaves what is held as it was.
//
// add, remove, replace   O(log n)

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/cut_tree.hpp"
#include "core/hull_tree.hpp"
#include "core/refusal.hpp"
#include "core/units.hpp"
#include "core/wide.hpp"
#include "samples/held_sums.hpp"
#include "samples/samples.hpp"
#include "samples/squares.hpp"

namespace limen {

template <class Tree>
class SampleTree : public HeldSums {
public:
    template <class... Capacities>
    explicit SampleTree(Unit unit = {}, Capacities... capacities)
        : HeldSums(unit), tree_(capacities...) {}

    std::size_t distinct() const { return tree_.distinct(); }
    std::size_t memory() const { return sizeof *this + tree_.memory() + squares_.memory(); }
    const Tree& tree() const { return tree_; }

    bool ones_only() const { return squares_.ones_only(total_ - above_, above_, samples_, ones()); }
    Squares squares(const ScoreSums& held) const { return squares_.of(held, ones()); }
    // Of labelled samples that do not all weigh 1: what lies below every cut.
    const WeightIndex& weights() const {
        return squares_.weights(cost_below_, cost_above_, tree_, ones());
    }

    ScoreSums find(double score) const { return tree_.find(score + 0.0); }

    // Make sure that the next `samples` calls of add() find memory, as long as never more than
    // `most` scores are held.
    // `uneven`: some of them may weigh other than 1.
    void reserve(std::size_t samples, bool uneven = true, std::size_t most = ~std::size_t{0}) {
        tree_.reserve(samples, most);
        if (labelled() && (uneven || fading_ || !squares_.even())) squares_.reserve(samples);
    }
    // A sample of this score is going to be removed soon.
    void warm(double score) const { tree_.warm(score + 0.0); }

    // The best cut, and its loss in units of the current fineness, where the tree keeps one. A
    // template of its own: clang 14 compiles what is only constrained for every tree.
    template <class Same = Tree>
    const Cut& best() const requires requires(const Same& tree) {
        tree.best();
    }
    { return tree_.best(); }
    std::int64_t loss(const Cut& cut) const { return above_ - cut.best; }

    // Measure in at least so many places from now on, if there is room. O(n) where that is new.
    void refine_to(int bits) {
        if (samples_ && fits(0, bits)) refine(bits);
    }

    // Measure in as few places as the samples held need; whether that changed anything. O(n).
    // Whether there is room must not depend on fine samples that are long gone.
    bool coarsen() {
        const int spare = spare_bits();
        scale(-spare);
        return spare > 0;
    }

    // Losses are measured in `bits` places. A sample without any loss is the same as none.
    // `one_sided`: this and all samples held cost on one side only, and nothing negative.
    Refusal add(double score, Losses losses, int bits, bool one_sided = false) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        score += 0.0;
        if ((bits != bits_ || size_of(losses) >= most_units - total_) &&
            !fits(size_of(losses), bits)) {
            std::vector<LossRow> row{{ordered_bits(score), {losses.below, losses.above}}};
            Wide size = size_of(losses);
            if (!coarsen_to_fit(row, size, bits)) return Refusal::too_large;
            losses = {row[0].below(), row[0].above()};
            // Weights that fade have no last place: beside far larger ones nothing may be left.
            if (losses.below == 0 && losses.above == 0) return Refusal::none;
        }
        if (samples_ >= most_of_a_score && tree_.find(score).count == most_of_a_score)
            return Refusal::too_many;
        refine(bits);
        const ScoreSums held{score, losses.below, losses.above, 1};
        const Squares own = square_of(losses.below, losses.above);
        const bool asks = labelled() && squares_.asks_about(losses.below, losses.above, ones());
        undo_unless_held([&] {
            if (asks) squares_.reserve(1);
            if (one_sided && !asks) {
                tree_.add(held);
                summed_ += size_of(losses);
            } else {
                tree_.add(held, [&](const ScoreSums& before) {
                    summed_ += growth(before, held, 1);
                    if (asks) squares_.add(before, held, own, ones());
                });
            }
        });
        if (labelled() && !asks) squares_.count(own);
        ++samples_;
        above_ += losses.above;
        total_ += size_of(losses);
        if (bits_) places_.add(places_of(held, bits_));
        return Refusal::none;
    }

    // Where all is one-sided, a sample that takes away more than is held on its side was
    // never added.
    Refusal remove(double score, const Losses& losses, int bits, bool one_sided) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        const ScoreSums asked{score + 0.0, losses.below, losses.above, 1};
        if (tree_.distinct() == 0) return Refusal::not_held;
        if (!fits(0, bits))  // no unit is fine enough, and nothing may be called missing
            return tree_.find(asked.score).count ? Refusal::too_large : Refusal::not_held;
        if (bits > bits_) {
            // Samples may be finer than their sums; look before the unit changes for nothing.
            ScoreSums held = tree_.find(asked.score);
            const std::int64_t factor = std::int64_t{1} << (bits - bits_);
            held.below *= factor;
            held.above *= factor;
            const Wide left = summed_ * factor + growth(held, asked, -1);
            if (!covers(held, asked, one_sided) || left > Wide{total_} * factor - size_of(asked))
                return Refusal::not_held;
            refine(bits);
        }
        Wide change = 0;
        ScoreSums before{};
        const bool removed = tree_.remove(asked, [&](const ScoreSums& held) {
            change = growth(held, asked, -1);
            before = held;
            return covers(held, asked, one_sided) && leaves_enough(change, size_of(asked));
        });
        if (!removed) return Refusal::not_held;
        summed_ += change;
        if (labelled())
            squares_.remove(before, asked, square_of(losses.below, losses.above), ones());
        if (places_.fine()) places_.remove(places_of(asked, bits_), samples_);
        forget(1, losses.above, size_of(losses));
        return Refusal::none;
    }

    // add() and remove() of a labelled sample that weighs 1 where all that is held is whole and
    // weighs 1, the common case in less time. False where something else is to be done or said:
    // nothing was changed.
    LIMEN_INLINE bool add_one(double score, bool label) {
        const Losses losses = losses_of_one(label);
        if (!all_one() || !has_plain_room(losses.below + losses.above)) return false;
        tree_.add(ScoreSums{score + 0.0, losses.below, losses.above, 1});
        summed_ += size_of(losses);
        squares_.count(square_of(losses.below, losses.above));
        ++samples_;
        above_ += losses.above;
        total_ += size_of(losses);
        return true;
    }
    LIMEN_INLINE bool remove_one(double score, bool label) {
        const Losses losses = losses_of_one(label);
        if (!all_one()) return false;
        const ScoreSums asked{score + 0.0, losses.below, losses.above, 1};
        const auto allows = [&](const ScoreSums& held) { return covers(held, asked, true); };
        if (!tree_.remove(asked, allows)) return false;
        summed_ -= size_of(losses);
        squares_.uncount(square_of(losses.below, losses.above));
        forget(1, losses.above, size_of(losses));
        return true;
    }

    // The same two in one go; memory is reserved for the new sample. Where the tree can do that.
    template <class Same = Tree>
    LIMEN_INLINE bool replace_one(double old, bool old_label, double score, bool label) {
        const Losses gone = losses_of_one(old_label), losses = losses_of_one(label);
        if (samples_ < 2 || !all_one() || !has_plain_room(size_of(losses))) return false;
        const ScoreSums asked{old + 0.0, gone.below, gone.above, 1};
        const auto allows = [&](const ScoreSums& held) { return covers(held, asked, true); };
        const auto seen = [](const ScoreSums&) {};
        if (!tree_.replace(asked, {score + 0.0, losses.below, losses.above, 1}, allows, seen))
            return false;
        if (old_label == label) return true;
        const std::int64_t more = size_of(losses) - size_of(gone);
        summed_ += more;
        total_ += more;
        above_ += losses.above - gone.above;
        squares_.uncount(square_of(gone.below, gone.above));
        squares_.count(square_of(losses.below, losses.above));
        return true;
    }

    // remove() one sample and add() another, for which memory is reserved, in one go. Both cost
    // something and are measured in the places in use. False where that cannot be: nothing was
    // changed.
    bool replace(double old, const Losses& gone, double score, const Losses& losses,
                 bool one_sided) {
        if constexpr (std::is_same_v<Tree, CutTree>) {
            const std::int64_t less = size_of(gone), more = size_of(losses);
            if (samples_ < 2 || samples_ >= most_of_a_score || less == 0 || more == 0 ||
                more >= most_units - total_)
                return false;
            const ScoreSums asked{old + 0.0, gone.below, gone.above, 1};
            const ScoreSums held{score + 0.0, losses.below, losses.above, 1};
            ScoreSums from{}, to{};
            const auto allows = [&](const ScoreSums& before) {
                from = before;
                return covers(before, asked, one_sided) &&
                       (one_sided || leaves_enough(growth(before, asked, -1), less));
            };
            const auto seen = [&](const ScoreSums& before) { to = before; };
            if (!tree_.replace(asked, held, allows, seen)) return false;
            above_ += losses.above - gone.above;
            total_ += more - less;
            summed_ +=
                one_sided ? Wide{more - less} : growth(from, asked, -1) + growth(to, held, 1);
            if (labelled()) replace_squares(from, asked, to, held);
            if (places_.fine()) places_.remove(places_of(asked, bits_), samples_);
            if (bits_) places_.add(places_of(held, bits_));
            return true;
        }
        return false;
    }

    // Take back one sample that has faded: about these losses, as sums were rounded since it was
    // added, but nothing below 0 where all is one-sided. False when its score is gone.
    bool withdraw(double score, Losses losses, bool one_sided) {
        const ScoreSums held = tree_.find(score + 0.0);
        if (held.count == 0) return false;
        if (one_sided) {
            losses.below = std::min(losses.below, held.below);
            losses.above = std::min(losses.above, held.above);
        }
        if (losses.below == 0 && losses.above == 0) return false;
        // The last sample of a score takes its remainder along, but no other sample's sum.
        constexpr std::int64_t remainder = 64;
        const std::int64_t left =
            magnitude(held.below - losses.below) + magnitude(held.above - losses.above);
        const bool all = left == 0 || (held.count == 1 && left <= remainder);
        const ScoreSums taken =
            all ? held
                : ScoreSums{held.score, losses.below, losses.above, held.count > 1 ? 1u : 0u};
        const Wide change = growth(held, taken, -1);
        if (labelled()) squares_.reserve(1);
        tree_.remove(taken, [](const ScoreSums&) { return true; });
        summed_ += change;
        if (labelled()) squares_.remove(held, taken, square_of(losses.below, losses.above), ones());
        if (taken.count && places_.fine()) places_.remove(places_of(taken, bits_), samples_);
        forget(taken.count, taken.above, 0);
        total_ = static_cast<std::int64_t>(summed_);
        return true;
    }

    // Every cut in ascending order: visit(missed, cut) with the losses below and above it.
    template <class Visit>
    void curve(Visit&& visit) const {
        Losses missed{0, above_};
        Gap cut;
        tree_.scan([&](const ScoreSums& held) {
            cut.upper = held.score;
            cut.has_upper = true;
            visit(missed, cut);
            missed.below += held.below;
            missed.above -= held.above;
            cut.lower = held.score;
            cut.has_lower = true;
        });
        cut.has_upper = false;
        visit(missed, cut);
    }

    void check() const {
        tree_.check();
        std::uint64_t samples = 0;
        std::int64_t above = 0;
        Wide summed = 0;
        tree_.scan([&](const ScoreSums& held) {
            samples += held.count;
            above += held.above;
            summed += size_of(held);
        });
        if (samples != samples_) throw std::logic_error("the number of samples is wrong");
        if (above != above_) throw std::logic_error("the loss above all cuts is wrong");
        if (summed != summed_ || summed > total_)
            throw std::logic_error("the sum of absolute losses is wrong");
        if (labelled()) check_squares();
        if (samples_ == 0 && (total_ || bits_)) throw std::logic_error("empty, but not new");
        if (places_.fine() > samples_ || places_.finest() > bits_)
            throw std::logic_error("the places that samples need are wrong");
    }

protected:
    SampleTree(const SampleTree& other, Tree&& tree)
        : HeldSums(other), tree_(std::move(tree)), squares_(other.squares_) {}

    // Measure in more places from now on; every loss held is scaled with it.
    void refine(int bits) {
        if (bits > bits_) scale(bits - bits_);
    }

    void scale(int bits) {
        if (bits == 0) return;
        tree_.scale(bits);
        above_ = scaled(above_, bits);
        total_ = scaled(total_, bits);
        summed_ = scaled(summed_, bits);
        squares_.scale(bits);
        bits_ += bits;
    }

    // What follows from the sums alone, all that there is where a score has one sample.
    FractionBits places_of_sums() const {
        FractionBits places;
        if (bits_)
            tree_.scan(
                [&](const ScoreSums& held) { places.add(places_of(held, bits_), held.count); });
        return places;
    }

    int spare_bits() const {
        const int spare = bits_ - places_.finest();
        if (spare == 0) return 0;
        std::uint64_t used = static_cast<std::uint64_t>(total_);
        tree_.scan([&](const ScoreSums& held) {
            used |= static_cast<std::uint64_t>(held.below) | static_cast<std::uint64_t>(held.above);
        });
        return used ? std::min(spare, std::countr_zero(used)) : spare;
    }

    // Before rows are refused, they and what is held are measured in as few places as they
    // need together.
    template <class Row>
    bool coarsen_to_fit(std::vector<Row>& rows, Wide& total, int& bits) {
        if (bits_ == 0 && bits == 0) return false;
        coarsen();
        int needed = bits_;
        for (const Row& row : rows) needed = std::max(needed, places_of(row, bits));
        const int spare = bits - needed;
        if (!fits(total >> spare, bits - spare)) return false;
        for (Row& row : rows) row.divide(std::int64_t{1} << spare);
        total >>= spare;
        bits -= spare;
        return true;
    }

    // Memory may run out while samples are added.
    template <class Work>
    void undo_unless_held(Work&& work) {
        try {
            work();
        } catch (...) {
            if (samples_ == 0) bits_ = 0;
            throw;
        }
    }

    void forget(std::size_t samples, std::int64_t above, std::int64_t total) {
        samples_ -= samples;
        above_ -= above;
        total_ -= total;
        if (samples_ == 0) {
            bits_ = 0;
            above_ = total_ = 0;
            summed_ = 0;
            places_ = {};
            squares_.clear();
        }
    }

    Tree tree_;
    SquaresOfTies squares_;

private:
    // Whether a sample that weighs 1 costs its cost, and so does all that is held.
    bool all_one() const { return whole_ones_ && bits_ == 0 && squares_.even(); }

    // One sample goes from a score, then another comes to what is held of its own.
    void replace_squares(const ScoreSums& from, const ScoreSums& gone, const ScoreSums& to,
                         const ScoreSums& come) {
        const Squares more = square_of(come.below, come.above);
        squares_.remove(from, gone, square_of(gone.below, gone.above), ones());
        if (squares_.asks_about(come.below, come.above, ones()))
            squares_.add(to, come, more, ones());
        else
            squares_.count(more);
    }
    void check_squares() const {
        Squares all;
        std::size_t ties = 0;
        tree_.scan([&](const ScoreSums& held) {
            all += squares(held);
            ties += squares_.kept(held.score) != nullptr;
        });
        if (all != squares_.all()) throw std::logic_error("the sum of squares is wrong");
        if (ties != squares_.size()) throw std::logic_error("squares of a score that is not held");
        squares_.check_weights();
    }
};

}  // namespace limen
