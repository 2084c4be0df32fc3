// SPDX-License-Identifier: Apache-2.0
//
// The inner loops: the plain ones against their definition, all others against the plain ones,
// for every slot, every number of slots in use, and numbers as large as they may become.

#define LIMEN_TEST_MAIN
#include "core/kernels.hpp"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr std::int64_t limit = std::int64_t{1} << 62;  // sums stay strictly inside

using Random = std::mt19937_64;
using Units = std::vector<std::int64_t>;

constexpr int rounds = testing::effort(4, 40);

// A set of kernels that is chosen while the test runs.
struct Contender {
    const char* name;
    int (*leaf_rank)(const double*, double);
    std::int64_t (*leaf_add)(std::int64_t*, int, std::int64_t);
    std::int64_t (*leaf_open)(double*, std::int64_t*, int, std::int64_t);
    std::int64_t (*leaf_close)(double*, std::int64_t*, int, std::int64_t);
    int (*leaf_last)(const std::int64_t*, std::int64_t);
    int (*node_rank)(const double*, double);
    std::int64_t (*node_add)(std::int64_t*, std::int64_t*, int, std::int64_t, int);
    std::int64_t (*node_add_two)(std::int64_t*, std::int64_t*, int, std::int64_t, int, std::int64_t,
                                 int);
    int (*node_last)(const std::int64_t*, std::int64_t);
};

std::vector<Isa> supported() {
    std::vector<Isa> all;
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
        if (isa_supported(isa)) all.push_back(isa);
    return all;
}

const std::vector<Contender>& contenders() {
    static const std::vector<Contender> all = [] {
        std::vector<Contender> made;
        for (Isa isa : supported())
            with_kernels(isa, [&]<class K>(K) {
                made.push_back({isa_name(isa), K::leaf_rank, K::leaf_add, K::leaf_open,
                                K::leaf_close, K::leaf_last, K::node_rank, K::node_add,
                                K::node_add_two, K::node_last});
            });
        return made;
    }();
    return all;
}

std::string note(const char* name, std::uint64_t seed, int slot = -1, int used = -1) {
    return std::string(name) + ", seed " + std::to_string(seed) + ", slot " + std::to_string(slot) +
           ", used " + std::to_string(used);
}

// Sums as a leaf lays them out: zeros before them, other numbers behind. Comparing all of it
// shows a kernel that writes outside its slots.
struct alignas(64) Sums {
    std::int64_t zeros[8] = {};
    std::int64_t prefix[leaf_slots];
    std::int64_t behind[8];

    bool operator==(const Sums& other) const {
        return std::memcmp(this, &other, sizeof *this) == 0;
    }
};

struct alignas(64) Children {
    std::int64_t guard[8];
    std::int64_t before[node_slots];
    std::int64_t best[node_slots];
    std::int64_t behind[8];

    bool operator==(const Children& other) const {
        return std::memcmp(this, &other, sizeof *this) == 0;
    }
};

struct alignas(64) Keys {
    double at[leaf_slots];
};

// A whole number with |value| < bound: small, anything, or next to the bound.
std::int64_t draw(Random& random, std::int64_t bound = limit) {
    const auto size = static_cast<std::uint64_t>(bound);
    const auto value = static_cast<std::int64_t>(random() % size);
    const std::int64_t kinds[] = {value % 4, value, bound - 1 - value % 3};
    const std::int64_t drawn = kinds[random() % 3];
    return random() % 2 ? drawn : -drawn;
}

Sums random_sums(Random& random) {
    Sums sums;
    for (std::int64_t& sum : sums.prefix) sum = draw(random);
    for (std::int64_t& other : sums.behind) other = draw(random);
    return sums;
}

// Running sums of z, with the last one repeated in the free slots; 0 when there is none.
void lay_out(const Units& z, Sums& sums) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < leaf_slots; ++i) sums.prefix[i] = sum += i < z.size() ? z[i] : 0;
}

std::int64_t largest(const Sums& sums) {
    std::int64_t found = sums.prefix[0];
    for (std::int64_t sum : sums.prefix) found = std::max(found, sum);
    return found;
}

