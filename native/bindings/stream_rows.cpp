// SPDX-License-Identifier: Apache-2.0
//
// The rows of a stream, one after the other, up to the one that changes the threshold.
//
// A line about a stream is due after each change, so its rows cannot be added as one batch. Here
// they are added by the same calls as from Python, without a step of the interpreter for each.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/numbers.hpp"
#include "rows/text_rows.hpp"

namespace limen::bindings {

namespace {

// The columns of many rows. What is missing from all of them is an empty column; what is missing
// from one is nan, or no_label.
struct StreamColumns {
    nb::object ids, groups;  // lists
    std::optional<Array<double>> scores, weights, below, above;
    std::optional<Array<std::uint8_t>> labels, kinds, answers;
    std::optional<Array<std::int64_t>> times;

    // None where the row has no time.
    nb::object time(std::size_t row) const {
        if (!times) return nb::none();
        const std::int64_t word = times->data()[row];
        switch (kinds ? kinds->data()[row] : std::uint8_t{WrittenTime::whole}) {
            case WrittenTime::missing:
                return nb::none();
            case WrittenTime::real:
                return nb::float_(std::bit_cast<double>(word));
            default:
                return nb::int_(word);
        }
    }
};

nb::object weight_of(const StreamColumns& rows, std::size_t row) {
    const double weight = rows.weights ? rows.weights->data()[row] : 1;
    if (std::isnan(weight)) return nb::int_(1);
    return nb::float_(weight);
}

nb::object item(const nb::object& list, std::size_t row) {
    return nb::borrow(PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(row)));
}

// The arguments of one call.
class Arguments {
public:
    void push(nb::object value) { values_[count_++] = value.release().ptr(); }
    // The last arguments have these names.
    void call(const nb::object& method, const nb::tuple& names) {
        const std::size_t plain = static_cast<std::size_t>(count_) - names.size();
        PyObject* found = PyObject_Vectorcall(method.ptr(), values_, plain, names.ptr());
        if (!found) throw nb::python_error();
        Py_DECREF(found);
    }
    ~Arguments() {
        while (count_ > 0) Py_DECREF(values_[--count_]);
    }

private:
    PyObject* values_[6];
    int count_ = 0;
};

// Names of arguments, as the interpreter hands them over: those that are wanted.
nb::tuple names_of(std::initializer_list<std::pair<const char*, bool>> names) {
    nb::list found;
    for (const auto& [name, wanted] : names)
        if (wanted) found.append(nb::steal(PyUnicode_InternFromString(name)));
    return nb::tuple(found);
}

// What rows with both score and label are added to: a model, a window, or groups of them.
class CompleteRows {
public:
    CompleteRows(nb::handle memory, const StreamColumns& rows)
        : rows_(rows), update_(memory.attr("update")),
          names_(names_of({{"time", rows.times.has_value()}})) {}

    void operator()(std::size_t row) const {
        Arguments given;
        if (!rows_.groups.is_none()) given.push(item(rows_.groups, row));
        given.push(nb::float_(rows_.scores->data()[row]));
        if (rows_.below) {
            given.push(nb::float_(rows_.below->data()[row]));
            given.push(nb::float_(rows_.above->data()[row]));
        } else {
            given.push(nb::int_(rows_.labels->data()[row]));
            if (rows_.weights) given.push(weight_of(rows_, row));
        }
        if (rows_.times) given.push(rows_.time(row));
        given.call(update_, names_);
    }

private:
    const StreamColumns& rows_;
    nb::object update_;
    nb::tuple names_;
};

// What rows with a score, a label or both are added to: a ledger, which joins them by id.
class JoinedRows {
public:
    JoinedRows(nb::handle ledger, const StreamColumns& rows)
        : rows_(rows), ledger_(nb::borrow(ledger)), score_(ledger.attr("score")),
          label_(ledger.attr("label")), advance_(ledger.attr("advance")),
          names_(
              names_of({{"answer", rows.answers.has_value()}, {"group", !rows.groups.is_none()}})) {
    }

