// SPDX-License-Identifier: Apache-2.0
//
// Ledger: how it begins, single scores and labels, and what answers cost.
// One file although long: the methods of one class of Python; batches are in memory_batches.cpp.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <tuple>

#include "bindings/ids.hpp"
#include "bindings/judges.hpp"
#include "bindings/memories.hpp"
#include "bindings/trials.hpp"

namespace limen::bindings {

namespace {

constexpr const char* score_names[] = {"id", "score", "time", "weight", "answer", "group"};

// 0, 1, or -1 where the threshold decides.
int to_answer(PyObject* given) {
    if (!given || given == Py_None) return -1;
    const double value = PyFloat_AsDouble(given);
    if (value == -1.0 && PyErr_Occurred()) PyErr_Clear();  // -1 is no answer either
    if (value != 0 && value != 1)
        refuse(PyExc_ValueError,
               "answer must be 0 or 1, got " + shown(given) + "." + nothing_changed);
    return value == 1;
}

// The weight of a score whose label is to come.
Amount to_score_weight(const MemoryHandle& keeper, nb::handle model, PyObject* given,
                       double& size) {
    if (keeper.settings().labelled)
        return to_weight(keeper, given, keeper.settings().costs.false_positive, nothing_added,
                         size);
    if (given && to_number(given, "weight").real != 1)
        refuse(PyExc_TypeError, "weight is " + shown(given) + ", but " +
                                    nb::str(model.type().attr("__name__")).c_str() +
                                    " takes losses: put the weight into them." + nothing_changed);
    return {};
}

// The number of the group of a score, which is made where it is new: all before any lock.
std::uint32_t to_group(PyObject* self, const MemoryHandle& keeper, PyObject* given) {
    const bool known = given && given != Py_None;
    if (!keeper.grouped()) {
        if (!known) return 0;
        refuse(PyExc_TypeError, "group is " + shown(given) +
                                    ", but the model has no groups. Make a Ledger(Grouped(...)), "
                                    "or leave it out." +
                                    nothing_changed);
    }
    if (!known)
        refuse(PyExc_TypeError, std::string("group is missing: the model has groups. Give each "
                                            "score the group that it belongs to.") +
                                    nothing_changed);
    return nb::cast<std::uint32_t>(nb::handle(self).attr("_number")(nb::handle(given)));
}

PyObject* ledger_score(PyObject* self, PyObject* const* given, Py_ssize_t count,
                       PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        LedgerObject& ledger = instance<LedgerObject>(self);
        const MemoryHandle& keeper = keeper_of(ledger);
        PyObject* args[6] = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
        if (!keywords && count >= 2 && count <= 4)
            std::copy(given, given + count, args);
        else
            parse({"score", score_names, 6, 4, 2}, given, count, keywords, args);
        Request asked{nothing_changed};
        asked.score = keeper.direction().turn(to_score(args[1], nothing_added));
        asked.amount = to_score_weight(keeper, ledger.model, args[3], asked.size);
        const int answer = to_answer(args[4]);
        const OneId id(args[0]);
        asked.id = args[0];
        Moment moment{{}, Calendar::numbers};  // of a step
        const bool timed = args[2] && args[2] != Py_None;
        if (timed) moment = to_moment(args[2], keeper.must_be_dated(), "time");
        asked.time = args[2];
        const bool missing = !timed && keeper.must_be_dated().value_or(false);
        asked.group = args[5];
        asked.number = to_group(self, keeper, args[5]);
        const Result done = attempt<MemoryHandle::Turn>(
            ledger, missing ? nullptr : &moment, asked, [&](auto& memory) {
                if (missing && !memory.has_score(id)) return Result{MemoryRefusal::no_time};
                const Time* time = timed ? &moment.time : nullptr;
                return score_on_trial(ledger, memory, id, asked, time, [&] {
                    return memory.score(id, asked.score, asked.amount, time, answer, asked.number);
                });
            });
        return PyLong_FromLong(done.answer);
    });
}

// The label or the losses of an id, and when they were determined.
struct Outcome {
    bool label = false;
    Amount losses;
    Moment as_of;
    bool dated = false;
};

