// SPDX-License-Identifier: Apache-2.0
//
// The trial of a candidate, against a list of all its samples that is gone through every time; with
// memory that runs out at every allocation, and bytes that were changed.

#define LIMEN_TEST_MAIN
#include "memory/trial.hpp"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/testing.hpp"
#include "tests/testing_memory.hpp"

namespace {

using namespace limen;
using limen::testing::effort;
using limen::testing::succeeds_with;
using Random = std::mt19937_64;

constexpr double lower = 3, upper = 7;
constexpr std::int64_t age = 10;

struct Known {
    double score;
    std::int64_t moment, weight;
    int label = -1;
    int counted = -2;  // at the age: 0, 1, -1 for none; -2 for not yet
};

using Table = std::map<std::pair<std::int64_t, int>, std::vector<std::uint64_t>>;

// Everything by hand.
struct Oracle {
    std::map<std::int64_t, Known> known;
    std::int64_t clock = 0;

    static bool judges(const Known& each) { return each.score >= lower && each.score < upper; }
    void advance(std::int64_t now) {
        clock = std::max(clock, now);
        for (auto& [id, each] : known)
            if (each.counted == -2 && each.moment <= clock - age) each.counted = each.label;
    }
    void label(std::int64_t id, int label) {
        const auto at = known.find(id);
        if (at == known.end()) return;
        at->second.label = label;
        if (at->second.counted >= 0) at->second.counted = label;
    }
    Table table() const {
        Table counts;
        for (const auto& [id, each] : known)
            if (judges(each) && each.counted > -2) {
                auto& row = counts[{each.weight, 0}];
                row.resize(3);
                ++row[static_cast<std::size_t>(each.counted < 0 ? 2 : each.counted)];
            }
        return counts;
    }
    std::size_t waiting() const {
        std::size_t young = 0;
        for (const auto& [id, each] : known) young += judges(each) && each.counted == -2;
        return young;
    }
};

Table table(const CandidateTrial& trial) {
    Table counts;
    trial.each([&](const Amount& weight, const CandidateTrial::Counts& row) {
        if (row.of[0] + row.of[1] + row.of[2])
            counts[{weight.first, weight.bits}] = {row.of[0], row.of[1], row.of[2]};
    });
    return counts;
}

CandidateTrial begun() { return CandidateTrial(lower, upper, Time::whole(age), Time::whole(0)); }

// Text and numbers.
std::string name_of(std::int64_t id) { return "a name that is long enough " + std::to_string(id); }
Id id_of(std::int64_t id, const std::string& name) {
    return id % 2 ? Id::of(id) : Id::of(1, name.data(), name.size());
}

// One thing happens, to both.
template <class Report>
void step(Random& random, std::int64_t now, Oracle& oracle, Report&& report) {
    const auto id = static_cast<std::int64_t>(random() % 60);
    const std::string name = name_of(id);
    const Id as = id_of(id, name);
    oracle.advance(now);
    const int label = static_cast<int>(random() % 3) - 1;
    switch (random() % 4) {
        case 0:
        case 1: {
            const double score = static_cast<double>(random() % 11);
            const auto moment = now - static_cast<std::int64_t>(random() % 3);
            const auto weight = static_cast<std::int64_t>(1 + random() % 3);
            if (oracle.known.count(id)) return;
            oracle.known[id] = {score, moment, weight, label};
            report([=](CandidateTrial& trial) {
                trial.scored(as, score, Time::whole(moment), label, {weight, 0, 0});
            });
            return;
        }
        case 2:
            if (label < 0) return;
            oracle.label(id, label);
            report([=](CandidateTrial& trial) { trial.labelled(as, label); });
            return;
        default:
            oracle.known.erase(id);
            report([=](CandidateTrial& trial) { trial.forgot(as); });
    }
}

}  // namespace

