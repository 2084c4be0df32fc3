// SPDX-License-Identifier: Apache-2.0
//
// Memories in columns: all that is known, to be stored, to come back and to be merged.

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

namespace limen::bindings {

namespace {

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
    columns.id_ends.reserve(columns.known());
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
bool is_refilled(const MemoryHandle& keeper) {
    const MemorySettings& settings = keeper.settings();
    return settings.keep == Keep::last_n || settings.keep == Keep::last_period ||
           (settings.keep == Keep::all && !settings.correctable);
}

// All that a window or a ledger knows, copied while it is locked.
struct Copied {
    MemoryColumns columns;
    std::vector<std::uint32_t> groups;  // those that are in use, of those that were asked for
    std::vector<std::string> states;    // of their models
    Calendar calendar, as_of;
    bool complete = false;  // else another group came into use meanwhile
};

Copied copied(MemoryHandle& keeper, const std::vector<std::uint32_t>& order) {
    Copied out;
    const MemoryHandle::Work work(keeper, all_scores);
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
nb::typed<nb::object, std::optional<nb::dict>> grouped_columns(nb::handle self,
                                                               Array<std::uint32_t> order) {
    MemoryHandle& keeper = keeper_of(checked<LedgerObject>(self));
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

// What is known of every score, in no order and so without a sort.
// Scores, answers, labels (2: none), times, as_of and whether there is one, weights, groups.
nb::tuple scored_columns(LedgerObject& ledger) {
    std::vector<double> scores, weights;
    std::vector<std::uint8_t> answers, labels, dated;
    std::vector<std::int64_t> times, as_of;
    std::vector<std::uint32_t> groups;
    MemoryHandle& keeper = keeper_of(ledger);
    {
        const MemoryHandle::Work work(keeper, all_scores);
        keeper.with([&](const auto& memory) {
            memory.each_score([&](const Entry& entry, const Amount& amount, std::int64_t when) {
                const bool held = !entry.named() && entry.state == EntryState::held;
                scores.push_back(keeper.direction().turn(entry.score));
                answers.push_back(entry.answer);
                labels.push_back(entry.labelled || held ? entry.label : std::uint8_t{2});
                times.push_back(entry.time);
                as_of.push_back(when);
                dated.push_back(entry.as_of);
                weights.push_back(
                    amount.bits == Amount::real
                        ? std::bit_cast<double>(amount.first)
                        : std::ldexp(static_cast<double>(amount.first), -amount.bits));
                groups.push_back(entry.group);
            });
        });
    }
    return nb::make_tuple(array_of(std::move(scores)), array_of(std::move(answers)),
                          array_of(std::move(labels)), array_of(std::move(times)),
                          array_of(std::move(as_of)), array_of(std::move(dated)),
                          array_of(std::move(weights)), array_of(std::move(groups)));
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
    MemoryHandle& keeper = keeper_of(window);
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
    const bool stated = !is_refilled(keeper);
    if (stated)
        take_state(parts["state"]);
    else if (!nb::object(parts["state"]).is_none())
        refuse(PyExc_ValueError, "samples that are in the entries already");
    if (keeper.grouped()) {
        std::vector<std::int64_t> entries;
        take_column(parts, "groups", entries);
        for (const std::int64_t of : entries) {
            if (of < 0 || of >= static_cast<std::int64_t>(keeper.groups()))
                refuse(PyExc_ValueError, "a group that does not exist");
            columns.groups.push_back(static_cast<std::uint32_t>(of));
        }
        for (std::size_t i = 0; i < columns.rows(); ++i)
            if (columns.states[i] != static_cast<std::uint8_t>(EntryState::waiting) &&
                (i >= columns.groups.size() || columns.groups[i] == 0))
                refuse(PyExc_ValueError, "a score that belongs to no group");
        for (nb::handle state : nb::cast<nb::tuple>(parts["group_states"])) take_state(state);
        if (states.size() != (stated ? keeper.groups() : 0))
            refuse(PyExc_ValueError, "groups without samples of their own");
    }
    bool sound = true;
    {
        ObjectLock::LongGuard guard(keeper.lock());
        for (std::uint32_t of = 0; of < states.size(); ++of)
            sound = sound && keeper.restore(of, states[of]);
        sound =
            sound && keeper.with([&](auto& memory) { return memory.restore(columns, !stated); });
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

bool knows(const MemoryHandle& keeper, const Id& id) {
    ObjectLock::Guard guard(keeper.lock());
    return keeper.with([&](const auto& memory) { return memory.contains(id); });
}

// Know what another one of the same settings knows too. That one is nobody else's, and needs no
// lock. `into` are our numbers of its groups.
void merge_memories(nb::handle self, nb::handle other, Array<std::uint32_t> into) {
    Window& window = checked<Window>(self);
    const MemoryHandle& from = keeper_of(checked<Window>(other));
    Request asked{nothing_changed};
    asked.steps = all_scores;
    nb::object shared;
    const Moment moment{{}, from.times};
    const std::vector<std::uint32_t> groups(into.data(), into.data() + into.shape(0));
    attempt<MemoryHandle::Work>(
        window, from.times == Calendar::unknown ? nullptr : &moment, asked,
        [&](auto& memory) {
            const Calendar own = window.keeper->as_of, theirs = from.as_of;
            if (own != theirs && own != Calendar::unknown && theirs != Calendar::unknown)
                return Result{MemoryRefusal::other_as_of};
            const Result done = from.with([&](const auto& others) {
                if constexpr (std::is_same_v<decltype(others), decltype(std::as_const(memory))>)
                    return memory.merge(others, groups);
                return Result{MemoryRefusal::not_alike};
            });
            if (done.refusal == MemoryRefusal::none && own == Calendar::unknown)
                window.keeper->as_of = theirs;
            return done;
        },
        [&](const Result& done) {
            if (done.refusal != MemoryRefusal::same_id) return;
            for_each_id(from.with([](const auto& memory) { return memory.columns(); }),
                        [&](const Id& id) {
                            if (!shared.is_valid() && knows(*window.keeper, id))
                                shared = from_id(id);
                        });
            asked.id = shared.ptr();
        });
}

nb::list ids_of(LedgerObject& ledger) {
    MemoryHandle& keeper = keeper_of(ledger);
    MemoryColumns columns;
    {
        const MemoryHandle::Work work(keeper, all_scores);
        columns = keeper.with([](const auto& memory) { return memory.columns(); });
    }
    nb::list ids;
    for_each_id(columns, [&](const Id& id) { ids.append(from_id(id)); });
    return ids;
}

}  // namespace

// In memory_batches.cpp, windows.cpp and ledgers.cpp.
void bind_batches(nb::class_<Window>& window, nb::class_<LedgerObject, Window>& ledger);
void bind_windows(nb::module_& module, nb::class_<Window>& window);
nb::class_<LedgerObject, Window> bind_ledger(nb::module_& module);

void bind_memories(nb::module_& module) {
    nb::class_<Window> window(module, "Window");
    window.def("_columns", method<Window>(&columns_out))
        .def("_restore", &columns_in)
        .def("_merge", &merge_memories);
    bind_windows(module, window);
    nb::class_<LedgerObject, Window> ledger = bind_ledger(module);
    ledger.def("_grouped_columns", &grouped_columns)
        .def("_scored", method<LedgerObject>(&scored_columns))
        .def("_ids", method<LedgerObject>(&ids_of));
    bind_batches(window, ledger);
}

}  // namespace limen::bindings
