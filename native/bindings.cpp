// SPDX-License-Identifier: Apache-2.0
//
// The only file that knows both languages: Python objects in, whole units and answers out.
//
// update, revert and the properties are bound by hand through the type's slots, because a
// call that takes a hundred nanoseconds notices the dispatch around it; the rest goes through
// nanobind. Arrays arrive contiguous and of a known type: limen.columns sees to that.
//
// While an object is locked no Python object is made, looked at or called, nothing is imported and
// no message written: each of these can run code of the caller (a finaliser, a signal handler, a
// method of a number), which may ask the same object and would wait for itself. So every function
// reads its arguments, locks, changes or copies out plain numbers, unlocks, and only then speaks.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <atomic>
#include <cmath>
#include <optional>

#if !defined(_WIN32)
#include <pthread.h>
#endif

#include "batch.hpp"
#include "held_samples.hpp"
#include "isotonic.hpp"

namespace nb = nanobind;

namespace {

using namespace limen;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest_double = std::numeric_limits<double>::max();

// ---- refusals -------------------------------------------------------------------------

[[noreturn]] void refuse(PyObject* type, const std::string& message) {
    PyErr_SetString(type, message.c_str());
    throw nb::python_error();
}

std::string shown(PyObject* value) { return nb::repr(nb::handle(value)).c_str(); }
std::string shown(double value) { return nb::repr(nb::float_(value)).c_str(); }

std::string counted(std::size_t value, const char* what) {
    std::string text = std::to_string(value);
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3)
        text.insert(static_cast<std::size_t>(i), 1, ',');
    return text + " " + what + (value == 1 ? "" : "s");
}

// "score" for one sample, "scores[3]" inside an array.
std::string place(const char* name, std::ptrdiff_t index) {
    return index < 0 ? name : std::string(name) + "s[" + std::to_string(index) + "]";
}

const char* const nothing_added = " Nothing was added.";
const char* const nothing_changed = " Nothing was changed.";

[[noreturn]] void refuse_nan(std::ptrdiff_t index, const char* outcome) {
    refuse(PyExc_ValueError, place("score", index) +
                                 " is nan. Samples are ordered by score and nan has no order; "
                                 "leave this sample out or give it a score." +
                                 outcome);
}

[[noreturn]] void refuse_number(const std::string& where, const std::string& value,
                                const char* wanted, const char* outcome) {
    refuse(PyExc_ValueError, where + " must be " + wanted + ", got " + value + "." + outcome);
}

constexpr const char* wanted_weight = "a finite number that is not negative";
constexpr const char* wanted_loss = "a finite number";

std::string unit_text(const Unit& unit, int bits) {
    if (unit.automatic) return bits ? "2**-" + std::to_string(bits) : "1";
    if (unit.denominator == 1) return std::to_string(unit.numerator);
    return std::to_string(unit.numerator) + "/" + std::to_string(unit.denominator);
}

// The power of ten as people write it.
std::string power_of_ten(double exponent) { return shown(std::pow(10.0, exponent)); }

[[noreturn]] void refuse_lost(const Unit& unit, const std::string& where, double value,
                              const char* outcome) {
    refuse(PyExc_ValueError,
           where + " is " + shown(value) + ", which rounds to 0 units of " +
               unit_text(unit, finest_bits) + " and would be lost. Choose a finer unit, for " +
               "example unit=" + power_of_ten(std::floor(std::log10(std::fabs(value)))) + "." +
               outcome);
}

// `size` is about the sum that does not fit, in the numbers given.
[[noreturn]] void refuse_large(const Unit& unit, int bits, double size, const char* outcome) {
    const double current = std::log10(unit_size(unit, bits));
    const double needed = std::log10(std::max(size, 1e-300)) - 18;  // 2^62 is above 10^18
    const double proposed = std::ceil(std::max(needed, current)) + 1;
    const std::string sum =
        "the losses would add up to 2**62 units of " + unit_text(unit, bits) + " or more. ";
    if (proposed > 18)  // no unit is that large
        refuse(PyExc_OverflowError, sum + "Use smaller weights and costs." + outcome);
    refuse(PyExc_OverflowError, sum + "Choose a coarser unit, for example unit=" +
                                    power_of_ten(proposed) + ", or smaller weights and costs." +
                                    outcome);
}

[[noreturn]] void refuse_many(const char* outcome) {
    refuse(PyExc_OverflowError,
           std::string("a single score cannot hold more than 4,294,967,295 samples; join them "
                       "into fewer samples with larger weights.") +
               outcome);
}

// Why an object refused, and all that the message tells of it.
struct Denial {
    Refusal refusal = Refusal::none;
    int bits = 0;         // the places it was measured in
    double size = 0;      // about the sum that would be held, in the numbers given
    double score = 0;     // that is not held, or
    bool known = false;   // not so
    std::size_t samples = 0, distinct = 0;

    explicit operator bool() const { return refusal != Refusal::none; }
};

[[noreturn]] void refuse_absent(const Denial& denial) {
    const std::string counts = " (" + counted(denial.samples, "sample") + ", " +
                               counted(denial.distinct, "distinct score") + ")";
    const std::string message =
        "cannot revert score " + shown(denial.score) + ": " +
        (denial.known ? "no such sample is held at this score"
                      : "no sample with this score is held") +
        counts + ". Revert exactly what was added: same score, same " +
        "label or losses, same weight." + nothing_changed;
    nb::object type = nb::module_::import_("limen.errors").attr("NotHeld");
    PyErr_SetString(type.ptr(), message.c_str());
    throw nb::python_error();
}

// ---- numbers out of Python objects ------------------------------------------------------

// Set when the module is loaded.
PyObject *small_zero = nullptr, *small_one = nullptr, *long_double = nullptr;

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