TEST_CASE("each sample is counted at the age, by its weight, whatever its label") {
    for (int seed = 0; seed < effort(4, 40); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        Oracle oracle;
        CandidateTrial trial = begun();
        for (std::int64_t now = 3; now < 400; ++now) {
            step(random, now, oracle, [&](auto&& act) {
                trial.advance(Time::whole(now));
                act(trial);
            });
            // Whether it is asked at once or later makes no difference.
            if (random() % 3) continue;
            oracle.advance(now);
            trial.advance(Time::whole(now));
            const std::string note = "seed " + std::to_string(seed);
            CHECK_NOTE(table(trial) == oracle.table(), note);
            CHECK_NOTE(trial.waiting() == oracle.waiting(), note);
            CHECK(!trial.lost());
        }
    }
}

TEST_CASE("a trial comes back out of its bytes, and goes on alike") {
    Random random(7);
    Oracle oracle;
    CandidateTrial trial = begun();
    for (std::int64_t now = 3; now < 300; ++now) {
        step(random, now, oracle, [&](auto&& act) {
            trial.advance(Time::whole(now));
            act(trial);
        });
        const std::string bytes = trial.state();
        std::optional<CandidateTrial> again = CandidateTrial::restored(bytes);
        CHECK(again.has_value());
        CHECK(again->state() == bytes);
        CHECK(table(*again) == table(trial));
        CHECK(again->waiting() == trial.waiting());
        if (now % 10 == 0) trial = std::move(*again);
    }
    oracle.advance(300);
    trial.advance(Time::whole(300));
    CHECK(table(trial) == oracle.table());
}

TEST_CASE("bytes that were changed are refused, or describe a sound trial") {
    Random random(8);
    Oracle oracle;
    CandidateTrial trial = begun();
    for (std::int64_t now = 3; now < 100; ++now)
        step(random, now, oracle, [&](auto&& act) {
            trial.advance(Time::whole(now));
            act(trial);
        });
    const std::string bytes = trial.state();
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CandidateTrial::restored(bytes.substr(0, size));
    CHECK(!CandidateTrial::restored(bytes.substr(0, bytes.size() - 1)));
    for (int i = 0; i < effort(300, 3000); ++i) {
        std::string other = bytes;
        other[random() % other.size()] ^= static_cast<char>(1 << random() % 8);
        std::optional<CandidateTrial> again = CandidateTrial::restored(other);
        if (!again) continue;
        for (std::int64_t id = 0; id < 60; ++id) {
            const std::string name = name_of(id);
            again->labelled(id_of(id, name), 1);
            if (id % 3 == 0) again->forgot(id_of(id, name));
        }
        again->advance(Time::whole(1000));
    }
}

TEST_CASE("where memory runs out the trial is lost, and says so, and nothing breaks") {
    long lost = 0;
    for (long granted = 0; granted < 40; ++granted) {
        Random random(9);
        Oracle oracle;
        CandidateTrial trial = begun();
        for (std::int64_t now = 3; now < 60; ++now)
            step(random, now, oracle, [&](auto&& act) {
                trial.advance(Time::whole(now));
                succeeds_with(granted, [&] { act(trial); });
            });
        lost += trial.lost();
        CHECK(CandidateTrial::restored(trial.state()).has_value());
        trial.advance(Time::whole(1000));
        CHECK(trial.waiting() == 0);
        if (!trial.lost()) {
            oracle.advance(1000);
            CHECK(table(trial) == oracle.table());
        }
        for (std::int64_t id = 0; id < 60; ++id) {
            const std::string name = name_of(id);
            trial.forgot(id_of(id, name));
        }
        CHECK(table(trial).empty());
    }
    CHECK(lost > 0);
    CHECK(lost < 40);
}

TEST_CASE("samples scored before the trial began do not judge") {
    CandidateTrial trial(lower, upper, Time::whole(age), Time::whole(50));
    trial.scored(Id::of(1), 5, Time::whole(49), 1, {});
    trial.scored(Id::of(2), 5, Time::whole(50), 1, {});
    trial.advance(Time::whole(100));
    const Table counts = table(trial);
    CHECK(counts.size() == 1 && counts.begin()->second[1] == 1);
}