Outcome to_outcome(const MemoryHandle& keeper, PyObject* const* given, Py_ssize_t count,
                   PyObject* keywords, Request& asked) {
    static constexpr const char* labelled[] = {"id", "label", "as_of"};
    static constexpr const char* losses[] = {"id", "below", "above", "as_of"};
    const bool plain = keeper.settings().labelled;
    const Py_ssize_t wanted = plain ? 2 : 3;
    PyObject* args[4] = {nullptr, nullptr, nullptr, nullptr};
    if (!keywords && count != wanted && count > 0)
        refuse(PyExc_TypeError, std::string("label() takes the id and ") +
                                    (plain ? "label" : "below and above") + ", got " +
                                    std::to_string(count - 1) + " values after the id." +
                                    nothing_changed);
    if (!keywords && count == wanted)
        std::copy(given, given + count, args);
    else
        parse({"label", plain ? labelled : losses, wanted + 1, wanted, wanted}, given, count,
              keywords, args);
    asked.id = args[0];
    Outcome outcome;
    if (plain)
        outcome.label = to_label(args[1], 0.5, nothing_changed);
    else
        outcome.losses = to_losses(keeper, args[1], args[2], nothing_changed, asked.size);
    PyObject* as_of = args[wanted];
    if (as_of && as_of != Py_None) {
        outcome.as_of = to_moment(as_of, keeper.must_be_dated(&MemoryHandle::as_of), "as_of");
        asked.calendar = &MemoryHandle::as_of;
        outcome.dated = true;
        asked.time = as_of;
    }
    return outcome;
}

PyObject* ledger_label(PyObject* self, PyObject* const* given, Py_ssize_t count,
                       PyObject* keywords) {
    return guarded([&]() -> PyObject* {
        LedgerObject& ledger = instance<LedgerObject>(self);
        Request asked{nothing_changed};
        const Outcome outcome = to_outcome(keeper_of(ledger), given, count, keywords, asked);
        const OneId id(asked.id);
        const Result done = attempt<MemoryHandle::Turn>(
            ledger, outcome.dated ? &outcome.as_of : nullptr, asked, [&](auto& memory) {
                return label_on_trial(ledger, memory, id, [&] {
                    return memory.label(id, outcome.label, outcome.losses,
                                        outcome.dated ? &outcome.as_of.time : nullptr);
                });
            });
        return PyBool_FromLong(done.yes);
    });
}

PyObject* ledger_forget(PyObject* self, PyObject* given) {
    return guarded([&]() -> PyObject* {
        const OneId id(given);
        Request asked{nothing_changed};
        LedgerObject& ledger = instance<LedgerObject>(self);
        const Result done = attempt<MemoryHandle::Turn>(ledger, nullptr, asked, [&](auto& memory) {
            return forget_on_trial(ledger, memory, id);
        });
        return PyBool_FromLong(done.yes);
    });
}

// What is known of an id: its score and the answer, the label, when that was determined, and the
// time of the score; what is missing is None. None where the id is unknown. Copied under the lock,
// made Python after it.
PyObject* ledger_known(PyObject* self, PyObject* given) {
    return guarded([&]() -> PyObject* {
        const OneId id(given);
        MemoryHandle& keeper = keeper_of(instance<LedgerObject>(self));
        Entry entry{};
        std::optional<Time> as_of;
        bool found = false;
        {
            ObjectLock::Guard guard(keeper.lock());
            keeper.with([&](const auto& memory) {
                const auto [at, determined] = memory.known(id);
                if (!at) return;
                found = true;
                entry = *at;
                as_of = determined;
            });
        }
        if (!found) return Py_NewRef(Py_None);
        const bool scored = entry.state != EntryState::waiting;
        const nb::object none = nb::none();
        const double score = keeper.direction().turn(entry.score);
        return nb::make_tuple(scored ? nb::object(nb::float_(score)) : none,
                              scored ? nb::object(nb::int_(int{entry.answer})) : none,
                              entry.labelled ? nb::object(nb::int_(int{entry.label})) : none,
                              as_of ? from_time(*as_of, keeper.as_of.load()) : none,
                              scored && entry.timed
                                  ? from_time({entry.time, entry.real}, keeper.times.load())
                                  : none)
            .release()
            .ptr();
    });
}

// The number of the group that an id was scored in; None where it has no score.
PyObject* ledger_group_of(PyObject* self, PyObject* given) {
    return guarded([&]() -> PyObject* {
        const OneId id(given);
        MemoryHandle& keeper = keeper_of(instance<LedgerObject>(self));
        std::optional<std::uint32_t> group;
        {
            ObjectLock::Guard guard(keeper.lock());
            keeper.with([&](const auto& memory) {
                const Entry* at = memory.known(id).first;
                if (at && at->state != EntryState::waiting) group = at->group;
            });
        }
        return group ? PyLong_FromUnsignedLong(*group) : Py_NewRef(Py_None);
    });
}

