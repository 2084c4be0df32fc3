// SPDX-License-Identifier: Apache-2.0
//
// The samples held against exact sums of wide whole numbers: one by one, in batches, refused,
// measured ever finer, written to bytes and read back from bytes that were tampered with.

#define LIMEN_TEST_MAIN
#include "samples/held_samples.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "instances.hpp"
#include "tests/testing_memory.hpp"
#include "tests/testing_trees.hpp"

namespace {

using namespace limen;
using namespace limen::testing;

constexpr std::uint32_t most_samples = std::numeric_limits<std::uint32_t>::max();
constexpr Unit cents{false, 1, 100};

constexpr int thoroughness = testing::effort(1, 8);

// ---- one sample, as a caller would give it ----

struct Sample {
    double score, below, above;
};

int places(const OnlineCut& cut, const std::vector<Sample>& samples) {
    int bits = cut.bits();
    for (const Sample& sample : samples)
        bits = std::max({bits, cut.bits_for(sample.below), cut.bits_for(sample.above)});
    return bits;
}

Refusal measured_once(const OnlineCut& cut, const std::vector<Sample>& samples, int& bits,
                      std::vector<Losses>& losses) {
    bits = places(cut, samples);
    losses.assign(samples.size(), {});
    for (std::size_t i = 0; i < samples.size(); ++i) {
        Refusal refusal = cut.measure(samples[i].below, 1, bits, losses[i].below);
        if (refusal == Refusal::none)
            refusal = cut.measure(samples[i].above, 1, bits, losses[i].above);
        if (refusal != Refusal::none) return refusal;
    }
    return Refusal::none;
}

// What is too large in places that nothing needs any more is measured again.
Refusal measured(OnlineCut& cut, const std::vector<Sample>& samples, int& bits,
                 std::vector<Losses>& losses) {
    const Refusal refusal = measured_once(cut, samples, bits, losses);
    if (refusal != Refusal::too_large || !cut.coarsen()) return refusal;
    return measured_once(cut, samples, bits, losses);
}

Refusal add(OnlineCut& cut, const Sample& sample) {
    int bits;
    std::vector<Losses> losses;
    const Refusal refusal = measured(cut, {sample}, bits, losses);
    return refusal == Refusal::none ? cut.add(sample.score, losses[0], bits) : refusal;
}

Refusal remove(OnlineCut& cut, const Sample& sample, bool one_sided) {
    int bits;
    std::vector<Losses> losses;
    const Refusal refusal = measured(cut, {sample}, bits, losses);
    if (refusal != Refusal::none) return refusal;
    return cut.remove(sample.score, losses[0], bits, one_sided);
}

void fill(std::vector<SignedRow>& rows, double score, const Losses& losses) {
    rows.push_back({ordered_bits(score), losses.above - losses.below});
}
void fill(std::vector<LossRow>& rows, double score, const Losses& losses) {
    rows.push_back({ordered_bits(score), {losses.below, losses.above}});
}

template <class Row>
Refusal many(OnlineCut& cut, const std::vector<Sample>& samples, bool adding, double& missing) {
    int bits;
    std::vector<Losses> losses;
    const Refusal refusal = measured(cut, samples, bits, losses);
    if (refusal != Refusal::none) return refusal;
    std::vector<Row> rows;
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (losses[i].below || losses[i].above) fill(rows, samples[i].score, losses[i]);
    constexpr bool one_sided = std::is_same_v<Row, SignedRow>;
    return adding ? cut.add_many(rows, bits) : cut.remove_many(rows, bits, one_sided, missing);
}

Refusal many(OnlineCut& cut, const std::vector<Sample>& samples, bool adding, bool one_sided,
             double& missing) {
    return one_sided ? many<SignedRow>(cut, samples, adding, missing)
                     : many<LossRow>(cut, samples, adding, missing);
}

Refusal add_many(OnlineCut& cut, const std::vector<Sample>& samples, bool one_sided = true) {
    double missing = 0;
    return many(cut, samples, true, one_sided, missing);
}

Refusal remove_many(OnlineCut& cut, const std::vector<Sample>& samples, bool one_sided = true) {
    double missing = 0;
    return many(cut, samples, false, one_sided, missing);
}

// ---- the oracle: sums of any size in the finest unit there is ----

struct Sums {
    Wide below = 0, above = 0;
    std::uint64_t count = 0;
};

class Exact {
public:
    explicit Exact(Unit unit) : unit_(unit) {}

    // Cents by their decimal digits, other numbers by their nearest multiple of 2^-20.
    Wide units(double value) const {
        return static_cast<Wide>(unit_.automatic ? std::nearbyint(std::ldexp(value, finest_bits))
                                                 : std::round(value * 100));
    }

    void add(const Sample& sample, int sign) {
        const Wide below = units(sample.below), above = units(sample.above);
        if (below == 0 && above == 0) return;
        Sums& sums = held[sample.score + 0.0];
        sums.below += sign * below;
        sums.above += sign * above;
        total += sign * (size(below) + size(above));
        needed[places_of(below, above)] += static_cast<std::uint64_t>(sign);
        if (sign > 0) {
            ++sums.count, ++samples;
        } else {
            --samples;
            if (--sums.count == 0) held.erase(sample.score + 0.0);
        }
    }

    // The binary places without which the losses of one sample, or their sums, are not whole.
    static std::size_t places_of(Wide below, Wide above) {
        int places = finest_bits;
        while (places > 0 && (below | above) % (Wide{1} << (finest_bits + 1 - places)) == 0)
            --places;
        return static_cast<std::size_t>(places);
    }

    std::string state() const {
        int spare = unit_.automatic ? finest_bits : 0;
        for (std::size_t places = 1; unit_.automatic && places < needed.size(); ++places)
            if (needed[places]) spare = finest_bits - static_cast<int>(places);
        const auto narrow = [&](Wide value) {
            while (spare > 0 && value % (Wide{1} << spare) != 0) --spare;
        };
        narrow(total);
        for (const auto& [score, sums] : held) narrow(sums.below), narrow(sums.above);
        std::string bytes;
        const auto put = [&](Wide value) {
            for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 255));
        };
        put(unit_.automatic ? finest_bits - spare : 0);
        put(Wide{samples});
        put(total >> spare);
        put(Wide{held.size()});
        for (const auto& [score, sums] : held) {
            put(Wide{std::bit_cast<std::uint64_t>(score)});
            put(sums.below >> spare);
            put(sums.above >> spare);
            put(Wide{sums.count});
        }
        std::array<std::uint64_t, finest_bits + 1> found{};
        for (const auto& [score, sums] : held)
            found[places_of(sums.below, sums.above)] += sums.count;
        if (unit_.automatic && found != needed)
            for (int i = 1; i <= finest_bits - spare; ++i)
                put(Wide{needed[static_cast<std::size_t>(i)]});
        return bytes;
    }

    // The losses of all cuts in ascending order.
    std::vector<Wide> curve() const {
        Wide loss = 0;
        for (const auto& [score, sums] : held) loss += sums.above;
        std::vector<Wide> losses = {loss};
        for (const auto& [score, sums] : held) losses.push_back(loss += sums.below - sums.above);
        return losses;
    }

    static Wide size(Wide value) { return value < 0 ? -value : value; }

    std::map<double, Sums> held;
    Wide total = 0;
    std::uint64_t samples = 0;
    std::array<std::uint64_t, finest_bits + 1> needed{};  // samples by the places they need

private:
    Unit unit_;
};

