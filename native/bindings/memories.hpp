// SPDX-License-Identifier: Apache-2.0
//
// What LastN, LastPeriod, Fading and Ledger share: a model of theirs, and the memory that decides
// which samples it holds.

#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/models.hpp"
#include "bindings/shared_methods.hpp"
#include "bindings/slots.hpp"
#include "bindings/times.hpp"
#include "memory/judge.hpp"

namespace limen::bindings {

// Read also by those who have not locked the object yet.
using SharedCalendar = std::atomic<Calendar>;

// What a memory needs of a model of limen. It holds as long as the model lives.
struct ModelParts {
    OnlineCut* cut = nullptr;  // one of the three
    OnlineHull* hull = nullptr;
    BoundedHeld* bounded = nullptr;
    Ownership* ownership = nullptr;
    Unit unit;
    LossScale scale;
    bool labelled = true;
    Costs costs;

    // What `body` makes of the samples held.
    template <class Body>
    auto with(Body&& body) const {
        return cut ? body(*cut) : hull ? body(*hull) : body(*bounded);
    }
};

// Those of a model; another object is refused.
ModelParts parts_of(nb::handle model);

// The answers of a memory before long work began: read as the memory itself.
class MemoryBefore {
public:
    MemoryBefore() = default;
    template <class Memory>
    MemoryBefore(const Memory& memory, Calendar calendar)
        : calendar(calendar), ids_(memory.ids()), states_(memory.states()),
          newest_(memory.newest()), expired_(memory.expired()), refused_(memory.refused()),
          cost_(memory.cost()), ever_(memory.ever()), loss_(memory.loss()), scale_(memory.scale()) {
        if (memory.settings().keep == Keep::fading) faded_cost_ = memory.faded_cost();
    }

    std::size_t ids() const { return ids_; }
    StateCounts states() const { return states_; }
    std::optional<Time> newest() const { return newest_; }
    std::uint64_t expired() const { return expired_; }
    std::uint64_t refused() const { return refused_; }
    Wide cost() const { return cost_; }
    Wide ever() const { return ever_; }
    Wide loss() const { return loss_; }
    double scale() const { return scale_; }
    double faded_cost() const { return faded_cost_; }

    Calendar calendar = Calendar::unknown;

private:
    std::size_t ids_ = 0;
    StateCounts states_{};
    std::optional<Time> newest_;
    std::uint64_t expired_ = 0, refused_ = 0;
    Wide cost_ = 0, ever_ = 0, loss_ = 0;
    double scale_ = 1, faded_cost_ = 0;
};

// A memory and the samples it works on. It is locked by the lock of the model, so that nobody sees
// the one without the other. A ledger and the window that it was given share one.
class MemoryHandle {
public:
    MemoryHandle(const ModelParts& model, const MemorySettings& settings,
                 std::optional<bool> dated);
    ~MemoryHandle();
    MemoryHandle(const MemoryHandle&) = delete;
    MemoryHandle& operator=(const MemoryHandle&) = delete;

    template <class Body>
    LIMEN_INLINE auto with(Body&& body) const {
        return cut_ ? body(*cut_) : hull_ ? body(*hull_) : body(*bounded_);
    }

    // Take the model, unless it holds samples or belongs to another. All while locked.
    void claim(const char* owner);
    // From now on there are groups: that of all samples, which this model holds, and further ones.
    void begin_groups(nb::object model);
    // A further group, inside of an earlier one; returns its number. The model is nobody else's.
    std::uint32_t add_group(nb::object model, std::uint32_t inside, const char* owner);
    bool grouped() const { return !members_.empty(); }
    // Start over for a ledger.
    void adopt(const MemorySettings& settings, const LossScale& account, std::optional<bool> dated);

