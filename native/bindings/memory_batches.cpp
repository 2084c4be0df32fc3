// SPDX-License-Identifier: Apache-2.0
//
// Memories in columns: many samples, scores or labels in one call.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/ids.hpp"
#include "bindings/memories.hpp"
#include "bindings/shared_methods.hpp"
#include "bindings/trials.hpp"

namespace limen::bindings {

namespace {

// ---- times ----

// Times of a batch: a list, or the number of a calendar and an array.
struct MomentColumn {
    std::vector<std::int64_t> words;
    std::vector<std::uint8_t> real;  // empty: none is
    Moment last;                     // one of them, for its calendar

    MomentColumn(nb::handle given, std::optional<bool> dated, const char* name) {
        if (given.is_none()) return;
        if (nb::isinstance<nb::tuple>(given))
            read_array(nb::borrow<nb::tuple>(given));
        else
            read_list(nb::borrow<nb::list>(given), dated, name);
    }

    bool empty() const { return words.empty(); }
    const Moment* moment() const { return empty() ? nullptr : &last; }
    Time at(std::size_t i) const { return {words[i], !real.empty() && real[i] != 0}; }
    void show(BatchColumns& rows) const {
        if (empty()) return;
        rows.times = words.data();
        rows.times_real = real.empty() ? nullptr : real.data();
    }

private:
    void read_array(nb::tuple given) {
        last.calendar = nb::cast<bool>(given[0]) ? Calendar::naive : Calendar::numbers;
        Array<std::int64_t> whole;
        if (nb::try_cast(given[1], whole, false)) {
            words.assign(whole.data(), whole.data() + whole.shape(0));
            return;
        }
        const auto numbers = nb::cast<Array<double>>(given[1], false);
        words.reserve(numbers.shape(0));
        for (std::size_t i = 0; i < numbers.shape(0); ++i)
            words.push_back(std::bit_cast<std::int64_t>(numbers.data()[i]));
        real.assign(words.size(), 1);
    }

    void read_list(nb::list given, std::optional<bool> dated, const char* name) {
        words.reserve(given.size());
        for (std::size_t i = 0; i < given.size(); ++i) {
            const nb::object time = given[i];
            const auto place = static_cast<std::ptrdiff_t>(i);
            const Moment moment = to_moment(time.ptr(), dated, name, place);
            if (i > 0 && moment.calendar != last.calendar)
                refuse(PyExc_TypeError, named(name, place) + " is " + shown(time.ptr()) +
                                            ", but earlier ones are of another kind. Give all "
                                            "datetimes with a time zone, or all without." +
                                            nothing_changed);
            last = moment;
            dated = moment.calendar != Calendar::numbers;
            words.push_back(moment.time.bits);
            real.push_back(moment.time.real);
        }
    }
};

// ---- numbers ----

// Amounts of a batch, measured without the interpreter.
struct AmountColumn {
    std::vector<std::int64_t> firsts, seconds;
    std::vector<std::uint8_t> bits;
    double size = 0;  // about the sum of what they cost

    void show(BatchColumns& rows) const {
        if (!firsts.empty()) rows.firsts = firsts.data();
        if (!seconds.empty()) rows.seconds = seconds.data();
        if (!bits.empty()) rows.bits = bits.data();
    }

    // `labels` may be null: the cost of a mistake that is not known yet is that of label 0.
    Trouble measure_weights(const MemoryHandle& keeper, const Column& weights,
                            const std::uint8_t* labels, std::size_t n) {
        const Costs& costs = keeper.settings().costs;
        size = static_cast<double>(n) *
               static_cast<double>(std::max(costs.false_positive, costs.false_negative));
        if (weights.ones()) return all_one(keeper, weights, n);
        reserve(n, false);
        double largest = 0;
        const Trouble trouble = weights.with([&](const auto* values) -> Trouble {
            for (std::size_t i = 0; i < n; ++i) {
                const auto value = values[i];
                const double real = static_cast<double>(value);
                if (!(real >= 0))
                    return {real < 0 ? Trouble::negative : Trouble::not_finite, i, weights.name,
                            real};
                if (std::isinf(real)) return {Trouble::not_finite, i, weights.name, real};
                largest = std::max(largest, real);
                const std::int64_t cost =
                    labels && labels[i] ? costs.false_negative : costs.false_positive;
                const Refusal refusal = measure_amount(value, keeper.unit(), cost,
                                                       keeper.settings().keep, firsts[i], bits[i]);
                if (refusal != Refusal::none) return refused(refusal, weights.name, i, real);
            }
            return {};
        });
        size *= largest;
        return trouble;
    }