void check_same(const Exact& exact, const OnlineCut& cut, const std::string& note) {
    check_sound(cut, note);
    CHECK_NOTE(exact.samples == cut.samples() && exact.held.size() == cut.distinct(), note);
    CHECK_NOTE(exact.state() == cut.state(), note);
    const int shift = cut.unit().automatic ? finest_bits - cut.bits() : 0;
    const auto losses = exact.curve();
    std::vector<double> scores;
    for (const auto& entry : exact.held) scores.push_back(entry.first);
    std::size_t at = 0, cheapest = 0;
    cut.curve([&](const Losses& missed, const Gap& at_cut) {
        CHECK_NOTE((Wide{missed.below} + missed.above) * (Wide{1} << shift) == losses[at], note);
        CHECK_NOTE(at_cut.has_lower == (at > 0), note);
        CHECK_NOTE(at_cut.has_upper == (at < scores.size()), note);
        CHECK_NOTE(!at_cut.has_lower || at_cut.lower == scores[at - 1], note);
        CHECK_NOTE(!at_cut.has_upper || at_cut.upper == scores[at], note);
        if (losses[at] <= losses[cheapest]) cheapest = at;
        ++at;
    });
    CHECK_NOTE(at == losses.size(), note);
    const Cut best = cut.best();
    CHECK_NOTE(Wide{cut.loss(best)} << shift == losses[cheapest], note);
    CHECK_NOTE(best.has_lower == (cheapest > 0), note);
    CHECK_NOTE(!best.has_lower || best.lower == scores[cheapest - 1], note);
    CHECK_NOTE(best.has_upper == (cheapest < scores.size()), note);
    CHECK_NOTE(!best.has_upper || best.upper == scores[cheapest], note);
    for (const auto& [score, sums] : exact.held) {
        const ScoreSums found = cut.find(score);
        CHECK_NOTE(Wide{found.below} << shift == sums.below &&
                       Wide{found.above} << shift == sums.above && found.count == sums.count,
                   note);
    }
}

// ---- samples to draw from ----

double draw_score(Random& random) {
    constexpr double special[] = {-inf, -DBL_MAX, -tiny, -0.0, 0.0, tiny, DBL_MAX, inf};
    if (random() % 8 == 0) return special[random() % std::size(special)];
    return double(random() % 60) / 8 - 3;
}

enum class Weights { whole, dyadic, decimal, cent };

double draw_weight(Random& random, Weights weights) {
    if (weights == Weights::whole || random() % 3 == 0) return double(random() % 6);
    if (weights == Weights::cent) return double(random() % 1000) / 100;
    if (weights == Weights::decimal) return double(1 + random() % 99) / 10;
    return std::ldexp(double(1 + random() % 63), -static_cast<int>(random() % 21));
}

Sample draw(Random& random, Weights weights, bool one_sided) {
    const double score = draw_score(random);
    const double weight = draw_weight(random, weights);
    if (one_sided) return random() % 2 ? Sample{score, weight, 0} : Sample{score, 0, weight};
    const double other = draw_weight(random, weights);
    return {score, random() % 4 ? weight : -weight, random() % 4 ? other : -other};
}

std::vector<Sample> draw_many(Random& random, Weights weights, bool one_sided, std::size_t size) {
    std::vector<Sample> samples;
    while (samples.size() < size) samples.push_back(draw(random, weights, one_sided));
    return samples;
}

// Takes a random part out of the samples.
std::vector<Sample> take(Random& random, std::vector<Sample>& samples, std::size_t size) {
    std::shuffle(samples.begin(), samples.end(), random);
    size = std::min(size, samples.size());
    const std::vector<Sample> taken(samples.end() - static_cast<std::ptrdiff_t>(size),
                                    samples.end());
    samples.resize(samples.size() - size);
    return taken;
}

struct Setting {
    const char* name;
    Unit unit;
    Weights weights;
    bool one_sided;
};

const std::vector<Setting> settings = {
    {"labels", {}, Weights::whole, true},
    {"labels with dyadic weights", {}, Weights::dyadic, true},
    {"labels with decimal weights", {}, Weights::decimal, true},
    {"labels in cents", cents, Weights::cent, true},
    {"losses", {}, Weights::whole, false},
    {"dyadic losses", {}, Weights::dyadic, false},
    {"decimal losses", {}, Weights::decimal, false},
    {"losses in cents", cents, Weights::cent, false},
};

OnlineCut restored(const std::string& state, Unit unit = {}) {
    OnlineCut cut(unit, 4, 4);
    CHECK(cut.restore(state));
    cut.check();
    return cut;
}

void put_word(std::string& bytes, std::size_t word, std::uint64_t value) {
    for (std::size_t i = 0; i < 8; ++i)
        bytes[8 * word + i] = static_cast<char>(value >> (8 * i) & 255);
}

// Two scores, the second with as many samples as can be counted.
OnlineCut crowded() {
    OnlineCut cut({}, 4, 4);
    add(cut, {0.25, 1, 0});
    add(cut, {0.5, 0, 1});
    std::string bytes = cut.state();
    put_word(bytes, 1, std::uint64_t{most_samples} + 1);
    put_word(bytes, 2, std::uint64_t{most_samples} + 1);
    put_word(bytes, 10, most_samples);
    put_word(bytes, 11, most_samples);
    return restored(bytes);
}

// A finer sample that came and went, beside one that stays.
OnlineCut once_finer() {
    OnlineCut cut({}, 4, 4);
    add(cut, {0.5, 1, 0});
    add(cut, {0.25, std::ldexp(1.0, -20), 0});
    CHECK(remove(cut, {0.25, std::ldexp(1.0, -20), 0}, true) == Refusal::none);
    return cut;
}

// As many weights as fit into a new object, and some more.
void check_room(double weight) {
    for (bool batch : {false, true}) {
        OnlineCut always_whole({}, 4, 4), cut = once_finer();
        add(always_whole, {0.5, 1, 0});
        for (int i = 0; i < 6; ++i) {
            const Sample sample{0.75 + i % 2, 0, weight};
            const Refusal expected = add(always_whole, sample);

            CHECK_NOTE((batch ? add_many(cut, {sample}) : add(cut, sample)) == expected,
                       std::to_string(weight));
            cut.check();
            CHECK(cut.state() == always_whole.state());
        }
    }
}

// Everything a caller could notice.
std::string all_of(const OnlineCut& cut) {
    return cut.state() + "/" + std::to_string(cut.bits()) + "/" + std::to_string(cut.total()) +
           "/" + std::to_string(cut.samples());
}

// Whatever was read from bytes must be an object like any other.
void check_usable(OnlineCut& cut, const std::string& note) {
    check_sound(cut, note);
    const std::string state = cut.state();
    OnlineCut again(cut.unit(), 5, 4);
    CHECK_NOTE(again.restore(state), note);
    check_sound(again, note);
    CHECK_NOTE(again.state() == state, note);
    std::int64_t cheapest = std::numeric_limits<std::int64_t>::max();
    double first = 0;
    cut.curve([&](const Losses& missed, const Gap& at_cut) {
        cheapest = std::min(cheapest, missed.below + missed.above);
        if (!at_cut.has_lower && at_cut.has_upper) first = at_cut.upper;
    });
    CHECK_NOTE(cut.loss(cut.best()) == cheapest, note);
    for (double score : {first, 0.375, -0.0}) {
        if (add(cut, {score, 1, 2}) == Refusal::none) {
            check_sound(cut, note);
            CHECK_NOTE(remove(cut, {score, 1, 2}, false) == Refusal::none, note);
        }
        check_sound(cut, note);
        CHECK_NOTE(cut.state() == state, note);
    }
}

void check_hostile(const std::string& bytes, Unit unit, const std::string& note) {
    OnlineCut cut(unit, 4, 4);
    add(cut, {0.125, 3, 0});
    const std::string before = all_of(cut);
    if (cut.restore(bytes)) {
        check_usable(cut, note);
    } else {
        check_sound(cut, note);
        CHECK_NOTE(all_of(cut) == before, note);
    }
}

std::vector<std::string> small_states(Unit unit) {
    std::vector<std::string> states;
    for (std::size_t size : {0u, 1u, 2u, 5u, 9u}) {
        Random random(size);
        OnlineCut cut(unit, 4, 4);
        const Weights weights = unit.automatic ? Weights::dyadic : Weights::cent;
        add_many(cut, draw_many(random, weights, false, size), false);
        states.push_back(cut.state());
    }
    return states;
}

// ---- merging and fading, for both trees ----

template <class Tree>
HeldSamples<Tree> holding(const std::vector<Sample>& samples, Unit unit = {}) {
    HeldSamples<Tree> held(unit, 4);
    for (const Sample& sample : samples) {
        const int bits = std::max(held.bits_for(sample.below), held.bits_for(sample.above));
        Losses losses;
        held.measure(sample.below, 1, bits, losses.below);
        held.measure(sample.above, 1, bits, losses.above);
        CHECK(held.add(sample.score, losses, bits) == Refusal::none);
    }
    held.check();
    return held;
}

