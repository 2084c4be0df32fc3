// SPDX-License-Identifier: Apache-2.0
//
// The weights of both labels in buckets of scores, in bounded memory: a cut for any costs, and by
// how much it can at most be worse than the best one.
//
// A bucket is a run of scores that share their leading bits. `up` is what its samples cost above
// the cut at a cost of 1, `low` what they cost below it, and `highest` how many they are. Every
// border of buckets is exact, in whatever order samples come; inside, at most all that costs above
// the cut lies below it. When there are too many buckets, all become twice as wide.
//
// add, remove    O(log n), and O(n) when the buckets become wider, at most 64 times
// best           O(n)

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/cut.hpp"
#include "core/run_bytes.hpp"
#include "core/run_tree.hpp"
#include "samples/held_samples.hpp"
#include "samples/samples.hpp"

namespace limen {

class ClassGrid : public Measure {
    using Tree = RunTree<>;

public:
    ClassGrid(Unit unit, std::size_t capacity) : Measure(unit), capacity_(capacity) {}

    void set_costs(std::int64_t, std::int64_t) {}

    std::size_t samples() const { return samples_; }
    std::size_t distinct() const { return tree_.size(); }
    std::size_t memory() const { return sizeof *this + tree_.memory(); }
    std::int64_t total() const { return total_; }
    bool coarsen() { return false; }

    ScoreSums find(double score) const {
        const auto place = place_of(score + 0.0);
        if (place.before_all()) return {score, 0, 0, 0};
        const Run run = tree_.at(place);
        return {score, run.low, run.up, 1};
    }

    // The cut that is offered at these costs: its loss, and by how much that can at most be above
    // the loss of the best one.
    struct Offer {
        Cut cut;
        Wide loss = 0, bound = 0;
    };
    Offer best(std::int64_t false_positive, std::int64_t false_negative) const {
        Offer offer;
        Wide sum = 0, best = 0, most = 0, above = 0;
        bool open = true;  // the offered cut has no score above it so far
        tree_.scan([&](const Run& run) {
            if (open) offer.cut.upper = run.first, offer.cut.has_upper = true, open = false;
            const Wide price = Wide{false_positive} * run.up;
            if (!run.single()) most = std::max(most, sum + price);
            above += price;
            sum += price - Wide{false_negative} * run.low;
            most = std::max(most, sum);
            if (sum < best) return;
            best = sum;
            offer.cut.lower = run.last;
            offer.cut.has_lower = true;
            offer.cut.has_upper = false;
            open = true;
        });
        offer.loss = above - best;
        offer.bound = most - best;
        return offer;
    }

    Refusal add(double score, const Losses& losses, int bits, bool = false) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        if (!fits(Wide{losses.below} + losses.above, bits)) return Refusal::too_large;
        score += 0.0;
        if (tree_.size() >= capacity_) widen(capacity_ * 3 / 4);
        auto place = place_of(score);
        const bool is_new = place.before_all();
        if (is_new) tree_.reserve(place = tree_.place(score));
        refine(bits);
        if (is_new) {
            tree_.insert(place, {score, score, losses.above, losses.below, 1, 0});
        } else {
            Run run = tree_.at(place);
            run.first = std::min(run.first, score);
            run.last = std::max(run.last, score);
            run.up += losses.above;
            run.low += losses.below;
            ++run.highest;
            tree_.put(place, run);
        }
        ++samples_;
        total_ += losses.below + losses.above;
        return Refusal::none;
    }

