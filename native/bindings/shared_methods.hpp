// SPDX-License-Identifier: Apache-2.0
//
// The methods that models share, as nanobind binds them.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/models.hpp"
#include "samples/samples.hpp"

namespace limen::bindings {

// Whether samples may be sorted before they are added: where nothing depends on their order.
template <class T>
concept Sortable = requires(T& model, LabelledScores& given) {
    model.held.add_many(given, 0);
};

// Measure rows by `make` and hold or forget them, without the interpreter. They are made and sorted
// before the object is taken; where its places changed meanwhile, they are made again.
template <class Row, class T, class Make>
void apply_rows(T& model, const TurnedScores& scores, bool adding, Make&& make) {
    Trouble trouble;
    Denial denial;
    std::vector<Row> rows;
    const Measure seen = model.locked([](const Measure& held) { return held; });
    int bits = seen.bits();
    {
        nb::gil_scoped_release released;
        trouble = make(seen, bits, rows);
        if (Sortable<T> && adding && !trouble) sort_rows(rows);
    }
    const auto work = [&] {
        if (model.owner) {
            denial = model.owned();
            return;
        }
        const auto make_again = [&] {
            rows.clear();
            bits = model.held.bits();
            trouble = make(model.held, bits, rows);
        };
        if (model.held.bits() != seen.bits()) make_again();
        if (trouble.kind == Trouble::too_large && model.held.coarsen()) make_again();
        double missing = 0;
        Refusal refusal = Refusal::none;
        if (!trouble) {
            refusal = adding ? model.held.add_many(rows, bits)
                             : model.held.remove_many(rows, bits, T::one_sided, missing);
        } else if (trouble.kind == Trouble::too_large && !adding) {
            refusal = Refusal::not_held;
            missing = scores.data()[trouble.index];
        }
        if (refusal != Refusal::none)
            denial = model.denial(refusal, missing, bits, size_of(rows, model.held.unit(), bits));
        rows = {};  // which takes a while as well
    };
    {
        const auto guard = model.for_long(rows.size());
        work();
    }
    const char* outcome = adding ? nothing_added : nothing_changed;
    if (denial) refuse(denial, model.held.unit(), outcome);
    if (trouble) refuse(trouble, model.held.unit(), outcome);
}

// Samples that weigh 1 each, the common batch, in less memory and time; false when it takes a row
// for each of them to see what is to be done or said.
template <class T>
bool apply_scores(T& model, const TurnedScores& scores, const Array<std::uint8_t>& labels,
                  bool adding) {
    std::optional<LabelledScores> given;
    {
        nb::gil_scoped_release released;
        given = labelled_scores(scores.data(), labels.data(), scores.size());
        if (!given) return false;
        given->sort();
    }
    const auto guard = model.for_long(scores.size());
    if (model.owner) return false;  // which apply_rows refuses
    const int bits = model.held.bits();
    const bool done = measure_ones(*given, model.costs, model.held, bits) &&
                      (adding ? model.held.add_many(*given, bits) == Refusal::none
                              : model.held.remove_many(*given));
    given.reset();  // which takes a while as well
    return done;
}

template <class T>
void labelled_many(nb::handle self, Array<double> given, Array<std::uint8_t> labels,
                   nb::object weights, bool adding) {
    T& model = checked<T>(self);
    const TurnedScores scores(given, model.direction);
    const OwnedColumn owned(weights, "weights");
    // Where the order of arrival matters, rows stay in it.
    if constexpr (Sortable<T>)
        if (owned.column.ones() && apply_scores(model, scores, labels, adding)) return;
    apply_rows<SignedRow>(model, scores, adding, [&](const Measure& in, int& bits, auto& rows) {
        return labelled_rows(scores.data(), labels.data(), scores.size(), owned.column, model.costs,
                             in, bits, rows);
    });
}

// The threshold of every cut, and the losses on its two sides, in units, summed up by `sum`.
template <class T, class Sum>
Columns<double, double> curve_columns(T& model, const LossScale& scale, Sum&& sum) {
    std::vector<double> thresholds, losses;
    std::vector<Wide> units;
    const int bits = model.locked_for_long(all_scores, [&](const auto& held) {
        thresholds.reserve(held.distinct() + 1);
        units.reserve(held.distinct() + 1);
        held.curve([&](const Losses& missed, const Gap& cut) {
            thresholds.push_back(threshold_of(cut));
            units.push_back(sum(missed));
        });
        return held.bits();
    });
    losses.reserve(units.size());
    for (const Wide& loss : units) losses.push_back(scale(loss, bits));
    return nb::make_tuple(array_of(std::move(thresholds)), array_of(std::move(losses)));
}

template <class T>
Columns<double, double> curve(T& model) {
    return curve_columns(model, model.scale,
                         [](const Losses& missed) { return Wide{missed.below} + missed.above; });
}

// Parts are taken one at a time, so no two objects are ever locked together.
template <class T>
void merge(T& model, nb::list others) {
    std::vector<typename decltype(model.held)::Part> parts;
    double size = 0;
    int bits = 0;
    std::size_t scores = 0;
    for (nb::handle other : others) {
        T& from = checked<T>(other);
        const auto guard = from.for_long(all_scores);
        parts.push_back(from.held.part());
        scores += from.held.distinct();
        bits = std::max(bits, parts.back().bits);
        size += static_cast<double>(parts.back().total) *
                unit_size(from.held.unit(), parts.back().bits);
    }
    Denial denial;
    {
        const auto guard = model.for_long(scores);
        bits = std::max(bits, model.held.bits());
        if (model.owner)
            denial = model.owned();
        else if (const Refusal refusal = model.held.merge(parts); refusal != Refusal::none)
            denial = model.denial(refusal, 0, bits, size);
    }
    if (denial) refuse(denial, model.held.unit(), nothing_added);
}

template <class T>
nb::bytes state(T& model) {
    const std::string bytes =
        model.locked_for_long(all_scores, [](const auto& held) { return held.state(); });
    return nb::bytes(bytes.data(), bytes.size());
}

template <class T>
void restore(T& model, nb::bytes given) {
    const std::string bytes(given.c_str(), given.size());
    bool sound = true;
    const char* owner = model.locked_for_long(bytes.size() / 32, [&](auto& held) {
        if (!model.owner) sound = held.restore(bytes, T::one_sided);
        return model.owner;
    });
    if (owner) refuse_owned("model", owner, nothing_changed);
    if (!sound)
        refuse(PyExc_ValueError,
               "these bytes do not describe held samples; they were cut short or changed. "
               "Nothing was changed.");
}

// Let an empty object of the same terms hold the same. False where the samples belong to a memory,
// which may measure them in ways of its own.
template <class T>
bool copy_to(T& model, T& other) {
    using Samples = decltype(model.held);
    std::optional<Samples> copied =
        model.locked_for_long(all_scores, [&](const auto& held) -> std::optional<Samples> {
            if (model.owner) return std::nullopt;
            return held.copy();
        });
    if (copied) other.locked_for_long(0, [&](auto& held) { held = std::move(*copied); });
    return copied.has_value();
}

// A method without arguments.
template <class T, class Body>
auto method(Body body) {
    return [body](nb::handle self) { return body(checked<T>(self)); };
}

// The same for one that only looks at the samples held.
template <class T, class Body>
auto with_held(Body body) {
    return [body](nb::handle self) { return checked<T>(self).locked(body); };
}

// What every model needs to be copied, stored, merged and looked into.
template <class T>
void bind_stored(nb::class_<T>& type) {
    type.def_prop_rw("_given", method<T>([](T& model) { return model.given; }),
                     [](nb::handle self, nb::dict given) {
                         T& model = checked<T>(self);
                         model.given = given;
                         model.direction = Direction(given);
                     })
        .def("_state", method<T>([](T& model) { return state(model); }))
        .def("_merge", [](nb::handle self, nb::list others) { merge(checked<T>(self), others); })
        .def("_copy_to",
             [](nb::handle self, nb::handle other) {
                 return copy_to(checked<T>(self), checked<T>(other));
             })
        .def("_restore", [](nb::handle self, nb::bytes bytes) { restore(checked<T>(self), bytes); })
        .def("_check", with_held<T>([](const auto& held) { held.check(); }))
        .def("_memory", with_held<T>([](const auto& held) { return held.memory() + sizeof(T); }))
        .def("_distinct", with_held<T>([](const auto& held) { return held.distinct(); }));
}

// The same for those that memories can take over.
template <class T>
void bind_shared(nb::class_<T>& type) {
    bind_stored(type);
    type.def_prop_ro("_group", method<T>([](T& model) { return model.group; }));
}

template <class T>
void bind_labelled(nb::class_<T>& type) {
    type.def("_many", &labelled_many<T>, nb::arg(), nb::arg().noconvert(), nb::arg().none(),
             nb::arg());
}

}  // namespace limen::bindings