std::vector<Sample> labelled_samples(Random& random, std::size_t n) {
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < n; ++i) {
        const double weight = static_cast<double>(1 + random() % 9) / (random() % 2 ? 8 : 1);
        const double score = static_cast<double>(random() % 30) / 4;
        samples.push_back(random() % 2 ? Sample{score, weight, 0} : Sample{score, 0, weight});
    }
    return samples;
}

template <class Tree>
void check_merging() {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Random random(seed);
        const std::vector<Sample> samples = labelled_samples(random, random() % 200);
        std::vector<std::vector<Sample>> shares(1 + random() % 5);
        for (const Sample& sample : samples) shares[random() % shares.size()].push_back(sample);
        HeldSamples<Tree> whole = holding<Tree>(samples), first = holding<Tree>(shares[0]);
        std::vector<typename HeldSamples<Tree>::Part> parts;
        for (std::size_t i = 1; i < shares.size(); ++i)
            parts.push_back(holding<Tree>(shares[i]).part());
        CHECK(first.merge(parts) == Refusal::none);
        first.check();
        CHECK_NOTE(first.state() == whole.state(), with_seed(seed));
    }
}

TEST_CASE("parts become what one object over all would be") {
    check_merging<CutTree>();
    check_merging<HullTree>();
}

template <class Tree>
void check_refused_merge() {
    const double large = std::ldexp(1.0, 60);
    HeldSamples<Tree> held = holding<Tree>({{1, large, 0}, {2, 0, large}});
    const std::string before = held.state();
    const auto other = holding<Tree>({{1, large, 0}, {3, large, 0}}).part();
    CHECK(held.merge({other}) == Refusal::too_large);
    const auto finer = holding<Tree>({{1, 0.25, 0}}).part();
    CHECK(held.merge({finer}) == Refusal::too_large);  // a quarter makes the others too long
    CHECK(held.state() == before);
    held.check();
}

TEST_CASE("a merge that does not fit changes nothing") {
    check_refused_merge<CutTree>();
    check_refused_merge<HullTree>();
}

TEST_CASE("a score has no more samples after a merge than it may") {
    HeldSamples<CutTree>::Part many{{{1, 5, 0, most_samples}}, most_samples, 5, 0, {}};
    OnlineCut held = holding<CutTree>({{1, 1, 0}});
    const std::string before = held.state();
    CHECK(held.merge({many}) == Refusal::too_many);
    CHECK(held.merge({many, many}) == Refusal::too_many);
    CHECK(held.state() == before);
}

template <class Tree>
void check_fading() {
    const Unit ones{false, 1, 1};
    HeldSamples<Tree> held =
        holding<Tree>({{1, 8, 0}, {2, 0, 7}, {3, 2, 0}, {3, 0, 5}, {4, 1, 0}}, ones);
    held.fade(2);
    held.check();
    CHECK(held.find(1).below == 2 && held.find(2).above == 2);
    CHECK(held.find(3).below == 1 && held.find(3).above == 1 && held.find(3).count == 2);
    CHECK(held.find(4).count == 0 && held.samples() == 4 && held.distinct() == 3);
    CHECK(held.total() == 6);
    held.fade(0);
    CHECK(held.total() == 6);
    held.fade(63);
    held.check();
    CHECK(held.state() == HeldSamples<Tree>().state());
    HeldSamples<Tree> finer = holding<Tree>({{1, 8, 0}, {2, 0, 7}});
    finer.fade(22);  // twenty places without rounding, then two with it
    finer.check();
    CHECK(finer.bits() == finest_bits && finer.find(1).below == 2 && finer.find(2).above == 2);
    finer.fade(4);
    finer.check();
    CHECK(finer.samples() == 0 && finer.bits() == 0);
}

TEST_CASE("what fades below half a unit is dropped") {
    check_fading<CutTree>();
    check_fading<HullTree>();
    OnlineCut cut = holding<CutTree>({{1, -8, 3}}, {false, 1, 1});
    cut.fade(1);
    CHECK(cut.find(1).below == -4 && cut.find(1).above == 2);
}

template <class Tree>
void check_withdrawing() {
    const Unit ones{false, 1, 1};
    HeldSamples<Tree> held = holding<Tree>({{1, 9, 0}, {1, 9, 0}, {1, 0, 3}, {2, 0, 7}}, ones);
    held.fade(1);  // 18 becomes 9, while 9 alone would become 5
    CHECK(held.withdraw(1, {5, 0}, true));
    held.check();
    CHECK(held.find(1).below == 4 && held.find(1).above == 2 && held.find(1).count == 2);
    CHECK(held.withdraw(1, {5, 0}, true));  // more than is left
    held.check();
    CHECK(held.find(1).below == 0 && held.find(1).above == 2 && held.samples() == 2);
    CHECK(held.withdraw(2, {0, 1}, true));  // the last of a score takes all of it
    CHECK(held.find(2).count == 0 && !held.withdraw(2, {0, 1}, true));
    CHECK(held.withdraw(1, {0, 2}, true));
    held.check();
    CHECK(held.state() == HeldSamples<Tree>().state());
}

TEST_CASE("a sample that has faded is taken back as far as it is there") {
    check_withdrawing<CutTree>();
    check_withdrawing<HullTree>();
    OnlineCut cut = holding<CutTree>({{1, -8, 3}, {1, -2, 1}});
    CHECK(cut.withdraw(1, {-8, 3}, false));
    cut.check();
    CHECK(cut.find(1).below == -2 && cut.find(1).above == 1 && cut.total() == 3);
}

TEST_CASE("negative losses are no state of labelled samples") {
    const OnlineCut any = holding<CutTree>({{1, -8, 3}}), one = holding<CutTree>({{1, 8, 0}});
    OnlineCut cut;
    OnlineHull hull;
    CHECK(!cut.restore(any.state(), true) && !hull.restore(any.state(), true));
    CHECK(cut.restore(one.state(), true) && hull.restore(one.state(), true));
    hull.check();
    CHECK(hull.state() == one.state());
}

}  // namespace

TEST_CASE("without samples there is one cut and it costs nothing") {
    OnlineCut cut;
    check_same(Exact({}), cut, "new");

    CHECK(cut.loss(cut.best()) == 0 && cut.total() == 0 && cut.bits() == 0);
    CHECK(!cut.best().has_lower && !cut.best().has_upper);
    CHECK(cut.state() == std::string(32, '\0'));
    CHECK(cut.memory() >= sizeof cut);
}

TEST_CASE("four samples are cut where the costs say") {
    OnlineCut even, dear;
    for (const Sample& sample : {Sample{0.1, 0, 1}, {0.25, 1, 0}, {0.5, 0, 1}, {0.75, 1, 0}}) {
        CHECK(add(even, sample) == Refusal::none);
        CHECK(add(dear, {sample.score, 5 * sample.below, sample.above}) == Refusal::none);
    }

    CHECK(even.best().lower == 0.5 && even.best().upper == 0.75 && even.loss(even.best()) == 1);
    CHECK(dear.best().lower == 0.1 && dear.best().upper == 0.25 && dear.loss(dear.best()) == 1);
}

TEST_CASE("adding and removing in any mixture equals exact sums") {
    std::uint64_t seed = 0;
    for (const Setting& setting : settings)
        for (int round = 0; round < 2 * thoroughness; ++round) {
            Random random(++seed);
            const std::string note = setting.name + with_seed(seed);
            OnlineCut cut(setting.unit, round % 3 ? 4 : leaf_slots, round % 3 ? 4 : node_slots);
            Exact exact(setting.unit);
            std::vector<Sample> samples;
            for (int step = 0; step < 60; ++step) {
                const std::size_t size = random() % 3 ? random() % 4 : random() % 40;
                const bool adding = step % 20 < 12, batch = random() % 2;
                std::vector<Sample> moved =
                    adding ? draw_many(random, setting.weights, setting.one_sided, size)
                           : take(random, samples, size);
                if (batch) {
                    double missing = 0;
                    CHECK_NOTE(many(cut, moved, adding, setting.one_sided, missing) ==
                                   Refusal::none,
                               note);
                }
                for (const Sample& sample : moved) {
                    exact.add(sample, adding ? 1 : -1);
                    if (adding) samples.push_back(sample);
                    if (batch) continue;
                    CHECK_NOTE((adding ? add(cut, sample)
                                       : remove(cut, sample, setting.one_sided)) == Refusal::none,
                               note);
                }
                check_same(exact, cut, note + ", step " + std::to_string(step));
            }
            CHECK_NOTE(remove_many(cut, samples, setting.one_sided) == Refusal::none, note);
            CHECK_NOTE(cut.state() == std::string(32, '\0') && cut.bits() == 0, note);
            check_sound(cut, note);
        }
}

