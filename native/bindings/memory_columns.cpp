// SPDX-License-Identifier: Apache-2.0
//
// Memories in columns: many calls at once, and all that is known, to be stored and to come back.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "ids.hpp"
#include "memories.hpp"
#include "shared_methods.hpp"

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
            const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
            const Moment moment = to_moment(time.ptr(), dated, place);
            if (i > 0 && moment.calendar != last.calendar)
                refuse(PyExc_TypeError, place + " is " + shown(time.ptr()) +
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
    Trouble measure_weights(const Keeper& keeper, const Column& weights, const std::uint8_t* labels,
                            std::size_t n) {
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

    Trouble measure_losses(const Keeper& keeper, const Column (&losses)[2], std::size_t n) {
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
    Trouble all_one(const Keeper& keeper, const Column& weights, std::size_t n) {
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
    Batch(const Keeper& keeper, nb::tuple given, std::size_t n) : keeper_(keeper) {
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
            scores_[i] += 0.0;
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

    const Keeper& keeper_;
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
                  SharedCalendar Keeper::*calendar = &Keeper::times) {
    Asked asked{nothing_changed};
    asked.calendar = calendar;
    asked.size = batch.amounts.size;
    nb::object time, id;
    attempt<ObjectLock::LongGuard>(window, moment, asked, act, [&](const Done& done) {
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
    const Keeper& keeper = keeper_of(window);
    Batch batch(keeper, samples, nb::len(nb::object(samples[0])));
    const MomentColumn moments(times[0], keeper.must_be_dated(), "times");
    moments.show(batch.rows);
    auto counted = new_array<std::uint8_t>(batch.rows.rows);
    attempt_many(window, batch, moments, moments.moment(),
                 [&](auto& memory) { return memory.update_many(batch.rows, counted.data()); });
    return counted;
}

Flags score_many(nb::handle self, nb::handle ids, nb::tuple samples, nb::tuple times,
                 Array<std::int8_t> answers, Array<std::uint32_t> groups) {
    LedgerBook& ledger = checked<LedgerBook>(self);
    const Keeper& keeper = keeper_of(ledger);
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
            if (!memory.has_score(names.data()[i])) return Done{MemoryRefusal::no_time};
        return memory.score_many(batch.rows, given.data(), nullptr);
    });
    return given;
}

Flags label_many(nb::handle self, nb::handle ids, nb::tuple outcomes, nb::tuple as_of) {
    LedgerBook& ledger = checked<LedgerBook>(self);
    const Keeper& keeper = keeper_of(ledger);
    const IdColumn names(ids);
    Batch batch(keeper, outcomes, names.size());
    const MomentColumn moments(as_of[0], keeper.must_be_dated(&Keeper::as_of), "as_of");
    batch.rows.ids = names.data();
    moments.show(batch.rows);
    auto scored = new_array<std::uint8_t>(batch.rows.rows);
    attempt_many(
        ledger, batch, moments, moments.moment(),
        [&](auto& memory) { return memory.label_many(batch.rows, scored.data()); }, &Keeper::as_of);
    return scored;
}

// ---- all that is known, out and in ----

nb::object whole_of(Wide units) {
    const nb::object high = nb::int_(static_cast<std::int64_t>(units >> 64)) << nb::int_(64);
    return high | nb::int_(static_cast<std::uint64_t>(units));
}

Wide wide_of(nb::handle number) {
    const nb::object high = number >> nb::int_(64);
    const auto low = PyLong_AsUnsignedLongLongMask(number.ptr());
    if (low == ~0ULL && PyErr_Occurred()) throw nb::python_error();
    return (Wide{nb::cast<std::int64_t>(high)} << 64) | Wide{static_cast<std::uint64_t>(low)};
}

// A whole number where a double is one, so that 1 and 1.0 are stored alike.
Time plain(const Time& time) {
    const double number = time.number();
    if (!time.real || std::fabs(number) >= 0x1p53 || number != std::floor(number)) return time;
    return Time::whole(static_cast<std::int64_t>(number));
}

template <class T>
void put_column(nb::dict& parts, const char* name, std::vector<T>&& values) {
    if (values.empty())
        parts[name] = nb::none();
    else
        parts[name] = array_of(std::move(values));
}

template <class T>
void take_column(nb::dict parts, const char* name, std::vector<T>& values) {
    const nb::object given = parts[name];
    if (given.is_none()) return;
    const auto array = nb::cast<Array<T>>(given, false);
    values.assign(array.data(), array.data() + array.shape(0));
}

template <class Visit>
void for_each_column(MemoryColumns& columns, Visit&& visit) {
    visit("states", columns.states);
    visit("answers", columns.answers);
    visit("labels", columns.labels);
    visit("scores", columns.scores);
    visit("times", columns.times);
    visit("time_kinds", columns.time_kinds);
    visit("firsts", columns.firsts);
    visit("seconds", columns.seconds);
    visit("bits", columns.bits);
    visit("places", columns.places);
    visit("turns", columns.turns);
    visit("as_of", columns.as_of);
    visit("as_of_kinds", columns.as_of_kinds);
}

template <class Visit>
void for_each_count(MemoryColumns& columns, Visit&& visit) {
    visit("expired", columns.expired);
    visit("refused", columns.refused);
    visit("count", columns.count);
}

void plain_times(std::vector<std::int64_t>& words, std::vector<std::uint8_t>& kinds) {
    for (std::size_t i = 0; i < words.size() && i < kinds.size(); ++i) {
        if (kinds[i] != 1) continue;
        const Time time = plain({words[i], true});
        words[i] = time.bits;
        kinds[i] = time.real;
    }
}

template <class Visit>
void for_each_time(MemoryColumns& columns, Visit&& visit) {
    visit("newest", columns.newest);
    visit("origin", columns.origin);
    visit("dropped", columns.dropped);
}

// The ids as numbers, or a kind, the number or the size in bytes of each, and all bytes.
nb::object ids_out(MemoryColumns& columns) {
    const auto of_kind = [&](std::uint8_t kind) {
        return std::all_of(columns.id_kinds.begin(), columns.id_kinds.end(),
                           [=](std::uint8_t found) { return found == kind; });
    };
    if (of_kind(Id::number_kind)) return nb::cast(array_of(std::move(columns.id_numbers)));
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < columns.known(); ++i) {
        if (columns.id_kinds[i] != Id::number_kind)
            columns.id_numbers[i] = static_cast<std::int64_t>(columns.id_ends[i] - begin);
        begin = columns.id_ends[i];
    }
    const nb::bytes bytes(columns.id_bytes.data(), columns.id_bytes.size());
    return nb::make_tuple(array_of(std::move(columns.id_kinds)),
                          array_of(std::move(columns.id_numbers)), bytes);
}

[[noreturn]] void refuse_ids() { refuse(PyExc_ValueError, "ids that do not fill their place"); }

// Raise unless this is how an id of Python is written.
void require_id(const Id& id) {
    const nb::object made = from_id(id);
    const OneId again(made.ptr());
    const Id& same = again;
    if (same.kind != id.kind || same.size != id.size ||
        !std::equal(id.bytes, id.bytes + id.size, same.bytes))
        refuse(PyExc_ValueError, "an id that no object has");
}

// The same for texts, all at once: UTF-8, of which none begins in the middle of a letter.
void require_texts(const MemoryColumns& columns, std::size_t first, std::size_t last) {
    const auto begin_of = [&](std::size_t i) {
        return columns.id_bytes.data() + (i == 0 ? 0 : columns.id_ends[i - 1]);
    };
    const char *begin = begin_of(first), *end = begin_of(last);
    const nb::object decoded = nb::steal(
        PyUnicode_DecodeUTF8(begin, static_cast<Py_ssize_t>(end - begin), "surrogatepass"));
    if (!decoded.is_valid()) throw nb::python_error();
    for (std::size_t i = first; i < last; ++i)
        if (begin_of(i) != begin_of(i + 1) && (*begin_of(i) & 0xc0) == 0x80)
            refuse(PyExc_ValueError, "an id that no object has");
}

void require_ids(const MemoryColumns& columns) {
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < columns.known(); begin = columns.id_ends[i++]) {
        const std::uint8_t kind = columns.id_kinds[i];
        if (kind == text_id && (i == 0 || columns.id_kinds[i - 1] != text_id)) {
            std::size_t last = i;
            while (last < columns.known() && columns.id_kinds[last] == text_id) ++last;
            require_texts(columns, i, last);
        }
        if (kind > bytes_id)
            require_id(Id::of(kind, columns.id_bytes.data() + begin, columns.id_ends[i] - begin));
    }
}

void ids_in(nb::handle given, MemoryColumns& columns) {
    Array<std::int64_t> numbers;
    if (nb::try_cast(given, numbers, false)) {
        columns.id_numbers.assign(numbers.data(), numbers.data() + numbers.shape(0));
        columns.id_kinds.assign(columns.id_numbers.size(), Id::number_kind);
        columns.id_ends.assign(columns.id_numbers.size(), 0);
        return;
    }
    const auto parts = nb::cast<nb::tuple>(given);
    const auto kinds = nb::cast<Array<std::uint8_t>>(parts[0], false);
    numbers = nb::cast<Array<std::int64_t>>(parts[1], false);
    const auto bytes = nb::cast<nb::bytes>(parts[2]);
    if (kinds.shape(0) != numbers.shape(0)) refuse_ids();
    columns.id_bytes.assign(bytes.c_str(), bytes.size());
    columns.id_kinds.assign(kinds.data(), kinds.data() + kinds.shape(0));
    columns.id_numbers.assign(numbers.data(), numbers.data() + numbers.shape(0));
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < columns.known(); ++i) {
        if (columns.id_kinds[i] != Id::number_kind) {
            const auto size = static_cast<std::uint64_t>(std::exchange(columns.id_numbers[i], 0));
            if (size > bytes.size() - end) refuse_ids();
            end += size;
        }
        columns.id_ends.push_back(end);
    }
    if (end != bytes.size()) refuse_ids();
    require_ids(columns);
}

// Those whose samples are not among the entries store what the model holds.
bool is_refilled(const Keeper& keeper) {
    return keeper.settings().keep == Keep::last_n || keeper.settings().keep == Keep::last_period;
}

// All that a window or a ledger knows, copied while it is locked.
struct Copied {
    MemoryColumns columns;
    std::vector<std::uint32_t> groups;  // those that are in use, of those that were asked for
    std::vector<std::string> states;    // of their models
    Calendar calendar, as_of;
    bool complete = false;  // else another group came into use meanwhile
};

Copied copied(const Keeper& keeper, const std::vector<std::uint32_t>& order) {
    Copied out;
    ObjectLock::LongGuard guard(keeper.lock());
    keeper.with([&](const auto& memory) {
        out.complete = memory.used(order, out.groups);
        if (out.complete) out.columns = memory.columns(out.groups);
    });
    for (const std::uint32_t of : out.groups)
        if (!is_refilled(keeper)) out.states.push_back(keeper.state(of));
    out.calendar = keeper.times;
    out.as_of = keeper.as_of;
    return out;
}

nb::dict described(Copied& copied) {
    MemoryColumns& columns = copied.columns;
    const Calendar calendar = copied.calendar;
    plain_times(columns.times, columns.time_kinds);
    plain_times(columns.as_of, columns.as_of_kinds);
    nb::dict parts;
    parts["calendar"] = nb::int_(static_cast<int>(calendar));
    parts["as_of_calendar"] = nb::int_(static_cast<int>(copied.as_of));
    for_each_time(columns, [&](const char* name, const std::optional<Time>& time) {
        parts[name] = time ? from_time(plain(*time), calendar) : nb::none();
    });
    for_each_count(columns,
                   [&](const char* name, std::uint64_t count) { parts[name] = nb::int_(count); });
    parts["counts"] = columns.counts ? nb::object(nb::int_(int{*columns.counts})) : nb::none();
    parts["cost"] = whole_of(columns.cost);
    parts["ever"] = whole_of(columns.ever);
    parts["spent"] = columns.spent;
    parts["spent_at"] = columns.spent_at;
    nb::list bases;
    for (const auto& base : columns.bases)
        bases.append(base ? nb::object(nb::int_(*base)) : nb::none());
    parts["bases"] = nb::tuple(bases);
    parts["ids"] = ids_out(columns);
    for_each_column(columns, [&](const char* name, auto& values) {
        put_column(parts, name, std::move(values));
    });
    const auto bytes = [](const std::string& state) {
        return nb::bytes(state.data(), state.size());
    };
    parts["state"] =
        copied.states.empty() ? nb::object(nb::none()) : nb::object(bytes(copied.states[0]));
    return parts;
}

nb::dict columns_out(Window& window) {
    Copied all = copied(keeper_of(window), {0});
    return described(all);
}

// The same of a ledger over groups: `order` are their numbers in the order in which they are to
// be stored, and `used` becomes which of them are. None where another one came meanwhile.
nb::object grouped_columns(nb::handle self, Array<std::uint32_t> order) {
    const Keeper& keeper = keeper_of(checked<LedgerBook>(self));
    Copied all = copied(keeper, {order.data(), order.data() + order.shape(0)});
    if (!all.complete) return nb::none();
    nb::list states;
    for (std::size_t i = 1; i < all.states.size(); ++i)
        states.append(nb::bytes(all.states[i].data(), all.states[i].size()));
    std::vector<std::uint32_t> entries = std::move(all.columns.groups);
    nb::dict parts = described(all);
    put_column(parts, "groups", std::vector<std::int64_t>(entries.begin(), entries.end()));
    parts["used"] = array_of(std::move(all.groups));
    parts["group_states"] = nb::tuple(states);
    return parts;
}

Calendar calendar_of(nb::handle given) {
    const int number = nb::cast<int>(given);
    if (number < 0 || number > static_cast<int>(Calendar::utc))
        refuse(PyExc_ValueError, "no such calendar");
    return static_cast<Calendar>(number);
}

// For an object that knows nothing yet; after an error it is good for nothing.
void columns_in(nb::handle self, nb::dict parts) {
    Window& window = checked<Window>(self);
    Keeper& keeper = keeper_of(window);
    MemoryColumns columns;
    const Calendar calendar = calendar_of(parts["calendar"]);
    const Calendar as_of = calendar_of(parts["as_of_calendar"]);
    for_each_time(columns, [&](const char* name, std::optional<Time>& time) {
        const nb::object given = parts[name];
        if (given.is_none()) return;
        const Moment moment = to_moment(given.ptr(), std::nullopt, name);
        if (moment.calendar != calendar) refuse(PyExc_ValueError, "times of two kinds");
        time = moment.time;
    });
    for_each_count(columns, [&](const char* name, std::uint64_t& count) {
        count = nb::cast<std::uint64_t>(parts[name]);
    });
    if (const nb::object counts = parts["counts"]; !counts.is_none())
        columns.counts = nb::cast<int>(counts) != 0;
    columns.cost = wide_of(parts["cost"]);
    columns.ever = wide_of(parts["ever"]);
    columns.spent = nb::cast<double>(parts["spent"]);
    columns.spent_at = nb::cast<double>(parts["spent_at"]);
    for (nb::handle base : nb::cast<nb::tuple>(parts["bases"])) {
        columns.bases.emplace_back();
        if (!base.is_none()) columns.bases.back() = nb::cast<std::int64_t>(base);
    }
    ids_in(parts["ids"], columns);
    for_each_column(columns,
                    [&](const char* name, auto& values) { take_column(parts, name, values); });
    std::vector<std::string> states;
    const auto take_state = [&](nb::handle given) {
        const auto bytes = nb::cast<nb::bytes>(given);
        states.emplace_back(bytes.c_str(), bytes.size());
    };
    if (!is_refilled(keeper)) take_state(parts["state"]);
    if (keeper.grouped()) {
        std::vector<std::int64_t> entries;
        take_column(parts, "groups", entries);
        for (const std::int64_t of : entries) {
            if (of < 0 || of >= static_cast<std::int64_t>(keeper.groups()))
                refuse(PyExc_ValueError, "a group that does not exist");
            columns.groups.push_back(static_cast<std::uint32_t>(of));
        }
        for (nb::handle state : nb::cast<nb::tuple>(parts["group_states"])) take_state(state);
        if (states.size() != (is_refilled(keeper) ? 0 : keeper.groups()))
            refuse(PyExc_ValueError, "groups without samples of their own");
    }
    bool sound = true;
    {
        ObjectLock::LongGuard guard(keeper.lock());
        for (std::uint32_t of = 0; of < states.size(); ++of)
            sound = sound && keeper.restore(of, states[of]);
        sound = sound && keeper.with([&](auto& memory) { return memory.restore(columns); });
        keeper.times = calendar;
        keeper.as_of = as_of;
    }
    if (!sound) refuse(PyExc_ValueError, "entries that no such memory has");
}

// The ids of columns, one after the other.
template <class Visit>
void for_each_id(const MemoryColumns& columns, Visit&& visit) {
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < columns.known(); ++i) {
        const std::uint64_t end = columns.id_ends[i];
        visit(Id{columns.id_kinds[i], columns.id_numbers[i], columns.id_bytes.data() + begin,
                 static_cast<std::uint32_t>(end - begin)});
        begin = end;
    }
}