    // While locked: whether a time can be compared with earlier ones of this calendar.
    bool comparable(const Moment& moment, SharedCalendar MemoryHandle::*calendar) const {
        const Calendar known = this->*calendar;
        return known == Calendar::unknown || known == moment.calendar;
    }
    // What periods or earlier times say that a time must be. Read without a lock: what another
    // thread makes of it meanwhile shows in comparable().
    std::optional<bool> must_be_dated(
        SharedCalendar MemoryHandle::*calendar = &MemoryHandle::times) const {
        const Calendar known = this->*calendar;
        if (dated_ || known == Calendar::unknown) return dated_;
        return known != Calendar::numbers;
    }
    std::size_t samples(std::uint32_t of = 0) const {
        return model(of).with([](const auto& held) { return held.samples(); });
    }
    // While locked: what the model of a group holds, as bytes.
    std::string state(std::uint32_t of = 0) const {
        return model(of).with([](const auto& held) { return held.state(); });
    }
    // While locked: hold what such bytes describe; false where they do not.
    bool restore(std::uint32_t of, const std::string& state) {
        const ModelParts& in = model(of);
        return in.with([&](auto& held) { return held.restore(state, in.labelled); });
    }
    std::size_t groups() const { return 1 + others_.size(); }
    // While locked: what there is to say about samples of about this size that do not fit.
    Denial denial(MemoryRefusal refusal, double size) const;

    const LossScale& account() const { return account_; }
    const Unit& unit() const { return model_.unit; }
    Direction direction() const { return model_.ownership->direction; }
    const MemorySettings& settings() const { return settings_; }
    const ObjectLock::Place& lock() const { return model_.ownership->lock; }

    // What is true until long work is done, for those who ask meanwhile: of the memory, and of one
    // of its groups. Null where they have to lock. With the interpreter, as all of Before.
    const MemoryBefore* before() const {
        return at_work_.load(std::memory_order_relaxed) && model_.ownership->before.published()
                   ? &before_
                   : nullptr;
    }
    const PublishedAnswers* before(std::uint32_t of) const {
        return before() && model(of).ownership->before.published() ? &model(of).ownership->before
                                                                   : nullptr;
    }

    // Two ways to lock: for as long as the interpreter is held, and for long work of so many steps,
    // without it, during which others read what was true before.
    class Turn {
    public:
        LIMEN_INLINE Turn(MemoryHandle& keeper, std::size_t) : guard_(keeper.lock()) {}

    private:
        ObjectLock::Guard guard_;
    };
    class Work {
    public:
        Work(MemoryHandle& keeper, std::size_t steps)
            : tidy_{keeper}, guard_(keeper.lock(), [&] { tidy_.groups = keeper.publish(steps); }) {}
        ~Work() { tidy_.keeper.end(tidy_.groups); }

    private:
        struct Tidy {
            MemoryHandle& keeper;
            std::uint32_t groups = 0;  // of which answers are published
            ~Tidy() { keeper.tidy(groups); }
        };
        Tidy tidy_;  // goes last, with the interpreter
        ObjectLock::LongGuard guard_;
    };

    // A sum in numbers. Speaks Python, so not while locked.
    double number(Wide units) const { return account_(units, unit().automatic ? finest_bits : 0); }

    // What times are, and those at which labels were determined; changed while locked.
    SharedCalendar times = Calendar::unknown, as_of = Calendar::unknown;
    Amount one;  // a weight of 1
    Refusal one_refusal = Refusal::none;

private:
    void make();
    std::uint32_t publish(std::size_t steps) noexcept;
    void end(std::uint32_t published) noexcept;
    void tidy(std::uint32_t published) noexcept;
    std::optional<std::uint32_t> take_group(const ModelParts& parts, std::uint32_t inside,
                                            const char* owner, nb::object model);
    const ModelParts& model(std::uint32_t of) const { return of == 0 ? model_ : others_[of - 1]; }