TEST_CASE("replacing a sample leaves what removing it and adding another leaves") {
    struct Measured {
        double score;
        Losses losses;
    };
    for (const bool labelled : {true, false})
        for (unsigned seed = 1; seed <= 40; ++seed) {
            Random random(seed);
            OnlineCut at_once({}, 4, 4), in_turn({}, 4, 4);
            if (labelled)
                for (OnlineCut* cut : {&at_once, &in_turn}) cut->set_costs(2, 3);
            const auto draw = [&]() -> Measured {  // in halves; with labels often of weight 1
                const double score = static_cast<double>(random() % (seed % 2 ? 8 : 1000));
                const auto halves = [&] {
                    return static_cast<std::int64_t>(seed % 3 ? 1 + random() % 4 : 2);
                };
                if (!labelled) return {score, {halves() - 5, halves()}};
                return random() % 2 ? Measured{score, {2 * halves(), 0}}
                                    : Measured{score, {0, 3 * halves()}};
            };
            std::vector<Measured> held;
            for (std::size_t i = 0; i < 30; ++i) {
                held.push_back(draw());
                for (OnlineCut* cut : {&at_once, &in_turn})
                    cut->add(held[i].score, held[i].losses, 1, labelled);
            }
            for (int step = 0; step < 200; ++step) {
                Measured &old = held[random() % held.size()], coming = draw();
                in_turn.remove(old.score, old.losses, 1, labelled);
                in_turn.add(coming.score, coming.losses, 1, labelled);
                at_once.reserve(1);
                CHECK(
                    at_once.replace(old.score, old.losses, coming.score, coming.losses, labelled));
                CHECK(!at_once.replace(5000, old.losses, coming.score, coming.losses, labelled));
                CHECK(at_once.state() == in_turn.state());
                at_once.check();
                old = coming;
            }
        }
}

TEST_CASE("a sample that weighs 1 is replaced as if it went and another came") {
    for (const int capacity : {4, 48}) {
        Random random(7);
        OnlineCut in_turn(Unit{}, capacity, 4), at_once(Unit{}, capacity, 4);
        std::vector<std::pair<double, bool>> held;
        for (OnlineCut* each : {&in_turn, &at_once}) each->set_costs(5, 2);
        for (int i = 0; i < 3000 * thoroughness; ++i) {
            const double score = static_cast<double>(random() % 40);
            const bool label = random() % 2;
            if (held.size() < 60) {
                CHECK(in_turn.add_one(score, label) && at_once.add_one(score, label));
                held.emplace_back(score, label);
                continue;
            }
            auto& [old, was] = held[random() % held.size()];
            CHECK(in_turn.remove_one(old, was) && in_turn.add_one(score, label));
            at_once.reserve(1, false);
            CHECK(at_once.replace_one(old, was, score, label));
            CHECK(!at_once.replace_one(5000, was, score, label));
            CHECK(at_once.state() == in_turn.state());
            CHECK(at_once.best().best == in_turn.best().best);
            if (i % 50 == 0) at_once.check();
            old = score;
            was = label;
        }
        at_once.add(0.5, {3, 0}, 0, true);  // one that weighs other than 1
        CHECK(!at_once.replace_one(held[0].first, held[0].second, 1, true));
    }
}

TEST_CASE("the same samples give the same bytes in any order and any company") {
    std::uint64_t seed = 1000;
    for (const Setting& setting : settings)
        for (int round = 0; round < 3 * thoroughness; ++round) {
            Random random(++seed);
            const std::string note = setting.name + with_seed(seed);
            std::vector<Sample> samples =
                draw_many(random, setting.weights, setting.one_sided, random() % 120);
            OnlineCut first(setting.unit);
            for (const Sample& sample : samples) add(first, sample);
            std::shuffle(samples.begin(), samples.end(), random);
            OnlineCut second(setting.unit, 4, 4);
            std::vector<Sample> guests =
                draw_many(random, setting.weights, setting.one_sided, random() % 60);
            if (setting.unit.automatic) guests.push_back({0.5, std::ldexp(1.0, -20), 0});
            for (const Sample& guest : guests) add(second, guest);
            CHECK_NOTE(add_many(second, samples, setting.one_sided) == Refusal::none, note);
            std::shuffle(guests.begin(), guests.end(), random);
            for (const Sample& guest : guests)
                CHECK_NOTE(remove(second, guest, setting.one_sided) == Refusal::none, note);
            check_sound(first, note);
            check_sound(second, note);

            CHECK_NOTE(first.state() == second.state(), note);
            OnlineCut third(setting.unit, 8, 5);
            CHECK_NOTE(third.restore(second.state()), note);
            check_sound(third, note);
            CHECK_NOTE(first.state() == third.state(), note);
        }
}

TEST_CASE("large and small batches beside many samples are the same as one by one") {
    for (std::size_t size : {1u, 10u, 124u, 125u, 126u, 511u, 512u, 2000u}) {
        Random random(2000 + size);
        OnlineCut batch({}, 4, 4), single({}, 4, 4);
        std::vector<Sample> resident, visiting;
        for (int i = 0; i < 500; ++i) resident.push_back({double(i), 0, 1});
        for (std::size_t i = 0; i < size; ++i)
            visiting.push_back(
                {double(random() % 1000) / 2, draw_weight(random, Weights::dyadic), 0});
        for (OnlineCut* cut : {&batch, &single}) CHECK(add_many(*cut, resident) == Refusal::none);
        const std::string before = batch.state();
        CHECK(add_many(batch, visiting) == Refusal::none);
        for (const Sample& sample : visiting) CHECK(add(single, sample) == Refusal::none);
        batch.check();
        CHECK(batch.state() == single.state());
        CHECK(remove_many(batch, visiting) == Refusal::none);
        batch.check();

        CHECK(batch.state() == before);
    }
}

// Samples of the same weight, as scores alone and as rows.
struct SameWeights {
    std::vector<SignedRow> rows;
    LabelledScores scores;