double random_score(Random& random) {
    constexpr double all[] = {-inf, -DBL_MAX, -1, -DBL_MIN, -tiny, 0.0,
                              tiny, DBL_MIN,  1,  DBL_MAX,  inf};
    if (random() % 4 == 0) return all[random() % std::size(all)];
    if (random() % 4 == 0) return double(random() % 64) - 32;
    const double any = std::bit_cast<double>(random());
    return std::isnan(any) ? 0.5 : any + 0.0;
}

std::vector<double> ascending(Random& random, int used) {
    std::vector<double> scores;
    while (scores.size() < static_cast<std::size_t>(used)) {
        for (std::size_t i = scores.size(); i < static_cast<std::size_t>(used); ++i)
            scores.push_back(random_score(random));
        std::sort(scores.begin(), scores.end());
        scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    }
    return scores;
}

// The scores, their neighbours among the doubles, and the ends.
std::vector<double> probes(const std::vector<double>& scores, Random& random) {
    std::vector<double> all = {-inf, 0.0, tiny, inf, random_score(random)};
    for (double score : scores)
        for (double probe : {score, std::nextafter(score, -inf), std::nextafter(score, inf)})
            all.push_back(probe + 0.0);
    return all;
}

}  // namespace

#if LIMEN_X86 && defined(__GNUC__) && !defined(__APPLE__)
TEST_CASE("what the processor is asked is what the compiler's own runtime answers") {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512bw");

    CHECK(isa_supported(Isa::baseline));
    CHECK(avx2 == isa_supported(Isa::avx2));
    CHECK(avx512 == isa_supported(Isa::avx512));
}
#endif

TEST_CASE("the baseline is supported everywhere, and what is chosen is supported") {
    CHECK(isa_supported(Isa::baseline));
    CHECK(isa_supported(active_isa()));
    CHECK(active_isa() == active_isa());
}

TEST_CASE("LIMEN_ISA forces what this processor has and refuses anything else by name") {
    const char* before = std::getenv("LIMEN_ISA");
    const std::string kept = before ? before : "";
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (!isa_supported(isa) && std::string(isa_name(isa)) == isa_name(Isa::baseline)) continue;
        setenv("LIMEN_ISA", isa_name(isa), 1);
        if (isa_supported(isa)) {
            CHECK(choose_isa() == isa);
            continue;
        }
        std::string message;
        try {
            choose_isa();
        } catch (const std::invalid_argument& refusal) {
            message = refusal.what();
        }
        CHECK(message.find(isa_name(isa)) != std::string::npos);
        CHECK(message.find(isa_name(Isa::baseline)) != std::string::npos);
    }
    setenv("LIMEN_ISA", "", 1);
    CHECK(choose_isa() == supported().back());
    unsetenv("LIMEN_ISA");
    CHECK(choose_isa() == supported().back());
    if (before) setenv("LIMEN_ISA", kept.c_str(), 1);
}

TEST_CASE("every instruction set is given its own kernels, and what it returns is handed on") {
    for (Isa isa : supported()) {
        CHECK(with_isa(isa, [](auto chosen) { return chosen(); }) == isa);
        CHECK(with_kernels(isa, [&]<Isa chosen>(Kernels<chosen>) { return chosen == isa; }));
    }
}

TEST_CASE("a leaf rank counts the keys below a score, and never a free slot") {
    for (int round = 0; round < rounds; ++round)
        for (int used = 0; used <= leaf_slots; ++used) {
            const auto seed = static_cast<std::uint64_t>(1000 * round + used);
            Random random(seed);
            const std::vector<double> scores = ascending(random, used);
            Keys keys;
            std::fill_n(keys.at, leaf_slots, inf);
            std::copy(scores.begin(), scores.end(), keys.at);
            for (double probe : probes(scores, random)) {
                const auto expected =
                    std::lower_bound(scores.begin(), scores.end(), probe) - scores.begin();

                for (const Contender& kernels : contenders())
                    CHECK_NOTE(kernels.leaf_rank(keys.at, probe) == expected,
                               note(kernels.name, seed, -1, used));
            }
        }
}

