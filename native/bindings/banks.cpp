// SPDX-License-Identifier: Apache-2.0
//
// Bank: members that Python made, which share one lock and change together.

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../bank.hpp"
#include "arrays.hpp"
#include "memories.hpp"

namespace limen::bindings {

namespace {

// The object that Python holds.
struct Bank {
    nb::tuple members;                  // an OnlineThreshold, and memories that fade
    Threshold* all = nullptr;           // the first
    std::vector<const Keeper*> fading;  // of the others
    std::optional<MemoryBank> bank;
    nb::dict given;  // settings as the caller wrote them
};

MemoryBank& bank_of(Bank& self) {
    if (!self.bank)
        refuse(PyExc_RuntimeError, "the object is not initialised: call super().__init__().");
    return *self.bank;
}

// Members are new, and nobody else has them.
void begin_bank(Bank* made, nb::tuple members, double false_positive, double false_negative,
                double patience) {
    Bank self;
    self.members = members;
    self.all = &checked<Threshold>(members[0]);
    const Costs costs{self.all->costs.false_positive, self.all->costs.false_negative};
    std::vector<MemoryBank::Member> fading;
    std::vector<Belonging*> others;
    for (std::size_t i = 1; i < members.size(); ++i) {
        FadingWindow& window = checked<FadingWindow>(members[i]);
        const ModelParts parts = parts_of(window.model);
        Keeper& keeper = keeper_of(window);
        self.fading.push_back(&keeper);
        keeper.with([&](auto& memory) {
            if constexpr (std::is_same_v<decltype(memory), MemoryBank::Fading&>)
                fading.push_back({parts.cut, &memory});
        });
        others.push_back(parts.belonging);
        others.back()->lock_owner = members[0];
    }
    {
        ObjectLock::Guard guard(self.all->lock);
        for (Belonging* other : others) ObjectLock::share(other->lock, *self.all->lock.load());
    }
    self.bank.emplace(self.all->held, std::move(fading), costs,
                      std::pair(false_positive, false_negative), patience);
    new (made) Bank(std::move(self));
}

// While locked: all there is to say about a refusal; `size` is about the losses asked for.
Denial denial_of(const Bank& self, const BankRefusal& refusal, double score, double size) {
    if (refusal.member == 0) return self.all->denial(refusal.refusal, score, refusal.bits, size);
    const bool many = refusal.refusal == Refusal::too_many;
    return self.fading[refusal.member - 1]->denial(
        many ? MemoryRefusal::too_many : MemoryRefusal::too_large, size);
}

std::vector<double> to_thresholds(PyObject* given, std::size_t members, Direction direction) {
    std::vector<double> found;
    for (nb::handle each : nb::iter(nb::handle(given)))
        found.push_back(direction.turn(to_double(each.ptr(), "thresholds")));
    if (found.size() != members)
        refuse(PyExc_ValueError, "thresholds must be those of " + std::to_string(members) +
                                     " members, got " + std::to_string(found.size()) + "." +
                                     nothing_changed);
    return found;
}

PyObject* bank_update(PyObject* object, PyObject* const* given, Py_ssize_t count,
                      PyObject* keywords) {
    static constexpr const char* names[] = {"score", "label", "weight", "thresholds"};
    return guarded([&]() -> PyObject* {
        Bank& self = instance<Bank>(object);
        MemoryBank& bank = bank_of(self);
        PyObject* args[4] = {nullptr, nullptr, nullptr, nullptr};
        if (!keywords && count >= 2 && count <= 3)
            std::copy(given, given + count, args);
        else
            parse({"update", names, 4, 3, 2}, given, count, keywords, args);
        const Direction direction = self.all->direction;
        const double own = to_score(args[0], nothing_added), score = direction.turn(own);
        const bool label = to_label(args[1], own, nothing_added);
        Number weight{true, 1, 1};
        if (args[2]) weight = to_number(args[2], "weight");
        if (!(weight.real >= 0) || std::isinf(weight.real))
            refuse_number("weight", shown(args[2]), wanted_weight, nothing_added);
        std::vector<double> thresholds;
        if (args[3] && args[3] != Py_None)
            thresholds = to_thresholds(args[3], bank.size(), direction);
        const double* judged = thresholds.empty() ? nullptr : thresholds.data();
        Denial denial;
        {
            ObjectLock::Guard guard(self.all->lock);
            const BankRefusal refusal = weight.whole
                                            ? bank.update(score, label, weight.integer, judged)
                                            : bank.update(score, label, weight.real, judged);
            if (refusal) denial = denial_of(self, refusal, score, weight.real);
        }
        if (denial.refusal == Refusal::lost)
            refuse_lost(self.all->held.unit(), "weight", weight.real, nothing_added);
        if (denial) refuse(denial, self.all->held.unit(), nothing_added);
        return Py_NewRef(Py_None);
    });
}

// Another thread may change the columns meanwhile, so this works on copies of them.
void bank_update_many(nb::handle object, Array<double> given, Array<std::uint8_t> labels,
                      nb::object weights) {
    Bank& self = checked<Bank>(object);
    const TurnedScores scores(given, self.all->direction);
    MemoryBank& bank = bank_of(self);
    const OwnedColumn owned(weights, "weights");
    Trouble trouble;
    Denial denial;
    {
        ObjectLock::LongGuard guard(self.all->lock);
        const std::size_t rows = scores.size();
        const std::vector<double> xs(scores.data(), scores.data() + rows);
        const std::vector<std::uint8_t> ys(labels.data(), labels.data() + rows);
        std::vector<std::int64_t> whole;
        std::vector<double> real;
        Column column = owned.column;
        if (column.whole) {
            whole.assign(column.whole, column.whole + rows);
            column.whole = whole.data();
        } else if (column.real) {
            real.assign(column.real, column.real + rows);
            column.real = real.data();
        }
        int bits = 0;
        trouble = find_nan(xs.data(), rows);
        if (!trouble && !column.ones()) trouble = survey(column, rows, false, self.all->held, bits);
        if (!trouble) {
            const BankRefusal refusal = bank.update_many(xs.data(), ys.data(), rows, column);
            if (refusal) {
                const double weight = column.ones() ? 1.0 : column.with([&](const auto* weights) {
                    return static_cast<double>(weights[refusal.row]);
                });
                if (refusal.refusal == Refusal::lost)
                    trouble = {Trouble::lost, refusal.row, "weights", weight};
                else
                    denial = denial_of(self, refusal, xs[refusal.row], weight);
            }
        }
    }
    if (trouble) refuse(trouble, self.all->held.unit(), nothing_added);
    if (denial) refuse(denial, self.all->held.unit(), nothing_added);
}

template <class Body>
auto looked_at(Bank& self, Body&& body) {
    MemoryBank& bank = bank_of(self);
    ObjectLock::Guard guard(self.all->lock);
    return body(bank);
}

PyObject* bank_threshold(PyObject* object, void*) {
    return guarded([&] {
        Bank& self = instance<Bank>(object);
        return PyFloat_FromDouble(self.all->direction.turn(
            looked_at(self, [](const MemoryBank& bank) { return bank.threshold(bank.leader()); })));
    });
}

Py_ssize_t bank_length(PyObject* object) {
    Py_ssize_t length = -1;
    guarded([&]() -> PyObject* {
        length = static_cast<Py_ssize_t>(looked_at(
            instance<Bank>(object), [](const MemoryBank& bank) { return bank.samples(); }));
        return nullptr;
    });
    return length;
}

nb::tuple tuple_of(const std::vector<double>& numbers) {
    nb::list made;
    for (const double number : numbers) made.append(number);
    return nb::tuple(made);
}

nb::tuple bank_thresholds(Bank& self) {
    return tuple_of(looked_at(self, [&](const MemoryBank& bank) {
        std::vector<double> found;
        for (std::size_t i = 0; i < bank.size(); ++i)
            found.push_back(self.all->direction.turn(bank.threshold(i)));
        return found;
    }));
}

// What members hold, how many samples there were, where weights are their own, and what answers
// cost.
nb::tuple bank_state(Bank& self) {
    MemoryBank& bank = bank_of(self);
    BankState state;
    {
        ObjectLock::LongGuard guard(self.all->lock);
        state = bank.state();
    }
    nb::list members, bases;
    for (const std::string& each : state.members)
        members.append(nb::bytes(each.data(), each.size()));
    for (const auto& base : state.bases)
        bases.append(base ? nb::object(nb::int_(*base)) : nb::none());
    return nb::make_tuple(nb::tuple(members), state.count, nb::tuple(bases), tuple_of(state.spent));
}

void bank_restore(Bank& self, nb::tuple members, std::uint64_t count, nb::tuple bases,
                  nb::tuple spent) {
    MemoryBank& bank = bank_of(self);
    BankState state;
    for (nb::handle each : members) {
        const auto bytes = nb::cast<nb::bytes>(each);
        state.members.emplace_back(bytes.c_str(), bytes.size());
    }
    state.count = count;
    for (nb::handle base : bases) {
        state.bases.emplace_back();
        if (!base.is_none()) state.bases.back() = nb::cast<std::int64_t>(base);
    }
    for (nb::handle each : spent) state.spent.push_back(nb::cast<double>(each));
    bool sound = true;
    {
        ObjectLock::LongGuard guard(self.all->lock);
        sound = bank.restore(state);
    }
    if (!sound) refuse(PyExc_ValueError, "members that no such bank has");
}

int bank_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(self)));
    if (!nb::inst_ready(self)) return 0;
    const Bank& bank = *nb::inst_ptr<Bank>(self);
    Py_VISIT(bank.members.ptr());
    Py_VISIT(bank.given.ptr());
    return 0;
}