    SameWeights(std::size_t size, double spread, std::int64_t z_of_0, std::int64_t z_of_1,
                std::uint64_t seed)
        : scores(size, z_of_0, z_of_1) {
        Random random(seed);
        for (std::size_t i = 0; i < size; ++i) {
            const double score = double(random() % 100'000) * spread;
            const bool label = random() % 3 == 0;
            scores.put(score, label);
            rows.push_back({ordered_bits(score), label ? -z_of_1 : z_of_0});
        }
    }
};

template <class Online, class... Capacities>
void check_scores_as_rows(Capacities... capacities) {
    std::uint64_t seed = 4000;
    for (std::size_t residents : {0u, 1u, 9u, 150u, 3000u})
        for (std::size_t size : {1u, 2u, 30u, 600u, 2500u})
            for (double spread : {0.0, 1e-4, 1.0})
                for (int bits : {0, 3}) {
                    Online by_scores({}, capacities...), by_rows({}, capacities...);
                    ++seed;
                    const std::string note = std::to_string(residents) + " residents, size " +
                                             std::to_string(size) + with_seed(seed);
                    SameWeights before(residents, 0.5, 1, 2, seed), more(size, spread, 5, 8, ~seed);
                    for (Online* online : {&by_scores, &by_rows}) {
                        std::vector<SignedRow> rows = before.rows;
                        CHECK_NOTE(online->add_many(rows, 0) == Refusal::none, note);
                    }
                    CHECK_NOTE(by_scores.add_many(more.scores, bits) == Refusal::none, note);
                    std::vector<SignedRow> rows = more.rows;
                    CHECK_NOTE(by_rows.add_many(rows, bits) == Refusal::none, note);
                    by_scores.check();

                    CHECK_NOTE(by_scores.state() == by_rows.state(), note);
                }
}

TEST_CASE("samples of the same weight may come as scores alone") {
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
        if (isa_supported(isa)) {
            check_scores_as_rows<OnlineCut>(4, 4, isa);
            check_scores_as_rows<OnlineCut>(leaf_slots, node_slots, isa);
        }
    check_scores_as_rows<OnlineHull>(4);
}

TEST_CASE("scores alone are refused where their losses do not fit, and then nothing changes") {
    OnlineCut cut;
    SameWeights fine(4, 1, 1, 1, 1);
    CHECK(cut.add_many(fine.scores, 0) == Refusal::none);
    const std::string before = cut.state();
    LabelledScores most(4, most_units / 4, 1);
    for (int i = 0; i < 4; ++i) most.put(i, false);
    CHECK(cut.add_many(most, 0) == Refusal::too_large);
    CHECK(cut.state() == before);
}

// With many numbers of residents, as for rows below.
TEST_CASE("scores alone without memory for them change nothing") {
    for (std::size_t residents = 0; residents < 400; residents += residents < 240 ? 40 : 3)
        for (std::size_t size : {3u, 9u, 55u}) {
            OnlineCut cut({}, 4, 4);
            SameWeights before(residents, 1, 1, 1, residents), more(size, 1e-3, 1, 1, size);
            if (residents) CHECK(cut.add_many(before.scores, 0) == Refusal::none);
            const std::string state = cut.state();
            for (long granted = 0;; ++granted) {
                const bool enough =
                    testing::succeeds_with(granted, [&] { cut.add_many(more.scores, 2); });
                cut.check();
                if (enough) break;
                CHECK(cut.state() == state);
            }
            CHECK(cut.samples() == residents + size);
        }
}

// What SameWeights cost where samples have labels and weigh 1.
template <class Online>
Online with_labels(std::int64_t false_positive, std::int64_t false_negative) {
    Online made;
    made.set_costs(false_negative, false_positive);
    return made;
}

template <class Online>
void check_scores_taken_back() {
    std::uint64_t seed = 5000;
    for (std::size_t residents : {0u, 5u, 200u, 3000u})
        for (std::size_t size : {1u, 30u, 600u})
            for (double spread : {1e-4, 1.0}) {
                Online by_scores = with_labels<Online>(3, 7), by_rows = with_labels<Online>(3, 7);
                SameWeights others(residents, spread, 3, 7, ++seed), own(size, spread, 3, 7, ~seed);
                for (Online* online : {&by_scores, &by_rows})
                    for (std::vector<SignedRow> rows : {others.rows, own.rows})
                        CHECK(online->add_many(rows, 0) == Refusal::none);
                double missing = 0;
                std::vector<SignedRow> rows = own.rows;
                CHECK(by_rows.remove_many(rows, 0, true, missing) == Refusal::none);
                const std::string state = by_scores.state();
                for (long granted = 0;; ++granted) {
                    bool done = false;
                    const bool enough = testing::succeeds_with(
                        granted, [&] { done = by_scores.remove_many(own.scores); });
                    by_scores.check();
                    if (enough) {
                        CHECK(done);
                        break;
                    }
                    CHECK(by_scores.state() == state);
                }
                CHECK(by_scores.state() == by_rows.state());
                CHECK(!by_scores.remove_many(own.scores) && by_scores.state() == by_rows.state());
                by_scores.check();
            }
}

TEST_CASE("scores alone are taken back as rows are, all or nothing, and not without memory") {
    check_scores_taken_back<OnlineCut>();
    check_scores_taken_back<OnlineHull>();
}

template <class Online>
void check_single_ones() {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Random random(seed);
        Online quick = with_labels<Online>(3, 7), usual = with_labels<Online>(3, 7);
        for (int i = 0; i < 300; ++i) {
            const double score = double(random() % 40);
            const bool label = random() % 2;
            const Losses losses{label ? 7 : 0, label ? 0 : 3};
            if (random() % 3) {
                CHECK(quick.add_one(score, label));
                CHECK(usual.add(score, losses, 0, true) == Refusal::none);
            } else {
                CHECK(quick.remove_one(score, label) ==
                      (usual.remove(score, losses, 0, true) == Refusal::none));
            }
        }
        quick.check();
        CHECK(quick.state() == usual.state() && quick.total() == usual.total());
        // Another weight, or places, and it is no longer that simple.
        CHECK(quick.add(0.5, {14, 0}, 0, true) == Refusal::none);
        CHECK(!quick.add_one(0.5, true) && !quick.remove_one(0.5, true));
        CHECK(usual.add(0.5, {7, 0}, 1, true) == Refusal::none);
        CHECK(!usual.add_one(0.5, true) && !usual.remove_one(0.5, true));
    }
    Online fixed(Unit{false, 1, 2});
    fixed.set_costs(1, 1);
    CHECK(!fixed.add_one(0.5, true) && fixed.samples() == 0);
    Online full = with_labels<Online>(1, most_units - 1);
    CHECK(full.add_one(0.5, true) && !full.add_one(0.5, true) && full.samples() == 1);
    Online most = with_labels<Online>(most_units, 1);  // no sample of label 0 weighs 1
    CHECK(!most.add_one(0.5, false) && !most.add_one(0.5, true) && most.samples() == 0);
}

TEST_CASE("single samples that weigh 1 take a short way to the same state") {
    check_single_ones<OnlineCut>();
    check_single_ones<OnlineHull>();
}

TEST_CASE("zeros of either sign are one score, alone and in batches") {
    OnlineCut cut;
    CHECK(add(cut, {-0.0, 1, 0}) == Refusal::none);
    CHECK(add_many(cut, {{0.0, 1, 0}, {-0.0, 1, 0}}) == Refusal::none);
    CHECK(cut.distinct() == 1 && cut.find(0.0).count == 3 && cut.find(-0.0).count == 3);
    CHECK(!std::signbit(cut.best().upper));
    CHECK(remove(cut, {-0.0, 1, 0}, true) == Refusal::none);
    CHECK(remove_many(cut, {{-0.0, 1, 0}, {0.0, 1, 0}}) == Refusal::none);

    CHECK(cut.samples() == 0);
}

TEST_CASE("a sample that costs nothing on either side is the same as none") {
    OnlineCut cut;
    CHECK(add(cut, {0.5, 0, 0}) == Refusal::none && add(cut, {0.5, -0.0, 0}) == Refusal::none);
    CHECK(remove(cut, {0.5, 0, 0}, true) == Refusal::none);
    CHECK(add_many(cut, {}) == Refusal::none && remove_many(cut, {}) == Refusal::none);
    CHECK(add_many(cut, {{0.5, 0, 0}}) == Refusal::none);

    CHECK(cut.state() == std::string(32, '\0'));
}

TEST_CASE("the unit becomes as fine as the finest weight and no finer") {
    OnlineCut cut;
    int expected = 0;
    for (int places : {0, 1, 0, 5, 3, 20, 12, 25}) {
        expected = std::max(expected, std::min(places, finest_bits));
        CHECK(add(cut, {0.5, 3 + std::ldexp(places > 20 ? 0.0 : 1.0, -places), 0}) ==
              Refusal::none);
        CHECK(cut.bits() == expected);
        cut.check();
    }
    OnlineCut rounded;
    CHECK(add(rounded, {0.5, 0.1, 0}) == Refusal::none);

    CHECK(rounded.bits() == 19 && rounded.find(0.5).below == 52429);  // 104858 / 2^20 is nearest
}

TEST_CASE("a finer weight scales what is held and moves no cut") {
    OnlineCut cut({}, 4, 4);
    Random random(3000);
    CHECK(add_many(cut, draw_many(random, Weights::whole, true, 200)) == Refusal::none);
    const Cut before = cut.best();
    const std::int64_t loss = cut.loss(before), total = cut.total();
    const std::string state = cut.state();
    CHECK(add(cut, {-inf, 0, std::ldexp(1.0, -20)}) == Refusal::none);
    CHECK(cut.bits() == 20 && cut.total() == (total << 20) + 1);
    CHECK(remove(cut, {-inf, 0, std::ldexp(1.0, -20)}, true) == Refusal::none);
    cut.check();
    const Cut after = cut.best();

    CHECK(after.lower == before.lower && after.upper == before.upper);
    CHECK(cut.loss(after) == loss << 20 && cut.total() == total << 20);
    CHECK(cut.state() == state);
}

TEST_CASE("halves that add up to a whole can be taken away one by one, also after a restore") {
    for (bool batch : {false, true})
        for (bool one_sided : {false, true}) {
            OnlineCut cut;
            for (int i = 0; i < 4; ++i) CHECK(add(cut, {0.25, 0.5, 0}) == Refusal::none);
            OnlineCut copy = restored(cut.state());
            for (int i = 0; i < 4; ++i) {
                const Sample half{0.25, 0.5, 0};
                CHECK((batch ? remove_many(copy, {half}, one_sided)
                             : remove(copy, half, one_sided)) == Refusal::none);
                CHECK(remove(cut, half, one_sided) == Refusal::none);
                copy.check();
                CHECK(copy.state() == cut.state());
            }
        }
}