bool knows(const Keeper& keeper, const Id& id) {
    ObjectLock::Guard guard(keeper.lock());
    return keeper.with([&](const auto& memory) { return memory.contains(id); });
}

// Know what another one of the same settings knows too. That one is nobody else's, and needs no
// lock. `into` are our numbers of its groups.
void merge_memories(nb::handle self, nb::handle other, Array<std::uint32_t> into) {
    Window& window = checked<Window>(self);
    const Keeper& from = keeper_of(checked<Window>(other));
    Asked asked{nothing_changed};
    nb::object shared;
    const Moment moment{{}, from.times};
    const std::vector<std::uint32_t> groups(into.data(), into.data() + into.shape(0));
    attempt<ObjectLock::LongGuard>(
        window, from.times == Calendar::unknown ? nullptr : &moment, asked,
        [&](auto& memory) {
            return from.with([&](const auto& others) {
                if constexpr (std::is_same_v<decltype(others), decltype(std::as_const(memory))>)
                    return memory.merge(others, groups);
                return Done{MemoryRefusal::not_alike};
            });
        },
        [&](const Done& done) {
            if (done.refusal != MemoryRefusal::same_id) return;
            for_each_id(from.with([](const auto& memory) { return memory.columns(); }),
                        [&](const Id& id) {
                            if (!shared.is_valid() && knows(*window.keeper, id))
                                shared = from_id(id);
                        });
            asked.id = shared.ptr();
        });
}

nb::list ids_of(LedgerBook& ledger) {
    Keeper& keeper = keeper_of(ledger);
    MemoryColumns columns;
    {
        ObjectLock::LongGuard guard(keeper.lock());
        columns = keeper.with([](const auto& memory) { return memory.columns(); });
    }
    nb::list ids;
    for_each_id(columns, [&](const Id& id) { ids.append(from_id(id)); });
    return ids;
}

}  // namespace

// In windows.cpp and ledgers.cpp.
void bind_windows(nb::module_& module, nb::class_<Window>& window);
nb::class_<LedgerBook, Window> bind_ledger(nb::module_& module);

void bind_memories(nb::module_& module) {
    nb::class_<Window> window(module, "Window");
    window.def("_update_many", &update_many)
        .def("_columns", method<Window>(&columns_out))
        .def("_restore", &columns_in)
        .def("_merge", &merge_memories);
    bind_windows(module, window);
    bind_ledger(module)
        .def("_score_many", &score_many)
        .def("_label_many", &label_many)
        .def("_grouped_columns", &grouped_columns)
        .def("_ids", method<LedgerBook>(&ids_of));
}

}  // namespace limen::bindings
