// SPDX-License-Identifier: Apache-2.0
//
// The messages of refusals.

#include "bindings/refusals.hpp"

#include <algorithm>
#include <cmath>

namespace limen::bindings {

namespace {

std::string counted(std::size_t value, const char* what) {
    std::string text = std::to_string(value);
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3)
        text.insert(static_cast<std::size_t>(i), 1, ',');
    return text + " " + what + (value == 1 ? "" : "s");
}

[[noreturn]] void refuse_nan_at(const std::string& where, const char* outcome) {
    refuse(PyExc_ValueError, where +
                                 " is nan. Samples are ordered by score and nan has no order; "
                                 "leave this sample out or give it a score." +
                                 outcome);
}

std::string unit_text(const Unit& unit, int bits) {
    if (unit.automatic) return bits ? "2**-" + std::to_string(bits) : "1";
    if (unit.denominator == 1) return std::to_string(unit.numerator);
    return std::to_string(unit.numerator) + "/" + std::to_string(unit.denominator);
}

// The power of ten as people write it.
std::string power_of_ten(double exponent) { return shown(std::pow(10.0, exponent)); }

// `size` is about the sum that does not fit, in the numbers given.
[[noreturn]] void refuse_large(const Unit& unit, int bits, double size, const char* outcome) {
    const double current = std::log10(unit_size(unit, bits));
    const double needed = std::log10(std::max(size, 1e-300)) - 18;  // 2^62 is above 10^18
    const double proposed = std::ceil(std::max(needed, current)) + 1;
    const std::string sum =
        "the losses would add up to 2**62 units of " + unit_text(unit, bits) + " or more. ";
    if (proposed > 18)  // no unit is that large
        refuse(PyExc_OverflowError, sum + "Use smaller weights and costs." + outcome);
    refuse(PyExc_OverflowError,
           sum + "Choose a coarser unit, for example unit=" + power_of_ten(proposed) +
               ", or smaller weights and costs." + outcome);
}

[[noreturn]] void refuse_many(const char* outcome) {
    refuse(PyExc_OverflowError,
           std::string("a single score cannot hold more than 4,294,967,295 samples; join them "
                       "into fewer samples with larger weights.") +
               outcome);
}

[[noreturn]] void refuse_absent(const Denial& denial) {
    const std::string counts = " (" + counted(denial.samples, "sample") + ", " +
                               counted(denial.distinct, "distinct score") + ")";
    const std::string message = "cannot revert score " + shown(denial.score) + ": " +
                                (denial.known ? "no such sample is held at this score"
                                              : "no sample with this score is held") +
                                counts + ". Revert exactly what was added: same score, same " +
                                "label or losses, same weight." + nothing_changed;
    refuse(nb::object(nb::module_::import_("limen.errors").attr("NotHeld")).ptr(), message);
}

}  // namespace

void refuse(PyObject* type, const std::string& message) {
    PyErr_SetString(type, message.c_str());
    throw nb::python_error();
}

std::string shown(PyObject* value) { return nb::repr(nb::handle(value)).c_str(); }
std::string shown(double value) { return nb::repr(nb::float_(value)).c_str(); }

void refuse_nan(const char* outcome) { refuse_nan_at("score", outcome); }

void refuse_number(const std::string& where, const std::string& value, const char* wanted,
                   const char* outcome) {
    refuse(PyExc_ValueError, where + " must be " + wanted + ", got " + value + "." + outcome);
}

void refuse_lost(const Unit& unit, const std::string& where, double value, const char* outcome) {
    refuse(PyExc_ValueError,
           where + " is " + shown(value) + ", which rounds to 0 units of " +
               unit_text(unit, finest_bits) + " and would be lost. Choose a finer unit, for " +
               "example unit=" + power_of_ten(std::floor(std::log10(std::fabs(value)))) + "." +
               outcome);
}

void refuse_owned(const char* what, const char* owner, const char* outcome) {
    refuse(PyExc_RuntimeError, std::string("this ") + what + " belongs to a " + owner +
                                   "; add samples through it." + outcome);
}

void refuse(const Denial& denial, const Unit& unit, const char* outcome) {
    if (denial.owner) refuse_owned("model", denial.owner, outcome);
    if (denial.refusal == Refusal::not_held) refuse_absent(denial);
    if (denial.refusal == Refusal::too_many) refuse_many(outcome);
    refuse_large(unit, denial.bits, denial.size, outcome);
}

void refuse(const Trouble& trouble, const Unit& unit, const char* outcome) {
    const std::string where = std::string(trouble.name) + "[" + std::to_string(trouble.index) + "]";
    switch (trouble.kind) {
        case Trouble::nan_score:
            refuse_nan_at(where, outcome);
        case Trouble::negative:
            refuse_number(where, shown(trouble.value), wanted_weight, outcome);
        case Trouble::not_finite:
            refuse_number(where, shown(trouble.value), wanted_loss, outcome);
        case Trouble::lost:
            refuse_lost(unit, where, trouble.value, outcome);
        default:
            refuse_large(unit, trouble.bits, trouble.size, outcome);
    }
}

}  // namespace limen::bindings