TEST_CASE("halves beside a large weight are refused, or can be taken away one by one") {
    const double large = std::ldexp(1.0, 61);
    for (bool batch : {false, true}) {
        OnlineCut cut;
        for (int i = 0; i < 2; ++i) CHECK(add(cut, {0.25, 0.5, 0}) == Refusal::none);
        for (int turns = 1; turns <= 2; ++turns) {
            OnlineCut held = restored(cut.state());
            if (turns == 2) CHECK(held.restore(restored(cut.state()).state()));
            const std::string before = held.state();
            CHECK((batch ? add_many(held, {{0.75, 0, large}}) : add(held, {0.75, 0, large})) ==
                  Refusal::too_large);
            CHECK(held.state() == before);
            for (int i = 0; i < 2; ++i)
                CHECK((batch ? remove_many(held, {{0.25, 0.5, 0}})
                             : remove(held, {0.25, 0.5, 0}, true)) == Refusal::none);
            CHECK(add(held, {0.75, 0, large}) == Refusal::none);
            held.check();
        }
    }
}

TEST_CASE("an even cost does not hide the places that a weight needs") {
    OnlineCut cut;
    cut.set_costs(8, 1);
    CHECK(cut.add(0.25, {8, 0}, 1) == Refusal::none);  // a half that costs 8
    CHECK(!cut.coarsen() && cut.bits() == 1);
    OnlineCut whole;
    CHECK(whole.add(0.25, {8, 0}, 1) == Refusal::none);
    CHECK(whole.coarsen() && whole.bits() == 0);
}

TEST_CASE("a removal finer than what is held is refused and leaves the unit alone") {
    OnlineCut cut;
    CHECK(add(cut, {0.5, 1, 0}) == Refusal::none && add(cut, {0.75, 0, 2}) == Refusal::none);
    const std::string before = all_of(cut);
    for (double weight : {0.5, 1.5, 0.1, std::ldexp(1.0, -20)}) {
        CHECK(remove(cut, {0.5, weight, 0}, true) == Refusal::not_held);
        CHECK(remove_many(cut, {{0.5, weight, 0}}) == Refusal::not_held);
        CHECK(remove_many(cut, {{0.75, 0, 2}, {0.5, weight, 0}}) == Refusal::not_held);
        CHECK(all_of(cut) == before);
    }
    cut.check();
    OnlineCut pair;
    for (int i = 0; i < 2; ++i) CHECK(add(pair, {0.5, 5, 0}) == Refusal::none);
    const std::string both = all_of(pair);
    CHECK(remove(pair, {0.5, -3.5, 0}, false) == Refusal::not_held && all_of(pair) == both);
    CHECK(remove_many(pair, {{0.5, -3.5, 0}}, false) == Refusal::not_held && all_of(pair) == both);
}

TEST_CASE("what is not held is refused, named and changes nothing") {
    for (Unit unit : {Unit{}, cents}) {
        OnlineCut cut(unit, 4, 4);
        std::vector<Sample> held;
        for (int i = 0; i < 40; ++i) held.push_back({double(i), double(i % 2), double(1 - i % 2)});
        held.push_back({7, 1, 0});
        held.push_back({8, 0, 2});
        CHECK(add_many(cut, held) == Refusal::none);
        const std::string before = all_of(cut);
        const std::vector<Sample> absent = {
            {-1, 1, 0},  {0.5, 0, 1}, {inf, 1, 0},  // no such score
            {3, 0, 1},   {3, 2, 0},   {4, 1, 0},    // another label or weight
            {7, 0, 1},   {7, 3, 0},                 // more than is held on this side
            {8, 0, 3},                              // all the loss, but not all samples
            {5, 1e6, 0},                            // more than is held at all
        };
        for (const Sample& sample : absent) {
            const std::string note = "score " + std::to_string(sample.score);
            double missing = -77;
            CHECK_NOTE(remove(cut, sample, true) == Refusal::not_held, note);
            CHECK_NOTE(many(cut, {held[0], sample, held[9]}, false, true, missing) ==
                           Refusal::not_held,
                       note);
            CHECK_NOTE(missing == sample.score, note);
            CHECK_NOTE(all_of(cut) == before, note);
        }
        CHECK(remove_many(cut, {{3, 1, 0}, {3, 1, 0}}) == Refusal::not_held);
        CHECK(all_of(cut) == before);
        cut.check();
        CHECK(remove_many(cut, held) == Refusal::none && cut.samples() == 0);
    }
    OnlineCut empty;
    CHECK(remove(empty, {0.5, 1, 0}, true) == Refusal::not_held);
    CHECK(remove_many(empty, {{0.5, 1, 0}}) == Refusal::not_held);
    empty.check();
}

TEST_CASE("a weight that would become nothing is refused and changes nothing") {
    OnlineCut cut, money(cents);
    add(cut, {0.5, 1, 0});
    add(money, {0.5, 0.01, 0});
    const std::string before = all_of(cut), before_money = all_of(money);

    CHECK(add(cut, {0.5, std::ldexp(1.0, -21), 0}) == Refusal::lost);
    CHECK(add(cut, {0.5, 0, tiny}) == Refusal::lost);
    CHECK(add_many(cut, {{0.5, 1, 0}, {0.5, 1e-9, 0}}) == Refusal::lost);
    CHECK(add(money, {0.5, 0.004, 0}) == Refusal::lost);
    CHECK(all_of(cut) == before && all_of(money) == before_money);
    CHECK(add(money, {0.5, 0.006, 0}) == Refusal::none && money.find(0.5).below == 2);
}

TEST_CASE("a cost multiplies whole units, to just below two to the 62 on either side") {
    const OnlineCut cut;
    std::int64_t units = 0;

    CHECK(cut.measure(2.5, 3, 1, units) == Refusal::none && units == 15);
    CHECK(cut.measure(std::int64_t{-2}, 3, 4, units) == Refusal::none && units == -96);
    CHECK(cut.measure(std::int64_t{5}, 0, 0, units) == Refusal::none && units == 0);
    const std::int64_t third = most_units / 3;  // 2^62 is not a multiple of 3
    CHECK(cut.measure(third, 3, 0, units) == Refusal::none && units == most_units - 1);
    CHECK(cut.measure(-third, 3, 0, units) == Refusal::none && units == 1 - most_units);
    CHECK(cut.measure(third + 1, 3, 0, units) == Refusal::too_large);
    CHECK(cut.measure(-third - 1, 3, 0, units) == Refusal::too_large);
    CHECK(cut.measure(most_units - 1, most_units, 0, units) == Refusal::too_large);
    CHECK(cut.measure(most_units / 2, 2, 0, units) == Refusal::too_large);
    CHECK(cut.measure(DBL_MAX, 1, 0, units) == Refusal::too_large);
    CHECK(cut.measure(0.3, 1, 0, units) == Refusal::lost);
}

TEST_CASE("losses add up to just below two to the 62 and not one unit further") {
    const std::int64_t half = most_units / 2;
    for (bool batch : {false, true}) {
        OnlineCut cut({}, 4, 4);
        const auto give = [&](double score, Losses losses) {
            if (!batch) return cut.add(score, losses, 0);
            std::vector<LossRow> rows = {{ordered_bits(score), {losses.below, losses.above}}};
            return cut.add_many(rows, 0);
        };
        CHECK(give(0.25, {half, 0}) == Refusal::none);
        CHECK(give(0.5, {0, half - 2}) == Refusal::none);
        const std::string before = all_of(cut);
        for (const Losses& losses : {Losses{2, 0},
                                     {0, 2},
                                     {-2, 0},
                                     {1, 1},
                                     {-1, 1},
                                     {half, half},
                                     {1 - most_units, 1 - most_units}}) {
            CHECK(give(0.25, losses) == Refusal::too_large);
            CHECK(give(9, losses) == Refusal::too_large);
            CHECK(all_of(cut) == before);
        }
        CHECK(give(0.75, {0, -1}) == Refusal::none && cut.total() == most_units - 1);
        cut.check();
        CHECK(give(0.75, {1, 0}) == Refusal::too_large);
        CHECK(cut.loss(cut.best()) == half - 3 && cut.best().upper == 0.25);
        const std::string full = cut.state();
        CHECK(restored(full).state() == full);
        CHECK(cut.remove(0.25, {half, 0}, 0, false) == Refusal::none);
        CHECK(give(0.75, {half, 0}) == Refusal::none && cut.total() == most_units - 1);
        cut.check();
    }
}

