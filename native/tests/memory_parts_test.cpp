// SPDX-License-Identifier: Apache-2.0
//
// The parts a memory is made of: times, the table of ids, timelines, positions in half-lives.

#define LIMEN_TEST_MAIN
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "memory/entries.hpp"
#include "memory/fading.hpp"
#include "memory/id_table.hpp"
#include "memory/moment.hpp"
#include "memory/timeline.hpp"
#include "tests/testing.hpp"

using namespace limen;
using limen::testing::effort;

namespace {

// As much of entries as tables and timelines ask for.
struct FewEntries {
    std::vector<std::uint32_t> hashes, turns;
    std::vector<Time> times;
    std::uint32_t hash(std::uint32_t at) const { return hashes[at]; }
    std::uint32_t turn(std::uint32_t at) const { return turns[at]; }
    Time time(std::uint32_t at) const { return times[at]; }
};

Time any_time(std::mt19937_64& random) {
    static const double reals[] = {0.5,           1.0,    2.0,     0x1p53,    0x1p53 + 2,
                                   0x1p62,        0x1p63, -0x1p63, -0x1.8p63, 9007199254740991.5,
                                   -0.0,          1e300,  -1e300,  1.5,       -2.5,
                                   0x1p63 * 0.999};
    static const std::int64_t wholes[] = {
        0, 1, 2, -3, (1LL << 53) + 1, (1LL << 53), INT64_MAX, INT64_MIN, INT64_MAX - 1, 1LL << 62};
    return random() % 2 ? Time::of(reals[random() % 16]) : Time::whole(wholes[random() % 10]);
}

}  // namespace

TEST_CASE("whole times and doubles are compared without rounding") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
        const Time a = any_time(random), b = any_time(random);
        // Two doubles hold each of them exactly.
        const auto split = [](const Time& time) {
            const double high = std::floor(time.number());
            if (time.real) return std::pair(high, time.number() - high);
            return std::pair(static_cast<double>(time.bits >> 32) * 0x1p32,
                             static_cast<double>(time.bits & 0xffffffff));
        };
        const auto [ah, al] = split(a);
        const auto [bh, bl] = split(b);
        const double d = (ah - bh) + (al - bl);  // exact where it is small
        if (std::fabs(ah - bh) < 0x1p52 || (ah - bh) * d > 0) {
            CHECK((a < b) == (d < 0));
            CHECK((a == b) == (d == 0));
            CHECK((a <= b) == (d <= 0));
        }
    }
    CHECK(Time::whole((1LL << 53) + 1) > Time::of(0x1p53));
    CHECK(Time::whole(INT64_MAX) < Time::of(0x1p63));
    CHECK(Time::whole(INT64_MIN) == Time::of(-0x1p63));
    CHECK(Time::never() < Time::whole(INT64_MIN));
}

TEST_CASE("a period before the first whole number is before all") {
    CHECK(before(Time::whole(INT64_MIN + 1), Time::whole(5)) == Time::never());
    CHECK(before(Time::whole(7), Time::whole(5)) == Time::whole(2));
    CHECK(before(Time::whole(7), Time::of(0.5)) == Time::of(6.5));
    CHECK(!(before(Time::of(1e300), Time::whole(1)) < Time::of(1e300)));
}

TEST_CASE("a table finds what it holds, also where all hashes meet") {
    for (const std::uint64_t mask : {~0ull, 1023ull, 3ull, 0ull}) {
        std::mt19937 random(3);
        const IdHash hash(random(), mask);
        FewEntries entries;
        IdTable table;
        std::vector<Id> ids;
        std::vector<bool> held;
        for (int i = 0; i < 200; ++i) {
            ids.push_back(Id::of(i * i));
            entries.hashes.push_back(hash(ids.back()));
            held.push_back(false);
        }
        std::size_t size = 0;
        for (int step = 0; step < effort(3000, 20000); ++step) {
            const auto at = static_cast<std::uint32_t>(random() % ids.size());
            const auto found = table.find(entries.hashes[at], [&](std::uint32_t other) {
                return compare(ids[other], ids[at]) == 0;
            });
            CHECK(found == (held[at] ? at : IdTable::none));
            if (held[at]) {
                table.remove(at, entries.hashes[at]);
                --size;
            } else {
                table.reserve(1);
                table.add(at, entries.hashes[at]);
                ++size;
            }
            held[at] = !held[at];
            CHECK(table.size() == size);
            if (step % 64 == 0) table.check(entries);
        }
    }
}

TEST_CASE("every bit of an id moves about half of the bits of its hash") {
    const IdHash hash(42);
    std::mt19937_64 random(5);
    double moved = 0;
    int tried = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto number = static_cast<std::int64_t>(random());
        const int bit = static_cast<int>(random() % 64);
        moved +=
            std::popcount(hash(Id::of(number)) ^ hash(Id::of(number ^ std::int64_t{1} << bit)));
        std::string bytes(1 + random() % 40, 'a');
        const std::uint32_t before = hash(Id::of(1, bytes.data(), bytes.size()));
        bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
        moved += std::popcount(before ^ hash(Id::of(1, bytes.data(), bytes.size())));
        tried += 2;
    }
    CHECK(std::fabs(moved / tried - 16) < 0.3);
    CHECK(hash(Id::of(1, "1", 1)) != hash(Id::of(2, "1", 1)));
    CHECK(IdHash(1)(Id::of(7)) != IdHash(2)(Id::of(7)));
}