double nearest_double(PyObject* object, const char* name) {
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        refuse(PyExc_TypeError, std::string(name) + " must be a number, got " + shown(object) +
                                    ". Nothing was changed.");
    }
    return value;
}

double to_double(PyObject* object, const char* name) {
    if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
    if (PyLong_Check(object)) return exact_double(object, name);
    if (PyIndex_Check(object)) {
        nb::object integer = nb::steal(PyNumber_Index(object));
        if (!integer.is_valid()) throw nb::python_error();
        return exact_double(integer.ptr(), name);
    }
    const double value = nearest_double(object, name);
    if (value == value && PyObject_IsInstance(object, long_double) == 1 &&
        !nb::float_(value).equal(nb::handle(object)))
        refuse_inexact(object, name);
    return value;
}

bool to_label(PyObject* object, double score, const char* outcome) {
    // Small whole numbers are single objects. One test for both labels, because which of the
    // two it is cannot be predicted.
    const bool yes = (object == Py_True) | (object == small_one);
    if (yes | (object == Py_False) | (object == small_zero)) return yes;
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

// A weight or loss: whole numbers stay whole.
struct Number {
    bool whole;
    std::int64_t integer;
    double real;
};

Number to_number(PyObject* object, const char* name) {
    if (PyLong_Check(object) || (!PyFloat_Check(object) && PyIndex_Check(object))) {
        nb::object integer = nb::steal(PyNumber_Index(object));
        if (!integer.is_valid()) throw nb::python_error();
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

// ---- the models -----------------------------------------------------------------------

// How many threads work on an object without the interpreter. A child that is forked meanwhile
// would find that object half changed and locked for ever, so a fork waits until they are done;
// to be done they need nothing that the forking thread has.
std::atomic<int> working{0};

void wait_for_work() {
    for (int some; (some = working.load()) > 0;) working.wait(some);
}

// One object may be shared by threads. Nobody waits for it while holding the interpreter. It is
// taken with the interpreter only, and so are forks: nothing is half taken in a child.
class ObjectLock {
public:
    // For as long as the interpreter is held.
    class Guard {
    public:
        explicit Guard(ObjectLock& lock) : lock_(lock) { lock_.acquire(); }
        ~Guard() { lock_.release(); }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        ObjectLock& lock_;
    };

    // For long work, without the interpreter, which is taken back only after the object is free:
    // whoever holds the one may wait for the other.
    class LongGuard {
    public:
        explicit LongGuard(ObjectLock& lock) : lock_(lock) {
            lock_.acquire();
            ++working;
            thread_ = PyEval_SaveThread();
        }
        ~LongGuard() {
            lock_.release_alone();
            --working;
            working.notify_all();
            PyEval_RestoreThread(thread_);
        }
        LongGuard(const LongGuard&) = delete;
        LongGuard& operator=(const LongGuard&) = delete;

    private:
        ObjectLock& lock_;
        PyThreadState* thread_;
    };

private:
#ifdef Py_GIL_DISABLED
    bool take() { return !taken_.exchange(true); }
    void release() { release_alone(); }
#else
    // The interpreter's lock is held, so no other thread takes it or begins to wait meanwhile.
    // It may have been released without, and what was changed then must be seen.
    bool take() {
        if (taken_.load(std::memory_order_acquire)) return false;
        taken_.store(true, std::memory_order_relaxed);
        return true;
    }
    LIMEN_INLINE void release() {
        taken_.store(false, std::memory_order_release);
        if (waiting_.load(std::memory_order_relaxed)) taken_.notify_all();
    }
#endif
    // Either this sees who waits, or who is about to wait sees that it is free.
    void release_alone() {
        taken_.exchange(false);
        if (waiting_.load()) taken_.notify_all();
    }
    LIMEN_INLINE void acquire() {
        if (!take()) wait();
    }
    void wait() {
        do {
            ++waiting_;
            {
                nb::gil_scoped_release released;
                taken_.wait(true);
            }
            --waiting_;
        } while (!take());
    }
    std::atomic<bool> taken_{false};
    std::atomic<int> waiting_{0};
};

nb::object score_or_none(bool has, double score) {
    return has ? nb::object(nb::float_(score)) : nb::none();
}

// How losses in units become numbers: units * numerator / (denominator * 2^bits).
struct LossScale {
    std::int64_t numerator = 1, denominator = 1;

    double operator()(Wide units, int bits) const {
        constexpr Wide exact = Wide{1} << 53;
        if (units < exact && units > -exact) {
            const Wide top = units * numerator, bottom = Wide{denominator} << bits;
            if (top < exact && top > -exact && bottom < exact)
                return static_cast<double>(top) / static_cast<double>(bottom);
        }
        // Python divides integers of any size with a single rounding.
        const nb::object high = nb::int_(static_cast<std::int64_t>(units >> 64)) << nb::int_(64);
        const nb::object all = high | nb::int_(static_cast<std::uint64_t>(units));
        const nb::object top = all * nb::int_(numerator);
        const nb::object bottom = nb::int_(denominator) << nb::int_(bits);
        return nb::cast<double>(nb::object(top / bottom));
    }
};

template <class Tree>
class Model {
public:
    template <class... Capacities>
    Model(std::int64_t unit_numerator, std::int64_t unit_denominator, LossScale scale,
          Capacities... capacities)
        : held(Unit{unit_numerator == 0, unit_numerator ? unit_numerator : 1,
                    unit_denominator ? unit_denominator : 1},
               capacities...),
          scale(scale) {}

    // What there is to say about a refusal, while the object is locked; `size` is about the sum
    // of the losses asked for.
    Denial denial(Refusal refusal, double score, int bits, double size) const {
        const double sum = static_cast<double>(held.total()) * unit_size(held.unit(), held.bits());
        const bool known = refusal == Refusal::not_held && held.find(score).count > 0;
        return {refusal, bits, sum + size, score, known, held.samples(), held.distinct()};
    }

    // To say it, when the object is not locked any more.
    [[noreturn]] void refuse(const Denial& denial, const char* outcome) const {
        if (denial.refusal == Refusal::not_held) refuse_absent(denial);
        if (denial.refusal == Refusal::too_many) refuse_many(outcome);
        refuse_large(held.unit(), denial.bits, denial.size, outcome);
    }

    HeldSamples<Tree> held;
    LossScale scale;
    ObjectLock lock;
    nb::dict given;  // costs and unit as the caller wrote them: an object without a
                     // __dict__ is looked up faster
};

// A model of labelled samples: each costs its weight times the cost of its label.
template <class Tree>
class Labelled : public Model<Tree> {
public:
    using Model<Tree>::held, Model<Tree>::lock;
    static constexpr bool one_sided = true;

    template <class... Arguments>
    explicit Labelled(Costs costs, Arguments... arguments)
        : Model<Tree>(arguments...), costs(costs) {
        held.set_costs(costs.false_negative, costs.false_positive);
    }

    void one(PyObject* const* args, bool adding) {
        const char* outcome = adding ? nothing_added : nothing_changed;
        const double score = to_double(args[0], "score");
        const bool label = to_label(args[1], score, outcome);
        if (score != score) refuse_nan(-1, outcome);
        if (!args[2]) {
            if (adding && add_one(score, label)) return;
            return apply(score, label, std::int64_t{1}, adding);
        }
        const Number weight = to_number(args[2], "weight");
        if (!(weight.real >= 0) || weight.real == infinity)
            refuse_number("weight", shown(args[2]), wanted_weight, outcome);
        if (weight.whole)
            apply(score, label, weight.integer, adding);
        else
            apply(score, label, weight.real, adding);
    }

    // Take back about this much of a sample that has faded; false when it is gone.
    bool withdraw(double score, bool label, double weight) {
        const std::int64_t cost = label ? costs.false_negative : costs.false_positive;
        ObjectLock::Guard guard(lock);
        std::int64_t units = 0;
        if (held.measure(weight, cost, held.bits(), units) == Refusal::too_large)
            units = most_units - 1;
        return held.withdraw(score, label ? Losses{units, 0} : Losses{0, units}, true);
    }

    const Costs costs;

private:
    // The common case, a weight of 1 in the unit of whole numbers, without any conversion.
    LIMEN_INLINE bool add_one(double score, bool label) {
        const std::int64_t cost = label ? costs.false_negative : costs.false_positive;
        ObjectLock::Guard guard(lock);
        if (!held.unit().automatic || held.bits() != 0) return false;
        const Losses losses{label ? cost : 0, label ? 0 : cost};
        return held.add(score, losses, 0, true) == Refusal::none;
    }

    template <class Weight>
    void apply(double score, bool label, Weight weight, bool adding) {
        const std::int64_t cost = label ? costs.false_negative : costs.false_positive;
        Denial denial;
        {
            ObjectLock::Guard guard(lock);
            int bits = held.bits_for(weight);
            std::int64_t units = 0;
            Refusal refusal = held.measure(weight, cost, bits, units);
            if (refusal == Refusal::too_large && held.coarsen()) {
                bits = held.bits_for(weight);
                refusal = held.measure(weight, cost, bits, units);
            }
            const Losses losses = label ? Losses{units, 0} : Losses{0, units};
            if (refusal == Refusal::none)
                refusal = adding ? held.add(score, losses, bits, true)
                                 : held.remove(score, losses, bits, true);
            else if (!adding && refusal != Refusal::lost)
                refusal = Refusal::not_held;
            if (refusal == Refusal::none) return;
            denial = this->denial(refusal, score, bits,
                                  static_cast<double>(weight) * static_cast<double>(cost));
        }
        const char* outcome = adding ? nothing_added : nothing_changed;
        if (denial.refusal == Refusal::lost)
            refuse_lost(held.unit(), "weight", static_cast<double>(weight), outcome);
        this->refuse(denial, outcome);
    }
};

class Threshold : public Labelled<CutTree> {
public:
    Threshold(std::int64_t false_positive, std::int64_t false_negative,
              std::int64_t unit_numerator, std::int64_t unit_denominator,
              std::int64_t loss_numerator, std::int64_t loss_denominator, int leaf_capacity,
              int node_capacity)
        : Labelled({false_positive, false_negative}, unit_numerator, unit_denominator,
                   LossScale{loss_numerator, loss_denominator}, leaf_capacity, node_capacity) {}
};

// Its weights are losses at costs of 1; what costs make of them is asked for later.
class Calibrator : public Labelled<HullTree> {
public:
    Calibrator(std::int64_t unit_numerator, std::int64_t unit_denominator,
               std::int64_t weight_numerator, std::int64_t weight_denominator, int leaf_capacity)
        : Labelled({1, 1}, unit_numerator, unit_denominator,
                   LossScale{weight_numerator, weight_denominator}, leaf_capacity) {}
};

class AnyCut : public Model<CutTree> {
public:
    static constexpr bool one_sided = false;

    AnyCut(std::int64_t unit_numerator, std::int64_t unit_denominator,
           std::int64_t loss_numerator, std::int64_t loss_denominator, int leaf_capacity,
           int node_capacity)
        : Model(unit_numerator, unit_denominator, LossScale{loss_numerator, loss_denominator},
                leaf_capacity, node_capacity) {}

    void one(PyObject* const* args, bool adding) {
        const char* outcome = adding ? nothing_added : nothing_changed;
        const double score = to_double(args[0], "score");
        if (score != score) refuse_nan(-1, outcome);
        const Number numbers[2] = {to_number(args[1], "below"), to_number(args[2], "above")};
        for (int i = 0; i < 2; ++i)
            if (!std::isfinite(numbers[i].real))
                refuse_number(i ? "above" : "below", shown(args[1 + i]), wanted_loss, outcome);
        Denial denial;
        int lost = 0;
        {
            ObjectLock::Guard guard(lock);
            int bits = 0;
            Losses losses;
            Refusal refusal = measure(numbers, bits, losses, lost);
            if (refusal == Refusal::too_large && held.coarsen())
                refusal = measure(numbers, bits, losses, lost);
            if (refusal == Refusal::none)
                refusal = adding ? held.add(score, losses, bits)
                                 : held.remove(score, losses, bits, false);
            else if (!adding && refusal != Refusal::lost)
                refusal = Refusal::not_held;
            if (refusal == Refusal::none) return;
            denial = this->denial(refusal, score, bits,
                                  std::fabs(numbers[0].real) + std::fabs(numbers[1].real));
        }
        if (denial.refusal == Refusal::lost)
            refuse_lost(held.unit(), lost ? "above" : "below", numbers[lost].real, outcome);
        refuse(denial, outcome);
    }

    // As for labelled samples.
    bool withdraw(double score, double below, double above) {
        ObjectLock::Guard guard(lock);
        Losses losses;
        held.measure(below, 1, held.bits(), losses.below);
        held.measure(above, 1, held.bits(), losses.above);
        return held.withdraw(score, losses, false);
    }

private:
    // `lost` becomes the place of the first number that would round to 0.
    Refusal measure(const Number (&numbers)[2], int& bits, Losses& losses, int& lost) const {
        bits = held.bits();
        for (const Number& number : numbers)
            if (!number.whole) bits = std::max(bits, held.bits_for(number.real));
        std::int64_t* units[2] = {&losses.below, &losses.above};
        Refusal refusal = Refusal::none;
        for (int i = 0; i < 2; ++i) {
            const Number& number = numbers[i];
            const Refusal found = number.whole ? held.measure(number.integer, 1, bits, *units[i])
                                               : held.measure(number.real, 1, bits, *units[i]);
            if (found == Refusal::lost) {
                lost = i;
                return found;
            }
            if (found != Refusal::none) refusal = found;
        }
        return refusal;
    }
};

template <class T>
T& instance(PyObject* self) {
    if (!nb::inst_ready(self))
        refuse(PyExc_RuntimeError, "the object is not initialised: call super().__init__().");
    return *nb::inst_ptr<T>(self);
}

// The same for methods that nanobind binds, which have not looked at their self.
template <class T>
T& checked(nb::handle self) {
    if (!nb::isinstance<T>(self))
        refuse(PyExc_TypeError, "a method of limen was called on " + shown(self.ptr()) + ".");
    return instance<T>(self.ptr());
}

// ---- whole columns: read without the interpreter, refused with it ---------------------------

[[noreturn]] void refuse_trouble(const Trouble& trouble, const Unit& unit,
                                 const char* outcome) {
    const std::string where =
        std::string(trouble.name) + "[" + std::to_string(trouble.index) + "]";
    switch (trouble.kind) {
        case Trouble::nan_score:
            refuse_nan(static_cast<std::ptrdiff_t>(trouble.index), outcome);
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

// A column, and the Python array that keeps it alive.
struct OwnedColumn {
    Array<std::int64_t> whole;
    Array<double> real;
    Column column;

    OwnedColumn(nb::handle array, const char* name) : column{name} {
        if (array.is_none()) return;
        if (nb::try_cast(array, whole, false)) {
            column.whole = whole.data();
        } else {
            real = nb::cast<Array<double>>(array, false);
            column.real = real.data();
        }
    }
};

// Measure rows by `make` and hold or forget them, without the interpreter but with the object.
template <class Row, class T, class Make>
void apply_rows(T& model, const double* scores, bool adding, Make&& make) {
    Trouble trouble;
    Denial denial;
    {
        ObjectLock::LongGuard guard(model.lock);
        int bits = model.held.bits();
        std::vector<Row> rows;
        trouble = make(bits, rows);
        if (trouble.kind == Trouble::too_large && model.held.coarsen()) {
            bits = model.held.bits();
            trouble = make(bits, rows);
        }
        double missing = 0;
        Refusal refusal = Refusal::none;
        if (!trouble) {
            refusal = adding ? model.held.add_many(rows, bits)
                             : model.held.remove_many(rows, bits, T::one_sided, missing);
        } else if (trouble.kind == Trouble::too_large && !adding) {
            refusal = Refusal::not_held;
            missing = scores[trouble.index];
        }
        if (refusal != Refusal::none)
            denial = model.denial(refusal, missing, bits,
                                  size_of(rows, model.held.unit(), bits));
    }
    const char* outcome = adding ? nothing_added : nothing_changed;
    if (denial) model.refuse(denial, outcome);
    if (trouble) refuse_trouble(trouble, model.held.unit(), outcome);
}

template <class T>
void labelled_many(nb::handle self, Array<double> scores, Array<std::uint8_t> labels,
                   nb::object weights, bool adding) {
    T& model = checked<T>(self);
    const OwnedColumn owned(weights, "weights");
    apply_rows<SignedRow>(model, scores.data(), adding, [&](int& bits, std::vector<SignedRow>& rows) {
        return labelled_rows(scores.data(), labels.data(), scores.shape(0), owned.column,
                             model.costs, model.held, bits, rows);
    });
}

void cut_many(nb::handle self, Array<double> scores, nb::object below, nb::object above,
              bool adding) {
    AnyCut& model = checked<AnyCut>(self);
    const OwnedColumn low(below, "below"), high(above, "above");
    const Column columns[2] = {low.column, high.column};
    apply_rows<LossRow>(model, scores.data(), adding, [&](int& bits, std::vector<LossRow>& rows) {
        return loss_rows(scores.data(), scores.shape(0), columns, model.held, bits, rows);
    });
}

nb::tuple optimum(const Cut& cut, double loss) {
    return nb::make_tuple(score_or_none(cut.has_lower, cut.lower),
                          score_or_none(cut.has_upper, cut.upper), loss);
}

template <class Select>
nb::tuple selected(const Model<CutTree>& model, Select&& select) {
    Selection found;
    {
        nb::gil_scoped_release released;
        found = select();
    }
    if (found.trouble) refuse_trouble(found.trouble, model.held.unit(), "");
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

// ---- labels of any number type -----------------------------------------------------------

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> new_array(std::size_t n) {
    T* values = new T[n ? n : 1];
    nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values, {n}, owner);
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T>&& values) {
    values.reserve(1);  // an array has an address, also an empty one
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
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

// ---- what all models share ----------------------------------------------------------------

// The threshold of every cut, and the losses on its two sides, in units, summed up by `sum`.
template <class T, class Sum>
nb::tuple curve_columns(T& model, const LossScale& scale, Sum&& sum) {
    std::vector<double> thresholds, losses;
    std::vector<Wide> units;
    int bits = 0;
    {
        ObjectLock::Guard guard(model.lock);
        thresholds.reserve(model.held.distinct() + 1);
        units.reserve(model.held.distinct() + 1);
        model.held.curve([&](const Losses& missed, const Cut& cut) {
            thresholds.push_back(threshold_of(cut));
            units.push_back(sum(missed));
        });
        bits = model.held.bits();
    }
    losses.reserve(units.size());
    for (const Wide& loss : units) losses.push_back(scale(loss, bits));
    return nb::make_tuple(array_of(std::move(thresholds)), array_of(std::move(losses)));
}

template <class T>
nb::tuple curve(T& model) {
    return curve_columns(model, model.scale, [](const Losses& missed) {
        return Wide{missed.below} + missed.above;
    });
}

// Parts are taken one at a time, so no two objects are ever locked together.
template <class T>
void merge(T& model, nb::list others) {
    std::vector<typename decltype(model.held)::Part> parts;
    double size = 0;
    int bits = 0;
    for (nb::handle other : others) {
        T& from = checked<T>(other);
        ObjectLock::LongGuard guard(from.lock);
        parts.push_back(from.held.part());
        bits = std::max(bits, parts.back().bits);
        size += static_cast<double>(parts.back().total) *
                unit_size(from.held.unit(), parts.back().bits);
    }
    Denial denial;
    {
        ObjectLock::LongGuard guard(model.lock);
        bits = std::max(bits, model.held.bits());
        if (const Refusal refusal = model.held.merge(parts); refusal != Refusal::none)
            denial = model.denial(refusal, 0, bits, size);
    }
    if (denial) model.refuse(denial, nothing_added);
}

template <class T>
nb::bytes state(T& model) {
    std::string bytes;
    {
        ObjectLock::Guard guard(model.lock);
        bytes = model.held.state();
    }
    return nb::bytes(bytes.data(), bytes.size());
}

template <class T>
void restore(T& model, nb::bytes given) {
    const std::string bytes(given.c_str(), given.size());
    bool restored = false;
    {
        ObjectLock::Guard guard(model.lock);
        restored = model.held.restore(bytes, T::one_sided);
    }
    if (!restored)
        refuse(PyExc_ValueError,
               "these bytes do not describe held samples; they were cut short or changed. "
               "Nothing was changed.");
}

// ---- every cost at once ----------------------------------------------------------------------

Cut cut_of(const HullCut& cut) {
    return {0, cut.lower, cut.upper, cut.has_lower, cut.has_upper};
}

double calibrated_threshold(nb::handle self, std::int64_t false_positive,
                            std::int64_t false_negative) {
    Calibrator& model = checked<Calibrator>(self);
    ObjectLock::Guard guard(model.lock);
    return threshold_of(cut_of(model.held.tree().best(false_positive, false_negative)));
}

// The last two tell what one unit of loss at these costs is.
nb::tuple calibrated_optimum(nb::handle self, std::int64_t false_positive,
                             std::int64_t false_negative, std::int64_t loss_numerator,
                             std::int64_t loss_denominator) {
    Calibrator& model = checked<Calibrator>(self);
    HullCut cut;
    Wide units = 0;
    int bits = 0;
    {
        ObjectLock::Guard guard(model.lock);
        cut = model.held.tree().best(false_positive, false_negative);
        const RunSums all = model.held.tree().totals();
        units = Wide{false_positive} * (all.above - cut.under.above) +
                Wide{false_negative} * cut.under.below;
        bits = model.held.bits();
    }
    return optimum(cut_of(cut), LossScale{loss_numerator, loss_denominator}(units, bits));
}

nb::tuple calibrated_curve(nb::handle self, std::int64_t false_positive,
                           std::int64_t false_negative, std::int64_t loss_numerator,
                           std::int64_t loss_denominator) {
    return curve_columns(
        checked<Calibrator>(self), LossScale{loss_numerator, loss_denominator},
        [&](const Losses& missed) {
            return Wide{false_positive} * missed.above + Wide{false_negative} * missed.below;
        });
}

double probability_of(nb::handle self, double score, bool linear) {
    Calibrator& model = checked<Calibrator>(self);
    ObjectLock::Guard guard(model.lock);
    return probability_at(model.held.tree(), score, linear ? Between::linear : Between::step);
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> probabilities_of(nb::handle self,
                                                             Array<double> scores, bool linear) {
    Calibrator& model = checked<Calibrator>(self);
    auto values = new_array<double>(scores.shape(0));
    double* out = values.data();
    {
        ObjectLock::LongGuard guard(model.lock);
        probabilities(model.held.tree(), scores.data(), scores.shape(0),
                      linear ? Between::linear : Between::step, out);
    }
    return values;
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> probabilities_in(Array<double> first,
                                                             Array<double> last,
                                                             Array<double> values,
                                                             Array<double> scores, bool linear) {
    const std::size_t n = scores.shape(0);
    auto found = new_array<double>(n);
    const std::size_t b = std::min({first.shape(0), last.shape(0), values.shape(0)});
    const BlockColumns blocks{first.data(), last.data(), values.data(), b};
    for (std::size_t i = 0; i < n; ++i)
        found.data()[i] = blocks.probability_at(scores.data()[i],
                                                linear ? Between::linear : Between::step);
    return found;
}

// What one unit of weight is.
nb::tuple unit_of(const Calibrator& model, int bits) {
    return nb::make_tuple(nb::int_(model.scale.numerator),
                          nb::int_(model.scale.denominator) << nb::int_(bits));
}

// First and last scores, the weights of label 1 and of both, counts, values; the unit.
nb::tuple block_columns(const std::vector<Block>& blocks, const Calibrator& model, int bits) {
    const std::size_t n = blocks.size();
    auto first = new_array<double>(n), last = new_array<double>(n), value = new_array<double>(n);
    auto positive = new_array<std::int64_t>(n), weight = new_array<std::int64_t>(n),
         count = new_array<std::int64_t>(n);
    for (std::size_t i = 0; i < n; ++i) {
        const Block& block = blocks[i];
        first.data()[i] = block.first;
        last.data()[i] = block.last;
        positive.data()[i] = block.sums.below;
        weight.data()[i] = block.sums.below + block.sums.above;
        count.data()[i] = static_cast<std::int64_t>(block.sums.count);
        value.data()[i] = value_of(block);
    }
    return nb::make_tuple(first, last, positive, weight, count, value, unit_of(model, bits));
}

nb::tuple held_blocks(Calibrator& model) {
    std::vector<Block> blocks;
    int bits = 0;
    {
        ObjectLock::Guard guard(model.lock);
        model.held.tree().blocks([&](const Block& block) { blocks.push_back(block); });
        bits = model.held.bits();
    }
    return block_columns(blocks, model, bits);
}

// The model lends its unit; what it holds takes no part.
nb::tuple isotonic_blocks(Array<double> scores, Array<std::uint8_t> labels, nb::object weights,
                          const Calibrator& model) {
    const OwnedColumn owned(weights, "weights");
    const Unit& unit = model.held.unit();
    std::vector<Block> blocks;
    Trouble trouble;
    int bits = 0;
    {
        nb::gil_scoped_release released;
        std::vector<SignedRow> rows;
        trouble = labelled_rows(scores.data(), labels.data(), scores.shape(0), owned.column,
                                {1, 1}, Measure(unit), bits, rows);
        Wide total = 0;
        for (const SignedRow& row : rows) total += row.below() + row.above();
        if (!trouble && total >= most_units)
            trouble = {Trouble::too_large, 0, "", 0, size_of(rows, unit, bits), bits};
        if (!trouble) blocks = fit_blocks(joined(rows));
    }
    if (trouble) refuse_trouble(trouble, unit, "");
    return block_columns(blocks, model, bits);
}

// The cuts that `walk` visits, with the weights of label 1 and of label 0 below each; the weights
// of all; the unit.
template <class Walk>
nb::tuple cut_columns(Calibrator& model, Walk&& walk) {
    std::vector<double> lower, upper, threshold;
    std::vector<std::int64_t> below, above;
    int bits = 0;
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    {
        ObjectLock::Guard guard(model.lock);
        walk(model.held, [&](const HullCut& cut) {
            lower.push_back(cut.has_lower ? cut.lower : none);
            upper.push_back(cut.has_upper ? cut.upper : none);
            threshold.push_back(threshold_of(cut_of(cut)));
            below.push_back(cut.under.below);
            above.push_back(cut.under.above);
        });
        bits = model.held.bits();
    }
    return nb::make_tuple(array_of(std::move(lower)), array_of(std::move(upper)),
                          array_of(std::move(threshold)), array_of(std::move(below)),
                          array_of(std::move(above)), unit_of(model, bits));
}

nb::tuple hull_cuts(Calibrator& model) {
    return cut_columns(model, [](const OnlineHull& held, auto visit) {
        held.tree().vertices(visit);
    });
}

nb::tuple all_cuts(Calibrator& model) {
    return cut_columns(model, [](const OnlineHull& held, auto visit) {
        const std::int64_t negatives = held.tree().totals().above;
        held.curve([&](const Losses& missed, const Cut& cut) {
            visit(HullCut{{missed.below, negatives - missed.above, 0}, cut.lower, cut.upper,
                          cut.has_lower, cut.has_upper});
        });
    });
}

// Weights of true and false positives, false and true negatives. No score reaches nan.
nb::tuple confusion_at(nb::handle self, nb::handle given) {
    Calibrator& model = checked<Calibrator>(self);
    const double threshold = to_double(given.ptr(), "threshold");
    RunSums all, under;
    int bits = 0;
    {
        ObjectLock::Guard guard(model.lock);
        const HullTree& tree = model.held.tree();
        all = tree.totals();
        under = threshold == threshold ? tree.sums_below(threshold) : all;
        bits = model.held.bits();
    }
    return nb::make_tuple(model.scale(all.below - under.below, bits),
                          model.scale(all.above - under.above, bits),
                          model.scale(under.below, bits), model.scale(under.above, bits));
}

// Run `body` at the border to Python: nothing but Python errors may cross it.
template <class Body>
PyObject* guarded(Body&& body) {
    try {
        return body();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

// Three arguments by position or name; the last may be missing where `required` is 2.
void parse(const char* method, const char* const (&names)[3], Py_ssize_t required,
           PyObject* const* given, Py_ssize_t positional, PyObject* keywords,
           PyObject* (&args)[3]) {
    const auto wrong = [&](const std::string& text) {
        refuse(PyExc_TypeError, std::string(method) + "() " + text);
    };
    if (positional > 3) wrong("takes at most 3 arguments, got " + std::to_string(positional));
    for (Py_ssize_t i = 0; i < 3; ++i) args[i] = i < positional ? given[i] : nullptr;
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject* keyword = PyTuple_GetItem(keywords, i);
        int at = 0;
        while (at < 3 && PyUnicode_CompareWithASCIIString(keyword, names[at]) != 0) ++at;
        if (at == 3) wrong("has no argument " + shown(keyword));
        if (args[at]) wrong(std::string("got two values for ") + names[at]);
        args[at] = given[positional + i];
    }
    for (Py_ssize_t i = 0; i < required; ++i)
        if (!args[i]) wrong(std::string("needs ") + names[i]);
}

template <class T>
struct LabelledFace {
    using Type = T;
    static constexpr const char* names[3] = {"score", "label", "weight"};
    static constexpr Py_ssize_t required = 2;
};

struct CutFace {
    using Type = AnyCut;
    static constexpr const char* names[3] = {"score", "below", "above"};
    static constexpr Py_ssize_t required = 3;
};

template <class Face, bool adding>
PyObject* one(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        PyObject* args[3];
        if (!keywords && count >= Face::required && count <= 3) {
            for (Py_ssize_t i = 0; i < 3; ++i) args[i] = i < count ? given[i] : nullptr;
        } else {
            parse(adding ? "update" : "revert", Face::names, Face::required, given, count,
                  keywords, args);
        }
        instance<typename Face::Type>(self).one(args, adding);
        return Py_NewRef(Py_None);
    });
}

template <class T>
PyObject* get_threshold(PyObject* self, void*) {
    return guarded([&] {
        T& model = instance<T>(self);
        double threshold = 0;
        {
            ObjectLock::Guard guard(model.lock);
            threshold = threshold_of(model.held.best());
        }
        return PyFloat_FromDouble(threshold);
    });
}

// The cheapest cut, and its loss.
template <class T>
std::pair<Cut, double> best_of(T& model) {
    Cut cut;
    std::int64_t units = 0;
    int bits = 0;
    {
        ObjectLock::Guard guard(model.lock);
        cut = model.held.best();
        units = model.held.loss(cut);
        bits = model.held.bits();
    }
    return {cut, model.scale(units, bits)};
}

template <class T>
PyObject* get_loss(PyObject* self, void*) {
    return guarded([&] { return PyFloat_FromDouble(best_of(instance<T>(self)).second); });
}

template <class T>
Py_ssize_t get_length(PyObject* self) {
    Py_ssize_t length = -1;
    guarded([&]() -> PyObject* {
        T& model = instance<T>(self);
        ObjectLock::Guard guard(model.lock);
        length = static_cast<Py_ssize_t>(model.held.samples());
        return nullptr;
    });
    return length;
}

template <class T>
nb::tuple get_optimum(T& model) {
    const auto [cut, loss] = best_of(model);
    return optimum(cut, loss);
}

#define LIMEN_METHOD(NAME, FACE, ADDING, DOC)                                        \
    {NAME, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&one<FACE, ADDING>)), \
     METH_FASTCALL | METH_KEYWORDS, DOC}

PyMethodDef threshold_methods[] = {
    LIMEN_METHOD("update", LabelledFace<Threshold>, true,
                 "update($self, score, label, weight=1)\n--\n\n"
                 "Add one sample. O(log n).\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineThreshold()\n"
                 ">>> cut.update(0.3, 0)\n"
                 ">>> cut.update(0.7, 1, weight=2)\n"
                 ">>> cut.threshold\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", LabelledFace<Threshold>, false,
                 "revert($self, score, label, weight=1)\n--\n\n"
                 "Take back one sample that was added. O(log n).\n\n"
                 "Raises limen.NotHeld, a KeyError, when no such sample is held.\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineThreshold()\n"
                 ">>> cut.update(0.3, 0)\n"
                 ">>> cut.revert(0.3, 0)\n"
                 ">>> len(cut), cut.threshold\n"
                 "(0, inf)\n"),
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef calibrator_methods[] = {
    LIMEN_METHOD("update", LabelledFace<Calibrator>, true,
                 "update($self, score, label, weight=1)\n--\n\n"
                 "Add one sample. O(log² n).\n\n"
                 ">>> import limen\n"
                 ">>> calibrator = limen.OnlineCalibrator()\n"
                 ">>> calibrator.update(0.3, 0)\n"
                 ">>> calibrator.update(0.7, 1, weight=2)\n"
                 ">>> calibrator.threshold()\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", LabelledFace<Calibrator>, false,
                 "revert($self, score, label, weight=1)\n--\n\n"
                 "Take back one sample that was added. O(log² n).\n\n"
                 "Raises limen.NotHeld, a KeyError, when no such sample is held.\n\n"
                 ">>> import limen\n"
                 ">>> calibrator = limen.OnlineCalibrator()\n"
                 ">>> calibrator.update(0.3, 0)\n"
                 ">>> calibrator.revert(0.3, 0)\n"
                 ">>> len(calibrator)\n"
                 "0\n"),
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef cut_methods[] = {
    LIMEN_METHOD("update", CutFace, true,
                 "update($self, score, below, above)\n--\n\n"
                 "Add one sample that costs `below` if answered 0 and `above` if answered 1. "
                 "O(log n).\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineCut()\n"
                 ">>> cut.update(0.3, 0, 2)\n"
                 ">>> cut.update(0.7, 1, 0)\n"
                 ">>> cut.threshold\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", CutFace, false,
                 "revert($self, score, below, above)\n--\n\n"
                 "Take back one sample that was added. O(log n).\n\n"
                 "Raises limen.NotHeld, a KeyError, when no such sample is held.\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineCut()\n"
                 ">>> cut.update(0.3, 0, 2)\n"
                 ">>> cut.revert(0.3, 0, 2)\n"
                 ">>> len(cut)\n"
                 "0\n"),
    {nullptr, nullptr, 0, nullptr}};

const char* const threshold_doc =
    "The cheapest threshold now: answer 1 when score >= threshold. O(log n) after a change, "
    "else O(1).";
const char* const loss_doc = "The total loss of the cheapest cut. Cost as for `threshold`.";

template <class T>
struct Properties {
    static inline PyGetSetDef table[] = {
        {"threshold", get_threshold<T>, nullptr, threshold_doc, nullptr},
        {"loss", get_loss<T>, nullptr, loss_doc, nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
};

PyType_Slot threshold_slots[] = {{Py_tp_methods, threshold_methods},
                                 {Py_tp_getset, Properties<Threshold>::table},
                                 {Py_sq_length, reinterpret_cast<void*>(&get_length<Threshold>)},
                                 {0, nullptr}};
PyType_Slot calibrator_slots[] = {
    {Py_tp_methods, calibrator_methods},
    {Py_sq_length, reinterpret_cast<void*>(&get_length<Calibrator>)},
    {0, nullptr}};
PyType_Slot cut_slots[] = {{Py_tp_methods, cut_methods},
                           {Py_tp_getset, Properties<AnyCut>::table},
                           {Py_sq_length, reinterpret_cast<void*>(&get_length<AnyCut>)},
                           {0, nullptr}};

// A method without arguments.
template <class T, class Body>
auto method(Body body) {
    return [body](nb::handle self) { return body(checked<T>(self)); };
}

template <class T>
void bind_shared(nb::class_<T>& type) {
    type.def_prop_rw(
            "_given", method<T>([](T& model) { return model.given; }),
            [](nb::handle self, nb::dict given) { checked<T>(self).given = given; })
        .def("_state", method<T>([](T& model) { return state(model); }))
        .def("_merge",
             [](nb::handle self, nb::list others) { merge(checked<T>(self), others); })
        .def("_fade",
             [](nb::handle self, int bits) {
                 T& model = checked<T>(self);
                 ObjectLock::Guard guard(model.lock);
                 model.held.fade(bits);
             })
        .def("_restore",
             [](nb::handle self, nb::bytes bytes) { restore(checked<T>(self), bytes); })
        .def("_check", method<T>([](T& model) {
                 ObjectLock::Guard guard(model.lock);
                 model.held.check();
             }))
        .def("_memory", method<T>([](T& model) {
                 ObjectLock::Guard guard(model.lock);
                 return model.held.memory() + sizeof(T);
             }))
        .def("_distinct", method<T>([](T& model) {
                 ObjectLock::Guard guard(model.lock);
                 return model.held.distinct();
             }));
}

template <class T>
void bind_labelled(nb::class_<T>& type) {
    type.def("_many", &labelled_many<T>, nb::arg(), nb::arg().noconvert(), nb::arg().none(),
             nb::arg())
        .def("_withdraw", [](nb::handle self, double score, bool label, double weight) {
            return checked<T>(self).withdraw(score, label, weight);
        });
}

template <class T>
void bind_cut(nb::class_<T>& type) {
    bind_shared(type);
    type.def("_optimum", method<T>([](T& model) { return get_optimum(model); }))
        .def("_curve", method<T>([](T& model) { return curve(model); }));
}

}  // namespace

NB_MODULE(_core, module) {
    module.doc() = "The native core of limen. Private: use the names in limen itself.";
    module.attr("isa") = isa_name(active_isa());  // what it throws becomes an ImportError
    small_zero = PyLong_FromLong(0);
    small_one = PyLong_FromLong(1);
    long_double = nb::object(nb::module_::import_("numpy").attr("longdouble")).release().ptr();
#if !defined(_WIN32)
    pthread_atfork(wait_for_work, nullptr, nullptr);
#endif
    module.attr("leaf_slots") = leaf_slots;
    module.attr("node_slots") = node_slots;

    nb::class_<Threshold> threshold(module, "Threshold", nb::type_slots(threshold_slots));
    threshold
        .def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                      std::int64_t, int, int>());
    bind_labelled(threshold);
    bind_cut(threshold);

    nb::class_<AnyCut> cut(module, "Cut", nb::type_slots(cut_slots));
    cut.def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int>())
        .def("_many", &cut_many)
        .def("_withdraw", [](nb::handle self, double score, double below, double above) {
            return checked<AnyCut>(self).withdraw(score, below, above);
        });
    bind_cut(cut);

    nb::class_<Calibrator> calibrator(module, "Calibrator", nb::type_slots(calibrator_slots));
    calibrator
        .def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int>())
        .def("_threshold", &calibrated_threshold)
        .def("_optimum", &calibrated_optimum)
        .def("_curve", &calibrated_curve)
        .def("_probability", &probability_of)
        .def("_probabilities", &probabilities_of)
        .def("_blocks", method<Calibrator>([](Calibrator& model) { return held_blocks(model); }))
        .def("_hull", method<Calibrator>([](Calibrator& model) { return hull_cuts(model); }))
        .def("_cuts", method<Calibrator>([](Calibrator& model) { return all_cuts(model); }))
        .def("_confusion", &confusion_at, nb::arg().none());
    bind_labelled(calibrator);
    bind_shared(calibrator);
    module.def("isotonic_blocks", &isotonic_blocks, nb::arg(), nb::arg(), nb::arg().none(),
               nb::arg());
    module.def("probabilities_in", &probabilities_in);
    module.attr("hull_leaf_slots") = HullTree::leaf_slots;

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
