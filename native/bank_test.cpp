// SPDX-License-Identifier: Apache-2.0
//
// Banks against members that live apart and are updated one after the other; with memory that runs
// out at every allocation, and weights that do not fit.

#define LIMEN_TEST_MAIN
#include "bank.hpp"

#include <cmath>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "instances.hpp"
#include "testing.hpp"
#include "testing_memory.hpp"

namespace {

using namespace limen;
using limen::testing::effort;
using limen::testing::succeeds_with;
using Random = std::mt19937_64;

constexpr Costs costs{2, 3};
constexpr double patience = 20;
const std::vector<std::int64_t> half_lives{3, 10};

// The members of a bank, each with its samples in small nodes.
struct Members {
    std::deque<OnlineCut> held;
    std::deque<Memory<CutTree>> memories;

    explicit Members(const Unit& unit = {}) {
        for (std::size_t i = 0; i <= half_lives.size(); ++i) {
            held.emplace_back(unit, 4, 4);
            held.back().set_costs(costs.false_negative, costs.false_positive);
        }
        for (std::size_t i = 0; i < half_lives.size(); ++i) {
            MemorySettings settings;
            settings.keep = Keep::fading;
            settings.period = Time::whole(half_lives[i]);
            settings.costs = settings.account = costs;
            memories.emplace_back(held[i + 1], settings);
        }
    }
    MemoryBank bank() {
        std::vector<MemoryBank::Member> fading;
        for (std::size_t i = 0; i < half_lives.size(); ++i)
            fading.push_back({&held[i + 1], &memories[i]});
        return MemoryBank(held[0], fading, costs, {2, 3}, patience);
    }
};

struct Sample {
    double score;
    bool label;
    double weight;
};

Sample drawn(Random& random, bool weighted) {
    const double score = static_cast<double>(random() % 30);
    static constexpr double weights[] = {0, 0.25, 1, 1, 2, 1000};
    return {random() % 50  ? score
            : random() % 2 ? INFINITY
                           : -INFINITY,
            double(random() % 30) < score, weighted ? weights[random() % 6] : 1};
}

// What members do that know nothing of each other.
struct Apart {
    Members members;
    std::vector<double> spent = std::vector<double>(1 + half_lives.size());

    void update(const Sample& sample, const double* thresholds = nullptr) {
        if (sample.weight == 0) return;
        for (std::size_t i = 0; i < spent.size(); ++i) {
            const double by = thresholds ? thresholds[i] : threshold_of(members.held[i].best());
            spent[i] *= std::exp2(-1 / patience);
            if ((sample.score >= by) != sample.label)
                spent[i] += (sample.label ? 3 : 2) * sample.weight;
        }
        OnlineCut& all = members.held[0];
        const int bits = all.bits_for(sample.weight);
        Losses losses;
        all.measure(sample.weight, sample.label ? 3 : 2, bits,
                    sample.label ? losses.below : losses.above);
        CHECK(all.add(sample.score, losses, bits, true) == Refusal::none);
        const Amount amount{std::bit_cast<std::int64_t>(sample.weight), 0, Amount::real};
        for (auto& memory : members.memories)
            memory.update(sample.score, sample.label, amount, nullptr);
    }
};

bool same(const BankState& a, const BankState& b) {
    return a.members == b.members && a.count == b.count && a.bases == b.bases && a.spent == b.spent;
}

BankRefusal batch(MemoryBank& bank, const std::vector<Sample>& samples) {
    std::vector<double> scores, weights;
    std::vector<std::uint8_t> labels;
    for (const Sample& sample : samples) {
        scores.push_back(sample.score);
        labels.push_back(sample.label);
        weights.push_back(sample.weight);
    }
    return bank.update_many(scores.data(), labels.data(), samples.size(),
                            {"weights", nullptr, weights.data()});
}

}  // namespace

TEST_CASE("a bank is its members, and the one that did best of late leads") {
    for (int seed = 0; seed < effort(2, 12); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        Apart apart;
        Members members;
        MemoryBank bank = members.bank();
        const std::string note = "seed " + std::to_string(seed);
        for (int step = 0; step < 400; ++step) {
            const Sample sample = drawn(random, seed % 2);
            const double given[] = {1, 2, NAN};
            const double* thresholds = random() % 4 ? nullptr : given;
            apart.update(sample, thresholds);
            CHECK(!bank.update(sample.score, sample.label, sample.weight, thresholds));
            CHECK_NOTE(bank.spent() == apart.spent, note);
            for (std::size_t i = 0; i < bank.size(); ++i)
                CHECK_NOTE(members.held[i].state() == apart.members.held[i].state(), note);
            const std::size_t lead = bank.leader();
            for (std::size_t i = 0; i < bank.size(); ++i)
                CHECK_NOTE(apart.spent[lead] < apart.spent[i] ||
                               (apart.spent[lead] == apart.spent[i] && lead <= i),
                           note);
        }
        bank.check();
    }
}

