// SPDX-License-Identifier: Apache-2.0
//
// Memories near the limits of what sums hold, columns that no memory has, and merging.

#define LIMEN_TEST_MAIN
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "instances.hpp"
#include "memory/memory.hpp"
#include "tests/memory_oracle.hpp"
#include "tests/testing.hpp"

using namespace limen;
using limen::testing::effort;
using limen::testing::id_of;
using limen::testing::MemoryOracle;
using limen::testing::name_of;
using limen::testing::small_tree;

// ---- near the limits ----

namespace {

// The sum of what is held, in the places that all of it needs.
template <class Tree>
bool fits(const MemoryOracle<Tree>& oracle) {
    int bits = 0;
    for (const auto& record : oracle.records)
        if (record.state == EntryState::held) bits = std::max(bits, int{record.amount.bits});
    Wide sum = 0;
    for (const auto& record : oracle.records)
        if (record.state == EntryState::held)
            sum += Wide{record.amount.first} << (bits - record.amount.bits);
    return sum < most_units;
}

}  // namespace

TEST_CASE("there is room for the new where the old was, and what has no room changes nothing") {
    constexpr std::int64_t half = most_units / 2;
    const Amount heavy[] = {
        {half, 0, 0}, {half - 1, 0, 0}, {half / 2, 0, 0}, {most_units - 1, 0, 0},
        {1, 0, 0},    {half + 1, 0, 1}, {3, 0, 2},        {half / 4 + 1, 0, 3}};
    long refusals = 0, held_more_than_half = 0;
    for (unsigned seed = 0; seed < static_cast<unsigned>(effort(60, 400)); ++seed) {
        std::mt19937 random(seed);
        MemorySettings settings;
        settings.keep = seed % 2 ? Keep::last_n : Keep::last_period;
        settings.n = 1 + seed / 2 % 3;
        settings.period = Time::whole(4);
        const bool ids = seed % 3 == 0;
        HeldSamples<CutTree> tree(Unit{}, 4, 4);
        Memory<CutTree> memory(tree, settings);
        MemoryOracle<CutTree> oracle(settings, Unit{});
        std::int64_t clock = 0;
        for (int step = 0; step < 60; ++step) {
            const Amount amount = heavy[random() % 8];
            const double score = static_cast<double>(random() % 4);
            const bool label = random() % 2;
            const auto number = static_cast<std::int64_t>(random() % 6);
            clock += static_cast<std::int64_t>(random() % 3);
            const Time time = Time::whole(clock);
            const Time* when = ids || settings.keep == Keep::last_period ? &time : nullptr;
            const MemoryColumns before = memory.columns();
            const std::string state = tree.state();
            MemoryOracle<CutTree> tried = oracle;
            Result done, wanted;
            if (!ids) {
                done = memory.update(score, label, amount, when);
                wanted = tried.update(score, label, amount, when);
            } else if (random() % 2) {
                done = memory.score(Id::of(number), score, amount, when, 0);
                wanted = tried.score(std::to_string(number), score, amount, when, 0, 0);
            } else {
                done = memory.label(Id::of(number), label, {}, nullptr);
                wanted = tried.label(std::to_string(number), label, {}, nullptr);
            }
            const std::string note = "seed " + std::to_string(seed);
            memory.check();
            if (wanted.refusal == MemoryRefusal::none && !fits(tried))
                wanted.refusal = MemoryRefusal::too_large;
            CHECK_NOTE(done.refusal == wanted.refusal, note);
            if (done.refusal == MemoryRefusal::none) {
                oracle = tried;
                CHECK_NOTE(memory.columns().rows() == oracle.records.size(), note);
                CHECK_NOTE(memory.cost() == oracle.cost(), note);
                held_more_than_half += tree.total() > most_units / 2;
            } else {
                CHECK_NOTE(memory.columns() == before && tree.state() == state, note);
                refusals += done.refusal == MemoryRefusal::too_large;
            }
        }
    }
    CHECK(refusals > 100 && held_more_than_half > 500);
}

