// SPDX-License-Identifier: Apache-2.0
//
// The samples held, in whole units: a tree of scores with its unit and its totals.
//
// The tree answers questions: CutTree knows the cheapest cut, HullTree that of every cost.
// Losses come in as numbers, are rounded once to whole units, and from then on are only added
// and taken away, so that any order of arrival leaves the same sums. Every call either does
// all it was asked for or tells why and leaves what is held, and so state(), as it was.
//
// add, remove               O(log n)
// add_many, remove_many     O(m) to sort, then O(m log n) at most, or O(n + m) for large batches
//
// One file although long: tree, totals and binary places change together or not at all, and that
// is easiest to check where all of it is in view.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cut.hpp"
#include "cut_tree.hpp"
#include "hull_tree.hpp"
#include "refusal.hpp"
#include "samples.hpp"
#include "squares.hpp"
#include "units.hpp"
#include "wide.hpp"

namespace limen {

// What one sample costs on either side of the cut, in units.
struct Losses {
    std::int64_t below = 0, above = 0;
};

// What numbers are measured in: a unit and, where it is automatic, its binary places in use.
class Measure {
public:
    explicit Measure(Unit unit) : unit_(unit) {}

    const Unit& unit() const { return unit_; }
    int bits() const { return bits_; }

    // The binary places to measure these numbers in: those in use, or more if one needs it.
    template <class Number>
    int bits_for(Number value) const {
        return unit_.automatic ? std::max(bits_, bits_needed(value)) : 0;
    }

    // A number times a whole cost, in units of the given fineness.
    template <class Number>
    Refusal measure(Number value, std::int64_t cost, int bits, std::int64_t& units) const {
        const Whole whole = to_units(value, unit_, bits);
        if (whole.rounding == Rounding::lost) return Refusal::lost;
        if (whole.rounding == Rounding::too_large ||
            __builtin_mul_overflow(whole.units, cost, &units) || units >= most_units ||
            units <= -most_units)
            return Refusal::too_large;
        return Refusal::none;
    }

protected:
    Unit unit_;
    int bits_ = 0;
};

// How many samples need exactly 1, 2, ... binary places; all others are whole. Sums cannot tell:
// two halves make a whole, and each of them must find its places when it is taken back.
class Places {
public:
    // 0 when all are whole.
    int finest() const {
        int places = fine_ ? finest_bits : 0;
        while (places > 0 && counts_[index(places)] == 0) --places;
        return places;
    }
    std::uint64_t fine() const { return fine_; }
    std::uint64_t of(int places) const { return counts_[index(places)]; }

    void add(int places, std::uint64_t samples = 1) {
        if (places == 0) return;
        counts_[index(places)] += samples;
        fine_ += samples;
    }
    void add(const Places& others) {
        for (int places = 1; places <= finest_bits; ++places) add(places, others.of(places));
    }
    // One of `samples` goes. Where bytes did not tell all places, none may need so many: then
    // the next finer goes, so that those who stay are never taken for coarser than they are.
    void remove(int places, std::size_t samples) {
        const auto take = [&](int from) {
            if (from == 0) return samples > fine_;
            if (counts_[index(from)] == 0) return false;
            --counts_[index(from)];
            --fine_;
            return true;
        };
        for (int from = places; from <= finest_bits; ++from)
            if (take(from)) return;
        while (places > 0 && !take(--places)) {
        }
    }

    bool operator==(const Places&) const = default;

private:
    static std::size_t index(int places) { return static_cast<std::size_t>(places) - 1; }

    std::array<std::uint64_t, finest_bits> counts_{};
    std::uint64_t fine_ = 0;
};

template <class Tree>
class HeldSamples : public Measure {
public:
    template <class... Capacities>
    explicit HeldSamples(Unit unit = {}, Capacities... capacities)
        : Measure(unit), tree_(capacities...) {}

    // Losses are weights times these whole costs: a half that costs 2 still needs one place.
    void set_costs(std::int64_t below, std::int64_t above) {
        cost_below_ = below;
        cost_above_ = above;
        ones_bits_ = -1;
        whole_ones_ =
            unit_.automatic && below > 0 && above > 0 && below < most_units && above < most_units;
        twos_below_ = std::countr_zero(static_cast<std::uint64_t>(below));
        twos_above_ = std::countr_zero(static_cast<std::uint64_t>(above));
    }

    // Samples that fade are taken back as about what they are by then: how many places each of
    // them needs is not known, and not kept.
    void set_fading() { fading_ = true; }

    std::size_t samples() const { return samples_; }
    std::size_t distinct() const { return tree_.distinct(); }
    std::size_t memory() const { return sizeof *this + tree_.memory() + squares_.memory(); }
    // The sum of all absolute losses.
    std::int64_t total() const { return total_; }
    const Tree& tree() const { return tree_; }

