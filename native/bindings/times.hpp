// SPDX-License-Identifier: Apache-2.0
//
// Times of Python in and out: numbers, or datetimes as microseconds since 1970.

#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/moment.hpp"

namespace limen::bindings {

namespace nb = nanobind;

// What all times of one object are. Datetimes have a time zone (held in UTC), or none has.
enum class Calendar : std::uint8_t { unknown, numbers, naive, utc };

struct Moment {
    Time time;
    Calendar calendar = Calendar::unknown;
};

// Call when the module is loaded.
void find_time_types();

// A time; where it is known what it must be, `dated` says so. What is none is refused in the words
// of limen.times, with its name, and its place in a list where it has one.
constexpr std::ptrdiff_t no_place = -1;
Moment any_to_moment(PyObject* object, std::optional<bool> dated, const char* name,
                     std::ptrdiff_t place);
LIMEN_INLINE Moment to_moment(PyObject* object, std::optional<bool> dated, const char* name,
                              std::ptrdiff_t place = no_place) {
#ifndef Py_LIMITED_API
    if (PyFloat_CheckExact(object) && dated == false) {
        const double time = PyFloat_AS_DOUBLE(object);
        if (std::isfinite(time)) return {Time::of(time), Calendar::numbers};
    }
#endif
    return any_to_moment(object, dated, name, place);
}
std::string named(const char* name, std::ptrdiff_t place);

bool is_timedelta(PyObject* object);

// A length of time that limen.times has read; longer ones than 64 bits hold become the longest.
Time to_period(PyObject* length);

// An int, float or datetime.
nb::object from_time(const Time& time, Calendar calendar);

}  // namespace limen::bindings