TEST_CASE("a node rank counts the separators at or below a score, and never a free slot") {
    for (int round = 0; round < rounds; ++round)
        for (int used = 1; used <= node_slots; ++used) {
            const auto seed = static_cast<std::uint64_t>(1000 * round + used);
            Random random(seed);
            std::vector<double> separators = ascending(random, used);
            separators[0] = -inf;
            Keys keys;
            std::fill_n(keys.at, leaf_slots, not_a_number);
            std::copy(separators.begin(), separators.end(), keys.at);
            for (double probe : probes(separators, random)) {
                const auto expected =
                    std::upper_bound(separators.begin(), separators.end(), probe) -
                    separators.begin();

                CHECK_NOTE(expected >= 1, "every score belongs to a child");
                for (const Contender& kernels : contenders())
                    CHECK_NOTE(kernels.node_rank(keys.at, probe) == expected,
                               note(kernels.name, seed, -1, used));
            }
        }
}

TEST_CASE("adding, opening and closing keep the running sums of any leaf") {
    for (int used = 0; used <= leaf_slots; ++used)
        for (int slot = 0; slot < leaf_slots && slot <= used; ++slot) {
            const auto seed = static_cast<std::uint64_t>(1000 * used + slot);
            Random random(seed);
            Units z;
            for (int i = 0; i < used; ++i) z.push_back(draw(random, limit / (leaf_slots + 1)));
            const std::int64_t delta = draw(random, limit / (leaf_slots + 1));
            Sums start = random_sums(random);
            lay_out(z, start);
            Keys keys = {};
            for (const Contender& kernels : contenders()) {
                if (slot < used) {
                    Sums expected = start, actual = start;
                    Units added = z;
                    added[static_cast<std::size_t>(slot)] += delta;
                    lay_out(added, expected);

                    CHECK_NOTE(kernels.leaf_add(actual.prefix, slot, delta) == largest(expected),
                               note(kernels.name, seed, slot, used));
                    CHECK_NOTE(actual == expected, note(kernels.name, seed, slot, used));
                }
                if (used < leaf_slots) {
                    Sums expected = start, actual = start;
                    Units opened = z;
                    opened.insert(opened.begin() + slot, delta);
                    lay_out(opened, expected);

                    CHECK_NOTE(kernels.leaf_open(keys.at, actual.prefix, slot, delta) ==
                                   largest(expected),
                               note(kernels.name, seed, slot, used));
                    CHECK_NOTE(actual == expected, note(kernels.name, seed, slot, used));
                }
                if (slot < used) {
                    Sums expected = start, actual = start;
                    Units closed = z;
                    const std::int64_t gone = z[static_cast<std::size_t>(slot)];
                    closed.erase(closed.begin() + slot);
                    lay_out(closed, expected);

                    CHECK_NOTE(kernels.leaf_close(keys.at, actual.prefix, slot, -gone) ==
                                   largest(expected),
                               note(kernels.name, seed, slot, used));
                    CHECK_NOTE(actual == expected, note(kernels.name, seed, slot, used));
                }
            }
        }
}