    // The losses of a sample that weighs 1, where losses are weights times costs.
    const Ones& ones() const {
        if (ones_bits_ != bits_) {
            ones_ = ones(bits_);
            ones_bits_ = bits_;
        }
        return ones_;
    }
    bool ones_only() const { return squares_.ones_only(total_ - above_, above_, samples_, ones()); }
    Squares squares(const Held& held) const { return squares_.of(held, ones()); }
    // Of labelled samples that do not all weigh 1: what lies below every cut.
    const WeightIndex& weights() const {
        return squares_.weights(cost_below_, cost_above_, tree_, ones());
    }

    Held find(double score) const { return tree_.find(score + 0.0); }

    // Whether so many samples of this size in all can be added in any order, and whatever is
    // removed in between, without a refusal.
    bool has_room(Wide size, int bits, std::size_t samples) const {
        return samples_ + samples <= most_of_a_score && fits(size, bits);
    }
    // The same for one sample in the places in use, nothing negative.
    bool has_plain_room(std::int64_t size) const {
        return samples_ < most_of_a_score && size < most_units - total_;
    }
    // Make sure that the next `samples` calls of add() find memory, as long as never more than
    // `most` scores are held.
    // `uneven`: some of them may weigh other than 1.
    void reserve(std::size_t samples, bool uneven = true, std::size_t most = ~std::size_t{0}) {
        tree_.reserve(samples, most);
        if (labelled() && (uneven || fading_ || !squares_.even())) squares_.reserve(samples);
    }
    // A sample of this score is going to be removed soon.
    void warm(double score) const { tree_.warm(score + 0.0); }

