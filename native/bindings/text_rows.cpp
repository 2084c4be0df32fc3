// SPDX-License-Identifier: Apache-2.0
//
// The texts of files and streams in, columns of values out.

#include "rows/text_rows.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
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

template <class T>
NewArray<T> given_away(Grown<T>& column) {
    const std::size_t size = column.size();
    T* values = column.release();
    nb::capsule owner(values, [](void* p) noexcept { std::free(p); });
    return NewArray<T>(values, {size}, owner);
}

// Of CSV by the places of the columns, of NDJSON by their keys.
void make_rows(TextRows* self, nb::list keys, std::vector<std::size_t> places, char delimiter,
               std::size_t width, bool labelled, bool weighted, bool grouped, bool sparse,
               bool timed, std::size_t costs, std::optional<nb::str> positive, double finest,
               bool comma, std::optional<bool> dated) {
    RowParts parts{labelled, weighted,           grouped, sparse, timed,
                   costs,    class_of(positive), finest,  comma,  dated};
    if (keys.size() == 0) {
        new (self) TextRows(std::move(parts), CsvFields(delimiter, width, std::move(places)));
        return;
    }
    std::vector<std::string> names;
    for (nb::handle key : keys) names.emplace_back(bytes_of(key));
    new (self) TextRows(std::move(parts), JsonFields(std::move(names), sparse));
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

void add_row(TextRows& rows, double score, int label, double weight, nb::bytes group, nb::bytes id,
             std::pair<std::int64_t, std::uint8_t> time, std::vector<double> costs) {
    rows.add({score,
              weight,
              label,
              {group.c_str(), group.size()},
              {id.c_str(), id.size()},
              {time.first, static_cast<WrittenTime::Kind>(time.second)},
              std::move(costs)});
}

// Half characters, which JSON has escapes for, stay what they are.
nb::object text_of(const std::string& bytes) {
    return nb::steal(
        PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogatepass"));
}

// Scores, labels, weights, codes of groups, ids, times and their kinds, and costs of the rows since
// the last call.
nb::tuple take_columns(TextRows& rows) {
    const RowParts& parts = rows.parts();
    nb::list costs;
    for (auto& each : rows.costs) costs.append(given_away(each));
    nb::list ids;
    for (const std::string& each : std::exchange(rows.ids, {})) ids.append(text_of(each));
    return nb::make_tuple(given_away(rows.scores), given_away(rows.labels),
                          parts.weighted ? nb::cast(given_away(rows.weights)) : nb::none(),
                          parts.grouped ? nb::cast(given_away(rows.codes)) : nb::none(),
                          parts.sparse ? nb::object(ids) : nb::none(),
                          parts.timed ? nb::cast(given_away(rows.times)) : nb::none(),
                          parts.timed ? nb::cast(given_away(rows.kinds)) : nb::none(), costs);
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
