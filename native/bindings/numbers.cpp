// SPDX-License-Identifier: Apache-2.0
//
// Numbers out of Python objects, and back.

#include "bindings/numbers.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "bindings/refusals.hpp"

namespace limen::bindings {

namespace {

PyObject* long_double = nullptr;

[[noreturn]] void refuse_inexact(PyObject* number, const char* name) {
    refuse(PyExc_ValueError, std::string(name) + " " + nb::str(nb::handle(number)).c_str() +
                                 " has no exact float64. Scale it down, or convert it to float "
                                 "yourself. Nothing was changed.");
}

// An integer beyond 2^53 may have no double of its own; two scores would silently become one.
double exact_double(PyObject* integer, const char* name) {
    const double value = PyLong_AsDouble(integer);
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    if (std::fabs(value) >= 9007199254740992.0) {
        nb::object back = nb::steal(PyLong_FromDouble(value));
        if (!back.is_valid()) throw nb::python_error();
        if (!back.equal(nb::handle(integer))) refuse_inexact(integer, name);
    }
    return value;
}

// Read an integer; one that is not valid where it is another number. Every array of NumPy claims to
// be an integer, and one of several numbers is refused.
nb::object integer_of(PyObject* object, const char* name) {
    if (!PyIndex_Check(object)) return {};
    nb::object integer = nb::steal(PyNumber_Index(object));
    if (integer.is_valid()) return integer;
    PyErr_Clear();
    const nb::object shape = nb::getattr(nb::handle(object), "shape", nb::tuple());
    if (nb::len(shape) != 0)
        refuse(PyExc_TypeError, std::string(name) + " must be one number, got an array of shape " +
                                    shown(shape.ptr()) +
                                    ". For many there are methods such as update_many. Nothing was "
                                    "changed.");
    return {};
}

double nearest_double(PyObject* object, const char* name) {
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        refuse(PyExc_TypeError, std::string(name) + " must be a number, got " + shown(object) +
                                    ". Nothing was changed.");
    }
    return value;
}

nb::object score_or_none(bool has, double score) {
    return has ? nb::object(nb::float_(score)) : nb::none();
}

}  // namespace

void find_number_types() {
    small_zero = PyLong_FromLong(0);
    small_one = PyLong_FromLong(1);
    long_double = nb::object(nb::module_::import_("numpy").attr("longdouble")).release().ptr();
}

void parse(const Parameters& parameters, PyObject* const* given, Py_ssize_t count,
           PyObject* keywords, PyObject** args) {
    const auto& names = parameters.names;
    const auto wrong = [&](const std::string& text) {
        refuse(PyExc_TypeError, std::string(parameters.method) + "() " + text);
    };
    if (count > parameters.positional)
        wrong("takes at most " + std::to_string(parameters.positional) + " arguments, got " +
              std::to_string(count));
    for (Py_ssize_t i = 0; i < parameters.count; ++i) args[i] = i < count ? given[i] : nullptr;
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject* keyword = PyTuple_GetItem(keywords, i);
        Py_ssize_t at = 0;
        while (at < parameters.count && PyUnicode_CompareWithASCIIString(keyword, names[at]) != 0)
            ++at;
        if (at == parameters.count) wrong("has no argument " + shown(keyword));
        if (args[at]) wrong(std::string("got two values for ") + names[at]);
        args[at] = given[count + i];
    }
    for (Py_ssize_t i = 0; i < parameters.required; ++i)
        if (!args[i]) wrong(std::string("needs ") + names[i]);
}

double any_to_double(PyObject* object, const char* name) {
    if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
    if (PyLong_Check(object)) return exact_double(object, name);
    if (const nb::object integer = integer_of(object, name); integer.is_valid())
        return exact_double(integer.ptr(), name);
    const double value = nearest_double(object, name);
    if (value == value && PyObject_IsInstance(object, long_double) == 1 &&
        !nb::float_(value).equal(nb::handle(object)))
        refuse_inexact(object, name);
    return value;
}

bool any_to_label(PyObject* object, double score, const char* outcome) {
    double value = PyLong_Check(object) ? PyLong_AsDouble(object) : PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) PyErr_Clear();  // -1 is no label either
    if (value == 1.0) return true;
    if (value == 0.0) return false;
    const bool swapped = (score == 0 || score == 1) && value != std::floor(value);
    refuse(PyExc_ValueError,
           "label must be 0 or 1, got " + shown(object) +
               (swapped ? ". The score is 0 or 1: were the two swapped? Scores come first."
                        : ". For other classes pass whether it is the positive one.") +
               outcome);
}

Number to_number(PyObject* object, const char* name) {
    constexpr double largest_double = std::numeric_limits<double>::max();
    const nb::object integer = PyFloat_Check(object) ? nb::object() : integer_of(object, name);
    if (integer.is_valid()) {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
        if (overflow == 0) return {true, value, static_cast<double>(value)};
        const double nearest = PyLong_AsDouble(integer.ptr());
        if (nearest == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return {false, 0, overflow > 0 ? largest_double : -largest_double};
        }
        return {false, 0, nearest};
    }
    return {false, 0, nearest_double(object, name)};
}

double LossScale::large(Wide units, int bits) const {
    // Python divides integers of any size with a single rounding.
    const nb::object high = nb::int_(static_cast<std::int64_t>(units >> 64)) << nb::int_(64);
    const nb::object all = high | nb::int_(static_cast<std::uint64_t>(units));
    const nb::object top = all * nb::int_(numerator);
    const nb::object bottom = nb::int_(denominator) << nb::int_(bits);
    return nb::cast<double>(nb::object(top / bottom));
}

Optimum optimum(const Gap& cut, double loss, Direction direction) {
    const nb::object lower = score_or_none(cut.has_lower, direction.turn(cut.lower));
    const nb::object upper = score_or_none(cut.has_upper, direction.turn(cut.upper));
    if (direction.lower_is_positive()) return nb::make_tuple(upper, lower, loss, "<=");
    return nb::make_tuple(lower, upper, loss);
}

}  // namespace limen::bindings
