// SPDX-License-Identifier: Apache-2.0
//
// How sure: the recommended cut and its interval, of a model or of whole arrays.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/models.hpp"
#include "samples/batch.hpp"
#include "samples/near_cuts.hpp"
#include "samples/ranked.hpp"

namespace limen::bindings {

namespace {

// What scores are, by the name that users give it; "auto" is for whole arrays.
ScoreKind kind_of(nb::handle name) {
    if (nb::str("probabilities").equal(name)) return ScoreKind::probabilities;
    return nb::str("raw").equal(name) ? ScoreKind::raw : ScoreKind::ranks;
}

const char* name_of(ScoreKind kind) {
    if (kind == ScoreKind::probabilities) return "probabilities";
    return kind == ScoreKind::raw ? "raw" : "ranks";
}

// ---- of a model ----

template <class T>
ScoreScale scale_of(const T& model) {
    ScoreScale scale{ScoreKind::ranks, model.direction.lower_is_positive()};
    if (model.given.contains("scores")) scale.kind = kind_of(model.given["scores"]);
    return scale;
}

// What to answer, or how many samples of one weight those of label 0 and of label 1 are worth,
// where they are too few.
template <class Answer>
struct Sure {
    std::optional<Answer> answer;
    double worth[2] = {0, 0};
};

// `ask` is given the cuts of a model while it is locked, what its scores are and the map it keeps.
template <class T, class Ask>
auto asked(T& model, const WholeCosts& costs, double least, Ask&& ask) {
    const ScoreScale scale = scale_of(model);
    ObjectLock::Guard guard(model.lock);
    return seen(model.held, costs, [&](const auto& parts, const auto& best) {
        const NearCuts cuts(parts, costs, best);
        Sure<decltype(ask(cuts, scale, model.map))> found;
        bool enough = true;
        for (int label : {0, 1}) {
            found.worth[label] = cuts.effective_of(label);
            enough &= found.worth[label] >= least;
        }
        if (enough) found.answer = ask(cuts, scale, model.map);
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

Any recommended(nb::handle model, std::int64_t false_positive, std::int64_t false_negative,
                double least) {
    const auto found = asked(model, false_positive, false_negative, least,
                             [](const auto& cuts, const auto& scale, auto& map) {
                                 return cuts.recommended(scale, map);
                             });
    if (found.answer) return nb::float_(*found.answer);
    return nb::make_tuple(found.worth[0], found.worth[1]);
}

// Three numbers where there are too few samples, to distinguish them from an interval.
nb::tuple interval(nb::handle model, std::int64_t false_positive, std::int64_t false_negative,
                   double least, double reach) {
    const auto found =
        asked(model, false_positive, false_negative, least, [=](const auto& cuts, auto&&...) {
            const auto [low, high] = cuts.ends(reach);
            return std::pair(threshold_of(low), threshold_of(high));
        });
    if (found.answer) return nb::make_tuple(found.answer->first, found.answer->second);
    return nb::make_tuple(found.worth[0], found.worth[1], nb::none());
}

Any keeps(nb::handle model, std::int64_t false_positive, std::int64_t false_negative, double least,
          double reach, double threshold) {
    const auto found =
        asked(model, false_positive, false_negative, least,
              [=](const auto& cuts, auto&&...) { return cuts.keeps(threshold, reach); });
    if (found.answer) return nb::bool_(*found.answer);
    return nb::make_tuple(found.worth[0], found.worth[1]);
}

// The averaged chance of label 1 at ascending scores as the core has them, in parts that memory
// holds many of.
std::vector<double> chances_at(const AveragedMap& map, const ScoreScale& scale,
                               const Array<double>& scores) {
    constexpr std::size_t most = 4096;
    std::vector<double> given(scores.data(), scores.data() + scores.shape(0)), found;
    if (map.kind() == ScoreKind::probabilities)
        for (double& each : given) each = scale.chance(each);
    for (std::size_t first = 0; first < given.size(); first += most) {
        const std::size_t size = std::min(most, given.size() - first);
        const auto part = map.chances_at({given.data() + first, size});
        found.insert(found.end(), part.begin(), part.end());
    }
    return found;
}

// Of a calibrator with enough samples.
Any calibrated(nb::handle model, double least, Array<double> scores) {
    const auto found = asked(checked<Calibrator>(model), {1, 1}, least,
                             [&](const auto& cuts, const auto& scale, auto& map) {
                                 return chances_at(cuts.averaged(scale, map), scale, scores);
                             });
    if (found.answer) return nb::cast(array_of(std::vector<double>(*found.answer)));
    return nb::make_tuple(found.worth[0], found.worth[1]);
}

// ---- of whole arrays ----

// What the scores of arrays are; automatic where the scores are to say it.
struct Scores {
    ScoreKind kind;
    bool lower_is_positive, automatic;

    Scores(nb::handle name, bool lower_is_positive)
        : kind(kind_of(name)), lower_is_positive(lower_is_positive),
          automatic(nb::str("auto").equal(name)) {}
};

// Arrays in order of score at some costs, and their cheapest cut. Nothing ever changes, so there is
// no lock.
struct RankedArrays {
    using Either = std::variant<Ranked<Counts>, Ranked<RankedSums>>;

    Either held;
    WholeCosts costs;
    ScoreScale scale;
    std::size_t best;

    RankedArrays(Either&& given, const WholeCosts& at, const Scores& scores)
        : held(std::move(given)), costs(at), scale{scores.kind, scores.lower_is_positive},
          best(std::visit([](const auto& samples) { return samples.parts().best(); }, held)) {
        if (scores.automatic) scale.kind = seems();
    }

    // Probabilities where all scores could be; one score alone says nothing.
    ScoreKind seems() const {
        const auto& scores = std::visit(
            [](const auto& samples) -> auto& { return samples.parts().scores(); }, held);
        const bool inside = scores.size() > 1 && scale.chance(scores.front()) >= 0 &&
                            scale.chance(scores.back()) <= 1;
        return inside ? ScoreKind::probabilities : ScoreKind::raw;
    }

    // Let `look` see the samples, without the interpreter.
    template <class Look>
    auto seen(Look&& look) const {
        nb::gil_scoped_release released;
        return std::visit(look, held);
    }
    template <class Ask>
    auto asked(Ask&& ask) const {
        return seen([&](const auto& samples) {
            const auto& parts = samples.parts();
            return ask(NearCuts(parts, costs, parts.below()[best]), parts);
        });
    }
};

void rank(RankedArrays* self, Array<double> scores, Array<std::uint8_t> labels, nb::object weights,
          std::int64_t false_positive, std::int64_t false_negative, nb::str kind,
          bool lower_is_positive) {
    const WholeCosts costs{false_positive, false_negative};
    const Scores are(kind, lower_is_positive);
    const OwnedColumn owned(weights, "weights");
    const std::size_t n = scores.shape(0);
    Trouble trouble;
    const auto make = [&]() -> std::optional<RankedArrays> {
        nb::gil_scoped_release released;
        if (owned.column.ones())
            if (auto given = labelled_scores(scores.data(), labels.data(), n))
                return RankedArrays(Ranked<Counts>(*given, costs), costs, are);
        int bits = 0;
        std::vector<SignedRow> rows;
        trouble = labelled_rows(scores.data(), labels.data(), n, owned.column, {1, 1},
                                Measure(Unit{}), bits, rows);
        if (trouble) return {};
        return RankedArrays(Ranked<RankedSums>(std::move(rows), costs), costs, are);
    };
    std::optional<RankedArrays> made = make();
    if (trouble) refuse(trouble, Unit{}, "");
    new (self) RankedArrays(std::move(*made));
}

// Scores in ascending order, and how many samples of each label have them.
RankedArrays rank_counted(Array<double> scores, Array<std::int64_t> ones, Array<std::int64_t> zeros,
                          std::int64_t false_positive, std::int64_t false_negative, nb::str kind,
                          bool lower_is_positive) {
    const WholeCosts costs{false_positive, false_negative};
    return {Ranked<Counts>(scores.data(), ones.data(), zeros.data(), scores.shape(0), costs), costs,
            Scores(kind, lower_is_positive)};
}

// Of label 0 and label 1: how many samples there are, and how many of one weight would be worth as
// much.
using Worth = nb::typed<nb::tuple, std::int64_t, double>;
nb::typed<nb::tuple, Worth, Worth> worth_of(const RankedArrays& self) {
    std::int64_t rows[2];
    double worth[2];
    self.seen([&](const auto& samples) {
        const auto& parts = samples.parts();
        const NearCuts cuts(parts, self.costs, parts.below()[self.best]);
        for (int label : {0, 1}) {
            rows[label] = samples.rows(label);
            worth[label] = cuts.effective_of(label);
        }
    });
    return nb::make_tuple(nb::make_tuple(rows[0], worth[0]), nb::make_tuple(rows[1], worth[1]));
}

// The recommended threshold, the ends of the interval, and the regret in whole costs.
nb::typed<nb::tuple, double, double, double, double> recommend(const RankedArrays& self,
                                                               double reach) {
    struct Answer {
        double threshold, low, high, regret;
    };
    const Answer found = self.asked([&](const auto& cuts, const auto&) {
        KeptMap map;
        const auto [low, high] = cuts.ends(reach);
        return Answer{cuts.recommended(self.scale, map), threshold_of(low), threshold_of(high),
                      cuts.regret()};
    });
    return nb::make_tuple(found.threshold, found.low, found.high, found.regret);
}

// The chance of label 1 at ascending scores as the core has them, and the weight of each map.
nb::tuple ranked_maps(const RankedArrays& self, Array<double> scores) {
    KeptMap kept;
    std::vector<double> chances, shares;
    self.asked([&](const auto& cuts, const auto&) {
        const AveragedMap& map = cuts.averaged(self.scale, kept);
        chances = chances_at(map, self.scale, scores);
        shares = map.shares();
    });
    return nb::make_tuple(array_of(std::move(chances)), array_of(std::move(shares)));
}

bool ranked_keeps(const RankedArrays& self, double threshold, double reach) {
    return self.asked([=](const auto& cuts, const auto&) { return cuts.keeps(threshold, reach); });
}

double distance_of(const RankedArrays& self, double threshold) {
    return self.asked([=](const auto& cuts, const auto& parts) {
        return cuts.distance(parts.below()[parts.place(threshold)]);
    });
}

// The weight of all samples, and the sum of its squares.
nb::typed<nb::tuple, double, double> weight_of(const RankedArrays& self) {
    const auto found = self.asked([](const auto&, const auto& parts) {
        const auto& all = parts.below().back();
        return std::pair(static_cast<double>(all.weight()),
                         all.ones_squared() + all.zeros_squared());
    });
    return nb::make_tuple(found.first, found.second);
}

// False positives and false negatives in each fold, by the threshold recommended for the others:
// how many, their weight, and that squared.
using WrongRows = nb::typed<nb::tuple, std::int64_t, std::int64_t, double>;
nb::typed<nb::list, nb::typed<nb::tuple, WrongRows, WrongRows>> cross_fit(const RankedArrays& self,
                                                                          std::int64_t folds) {
    std::vector<std::pair<Wrong, Wrong>> found;
    self.seen([&](const auto& samples) {
        for (std::int64_t fold = 0; fold < folds; ++fold)
            found.push_back(tested(samples, self.costs, fold, folds, [&](const auto& others) {
                const NearCuts cuts(others, self.costs, others.below()[others.best()]);
                KeptMap map;
                return cuts.recommended(self.scale, map);
            }));
    });
    const auto shown = [](const Wrong& wrong) {
        return nb::make_tuple(wrong.rows, wrong.weight, wrong.squared);
    };
    nb::list all;
    for (const auto& [alarms, missed] : found)
        all.append(nb::make_tuple(shown(alarms), shown(missed)));
    return all;
}

// What it can be made of again: scores, counts or labels and weights, and the costs.
nb::tuple ranked_state(const RankedArrays& self) {
    std::vector<double> scores;
    std::vector<std::int64_t> ones, zeros, weights;
    std::vector<std::uint8_t> labels;
    const bool even = std::holds_alternative<Ranked<Counts>>(self.held);
    self.seen([&](const auto& samples) {
        samples.each([&](double score, bool label, std::int64_t units, std::int64_t count) {
            if (!even) {
                scores.push_back(score);
                labels.push_back(label);
                weights.push_back(units);
            } else if (label) {
                ones.push_back(count);
            } else {
                scores.push_back(score);
                zeros.push_back(count);
            }
        });
    });
    const nb::object second =
        even ? nb::cast(array_of(std::move(ones))) : nb::cast(array_of(std::move(labels)));
    return nb::make_tuple(array_of(std::move(scores)), second,
                          array_of(even ? std::move(zeros) : std::move(weights)),
                          self.costs.false_positive, self.costs.false_negative,
                          name_of(self.scale.kind), self.scale.lower_is_positive);
}

void restore_ranked(RankedArrays* self, nb::tuple state) {
    const auto scores = nb::cast<Array<double>>(state[0]);
    const auto positive = nb::cast<std::int64_t>(state[3]);
    const auto negative = nb::cast<std::int64_t>(state[4]);
    const auto kind = nb::cast<nb::str>(state[5]);
    const auto lower_is_positive = nb::cast<bool>(state[6]);
    Array<std::uint8_t> labels;
    if (nb::try_cast(state[1], labels, false))
        return rank(self, scores, labels, state[2], positive, negative, kind, lower_is_positive);
    const auto ones = nb::cast<Array<std::int64_t>>(state[1]);
    const auto zeros = nb::cast<Array<std::int64_t>>(state[2]);
    new (self) RankedArrays(
        rank_counted(scores, ones, zeros, positive, negative, kind, lower_is_positive));
}

}  // namespace

void bind_recommended(nb::module_& module) {
    module.def("recommended", &recommended);
    module.def("interval", &interval);
    module.def("calibrated", &calibrated);
    module.def("keeps", &keeps);
    nb::class_<RankedArrays>(module, "Ranked")
        .def("__init__", &rank, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg())
        .def_static("counted", &rank_counted)
        .def_prop_ro("kind", [](const RankedArrays& self) { return name_of(self.scale.kind); })
        .def("worth", &worth_of)
        .def("recommend", &recommend)
        .def("maps", &ranked_maps)
        .def("keeps", &ranked_keeps)
        .def("distance", &distance_of)
        .def("weight", &weight_of)
        .def("cross_fit", &cross_fit)
        .def("__getstate__", &ranked_state)
        .def("__setstate__", &restore_ranked);
}

}  // namespace limen::bindings
