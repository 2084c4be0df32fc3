// SPDX-License-Identifier: Apache-2.0
//
// Arguments and numbers of Python in, without losing a digit unseen, and losses out.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "bindings/direction.hpp"
#include "core/cut.hpp"
#include "core/isa.hpp"
#include "core/units.hpp"
#include "core/wide.hpp"

namespace limen::bindings {

namespace nb = nanobind;

// Call when the module is loaded, before any of the others.
void find_number_types();

// The arguments that a method takes: the first `required` must be given, those after `positional`
// by name only.
struct Parameters {
    const char* method;
    const char* const* names;
    Py_ssize_t count, positional, required;
};

// Arguments in the order of their names; null where one is missing.
void parse(const Parameters& parameters, PyObject* const* given, Py_ssize_t count,
           PyObject* keywords, PyObject** args);

// A score: refused where no double is the same number.
double any_to_double(PyObject* object, const char* name);
LIMEN_INLINE double to_double(PyObject* object, const char* name) {
#ifndef Py_LIMITED_API
    if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
#endif
    return any_to_double(object, name);
}

bool any_to_label(PyObject* object, double score, const char* outcome);
inline PyObject *small_zero = nullptr, *small_one = nullptr;  // such numbers are single objects
LIMEN_INLINE bool to_label(PyObject* object, double score, const char* outcome) {
    // One test for both labels, because which of the two it is cannot be predicted.
    const bool yes = (object == Py_True) | (object == small_one);
    if (yes | (object == Py_False) | (object == small_zero)) return yes;
    return any_to_label(object, score, outcome);
}

// A weight or loss: whole numbers stay whole.
struct Number {
    bool whole;
    std::int64_t integer;
    double real;
};

Number to_number(PyObject* object, const char* name);

// The unit that Python describes by these two; automatic when they are 0.
inline Unit unit_of(std::int64_t numerator, std::int64_t denominator) {
    return numerator ? Unit{false, numerator, denominator} : Unit{};
}

// How losses in units become numbers: units * numerator / (denominator * 2^bits).
struct LossScale {
    std::int64_t numerator = 1, denominator = 1;

    double operator()(Wide units, int bits) const {
        constexpr int precision = 53;
        constexpr Wide exact = Wide{1} << precision;
        if (units < exact && units > -exact && bits < precision) {
            const Wide top = units * numerator, bottom = Wide{denominator} << bits;
            if (top < exact && top > -exact && bottom < exact)
                return static_cast<double>(top) / static_cast<double>(bottom);
        }
        return large(units, bits);
    }

private:
    double large(Wide units, int bits) const;
};

using Any = nb::typed<nb::object, nb::any>;  // for the stub: nothing is known of it

// What limen.Optimum takes: the scores next to a cut, None where there is none, its loss, and the
// direction where it is not the usual one.
using Optimum = nb::typed<nb::tuple, nb::any, nb::ellipsis>;
Optimum optimum(const Gap& cut, double loss, Direction direction = {});

}  // namespace limen::bindings
