// SPDX-License-Identifier: Apache-2.0
//
// The cuts near the best one, and the recommended cut, against their definition over all cuts.
// Nodes are so small that every search goes through many, and weights change between questions.

#define LIMEN_TEST_MAIN
#include "samples/near_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "instances.hpp"
#include "samples/ranked.hpp"
#include "tests/testing.hpp"
#include "tests/testing_trees.hpp"

namespace {

using namespace limen;
using limen::testing::effort;
using limen::testing::inf;
using limen::testing::Random;
using limen::testing::succeeds_with;

struct Sample {
    double score;
    bool label;
    std::int64_t weight;
};

// What lies below a cut, and the scores next to it.
struct Place {
    WeightSums sums;
    Gap gap;
};

// Every cut, by adding up all samples.
std::vector<Place> places_of(const std::vector<Sample>& samples) {
    std::map<double, WeightSums> scores;
    for (const Sample& each : samples) {
        WeightSums& own = scores[each.score];
        (each.label ? own.ones : own.zeros) += each.weight;
        own.squares[each.label] += Wide{each.weight} * each.weight;
    }
    std::vector<Place> places(1);
    for (const auto& [score, own] : scores) {
        places.back().gap.has_upper = true;
        places.back().gap.upper = score;
        Place next{places.back().sums + own, {}};
        next.gap.has_lower = true;
        next.gap.lower = score;
        places.push_back(next);
    }
    return places;
}

class Definition {
public:
    Definition(const std::vector<Sample>& samples, const WholeCosts& costs)
        : costs_(costs), places_(places_of(samples)) {
        for (const Place& place : places_)
            if (costs.between(best_.sums, place.sums) <= 0) best_ = place;  // the highest of equals
    }

    const std::vector<Place>& places() const { return places_; }
    const Gap& best() const { return best_.gap; }