TEST_CASE("rows that are too large only together are refused together") {
    OnlineCut cut;
    add(cut, {0.5, 1, 0});
    const std::string before = all_of(cut);
    std::vector<SignedRow> rows(5, {ordered_bits(0.5), -(most_units / 4)});
    CHECK(cut.add_many(rows, 0) == Refusal::too_large && all_of(cut) == before);
    rows.resize(4);
    CHECK(cut.add_many(rows, 0) == Refusal::too_large && all_of(cut) == before);
    rows.resize(3);
    CHECK(cut.add_many(rows, 0) == Refusal::none);
    cut.check();

    CHECK(cut.find(0.5).below == most_units / 4 * 3 + 1);
}

TEST_CASE("a unit becomes as coarse as what is held allows, and says whether it did") {
    OnlineCut cut = once_finer(), empty;
    const std::string before = cut.state();
    CHECK(cut.bits() == 20 && cut.coarsen() && cut.bits() == 0 && !cut.coarsen());
    cut.check();
    CHECK(cut.state() == before && cut.find(0.5).below == 1 && !empty.coarsen());
    add(cut, {0.75, 0, 0.375});
    add(cut, {0.25, std::ldexp(-1.0, -20), 0});
    CHECK(!cut.coarsen() && cut.bits() == 20);
    CHECK(remove(cut, {0.25, std::ldexp(-1.0, -20), 0}, false) == Refusal::none);
    CHECK(cut.coarsen() && cut.bits() == 3);
    cut.check();

    CHECK(cut.total() == 8 + 3 && cut.find(0.75).above == 3 && cut.loss(cut.best()) == 3);
}

TEST_CASE("room for many weights does not depend on finer samples that have gone") {
    for (int power : {30, 41, 42}) check_room(std::ldexp(1.0, power) - 1);
}

TEST_CASE("room for one large weight does not depend on finer samples that have gone") {
    for (int power : {43, 55, 60, 61}) check_room(std::ldexp(1.0, power));
}

TEST_CASE("rows that reach two to the 62 only with the last of them are refused") {
    OnlineCut cut = once_finer();
    const std::string before = cut.state();
    const int bits = cut.bits();
    const std::int64_t largest = ((std::int64_t{1} << (62 - bits)) - 1) * (std::int64_t{1} << bits);
    std::vector<SignedRow> rows((std::size_t{1} << 20) + 16, {ordered_bits(0.75), largest});
    CHECK(cut.add_many(rows, bits) == Refusal::too_large);
    cut.check();

    CHECK(cut.state() == before);
}

TEST_CASE("a finer unit is refused exactly when what is held would reach two to the 62") {
    const std::int64_t border = std::int64_t{1} << 42;
    for (bool batch : {false, true})
        for (std::int64_t held : {border - 2, border - 1, border}) {
            OnlineCut cut;
            CHECK(cut.add(0.5, {held, 0}, 0) == Refusal::none);
            const std::string before = all_of(cut);
            const Sample finest{0.75, 0, std::ldexp(1.0, -20)};
            const Refusal refusal = batch ? add_many(cut, {finest}) : add(cut, finest);
            cut.check();
            if (held < border) {
                CHECK(refusal == Refusal::none && cut.bits() == 20);
                CHECK(cut.total() == (held << 20) + 1);
            } else {
                CHECK(refusal == Refusal::too_large && all_of(cut) == before);
            }
        }
}

TEST_CASE("one sample too many of a score is refused and changes nothing") {
    OnlineCut cut = crowded();
    const std::string before = all_of(cut);
    for (double weight : {1.0, 0.5, std::ldexp(1.0, -20)}) {
        CHECK(add(cut, {0.5, weight, 0}) == Refusal::too_many && all_of(cut) == before);
        CHECK(add_many(cut, {{0.5, weight, 0}}) == Refusal::too_many && all_of(cut) == before);
        CHECK(add_many(cut, {{0.25, 1, 0}, {0.75, 1, 0}, {0.5, weight, 0}}) == Refusal::too_many);
        CHECK(all_of(cut) == before);
    }
    CHECK(add(cut, {0.25, 1, 0}) == Refusal::none);
    CHECK(add_many(cut, {{0.25, 1, 0}, {0.75, 1, 0}}) == Refusal::none);
    CHECK(remove(cut, {0.5, 0, 1}, true) == Refusal::none);
    CHECK(add(cut, {0.5, 0, 1}) == Refusal::none);
    cut.check();
}

// Of two-sided losses any difference may have been added, so a false removal can pass; it must
// not make the sums outgrow the total that keeps them from overflowing.
TEST_CASE("false removals of two-sided losses are refused or leave an object like any other") {
    OnlineCut doubled;
    for (int i = 0; i < 2; ++i) CHECK(add(doubled, {1, 5, 0}) == Refusal::none);
    remove(doubled, {1, -3, 0}, false);
    check_usable(doubled, "minus three");
    const std::int64_t quarter = most_units / 4;
    OnlineCut huge;
    for (std::int64_t below : {quarter, quarter, quarter, quarter - 1})
        CHECK(huge.add(1, {below, 0}, 0) == Refusal::none);
    for (int i = 0; i < 6; ++i) {
        huge.remove(1, {-quarter, 0}, 0, false);
        huge.check();
        huge.add(1, {quarter, 0}, 0);
        huge.check();
    }
    const std::int64_t most = most_units - 1, nearly = most_units / 4 - 1;
    for (std::int64_t sign : {-1, 1}) {
        OnlineCut pair;
        for (int i = 0; i < 2; ++i) CHECK(pair.add(1, {nearly, nearly}, 0) == Refusal::none);
        CHECK(pair.remove(1, {sign * most, sign * most}, 0, false) == Refusal::not_held);
        CHECK(pair.remove(1, {sign * most, -sign * most}, 0, false) == Refusal::not_held);
        pair.check();
    }
    for (int round = 0; round < 30 * thoroughness; ++round) {
        const auto seed = static_cast<std::uint64_t>(4000 + round);
        Random random(seed);
        OnlineCut cut({}, 4, 4);
        for (int step = 0; step < 60; ++step) {
            const auto shift = random() % 3 ? 58 : random() % 62;
            Losses losses{static_cast<std::int64_t>(random()) >> (63 - shift),
                          static_cast<std::int64_t>(random()) >> (63 - shift)};
            const double score = double(random() % 3);
            std::vector<LossRow> row = {{ordered_bits(score), {losses.below, losses.above}}};
            double missing;
            if (random() % 2)
                cut.add(score, losses, 0);
            else if (random() % 2)
                cut.remove(score, losses, 0, false);
            else if (losses.below || losses.above)
                cut.remove_many(row, 0, false, missing);
            check_sound(cut, with_seed(seed));
        }
        check_usable(cut, with_seed(seed));
    }
}

TEST_CASE("a restore takes the place of what was held, whatever the node capacities") {
    Random random(5000);
    OnlineCut source;
    const std::vector<Sample> samples = draw_many(random, Weights::dyadic, true, 300);
    CHECK(add_many(source, samples) == Refusal::none);
    OnlineCut target({}, 4, 4);
    add(target, {123, std::ldexp(1.0, -20), 0});
    CHECK(target.restore(source.state()));
    target.check();

    CHECK(target.state() == source.state() && target.samples() == source.samples());
    CHECK(remove_many(target, samples) == Refusal::none);
    target.check();
    CHECK(target.state() == std::string(32, '\0'));
    CHECK(source.restore(target.state()) && source.samples() == 0 && source.bits() == 0);
    source.check();
}

TEST_CASE("bytes of another length are refused") {
    for (Unit unit : {Unit{}, cents})
        for (const std::string& state : small_states(unit)) {
            for (std::size_t size = 0; size < state.size(); ++size) {
                OnlineCut cut(unit);
                CHECK(!cut.restore(state.substr(0, size)));
            }
            for (std::size_t more : {1u, 8u, 31u, 32u, 64u}) {
                OnlineCut cut(unit);
                CHECK(!cut.restore(state + std::string(more, '\1')));
            }
        }
}

