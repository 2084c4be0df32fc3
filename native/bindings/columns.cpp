// SPDX-License-Identifier: Apache-2.0
//
// Whole columns without a model: the cheapest cut, and labels of any number type.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "../cut.hpp"
#include "arrays.hpp"
#include "models.hpp"
#include "refusals.hpp"

namespace limen::bindings {

namespace {

template <class Select>
nb::tuple selected(const Model<CutTree>& model, Select&& select) {
    Selection found;
    {
        nb::gil_scoped_release released;
        found = select();
    }
    if (found.trouble) refuse(found.trouble, model.held.unit(), "");
    const SelectedCut& cut = found.cut;
    return optimum({cut.best, cut.lower, cut.upper, cut.has_lower, cut.has_upper},
                   model.scale(found.loss, found.bits));
}

// The model lends its costs and unit; what it holds takes no part.
nb::tuple select_threshold(Array<double> scores, Array<std::uint8_t> labels, nb::object weights,
                           const Threshold& model) {
    const OwnedColumn owned(weights, "weights");
    return selected(model, [&] {
        return select_labelled(scores.data(), labels.data(), scores.shape(0), owned.column,
                               model.costs, model.held);
    });
}

nb::tuple select_losses(Array<double> scores, nb::object below, nb::object above,
                        const AnyCut& model) {
    const OwnedColumn low(below, "below"), high(above, "above");
    const Column columns[2] = {low.column, high.column};
    return selected(model, [&] {
        return select_any(scores.data(), scores.shape(0), columns, model.held);
    });
}

// 0/1 bytes, and the place of the first value that is neither (n when there is none).
template <class T>
nb::tuple labels_from(Array<T> labels) {
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
               nb::arg());
    module.def("select_losses", &select_losses);
    module.def("threshold_of", [](std::optional<double> lower, std::optional<double> upper) {
        return threshold_of({0, lower.value_or(0), upper.value_or(0), lower.has_value(),
                             upper.has_value()});
    });
    module.def("labels_from", &labels_from<std::int8_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<std::uint8_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<std::int32_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<std::int64_t>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<float>, nb::arg().noconvert());
    module.def("labels_from", &labels_from<double>, nb::arg().noconvert());
}

}  // namespace limen::bindings
