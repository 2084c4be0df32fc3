// SPDX-License-Identifier: Apache-2.0
//
// Whole columns without a model: the cheapest cut, and labels of any number type.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/numbers.hpp"
#include "bindings/refusals.hpp"
#include "core/cut.hpp"

namespace limen::bindings {

namespace {

template <class Select>
Optimum selected(const Unit& unit, const LossScale& scale, Select&& select) {
    Selection found;
    {
        nb::gil_scoped_release released;
        found = select(Measure(unit));
    }
    if (found.trouble) refuse(found.trouble, unit, "");
    return optimum(found.cut, scale(found.loss, found.bits));
}

Optimum select_threshold(Array<double> scores, Array<std::uint8_t> labels, nb::object weights,
                         std::int64_t false_positive, std::int64_t false_negative,
                         std::int64_t unit_numerator, std::int64_t unit_denominator,
                         std::int64_t loss_numerator, std::int64_t loss_denominator) {
    const OwnedColumn owned(weights, "weights");
    return selected(unit_of(unit_numerator, unit_denominator), {loss_numerator, loss_denominator},
                    [&](const Measure& in) {
                        return select_labelled(scores.data(), labels.data(), scores.shape(0),
                                               owned.column, {false_positive, false_negative}, in);
                    });
}

// The answer for arrays as NumPy has them most often, without converting, copying or explaining
// anything; None where there is something to convert or to explain.
template <class Label, class Given = Label>
nb::object select_arrays_of(nb::handle scores, nb::handle labels, const Costs& costs,
                            const Unit& unit, const LossScale& scale) {
    Array<double> xs;
    Array<Given> ys;
    if (!nb::try_cast(labels, ys, false) || !nb::try_cast(scores, xs, false) ||
        xs.shape(0) != ys.shape(0) ||
        reinterpret_cast<std::uintptr_t>(xs.data()) % alignof(double) ||
        reinterpret_cast<std::uintptr_t>(ys.data()) % alignof(Label))
        return nb::none();
    std::optional<Selection> found;
    {
        nb::gil_scoped_release released;
        found = select_unread(xs.data(), reinterpret_cast<const Label*>(ys.data()), xs.shape(0),
                              costs, Measure(unit));
    }
    if (!found) return nb::none();
    return optimum(found->cut, scale(found->loss, found->bits));
}

nb::typed<nb::object, std::optional<Optimum>> select_arrays(
    nb::handle scores, nb::handle labels, std::int64_t false_positive, std::int64_t false_negative,
    std::int64_t unit_numerator, std::int64_t unit_denominator, std::int64_t loss_numerator,
    std::int64_t loss_denominator) {
    const Costs costs{false_positive, false_negative};
    const Unit unit = unit_of(unit_numerator, unit_denominator);
    const LossScale scale{loss_numerator, loss_denominator};
    nb::object found = select_arrays_of<std::int64_t>(scores, labels, costs, unit, scale);
    if (found.is_none())
        found = select_arrays_of<std::uint8_t, bool>(scores, labels, costs, unit, scale);
    if (found.is_none()) found = select_arrays_of<std::uint8_t>(scores, labels, costs, unit, scale);
    return found;
}

Optimum select_losses(Array<double> scores, nb::object below, nb::object above,
                      std::int64_t unit_numerator, std::int64_t unit_denominator,
                      std::int64_t loss_numerator, std::int64_t loss_denominator) {
    const OwnedColumn low(below, "below"), high(above, "above");
    const Column columns[2] = {low.column, high.column};
    return selected(
        unit_of(unit_numerator, unit_denominator), {loss_numerator, loss_denominator},
        [&](const Measure& in) { return select_any(scores.data(), scores.shape(0), columns, in); });
}

// 0/1 bytes, and the place of the first value that is neither (n when there is none).
template <class T>
nb::typed<nb::tuple, NewArray<std::uint8_t>, std::size_t> labels_from(Array<T> labels) {
    const std::size_t n = labels.shape(0);
    auto bytes = new_array<std::uint8_t>(n);
    std::uint8_t* out = bytes.data();
    const T* in = labels.data();
    std::size_t bad = 0;
    {
        nb::gil_scoped_release released;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = in[i] == T(1);
            wrong += !(in[i] == T(0)) & !(in[i] == T(1));
        }
        // Bounded, because another thread may have put the labels right meanwhile.
        bad = wrong ? 0 : n;
        while (bad < n && (in[bad] == T(0) || in[bad] == T(1))) ++bad;
    }
    return nb::make_tuple(bytes, bad);
}

}  // namespace

void bind_columns(nb::module_& module) {
    module.def("select_threshold", &select_threshold, nb::arg(), nb::arg(), nb::arg().none(),
               nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    module.def("select_arrays", &select_arrays);
    module.def("select_losses", &select_losses);
    module.def("threshold_of", [](std::optional<double> lower, std::optional<double> upper) {
        return threshold_of(
            {lower.value_or(0), upper.value_or(0), lower.has_value(), upper.has_value()});
    });
    module.def("labels_from", &labels_from<std::int8_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<std::uint8_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<std::int32_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<std::int64_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<float>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<double>, nb::arg().noconvert());
}

}  // namespace limen::bindings