    ModelParts model_;
    std::vector<ModelParts> others_;   // of further groups
    std::vector<nb::object> members_;  // the models of all groups, which live as long as this
    MemorySettings settings_;
    LossScale account_;
    std::optional<bool> dated_;
    bool claimed_ = false;
    std::atomic<bool> at_work_{false};
    MemoryBefore before_;
    std::unique_ptr<Memory<CutTree>> cut_;
    std::unique_ptr<Memory<HullTree>> hull_;
    std::unique_ptr<Memory<RunTree<>>> bounded_;
};

// The objects that Python holds. A keeper must go before the model that it works in.
struct Window {
    nb::object model;  // that was given
    nb::dict given;    // settings as the caller wrote them
    std::shared_ptr<MemoryHandle> keeper;
    std::uint32_t group = 0;  // of a ledger, whose samples this window shows
    bool adopted = false;     // whether it belongs to a ledger; changed while locked
};
struct LastN : Window {};
struct LastPeriod : Window {};
struct FadingWindow : Window {};
// A candidate for the threshold of a group, as the core has both, and the samples between them.
struct Trial {
    double current, candidate;
    Judge judge;
};
struct LedgerObject : Window {
    LedgerObject() = default;
    LedgerObject(LedgerObject&&) = default;  // no copy: samples of a trial refer to each other

