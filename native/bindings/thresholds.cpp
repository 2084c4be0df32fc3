// SPDX-License-Identifier: Apache-2.0
//
// Threshold and Cut: models that keep the best cut for one pair of costs, or for any losses.

#include <nanobind/nanobind.h>

#include <tuple>
#include <utility>
#include <vector>

#include "shared_methods.hpp"
#include "slots.hpp"

namespace limen::bindings {

namespace {

struct CutFace {
    using Type = AnyCut;
    static constexpr const char* names[3] = {"score", "below", "above"};
    static constexpr Py_ssize_t required = 3;
};

void cut_many(nb::handle self, Array<double> scores, nb::object below, nb::object above,
              bool adding) {
    AnyCut& model = checked<AnyCut>(self);
    const OwnedColumn low(below, "below"), high(above, "above");
    const Column columns[2] = {low.column, high.column};
    apply_rows<LossRow>(model, scores.data(), adding, [&](int& bits, std::vector<LossRow>& rows) {
        return loss_rows(scores.data(), scores.shape(0), columns, model.held, bits, rows);
    });
}

template <class T>
PyObject* get_threshold(PyObject* self, void*) {
    return guarded([&] {
        return PyFloat_FromDouble(
            instance<T>(self).locked([](const auto& held) { return threshold_of(held.best()); }));
    });
}

// The cheapest cut, and its loss.
template <class T>
std::pair<Cut, double> best_of(T& model) {
    const auto [cut, units, bits] = model.locked([](const auto& held) {
        return std::tuple(held.best(), held.loss(held.best()), held.bits());
    });
    return {cut, model.scale(units, bits)};
}

template <class T>
PyObject* get_loss(PyObject* self, void*) {
    return guarded([&] { return PyFloat_FromDouble(best_of(instance<T>(self)).second); });
}

template <class T>
nb::tuple get_optimum(T& model) {
    const auto [cut, loss] = best_of(model);
    return optimum(cut, loss);
}

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
PyType_Slot cut_slots[] = {{Py_tp_methods, cut_methods},
                           {Py_tp_getset, Properties<AnyCut>::table},
                           {Py_sq_length, reinterpret_cast<void*>(&get_length<AnyCut>)},
                           {0, nullptr}};

template <class T>
void bind_cut(nb::class_<T>& type) {
    bind_shared(type);
    type.def("_optimum", method<T>([](T& model) { return get_optimum(model); }))
        .def("_curve", method<T>([](T& model) { return curve(model); }));
}

}  // namespace

void bind_thresholds(nb::module_& module) {
    nb::class_<Threshold> threshold(module, "Threshold", nb::type_slots(threshold_slots));
    threshold.def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
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
    module.attr("leaf_slots") = leaf_slots;
    module.attr("node_slots") = node_slots;
}

}  // namespace limen::bindings