TEST_CASE("a batch that fits row by row is taken, and one that does not changes nothing") {
    constexpr std::int64_t half = most_units / 2;
    MemorySettings settings;
    settings.keep = Keep::last_n;
    settings.n = 1;
    HeldSamples<CutTree> tree(Unit{}, 4, 4);
    Memory<CutTree> memory(tree, settings);
    std::vector<double> scores{1, 2, 3};
    std::vector<std::uint8_t> labels{0, 1, 0}, counted(3);
    std::vector<std::int64_t> firsts{half + 5, half + 6, half + 7};
    BatchColumns rows;
    rows.rows = 3;
    rows.scores = scores.data();
    rows.labels = labels.data();
    rows.firsts = firsts.data();
    CHECK(memory.update_many(rows, counted.data()).refusal == MemoryRefusal::none);
    CHECK(tree.samples() == 1 && tree.total() == half + 7);
    memory.check();
    settings.n = 2;
    HeldSamples<CutTree> other(Unit{}, 4, 4);
    Memory<CutTree> two(other, settings);
    firsts = {half, half - 1, half};
    const MemoryColumns before = two.columns();
    const Result done = two.update_many(rows, counted.data());
    CHECK(done.refusal == MemoryRefusal::none);
    firsts = {1, half, half};
    const MemoryColumns now = two.columns();
    const Result refused = two.update_many(rows, counted.data());
    CHECK(refused.refusal == MemoryRefusal::too_large && refused.row == 2);
    CHECK(two.columns() == now && !(now == before));
    two.check();
}

TEST_CASE("what no memory could have written is not restored") {
    MemorySettings settings;
    settings.time_to_live = Time::whole(100);
    HeldSamples<CutTree> tree(Unit{}, 4, 4);
    Memory<CutTree> memory(tree, settings);
    const Time time = Time::whole(5);
    for (int i = 0; i < 8; ++i) memory.score(Id::of(i), i / 8.0, {}, &time, i % 2);
    for (int i = 0; i < 5; ++i) memory.label(Id::of(i), i % 3 == 0, {});
    memory.label(Id::of(1, "waits", 5), true, {});
    const MemoryColumns good = memory.columns();
    CHECK(memory.restore(good));
    const auto refuses = [&](auto&& spoil) {
        MemoryColumns bad = good;
        spoil(bad);
        const bool refused = !memory.restore(bad);
        memory.check();
        return refused && memory.columns() == good;
    };
    CHECK(refuses([](MemoryColumns& c) { c.scores[0] += 1; }));  // the tree does not hold it
    CHECK(refuses([](MemoryColumns& c) { std::swap(c.scores[0], c.scores[1]); }));
    CHECK(refuses([](MemoryColumns& c) { c.scores[1] = c.scores[2]; }));
    CHECK(refuses([](MemoryColumns& c) { c.labels[0] ^= 1; }));
    CHECK(refuses([](MemoryColumns& c) { c.states[0] = 1; }));
    CHECK(refuses([](MemoryColumns& c) { c.states[7] = 3; }));
    CHECK(refuses([](MemoryColumns& c) { c.states[2] = 9; }));
    CHECK(refuses([](MemoryColumns& c) { c.id_numbers[1] = c.id_numbers[0]; }));
    CHECK(refuses([](MemoryColumns& c) { c.id_ends.back() += 1; }));
    CHECK(refuses([](MemoryColumns& c) { c.id_kinds.back() = 8; }));
    CHECK(refuses([](MemoryColumns& c) { c.times[3] = 6; }));     // from the future
    CHECK(refuses([](MemoryColumns& c) { c.times[6] = -200; }));  // long gone
    CHECK(refuses([](MemoryColumns& c) { c.newest.reset(); }));
    CHECK(refuses([](MemoryColumns& c) { c.scores.pop_back(); }));
    CHECK(refuses([](MemoryColumns& c) { c.scores[5] = std::nan(""); }));
    CHECK(refuses([](MemoryColumns& c) { c.cost += 1; }));
    CHECK(refuses([](MemoryColumns& c) { c.answers[0] = 2; }));
    CHECK(refuses([](MemoryColumns& c) { c.time_kinds[0] = 2; }));
    CHECK(refuses([](MemoryColumns& c) { c.groups.assign(c.rows(), 1); }));
    CHECK(refuses([](MemoryColumns& c) { c.places.assign(c.rows(), 0); }));
}

// ---- merging ----

