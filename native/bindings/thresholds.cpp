// SPDX-License-Identifier: Apache-2.0
//
// Threshold and Cut: models that keep the best cut for one pair of costs, or for any losses, and
// the same in bounded memory.

#include <nanobind/nanobind.h>

#include <tuple>
#include <utility>
#include <vector>

#include "bindings/shared_methods.hpp"
#include "bindings/slots.hpp"

namespace limen::bindings {

namespace {

template <class T>
struct CutFace {
    using Type = T;
    static constexpr const char* names[3] = {"score", "below", "above"};
    static constexpr Py_ssize_t required = 3;
};

template <class T>
void cut_many(nb::handle self, Array<double> given, nb::object below, nb::object above,
              bool adding) {
    T& model = checked<T>(self);
    const TurnedScores scores(given, model.direction);
    const OwnedColumn low(below, "below"), high(above, "above");
    const Column columns[2] = {low.column, high.column};
    apply_rows<LossRow>(model, scores, adding, [&](const Measure& in, int& bits, auto& rows) {
        return loss_rows(scores.data(), scores.size(), columns, in, bits, rows);
    });
}

template <class T>
PyObject* get_threshold(PyObject* self, void*) {
    return guarded([&] {
        T& model = instance<T>(self);
        return PyFloat_FromDouble(model.direction.turn(
            model.read([](const auto& held) { return threshold_of(held.best()); })));
    });
}

// The cheapest cut, and its loss.
template <class T>
std::pair<Cut, double> best_of(T& model) {
    const auto [cut, units, bits] = model.read([](const auto& held) {
        return std::tuple(Cut(held.best()), held.loss(held.best()), held.bits());
    });
    return {cut, model.scale(units, bits)};
}

template <class T>
PyObject* get_loss(PyObject* self, void*) {
    return guarded([&] { return PyFloat_FromDouble(best_of(instance<T>(self)).second); });
}

template <class T>
Optimum get_optimum(T& model) {
    const auto [cut, loss] = best_of(model);
    return optimum(cut, loss, model.direction);
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
    LIMEN_METHOD("update", CutFace<AnyCut>, true,
                 "update($self, score, below, above)\n--\n\n"
                 "Add one sample that costs `below` if answered 0 and `above` if answered 1. "
                 "O(log n).\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineCut()\n"
                 ">>> cut.update(0.3, 0, 2)\n"
                 ">>> cut.update(0.7, 1, 0)\n"
                 ">>> cut.threshold\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", CutFace<AnyCut>, false,
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

PyMethodDef bounded_threshold_methods[] = {
    LIMEN_METHOD("update", LabelledFace<BoundedThreshold>, true,
                 "update($self, score, label, weight=1)\n--\n\n"
                 "Add one sample. O(log capacity), and O(capacity) once in a quarter of it.\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineThreshold(capacity=64)\n"
                 ">>> cut.update(0.3, 0)\n"
                 ">>> cut.update(0.7, 1, weight=2)\n"
                 ">>> cut.threshold\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", LabelledFace<BoundedThreshold>, false,
                 "revert($self, score, label, weight=1)\n--\n\n"
                 "Take back one sample that was added. Costs what `update` costs.\n\n"
                 "Raises limen.NotHeld where it is certain that there is no such sample. Elsewhere "
                 "it cannot be known:\nwhoever takes back what was never added makes the bound "
                 "wrong.\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineThreshold(capacity=64)\n"
                 ">>> cut.update(0.3, 0)\n"
                 ">>> cut.revert(0.3, 0)\n"
                 ">>> len(cut)\n"
                 "0\n"),
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef bounded_cut_methods[] = {
    LIMEN_METHOD("update", CutFace<BoundedCut>, true,
                 "update($self, score, below, above)\n--\n\n"
                 "Add one sample that costs `below` if answered 0 and `above` if answered 1. "
                 "O(log capacity), and O(capacity) once in a quarter of it.\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineCut(capacity=64)\n"
                 ">>> cut.update(0.3, 0, 2)\n"
                 ">>> cut.update(0.7, 1, 0)\n"
                 ">>> cut.threshold\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", CutFace<BoundedCut>, false,
                 "revert($self, score, below, above)\n--\n\n"
                 "Take back one sample that was added. Costs what `update` costs.\n\n"
                 "Raises limen.NotHeld where it is certain that there is no such sample. Elsewhere "
                 "it cannot be known:\nwhoever takes back what was never added makes the bound "
                 "wrong.\n\n"
                 ">>> import limen\n"
                 ">>> cut = limen.OnlineCut(capacity=64)\n"
                 ">>> cut.update(0.3, 0, 2)\n"
                 ">>> cut.revert(0.3, 0, 2)\n"
                 ">>> len(cut)\n"
                 "0\n"),
    {nullptr, nullptr, 0, nullptr}};

const char* const threshold_doc =
    "The cheapest threshold now: answer 1 when score >= threshold, or <= by the direction. "
    "O(log n) after a change, else O(1).";
const char* const loss_doc = "The total loss of the cheapest cut. Cost as for `threshold`.";

// By how much the loss can at most be above that of the best cut.
template <class T>
PyObject* get_loss_bound(PyObject* self, void*) {
    return guarded([&] {
        T& model = instance<T>(self);
        const auto [units, bits] =
            model.read([](const auto& held) { return std::pair(held.bound(), held.bits()); });
        return PyFloat_FromDouble(model.scale(units, bits));
    });
}

template <class T>
struct BoundedProperties {
    static inline PyGetSetDef table[] = {
        {"threshold", get_threshold<T>, nullptr,
         "The threshold that is offered: answer 1 when score >= threshold, or <= by the "
         "direction. O(log capacity).",
         nullptr},
        {"loss", get_loss<T>, nullptr,
         "The most that the threshold can cost over all samples. O(log capacity).", nullptr},
        {"loss_bound", get_loss_bound<T>, nullptr,
         "By how much the threshold can at most cost more than the best one; 0: it is the best. "
         "O(1).",
         nullptr},
        LIMEN_DIRECTION(T),
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
};

template <class T>
struct Properties {
    static inline PyGetSetDef table[] = {
        {"threshold", get_threshold<T>, nullptr, threshold_doc, nullptr},
        {"loss", get_loss<T>, nullptr, loss_doc, nullptr},
        LIMEN_DIRECTION(T),
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

PyType_Slot bounded_threshold_slots[] = {
    {Py_tp_methods, bounded_threshold_methods},
    {Py_tp_getset, BoundedProperties<BoundedThreshold>::table},
    {Py_sq_length, reinterpret_cast<void*>(&get_length<BoundedThreshold>)},
    {0, nullptr}};
PyType_Slot bounded_cut_slots[] = {{Py_tp_methods, bounded_cut_methods},
                                   {Py_tp_getset, BoundedProperties<BoundedCut>::table},
                                   {Py_sq_length, reinterpret_cast<void*>(&get_length<BoundedCut>)},
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
    bind_slots(threshold, threshold_methods, Properties<Threshold>::table);
    bind_labelled(threshold);
    bind_cut(threshold);

    nb::class_<AnyCut> cut(module, "Cut", nb::type_slots(cut_slots));
    cut.def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int>())
        .def("_many", &cut_many<AnyCut>);
    bind_slots(cut, cut_methods, Properties<AnyCut>::table);
    bind_cut(cut);

    nb::class_<BoundedThreshold> bounded(module, "BoundedThreshold",
                                         nb::type_slots(bounded_threshold_slots));
    bounded
        .def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                      std::int64_t, std::size_t>())
        .def("_optimum",
             method<BoundedThreshold>([](BoundedThreshold& model) { return get_optimum(model); }));
    bind_slots(bounded, bounded_threshold_methods, BoundedProperties<BoundedThreshold>::table);
    bind_labelled(bounded);
    bind_shared(bounded);

    nb::class_<BoundedCut> bounded_cut(module, "BoundedCut", nb::type_slots(bounded_cut_slots));
    bounded_cut.def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::size_t>())
        .def("_many", &cut_many<BoundedCut>)
        .def("_optimum", method<BoundedCut>([](BoundedCut& model) { return get_optimum(model); }));
    bind_slots(bounded_cut, bounded_cut_methods, BoundedProperties<BoundedCut>::table);
    bind_shared(bounded_cut);

    module.attr("leaf_slots") = leaf_slots;
    module.attr("node_slots") = node_slots;
    module.attr("least_capacity") = BoundedSamples<>::least_capacity;
    module.attr("most_capacity") = BoundedSamples<>::most_capacity;
}

}  // namespace limen::bindings