int ledger_contains(PyObject* self, PyObject* given) {
    int found = -1;
    guarded([&]() -> PyObject* {
        const OneId id(given);
        MemoryHandle& keeper = keeper_of(instance<LedgerObject>(self));
        ObjectLock::Guard guard(keeper.lock());
        found = keeper.with([&](const auto& memory) { return memory.contains(id); });
        return nullptr;
    });
    return found;
}

Py_ssize_t ledger_length(PyObject* self) {
    Py_ssize_t length = -1;
    guarded([&]() -> PyObject* {
        length = static_cast<Py_ssize_t>(
            read(instance<LedgerObject>(self), [](const auto& memory) { return memory.ids(); }));
        return nullptr;
    });
    return length;
}

double answers_cost(LedgerObject& ledger) {
    MemoryHandle& keeper = keeper_of(ledger);
    if (keeper.settings().keep == Keep::fading)
        return keeper.number(1) *
               read(ledger, [](const auto& memory) { return memory.faded_cost(); });
    return keeper.number(read(ledger, [](const auto& memory) { return memory.cost(); }));
}

double answers_cost_ever(LedgerObject& ledger) {
    return keeper_of(ledger).number(read(ledger, [](const auto& memory) { return memory.ever(); }));
}

double answers_regret(LedgerObject& ledger) {
    MemoryHandle& keeper = keeper_of(ledger);
    if (keeper.settings().keep == Keep::fading) {
        const auto [cost, loss, scale] = read(ledger, [](const auto& memory) {
            return std::tuple(memory.faded_cost(), memory.loss(), memory.scale());
        });
        return keeper.number(1) * cost - keeper.number(loss) / scale;
    }
    return keeper.number(
        read(ledger, [](const auto& memory) { return memory.cost() - memory.loss(); }));
}

PyMethodDef ledger_methods[] = {
    LIMEN_FAST("score", ledger_score,
               "score($self, id, score, time=None, weight=1, *, answer=None, group=None)\n--\n\n"
               "Record a score and return the answer to it by the threshold of this moment. "
               "O(log n).\n\n"
               "Where something else decided, say a threshold that is reviewed first, pass the "
               "`answer`\nthat was given. The same score again changes nothing and returns the "
               "same answer.\nOver groups, give the `group` that it belongs to.\n\n"
               ">>> from limen import Ledger, OnlineThreshold\n"
               ">>> ledger = Ledger(OnlineThreshold())\n"
               ">>> ledger.score(\"a\", 0.9, answer=1)\n"
               "1\n"
               ">>> ledger.score(\"a\", 0.9)\n"
               "1\n"),
    LIMEN_FAST("label", ledger_label,
               "label($self, id, *outcome, as_of=None, **named)\n--\n\n"
               "Record the label of an id: ``label(id, label)``, for `OnlineCut` ``(id, below, "
               "above)``.\n\n"
               "Return whether the id has a score; if not, the label waits for it. The same label "
               "again\nchanges nothing, another one is a correction. With `as_of`, the time at "
               "which the label was\ndetermined, a label that is older than the one known changes "
               "nothing either. O(log n).\n\n"
               ">>> from limen import Ledger, OnlineThreshold\n"
               ">>> ledger = Ledger(OnlineThreshold())\n"
               ">>> ledger.label(\"a\", 1)\n"
               "False\n"
               ">>> ledger.score(\"a\", 0.9)\n"
               "0\n"
               ">>> len(ledger.model), ledger.cost\n"
               "(1, 1.0)\n"),
    {"forget", ledger_forget, METH_O,
     "forget($self, id)\n--\n\n"
     "Remove every trace of an id; return whether there was any. O(log n).\n\n"
     ">>> from limen import Ledger, OnlineThreshold\n"
     ">>> Ledger(OnlineThreshold()).forget(\"a\")\n"
     "False\n"},
    {"_known", ledger_known, METH_O, nullptr},
    {"_group_of", ledger_group_of, METH_O, nullptr},
    {"advance", advance<LedgerObject>, METH_O,
     "advance($self, time)\n--\n\n"
     "Let the clock show this time, if it is the latest so far.\n\n"
     "O(1) for each score that has run out, and what the model takes for each sample that has\n"
     "come to count or left the window.\n\n"
     ">>> from limen import Ledger, OnlineThreshold\n"
     ">>> ledger = Ledger(OnlineThreshold(), time_to_live=10)\n"
     ">>> ledger.score(\"a\", 0.9, time=5)\n"
     "0\n"
     ">>> ledger.advance(15)\n"
     ">>> len(ledger), ledger.expired\n"
     "(0, 1)\n"},
    {nullptr, nullptr, 0, nullptr}};

