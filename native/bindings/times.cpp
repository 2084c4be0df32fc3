// SPDX-License-Identifier: Apache-2.0
//
// Times of Python in and out.

#include "bindings/times.hpp"

#include <cmath>
#include <limits>

#include "bindings/refusals.hpp"

namespace limen::bindings {

namespace {

PyObject *datetime_type = nullptr, *utc = nullptr, *epoch = nullptr, *epoch_utc = nullptr,
         *timedelta_type = nullptr, *tzinfo = nullptr, *days = nullptr, *seconds = nullptr,
         *microseconds = nullptr;

std::int64_t part(PyObject* timedelta, PyObject* name) {
    const nb::object value = nb::steal(PyObject_GetAttr(timedelta, name));
    if (!value.is_valid()) throw nb::python_error();
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred()) throw nb::python_error();
    return number;
}

// A timedelta in microseconds, the longest 64 bits hold where it is longer.
std::int64_t microseconds_of(PyObject* timedelta) {
    std::int64_t total = 0;
    if (__builtin_mul_overflow(part(timedelta, days) * 86400 + part(timedelta, seconds),
                               std::int64_t{1000000}, &total) ||
        __builtin_add_overflow(total, part(timedelta, microseconds), &total))
        return std::numeric_limits<std::int64_t>::max();
    return total;
}

bool is_exactly(PyObject* object, PyObject* type) {
    return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

// An int, a float or a datetime without a zone or in UTC; false for all others.
bool read(PyObject* object, Moment& moment) {
    if (PyFloat_CheckExact(object)) {
        const double value = PyFloat_AsDouble(object);
        if (!std::isfinite(value)) return false;
        moment = {Time::of(value), Calendar::numbers};
        return true;
    }
    if (PyLong_CheckExact(object)) {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        moment = {Time::whole(value), Calendar::numbers};
        return overflow == 0;
    }
    if (!is_exactly(object, datetime_type)) return false;
    const nb::object zone = nb::steal(PyObject_GetAttr(object, tzinfo));
    if (!zone.is_valid()) throw nb::python_error();
    const bool naive = zone.is_none();
    if (!naive && zone.ptr() != utc) return false;
    const nb::object since = nb::steal(PyNumber_Subtract(object, naive ? epoch : epoch_utc));
    if (!since.is_valid()) throw nb::python_error();
    moment = {Time::whole(microseconds_of(since.ptr())), naive ? Calendar::naive : Calendar::utc};
    return true;
}

nb::object attribute(const char* module, const char* name) {
    return nb::module_::import_(module).attr(name);
}

PyObject* kept(nb::object object) { return object.release().ptr(); }

}  // namespace

void find_time_types() {
    const nb::object datetime = attribute("datetime", "datetime");
    utc = kept(attribute("datetime", "timezone").attr("utc"));
    epoch = kept(datetime(1970, 1, 1));
    epoch_utc = kept(datetime(1970, 1, 1, nb::arg("tzinfo") = nb::handle(utc)));
    datetime_type = kept(datetime);
    timedelta_type = kept(attribute("datetime", "timedelta"));
    tzinfo = PyUnicode_InternFromString("tzinfo");
    days = PyUnicode_InternFromString("days");
    seconds = PyUnicode_InternFromString("seconds");
    microseconds = PyUnicode_InternFromString("microseconds");
}

std::string named(const char* name, std::ptrdiff_t place) {
    return place == no_place ? name : std::string(name) + "[" + std::to_string(place) + "]";
}

Moment any_to_moment(PyObject* object, std::optional<bool> dated, const char* name,
                     std::ptrdiff_t place) {
    Moment moment;
    if (read(object, moment) && dated.value_or(moment.calendar != Calendar::numbers) ==
                                    (moment.calendar != Calendar::numbers))
        return moment;
    const nb::object times = nb::module_::import_("limen.times");
    const nb::object kind =
        dated ? nb::object(nb::bool_(*dated)) : times.attr("is_dated")(nb::handle(object));
    const nb::object plain =
        times.attr("as_time")(nb::handle(object), kind, named(name, place).c_str());
    if (!read(plain.ptr(), moment))
        refuse(PyExc_ValueError, named(name, place) + " is " + shown(object) +
                                     ", and whole times have 64 bits. Give it as a float, or count "
                                     "from a later beginning." +
                                     nothing_changed);
    return moment;
}

bool is_timedelta(PyObject* object) { return PyObject_IsInstance(object, timedelta_type) == 1; }

Time to_period(PyObject* length) {
    if (is_timedelta(length)) return Time::whole(microseconds_of(length));
    if (PyFloat_Check(length)) return Time::of(PyFloat_AsDouble(length));
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(length, &overflow);
    if (overflow == 0) return Time::whole(value);
    const double nearest = PyLong_AsDouble(length);
    if (nearest == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return Time::of(std::numeric_limits<double>::max());
    }
    return Time::of(nearest);
}

nb::object from_time(const Time& time, Calendar calendar) {
    if (time.real) return nb::float_(time.number());
    if (calendar == Calendar::numbers) return nb::int_(time.bits);
    // Microseconds beyond what a C int holds are too many for the limited constructor of days.
    const nb::object since = nb::handle(timedelta_type)(0, 0, nb::int_(time.bits));
    return nb::handle(calendar == Calendar::naive ? epoch : epoch_utc) + since;
}

}  // namespace limen::bindings