PyMethodDef bank_methods[] = {
    LIMEN_FAST("update", bank_update,
               "update($self, score, label, weight=1, *, thresholds=None)\n--\n\n"
               "Let every member answer a sample, then hold it. O(log n) for each.\n\n"
               "An error changes nothing. Where labels come late, keep the `thresholds` of the "
               "moment of scoring,\nand give them here: members are then judged by what they would "
               "have answered. Judged by what\nthey know when the label comes, short memories "
               "would look better than they are.\n\n"
               ">>> from limen import Bank, OnlineThreshold\n"
               ">>> bank = Bank(OnlineThreshold(), half_lives=(25,))\n"
               ">>> then = bank.thresholds\n"
               ">>> bank.update(0.5, 1, thresholds=then)\n"
               ">>> bank.costs\n"
               "{None: 1.0, 25: 1.0}\n"),
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef bank_properties[] = {
    {"threshold", bank_threshold, nullptr, "The threshold of the member that leads.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot bank_slots[] = {{Py_tp_methods, bank_methods},
                            {Py_tp_getset, bank_properties},
                            {Py_tp_traverse, reinterpret_cast<void*>(&bank_traverse)},
                            {Py_sq_length, reinterpret_cast<void*>(&bank_length)},
                            {0, nullptr}};

}  // namespace

void bind_banks(nb::module_& module) {
    nb::class_<Bank>(module, "Bank", nb::type_slots(bank_slots))
        .def("__init__", &begin_bank)
        .def_prop_rw("_given", method<Bank>([](Bank& self) { return self.given; }),
                     [](nb::handle self, nb::dict given) { checked<Bank>(self).given = given; })
        .def_prop_ro("thresholds", method<Bank>(&bank_thresholds),
                     "The thresholds of all members now, that of all samples first. O(log n) for "
                     "each.")
        .def_prop_ro("_members", method<Bank>([](Bank& self) { return self.members; }))
        .def("_update_many", &bank_update_many, nb::arg(), nb::arg().noconvert(), nb::arg().none())
        .def("_lead", method<Bank>([](Bank& self) {
                 return looked_at(self, [](const MemoryBank& bank) { return bank.leader(); });
             }))
        .def("_spent", method<Bank>([](Bank& self) {
                 return tuple_of(
                     looked_at(self, [](const MemoryBank& bank) { return bank.spent(); }));
             }))
        .def("_state", method<Bank>(&bank_state))
        .def("_restore",
             [](nb::handle self, nb::tuple members, std::uint64_t count, nb::tuple bases,
                nb::tuple spent) {
                 bank_restore(checked<Bank>(self), members, count, bases, spent);
             })
        .def("_memory", method<Bank>([](Bank& self) {
                 return looked_at(self, [](const MemoryBank& bank) { return bank.memory(); });
             }))
        .def("_check", method<Bank>([](Bank& self) {
                 looked_at(self, [](const MemoryBank& bank) { bank.check(); });
             }));
}

}  // namespace limen::bindings
