// SPDX-License-Identifier: Apache-2.0
//
// Calibrator: the best cut of every cost, and the isotonic fit.

#include <nanobind/nanobind.h>

#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/shared_methods.hpp"
#include "bindings/slots.hpp"
#include "samples/isotonic.hpp"
#include "samples/venn_abers.hpp"

namespace limen::bindings {

namespace {

double calibrated_threshold(nb::handle self, std::int64_t false_positive,
                            std::int64_t false_negative) {
    Calibrator& model = checked<Calibrator>(self);
    return model.direction.turn(model.read_hull([=](const auto& held) {
        return threshold_of(held.tree().best(false_positive, false_negative));
    }));
}

// The last two are what one unit of loss at these costs is.
Optimum calibrated_optimum(nb::handle self, std::int64_t false_positive,
                           std::int64_t false_negative, std::int64_t loss_numerator,
                           std::int64_t loss_denominator) {
    Calibrator& model = checked<Calibrator>(self);
    const auto [cut, all, bits] = model.read_hull([=](const auto& held) {
        const auto& tree = held.tree();
        return std::tuple(tree.best(false_positive, false_negative), tree.totals(), held.bits());
    });
    const Wide units = Wide{false_positive} * (all.above - cut.under.above) +
                       Wide{false_negative} * cut.under.below;
    return optimum(cut, LossScale{loss_numerator, loss_denominator}(units, bits), model.direction);
}

Columns<double, double> calibrated_curve(nb::handle self, std::int64_t false_positive,
                                         std::int64_t false_negative, std::int64_t loss_numerator,
                                         std::int64_t loss_denominator) {
    return curve_columns(checked<Calibrator>(self), LossScale{loss_numerator, loss_denominator},
                         [&](const Losses& missed) {
                             return Wide{false_positive} * missed.above +
                                    Wide{false_negative} * missed.below;
                         });
}

Between between(bool linear) { return linear ? Between::linear : Between::step; }

double probability_of(nb::handle self, double score, bool linear) {
    Calibrator& model = checked<Calibrator>(self);
    return model.read_hull([&, turned = model.direction.turn(score)](const auto& held) {
        return probability_at(held.tree(), turned, between(linear));
    });
}

NewArray<double> probabilities_of(nb::handle self, Array<double> given, bool linear) {
    Calibrator& model = checked<Calibrator>(self);
    const TurnedScores scores(given, model.direction);
    auto values = new_array<double>(scores.size());
    double* out = values.data();
    const auto find = [&](const auto& hull) {
        probabilities(hull, scores.data(), scores.size(), between(linear), out);
    };
    if (model.before.knows_hull()) {
        const HullCopy hull = model.before.tree();
        nb::gil_scoped_release released;
        find(hull);
    } else {
        const auto guard = model.for_long(scores.size());
        find(model.held.tree());
    }
    return values;
}

// `weight` is that of the sample which is thought of, but never added.
void refuse_trial(const Unit& unit, Refusal refusal, double weight) {
    if (refusal == Refusal::lost) refuse_lost(unit, "the new sample's weight", weight, "");
    if (refusal != Refusal::none) refuse(Denial{refusal, 0, weight}, unit, "");
}

nb::typed<nb::tuple, double, double> interval_of(nb::handle self, double score, double weight) {
    Calibrator& model = checked<Calibrator>(self);
    ProbabilityInterval found;
    const Refusal refusal = model.locked([&](const OnlineHull& held) {
        Trial trial;
        const Refusal measured = measure_trial(held, weight, trial);
        if (measured == Refusal::none)
            found = interval_at(held.tree(), model.direction.turn(score), trial);
        return measured;
    });
    refuse_trial(model.held.unit(), refusal, weight);
    return nb::make_tuple(found.low, found.high);
}

Columns<double, double> intervals_of(nb::handle self, Array<double> given, double weight) {
    Calibrator& model = checked<Calibrator>(self);
    const TurnedScores scores(given, model.direction);
    const std::size_t n = scores.size();
    auto low = new_array<double>(n), high = new_array<double>(n);
    Refusal refusal;
    {
        const auto guard = model.for_long(n);
        Trial trial;
        refusal = measure_trial(model.held, weight, trial);
        if (refusal == Refusal::none)
            intervals(model.held.tree(), scores.data(), n, trial, low.data(), high.data());
    }
    refuse_trial(model.held.unit(), refusal, weight);
    return nb::make_tuple(low, high);
}

NewArray<double> probabilities_in(Array<double> first, Array<double> last, Array<double> values,
                                  Array<double> scores, bool linear) {
    const std::size_t n = scores.shape(0);
    auto found = new_array<double>(n);
    const std::size_t b = std::min({first.shape(0), last.shape(0), values.shape(0)});
    const BlockColumns blocks{first.data(), last.data(), values.data(), b};
    for (std::size_t i = 0; i < n; ++i)
        found.data()[i] = blocks.probability_at(scores.data()[i], between(linear));
    return found;
}

// What one unit of weight is.
using WeightUnit = nb::typed<nb::tuple, nb::int_, nb::int_>;
WeightUnit weight_unit(const LossScale& scale, int bits) {
    return nb::make_tuple(nb::int_(scale.numerator), nb::int_(scale.denominator) << nb::int_(bits));
}

// First and last scores, the weights of label 1 and of both, counts, values; the unit.
using BlockColumns =
    nb::typed<nb::tuple, NewArray<double>, NewArray<double>, NewArray<std::int64_t>,
              NewArray<std::int64_t>, NewArray<std::int64_t>, NewArray<double>, WeightUnit>;
BlockColumns block_columns(const std::vector<Block>& blocks, const LossScale& scale, int bits) {
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
    return nb::make_tuple(first, last, positive, weight, count, value, weight_unit(scale, bits));
}

// What `body` makes of the hull, of which there may be much to see.
template <class Body>
int looked_through(Calibrator& model, Body&& body) {
    if (model.before.knows_hull()) return body(model.before);
    return model.locked_for_long(0, body);
}

BlockColumns held_blocks(Calibrator& model) {
    std::vector<Block> blocks;
    const int bits = looked_through(model, [&](const auto& held) {
        held.tree().blocks([&](const Block& block) { blocks.push_back(block); });
        return held.bits();
    });
    return block_columns(blocks, model.scale, bits);
}

BlockColumns isotonic_blocks(Array<double> scores, Array<std::uint8_t> labels, nb::object weights,
                             std::int64_t unit_numerator, std::int64_t unit_denominator,
                             std::int64_t weight_numerator, std::int64_t weight_denominator) {
    const OwnedColumn owned(weights, "weights");
    const Unit unit = unit_of(unit_numerator, unit_denominator);
    std::vector<Block> blocks;
    Trouble trouble;
    int bits = 0;
    {
        nb::gil_scoped_release released;
        std::vector<SignedRow> rows;
        trouble = labelled_rows(scores.data(), labels.data(), scores.shape(0), owned.column, {1, 1},
                                Measure(unit), bits, rows);
        Wide total = 0;
        for (const SignedRow& row : rows) total += row.below() + row.above();
        if (!trouble && total >= most_units)
            trouble = {Trouble::too_large, 0, "", 0, size_of(rows, unit, bits), bits};
        if (!trouble) blocks = fit_blocks(joined(rows));
    }
    if (trouble) refuse(trouble, unit, "");
    return block_columns(blocks, {weight_numerator, weight_denominator}, bits);
}

// The cuts that `walk` shows before it returns the places in use, with the weights of label 1 and
// of label 0 below each; the weights of all; the unit.
using CutColumns = nb::typed<nb::tuple, NewArray<double>, NewArray<double>, NewArray<double>,
                             NewArray<std::int64_t>, NewArray<std::int64_t>, WeightUnit>;
template <class Walk>
CutColumns cut_columns(Calibrator& model, Walk&& walk) {
    std::vector<double> lower, upper, threshold;
    std::vector<std::int64_t> below, above;
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    const int bits = walk([&](const HullCut& cut) {
        lower.push_back(cut.has_lower ? cut.lower : none);
        upper.push_back(cut.has_upper ? cut.upper : none);
        threshold.push_back(threshold_of(cut));
        below.push_back(cut.under.below);
        above.push_back(cut.under.above);
    });
    return nb::make_tuple(array_of(std::move(lower)), array_of(std::move(upper)),
                          array_of(std::move(threshold)), array_of(std::move(below)),
                          array_of(std::move(above)), weight_unit(model.scale, bits));
}

CutColumns hull_cuts(Calibrator& model) {
    return cut_columns(model, [&](auto visit) {
        return looked_through(model, [&](const auto& held) {
            held.tree().vertices(visit);
            return held.bits();
        });
    });
}

CutColumns all_cuts(Calibrator& model) {
    return cut_columns(model, [&](auto visit) {
        return model.locked_for_long(all_scores, [&](const OnlineHull& held) {
            const std::int64_t negatives = held.tree().totals().above;
            held.curve([&](const Losses& missed, const Gap& cut) {
                visit(HullCut{cut, {missed.below, negatives - missed.above, 0}});
            });
            return held.bits();
        });
    });
}

// Weights of true and false positives, false and true negatives. No score reaches nan.
nb::typed<nb::tuple, double, double, double, double> confusion_at(nb::handle self,
                                                                  nb::handle given) {
    Calibrator& model = checked<Calibrator>(self);
    const double threshold = model.direction.turn(to_double(given.ptr(), "threshold"));
    const auto [all, under, bits] = model.locked([=](const OnlineHull& held) {
        const HullTree& tree = held.tree();
        return std::tuple(tree.totals(),
                          threshold == threshold ? tree.sums_below(threshold) : tree.totals(),
                          held.bits());
    });
    return nb::make_tuple(model.scale(all.below - under.below, bits),
                          model.scale(all.above - under.above, bits),
                          model.scale(under.below, bits), model.scale(under.above, bits));
}

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

PyMethodDef bounded_calibrator_methods[] = {
    LIMEN_METHOD("update", LabelledFace<BoundedCalibrator>, true,
                 "update($self, score, label, weight=1)\n--\n\n"
                 "Add one sample. O(log capacity), and O(capacity) when buckets become wider.\n\n"
                 ">>> import limen\n"
                 ">>> calibrator = limen.OnlineCalibrator(capacity=64)\n"
                 ">>> calibrator.update(0.3, 0)\n"
                 ">>> calibrator.update(0.7, 1, weight=2)\n"
                 ">>> calibrator.threshold()\n"
                 "0.5\n"),
    LIMEN_METHOD("revert", LabelledFace<BoundedCalibrator>, false,
                 "revert($self, score, label, weight=1)\n--\n\n"
                 "Take back one sample that was added. O(log capacity).\n\n"
                 "Raises limen.NotHeld where it is certain that there is no such sample. Elsewhere "
                 "it cannot be known:\nwhoever takes back what was never added makes the bound "
                 "wrong.\n\n"
                 ">>> import limen\n"
                 ">>> calibrator = limen.OnlineCalibrator(capacity=64)\n"
                 ">>> calibrator.update(0.3, 0)\n"
                 ">>> calibrator.revert(0.3, 0)\n"
                 ">>> len(calibrator)\n"
                 "0\n"),
    {nullptr, nullptr, 0, nullptr}};

template <class T>
struct CalibratorProperties {
    static inline PyGetSetDef table[] = {LIMEN_DIRECTION(T),
                                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
};

PyType_Slot bounded_calibrator_slots[] = {
    {Py_tp_methods, bounded_calibrator_methods},
    {Py_tp_getset, CalibratorProperties<BoundedCalibrator>::table},
    {Py_sq_length, reinterpret_cast<void*>(&get_length<BoundedCalibrator>)},
    {0, nullptr}};

// The optimum, and by how much its loss can at most be above that of the best cut.
nb::typed<nb::tuple, Optimum, double> bounded_offer(nb::handle self, std::int64_t false_positive,
                                                    std::int64_t false_negative,
                                                    std::int64_t loss_numerator,
                                                    std::int64_t loss_denominator) {
    BoundedCalibrator& model = checked<BoundedCalibrator>(self);
    const auto [offer, bits] = model.locked([=](const ClassGrid& held) {
        return std::pair(held.best(false_positive, false_negative), held.bits());
    });
    const LossScale scale{loss_numerator, loss_denominator};
    return nb::make_tuple(optimum(offer.cut, scale(offer.loss, bits), model.direction),
                          scale(offer.bound, bits));
}

PyType_Slot calibrator_slots[] = {{Py_tp_methods, calibrator_methods},
                                  {Py_tp_getset, CalibratorProperties<Calibrator>::table},
                                  {Py_sq_length, reinterpret_cast<void*>(&get_length<Calibrator>)},
                                  {0, nullptr}};

}  // namespace

void bind_calibrator(nb::module_& module) {
    nb::class_<Calibrator> calibrator(module, "Calibrator", nb::type_slots(calibrator_slots));
    calibrator.def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int>())
        .def("_threshold", &calibrated_threshold)
        .def("_optimum", &calibrated_optimum)
        .def("_curve", &calibrated_curve)
        .def("_probability", &probability_of)
        .def("_probabilities", &probabilities_of)
        .def("_interval", &interval_of)
        .def("_intervals", &intervals_of)
        .def("_blocks", method<Calibrator>([](Calibrator& model) { return held_blocks(model); }))
        .def("_hull", method<Calibrator>([](Calibrator& model) { return hull_cuts(model); }))
        .def("_cuts", method<Calibrator>([](Calibrator& model) { return all_cuts(model); }))
        .def("_confusion", &confusion_at, nb::arg().none());
    bind_slots(calibrator, calibrator_methods, CalibratorProperties<Calibrator>::table);
    bind_labelled(calibrator);
    bind_shared(calibrator);

    nb::class_<BoundedCalibrator> bounded(module, "BoundedCalibrator",
                                          nb::type_slots(bounded_calibrator_slots));
    bounded.def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::size_t>())
        .def("_many", &labelled_many<BoundedCalibrator>, nb::arg(), nb::arg().noconvert(),
             nb::arg().none(), nb::arg())
        .def("_offer", &bounded_offer);
    bind_slots(bounded, bounded_calibrator_methods, CalibratorProperties<BoundedCalibrator>::table);
    bind_stored(bounded);
    module.def("isotonic_blocks", &isotonic_blocks, nb::arg(), nb::arg(), nb::arg().none(),
               nb::arg(), nb::arg(), nb::arg(), nb::arg());
    module.def("probabilities_in", &probabilities_in);
    module.attr("hull_leaf_slots") = HullTree::leaf_slots;
}

}  // namespace limen::bindings