    void operator()(std::size_t row) const {
        const double score = rows_.scores->data()[row];
        const bool scored = !std::isnan(score), labelled = rows_.labels->data()[row] != no_label;
        const nb::object id = item(rows_.ids, row), time = rows_.time(row);
        const bool new_one = scored && labelled && !known(id);
        if (scored) {
            add_score(row, id, score, time);
        } else if (!time.is_none()) {
            Arguments given;
            given.push(time);
            given.call(advance_, {});
        }
        if (!labelled) return;
        try {
            add_label(row, id);
        } catch (nb::python_error&) {
            if (new_one) ledger_.attr("forget")(id);  // a score whose label cannot count
            throw;
        }
    }

private:
    bool known(const nb::object& id) const {
        const int found = PySequence_Contains(ledger_.ptr(), id.ptr());
        if (found < 0) throw nb::python_error();
        return found == 1;
    }
    void add_score(std::size_t row, const nb::object& id, double score,
                   const nb::object& time) const {
        Arguments given;
        given.push(id);
        given.push(nb::float_(score));
        given.push(time);
        given.push(weight_of(rows_, row));
        if (rows_.answers) given.push(nb::int_(rows_.answers->data()[row]));
        if (!rows_.groups.is_none()) given.push(item(rows_.groups, row));
        given.call(score_, names_);
    }
    void add_label(std::size_t row, const nb::object& id) const {
        Arguments given;
        given.push(id);
        if (rows_.below) {
            given.push(nb::float_(rows_.below->data()[row]));
            given.push(nb::float_(rows_.above->data()[row]));
        } else {
            given.push(nb::int_(rows_.labels->data()[row]));
        }
        given.call(label_, {});
    }

    const StreamColumns& rows_;
    nb::object ledger_, score_, label_, advance_;
    nb::tuple names_;
};

// The threshold of a model that holds enough samples; nothing where it does not.
std::optional<double> threshold_of(nb::handle model, Py_ssize_t at_least) {
    if (at_least > 0) {
        const Py_ssize_t samples = PyObject_Size(model.ptr());
        if (samples < 0) throw nb::python_error();
        if (samples < at_least) return std::nullopt;
    }
    return nb::cast<double>(model.attr("threshold"));
}

bool same(const std::optional<double>& one, const std::optional<double>& other) {
    if (!one || !other) return one.has_value() == other.has_value();
    return *one == *other || (std::isnan(*one) && std::isnan(*other));
}

template <class Add>
std::size_t add_until(const Add& add, std::size_t begin, std::size_t end, nb::handle model,
                      Py_ssize_t at_least, nb::object& refusal) {
    const bool watching = !model.is_none();
    const auto before = watching ? threshold_of(model, at_least) : std::nullopt;
    for (std::size_t row = begin; row < end; ++row) {
        try {
            add(row);
        } catch (nb::python_error& error) {
            if (!(error.matches(PyExc_TypeError) || error.matches(PyExc_ValueError) ||
                  error.matches(PyExc_OverflowError)))
                throw;
            refusal = nb::borrow(error.value());
            return row;
        }
        if (watching && !same(before, threshold_of(model, at_least))) return row + 1;
    }
    return end;
}

// Add rows to a memory, from `begin` up to `end` or to the one after which the threshold of a model
// is another one; how many are done then, and the refusal of the next one or None. Without a model
// no threshold is looked at.
nb::tuple add_rows(nb::handle memory, nb::dict columns, std::size_t begin, std::size_t end,
                   nb::object model, Py_ssize_t at_least) {
    const auto column = [&](const char* name) { return nb::object(columns.attr("get")(name)); };
    const auto as = [&]<class T>(std::optional<Array<T>>& found, const char* name) {
        if (const nb::object given = column(name); !given.is_none())
            found = nb::cast<Array<T>>(given);
        if (found && found->size() < end) throw nb::index_error();
    };
    StreamColumns rows;
    rows.ids = column("ids"), rows.groups = column("groups");
    as(rows.scores, "scores"), as(rows.labels, "labels"), as(rows.weights, "weights");
    as(rows.below, "below"), as(rows.above, "above");
    as(rows.times, "times"), as(rows.kinds, "kinds"), as(rows.answers, "answers");
    nb::object refusal = nb::none();
    const std::size_t done =
        rows.ids.is_none()
            ? add_until(CompleteRows(memory, rows), begin, end, model, at_least, refusal)
            : add_until(JoinedRows(memory, rows), begin, end, model, at_least, refusal);
    return nb::make_tuple(done, refusal);
}

}  // namespace

void bind_stream_rows(nb::module_& module) {
    module.def("add_rows", &add_rows, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
               nb::arg());
}

}  // namespace limen::bindings
