// SPDX-License-Identifier: Apache-2.0
//
// The samples held: many at once, taken out and merged, faded, written to bytes and read back.
//
// Every call either does all it was asked for or says why and leaves what is held, and so state(),
// as it was. What changes one sample is in sample_tree.hpp.
//
// add_many, remove_many     O(m) to sort, then O(m log n) at most, or O(n + m) for large batches
// merge, fade, restore      O(n + m)

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/measure.hpp"
#include "core/refusal.hpp"
#include "core/units.hpp"
#include "core/wide.hpp"
#include "samples/held_bytes.hpp"
#include "samples/held_part.hpp"
#include "samples/held_sums.hpp"
#include "samples/sample_tree.hpp"
#include "samples/samples.hpp"
#include "samples/squares.hpp"

namespace limen {

template <class Tree>
class HeldSamples : public SampleTree<Tree> {
    using Base = SampleTree<Tree>;

public:
    using Part = HeldPart;

    template <class... Capacities>
    explicit HeldSamples(Unit unit = {}, Capacities... capacities) : Base(unit, capacities...) {}

    HeldSamples copy() const { return HeldSamples(*this, tree_.copy()); }

    using Base::coarsen, Base::ones, Base::squares;

    // Rows are measured in `bits` places and cost something each.
    template <class Row>
    Refusal add_many(std::vector<Row>& rows, int bits) {
        if (rows.empty()) return Refusal::none;
        Wide total = 0;
        for (const Row& row : rows) total += size_of(row);
        if (!fits(total, bits) && !coarsen_to_fit(rows, total, bits)) return Refusal::too_large;
        FractionBits places;
        if (bits)
            for (const Row& row : rows) places.add(places_of(row, bits));
        const std::vector<ScoreSums> batch = joined(rows);
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
        FractionBits places;
        if (bits) {
            places.add(places_of(0, samples.z_of_0(), bits), samples.zeros());
            places.add(places_of(samples.z_of_1(), 0, bits), samples.ones());
        }
        const auto all = [&](auto&& visit) { samples.joined(visit); };
        const std::size_t distinct = tree_.distinct();
        const bool alone = distinct == 0 && std::is_same_v<Tree, CutTree>;
        if (!alone &&
            (samples.size() >= distinct / 4 || samples_ + samples.size() > most_of_a_score)) {
            std::vector<ScoreSums> batch;
            batch.reserve(samples.size());
            all([&](const ScoreSums& held) { batch.push_back(held); });
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

    // With squares also where every sample weighs 1, for those who will not leave it so.
    HeldPart part(bool with_squares = false) const {
        const int spare = spare_bits();
        HeldPart taken{{}, samples_, total_ >> spare, bits_ - spare, places_, {}};
        taken.held.reserve(tree_.distinct());
        tree_.scan([&](const ScoreSums& held) {  // whole multiples, so that shifts divide them
            taken.held.push_back(
                {held.score, held.below >> spare, held.above >> spare, held.count});
        });
        if (labelled() && (with_squares || !squares_.even()))
            tree_.scan([&](const ScoreSums& held) {
                const Squares own = squares(held);
                taken.squares.push_back({own.below >> 2 * spare, own.above >> 2 * spare});
            });
        return taken;
    }

    // Hold what others held, measured in the same unit, besides what is held. O(n + m).
    Refusal merge(const std::vector<HeldPart>& parts) {
        coarsen();
        int bits = bits_;
        std::size_t samples = 0;
        FractionBits places;
        for (const HeldPart& part : parts) {
            places.add(part.places);
            bits = std::max(bits, part.bits);
            samples += part.samples;
        }
        Wide total = 0;
        for (const HeldPart& part : parts) total += Wide{part.total} << (bits - part.bits);
        if (!fits(total, bits)) return Refusal::too_large;
        const bool alone = parts.size() == 1 && parts[0].bits == bits;
        std::vector<ScoreSums> made;
        if (!alone && !join(parts, bits, made)) return Refusal::too_many;
        const std::vector<ScoreSums>& batch = alone ? parts[0].held : made;
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
        std::vector<ScoreSums> left;
        std::size_t samples = 0;
        std::int64_t above = 0, total = 0;
        std::size_t at = 0, kept = 0;
        tree_.scan([&](ScoreSums held) {
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
        std::vector<ScoreSums> batch;
        batch.reserve(samples.size());
        samples.joined([&](const ScoreSums& held) { batch.push_back(held); });
        Wide change = 0;
        double missing = 0;
        if (!all_held(batch, total, true, change, missing)) return false;
        remove_held(batch, change);
        uncount_ones(above, total);
        forget(samples.size(), static_cast<std::int64_t>(above), static_cast<std::int64_t>(total));
        return true;
    }

    // The same samples give the same bytes, whatever came and went before: the unit is the
    // coarsest that still holds every sample. held_bytes.hpp says what they are.
    std::string state() const {
        const int spare = spare_bits(), bits = bits_ - spare;
        std::string bytes;
        put_word(bytes, static_cast<std::uint64_t>(bits));
        put_word(bytes, samples_);
        put_word(bytes, static_cast<std::uint64_t>(total_ >> spare));
        put_word(bytes, tree_.distinct());
        put_scores(bytes, tree_, spare);
        if (bits && places_ != places_of_sums())
            for (int places = 1; places <= bits; ++places) put_word(bytes, places_.of(places));
        put_squares(bytes, tree_, squares_, spare);
        return bytes;
    }

    // Become what state() described; false, and unchanged, when the bytes describe nothing, or
    // not what is one-sided where that is asked for.
    bool restore(const std::string& bytes, bool one_sided = false) {
        HeldState state;
        if (!get_state(bytes, unit_, labelled(), one_sided, state)) return false;
        tree_.load(state.held);
        bits_ = state.bits;
        places_ = state.has_places ? state.places : places_of_sums();
        samples_ = state.samples;
        above_ = state.above;
        total_ = state.total;
        summed_ = state.summed;
        squares_.clear();
        if (!labelled()) return true;
        auto next = state.squares.begin();
        for (std::size_t i = 0; i < state.held.size(); ++i) {
            const ScoreSums& held = state.held[i];
            const bool known = next != state.squares.end() && next->first == i;
            squares_.become(none_of(held), held,
                            known ? (next++)->second : squares_.of(held, ones()), ones());
        }
        return true;
    }

private:
    using Base::bits_, Base::unit_, Base::samples_, Base::above_, Base::total_, Base::summed_,
        Base::places_, Base::tree_, Base::squares_;
    using Base::fits, Base::leaves_enough, Base::labelled, Base::places_of, Base::places_of_sums,
        Base::spare_bits, Base::refine, Base::coarsen_to_fit, Base::undo_unless_held, Base::forget;

    HeldSamples(const HeldSamples& other, Tree&& tree) : Base(other, std::move(tree)) {}

    // Hold a batch of distinct scores that fits and is measured in `bits` places.
    // `squares` are those of its scores, and needed where a sample does not weigh 1.
    Refusal hold(const std::vector<ScoreSums>& batch, std::size_t samples, std::int64_t total,
                 int bits, const FractionBits& places, const std::vector<Squares>& squares = {}) {
        if (samples_ + samples > most_of_a_score)
            for (const ScoreSums& held : batch)
                if (tree_.find(held.score).count + std::size_t{held.count} > most_of_a_score)
                    return Refusal::too_many;
        refine(bits);
        const std::vector<ScoreSums> before =
            found(squares.empty() ? std::vector<ScoreSums>{} : batch);
        std::size_t ties = 0;
        for (std::size_t i = 0; i < before.size(); ++i)
            ties += before[i].count + batch[i].count > 1 && !squares_.kept(batch[i].score);
        squares_.reserve(ties);
        undo_unless_held([&] {
            if (batch.size() >= tree_.distinct() / 4)
                load_with(batch, 1);
            else
                insert([&](auto&& visit) {
                    for (const ScoreSums& held : batch) visit(held);
                });
        });
        std::int64_t above = 0;
        for (const ScoreSums& held : batch) above += held.above;
        for (std::size_t i = 0; i < before.size(); ++i)
            squares_.add(before[i], batch[i], squares[i], ones());
        add_up(samples, above, total, places, before.empty());
        return Refusal::none;
    }

    void add_up(std::size_t samples, std::int64_t above, std::int64_t total,
                const FractionBits& places, bool all_ones = true) {
        if (all_ones && labelled())
            squares_.count({Wide{total - above} * ones().below, Wide{above} * ones().above});
        samples_ += samples;
        above_ += above;
        total_ += total;
        places_.add(places);
    }

    // Add what `all` shows in ascending order to what it is given.
    template <class All>
    void insert(All&& all) {
        const Wide summed = summed_;
        std::size_t added = 0;
        try {
            ScoreSums waiting[512];
            std::size_t used = 0;
            const auto add_waiting = [&] {
                const ScoreSums* done = waiting;
                try {
                    add_all(done, waiting + used);
                } catch (...) {
                    added += static_cast<std::size_t>(done - waiting);
                    throw;
                }
                added += used;
                used = 0;
            };
            all([&](const ScoreSums& held) {
                waiting[used++] = held;
                if (used == std::size(waiting)) add_waiting();
            });
            add_waiting();
        } catch (...) {
            all([&](const ScoreSums& held) {
                if (added == 0) return;
                tree_.remove(held, [](const ScoreSums&) { return true; });
                --added;
            });
            summed_ = summed;
            throw;
        }
    }

    void add_all(const ScoreSums*& done, const ScoreSums* last) {
        const auto seen = [&](const ScoreSums& before) { summed_ += growth(before, *done, 1); };
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
        const std::vector<ScoreSums> batch = joined(rows);
        Wide change = 0;
        if (!all_held(batch, total, one_sided, change, missing)) return Refusal::not_held;
        const std::vector<Squares> squares = squares_of(rows, batch, bits_);
        const std::vector<ScoreSums> before =
            found(squares.empty() ? std::vector<ScoreSums>{} : batch);
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
    bool all_held(const std::vector<ScoreSums>& batch, Wide total, bool one_sided, Wide& change,
                  double& missing) const {
        for (const ScoreSums& asked : batch) {
            const ScoreSums held = tree_.find(asked.score);
            missing = asked.score;
            if (!covers(held, asked, one_sided)) return false;
            change += growth(held, asked, -1);
        }
        return leaves_enough(change, total);
    }

    void remove_held(const std::vector<ScoreSums>& batch, Wide change) {
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
    void load_with(const std::vector<ScoreSums>& batch, int sign) {
        Wide summed = 0;
        const auto all = [&](auto&& visit) {
            const auto show = [&](const ScoreSums& held) {
                summed += size_of(held);
                visit(held);
            };
            auto next = batch.begin();
            tree_.scan([&](ScoreSums held) {
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
            std::vector<ScoreSums> held;
            held.reserve(tree_.distinct() + (sign > 0 ? batch.size() : 0));
            all([&](const ScoreSums& each) { held.push_back(each); });
            tree_.load(held);
        }
        summed_ = summed;
    }

    static ScoreSums none_of(const ScoreSums& held) { return {held.score, 0, 0, 0}; }

    // What is held of these scores.
    std::vector<ScoreSums> found(const std::vector<ScoreSums>& scores) const {
        std::vector<ScoreSums> all;
        all.reserve(scores.size());
        for (const ScoreSums& held : scores) all.push_back(tree_.find(held.score));
        return all;
    }

    // Of each score the sum over its rows, which are sorted and measured in `bits` places; none
    // where they and all that is held weigh 1.
    template <class Row>
    std::vector<Squares> squares_of(const std::vector<Row>& rows,
                                    const std::vector<ScoreSums>& batch, int bits) const {
        std::vector<Squares> sums;
        if (!labelled()) return sums;
        const Ones one = ones(bits);
        bool even = squares_.even();
        for (std::size_t i = 0; even && i < rows.size(); ++i)
            even = one.is(rows[i].below(), rows[i].above());
        if (even) return sums;
        sums.reserve(batch.size());
        auto row = rows.begin();
        for (const ScoreSums& held : batch) {
            sums.emplace_back();
            for (std::uint32_t i = 0; i < held.count; ++i, ++row)
                sums.back() += square_of(row->below(), row->above());
        }
        return sums;
    }

    // The same for what others held.
    std::vector<Squares> squares_of(const std::vector<HeldPart>& parts,
                                    const std::vector<ScoreSums>& batch, int bits) const {
        bool even = squares_.even();
        for (const HeldPart& part : parts) even &= part.squares.empty();
        if (!labelled() || even) return {};
        std::vector<Squares> sums(batch.size());
        for (const HeldPart& part : parts) {
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
        tree_.scan([&](const ScoreSums& held) {
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
        tree_.scan([&](const ScoreSums& held) {
            squares_.become(none_of(held), held, all[at++], ones());
        });
    }
};

using OnlineCut = HeldSamples<CutTree>;
using OnlineHull = HeldSamples<HullTree>;

}  // namespace limen