TEST_CASE("two memories merged are the one that saw everything") {
    for (unsigned seed = 0; seed < static_cast<unsigned>(effort(40, 300)); ++seed) {
        std::mt19937 random(seed);
        const auto draw = [&](unsigned below) { return static_cast<int>(random() % below); };
        MemorySettings settings;
        settings.keep = seed % 2 ? Keep::all : Keep::last_period;
        settings.period = Time::whole(9);
        settings.costs = settings.account = {2, 3};
        const bool ids = seed % 5 != 0 || settings.keep == Keep::all;
        if (ids && seed % 3) settings.time_to_live = Time::whole(7);
        if (ids && seed % 4 == 1) settings.maturity = Time::whole(3);
        if (ids && seed % 7 == 1) settings.correctable = Time::whole(8);
        const bool grouped = seed % 2 && seed % 3;
        std::vector<HeldSamples<CutTree>> trees;
        trees.reserve(6);
        for (int i = 0; i < 6; ++i) trees.push_back(small_tree<CutTree>({}, settings.costs));
        Memory<CutTree> parts[3] = {
            {trees[0], settings}, {trees[1], settings}, {trees[2], settings}};
        for (std::size_t i = 0; grouped && i < 3; ++i) parts[i].add_group(trees[3 + i]);
        Memory<CutTree>& all = parts[2];
        std::int64_t clock = 0;
        for (int step = 0; step < 80; ++step) {
            const int number = draw(16), what = draw(10);
            clock += draw(2);
            const Time now = Time::whole(clock), time = Time::whole(clock - draw(5));
            for (Memory<CutTree>& part : parts) part.advance(now);
            for (Memory<CutTree>* memory : {&parts[number % 2], &all}) {
                const Amount weight{1 + number % 3, 0, static_cast<std::uint8_t>(number % 2)};
                const std::string name = name_of(number);
                const Id id = id_of(number, name);
                const bool label = (number + step) % 3 == 0;
                if (!ids)
                    memory->update(number / 4.0, label, weight, &time);
                else if (what < 5)
                    memory->score(id, number / 4.0, weight, &time, number % 4 == 0,
                                  grouped && number % 5 == 0);
                else if (what < 9)
                    memory->label(id, label, {}, what == 8 ? &now : nullptr);
                else
                    memory->forget(id);
            }
        }
        const Result done = parts[0].merge(parts[1]);
        const std::string note = "seed " + std::to_string(seed);
        CHECK_NOTE(done.refusal == MemoryRefusal::none, note);
        parts[0].check();
        CHECK_NOTE(trees[0].state() == trees[2].state(), note);
        CHECK_NOTE(!grouped || trees[3].state() == trees[5].state(), note);
        MemoryColumns merged = parts[0].columns();
        merged.counts = all.columns().counts;  // parts that saw no score do not know
        CHECK_NOTE(merged == all.columns(), note);
        const bool known = parts[1].ids() > 0;
        CHECK_NOTE(!known || parts[0].merge(parts[1]).refusal == MemoryRefusal::same_id, note);
        CHECK_NOTE(!known || parts[0].columns() == merged || merged.counts != all.columns().counts,
                   note);
    }
}

TEST_CASE("what nothing brings into one order is not merged") {
    MemorySettings settings;
    settings.keep = Keep::last_n;
    settings.n = 3;
    HeldSamples<CutTree> a, b;
    Memory<CutTree> x(a, settings), y(b, settings);
    CHECK(x.merge(y).refusal == MemoryRefusal::not_merged);
    HeldSamples<CutTree> c, d, e;
    settings.keep = Keep::all;
    Memory<CutTree> u(c, settings), v(d, settings);
    settings.time_to_live = Time::whole(3);
    Memory<CutTree> w(e, settings);
    CHECK(u.merge(w).refusal == MemoryRefusal::not_alike);
    u.score(Id::of(1), 0.5, {}, nullptr, 1);
    v.score(Id::of(2), 0.5, {}, nullptr, 1);
    CHECK(u.merge(v).refusal == MemoryRefusal::not_merged);
}

// ---- memory ----

TEST_CASE("places that nobody stands in any more do not pile up") {
    MemorySettings settings;
    settings.keep = Keep::last_n;
    settings.n = 1'000'000;
    HeldSamples<CutTree> tree;
    Memory<CutTree> memory(tree, settings);
    std::size_t early = 0;
    for (int i = 0; i < 5000; ++i) {
        memory.score(Id::of(i), i % 7, {}, nullptr, 1);
        memory.label(Id::of(i), i % 2, {});
        if (i >= 10) memory.forget(Id::of(i - 10));
        if (i == 500) early = memory.memory();
    }
    memory.check();
    CHECK(memory.memory() == early && memory.ids() == 10);
}

TEST_CASE("an id takes about 60 bytes, and 8 more for each period") {
    for (const int periods : {0, 1, 2, 3}) {
        MemorySettings settings;
        if (periods > 0) settings.time_to_live = Time::whole(1'000'000);
        if (periods > 1) settings.maturity = Time::whole(1'000'000);
        if (periods > 2) settings.correctable = Time::whole(1'000'000);
        HeldSamples<CutTree> tree;
        Memory<CutTree> memory(tree, settings);
        const int ids = 49'000;  // where tables and rings have just about doubled
        for (int i = 0; i < ids; ++i) memory.score(Id::of(i), i % 100, {}, nullptr, 1);
        const std::size_t each = memory.memory() / ids;
        CHECK_NOTE(each <= std::size_t(60 + 12 * periods), std::to_string(each));
        CHECK(each >= 52);
    }
}