TEST_CASE("bytes with any one bit flipped are refused or describe an object like any other") {
    for (Unit unit : {Unit{}, cents})
        for (const std::string& state : small_states(unit))
            for (std::size_t bit = 0; bit < 8 * state.size(); ++bit) {
                std::string flipped = state;
                flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
                check_hostile(flipped, unit, "bit " + std::to_string(bit));
            }
}

TEST_CASE("bytes with chosen words are refused or describe an object like any other") {
    const auto bits = [](double score) { return std::bit_cast<std::uint64_t>(score); };
    const std::vector<std::uint64_t> words = {0,
                                              1,
                                              2,
                                              3,
                                              20,
                                              21,
                                              most_samples,
                                              std::uint64_t{most_samples} + 1,
                                              std::uint64_t{1} << 61,
                                              (std::uint64_t{1} << 62) - 1,
                                              std::uint64_t{1} << 62,
                                              ~std::uint64_t{0},
                                              std::uint64_t{1} << 63,
                                              (std::uint64_t{1} << 63) + 1,
                                              static_cast<std::uint64_t>(-most_units),
                                              static_cast<std::uint64_t>(1 - most_units),
                                              bits(inf),
                                              bits(-inf),
                                              bits(std::numeric_limits<double>::quiet_NaN()),
                                              bits(-0.0),
                                              bits(1.0)};
    for (Unit unit : {Unit{}, cents})
        for (const std::string& state : small_states(unit)) {
            for (std::size_t word = 0; word < state.size() / 8; ++word)
                for (std::uint64_t value : words) {
                    std::string bytes = state;
                    put_word(bytes, word, value);
                    check_hostile(bytes, unit, "word " + std::to_string(word));
                }
            for (int round = 0; round < 300 * thoroughness; ++round) {
                const auto seed = static_cast<std::uint64_t>(6000 + round);
                Random random(seed);
                std::string bytes = state;
                for (std::size_t i = 0; i < 2 + random() % 4; ++i)
                    put_word(bytes, random() % (bytes.size() / 8), words[random() % words.size()]);
                check_hostile(bytes, unit, with_seed(seed));
            }
        }
}

TEST_CASE("random bytes and random scores are refused or describe an object like any other") {
    int accepted = 0;
    for (int round = 0; round < 2000 * thoroughness; ++round) {
        const auto seed = static_cast<std::uint64_t>(7000 + round);
        Random random(seed);
        std::string noise(random() % 200, '\0');
        for (char& byte : noise) byte = static_cast<char>(random());
        check_hostile(noise, round % 2 ? Unit{} : cents, with_seed(seed));

        const std::size_t distinct = random() % 6;
        std::string bytes(32 + 32 * distinct, '\0');
        std::uint64_t samples = 0, total = random() % 3;
        for (std::size_t i = 0; i < distinct; ++i) {
            const std::uint64_t count = random() % 4, below = random() % 50, above = random() % 50;
            const double score = double(i) + double(random() % 12) / 10;
            put_word(bytes, 4 + 4 * i, std::bit_cast<std::uint64_t>(score));
            put_word(bytes, 5 + 4 * i, random() % 2 ? below : std::uint64_t{0} - below);
            put_word(bytes, 6 + 4 * i, random() % 2 ? above : std::uint64_t{0} - above);
            put_word(bytes, 7 + 4 * i, count);
            samples += count;
            total += below + above;
        }
        put_word(bytes, 0, random() % 22);
        put_word(bytes, 1, samples);
        put_word(bytes, 2, total);
        put_word(bytes, 3, distinct);
        check_hostile(bytes, Unit{}, with_seed(seed));
        accepted += OnlineCut().restore(bytes);
    }

    CHECK(accepted > 100);  // else the second half of this test would test nothing
}

TEST_CASE("bytes of nothing that claim a unit or a total are refused") {
    for (std::size_t word : {0u, 1u, 2u, 3u}) {
        std::string bytes(32, '\0');
        put_word(bytes, word, 5);

        CHECK(!OnlineCut().restore(bytes));
    }
}

TEST_CASE("bytes with a single sample that costs nothing are refused, with two that cancel not") {
    OnlineCut one, two;
    add(one, {0.5, 1, 0});
    CHECK(add(two, {0.5, 1, -2}) == Refusal::none && add(two, {0.5, -1, 2}) == Refusal::none);
    std::string bytes = one.state();
    put_word(bytes, 5, 0);
    CHECK(!OnlineCut().restore(bytes));
    OnlineCut cancelled = restored(two.state());

    CHECK(remove(cancelled, {0.5, -1, 2}, false) == Refusal::none && cancelled.total() == 3);
    cancelled.check();
}

TEST_CASE("bytes with a score of minus zero are refused or mean zero") {
    OnlineCut zero;
    add(zero, {0.0, 1, 0});
    std::string bytes = zero.state();
    put_word(bytes, 4, std::uint64_t{1} << 63);
    OnlineCut cut;

    CHECK(!cut.restore(bytes) || cut.state() == zero.state());
}

TEST_CASE("an addition without memory for it changes nothing") {
    for (const Sample& sample : {Sample{-1, 1, 0}, Sample{30.5, 0, 0.25}}) {
        OnlineCut cut({}, 4, 4);
        for (int step = 0; step < 60; ++step) {
            const Sample next{sample.score + step, sample.below, sample.above};
            const std::string before = cut.state();
            for (long granted = 0;; ++granted) {
                Refusal refusal = Refusal::none;
                if (testing::succeeds_with(granted, [&] { refusal = add(cut, next); })) break;
                cut.check();
                CHECK(cut.state() == before);
            }
            cut.check();
        }
        CHECK(cut.samples() == 60);
    }
}

// With every number of residents, so that some leave no node in store and the memory runs out
// in the middle of the batch.
TEST_CASE("a batch without memory for it changes nothing, whether rebuilt or one by one") {
    for (int residents = 40; residents < 100; residents += 1 + residents % 3)
        for (std::size_t size : {3u, 9u, 100u})
            for (bool adding : {true, false}) {
                OnlineCut cut({}, 4, 4);
                std::vector<Sample> resident, visiting;
                for (int i = 0; i < residents; ++i) resident.push_back({double(i), 1, 0});
                for (std::size_t i = 0; i < size; ++i)
                    visiting.push_back({7 + double(i) / 16, 0, i % 2 ? 0.25 : 1});
                CHECK(add_many(cut, resident) == Refusal::none);
                if (!adding) CHECK(add_many(cut, visiting) == Refusal::none);
                const std::string before = cut.state();
                const std::string note = std::to_string(residents) + " residents";
                for (long granted = 0;; ++granted) {
                    Refusal refusal = Refusal::too_many;
                    const bool enough = testing::succeeds_with(granted, [&] {
                        refusal = adding ? add_many(cut, visiting) : remove_many(cut, visiting);
                    });
                    cut.check();
                    if (enough) {
                        CHECK_NOTE(refusal == Refusal::none, note);
                        break;
                    }
                    CHECK_NOTE(cut.state() == before, note);
                }
                CHECK(cut.samples() == static_cast<std::size_t>(residents) + (adding ? size : 0));
            }
}

TEST_CASE("a restore without memory for it changes nothing") {
    OnlineCut source, target({}, 4, 4);
    for (int i = 0; i < 100; ++i) add(source, {double(i), 0.5, 0});
    const std::string state = source.state();
    add(target, {0.5, 1, 0});
    const std::string before = all_of(target);
    bool done = false;
    for (long granted = 0; !testing::succeeds_with(granted, [&] { done = target.restore(state); });
         ++granted) {
        target.check();
        CHECK(all_of(target) == before);
    }

    CHECK(done && target.state() == state);
}

TEST_CASE("a fade without memory for it changes nothing") {
    OnlineCut cut({}, 4, 4);
    for (int i = 0; i < 100; ++i) add(cut, {double(i), 1 + std::ldexp(1.0, -18), 0});
    const std::string before = all_of(cut);
    long granted = 0;
    for (; !testing::succeeds_with(granted, [&] { cut.fade(5); }); ++granted) {
        cut.check();
        CHECK(all_of(cut) == before);
    }
    cut.check();

    CHECK(granted > 0 && cut.bits() == 20);
}