TEST_CASE("where memory runs out no member has changed") {
    for (int seed = 0; seed < effort(1, 4); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        Apart apart;
        Members members;
        MemoryBank bank = members.bank();
        long failed = 0;
        for (int step = 0; step < 150; ++step) {
            const Sample sample = drawn(random, seed % 2);
            const BankState before = bank.state();
            for (long granted = 0; !succeeds_with(granted,
                                                  [&] {
                                                      CHECK(!bank.update(sample.score, sample.label,
                                                                         sample.weight, nullptr));
                                                  });
                 ++granted) {
                ++failed;
                bank.check();
                CHECK(same(bank.state(), before));
            }
            apart.update(sample);
            CHECK(bank.spent() == apart.spent);
            for (std::size_t i = 0; i < bank.size(); ++i)
                CHECK(members.held[i].state() == apart.members.held[i].state());
        }
        CHECK(failed > 100);
    }
}

TEST_CASE("a batch is the same as one by one, all of it or where memory runs out none") {
    for (int seed = 0; seed < effort(2, 6); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        Members one_by_one, at_once;
        MemoryBank bank = one_by_one.bank(), other = at_once.bank();
        for (int step = 0; step < 8; ++step) {
            std::vector<Sample> samples;
            for (std::size_t i = random() % 40; i > 0; --i)
                samples.push_back(drawn(random, seed % 2));
            for (const Sample& each : samples)
                CHECK(!bank.update(each.score, each.label, each.weight, nullptr));
            const BankState before = other.state();
            for (long granted = 0; !succeeds_with(granted, [&] { CHECK(!batch(other, samples)); });
                 granted += 7)
                CHECK(same(other.state(), before));
            CHECK(same(bank.state(), other.state()));
        }
    }
}

TEST_CASE("a weight that one member cannot hold changes none") {
    Members members;
    MemoryBank bank = members.bank();
    CHECK(!bank.update(1.0, true, 1.0, nullptr));
    const BankState before = bank.state();
    CHECK(bank.update(2.0, true, std::int64_t{1} << 61, nullptr).refusal == Refusal::too_large);
    CHECK(same(bank.state(), before));
    CHECK(bank.update(2.0, true, 0x1p-40, nullptr).refusal == Refusal::lost);
    const BankRefusal third = batch(bank, {{1, true, 1}, {2, true, 1}, {3, true, 0x1p61}});
    CHECK(third.refusal == Refusal::too_large);
    CHECK(third.row == 2);
    CHECK(same(bank.state(), before));
    const auto until_refused = [](MemoryBank& full, std::int64_t weight) {
        for (int step = 0;; ++step) {
            const BankState last = full.state();
            const BankRefusal refusal = full.update(step % 9, true, weight, nullptr);
            if (!refusal) continue;
            CHECK(refusal.refusal == Refusal::too_large);
            CHECK(same(full.state(), last));
            full.check();
            return refusal.member;
        }
    };
    CHECK(until_refused(bank, std::int64_t{1} << 54) == 1);
    Members others;
    MemoryBank other = others.bank();
    until_refused(other, std::int64_t{1} << 54);
}

TEST_CASE("what is stored comes back and goes on alike, and what no bank is, does not") {
    Random random(5);
    Members members, others;
    MemoryBank bank = members.bank(), other = others.bank();
    for (int step = 0; step < 300; ++step) {
        const Sample each = drawn(random, true);
        CHECK(!bank.update(each.score, each.label, each.weight, nullptr));
    }
    CHECK(other.restore(bank.state()));
    CHECK(same(bank.state(), other.state()));
    for (int step = 0; step < 300; ++step) {
        const Sample each = drawn(random, true);
        CHECK(!bank.update(each.score, each.label, each.weight, nullptr));
        CHECK(!other.update(each.score, each.label, each.weight, nullptr));
    }
    CHECK(same(bank.state(), other.state()));
    const auto refuses = [&](auto&& change) {
        BankState state = bank.state();
        change(state);
        Members fresh;
        MemoryBank made = fresh.bank();
        return !made.restore(state);
    };
    CHECK(refuses([](BankState& state) { state.members.pop_back(); }));
    CHECK(refuses([](BankState& state) { state.spent[1] = -1; }));
    CHECK(refuses([](BankState& state) { state.spent[1] = NAN; }));
    CHECK(refuses([](BankState& state) { state.bases.pop_back(); }));
    CHECK(refuses([](BankState& state) { state.members[1].pop_back(); }));
}