// `costs` are those of a model that has none: two whole numbers, and the parts of their unit.
void set_account(nb::tuple costs, MemorySettings& settings, LossScale& account) {
    if (costs.size() == 0) return;
    const auto number = [&](std::size_t i) { return nb::cast<std::int64_t>(costs[i]); };
    settings.account = {number(0), number(1)};
    account = {number(2), number(3)};
}

// Take a window that is empty and belongs to nobody.
void adopt_window(Window& window, const MemorySettings& settings, const LossScale& account,
                  std::optional<bool> dated) {
    MemoryHandle& keeper = keeper_of(window);
    bool adopted = false;
    std::size_t samples = 0;
    {
        ObjectLock::Guard guard(keeper.lock());
        adopted = window.adopted;
        samples = keeper.samples();
        if (!adopted && samples == 0) {
            keeper.adopt(settings, account, dated);
            window.adopted = true;
            return;
        }
    }
    if (adopted)
        refuse(PyExc_ValueError, "model belongs to another ledger already. Give one of its own.");
    refuse(PyExc_ValueError,
           "model holds " + std::string(nb::str(nb::str("{:,}").attr("format")(samples)).c_str()) +
               " samples already, whose ids nobody knows. Give an empty one.");
}

// `periods` are time_to_live, maturity, correctable, horizon, max_ahead and the window's own.
// `groups` is None, or what shows the groups, of which `model` is that of all samples.
void begin_ledger(LedgerObject* self, nb::handle model, nb::tuple periods, nb::tuple costs,
                  nb::handle groups, std::uint64_t at_least) {
    LedgerObject ledger;
    ledger.model = nb::borrow(groups.is_none() ? model : groups);
    const bool over_window = nb::isinstance<Window>(model) && !nb::isinstance<LedgerObject>(model);
    if (over_window)
        ledger.keeper = instance<Window>(model.ptr()).keeper;
    else
        ledger.keeper =
            std::make_shared<MemoryHandle>(parts_of(model), MemorySettings{}, std::nullopt);
    MemoryHandle& keeper = keeper_of(ledger);
    MemorySettings settings = keeper.settings();
    std::optional<Time> own;
    const std::optional<bool> dated =
        set_periods(periods, {&settings.time_to_live, &settings.maturity, &settings.correctable,
                              &settings.horizon, &settings.max_ahead, &own});
    settings.at_least = at_least;
    LossScale account = keeper.account();
    set_account(costs, settings, account);
    if (over_window) {
        adopt_window(instance<Window>(model.ptr()), settings, account, dated);
    } else {
        keeper.adopt(settings, account, dated);
        keeper.claim("Ledger");
    }
    if (!groups.is_none())
        keeper.begin_groups(over_window ? instance<Window>(model.ptr()).model : nb::borrow(model));
    new (self) LedgerObject(std::move(ledger));
}

// Take a new model or window, which nobody else has, for a group inside of another.
std::uint32_t add_group(nb::handle self, nb::handle model, std::uint32_t inside) {
    LedgerObject& ledger = checked<LedgerObject>(self);
    MemoryHandle& keeper = keeper_of(ledger);
    if (!nb::isinstance<Window>(model))
        return keeper.add_group(nb::borrow(model), inside, "Ledger");
    Window& window = instance<Window>(model.ptr());
    const char* owner = parts_of(window.model).ownership->owner;
    window.keeper.reset();  // the model is free again
    window.group = keeper.add_group(window.model, inside, owner);
    window.keeper = ledger.keeper;
    window.adopted = true;
    return window.group;
}

// ---- the trials of candidate thresholds ----

// Terms and trial change in one call, between which no handler of a signal runs.
void begin_trial(nb::handle self, std::uint32_t group, double current, double candidate,
                 nb::handle age, nb::dict terms) {
    std::optional<Time> period;
    set_periods(nb::make_tuple(age), {&period});
    LedgerObject& ledger = checked<LedgerObject>(self);
    MemoryHandle& keeper = keeper_of(ledger);
    ledger.trial_terms[nb::int_(group)] = terms;
    ObjectLock::Guard guard(keeper.lock());
    const auto since = keeper.with([](const auto& memory) { return memory.newest(); });
    ledger.trials.insert_or_assign(
        group, Trial{current, candidate, Judge(period.value_or(Time{}), since)});
}

