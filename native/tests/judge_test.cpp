// SPDX-License-Identifier: Apache-2.0
//
// A judge, against a list of all its samples that is gone through every time; with memory that runs
// out at every allocation, and bytes that were changed.

#define LIMEN_TEST_MAIN
#include "memory/judge.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/testing.hpp"
#include "tests/testing_memory.hpp"

namespace {

using namespace limen;
using limen::testing::effort;
using limen::testing::succeeds_with;
using Random = std::mt19937_64;

constexpr std::int64_t age = 10;

struct Known {
    std::int64_t id;
    bool now, candidate;
    std::int64_t moment;
    double weight;
    std::string segment;
    Judge::Label label = Judge::none;
    bool waits = true, named = true;
};

using Place = std::tuple<std::string, bool, bool, Judge::Label, double>;  // 0 where they agree
using Table = std::map<Place, std::pair<std::uint64_t, double>>;          // number, sum of weights

// Everything by hand.
struct Oracle {
    std::vector<Known> known;
    std::int64_t clock = 0;

    Known* find(std::int64_t id) {
        for (Known& each : known)
            if (each.named && each.id == id) return &each;
        return nullptr;
    }
    void advance(std::int64_t now) {
        clock = std::max(clock, now);
        for (Known& each : known)
            if (each.waits && each.moment <= clock - age) {
                each.waits = false;
                each.named = each.now != each.candidate;
            }
    }
    void score(const Known& sample) {
        Known* before = find(sample.id);
        if (before && before->waits) return;
        if (before) before->named = false;
        known.push_back(sample);
    }
    void label(std::int64_t id, Judge::Label label) {
        Known* at = find(id);
        if (at && label != Judge::none && (at->waits || at->label < Judge::none)) at->label = label;
    }
    void forget(std::int64_t id) {
        std::erase_if(known, [&](const Known& each) { return each.named && each.id == id; });
    }
    Table table() const {
        Table counts;
        for (const Known& each : known) {
            if (each.waits) continue;
            const double weight = each.now == each.candidate ? 0 : each.weight;
            auto& row = counts[{each.segment, each.now, each.candidate, each.label, weight}];
            ++row.first;
            row.second += each.weight;
        }
        return counts;
    }
    std::size_t waiting() const {
        std::size_t young = 0;
        for (const Known& each : known) young += each.waits;
        return young;
    }
};

Table table(const Judge& judge) {
    Table counts;
    for (const Judge::Row& row : judge.counts())
        counts[{row.segment, row.now, row.candidate, row.label,
                row.now == row.candidate ? 0 : row.weight}] = {
            row.many, row.weight * static_cast<double>(row.many)};
    return counts;
}

// Sums of weights that are whole: the mean times the number is off by less than a half.
bool alike(const Table& a, const Table& b) {
    if (a.size() != b.size()) return false;
    for (const auto& [place, row] : a) {
        const auto at = b.find(place);
        if (at == b.end() || at->second.first != row.first) return false;
        if (std::abs(at->second.second - row.second) > 1e-9) return false;
    }
    return true;
}

Judge begun() { return Judge(Time::whole(age), Time::whole(0)); }

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
    const auto label = static_cast<Judge::Label>(random() % 4);
    switch (random() % 5) {
        case 0:
        case 1:
        case 2: {
            const Known made{id,
                             random() % 2 == 0,
                             random() % 2 == 0,
                             now - static_cast<std::int64_t>(random() % 14),  // some come late
                             static_cast<double>(1 + random() % 3) / 2,
                             random() % 3 ? "" : "a segment of its own, long enough",
                             label};
            oracle.score(made);
            report([=](Judge& judge) {
                judge.score(as, made.now, made.candidate, Time::whole(made.moment), made.weight,
                            made.segment, made.label);
            });
            return;
        }
        case 3:
            oracle.label(id, label);
            report([=](Judge& judge) { judge.label(as, label); });
            return;
        default:
            oracle.forget(id);
            report([=](Judge& judge) { judge.forget(as); });
    }
}

}  // namespace

TEST_CASE("each sample enters once, at the age, with the label that it has then") {
    for (int seed = 0; seed < effort(4, 40); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        Oracle oracle;
        Judge judge = begun();
        for (std::int64_t now = 14; now < 400; ++now) {
            step(random, now, oracle, [&](auto&& act) {
                judge.advance(Time::whole(now));
                act(judge);
            });
            // Whether it is asked at once or later makes no difference.
            if (random() % 3) continue;
            oracle.advance(now);
            judge.advance(Time::whole(now));
            const std::string note = "seed " + std::to_string(seed);
            CHECK_NOTE(alike(table(judge), oracle.table()), note);
            CHECK_NOTE(judge.waiting() == oracle.waiting(), note);
            for (std::int64_t id = 0; id < 60; ++id) {
                const std::string name = name_of(id);
                CHECK_NOTE(judge.knows(id_of(id, name)) == (oracle.find(id) != nullptr), note);
            }
            CHECK(!judge.lost());
        }
    }
}