    std::map<std::uint32_t, Trial> trials;  // by group
    nb::dict trial_terms;  // what each is about, as the caller wrote it, by the number of the group
};

inline MemoryHandle& keeper_of(Window& window) {
    if (!window.keeper)
        refuse(PyExc_RuntimeError, "the object is not initialised: call super().__init__().");
    return *window.keeper;
}

// What a call came with that may be refused, for the message.
struct Request {
    const char* outcome;       // what became of the call
    PyObject* time = nullptr;  // as it was given
    SharedCalendar MemoryHandle::*calendar = &MemoryHandle::times;
    double size = 0;  // about the losses asked for
    PyObject* id = nullptr;
    double score = 0;  // as the core has it
    Amount amount{};
    PyObject* group = nullptr;  // as it was given, and its number
    std::uint32_t number = 0;
    std::size_t steps = 0;  // about how long it takes
};

// Why a call came to nothing.
struct Obstacle {
    bool adopted = false;  // by a ledger
    bool other_calendar = false;
    Result done;
    Denial denial;
};

// While locked: all there is to say about a call that came to nothing.
std::unique_ptr<Obstacle> obstacle_of(const Window& window, const Moment* moment,
                                      const Result& done, const Request& asked);

[[noreturn]] void refuse(const MemoryHandle& keeper, const Obstacle& obstacle,
                         const Request& asked);

// Lock and act, or raise what is in the way. `act` is given the memory and returns a Done;
// `complete` gets a refusal, when all is unlocked, and adds to the message what it can.
template <class Guard, class Act, class Complete>
LIMEN_INLINE Result attempt(Window& window, const Moment* moment, Request& asked, Act&& act,
                            Complete&& complete) {
    MemoryHandle& keeper = *window.keeper;
    std::unique_ptr<Obstacle> obstacle;  // made where there is one only
    {
        Guard guard(keeper, asked.steps);
        Result done;
        if (!window.adopted && (!moment || keeper.comparable(*moment, asked.calendar))) [[likely]] {
            const Result found = keeper.with(act);
            if (found.refusal == MemoryRefusal::none) [[likely]] {
                if (moment && keeper.*asked.calendar != moment->calendar)
                    keeper.*asked.calendar = moment->calendar;
                return found;
            }
            done = found;
        }
        obstacle = obstacle_of(window, moment, done, asked);
    }
    complete(obstacle->done);
    refuse(keeper, *obstacle, asked);
}

template <class Guard, class Act>
LIMEN_INLINE Result attempt(Window& window, const Moment* moment, Request& asked, Act&& act) {
    return attempt<Guard>(window, moment, asked, act, [](const Result&) {});
}

// A weight, or two losses, measured; `size` becomes about what they cost. What is none is refused.
Amount any_to_weight(const MemoryHandle& keeper, PyObject* given, std::int64_t cost,
                     const char* outcome, double& size);
LIMEN_INLINE Amount to_weight(const MemoryHandle& keeper, PyObject* given, std::int64_t cost,
                              const char* outcome, double& size) {
    size = static_cast<double>(cost);
    if (!given && keeper.one_refusal == Refusal::none) return keeper.one;
    return any_to_weight(keeper, given, cost, outcome, size);
}
Amount to_losses(const MemoryHandle& keeper, PyObject* below, PyObject* above, const char* outcome,
                 double& size);

// The number that was measured, as it is written: an int, or a float.
nb::object from_amount(const MemoryHandle& keeper, const Amount& amount);

// A score; nan is refused.
double to_score(PyObject* given, const char* outcome);

// ---- what all of them answer ----

// What `body` makes of the memory while it is locked.
template <class Body>
auto looked(Window& window, Body&& body) {
    MemoryHandle& keeper = keeper_of(window);
    ObjectLock::Guard guard(keeper.lock());
    return keeper.with(body);
}

// The same for what MemoryBefore knows as well, without waiting for long work.
template <class Body>
auto read(Window& window, Body&& body) {
    if (const MemoryBefore* before = keeper_of(window).before()) return body(*before);
    return looked(window, body);
}
// The same for what Before knows of the window's group.
template <class Body>
auto read_group(Window& window, Body&& body) {
    if (const PublishedAnswers* before = keeper_of(window).before(window.group))
        return body(*before);
    return looked(window, body);
}

nb::object newest_of(Window& window);

template <class T>
PyObject* advance(PyObject* self, PyObject* time) {
    return guarded([&]() -> PyObject* {
        T& window = instance<T>(self);
        const MemoryHandle& keeper = keeper_of(window);
        if (time == Py_None && keeper.settings().keep != Keep::last_period)
            refuse(PyExc_TypeError, std::string("advance() needs a time.") + nothing_changed);
        const Moment moment = to_moment(time, keeper.must_be_dated(), "time");
        Request asked{nothing_changed};
        asked.time = time;
        attempt<MemoryHandle::Turn>(window, &moment, asked,
                                    [&](auto& memory) { return memory.advance(moment.time); });
        return Py_NewRef(Py_None);
    });
}

// ---- how they are bound ----

// Periods by their order, where there are any; returns whether they are timedeltas.
std::optional<bool> set_periods(nb::tuple given, std::initializer_list<std::optional<Time>*> to);

int visit_references(PyObject* self, visitproc visit, void* arg);

// A class with methods that are bound by hand, as those of models.
template <class T>
nb::class_<T, Window> memory_class(nb::module_& module, const char* name, PyMethodDef* methods,
                                   lenfunc length, PyType_Slot more = {0, nullptr}) {
    PyType_Slot slots[] = {{Py_tp_methods, methods},
                           {Py_tp_traverse, reinterpret_cast<void*>(&visit_references)},
                           {Py_sq_length, reinterpret_cast<void*>(length)},
                           more,
                           {0, nullptr}};
    nb::class_<T, Window> type(module, name, nb::type_slots(slots));
    bind_slots(type, methods);
    return type;
}

// What has a clock knows the latest time, and what it refused.
template <class T>
void bind_clock(nb::class_<T, Window>& type) {
    type.def_prop_ro("newest", method<T>([](T& self) { return Any(newest_of(self)); }),
                     "The latest time seen; None before the first.")
        .def_prop_ro("refused", method<T>([](T& self) {
                         return read(self, [](const auto& memory) { return memory.refused(); });
                     }),
                     "How many came too late to count, or were too far ahead.");
}

#define LIMEN_FAST(NAME, FUNCTION, DOC)                                          \
    {                                                                            \
        NAME, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&FUNCTION)), \
            METH_FASTCALL | METH_KEYWORDS, DOC                                   \
    }

}  // namespace limen::bindings