void end_trial(nb::handle self, std::uint32_t group, nb::dict terms) {
    LedgerObject& ledger = checked<LedgerObject>(self);
    MemoryHandle& keeper = keeper_of(ledger);
    ledger.trial_terms[nb::int_(group)] = terms;
    ObjectLock::Guard guard(keeper.lock());
    ledger.trials.erase(group);
}

// What `body` makes of the judge of a group at the time of the clock; none where there is none.
template <class Body>
auto looked_at(nb::handle self, std::uint32_t group, Body&& body) {
    LedgerObject& ledger = checked<LedgerObject>(self);
    MemoryHandle& keeper = keeper_of(ledger);
    ObjectLock::Guard guard(keeper.lock());
    std::optional<decltype(body(std::declval<const Judge&>()))> found;
    if (const auto at = ledger.trials.find(group); at != ledger.trials.end()) {
        const auto clock = keeper.with([](const auto& memory) { return memory.newest(); });
        if (clock) at->second.judge.advance(*clock);
        found = body(std::as_const(at->second.judge));
    }
    return found;
}

// What the samples of a group count, how many are too young, and whether some were lost.
using TrialCounts = nb::typed<nb::tuple, JudgeRows, int, bool>;
nb::typed<nb::object, std::optional<TrialCounts>> trial_counts(nb::handle self,
                                                               std::uint32_t group) {
    const auto found = looked_at(self, group, [](const Judge& judge) {
        return std::tuple(judge.counts(), judge.waiting(), judge.lost());
    });
    if (!found) return nb::none();
    const auto& [rows, waiting, lost] = *found;
    return nb::make_tuple(from_rows(rows), waiting, lost);
}

nb::typed<nb::object, std::optional<nb::bytes>> trial_state(nb::handle self, std::uint32_t group) {
    const auto state = looked_at(self, group, [](const Judge& judge) { return judge.state(); });
    if (!state) return nb::none();
    return nb::bytes(state->data(), state->size());
}

void restore_trial(nb::handle self, std::uint32_t group, nb::bytes state) {
    LedgerObject& ledger = checked<LedgerObject>(self);
    Judge judge = restored_judge(state);
    ObjectLock::Guard guard(keeper_of(ledger).lock());
    ledger.trials.at(group).judge = std::move(judge);
}

}  // namespace

nb::class_<LedgerObject, Window> bind_ledger(nb::module_& module) {
    auto ledger =
        memory_class<LedgerObject>(module, "Ledger", ledger_methods, ledger_length,
                                   {Py_sq_contains, reinterpret_cast<void*>(&ledger_contains)});
    ledger
        .def("__init__", &begin_ledger, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
             nb::arg())
        .def("_add_group", &add_group)
        .def("_begin_trial", &begin_trial)
        .def("_end_trial", &end_trial)
        .def("_trial_counts", &trial_counts)
        .def("_trial_state", &trial_state)
        .def("_restore_trial", &restore_trial)
        .def_prop_ro("_trial_terms",
                     method<LedgerObject>([](LedgerObject& ledger) { return ledger.trial_terms; }))
        .def_prop_ro("cost", method<LedgerObject>(&answers_cost),
                     "What the answers given cost, for the samples that count now. O(1).")
        .def_prop_ro("cost_ever", method<LedgerObject>(&answers_cost_ever),
                     "The same for all samples that ever came to count, also if they left a "
                     "window. O(1).")
        .def_prop_ro("regret", method<LedgerObject>(&answers_regret),
                     "How much `cost` exceeds the loss of the cheapest threshold in hindsight. "
                     "O(1).\n\n"
                     "It compares on the same samples, those that count now, and is exact. It is "
                     "negative when\nthresholds that moved did better than any single one.")
        .def_prop_ro("expired", method<LedgerObject>([](LedgerObject& self) {
                         return read(self, [](const auto& memory) { return memory.expired(); });
                     }),
                     "How many scores got no label, and labels no score, in their time to live.")
        .def_prop_ro(
            "pending", method<LedgerObject>([](LedgerObject& self) {
                return read(self, [](const auto& memory) {
                    const StateCounts of = memory.states();
                    return of.waiting + of.open + of.young;
                });
            }),
            "How many ids do not count yet: scores that wait for a label, labels that wait "
            "for a score, and\nnegatives for their maturity. O(1).");
    bind_clock(ledger);
    return ledger;
}

}  // namespace limen::bindings