    bool near(const Place& place, double reach) const {
        const double fp = double(costs_.false_positive), fn = double(costs_.false_negative);
        const double ones = std::fabs(place.sums.ones_squared() - best_.sums.ones_squared());
        const double zeros = std::fabs(place.sums.zeros_squared() - best_.sums.zeros_squared());
        const double error =
            std::sqrt(std::max(fn * fn * ones + fp * fp * zeros, fp * fn * (ones + zeros)));
        return static_cast<double>(costs_.between(best_.sums, place.sums)) <= reach * error;
    }
    std::pair<Gap, Gap> ends(double reach) const {
        std::vector<Gap> found;
        for (const Place& place : places_)
            if (near(place, reach)) found.push_back(place.gap);
        return {found.front(), found.back()};
    }
    double worth() const {
        const WeightSums& all = places_.back().sums;
        const double weight = static_cast<double>(all.weight());
        return weight * weight / (all.ones_squared() + all.zeros_squared());
    }
    // Of the cuts within reach the one nearest to where the map would cut; bins and maps have tests
    // of their own.
    Gap recommended(const AveragedMap& map) const {
        const double weight = static_cast<double>(places_.back().sums.weight());
        const double reach = 0.75 * std::min(1.0, std::pow(300 / worth(), 0.25));
        const MapDecision decision(map, double(costs_.false_positive),
                                   double(costs_.false_negative));
        double goal = decision.below_cut();
        if (places_.size() - 1 > map.bins().size()) {
            goal = weight;
            for (std::size_t i = 1; i < places_.size(); ++i) {
                const double before = static_cast<double>(places_[i - 1].sums.weight());
                const double after = static_cast<double>(places_[i].sums.weight());
                if (before + after < 2 * decision.rank_of_cut()) continue;
                goal = before;
                break;
            }
        }
        double nearest = inf;
        const auto away = [&](const Place& place) {
            return std::fabs(static_cast<double>(place.sums.weight()) - goal);
        };
        for (const Place& place : places_)
            if (near(place, reach)) nearest = std::min(nearest, away(place));
        const Place* found = nullptr;
        for (const Place& place : places_)
            if (near(place, reach) && away(place) <= nearest + 1e-9 * weight / worth())
                if (!found || costs_.between(found->sums, place.sums) < 0) found = &place;
        return found->gap;
    }

private:
    WholeCosts costs_;
    std::vector<Place> places_;
    Place best_{};
};

bool same(const Gap& a, const Gap& b) {
    return a.has_lower == b.has_lower && a.has_upper == b.has_upper &&
           (!a.has_lower || a.lower == b.lower) && (!a.has_upper || a.upper == b.upper);
}

bool same_bits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// A map that was kept gives the same answer as one that is made again, whatever scores are.
template <class Cuts>
void check_kinds(const Cuts& cuts, const std::string& note) {
    for (const ScoreKind kind : {ScoreKind::probabilities, ScoreKind::raw})
        for (const bool lower_is_positive : {false, true}) {
            const ScoreScale scale{kind, lower_is_positive};
            KeptMap kept, fresh;
            const double first = cuts.recommended(scale, kept);
            CHECK_NOTE(same_bits(cuts.recommended(scale, kept), first), note);
            CHECK_NOTE(same_bits(cuts.recommended(scale, fresh), first), note);
        }
}

template <class Parts, class Best>
void check_cuts(const Parts& parts, const WholeCosts& costs, const Best& best,
                const Definition& wanted, const std::string& note) {
    const NearCuts cuts(parts, costs, best);
    CHECK_NOTE(std::fabs(cuts.effective_samples() / wanted.worth() - 1) < 1e-12, note);
    for (const double reach : {0.0, 0.3, 1.0, 2.31, 50.0}) {
        const auto found = cuts.ends(reach), ends = wanted.ends(reach);
        CHECK_NOTE(same(found.first, ends.first) && same(found.second, ends.second), note);
    }
    KeptMap kept;
    const ScoreScale ranks;
    const Gap chosen = wanted.recommended(cuts.averaged(ranks, kept));
    const double threshold = cuts.recommended(ranks, kept);
    CHECK_NOTE(threshold == threshold_of(chosen) || std::isnan(threshold_of(chosen)), note);
    KeptMap other;
    CHECK_NOTE(same_bits(cuts.recommended(ranks, other), threshold), note);
    if (wanted.places().size() % 8 == 0) check_kinds(cuts, note);
}

// The same samples as arrays in order of score.
void check_ranked(const std::vector<Sample>& samples, const WholeCosts& costs,
                  const Definition& wanted, const std::string& note) {
    const auto check = [&](const auto& ranked) {
        const auto& parts = ranked.parts();
        CHECK_NOTE(ranked.rows(false) + ranked.rows(true) ==
                       static_cast<std::int64_t>(samples.size()),
                   note);
        check_cuts(parts, costs, parts.below()[parts.best()], wanted, note);
    };
    std::vector<SignedRow> rows;
    LabelledScores plain(samples.size(), 0, 0);
    bool even = true;
    for (const Sample& each : samples) {
        rows.push_back({ordered_bits(each.score), each.label ? -each.weight : each.weight});
        plain.put(each.score, each.label);
        even = even && each.weight == 1;
    }
    check(Ranked<RankedSums>(std::move(rows), costs));
    if (even) check(Ranked<Counts>(plain, costs));
}

// Asks a model, and compares.
template <class Samples>
void check_model(const Samples& held, const WholeCosts& costs, const std::vector<Sample>& samples,
                 const std::string& note) {
    if (samples.empty()) return;
    const Definition wanted(samples, costs);
    seen(held, costs, [&](const auto& parts, const auto& best) {
        check_cuts(parts, costs, best, wanted, note);
        return 0;
    });
    check_ranked(samples, costs, wanted, note);
}

template <class Samples>
Samples made(const WholeCosts& costs);
template <>
OnlineCut made(const WholeCosts& costs) {
    OnlineCut held({}, 4, 4);
    held.set_costs(costs.false_negative, costs.false_positive);
    return held;
}
template <>
OnlineHull made(const WholeCosts&) {
    OnlineHull held({}, 4);
    held.set_costs(1, 1);
    return held;
}

template <class Samples>
Losses losses_of(const Sample& sample, const WholeCosts& costs) {
    const bool hull = std::is_same_v<Samples, OnlineHull>;
    const std::int64_t cost = hull ? 1 : sample.label ? costs.false_negative : costs.false_positive;
    return sample.label ? Losses{sample.weight * cost, 0} : Losses{0, sample.weight * cost};
}

struct Kind {
    const char* name;
    int scores;
    bool weighted;
};

Sample drawn(Random& random, const Kind& kind) {
    double score = double(random() % static_cast<unsigned>(kind.scores));
    const bool label = double(random() % static_cast<unsigned>(kind.scores)) < score;
    if (random() % 60 == 0) score = random() % 2 ? inf : -inf;
    static constexpr std::int64_t weights[] = {1, 1, 1, 2, 3, 40};
    return {score, label, kind.weighted ? weights[random() % 6] : 1};
}

constexpr Kind kinds[] = {{"plain", 100000, false},
                          {"ties", 15, false},
                          {"weighted", 100000, true},
                          {"weighted ties", 15, true}};
constexpr WholeCosts all_costs[] = {{1, 1}, {1, 5}, {20, 1}, {3, 7}};

template <class Samples>
void walk(int seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Kind& kind = kinds[seed % 4];
    const WholeCosts costs = all_costs[random() % 4];
    Samples held = made<Samples>(costs);
    std::vector<Sample> samples;
    for (int step = 0; step < 300; ++step) {
        const bool removes = !samples.empty() && random() % 100 < (step < 200 ? 30u : 65u);
        if (removes) {
            std::swap(samples[random() % samples.size()], samples.back());
            const Sample gone = samples.back();
            samples.pop_back();
            CHECK(held.remove(gone.score, losses_of<Samples>(gone, costs), 0, true) ==
                  Refusal::none);
        } else {
            samples.push_back(drawn(random, kind));
            CHECK(held.add(samples.back().score, losses_of<Samples>(samples.back(), costs), 0,
                           true) == Refusal::none);
        }
        held.check();
        if (random() % 3 == 0)
            check_model(held, costs, samples,
                        std::string(kind.name) + ", seed " + std::to_string(seed) + ", step " +
                            std::to_string(step));
    }
}

}  // namespace

