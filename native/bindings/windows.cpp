// SPDX-License-Identifier: Apache-2.0
//
// LastN, LastPeriod and Fading: how they begin, and single samples.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <type_traits>

#include "bindings/memories.hpp"

namespace limen::bindings {

namespace {

constexpr const char* labelled_names[] = {"score", "label", "weight", "time"};
constexpr const char* loss_names[] = {"score", "below", "above", "time"};

std::int64_t cost_of(const Costs& costs, bool label) {
    return label ? costs.false_negative : costs.false_positive;
}

enum class Timed { never, always, maybe };

// A sample, and its time where there is one.
struct Sample {
    double score;
    bool label = false;
    Amount amount;
    Moment moment;
    bool timed = false;
};

template <Timed timed>
Sample to_sample(const MemoryHandle& keeper, PyObject* const* args, Request& asked) {
    Sample sample;
    if constexpr (timed != Timed::never) {
        if (args[3] && args[3] != Py_None) {
            sample.moment = to_moment(args[3], keeper.must_be_dated(), "time");
            sample.timed = true;
            asked.time = args[3];
        }
    }
    const double given = to_score(args[0], asked.outcome);
    sample.score = keeper.direction().turn(given);
    if (!keeper.settings().labelled) {
        sample.amount = to_losses(keeper, args[1], args[2], asked.outcome, asked.size);
        return sample;
    }
    sample.label = to_label(args[1], given, asked.outcome);
    sample.amount = to_weight(keeper, args[2], cost_of(keeper.settings().costs, sample.label),
                              asked.outcome, asked.size);
    return sample;
}

// Whether a time is where it should be; raises if not.
template <Timed timed>
void require_time(const MemoryHandle& keeper, PyObject* time) {
    if constexpr (timed == Timed::always) {
        if (!time || time == Py_None)
            any_to_moment(Py_None, keeper.must_be_dated(), "time", no_place);
    } else if constexpr (timed == Timed::maybe) {
        const bool given = time && time != Py_None;
        if (keeper.settings().by_time && !given)
            refuse(PyExc_TypeError,
                   std::string("time is missing: samples fade by it here.") + nothing_changed);
        if (!keeper.settings().by_time && given)
            refuse(PyExc_ValueError, "time is " + shown(time) +
                                         ", but samples fade by their number here. Say "
                                         "by=\"time\" when making this object." +
                                         nothing_changed);
    }
}

// Whether the only argument by name is the time.
bool is_time_alone(PyObject* keywords) {
    static PyObject* const name = PyUnicode_InternFromString("time");
    return PyTuple_Size(keywords) == 1 && PyTuple_GetItem(keywords, 0) == name;
}

template <class T, Timed timed>
PyObject* window_update(PyObject* self, PyObject* const* given, Py_ssize_t count,
                        PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        T& window = instance<T>(self);
        const MemoryHandle& keeper = keeper_of(window);
        const bool labelled = keeper.settings().labelled;
        PyObject* args[4] = {nullptr, nullptr, nullptr, nullptr};
        constexpr Py_ssize_t taken = timed == Timed::never ? 3 : 4;
        const bool enough = count >= (labelled ? 2 : 3) && count <= 3;
        if (enough &&
            (keywords ? timed != Timed::never && is_time_alone(keywords) : timed != Timed::always))
            std::copy(given, given + count, args), args[3] = keywords ? given[count] : nullptr;
        else
            parse({"update", labelled ? labelled_names : loss_names, taken, 3, labelled ? 2 : 3},
                  given, count, keywords, args);
        require_time<timed>(keeper, args[3]);
        Request asked{nothing_added};
        const Sample sample = to_sample<timed>(keeper, args, asked);
        const Result done = attempt<MemoryHandle::Turn>(
            window, sample.timed ? &sample.moment : nullptr, asked, [&](auto& memory) {
                return memory.update(sample.score, sample.label, sample.amount,
                                     sample.timed ? &sample.moment.time : nullptr);
            });
        if constexpr (timed == Timed::never) return Py_NewRef(Py_None);
        return PyBool_FromLong(done.yes);
    });
}