TEST_CASE("a judge comes back out of its bytes, and goes on alike") {
    Random random(7);
    Oracle oracle;
    Judge judge = begun(), kept = begun();
    for (std::int64_t now = 14; now < 300; ++now) {
        step(random, now, oracle, [&](auto&& act) {
            for (Judge* each : {&judge, &kept}) {
                each->advance(Time::whole(now));
                act(*each);
            }
        });
        const std::string bytes = judge.state();
        CHECK(kept.state() == bytes);
        std::optional<Judge> again = Judge::restored(bytes);
        CHECK(again.has_value());
        CHECK(again->state() == bytes);
        CHECK(table(*again) == table(judge));
        CHECK(again->waiting() == judge.waiting());
        if (now % 10 == 0) judge = std::move(*again);
    }
    oracle.advance(300);
    judge.advance(Time::whole(300));
    CHECK(alike(table(judge), oracle.table()));
}

TEST_CASE("bytes that were changed are refused, or describe a sound judge") {
    Random random(8);
    Oracle oracle;
    Judge judge = begun();
    for (std::int64_t now = 14; now < 100; ++now)
        step(random, now, oracle, [&](auto&& act) {
            judge.advance(Time::whole(now));
            act(judge);
        });
    const std::string bytes = judge.state();
    for (std::size_t size = 0; size < bytes.size(); ++size)
        Judge::restored(std::string_view(bytes).substr(0, size));
    CHECK(!Judge::restored(std::string_view(bytes).substr(0, bytes.size() - 1)));
    for (int i = 0; i < effort(300, 3000); ++i) {
        std::string other = bytes;
        other[random() % other.size()] ^= static_cast<char>(1 << random() % 8);
        std::optional<Judge> again = Judge::restored(other);
        if (!again) continue;
        for (std::int64_t id = 0; id < 60; ++id) {
            const std::string name = name_of(id);
            again->label(id_of(id, name), Judge::one);
            if (id % 3 == 0) again->forget(id_of(id, name));
        }
        again->advance(Time::whole(1000));
        again->each_id([](const Id&) {});
        CHECK(Judge::restored(again->state()).has_value());
    }
}

TEST_CASE("where memory runs out the judge is lost, and says so, and nothing breaks") {
    long lost = 0;
    for (long granted = 0; granted < 40; ++granted) {
        Random random(9);
        Oracle oracle;
        Judge judge = begun();
        for (std::int64_t now = 14; now < 80; ++now)
            step(random, now, oracle, [&](auto&& act) {
                judge.advance(Time::whole(now));
                succeeds_with(granted, [&] { act(judge); });
            });
        lost += judge.lost();
        CHECK(Judge::restored(judge.state()).has_value());
        judge.advance(Time::whole(1000));
        CHECK(judge.waiting() == 0);
        if (!judge.lost()) {
            oracle.advance(1000);
            CHECK(alike(table(judge), oracle.table()));
        }
        for (std::int64_t id = 0; id < 60; ++id) {
            const std::string name = name_of(id);
            judge.forget(id_of(id, name));
        }
        judge.each_id([](const Id&) { CHECK(false); });
    }
    CHECK(lost > 0);
    CHECK(lost < 40);
}

TEST_CASE("samples scored before the judge began do not judge") {
    Judge judge(Time::whole(age), Time::whole(50));
    judge.score(Id::of(1), false, true, Time::whole(49), 1, {}, Judge::one);
    judge.score(Id::of(2), false, true, Time::whole(50), 1, {}, Judge::one);
    judge.advance(Time::whole(100));
    const std::vector<Judge::Row> rows = judge.counts();
    CHECK(rows.size() == 1 && rows[0].many == 1 && rows[0].label == Judge::one);
    CHECK(judge.differing() == 1);
}

TEST_CASE("many distinct weights of samples on which the rules agree take no memory") {
    Judge judge(Time::whole(0));
    for (int i = 0; i < 1000; ++i) judge.score(Id::of(i), true, true, Time::whole(i), 1 + i * 0.1);
    judge.advance(Time::whole(2000));
    const std::vector<Judge::Row> rows = judge.counts();
    CHECK(rows.size() == 1 && rows[0].many == 1000);
    CHECK(std::abs(rows[0].weight - 50.95) < 1e-9);
    CHECK(judge.state().size() < 300);
    CHECK(judge.differing() == 0);
}