    HeldSamples copy() const { return HeldSamples(*this, tree_.copy()); }

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
        const Held held{score, losses.below, losses.above, 1};
        const Squares own = square_of(losses.below, losses.above);
        const bool asks = labelled() && squares_.asks_about(losses.below, losses.above, ones());
        undo_unless_held([&] {
            if (asks) squares_.reserve(1);
            if (one_sided && !asks) {
                tree_.add(held);
                summed_ += size_of(losses);
            } else {
                tree_.add(held, [&](const Held& before) {
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
        const Held asked{score + 0.0, losses.below, losses.above, 1};
        if (tree_.distinct() == 0) return Refusal::not_held;
        if (!fits(0, bits))  // no unit can tell, and nothing may be said to be missing
            return tree_.find(asked.score).count ? Refusal::too_large : Refusal::not_held;
        if (bits > bits_) {
            // Samples may be finer than their sums; look before the unit changes for nothing.
            Held held = tree_.find(asked.score);
            const std::int64_t factor = std::int64_t{1} << (bits - bits_);
            held.below *= factor;
            held.above *= factor;
            const Wide left = summed_ * factor + growth(held, asked, -1);
            if (!covers(held, asked, one_sided) || left > Wide{total_} * factor - size_of(asked))
                return Refusal::not_held;
            refine(bits);
        }
        Wide change = 0;
        Held before{};
        const bool removed = tree_.remove(asked, [&](const Held& held) {
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
        tree_.add(Held{score + 0.0, losses.below, losses.above, 1});
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
        const Held asked{score + 0.0, losses.below, losses.above, 1};
        const auto allows = [&](const Held& held) { return covers(held, asked, true); };
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
        const Held asked{old + 0.0, gone.below, gone.above, 1};
        const auto allows = [&](const Held& held) { return covers(held, asked, true); };
        const auto seen = [](const Held&) {};
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
            const Held asked{old + 0.0, gone.below, gone.above, 1};
            const Held held{score + 0.0, losses.below, losses.above, 1};
            Held from{}, to{};
            const auto allows = [&](const Held& before) {
                from = before;
                return covers(before, asked, one_sided) &&
                       (one_sided || leaves_enough(growth(before, asked, -1), less));
            };
            const auto seen = [&](const Held& before) { to = before; };
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

    // Rows are measured in `bits` places and cost something each.
    template <class Row>
    Refusal add_many(std::vector<Row>& rows, int bits) {
        if (rows.empty()) return Refusal::none;
        Wide total = 0;
        for (const Row& row : rows) total += size_of(row);
        if (!fits(total, bits) && !coarsen_to_fit(rows, total, bits)) return Refusal::too_large;
        Places places;
        if (bits)
            for (const Row& row : rows) places.add(places_of(row, bits));
        const std::vector<Held> batch = joined(rows);
        return hold(batch, rows.size(), static_cast<std::int64_t>(total), bits, places,
                    squares_of(rows, batch, bits));
    }

    // The same for samples that cost z_of_0 or z_of_1 each.
    Refusal add_many(LabelledScores& samples, int bits) {
        const Wide above = Wide{samples.z_of_0()} * static_cast<Wide>(samples.zeros());
        const Wide below = Wide{samples.z_of_1()} * static_cast<Wide>(samples.ones());
        if (!fits(above + below, bits) || samples.size() > most_of_a_score || !squares_.even()) {
            std::vector<SignedRow> rows = samples.rows();
            return add_many(rows, bits);
        }
        const auto total = static_cast<std::int64_t>(above + below);
        Places places;
        if (bits) {
            places.add(places_of(0, samples.z_of_0(), bits), samples.zeros());
            places.add(places_of(samples.z_of_1(), 0, bits), samples.ones());
        }
        const auto all = [&](auto&& visit) { samples.joined(visit); };
        const std::size_t distinct = tree_.distinct();
        const bool alone = distinct == 0 && std::is_same_v<Tree, CutTree>;
        if (!alone &&
            (samples.size() >= distinct / 4 || samples_ + samples.size() > most_of_a_score)) {
            std::vector<Held> batch;
            batch.reserve(samples.size());
            all([&](const Held& held) { batch.push_back(held); });
            return hold(batch, samples.size(), total, bits, places);
        }
        refine(bits);
        undo_unless_held([&] {
            if constexpr (std::is_same_v<Tree, CutTree>)
                if (alone) {
                    tree_.load_from(all);
                    summed_ = total;
                    return;
                }
            insert(all);
        });
        add_up(samples.size(), static_cast<std::int64_t>(above), total, places);
        return Refusal::none;
    }

    // What is held, taken out so that others can hold it too: in as few places as it needs.
    struct Part {
        std::vector<Held> held;
        std::size_t samples = 0;
        std::int64_t total = 0;
        int bits = 0;
        Places places;
        std::vector<Squares> squares{};  // of each score; none where every sample weighs 1
    };

    // With squares also where every sample weighs 1, for those who will not leave it so.
    Part part(bool with_squares = false) const {
        const int spare = spare_bits();
        Part taken{{}, samples_, total_ >> spare, bits_ - spare, places_, {}};
        taken.held.reserve(tree_.distinct());
        tree_.scan([&](const Held& held) {  // whole multiples, so that shifts divide them
            taken.held.push_back(
                {held.score, held.below >> spare, held.above >> spare, held.count});
        });
        if (labelled() && (with_squares || !squares_.even()))
            tree_.scan([&](const Held& held) {
                const Squares own = squares(held);
                taken.squares.push_back({own.below >> 2 * spare, own.above >> 2 * spare});
            });
        return taken;
    }

    // Hold what others held, measured in the same unit, besides what is held. O(n + m).
    Refusal merge(const std::vector<Part>& parts) {
        coarsen();
        int bits = bits_;
        std::size_t samples = 0;
        Places places;
        for (const Part& part : parts) {
            places.add(part.places);
            bits = std::max(bits, part.bits);
            samples += part.samples;
        }
        Wide total = 0;
        for (const Part& part : parts) total += Wide{part.total} << (bits - part.bits);
        if (!fits(total, bits)) return Refusal::too_large;
        const bool alone = parts.size() == 1 && parts[0].bits == bits;
        std::vector<Held> made;
        if (!alone && !join(parts, bits, made)) return Refusal::too_many;
        const std::vector<Held>& batch = alone ? parts[0].held : made;
        if (batch.empty()) return Refusal::none;
        return hold(batch, samples, static_cast<std::int64_t>(total), bits, places,
                    squares_of(parts, batch, bits));
    }

    // Divide every loss by 2^bits, rounded to whole units; a score without any is dropped with
    // its samples. What was added before cannot be removed exactly any more. O(n).
    void fade(int bits) {
        const auto faded = [&](std::int64_t units) -> std::int64_t {
            if (bits > 62) return 0;
            const std::int64_t half = std::int64_t{1} << (bits - 1);
            return units < 0 ? -((-units + half) >> bits) : (units + half) >> bits;
        };
        if (bits <= 0 || samples_ == 0) return;
        // As many places as there are left cost no rounding: the same units, each worth less.
        const int finer = unit_.automatic ? std::min(finest_bits - bits_, bits) : 0;
        bits -= finer;
        std::vector<Squares> squares = faded_squares(bits);
        if (bits == 0) {
            bits_ += finer;
            places_ = {};
            return set_squares(squares);
        }
        std::vector<Held> left;
        std::size_t samples = 0;
        std::int64_t above = 0, total = 0;
        std::size_t at = 0, kept = 0;
        tree_.scan([&](Held held) {
            held.below = faded(held.below);
            held.above = faded(held.above);
            ++at;
            if (size_of(held) == 0) return;
            if (labelled()) squares[kept++] = squares[at - 1];
            samples += held.count;
            above += held.above;
            total += size_of(held);
            left.push_back(held);
        });
        tree_.load(left);  // the last that may fail
        bits_ = samples ? bits_ + finer : 0;
        samples_ = samples;
        above_ = above;
        total_ = total;
        summed_ = total;
        places_ = {};
        set_squares(squares);
    }

    // On refusal, `missing` is a score that is not held as often, or not with these losses.
    template <class Row>
    Refusal remove_many(std::vector<Row>& rows, int bits, bool one_sided, double& missing) {
        if (rows.empty()) return Refusal::none;
        missing = score_of(rows[0].order);
        if (samples_ == 0 || !fits(0, bits)) return Refusal::not_held;
        refine(bits);
        const Refusal refusal = remove_rows(rows, one_sided, missing);
        if (refusal != Refusal::none) coarsen();
        return refusal;
    }

    // The same for samples that cost z_of_0 or z_of_1 each, one-sided, where all that is held
    // weighs 1 and is whole. False where rows must say what is to be done: nothing was changed.
    bool remove_many(LabelledScores& samples) {
        const Wide above = Wide{samples.z_of_0()} * static_cast<Wide>(samples.zeros());
        const Wide total = above + Wide{samples.z_of_1()} * static_cast<Wide>(samples.ones());
        if (bits_ != 0 || !squares_.even() || total > total_ || samples.size() > samples_)
            return false;
        std::vector<Held> batch;
        batch.reserve(samples.size());
        samples.joined([&](const Held& held) { batch.push_back(held); });
        Wide change = 0;
        double missing = 0;
        if (!all_held(batch, total, true, change, missing)) return false;
        remove_held(batch, change);
        uncount_ones(above, total);
        forget(samples.size(), static_cast<std::int64_t>(above), static_cast<std::int64_t>(total));
        return true;
    }

    // Take back one sample that has faded: about these losses, as sums were rounded since it was
    // added, but nothing below 0 where all is one-sided. False when its score is gone.
    bool withdraw(double score, Losses losses, bool one_sided) {
        const Held held = tree_.find(score + 0.0);
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
        const Held taken =
            all ? held : Held{held.score, losses.below, losses.above, held.count > 1 ? 1u : 0u};
        const Wide change = growth(held, taken, -1);
        if (labelled()) squares_.reserve(1);
        tree_.remove(taken, [](const Held&) { return true; });
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
        tree_.scan([&](const Held& held) {
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

    // The same samples give the same bytes, whatever came and went before: the unit is the
    // coarsest that still holds every sample. Little-endian words: bits, samples, total, distinct,
    // then score, below, above, count of each score in ascending order; then, where the sums do
    // not tell, how many samples need exactly 1, 2, ... bits binary places; then, where they do not
    // tell the squares of some scores, for each of these its place and two sums of squares in two
    // words each, the number of such scores and a word that says so.
    std::string state() const {
        const int spare = spare_bits(), bits = bits_ - spare;
        std::string bytes;
        bytes.reserve(8 * (4 + 4 * tree_.distinct() + finest_bits));
        put(bytes, static_cast<std::uint64_t>(bits));
        put(bytes, samples_);
        put(bytes, static_cast<std::uint64_t>(total_ >> spare));
        put(bytes, tree_.distinct());
        tree_.scan([&](const Held& held) {
            put(bytes, std::bit_cast<std::uint64_t>(held.score));
            put(bytes, static_cast<std::uint64_t>(held.below >> spare));
            put(bytes, static_cast<std::uint64_t>(held.above >> spare));
            put(bytes, held.count);
        });
        if (bits && places_ != places_of_sums())
            for (int places = 1; places <= bits; ++places) put(bytes, places_.of(places));
        put_squares(bytes, spare);
        return bytes;
    }

    // Become what state() described; false, and unchanged, when the bytes describe nothing, or
    // not what is one-sided where that is asked for.
    bool restore(const std::string& bytes, bool one_sided = false) {
        if (bytes.size() < 32 || bytes.size() % 8 != 0) return false;
        const std::uint64_t bits = get(bytes, 0), samples = get(bytes, 1), total = get(bytes, 2),
                            distinct = get(bytes, 3);
        std::size_t words = bytes.size() / 8 - 4, ties = 0;
        if (words > 0 && get(bytes, 3 + words) == squares_follow) {
            ties = get(bytes, 2 + words);
            if (!labelled() || ties > distinct || 5 * ties + 2 > words) return false;
            words -= 5 * ties + 2;
        }
        if (bits > (unit_.automatic ? finest_bits : 0) || distinct > words / 4 ||
            (words != 4 * distinct && words != 4 * distinct + bits) ||
            total >= static_cast<std::uint64_t>(most_units) ||
            (samples == 0 && (bits != 0 || total != 0)))
            return false;
        std::vector<Held> held(distinct);
        WideUnsigned counted = 0;
        Wide summed = 0, above = 0;
        for (std::size_t i = 0; i < distinct; ++i) {
            if (!get_held(bytes, i, held[i]) || (i && !(held[i - 1].score < held[i].score)))
                return false;
            if (one_sided && (held[i].below < 0 || held[i].above < 0 || size_of(held[i]) == 0))
                return false;
            counted += held[i].count;
            summed += size_of(held[i]);
            above += held[i].above;
            if (summed > static_cast<Wide>(total)) return false;
        }
        if (counted != samples || (one_sided && summed != static_cast<Wide>(total))) return false;
        Places places;
        WideUnsigned fine = 0;
        for (std::size_t i = 4 * distinct; i < words; ++i) {
            const std::uint64_t needing = get(bytes, 4 + i);
            if ((fine += needing) > samples) return false;
            places.add(static_cast<int>(i - 4 * distinct) + 1, needing);
        }
        std::vector<std::pair<std::uint64_t, Squares>> squares;
        for (std::size_t i = 0; i < ties; ++i)
            if (!get_squares(bytes, 4 + words + 5 * i, held, squares)) return false;
        tree_.load(held);
        bits_ = static_cast<int>(bits);
        places_ = words == 4 * distinct ? places_of_sums() : places;
        samples_ = samples;
        above_ = static_cast<std::int64_t>(above);
        total_ = static_cast<std::int64_t>(total);
        summed_ = summed;
        squares_.clear();
        if (!labelled()) return true;
        std::size_t next = 0;
        for (std::size_t i = 0; i < distinct; ++i) {
            const bool known = next < ties && squares[next].first == i;
            squares_.become(none_of(held[i]), held[i],
                            known ? squares[next++].second : squares_.of(held[i], ones()), ones());
        }
        return true;
    }

    void check() const {
        tree_.check();
        std::uint64_t samples = 0;
        std::int64_t above = 0;
        Wide summed = 0;
        tree_.scan([&](const Held& held) {
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

private:
    static constexpr std::uint32_t most_of_a_score = std::numeric_limits<std::uint32_t>::max();

    HeldSamples(const HeldSamples& other, Tree&& tree)
        : Measure(other), tree_(std::move(tree)), samples_(other.samples_), above_(other.above_),
          total_(other.total_), summed_(other.summed_), places_(other.places_),
          fading_(other.fading_), twos_below_(other.twos_below_), twos_above_(other.twos_above_),
          cost_below_(other.cost_below_), cost_above_(other.cost_above_),
          whole_ones_(other.whole_ones_), squares_(other.squares_) {}

    static std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }
    static std::int64_t size_of(const Losses& losses) {
        return magnitude(losses.below) + magnitude(losses.above);
    }
    static std::int64_t size_of(const Held& held) {
        return magnitude(held.below) + magnitude(held.above);
    }
    template <class Row>
    static std::int64_t size_of(const Row& row) {
        return magnitude(row.below()) + magnitude(row.above());
    }

    // How the absolute sums of a score change when losses are added or taken away.
    static Wide growth(const Held& held, const Held& other, int sign) {
        return Wide{magnitude(held.below + sign * other.below)} +
               magnitude(held.above + sign * other.above) - size_of(held);
    }

    static bool covers(const Held& held, const Held& asked, bool one_sided) {
        if (held.count < asked.count) return false;
        if (held.count == asked.count)
            return held.below == asked.below && held.above == asked.above;
        if (!one_sided) return true;
        return held.below >= asked.below && held.above >= asked.above &&
               (held.below != asked.below || held.above != asked.above);
    }

    // The samples that stay have at least the absolute losses of their sums; a removal after
    // which they could not was never added.
    bool leaves_enough(Wide change, Wide size) const {
        return summed_ + change <= Wide{total_} - size;
    }

    bool fits(Wide more, int bits) const {
        const int finer = bits > bits_ ? bits - bits_ : 0;
        return (Wide{total_} << finer) + more < most_units;
    }

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

    // The binary places that a sample needs whose losses are measured in `bits` places.
    int places_of(std::int64_t below, std::int64_t above, int bits) const {
        if (fading_) return 0;
        const auto spare = [&](std::int64_t loss, int twos) {
            return loss ? std::countr_zero(static_cast<std::uint64_t>(loss)) - twos : bits;
        };
        return bits -
               std::clamp(std::min(spare(below, twos_below_), spare(above, twos_above_)), 0, bits);
    }
    int places_of(const Held& held, int bits) const {
        return places_of(held.below, held.above, bits);
    }
    template <class Row>
    int places_of(const Row& row, int bits) const {
        return places_of(row.below(), row.above(), bits);
    }

    // What the sums alone tell, all that there is where a score has one sample.
    Places places_of_sums() const {
        Places places;
        if (bits_)
            tree_.scan([&](const Held& held) { places.add(places_of(held, bits_), held.count); });
        return places;
    }

    int spare_bits() const {
        const int spare = bits_ - places_.finest();
        if (spare == 0) return 0;
        std::uint64_t used = static_cast<std::uint64_t>(total_);
        tree_.scan([&](const Held& held) {
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

    // Hold a batch of distinct scores that fits and is measured in `bits` places.
    // `squares` are those of its scores, and needed where a sample does not weigh 1.
    Refusal hold(const std::vector<Held>& batch, std::size_t samples, std::int64_t total, int bits,
                 const Places& places, const std::vector<Squares>& squares = {}) {
        if (samples_ + samples > most_of_a_score)
            for (const Held& held : batch)
                if (tree_.find(held.score).count + std::size_t{held.count} > most_of_a_score)
                    return Refusal::too_many;
        refine(bits);
        const std::vector<Held> before = found(squares.empty() ? std::vector<Held>{} : batch);
        std::size_t ties = 0;
        for (std::size_t i = 0; i < before.size(); ++i)
            ties += before[i].count + batch[i].count > 1 && !squares_.kept(batch[i].score);
        squares_.reserve(ties);
        undo_unless_held([&] {
            if (batch.size() >= tree_.distinct() / 4)
                load_with(batch, 1);
            else
                insert([&](auto&& visit) {
                    for (const Held& held : batch) visit(held);
                });
        });
        std::int64_t above = 0;
        for (const Held& held : batch) above += held.above;
        for (std::size_t i = 0; i < before.size(); ++i)
            squares_.add(before[i], batch[i], squares[i], ones());
        add_up(samples, above, total, places, before.empty());
        return Refusal::none;
    }

    void add_up(std::size_t samples, std::int64_t above, std::int64_t total, const Places& places,
                bool all_ones = true) {
        if (all_ones && labelled())
            squares_.count({Wide{total - above} * ones().below, Wide{above} * ones().above});
        samples_ += samples;
        above_ += above;
        total_ += total;
        places_.add(places);
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

    // Add what `all` shows in ascending order to what it is given.
    template <class All>
    void insert(All&& all) {
        const Wide summed = summed_;
        std::size_t added = 0;
        try {
            Held waiting[512];
            std::size_t used = 0;
            const auto add_waiting = [&] {
                const Held* done = waiting;
                try {
                    add_all(done, waiting + used);
                } catch (...) {
                    added += static_cast<std::size_t>(done - waiting);
                    throw;
                }
                added += used;
                used = 0;
            };
            all([&](const Held& held) {
                waiting[used++] = held;
                if (used == std::size(waiting)) add_waiting();
            });
            add_waiting();
        } catch (...) {
            all([&](const Held& held) {
                if (added == 0) return;
                tree_.remove(held, [](const Held&) { return true; });
                --added;
            });
            summed_ = summed;
            throw;
        }
    }

    void add_all(const Held*& done, const Held* last) {
        const auto seen = [&](const Held& before) { summed_ += growth(before, *done, 1); };
        tree_.add_all(done, last, seen);
    }

    template <class Row>
    Refusal remove_rows(std::vector<Row>& rows, bool one_sided, double& missing) {
        Wide above = 0, total = 0;
        for (const Row& row : rows) {
            above += row.above();
            total += size_of(row);
            if (total <= total_) continue;
            missing = score_of(row.order);
            return Refusal::not_held;
        }
        const std::vector<Held> batch = joined(rows);
        Wide change = 0;
        if (!all_held(batch, total, one_sided, change, missing)) return Refusal::not_held;
        const std::vector<Squares> squares = squares_of(rows, batch, bits_);
        const std::vector<Held> before = found(squares.empty() ? std::vector<Held>{} : batch);
        remove_held(batch, change);
        for (std::size_t i = 0; i < before.size(); ++i)
            squares_.remove(before[i], batch[i], squares[i], ones());
        if (before.empty()) uncount_ones(above, total);
        if (places_.fine())
            for (std::size_t i = 0; i < rows.size(); ++i)
                places_.remove(places_of(rows[i], bits_), samples_ - i);
        forget(rows.size(), static_cast<std::int64_t>(above), static_cast<std::int64_t>(total));
        return Refusal::none;
    }

    // Whether all of this can be removed; how the absolute sums change by it, or what is missing.
    bool all_held(const std::vector<Held>& batch, Wide total, bool one_sided, Wide& change,
                  double& missing) const {
        for (const Held& asked : batch) {
            const Held held = tree_.find(asked.score);
            missing = asked.score;
            if (!covers(held, asked, one_sided)) return false;
            change += growth(held, asked, -1);
        }
        return leaves_enough(change, total);
    }

    void remove_held(const std::vector<Held>& batch, Wide change) {
        const Wide summed = summed_ + change;
        if (batch.size() >= tree_.distinct() / 4)
            load_with(batch, -1);
        else
            tree_.remove_all(batch.data(), batch.data() + batch.size());
        summed_ = summed;
    }

    // Samples of these losses that weigh 1 each are gone.
    void uncount_ones(Wide above, Wide total) {
        if (labelled()) squares_.uncount({(total - above) * ones().below, above * ones().above});
    }

    // Rebuild the tree from what it holds and a batch, in one pass over both.
    void load_with(const std::vector<Held>& batch, int sign) {
        Wide summed = 0;
        const auto all = [&](auto&& visit) {
            const auto show = [&](const Held& held) {
                summed += size_of(held);
                visit(held);
            };
            auto next = batch.begin();
            tree_.scan([&](Held held) {
                for (; next != batch.end() && next->score < held.score; ++next) show(*next);
                if (next != batch.end() && next->score == held.score) {
                    held.below += sign * next->below;
                    held.above += sign * next->above;
                    held.count = sign > 0 ? held.count + next->count : held.count - next->count;
                    ++next;
                }
                if (held.count) show(held);
            });
            for (; next != batch.end(); ++next) show(*next);
        };
        if constexpr (std::is_same_v<Tree, CutTree>) {
            tree_.load_from(all);
        } else {
            std::vector<Held> held;
            held.reserve(tree_.distinct() + (sign > 0 ? batch.size() : 0));
            all([&](const Held& each) { held.push_back(each); });
            tree_.load(held);
        }
        summed_ = summed;
    }

    // What all parts hold, in `bits` places and in ascending order. Neighbours are joined until one
    // run is left. False when a score would have too many samples.
    static bool join(const std::vector<Part>& parts, int bits, std::vector<Held>& out) {
        std::vector<std::size_t> ends;
        std::size_t size = 0;
        for (const Part& part : parts) ends.push_back(size += part.held.size());
        out.reserve(size);
        for (const Part& part : parts) {
            const int finer = bits - part.bits;
            for (const Held& held : part.held)
                out.push_back(
                    {held.score, scaled(held.below, finer), scaled(held.above, finer), held.count});
        }
        std::vector<Held> other(parts.size() > 1 ? size : 0);
        while (ends.size() > 1) {
            std::size_t start = 0, runs = 0;
            for (std::size_t i = 0; i < ends.size(); i += 2) {
                const std::size_t middle = ends[i],
                                  end = i + 1 < ends.size() ? ends[i + 1] : middle;
                const Held *left = out.data() + start, *right = out.data() + middle;
                const Held *const left_end = right, *const right_end = out.data() + end;
                Held* to = other.data() + start;
                while (left != left_end && right != right_end) {
                    const bool is_right = right->score < left->score;  // no branch to guess
                    *to++ = *(is_right ? right : left);
                    right += is_right;
                    left += !is_right;
                }
                std::copy(right, right_end, std::copy(left, left_end, to));
                ends[runs++] = start = end;
            }
            ends.resize(runs);
            out.swap(other);
        }
        std::size_t used = 0;
        for (const Held& held : out) {
            if (used == 0 || out[used - 1].score != held.score) {
                out[used++] = held;
                continue;
            }
            Held& same = out[used - 1];
            if (held.count > most_of_a_score - same.count) return false;
            same.below += held.below;
            same.above += held.above;
            same.count += held.count;
        }
        out.resize(used);
        return true;
    }

    // ---- squares ----

    bool labelled() const { return cost_below_ != 0; }

    // What a labelled sample costs that weighs 1; whether it does so where all is whole.
    // Without a branch, because which label comes cannot be predicted.
    Losses losses_of_one(bool label) const {
        const std::int64_t yes = -std::int64_t{label};
        return {yes & cost_below_, ~yes & cost_above_};
    }
    // Whether a sample that weighs 1 costs its cost, and so does all that is held.
    bool all_one() const { return whole_ones_ && bits_ == 0 && squares_.even(); }

    Ones ones(int bits) const {
        Ones made;
        if (measure(std::int64_t{1}, cost_below_, bits, made.below) != Refusal::none ||
            measure(std::int64_t{1}, cost_above_, bits, made.above) != Refusal::none)
            return {};
        return made;
    }
    // One sample goes from a score, then another comes to what is held of its own.
    void replace_squares(const Held& from, const Held& gone, const Held& to, const Held& come) {
        const Squares more = square_of(come.below, come.above);
        squares_.remove(from, gone, square_of(gone.below, gone.above), ones());
        if (squares_.asks_about(come.below, come.above, ones()))
            squares_.add(to, come, more, ones());
        else
            squares_.count(more);
    }
    static Held none_of(const Held& held) { return {held.score, 0, 0, 0}; }

    // What is held of these scores.
    std::vector<Held> found(const std::vector<Held>& scores) const {
        std::vector<Held> all;
        all.reserve(scores.size());
        for (const Held& held : scores) all.push_back(tree_.find(held.score));
        return all;
    }

    // Of each score the sum over its rows, which are sorted and measured in `bits` places; none
    // where they and all that is held weigh 1.
    template <class Row>
    std::vector<Squares> squares_of(const std::vector<Row>& rows, const std::vector<Held>& batch,
                                    int bits) const {
        std::vector<Squares> sums;
        if (!labelled()) return sums;
        const Ones one = ones(bits);
        bool even = squares_.even();
        for (std::size_t i = 0; even && i < rows.size(); ++i)
            even = one.is(rows[i].below(), rows[i].above());
        if (even) return sums;
        sums.reserve(batch.size());
        auto row = rows.begin();
        for (const Held& held : batch) {
            sums.emplace_back();
            for (std::uint32_t i = 0; i < held.count; ++i, ++row)
                sums.back() += square_of(row->below(), row->above());
        }
        return sums;
    }

    // The same for what others held.
    std::vector<Squares> squares_of(const std::vector<Part>& parts, const std::vector<Held>& batch,
                                    int bits) const {
        bool even = squares_.even();
        for (const Part& part : parts) even &= part.squares.empty();
        if (!labelled() || even) return {};
        std::vector<Squares> sums(batch.size());
        for (const Part& part : parts) {
            std::size_t at = 0;
            const int finer = 2 * (bits - part.bits);
            for (std::size_t i = 0; i < part.held.size(); ++i) {
                while (batch[at].score < part.held[i].score) ++at;
                const Squares own = part.squares.empty()
                                        ? SquaresOfTies().of(part.held[i], ones(part.bits))
                                        : part.squares[i];
                sums[at] += {own.below << finer, own.above << finer};
            }
        }
        return sums;
    }

    // The squares of all scores when their losses are divided by 2^bits, and memory to keep them.
    std::vector<Squares> faded_squares(int bits) {
        std::vector<Squares> all;
        if (!labelled()) return all;
        all.reserve(tree_.distinct());
        const auto faded = [&](Wide sum) {
            return bits == 0   ? sum
                   : bits > 62 ? 0
                               : (sum + (Wide{1} << (2 * bits - 1))) >> 2 * bits;
        };
        std::size_t ties = 0;
        tree_.scan([&](const Held& held) {
            const Squares own = squares(held);
            all.push_back({faded(own.below), faded(own.above)});
            ties += held.count > 1;
        });
        squares_.reserve(ties);
        return all;
    }
    void set_squares(const std::vector<Squares>& all) {
        squares_.clear();
        if (!labelled()) return;
        std::size_t at = 0;
        tree_.scan(
            [&](const Held& held) { squares_.become(none_of(held), held, all[at++], ones()); });
    }

    static constexpr std::uint64_t squares_follow = 0xffff'7371'7561'7265;

    void put_squares(std::string& bytes, int spare) const {
        if (squares_.size() == 0) return;
        std::uint64_t place = 0, ties = 0;
        tree_.scan([&](const Held& held) {
            const std::uint64_t at = place++;
            const Squares* own = squares_.kept(held.score);
            if (!own) return;
            put(bytes, at);
            for (const Wide sum : {own->below, own->above}) {
                put(bytes, static_cast<std::uint64_t>(sum >> 2 * spare));
                put(bytes, static_cast<std::uint64_t>(sum >> 2 * spare >> 64));
            }
            ++ties;
        });
        put(bytes, ties);
        put(bytes, squares_follow);
    }

    // The squares of one score out of five words; false when no samples could have left them so.
    static bool get_squares(const std::string& bytes, std::size_t word,
                            const std::vector<Held>& held,
                            std::vector<std::pair<std::uint64_t, Squares>>& out) {
        const std::uint64_t place = get(bytes, word);
        if (place >= held.size() || (!out.empty() && place <= out.back().first)) return false;
        const auto sum = [&](std::size_t at) {
            return static_cast<Wide>(WideUnsigned{get(bytes, at + 1)} << 64 | get(bytes, at));
        };
        const Squares squares{sum(word + 1), sum(word + 3)};
        const Held& of = held[place];
        const Squares most = square_of(of.below, of.above);
        if (of.count < 2 || squares.below < 0 || squares.above < 0 || squares.below > most.below ||
            squares.above > most.above)
            return false;
        out.emplace_back(place, squares);
        return true;
    }

    void check_squares() const {
        Squares all;
        std::size_t ties = 0;
        tree_.scan([&](const Held& held) {
            all += squares(held);
            ties += squares_.kept(held.score) != nullptr;
        });
        if (all != squares_.all()) throw std::logic_error("the sum of squares is wrong");
        if (ties != squares_.size()) throw std::logic_error("squares of a score that is not held");
        squares_.check_weights();
    }

    static void put(std::string& bytes, std::uint64_t word) {
        for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
    }
    static std::uint64_t get(const std::string& bytes, std::size_t word) {
        std::uint64_t value = 0;
        for (std::size_t i = 8; i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(bytes[8 * word + i]);
        return value;
    }

    // One score out of its four words; false when no samples could have left it so.
    static bool get_held(const std::string& bytes, std::size_t i, Held& held) {
        const std::uint64_t score = get(bytes, 4 + 4 * i), count = get(bytes, 7 + 4 * i);
        held = {std::bit_cast<double>(score), static_cast<std::int64_t>(get(bytes, 5 + 4 * i)),
                static_cast<std::int64_t>(get(bytes, 6 + 4 * i)),
                static_cast<std::uint32_t>(count)};
        const bool minus_zero = score == std::bit_cast<std::uint64_t>(-0.0);
        const auto in_range = [](std::int64_t units) {
            return units < most_units && units > -most_units;
        };
        return held.score == held.score && !minus_zero && in_range(held.below) &&
               in_range(held.above) && count > 0 && count <= most_of_a_score &&
               (count > 1 || held.below != 0 || held.above != 0);
    }

    Tree tree_;
    std::size_t samples_ = 0;
    std::int64_t above_ = 0;  // the loss when everything lies above the cut
    std::int64_t total_ = 0;  // the sum of the absolute losses of all samples
    Wide summed_ = 0;         // the sum of the absolute sums of all scores
    Places places_;           // those that samples need, so that bits_ stays fine enough
    bool fading_ = false;
    int twos_below_ = 0, twos_above_ = 0;  // the factors 2 that losses have from their costs
    std::int64_t cost_below_ = 0, cost_above_ = 0;  // 0 where losses are not weights times costs
    bool whole_ones_ = false;  // a sample that weighs 1 costs its cost, as a whole number of units
    SquaresOfTies squares_;
    mutable Ones ones_;  // at so many places
    mutable int ones_bits_ = -1;
};

using OnlineCut = HeldSamples<CutTree>;
using OnlineHull = HeldSamples<HullTree>;

}  // namespace limen
