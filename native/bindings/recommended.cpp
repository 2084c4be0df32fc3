// SPDX-License-Identifier: Apache-2.0
//
// How sure: the recommended cut of a model and its interval, and the model of ranks behind it.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "../near_cuts.hpp"
#include "arrays.hpp"
#include "models.hpp"

namespace limen::bindings {

namespace {

// What to answer, or how many samples of one weight those of label 0 and of label 1 are worth,
// where they are too few.
template <class Answer>
struct Sure {
    std::optional<Answer> answer;
    double worth[2] = {0, 0};
};

// `ask` is given the cuts of a model while it is locked.
template <class T, class Ask>
auto asked(T& model, const WholeCosts& costs, double least, Ask&& ask) {
    ObjectLock::Guard guard(model.lock);
    return seen(model.held, costs, [&](const auto& parts, const auto& best) {
        const NearCuts cuts(parts, costs, best);
        Sure<decltype(ask(cuts))> found;
        bool enough = true;
        for (int label : {0, 1}) {
            found.worth[label] = cuts.effective_of(label);
            enough &= found.worth[label] >= least;
        }
        if (enough) found.answer = ask(cuts);
        return found;
    });
}

// A threshold has costs of its own.
template <class Ask>
auto asked(nb::handle model, std::int64_t false_positive, std::int64_t false_negative, double least,
           Ask&& ask) {
    if (nb::isinstance<Threshold>(model)) {
        Threshold& own = instance<Threshold>(model.ptr());
        return asked(own, {own.costs.false_positive, own.costs.false_negative}, least, ask);
    }
    return asked(checked<Calibrator>(model), {false_positive, false_negative}, least, ask);
}

nb::object recommended(nb::handle model, std::int64_t false_positive, std::int64_t false_negative,
                       double least) {
    const auto found = asked(model, false_positive, false_negative, least,
                             [](const auto& cuts) { return threshold_of(cuts.recommended()); });
    if (found.answer) return nb::float_(*found.answer);
    return nb::make_tuple(found.worth[0], found.worth[1]);
}

// Three numbers where there are too few samples, to tell them from an interval.
nb::tuple interval(nb::handle model, std::int64_t false_positive, std::int64_t false_negative,
                   double least, double reach) {
    const auto found = asked(model, false_positive, false_negative, least, [=](const auto& cuts) {
        const auto [low, high] = cuts.ends(reach);
        return std::pair(threshold_of(low), threshold_of(high));
    });
    if (found.answer) return nb::make_tuple(found.answer->first, found.answer->second);
    return nb::make_tuple(found.worth[0], found.worth[1], nb::none());
}

// Whether a threshold lies in the interval: it answers as one of its cuts or one between them.
nb::object keeps(nb::handle model, std::int64_t false_positive, std::int64_t false_negative,
                 double least, double reach, double threshold) {
    const auto found = asked(model, false_positive, false_negative, least, [=](const auto& cuts) {
        const auto [low, high] = cuts.ends(reach);
        return !(low.has_lower && threshold <= low.lower) &&
               (!high.has_upper || threshold <= high.upper);
    });
    if (found.answer) return nb::bool_(*found.answer);
    return nb::make_tuple(found.worth[0], found.worth[1]);
}

nb::tuple rank_model(Array<double> ones, Array<double> zeros) {
    RankBins bins;
    bins.ones.assign(ones.data(), ones.data() + ones.shape(0));
    bins.zeros.assign(zeros.data(), zeros.data() + std::min(zeros.shape(0), ones.shape(0)));
    const RankModel model = fit_ranks(bins);
    return nb::make_tuple(model.slope, model.offset);
}

}  // namespace

void bind_recommended(nb::module_& module) {
    module.def("recommended", &recommended);
    module.def("interval", &interval);
    module.def("keeps", &keeps);
    module.def("rank_model", &rank_model);
}

}  // namespace limen::bindings