TEST_CASE("after every change the near cuts are those of the definition") {
    for (int seed = 0; seed < effort(4, 24); ++seed) {
        walk<OnlineCut>(seed);
        walk<OnlineHull>(seed);
    }
}

TEST_CASE("more scores than bins are put into bins of equal weight") {
    for (int seed = 0; seed < effort(2, 6); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        const WholeCosts costs = all_costs[seed % 4];
        OnlineCut cut = made<OnlineCut>(costs);
        OnlineHull hull = made<OnlineHull>(costs);
        std::vector<Sample> samples;
        const Kind kind{"many", 4000, seed % 2 == 0};
        for (int i = 0; i < 3000; ++i) {
            samples.push_back(drawn(random, kind));
            cut.add(samples.back().score, losses_of<OnlineCut>(samples.back(), costs), 0, true);
            hull.add(samples.back().score, losses_of<OnlineHull>(samples.back(), costs), 0, true);
            if (i == 2000) check_model(cut, costs, samples, "with more to come");
        }
        check_model(cut, costs, samples, "cut");
        check_model(hull, costs, samples, "hull");
    }
}

TEST_CASE("sums of weights below every cut are kept up while scores come and go") {
    for (int seed = 0; seed < effort(2, 8); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        WeightIndex index(4);
        std::map<double, WeightSums> held;
        for (int i = 0; i < seed * 20; ++i) held[i] = {i, 1, {1, Wide{i} * i}};
        index.load(held.size(), [&](auto&& take) {
            for (const auto& [score, own] : held) take(score, own);
        });
        for (int step = 0; step < 1500; ++step) {
            const double score = double(random() % 400) - (step > 900 ? 300 : 0);
            const auto weight = static_cast<std::int64_t>(random() % 5);
            const bool goes = random() % 3 == 0;
            const WeightSums own =
                goes ? WeightSums{} : WeightSums{weight, 1, {1, Wide{weight} * weight}};
            if (goes)
                held.erase(score);
            else
                held[score] = own;
            index.set(score, own);
            index.check();
            CHECK(index.distinct() == held.size());
            const double until = double(random() % 400) - 200;
            WeightSums below;
            for (const auto& [each, sum] : held)
                if (each <= until) below = below + sum;
            CHECK(index.under(until) == below);
        }
    }
}

TEST_CASE("where memory runs out the sums are made again, and the samples are what they were") {
    const WholeCosts costs{1, 2};
    OnlineCut held = made<OnlineCut>(costs);
    Random random(3);
    std::vector<Sample> samples;
    for (int step = 0; step < 120; ++step) {
        const Sample sample = drawn(random, kinds[2]);
        if (!held.ones_only()) held.weights();
        const std::string before = held.state();
        for (long granted = 0; !succeeds_with(
                 granted,
                 [&] { held.add(sample.score, losses_of<OnlineCut>(sample, costs), 0, true); });
             ++granted)
            CHECK(held.state() == before);
        samples.push_back(sample);
        held.check();
        check_model(held, costs, samples, "step " + std::to_string(step));
    }
    long failed = 0;
    held.coarsen();
    OnlineCut copy = held.copy();
    while (!succeeds_with(failed, [&] { copy.weights(); })) ++failed;
    CHECK(failed > 0);
    check_model(copy, costs, samples, "a copy");
}
