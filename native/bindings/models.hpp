// SPDX-License-Identifier: Apache-2.0
//
// The objects that Python holds: samples with their costs, their unit and a lock.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bindings/direction.hpp"
#include "bindings/numbers.hpp"
#include "bindings/object_lock.hpp"
#include "bindings/published_answers.hpp"
#include "bindings/refusals.hpp"
#include "instances.hpp"
#include "samples/class_grid.hpp"
#include "samples/map_average.hpp"

namespace limen::bindings {

// What a memory changes in a model besides its samples.
struct Ownership {
    // The class of the memory that alone may change the samples, once there is one.
    const char* owner = nullptr;
    std::uint32_t group = 0;  // the place of the model in that memory
    Direction direction;
    ObjectLock own_lock;
    // Groups of one memory change together, so they share a lock: that of the first, which has to
    // live as long.
    ObjectLock::Place lock{&own_lock};
    nb::object lock_owner;
    PublishedAnswers before;
};

template <class Samples>
class Model : public Ownership {
public:
    template <class... Capacities>
    Model(const Unit& unit, LossScale scale, Capacities... capacities)
        : held(unit, capacities...), scale(scale) {}

    // What `body` makes of the samples held while the object is locked.
    template <class Body>
    LIMEN_INLINE auto locked(Body&& body) {
        ObjectLock::Guard guard(lock);
        return body(held);
    }

    // The same for what Before knows as well, without waiting for long work.
    template <class Body>
    LIMEN_INLINE auto read(Body&& body) {
        if (before.published()) return body(before);
        return locked(body);
    }
    // The same for what the hull alone says.
    template <class Body>
    auto read_hull(Body&& body) {
        if (before.knows_hull()) return body(before);
        return locked(body);
    }

    // What takes long: other threads run meanwhile, and read() what was true before.
    class Work {
    public:
        Work(Model& model, std::size_t steps)
            : tidy_{model.before},
              guard_(model.lock, [&] { model.before.publish(model.held, steps); }) {}
        ~Work() { tidy_.before.end(); }

    private:
        struct Tidy {
            PublishedAnswers& before;
            ~Tidy() { before.tidy(); }
        };
        Tidy tidy_;  // goes last, with the interpreter
        ObjectLock::LongGuard guard_;
    };
    Work for_long(std::size_t steps) { return Work(*this, steps); }
    template <class Body>
    auto locked_for_long(std::size_t steps, Body&& body) {
        const Work work = for_long(steps);
        return body(held);
    }

    // What there is to say about a refusal, while the object is locked; `score` as the core has it,
    // and `size` about the sum of the losses asked for.
    Denial denial(Refusal refusal, double score, int bits, double size) const {
        const double sum = static_cast<double>(held.total()) * unit_size(held.unit(), held.bits());
        const bool known = refusal == Refusal::not_held && held.find(score).count > 0;
        return {refusal, bits,           sum + size,     direction.turn(score),
                known,   held.samples(), held.distinct()};
    }

    // The same where the model belongs to a memory.
    Denial owned() const {
        Denial denial;
        denial.owner = owner;
        return denial;
    }

    Samples held;
    LossScale scale;
    nb::dict given;  // costs, unit and direction as the caller wrote them: an object without a
                     // __dict__ is looked up faster

protected:
    // Add or take back one sample of about this size. `measured` sets its places and losses.
    template <class Measured>
    LIMEN_INLINE Denial apply(double score, bool adding, bool one_sided, double size,
                              Measured&& measured) {
        ObjectLock::Guard guard(lock);
        if (owner) return owned();
        int bits = 0;
        Losses losses;
        Refusal refusal = measured(bits, losses);
        if (refusal == Refusal::too_large && held.coarsen()) refusal = measured(bits, losses);
        if (refusal == Refusal::none)
            refusal = adding ? held.add(score, losses, bits, one_sided)
                             : held.remove(score, losses, bits, one_sided);
        else if (!adding && refusal != Refusal::lost)
            refusal = Refusal::not_held;
        if (refusal == Refusal::none) return {};
        return denial(refusal, score, bits, size);
    }
};

// A model of labelled samples: each costs its weight times the cost of its label.
template <class Samples>
class Labelled : public Model<Samples> {
public:
    using Model<Samples>::held, Ownership::lock, Ownership::owner, Ownership::direction;
    static constexpr bool one_sided = true;