TEST_CASE("opening and closing a slot moves the scores of a leaf with its sums") {
    for (int used = 0; used <= leaf_slots; ++used)
        for (int slot = 0; slot < leaf_slots && slot <= used; ++slot) {
            const auto seed = static_cast<std::uint64_t>(1000 * used + slot);
            Random random(seed);
            const std::vector<double> scores = ascending(random, used);
            const Sums start = random_sums(random);
            const std::int64_t delta = draw(random);
            struct alignas(64) Guarded {
                double before[8] = {7, 7, 7, 7, 7, 7, 7, 7}, at[leaf_slots];
                double behind[8] = {7, 7, 7, 7, 7, 7, 7, 7};
            } keys;
            std::fill_n(keys.at, leaf_slots, inf);
            std::copy(scores.begin(), scores.end(), keys.at);
            for (const Contender& kernels : contenders()) {
                if (used < leaf_slots) {
                    Sums expected = start, actual = start;
                    Guarded moved = keys, wanted = keys;
                    std::copy_backward(keys.at + slot, keys.at + leaf_slots - 1,
                                       wanted.at + leaf_slots);
                    wanted.at[slot] = moved.at[slot];
                    Keys others = {};

                    CHECK_NOTE(
                        kernels.leaf_open(moved.at, actual.prefix, slot, delta) ==
                            BaselineKernels::leaf_open(others.at, expected.prefix, slot, delta),
                        note(kernels.name, seed, slot, used));
                    moved.at[slot] = wanted.at[slot];  // is for the caller to set
                    CHECK_NOTE(actual == expected, note(kernels.name, seed, slot, used));
                    CHECK_NOTE(std::memcmp(&moved, &wanted, sizeof moved) == 0,
                               note(kernels.name, seed, slot, used));
                }
                if (slot < used) {
                    Sums expected = start, actual = start;
                    Guarded moved = keys, wanted = keys;
                    std::copy(keys.at + slot + 1, keys.at + leaf_slots, wanted.at + slot);
                    wanted.at[leaf_slots - 1] = inf;
                    Keys others = {};

                    CHECK_NOTE(
                        kernels.leaf_close(moved.at, actual.prefix, slot, delta) ==
                            BaselineKernels::leaf_close(others.at, expected.prefix, slot, delta),
                        note(kernels.name, seed, slot, used));
                    CHECK_NOTE(actual == expected, note(kernels.name, seed, slot, used));
                    CHECK_NOTE(std::memcmp(&moved, &wanted, sizeof moved) == 0,
                               note(kernels.name, seed, slot, used));
                }
            }
        }
}

TEST_CASE("leaf loops equal the plain ones on any numbers below two to the 62") {
    const Contender& plain = contenders()[0];
    for (int round = 0; round < rounds; ++round)
        for (int slot = 0; slot < leaf_slots; ++slot) {
            const auto seed = static_cast<std::uint64_t>(1000 * round + slot);
            Random random(seed);
            const Sums start = random_sums(random);
            const std::int64_t delta = draw(random);
            for (const Contender& kernels : contenders()) {
                const auto equal = [&](auto&& plain, auto&& loop) {
                    Sums expected = start, actual = start;
                    Keys keys = {};

                    CHECK_NOTE(plain(keys.at, expected.prefix) == loop(keys.at, actual.prefix),
                               note(kernels.name, seed, slot));
                    CHECK_NOTE(expected == actual, note(kernels.name, seed, slot));
                };
                equal([=](double*, auto* sums) { return plain.leaf_add(sums, slot, delta); },
                      [=](double*, auto* sums) { return kernels.leaf_add(sums, slot, delta); });
                for (const auto move : {&Contender::leaf_open, &Contender::leaf_close})
                    equal([=](auto* keys,
                              auto* sums) { return (plain.*move)(keys, sums, slot, delta); },
                          [=](auto* keys, auto* sums) {
                              return (kernels.*move)(keys, sums, slot, delta);
                          });
            }
        }
}

TEST_CASE("the largest sum is found in every slot, also when all sums are next to a limit") {
    for (std::int64_t rest : {-limit + 1, std::int64_t{-1}, std::int64_t{0}, limit - 2})
        for (int slot = 0; slot < leaf_slots; ++slot)
            for (const Contender& kernels : contenders()) {
                Sums sums = {};
                std::fill_n(sums.prefix, leaf_slots, rest);
                sums.prefix[slot] = rest + 1;

                CHECK_NOTE(kernels.leaf_add(sums.prefix, leaf_slots - 1, 0) == rest + 1,
                           note(kernels.name, 0, slot));
            }
}

TEST_CASE("the last slot of a value is found among equals, and none where it does not occur") {
    for (int round = 0; round < rounds; ++round)
        for (int slot = 0; slot < leaf_slots; ++slot) {
            const auto seed = static_cast<std::uint64_t>(1000 * round + slot);
            Random random(seed);
            const std::int64_t extremes[] = {lowest, -limit, -1, 0, 1, limit - 1};
            const std::int64_t value = extremes[random() % 6];
            Sums sums = random_sums(random);
            for (std::int64_t& sum : sums.prefix)
                if (sum == value) sum = value + 1;
            for (const Contender& kernels : contenders()) {
                CHECK_NOTE(kernels.leaf_last(sums.prefix, value) == -1, note(kernels.name, seed));
                CHECK_NOTE(kernels.node_last(sums.prefix, value) == -1, note(kernels.name, seed));
            }
            for (int i = 0; i <= slot; ++i)
                if (i == slot || random() % 3 == 0) sums.prefix[i] = value;
            for (const Contender& kernels : contenders()) {
                CHECK_NOTE(kernels.leaf_last(sums.prefix, value) == slot,
                           note(kernels.name, seed, slot));
                if (slot < node_slots)
                    CHECK_NOTE(kernels.node_last(sums.prefix, value) == slot,
                               note(kernels.name, seed, slot));
            }
        }
}

