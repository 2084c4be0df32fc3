// SPDX-License-Identifier: Apache-2.0
//
// The texts of files and streams in, columns of values out.

#include "rows/text_rows.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"

namespace limen::bindings {

namespace {

// The bytes of a text. JSON has escapes for half characters, which have none: they equal nothing.
std::string_view bytes_of(nb::handle text) {
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size))
        return {bytes, static_cast<std::size_t>(size)};
    PyErr_Clear();
    return "\xff";
}

std::optional<std::string> class_of(std::optional<nb::str> positive) {
    if (!positive) return std::nullopt;
    const std::string_view bytes = bytes_of(*positive);
    return std::string(bytes == "\xff" ? "\xfe" : bytes);
}

// The numbers of a list of texts, None for an empty one; None for all where one is no number, or
// nan.
Any numbers_of(nb::list texts) {
    nb::list found;
    for (nb::handle text : texts) {
        const std::string_view bytes = bytes_of(text);
        const auto number = number_of(bytes);
        if (bytes.empty())
            found.append(nb::none());
        else if (number && !std::isnan(*number))
            found.append(*number);
        else
            return nb::none();
    }
    return found;
}

template <class T>
NewArray<T> given_away(Grown<T>& column) {
    const std::size_t size = column.size();
    T* values = column.release();
    nb::capsule owner(values, [](void* p) noexcept { std::free(p); });
    return NewArray<T>(values, {size}, owner);
}

// Of CSV by the places of the columns, of NDJSON by their keys.
void make_rows(TextRows* self, nb::list keys, std::vector<std::size_t> places, char delimiter,
               std::size_t width, bool labelled, bool weighted, bool grouped, std::size_t costs,
               std::optional<nb::str> positive, double finest, bool comma) {
    RowParts parts{labelled, weighted, grouped, costs, class_of(positive), finest, comma};
    if (keys.size() == 0) {
        new (self) TextRows(std::move(parts), CsvFields(delimiter, width, std::move(places)));
        return;
    }
    std::vector<std::string> names;
    for (nb::handle key : keys) names.emplace_back(bytes_of(key));
    new (self) TextRows(std::move(parts), JsonFields(std::move(names)));
}

// Bytes and lines that were read, beginning at some byte of a block.
nb::tuple read_block(TextRows& rows, nb::bytes block, std::size_t start) {
    const std::string_view bytes(block.c_str(), block.size());
    TextRows::Progress done;
    {
        nb::gil_scoped_release released;
        done = rows.read(bytes.substr(std::min(start, bytes.size())));
    }
    return nb::make_tuple(done.bytes, done.lines);
}

void add_row(TextRows& rows, double score, int label, double weight, nb::bytes group,
             std::vector<double> costs) {
    rows.add({score, weight, label, {group.c_str(), group.size()}, std::move(costs)});
}

// Scores, labels, weights, codes of groups and costs of the rows since the last call.
nb::tuple take_columns(TextRows& rows) {
    const RowParts& parts = rows.parts();
    nb::list costs;
    for (auto& each : rows.costs) costs.append(given_away(each));
    return nb::make_tuple(given_away(rows.scores), given_away(rows.labels),
                          parts.weighted ? nb::cast(given_away(rows.weights)) : nb::none(),
                          parts.grouped ? nb::cast(given_away(rows.codes)) : nb::none(), costs);
}

}  // namespace

void bind_text_rows(nb::module_& module) {
    // For the SQL of Spark, whose executors cannot ask here.
    nb::list digits, blanks;
    for (const char32_t zero : zeros) digits.append(static_cast<std::uint32_t>(zero));
    for (char32_t each = 0; each <= 0x3000; ++each)
        if (is_blank(each)) blanks.append(static_cast<std::uint32_t>(each));
    module.attr("digit_zeros") = digits;
    module.attr("blanks") = blanks;
    module.def("number_of", [](nb::str text) { return number_of(bytes_of(text)); });
    module.def("numbers_of", &numbers_of);
    nb::class_<LabelRule>(module, "LabelRule")
        .def(
            "__init__",
            [](LabelRule* self, std::optional<nb::str> positive) {
                new (self) LabelRule(class_of(std::move(positive)));
            },
            nb::arg().none())
        .def("__call__", [](const LabelRule& rule, nb::str text) -> std::optional<int> {
            const int label = rule(bytes_of(text));
            return label < 0 ? std::nullopt : std::optional(label);
        });
    nb::class_<TextRows>(module, "TextRows")
        .def("__init__", &make_rows)
        .def("__len__", [](const TextRows& rows) { return rows.scores.size(); })
        .def_prop_ro("names",
                     [](const TextRows& rows) {
                         nb::list names;
                         for (const std::string& each : rows.names())
                             names.append(nb::bytes(each.data(), each.size()));
                         return names;
                     })
        .def("read", &read_block)
        .def("add", &add_row)
        .def("take", &take_columns);
}

}  // namespace limen::bindings