    template <class... Arguments>
    explicit Labelled(Costs costs, Arguments... arguments)
        : Model<Samples>(arguments...), costs(costs) {
        held.set_costs(costs.false_negative, costs.false_positive);
    }

    LIMEN_INLINE void one(PyObject* const* args, bool adding) {
        const char* outcome = adding ? nothing_added : nothing_changed;
        const double given = to_double(args[0], "score"), score = direction.turn(given);
        const bool label = to_label(args[1], given, outcome);
        if (score != score) refuse_nan(outcome);
        if (!args[2] && one_of_one(score, label, adding)) return;
        weighed(args, score, label, adding);
    }

    LIMEN_NOINLINE void weighed(PyObject* const* args, double score, bool label, bool adding) {
        const char* outcome = adding ? nothing_added : nothing_changed;
        if (!args[2]) return apply(score, label, std::int64_t{1}, adding);
        const Number weight = to_number(args[2], "weight");
        if (!(weight.real >= 0) || std::isinf(weight.real))
            refuse_number("weight", shown(args[2]), wanted_weight, outcome);
        if (weight.whole)
            apply(score, label, weight.integer, adding);
        else
            apply(score, label, weight.real, adding);
    }

    const Costs costs;

private:
    std::int64_t cost(bool label) const {
        return label ? costs.false_negative : costs.false_positive;
    }
    static Losses losses(bool label, std::int64_t units) {
        return {label ? units : 0, label ? 0 : units};
    }

    // The common case, a weight of 1 in the unit of whole numbers, without any conversion.
    LIMEN_INLINE bool one_of_one(double score, bool label, bool adding) {
        ObjectLock::Guard guard(lock);
        if (owner) return false;
        if constexpr (requires { held.add_one(score, label); })
            return adding ? held.add_one(score, label) : held.remove_one(score, label);
        const Losses sample = losses(label, cost(label));
        if (!adding || !held.unit().automatic || held.bits() != 0) return false;
        return held.add(score, sample, 0, true) == Refusal::none;
    }

    template <class Weight>
    void apply(double score, bool label, Weight weight, bool adding) {
        const double size = static_cast<double>(weight) * static_cast<double>(cost(label));
        const Denial denial =
            Model<Samples>::apply(score, adding, true, size, [&](int& bits, Losses& sample) {
                bits = held.bits_for(weight);
                std::int64_t units = 0;
                const Refusal refusal = held.measure(weight, cost(label), bits, units);
                sample = losses(label, units);
                return refusal;
            });
        if (!denial) return;
        const char* outcome = adding ? nothing_added : nothing_changed;
        if (denial.refusal == Refusal::lost)
            refuse_lost(held.unit(), "weight", static_cast<double>(weight), outcome);
        refuse(denial, held.unit(), outcome);
    }
};

class Threshold : public Labelled<OnlineCut> {
public:
    Threshold(std::int64_t false_positive, std::int64_t false_negative, std::int64_t unit_numerator,
              std::int64_t unit_denominator, std::int64_t loss_numerator,
              std::int64_t loss_denominator, int leaf_capacity, int node_capacity)
        : Labelled({false_positive, false_negative}, unit_of(unit_numerator, unit_denominator),
                   LossScale{loss_numerator, loss_denominator}, leaf_capacity, node_capacity) {}

    KeptMap map;
};

// Its weights are losses at costs of 1; what costs make of them is asked for later.
class Calibrator : public Labelled<OnlineHull> {
public:
    Calibrator(std::int64_t unit_numerator, std::int64_t unit_denominator,
               std::int64_t weight_numerator, std::int64_t weight_denominator, int leaf_capacity)
        : Labelled({1, 1}, unit_of(unit_numerator, unit_denominator),
                   LossScale{weight_numerator, weight_denominator}, leaf_capacity) {}