TEST_CASE("ids that follow each other, or share their ends, fill a table evenly") {
    const IdHash hash(99);
    for (int kind = 0; kind < 3; ++kind) {
        std::vector<int> buckets(1024);
        for (int i = 0; i < 1 << 15; ++i) {
            const std::string name = "customer-" + std::to_string(i) + "-2026";
            const Id id = kind == 0   ? Id::of(i)
                          : kind == 1 ? Id::of(std::int64_t{i} << 40)
                                      : Id::of(1, name.data(), name.size());
            ++buckets[hash(id) % 1024];
        }
        CHECK(*std::max_element(buckets.begin(), buckets.end()) < 70);  // 32 on average
        CHECK(*std::min_element(buckets.begin(), buckets.end()) > 8);
    }
}

TEST_CASE("entries come up by time, those of one time in the order in which they came") {
    for (unsigned seed = 0; seed < static_cast<unsigned>(effort(20, 200)); ++seed) {
        std::mt19937 random(seed);
        FewEntries entries;
        Timeline line;
        std::vector<std::pair<std::int64_t, std::uint32_t>> waiting;  // in the order they came
        std::int64_t edge = 0;
        for (int step = 0; step < 300; ++step) {
            const int what = static_cast<int>(random() % 10);
            if (what < 6) {
                // Some are a few places late, some more than are ever moved.
                const std::uint64_t span = seed % 2 ? 6 : 60;
                const auto time = edge + 1 + static_cast<std::int64_t>(random() % span);
                const auto at = static_cast<std::uint32_t>(entries.times.size());
                entries.times.push_back(Time::whole(time));
                entries.turns.push_back(0);
                line.reserve(1);
                line.add(entries, Time::whole(time), {at, 0});
                waiting.emplace_back(time, at);
            } else if (what < 8 && !waiting.empty()) {  // dropped
                const auto gone = waiting.begin() + static_cast<long>(random() % waiting.size());
                ++entries.turns[gone->second];
                waiting.erase(gone);
            } else {
                edge += static_cast<std::int64_t>(random() % 3);
                std::stable_sort(waiting.begin(), waiting.end(),
                                 [](auto& a, auto& b) { return a.first < b.first; });
                std::vector<std::uint32_t> due, looked;
                line.look(entries, Time::whole(edge),
                          [&](std::uint32_t at) { looked.push_back(at); });
                while (!waiting.empty() && waiting.front().first <= edge) {
                    due.push_back(waiting.front().second);
                    waiting.erase(waiting.begin());
                }
                Place place;
                std::vector<std::uint32_t> came;
                while (line.first(entries, Time::whole(edge), place)) {
                    line.pop();
                    came.push_back(place.at);
                }
                CHECK(came == due);
                std::sort(looked.begin(), looked.end());
                std::sort(due.begin(), due.end());
                CHECK(looked == due);
            }
            line.check(entries);
            std::stable_sort(waiting.begin(), waiting.end(),
                             [](auto& a, auto& b) { return a.first < b.first; });
            std::vector<std::uint32_t> order;
            for (const auto& [time, at] : waiting) order.push_back(at);
            CHECK(line.in_order(entries) == order);
        }
    }
}

TEST_CASE("a ring keeps its order while it grows, wraps and is thinned out") {
    std::mt19937 random(7);
    Ring<int> ring;
    std::deque<int> queue;
    for (int step = 0; step < 5000; ++step) {
        if (random() % 5 < 3) {
            ring.reserve(1);
            const std::size_t behind = random() % 4 && !queue.empty() ? random() % queue.size() : 0;
            ring.insert(behind, step);
            queue.insert(queue.end() - static_cast<long>(behind), step);
        } else if (!queue.empty()) {
            ring.pop();
            queue.pop_front();
        }
        if (step % 200 == 0) {
            ring.keep_if([](int value) { return value % 3 != 0; });
            std::erase_if(queue, [](int value) { return value % 3 == 0; });
        }
        CHECK(ring.size() == queue.size());
        for (std::size_t i = 0; i < queue.size(); ++i) CHECK(ring[i] == queue[i]);
    }
}

TEST_CASE("a slab holds its values while it grows") {
    Slab<int> slab;
    for (std::uint32_t at = 0; at < 5000; ++at) {
        slab.reserve(at + 1);
        slab[at] = static_cast<int>(at);
    }
    for (std::uint32_t at = 0; at < 5000; ++at) CHECK(slab[at] == static_cast<int>(at));
}

TEST_CASE("positions far from the first sample are exact to parts of a half-life") {
    double ahead;
    const auto none = std::optional<Time>();
    // By number: half-lives of 3, some 2^40 of them after the first.
    const HalfLives thirds(Time::whole(3), false);
    const std::uint64_t count = 3 * (1ull << 40) + 1;
    CHECK(thirds.position(count, {}, none, 0x1p40, ahead));
    CHECK(std::fabs(ahead - 1.0 / 3) < 1e-9);
    // By time, in microseconds and in doubles.
    const HalfLives days(Time::whole(86'400'000'000), true);
    const std::optional<Time> origin = Time::whole(-5'000'000'000'000'000'000);
    CHECK(days.position(0, Time::whole(4'000'000'000'000'043'200), origin, 104166666.0, ahead));
    CHECK(std::fabs(ahead - (9'000'000'000'000'043'200.0L / 86'400'000'000.0L - 104166666.0L)) <
          1e-7);
    const HalfLives tenths(Time::of(0.1), true);
    CHECK(tenths.position(0, Time::of(1e6 + 0.25), std::optional<Time>(Time::of(0.25)), 9999990.0,
                          ahead));
    CHECK(std::fabs(ahead - 10) < 1e-8);  // 0.1 is a little more than a tenth
    // Out of reach.
    CHECK(!tenths.position(0, Time::of(1e300), std::optional<Time>(Time::of(0)), 0, ahead));
    CHECK(tenths.position(0, Time::of(-1e300), std::optional<Time>(Time::of(0)), 0, ahead));
    CHECK(ahead == -0x1p52);
}