// Samples that fade by their number know no time.
PyObject* fading_advance(PyObject* self, PyObject* time) {
    return guarded([&]() -> PyObject* {
        if (time != Py_None)
            require_time<Timed::maybe>(keeper_of(instance<FadingWindow>(self)), time);
        PyObject* done = advance<FadingWindow>(self, time);
        if (!done) throw nb::python_error();
        return done;
    });
}

Py_ssize_t window_length(PyObject* self) {
    Py_ssize_t length = -1;
    guarded([&]() -> PyObject* {
        Window& window = instance<Window>(self);
        MemoryHandle& keeper = keeper_of(window);
        if (const PublishedAnswers* before = keeper.before(window.group)) {
            length = static_cast<Py_ssize_t>(before->samples());
        } else {
            ObjectLock::Guard guard(keeper.lock());
            length = static_cast<Py_ssize_t>(keeper.samples(window.group));
        }
        return nullptr;
    });
    return length;
}

PyMethodDef last_n_methods[] = {
    LIMEN_FAST("update", (window_update<LastN, Timed::never>),
               "update($self, *sample, **named)\n--\n\n"
               "Add one sample, as the model's `update` does; the oldest one leaves. O(log n).\n\n"
               "An error changes nothing.\n\n"
               ">>> from limen import LastN, OnlineThreshold\n"
               ">>> window = LastN(OnlineThreshold(), n=1)\n"
               ">>> window.update(0.3, 0)\n"
               ">>> window.update(0.7, 1, weight=2)\n"
               ">>> len(window), window.threshold\n"
               "(1, -inf)\n"),
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef last_period_methods[] = {
    LIMEN_FAST("update", (window_update<LastPeriod, Timed::always>),
               "update($self, *sample, time, **named)\n--\n\n"
               "Add one event, as the model's `update` does, unless its time is too old. "
               "O(log n).\n\n"
               "Return whether it counts. An error changes nothing, not even the newest time.\n\n"
               ">>> from limen import LastPeriod, OnlineThreshold\n"
               ">>> window = LastPeriod(OnlineThreshold(), 10)\n"
               ">>> window.update(0.3, 0, time=1), window.update(0.7, 1, time=11)\n"
               "(True, True)\n"
               ">>> len(window)\n"
               "1\n"),
    {"advance", advance<LastPeriod>, METH_O,
     "advance($self, time)\n--\n\n"
     "Let the period end at this time, if it is the latest so far. O(log n) per leaving.\n\n"
     ">>> from limen import LastPeriod, OnlineThreshold\n"
     ">>> window = LastPeriod(OnlineThreshold(), 10)\n"
     ">>> window.update(0.3, 0, time=1)\n"
     "True\n"
     ">>> window.advance(10.5)\n"
     ">>> len(window)\n"
     "1\n"
     ">>> window.advance(11)\n"
     ">>> len(window)\n"
     "0\n"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef fading_methods[] = {
    LIMEN_FAST("update", (window_update<FadingWindow, Timed::maybe>),
               "update($self, *sample, time=None, **named)\n--\n\n"
               "Add one sample, as the model's `update` does; all others have aged. O(log n).\n\n"
               "Return whether it counts. An error changes nothing.\n\n"
               ">>> from limen import Fading, OnlineThreshold\n"
               ">>> fading = Fading(OnlineThreshold(), half_life=10, by=\"time\")\n"
               ">>> fading.update(0.3, 0, time=100), fading.update(0.7, 1, time=0)\n"
               "(True, True)\n"
               ">>> fading.update(0.9, 1, time=-900)\n"
               "False\n"),
    {"advance", fading_advance, METH_O,
     "advance($self, time)\n--\n\n"
     "Let it be this late, if it is the latest time so far: all samples have aged.\n\n"
     "O(1), and O(n) when ten half-lives have gone by since everything was divided.\n\n"
     ">>> from limen import Fading, OnlineThreshold\n"
     ">>> fading = Fading(OnlineThreshold(), half_life=10, by=\"time\")\n"
     ">>> fading.update(0.3, 1, time=0), fading.update(0.7, 0, time=0)\n"
     "(True, True)\n"
     ">>> fading.advance(10)\n"
     ">>> fading.loss\n"
     "0.5\n"},
    {nullptr, nullptr, 0, nullptr}};

// A window over a model of limen, of which `periods` are its length and max_ahead.
template <class T>
void begin_window(T* self, const char* name, nb::handle model, MemorySettings settings,
                  nb::tuple periods) {
    std::optional<Time> length;
    const std::optional<bool> dated = set_periods(periods, {&length, &settings.max_ahead});
    if (length) settings.period = *length;
    T window;
    window.model = nb::borrow(model);
    const ModelParts parts = parts_of(model);
    if (parts.bounded && settings.keep != Keep::fading)
        refuse(PyExc_TypeError,
               std::string(name) +
                   " takes back every sample that it added, and each one that is taken back widens "
                   "the bound of a model with a capacity, without end. Use Fading, whose bound "
                   "fades too; or keep such a model for each day, and limen.merge() those that "
                   "count; or leave the capacity out.");
    window.keeper = std::make_shared<MemoryHandle>(parts, settings, dated);
    window.keeper->claim(name);
    new (self) T(std::move(window));
}

}  // namespace

void bind_windows(nb::module_& module, nb::class_<Window>& window) {
    window
        .def_prop_ro("model", method<Window>([](Window& self) { return Any(self.model); }),
                     "What holds the samples: read from it, but add samples here.")
        .def_prop_rw("_given", method<Window>([](Window& self) { return self.given; }),
                     [](nb::handle self, nb::dict given) { checked<Window>(self).given = given; })
        .def_prop_ro("_adopted", method<Window>([](Window& self) { return self.adopted; }))
        .def("_check", method<Window>([](Window& self) {
                 looked(self, [](const auto& memory) { memory.check(); });
             }))
        .def("_memory", method<Window>([](Window& self) {
                 return looked(self, [](const auto& memory) { return memory.memory(); });
             }));
    memory_class<LastN>(module, "LastN", last_n_methods, window_length)
        .def("__init__", [](LastN* self, nb::handle model, std::uint64_t n) {
            MemorySettings settings;
            settings.keep = Keep::last_n;
            settings.n = n;
            begin_window(self, "LastN", model, settings, nb::make_tuple(nb::none(), nb::none()));
        });
    auto period =
        memory_class<LastPeriod>(module, "LastPeriod", last_period_methods, window_length);
    period.def("__init__", [](LastPeriod* self, nb::handle model, nb::tuple periods) {
        MemorySettings settings;
        settings.keep = Keep::last_period;
        begin_window(self, "LastPeriod", model, settings, periods);
    });
    bind_clock(period);
    auto fading = memory_class<FadingWindow>(module, "Fading", fading_methods, window_length);
    fading
        .def("__init__",
             [](FadingWindow* self, nb::handle model, nb::tuple periods, bool by_time) {
                 MemorySettings settings;
                 settings.keep = Keep::fading;
                 settings.by_time = by_time;
                 begin_window(self, "Fading", model, settings, periods);
             })
        .def("_scale", method<FadingWindow>([](FadingWindow& self) {
                 return read_group(self,
                                   [&](const auto& memory) { return memory.scale(self.group); });
             }))
        .def("_base", method<FadingWindow>(
                          [](FadingWindow& self) -> nb::typed<nb::object, std::optional<nb::int_>> {
                              const auto base = read_group(self, [&](const auto& memory) {
                                  return memory.base(self.group);
                              });
                              return base ? nb::object(nb::int_(*base)) : nb::none();
                          }))
        .def("_refresh", method<FadingWindow>([](FadingWindow& self) {
                 looked(self, [&](auto& memory) { memory.refresh(self.group); });
             }));
    bind_clock(fading);
    module.attr("fading_high") = HalfLives::high;
}

}  // namespace limen::bindings
