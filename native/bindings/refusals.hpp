// SPDX-License-Identifier: Apache-2.0
//
// What limen says when it refuses: the argument, its place and value, and the next step.

#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "core/refusal.hpp"

namespace limen::bindings {

namespace nb = nanobind;

inline constexpr const char* nothing_added = " Nothing was added.";
inline constexpr const char* nothing_changed = " Nothing was changed.";
inline constexpr const char* wanted_weight = "a finite number that is not negative";
inline constexpr const char* wanted_loss = "a finite number";

// Why an object refused, and all that the message says of it.
struct Denial {
    Refusal refusal = Refusal::none;
    int bits = 0;        // the places it was measured in
    double size = 0;     // about the sum that would be held, in the numbers given
    double score = 0;    // that is not held, or
    bool known = false;  // not so
    std::size_t samples = 0, distinct = 0;
    const char* owner = nullptr;  // the class of the memory that the model belongs to

    explicit operator bool() const { return refusal != Refusal::none || owner; }
};

std::string shown(PyObject* value);
std::string shown(double value);

[[noreturn]] void refuse(PyObject* type, const std::string& message);
// One sample; `outcome` says what became of the call.
[[noreturn]] void refuse_nan(const char* outcome);
[[noreturn]] void refuse_number(const std::string& where, const std::string& value,
                                const char* wanted, const char* outcome);
[[noreturn]] void refuse_lost(const Unit& unit, const std::string& where, double value,
                              const char* outcome);
// A direct change of a model, or of a window, that belongs to another object.
[[noreturn]] void refuse_owned(const char* what, const char* owner, const char* outcome);
// What an object or a column refused.
[[noreturn]] void refuse(const Denial& denial, const Unit& unit, const char* outcome);
[[noreturn]] void refuse(const Trouble& trouble, const Unit& unit, const char* outcome);

}  // namespace limen::bindings