    KeptMap map;
};

// A model of samples that cost anything on either side.
template <class Samples>
class AnyLosses : public Model<Samples> {
public:
    using Model<Samples>::Model, Model<Samples>::held, Ownership::direction;
    static constexpr bool one_sided = false;

    void one(PyObject* const* args, bool adding) {
        const char* outcome = adding ? nothing_added : nothing_changed;
        const double score = direction.turn(to_double(args[0], "score"));
        if (score != score) refuse_nan(outcome);
        const Number numbers[2] = {to_number(args[1], "below"), to_number(args[2], "above")};
        for (int i = 0; i < 2; ++i)
            if (!std::isfinite(numbers[i].real))
                refuse_number(i ? "above" : "below", shown(args[1 + i]), wanted_loss, outcome);
        int lost = 0;
        const double size = std::fabs(numbers[0].real) + std::fabs(numbers[1].real);
        const Denial denial =
            Model<Samples>::apply(score, adding, false, size, [&](int& bits, Losses& losses) {
                return measure(numbers, bits, losses, lost);
            });
        if (!denial) return;
        if (denial.refusal == Refusal::lost)
            refuse_lost(held.unit(), lost ? "above" : "below", numbers[lost].real, outcome);
        refuse(denial, held.unit(), outcome);
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

class AnyCut : public AnyLosses<OnlineCut> {
public:
    AnyCut(std::int64_t unit_numerator, std::int64_t unit_denominator, std::int64_t loss_numerator,
           std::int64_t loss_denominator, int leaf_capacity, int node_capacity)
        : AnyLosses(unit_of(unit_numerator, unit_denominator),
                    LossScale{loss_numerator, loss_denominator}, leaf_capacity, node_capacity) {}
};

// The same three in bounded memory.
class BoundedThreshold : public Labelled<BoundedHeld> {
public:
    BoundedThreshold(std::int64_t false_positive, std::int64_t false_negative,
                     std::int64_t unit_numerator, std::int64_t unit_denominator,
                     std::int64_t loss_numerator, std::int64_t loss_denominator,
                     std::size_t capacity)
        : Labelled({false_positive, false_negative}, unit_of(unit_numerator, unit_denominator),
                   LossScale{loss_numerator, loss_denominator}, capacity) {}
};

class BoundedCut : public AnyLosses<BoundedHeld> {
public:
    BoundedCut(std::int64_t unit_numerator, std::int64_t unit_denominator,
               std::int64_t loss_numerator, std::int64_t loss_denominator, std::size_t capacity)
        : AnyLosses(unit_of(unit_numerator, unit_denominator),
                    LossScale{loss_numerator, loss_denominator}, capacity) {}
};

class BoundedCalibrator : public Labelled<ClassGrid> {
public:
    BoundedCalibrator(std::int64_t unit_numerator, std::int64_t unit_denominator,
                      std::int64_t weight_numerator, std::int64_t weight_denominator,
                      std::size_t capacity)
        : Labelled({1, 1}, unit_of(unit_numerator, unit_denominator),
                   LossScale{weight_numerator, weight_denominator}, capacity) {}
};

[[noreturn]] LIMEN_NOINLINE inline void refuse_early() {
    refuse(PyExc_RuntimeError, "the object is not initialised: call super().__init__().");
}

template <class T>
LIMEN_INLINE T& instance(PyObject* self) {
    if (!nb::inst_ready(self)) refuse_early();
    return *nb::inst_ptr<T>(self);
}

// The same for methods that nanobind binds, which have not looked at their self.
template <class T>
T& checked(nb::handle self) {
    if (!nb::isinstance<T>(self))
        refuse(PyExc_TypeError, "a method of limen was called on " + shown(self.ptr()) + ".");
    return instance<T>(self.ptr());
}

}  // namespace limen::bindings