TEST_CASE("a node shifts what follows a child and returns the best of the other children") {
    for (int round = 0; round < rounds; ++round)
        for (int used = 1; used <= node_slots; ++used)
            for (int child = 0; child < used; ++child) {
                const auto seed =
                    static_cast<std::uint64_t>((1000 * round + used) * node_slots + child);
                Random random(seed);
                Children start;
                for (std::int64_t& number : start.guard) number = draw(random);
                for (std::int64_t& number : start.behind) number = draw(random);
                for (int i = 0; i < node_slots; ++i) {
                    start.before[i] = i < used ? draw(random) : 0;
                    start.best[i] = i < used ? draw(random) : lowest;
                }
                const std::int64_t delta = draw(random);
                Children expected = start;
                std::int64_t others = lowest;
                for (int i = 0; i < used; ++i) {
                    if (i == child) continue;
                    if (i > child) expected.before[i] += delta, expected.best[i] += delta;
                    others = std::max(others, expected.best[i]);
                }
                for (const Contender& kernels : contenders()) {
                    Children actual = start;

                    CHECK_NOTE(kernels.node_add(actual.before, actual.best, child, delta, used) ==
                                   others,
                               note(kernels.name, seed, child, used));
                    CHECK_NOTE(expected == actual, note(kernels.name, seed, child, used));
                }
            }
}

TEST_CASE("a node shifts what follows two children as it does for one after the other") {
    for (int round = 0; round < rounds; ++round)
        for (int used = 2; used <= node_slots; ++used)
            for (int one = 0; one < used; ++one) {
                const auto seed =
                    static_cast<std::uint64_t>((1000 * round + used) * node_slots + one);
                Random random(seed);
                const int other = (one + 1 + static_cast<int>(random() % 64) % (used - 1)) % used;
                Children start;
                for (std::int64_t& number : start.guard) number = draw(random);
                for (std::int64_t& number : start.behind) number = draw(random);
                for (int i = 0; i < node_slots; ++i) {
                    start.before[i] = i < used ? draw(random) : 0;
                    start.best[i] = i < used ? draw(random) : lowest;
                }
                const std::int64_t deltas[] = {draw(random, limit / 2), draw(random, limit / 2)};
                Children expected = start;
                std::int64_t others = lowest;
                for (int i = 0; i < used; ++i) {
                    const std::int64_t more =
                        (i > one ? deltas[0] : 0) + (i > other ? deltas[1] : 0);
                    expected.before[i] += more;
                    expected.best[i] += more;
                    if (i != one && i != other) others = std::max(others, expected.best[i]);
                }
                for (const Contender& kernels : contenders()) {
                    Children actual = start;

                    CHECK_NOTE(kernels.node_add_two(actual.before, actual.best, one, deltas[0],
                                                    other, deltas[1], used) == others,
                               note(kernels.name, seed, one, used));
                    CHECK_NOTE(expected == actual, note(kernels.name, seed, one, used));
                }
            }
}

TEST_CASE("the best of the other children is found in every slot, next to either limit") {
    for (std::int64_t rest : {-limit + 1, std::int64_t{-1}, std::int64_t{0}, limit - 2})
        for (int child = 0; child < node_slots; ++child)
            for (int best = 0; best < node_slots; ++best)
                for (const Contender& kernels : contenders()) {
                    Children node = {};
                    std::fill_n(node.best, node_slots, rest);
                    node.best[best] = rest + 1;

                    CHECK_NOTE(kernels.node_add(node.before, node.best, child, 0, node_slots) ==
                                   rest + (best != child),
                               note(kernels.name, 0, child));
                }
}