    Trouble measure_losses(const MemoryHandle& keeper, const Column (&losses)[2], std::size_t n) {
        reserve(n, true);
        std::vector<std::uint8_t> above_bits(n);
        std::vector<std::int64_t>* const words[2] = {&firsts, &seconds};
        std::vector<std::uint8_t>* const places[2] = {&bits, &above_bits};
        for (int side = 0; side < 2; ++side) {
            const Column& column = losses[side];
            const Trouble trouble = column.with([&](const auto* values) -> Trouble {
                for (std::size_t i = 0; i < n; ++i) {
                    const auto value = values[i];
                    const double real = static_cast<double>(value);
                    if (!std::isfinite(real)) return {Trouble::not_finite, i, column.name, real};
                    size += std::fabs(real);
                    const Refusal refusal =
                        measure_amount(value, keeper.unit(), 1, keeper.settings().keep,
                                       (*words[side])[i], (*places[side])[i]);
                    if (refusal != Refusal::none) return refused(refusal, column.name, i, real);
                }
                return {};
            });
            if (trouble) return trouble;
        }
        for (std::size_t i = 0; i < n; ++i) {
            Amount amount;
            if (!align(firsts[i], bits[i], seconds[i], above_bits[i], amount))
                return refused(Refusal::too_large, losses[0].name, i, 0);
            firsts[i] = amount.first;
            seconds[i] = amount.second;
            bits[i] = amount.bits;
        }
        return {};
    }

private:
    void reserve(std::size_t n, bool two) {
        firsts.resize(n);
        bits.resize(n);
        if (two) seconds.resize(n);
    }
    Trouble all_one(const MemoryHandle& keeper, const Column& weights, std::size_t n) {
        if (n > 0 && keeper.one_refusal != Refusal::none)
            return refused(keeper.one_refusal, weights.name, 0, 1);
        if (keeper.one == Amount{}) return {};
        firsts.assign(n, keeper.one.first);
        bits.assign(n, keeper.one.bits);
        return {};
    }
    Trouble refused(Refusal refusal, const char* name, std::size_t i, double value) const {
        if (refusal == Refusal::lost) return {Trouble::lost, i, name, value};
        return {Trouble::too_large, i, name, value, std::max(size, std::fabs(value)), 0};
    }
};

// The columns of a batch, as Python gave them: scores, labels, weights or losses below, losses
// above; each may be None. They are copied, because another thread may change them meanwhile.
class Batch {
public:
    Batch(const MemoryHandle& keeper, nb::tuple given, std::size_t n) : keeper_(keeper) {
        const nb::object scores = given[0], labels = given[1];
        if (!scores.is_none()) scores_given_ = nb::cast<Array<double>>(scores, false);
        if (!labels.is_none()) labels_given_ = nb::cast<Array<std::uint8_t>>(labels, false);
        const OwnedColumn first(given[2], labelled() ? "weights" : "below");
        const OwnedColumn second(given[3], "above");
        rows.rows = n;
        Trouble trouble;
        {
            nb::gil_scoped_release released;
            trouble = read(!scores.is_none(), !labels.is_none(), first.column, second.column);
        }
        if (trouble) refuse(trouble, keeper.unit(), nothing_added);
        amounts.show(rows);
    }

    BatchColumns rows;
    AmountColumn amounts;

private:
    bool labelled() const { return keeper_.settings().labelled; }

    Trouble read(bool scored, bool known, const Column& first, const Column& second) {
        const std::size_t n = rows.rows;
        if (scored) {
            scores_.assign(scores_given_.data(), scores_given_.data() + n);
            rows.scores = scores_.data();
        }
        for (std::size_t i = 0; i < scores_.size(); ++i) {
            if (scores_[i] != scores_[i]) return {Trouble::nan_score, i, "scores"};
            scores_[i] = keeper_.direction().turn(scores_[i]) + 0.0;
        }
        for (std::size_t i = 0; known && i < n; ++i)
            labels_.push_back(labels_given_.data()[i] != 0);
        if (known) rows.labels = labels_.data();
        if (labelled()) {
            if (scored) return amounts.measure_weights(keeper_, first, rows.labels, n);
        } else if (!second.ones()) {
            const Column losses[2] = {first, second};
            return amounts.measure_losses(keeper_, losses, n);
        }
        return {};
    }