    // Refused where it is certain that there is no such sample.
    Refusal remove(double score, const Losses& losses, int bits, bool) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        score += 0.0;
        const auto place = place_of(score);
        if (place.before_all()) return Refusal::not_held;
        if (!fits(0, bits)) return Refusal::too_large;
        Run run = times(tree_.at(place), std::int64_t{1} << (bits > bits_ ? bits - bits_ : 0));
        run.up -= losses.above;
        run.low -= losses.below;
        --run.highest;
        if (score < run.first || score > run.last || run.up < 0 || run.low < 0 ||
            (run.highest == 0) != (run.up == 0 && run.low == 0))
            return Refusal::not_held;
        refine(bits);
        if (run.highest)
            tree_.put(place, run);
        else
            tree_.erase(place);
        total_ -= losses.below + losses.above;
        if (--samples_ == 0) *this = ClassGrid(unit_, capacity_);
        return Refusal::none;
    }

    // All rows, or on an error none: what fails, fails on a copy.
    template <class Row>
    Refusal add_many(const std::vector<Row>& rows, int bits) {
        return all_or_none(rows, [&](ClassGrid& changed, const Row& row) {
            return changed.add(score_of(row.order), {row.below(), row.above()}, bits);
        });
    }
    template <class Row>
    Refusal remove_many(const std::vector<Row>& rows, int bits, bool one_sided, double& missing) {
        return all_or_none(rows, [&](ClassGrid& changed, const Row& row) {
            missing = score_of(row.order);
            return changed.remove(missing, {row.below(), row.above()}, bits, one_sided);
        });
    }

    ClassGrid copy() const {
        ClassGrid other(unit_, capacity_);
        other.bits_ = bits_;
        other.samples_ = samples_;
        other.total_ = total_;
        other.shift_ = shift_;
        other.tree_ = Tree::of(runs());
        return other;
    }

    struct Part {
        std::vector<Run> runs;
        int shift = 0;
        std::size_t samples = 0;
        std::int64_t total = 0;
        int bits = 0;
    };
    Part part() const { return {runs(), shift_, samples_, total_, bits_}; }

    // The samples of others besides those held: the widest buckets count.
    Refusal merge(const std::vector<Part>& parts) {
        ClassGrid all = copy();
        for (const Part& part : parts) {
            const int bits = std::max(all.bits_, part.bits);
            const std::int64_t factor = std::int64_t{1} << (bits - part.bits);
            if (!all.fits(Wide{part.total} << (bits - part.bits), bits)) return Refusal::too_large;
            all.refine(bits);
            std::vector<Run> both = all.runs(), theirs = part.runs;
            for (Run& run : theirs) both.push_back(times(run, factor));
            std::sort(both.begin(), both.end(),
                      [](const Run& a, const Run& b) { return a.first < b.first; });
            all.shift_ = std::max(all.shift_, part.shift);
            join(both, all.shift_);
            while (both.size() > capacity_) join(both, ++all.shift_);
            all.tree_ = Tree::of(both);
            all.samples_ += part.samples;
            all.total_ += part.total * factor;
        }
        *this = std::move(all);
        return Refusal::none;
    }

    std::string state() const {
        std::string bytes;
        put_word(bytes, static_cast<std::uint64_t>(bits_));
        put_word(bytes, samples_);
        put_word(bytes, static_cast<std::uint64_t>(total_));
        put_word(bytes, static_cast<std::uint64_t>(shift_));
        put_runs(bytes, tree_);
        return bytes;
    }

    bool restore(const std::string& bytes, bool = false) {
        if (bytes.size() % 8 != 0 || bytes.size() < 8 * head) return false;
        const std::uint64_t bits = get_word(bytes, 0), shift = get_word(bytes, 3);
        const std::size_t words = bytes.size() / 8 - head;
        if (bits > (unit_.automatic ? finest_bits : 0) || shift > 64 || words % words_of_a_run ||
            words / words_of_a_run > capacity_)
            return false;
        ClassGrid read(unit_, capacity_);
        read.bits_ = static_cast<int>(bits);
        read.samples_ = get_word(bytes, 1);
        read.total_ = static_cast<std::int64_t>(get_word(bytes, 2));
        read.shift_ = static_cast<int>(shift);
        const std::vector<Run> runs = get_runs(bytes, head, words / words_of_a_run);
        if (!read.plausible(runs)) return false;
        read.tree_ = Tree::of(runs);
        *this = std::move(read);
        return true;
    }

    void check() const {
        tree_.check();
        if (!plausible(runs())) throw std::logic_error("the buckets cannot be");
        if (tree_.size() > capacity_) throw std::logic_error("there are too many buckets");
    }

private:
    static constexpr std::size_t head = 4;  // the words before the runs in state()

    static bool together(double first, double second, int shift) {
        return shift > 63 || ordered_bits(first) >> shift == ordered_bits(second) >> shift;
    }

    // The bucket of a score; before_all() where there is none.
    Tree::Place place_of(double score) const {
        const auto place = tree_.place(score);
        if (!place.before_all() && together(tree_.last_at(place), score, shift_)) return place;
        const auto next = tree_.next(place);
        if (!next.before_all() && together(tree_.last_at(next), score, shift_)) return next;
        return {};
    }

    bool fits(Wide more, int bits) const {
        const int finer = bits > bits_ ? bits - bits_ : 0;
        return (Wide{total_} << finer) + more < most_units / 4;
    }
    static Run times(Run run, std::int64_t factor) {
        run.up *= factor;
        run.low *= factor;
        return run;
    }
    void refine(int bits) {
        if (bits <= bits_) return;
        const std::int64_t factor = std::int64_t{1} << (bits - bits_);
        tree_.transform([=](const Run& run) { return times(run, factor); });
        total_ *= factor;
        bits_ = bits;
    }

    std::vector<Run> runs() const {
        std::vector<Run> all;
        all.reserve(tree_.size());
        tree_.scan([&](const Run& run) { all.push_back(run); });
        return all;
    }
    void widen(std::size_t most) {
        std::vector<Run> all = runs();
        int shift = shift_;
        while (all.size() > most) join(all, ++shift);
        tree_.load(all);
        shift_ = shift;
    }
    static void join(std::vector<Run>& runs, int shift) {
        std::size_t used = 0;
        for (const Run& run : runs) {
            if (!used || !together(runs[used - 1].first, run.first, shift)) {
                runs[used++] = run;
                continue;
            }
            Run& into = runs[used - 1];
            into.last = std::max(into.last, run.last);
            into.up += run.up;
            into.low += run.low;
            into.highest += run.highest;
        }
        runs.resize(used);
    }

    bool plausible(const std::vector<Run>& runs) const {
        if (!in_order(runs)) return false;
        Wide total = 0, samples = 0;
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const Run& run = runs[i];
            if (run.up < 0 || run.low < 0 || run.highest < 1 || run.lowest != 0 ||
                (run.up == 0 && run.low == 0) || !together(run.first, run.last, shift_) ||
                (i && together(runs[i - 1].last, run.first, shift_)))
                return false;
            total += Wide{run.up} + run.low;
            samples += run.highest;
        }
        return total == total_ && samples == static_cast<Wide>(samples_) &&
               total < most_units / 4 && (samples_ > 0 || (bits_ == 0 && shift_ == 0));
    }

    template <class Row, class Change>
    Refusal all_or_none(const std::vector<Row>& rows, Change&& change) {
        ClassGrid changed = copy();
        for (const Row& row : rows)
            if (const Refusal refusal = change(changed, row); refusal != Refusal::none)
                return refusal;
        *this = std::move(changed);
        return Refusal::none;
    }

    Tree tree_;
    std::size_t capacity_;
    std::size_t samples_ = 0;
    std::int64_t total_ = 0;
    int shift_ = 0;
};

}  // namespace limen