    const MemoryHandle& keeper_;
    Array<double> scores_given_;
    Array<std::uint8_t> labels_given_;
    std::vector<double> scores_;
    std::vector<std::uint8_t> labels_;
};

// ---- many calls at once ----

using Flags = NewArray<std::uint8_t>;  // one byte each

// Act on all rows, without the interpreter. What is refused is shown by its row.
template <class Act>
void attempt_many(Window& window, const Batch& batch, const MomentColumn& moments,
                  const Moment* moment, Act&& act,
                  SharedCalendar MemoryHandle::*calendar = &MemoryHandle::times) {
    Request asked{nothing_changed};
    asked.calendar = calendar;
    asked.size = batch.amounts.size;
    asked.steps = batch.rows.rows;
    nb::object time, id;
    attempt<MemoryHandle::Work>(window, moment, asked, act, [&](const Result& done) {
        const BatchColumns& rows = batch.rows;
        if (!moments.empty()) time = from_time(moments.at(done.row), moments.last.calendar);
        asked.time = time.is_valid() ? time.ptr() : Py_None;
        if (rows.ids) id = from_id(rows.ids[done.row]);
        asked.id = id.ptr();
        asked.score = rows.scores ? rows.scores[done.row] : 0;
        asked.amount = rows.amount(done.row);
        if (rows.groups) asked.number = rows.groups[done.row];
    });
}

Flags update_many(nb::handle self, nb::tuple samples, nb::tuple times) {
    Window& window = checked<Window>(self);
    const MemoryHandle& keeper = keeper_of(window);
    Batch batch(keeper, samples, nb::len(nb::object(samples[0])));
    const MomentColumn moments(times[0], keeper.must_be_dated(), "times");
    const MemorySettings& settings = keeper.settings();
    if (moments.empty() && batch.rows.rows &&
        (settings.keep == Keep::last_period || (settings.keep == Keep::fading && settings.by_time)))
        refuse(PyExc_TypeError, std::string("times are missing: this window goes by them. Give one "
                                            "for each sample.") +
                                    nothing_changed);
    moments.show(batch.rows);
    auto counted = new_array<std::uint8_t>(batch.rows.rows);
    attempt_many(window, batch, moments, moments.moment(),
                 [&](auto& memory) { return memory.update_many(batch.rows, counted.data()); });
    return counted;
}

Flags score_many(nb::handle self, nb::handle ids, nb::tuple samples, nb::tuple times,
                 Array<std::int8_t> answers, Array<std::uint32_t> groups) {
    LedgerObject& ledger = checked<LedgerObject>(self);
    const MemoryHandle& keeper = keeper_of(ledger);
    const IdColumn names(ids);
    Batch batch(keeper, samples, names.size());
    const MomentColumn moments(times[0], keeper.must_be_dated(), "times");
    const std::size_t n = batch.rows.rows;
    batch.rows.ids = names.data();
    moments.show(batch.rows);
    std::vector<std::int8_t> decided(answers.data(), answers.data() + answers.shape(0));
    if (!decided.empty()) batch.rows.answers = decided.data();
    std::vector<std::uint32_t> numbers(groups.data(), groups.data() + groups.shape(0));
    if (!numbers.empty()) batch.rows.groups = numbers.data();
    auto given = new_array<std::uint8_t>(n);
    const bool missing = moments.empty() && n > 0 && keeper.must_be_dated().value_or(false);
    const Moment step{{}, Calendar::numbers};
    const bool steps = moments.empty() && n > 0 && !missing;
    attempt_many(ledger, batch, moments, steps ? &step : moments.moment(), [&](auto& memory) {
        for (std::size_t i = 0; missing && i < n; ++i)
            if (!memory.has_score(names.data()[i])) return Result{MemoryRefusal::no_time};
        if (!ledger.trials.empty())
            return score_many_on_trial(ledger, memory, batch.rows, given.data());
        return memory.score_many(batch.rows, given.data(), nullptr);
    });
    return given;
}

Flags label_many(nb::handle self, nb::handle ids, nb::tuple outcomes, nb::tuple as_of) {
    LedgerObject& ledger = checked<LedgerObject>(self);
    const MemoryHandle& keeper = keeper_of(ledger);
    const IdColumn names(ids);
    Batch batch(keeper, outcomes, names.size());
    const MomentColumn moments(as_of[0], keeper.must_be_dated(&MemoryHandle::as_of), "as_of");
    batch.rows.ids = names.data();
    moments.show(batch.rows);
    auto scored = new_array<std::uint8_t>(batch.rows.rows);
    attempt_many(
        ledger, batch, moments, moments.moment(),
        [&](auto& memory) {
            return label_many_on_trial(ledger, memory, names.data(), batch.rows.rows, [&] {
                return memory.label_many(batch.rows, scored.data());
            });
        },
        &MemoryHandle::as_of);
    return scored;
}

}  // namespace

void bind_batches(nb::class_<Window>& window, nb::class_<LedgerObject, Window>& ledger) {
    window.def("_update_many", &update_many);
    ledger.def("_score_many", &score_many).def("_label_many", &label_many);
}

}  // namespace limen::bindings
