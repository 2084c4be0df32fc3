// SPDX-License-Identifier: Apache-2.0
//
// The cheapest cut of whole arrays against an ordered map, for every instruction set of this
// processor, with buckets so few and small that searching within buckets happens all the time.

#define LIMEN_TEST_MAIN
#include "samples/select_cut.hpp"

#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr std::int64_t lowest_of_all = std::numeric_limits<std::int64_t>::min();

using Random = std::mt19937_64;
using Doubles = std::vector<double>;
using Units = std::vector<std::int64_t>;

std::vector<Isa> supported() {
    std::vector<Isa> all;
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
        if (isa_supported(isa)) all.push_back(isa);
    return all;
}

const std::vector<SelectTuning> tunings = {
    {},
    {0, 1, 2, 2, 1},
    {0, 1, 2, 2, 60},
    {2, 1, 4, 3, 3},
    {1, 2, 8, 16, 2},
    {3, 1, 64, 64, 4},
    {16, 4, 1024, 32, 4},
};

SelectedCut by_ordered_map(const Doubles& scores, const Units& z) {
    std::map<double, std::int64_t> sums;
    for (std::size_t i = 0; i < scores.size(); ++i) sums[scores[i]] += z[i];
    SelectedCut cut;
    cut.nan_at = scores.size();
    std::int64_t value = 0;
    auto above = sums.begin();
    for (auto at = sums.begin(); at != sums.end(); ++at) {
        value += at->second;
        if (value >= cut.best) cut.best = value, above = std::next(at);
    }
    cut.has_lower = above != sums.begin();
    cut.has_upper = above != sums.end();
    if (cut.has_lower) cut.lower = std::prev(above)->first;
    if (cut.has_upper) cut.upper = above->first;
    return cut;
}

bool same(const SelectedCut& expected, const SelectedCut& actual) {
    const auto minus_zero = [](double score) { return score == 0 && std::signbit(score); };
    return expected.best == actual.best && expected.nan_at == actual.nan_at &&
           expected.has_lower == actual.has_lower && expected.has_upper == actual.has_upper &&
           expected.lower == actual.lower && expected.upper == actual.upper &&
           !minus_zero(actual.lower) && !minus_zero(actual.upper);
}

void check_all_ways(const Doubles& scores, const Units& z, const std::string& note) {
    const SelectedCut expected = by_ordered_map(scores, z);
    for (Isa isa : supported())
        for (std::size_t t = 0; t < tunings.size(); ++t) {
            const auto actual = select_cut(scores.data(), z.data(), z.size(), tunings[t], isa);

            CHECK_NOTE(same(expected, actual),
                       note + ", tuning " + std::to_string(t) + ", " + isa_name(isa));
        }
}

void check_labels_all_ways(const Doubles& scores, const std::vector<std::uint8_t>& labels,
                           std::int64_t z_of_0, std::int64_t z_of_1, const std::string& note) {
    Units z;
    for (std::uint8_t label : labels) z.push_back(label ? z_of_1 : z_of_0);
    const SelectedCut expected = by_ordered_map(scores, z);
    for (Isa isa : supported())
        for (std::size_t t = 0; t < tunings.size(); ++t) {
            const auto actual = select_cut(scores.data(), labels.data(), labels.size(), z_of_0,
                                           z_of_1, tunings[t], isa);

            CHECK_NOTE(same(expected, actual),
                       note + ", tuning " + std::to_string(t) + ", " + isa_name(isa));
        }
}

double uniform(Random& random) { return std::uniform_real_distribution<double>(0, 1)(random); }
double normal(Random& random) { return std::normal_distribution<double>(0, 1)(random); }

double steps_from(double start, std::int64_t steps) {
    return limen::score_of(limen::key_of(start) + steps);
}

struct Shape {
    const char* name;
    std::function<double(Random&)> score;
};

const std::vector<Shape> shapes = {
    {"uniform", uniform},
    {"normal", normal},
    {"few_distinct_scores", [](Random& r) { return double(r() % 5); }},
    {"ties_everywhere", [](Random& r) { return std::floor(uniform(r) * 40) / 10 - 2; }},
    {"constant", [](Random&) { return 0.7; }},
    {"minus_zero_and_zero", [](Random& r) { return r() % 2 ? 0.0 : -0.0; }},
    {"special_scores",
     [](Random& r) {
         constexpr double all[] = {-inf, -DBL_MAX, -1,      -DBL_MIN, -tiny,   -0.0,
                                   0.0,  tiny,     DBL_MIN, 1,        DBL_MAX, inf};
         return all[r() % std::size(all)];
     }},
    {"infinities_and_uniform",
     [](Random& r) { return r() % 3   ? uniform(r)
                            : r() % 2 ? inf
                                      : -inf; }},
    {"only_infinities", [](Random& r) { return r() % 2 ? inf : -inf; }},
    {"neighbours_of_one", [](Random& r) { return steps_from(1.0, std::int64_t(r() % 40) - 20); }},
    {"neighbours_of_zero", [](Random& r) { return steps_from(0.0, std::int64_t(r() % 40) - 20); }},
    {"neighbours_of_the_largest",
     [](Random& r) { return (r() % 2 ? 1 : -1) * steps_from(DBL_MAX, -std::int64_t(r() % 20)); }},
    {"denormals", [](Random& r) { return (r() % 2 ? tiny : -tiny) * double(r() % 100000); }},
    {"any_bits",
     [](Random& r) {
         const double score = std::bit_cast<double>(r());
         return std::isnan(score) ? 0.0 : score;
     }},
    {"saturated", [](Random& r) { return r() % 5 < 2   ? 0.0
                                         : r() % 3 < 2 ? 1.0
                                                       : uniform(r); }},
    {"exponentially_small", [](Random& r) { return std::exp(-700 * uniform(r)); }},
    {"heavy_tail", [](Random& r) { return std::exp(4 * normal(r)); }},
    {"sigmoid", [](Random& r) { return 1 / (1 + std::exp(-30 * normal(r))); }},
    {"cluster_and_outliers",
     [](Random& r) { return r() % 20 ? 1e9 + uniform(r) : (uniform(r) - 0.5) * 1e300; }},
    {"clusters_within_clusters",
     [](Random& r) { return steps_from(0.25, std::int64_t(r() >> (2 + r() % 62))); }},
};

struct Losses {
    const char* name;
    std::function<std::int64_t(Random&, double)> z;
};

const std::vector<Losses> kinds = {
    {"noise", [](Random& r, double) { return std::int64_t(r() % 2) * 2 - 1; }},
    {"follows_the_score",
     [](Random& r, double score) { return uniform(r) < score ? std::int64_t{-1} : 1; }},
    {"rare_and_dear", [](Random& r, double) { return r() % 50 ? std::int64_t{1} : -50; }},
    {"zeros_between", [](Random& r, double) { return std::int64_t(r() % 3) - 1; }},
    {"mostly_zero", [](Random& r, double) { return r() % 10 ? 0 : std::int64_t(r() % 3) - 1; }},
    {"all_positive", [](Random& r, double) { return std::int64_t(r() % 3) + 1; }},
    {"all_negative", [](Random& r, double) { return -std::int64_t(r() % 3) - 1; }},
    {"all_zero", [](Random&, double) { return std::int64_t{0}; }},
    {"one_to_two_to_the_forty",
     [](Random& r, double) {
         const auto size = std::int64_t{1} << (r() % 41);
         return r() % 2 ? size : -size;
     }},
};

// Alternating by rank: every second cut is a best one.
Units alternating(const Doubles& scores) {
    std::map<double, std::int64_t> rank;
    for (double score : scores) rank[score] = 0;
    std::int64_t next = 0;
    for (auto& entry : rank) entry.second = next++;
    Units z;
    for (double score : scores) z.push_back(rank[score] % 2 ? -1 : 1);
    return z;
}

}  // namespace

TEST_CASE("without samples there is one cut, worth nothing and without neighbours") {
    for (Isa isa : supported()) {
        const auto cut = select_cut(nullptr, static_cast<const std::int64_t*>(nullptr), 0, {}, isa);

        CHECK(cut.best == 0 && !cut.has_lower && !cut.has_upper && cut.nan_at == 0);
    }
}

TEST_CASE("one sample lies below the cut unless that costs") {
    const double score = 0.5;
    for (std::int64_t z : {7, 0}) {
        const auto cut = select_cut(&score, &z, 1);

        CHECK(cut.best == z && cut.has_lower && cut.lower == 0.5 && !cut.has_upper);
    }
    const std::int64_t z = -7;
    const auto cut = select_cut(&score, &z, 1);

    CHECK(cut.best == 0 && !cut.has_lower && cut.has_upper && cut.upper == 0.5);
}

TEST_CASE("the worked example of four samples is cut between 0.5 and 0.75") {
    const Doubles scores = {0.1, 0.25, 0.5, 0.75};
    const std::vector<std::uint8_t> labels = {0, 1, 0, 1};
    const auto even = select_cut(scores.data(), labels.data(), 4, 1, -1);
    const auto dear = select_cut(scores.data(), labels.data(), 4, 1, -5);

    CHECK(even.best == 1 && even.lower == 0.5 && even.upper == 0.75);
    CHECK(dear.best == 1 && dear.lower == 0.1 && dear.upper == 0.25);
}

TEST_CASE("random streams of every shape agree with an ordered map") {
    std::uint64_t seed = 0;
    for (const Shape& shape : shapes)
        for (const Losses& kind : kinds)
            for (int round = 0; round < 24; ++round) {
                Random random(++seed);
                const std::size_t n = round < 20 ? random() % 60 : random() % 1500;
                Doubles scores;
                Units z;
                for (std::size_t i = 0; i < n; ++i) {
                    scores.push_back(shape.score(random));
                    z.push_back(kind.z(random, scores.back()));
                }
                check_all_ways(scores, z,
                               std::string(shape.name) + ", " + kind.name + ", seed " +
                                   std::to_string(seed));
            }
}

TEST_CASE("labels agree with an ordered map for every shape and cost") {
    std::uint64_t seed = 100000;
    for (const Shape& shape : shapes)
        for (const auto& costs : {std::array{1, -1}, {1, -50}, {50, -1}, {3, -7}, {0, -1}, {-2, 3}})
            for (int round = 0; round < 12; ++round) {
                Random random(++seed);
                const std::size_t n = round < 10 ? random() % 60 : random() % 1500;
                Doubles scores;
                std::vector<std::uint8_t> labels;
                for (std::size_t i = 0; i < n; ++i) {
                    scores.push_back(shape.score(random));
                    labels.push_back(uniform(random) < (round % 2 ? 0.5 : scores.back()));
                }
                check_labels_all_ways(scores, labels, costs[0], costs[1],
                                      std::string(shape.name) + ", seed " + std::to_string(seed));
            }
}

TEST_CASE("the highest of very many equally good cuts is chosen") {
    std::uint64_t seed = 200000;
    for (const Shape& shape : shapes)
        for (std::size_t n : {2u, 9u, 40u, 700u, 3000u}) {
            Random random(++seed);
            Doubles scores;
            for (std::size_t i = 0; i < n; ++i) scores.push_back(shape.score(random));
            Units z = alternating(scores);
            check_all_ways(scores, z, std::string(shape.name) + ", seed " + std::to_string(seed));
            for (std::int64_t& unit : z) unit = -unit;
            check_all_ways(scores, z, std::string(shape.name) + ", seed " + std::to_string(seed));
        }
}

TEST_CASE("the order of arrival does not matter, sorted and reversed included") {
    Random random(300000);
    for (std::size_t n : {255u, 256u, 257u, 511u, 512u, 513u, 2000u}) {
        Doubles scores;
        Units z;
        for (std::size_t i = 0; i < n; ++i) scores.push_back(normal(random));
        std::sort(scores.begin(), scores.end());
        for (std::size_t i = 0; i < n; ++i) z.push_back(std::int64_t(random() % 9) - 4);
        check_all_ways(scores, z, "sorted, n " + std::to_string(n));
        std::reverse(scores.begin(), scores.end());
        check_all_ways(scores, z, "reversed, n " + std::to_string(n));
    }
}

TEST_CASE("neighbours are found although they lie in buckets ruled out") {
    Doubles scores;
    Units z;
    for (int i = 0; i < 1000; ++i) {
        scores.push_back(i / 1e6), z.push_back(1);
        scores.push_back(5 + i / 1e6), z.push_back(-1);
    }
    check_all_ways(scores, z, "two clusters");
    const auto cut = select_cut(scores.data(), z.data(), z.size());

    CHECK(cut.best == 1000 && cut.lower == 999 / 1e6 && cut.upper == 5);
}

TEST_CASE("large streams agree with an ordered map") {
    for (const Shape& shape : shapes) {
        Random random(400000);
        Doubles scores;
        std::vector<std::uint8_t> labels;
        Units z;
        for (int i = 0; i < 60000; ++i) {
            scores.push_back(shape.score(random));
            labels.push_back(uniform(random) < 0.5 + 0.3 * std::tanh(scores.back()));
            z.push_back((labels.back() ? -1 : 1) * std::int64_t(1 + random() % 100));
        }
        Units unweighted;
        for (std::uint8_t label : labels) unweighted.push_back(label ? -3 : 2);
        const auto expected = by_ordered_map(scores, z);
        const auto expected_of_labels = by_ordered_map(scores, unweighted);
        for (Isa isa : supported()) {
            const std::string note = std::string(shape.name) + ", " + isa_name(isa);

            const auto cut = select_cut(scores.data(), z.data(), z.size(), {}, isa);
            const auto cut_of_labels =
                select_cut(scores.data(), labels.data(), labels.size(), 2, -3, {}, isa);

            CHECK_NOTE(same(expected, cut), note);
            CHECK_NOTE(same(expected_of_labels, cut_of_labels), note);
        }
    }
}

TEST_CASE("sums just below two to the 62 are exact") {
    Random random(500000);
    Doubles scores;
    Units z;
    for (int i = 0; i < 1024; ++i) {
        scores.push_back(uniform(random));
        z.push_back((i % 2 ? -1 : 1) * ((std::int64_t{1} << 52) - 1));
    }
    check_all_ways(scores, z, "random");
    for (std::int64_t& unit : z) unit = std::abs(unit);
    check_all_ways(scores, z, "all positive");
}

TEST_CASE("wide counts of labels give the same cut as narrow ones") {
    using namespace select_detail;
    Random random(600000);
    Doubles scores;
    std::vector<std::uint8_t> labels;
    for (int i = 0; i < 5000; ++i) {
        scores.push_back(normal(random));
        labels.push_back(random() % 2);
    }
    const Labelled<std::uint64_t> wide = {{scores.data(), 5000}, labels.data(), {1, -1}};
    for (const SelectTuning& tuning : tunings)
        CHECK(same(select_cut(scores.data(), labels.data(), 5000, 1, -1, tuning),
                   select(wide, tuning, Isa::baseline)));
}

TEST_CASE("the first nan is reported wherever it is") {
    Random random(700000);
    for (std::size_t n : {1u, 2u, 3u, 255u, 256u, 257u, 600u, 1100u}) {
        Doubles scores;
        for (std::size_t i = 0; i < n; ++i) scores.push_back(uniform(random));
        const Units z(n, 1);
        const std::vector<std::uint8_t> labels(n, 1);
        for (Isa isa : supported()) {
            CHECK(first_nan(scores.data(), n, isa) == n);
            for (std::size_t at = 0; at < n; at += 1 + random() % 20) {
                Doubles broken = scores;
                broken[at] = at % 2 ? not_a_number : -not_a_number;
                for (std::size_t i = at + 1; i < n; i += 7) broken[i] = not_a_number;

                CHECK(first_nan(broken.data(), n, isa) == at);
                for (const SelectTuning& tuning : tunings) {
                    CHECK(select_cut(broken.data(), z.data(), n, tuning, isa).nan_at == at);
                    CHECK(select_cut(broken.data(), labels.data(), n, 1, -1, tuning, isa).nan_at ==
                          at);
                }
            }
            const Doubles all(n, not_a_number);
            CHECK(select_cut(all.data(), z.data(), n, tunings[1], isa).nan_at == 0);
            CHECK(select_cut(all.data(), z.data(), n, {}, isa).nan_at == 0);
        }
    }
}

// Another thread may write to the arrays meanwhile. This source does so itself, at a known
// moment: before it reads block number `when`, counted through all passes.
struct Changing : select_detail::Labelled<std::uint32_t> {
    std::size_t when;
    std::size_t* read;
    const std::function<void()>* change;

    bool offsets(std::size_t first, std::size_t count, Key low, Key high,
                 std::uint64_t* out) const {
        if ((*read)++ == when) (*change)();
        return Scores::offsets(first, count, low, high, out);
    }
};

TEST_CASE("arrays that change during the search give some cut, and no memory is overrun") {
    using namespace select_detail;
    constexpr std::size_t n = 4096, blocks = n / block;
    std::uint64_t seed = 810000;
    for (Isa isa : supported())
        for (const SelectTuning& tuning : tunings)
            for (double target : {0.0, 0.25, 0.5, 0.75, 2.0, -2.0, -inf, inf, not_a_number}) {
                Random random(++seed);
                Doubles scores(n);
                std::vector<std::uint8_t> labels(n);
                for (std::size_t i = 0; i < n; ++i) {
                    scores[i] = static_cast<double>(random() % 8192) / 8192;
                    labels[i] = random() % 2 ? 255 : 0;
                }
                const std::function<void()> change = [&] {
                    for (std::size_t i = 0; i < n; ++i) {
                        scores[i] =
                            target == 0.75 && i % 2 ? 0.75 + 1e-9 * static_cast<double>(i) : target;
                        labels[i] = static_cast<std::uint8_t>(random());
                    }
                };
                std::size_t read = 0;
                const std::size_t when = seed % 3 ? blocks : random() % (2 * blocks);
                const Changing source{
                    {{scores.data(), n}, labels.data(), {1, -1}}, when, &read, &change};
                const SelectedCut cut = select(source, tuning, isa);
                CHECK(cut.nan_at <= n);
            }
}

template <class Label>
void check_unread(const std::vector<Label>& wrong) {
    Random random(650000);
    for (std::size_t n : {1u, 2u, 100u, 511u, 513u, 1000u, 3000u}) {
        Doubles scores;
        std::vector<std::uint8_t> bytes;
        std::vector<Label> labels;
        std::int64_t positive = 0;
        for (std::size_t i = 0; i < n; ++i) {
            scores.push_back(normal(random));
            bytes.push_back(random() % 3 == 0);
            labels.push_back(static_cast<Label>(bytes.back()));
            positive += bytes.back() ? 0 : 3;
        }
        for (Isa isa : supported())
            for (const SelectTuning& tuning : tunings) {
                const auto unread = [&] {
                    return select_unread(scores.data(), labels.data(), n, 3, -4, tuning, isa);
                };
                const SelectedCut cut = unread();
                CHECK(!cut.refused && cut.positive == positive);
                CHECK(same(cut, select_cut(scores.data(), bytes.data(), n, 3, -4, tuning, isa)));
                const std::size_t at = random() % n;
                const Label kept = std::exchange(labels[at], wrong[random() % wrong.size()]);
                CHECK(unread().refused && unread().nan_at == n);
                labels[at] = kept;
                const double score = std::exchange(scores[at], not_a_number);
                CHECK(unread().refused && unread().nan_at == at);
                scores[at] = score;
            }
    }
}

TEST_CASE("labels that nobody has looked at are read as they are, and refused unless 0 or 1") {
    check_unread<std::uint8_t>({2, 128, 255});
    check_unread<std::int64_t>({2, -1, std::int64_t{1} << 32, lowest_of_all});
}

TEST_CASE("any label byte that is not 0 is a 1") {
    Doubles scores(2000);
    std::vector<std::uint8_t> plain(2000), odd(2000);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        scores[i] = static_cast<double>(i * 7919 % 2000);
        plain[i] = i % 3 == 0;
        odd[i] = plain[i] ? static_cast<std::uint8_t>(2 * (i % 100) + 2) : 0;
    }
    for (Isa isa : supported())
        for (std::size_t n : {100u, 2000u})
            CHECK(same(select_cut(scores.data(), plain.data(), n, 1, -1, {}, isa),
                       select_cut(scores.data(), odd.data(), n, 1, -1, {}, isa)));
}

TEST_CASE("keys keep the order of all doubles, join the zeros and lead back") {
    using namespace select_detail;
    const Doubles ascending = {-inf, -DBL_MAX, -1, -DBL_MIN, -tiny, 0.0,
                               tiny, DBL_MIN,  1,  DBL_MAX,  inf};
    for (std::size_t i = 0; i < ascending.size(); ++i) {
        CHECK(score_of(key_of(ascending[i])) == ascending[i]);
        CHECK(key_of(ascending[i]) > before_all && key_of(ascending[i]) < past_all);
        if (i > 0) CHECK(key_of(ascending[i - 1]) < key_of(ascending[i]));
    }
    CHECK(key_of(-0.0) == key_of(0.0));
}

TEST_CASE("every double lies between the start of its bucket and that of the next") {
    using namespace select_detail;
    std::uint64_t seed = 800000;
    for (const Shape& shape : shapes)
        for (std::size_t wanted : {2u, 3u, 64u, 16384u}) {
            Random random(++seed);
            std::vector<Key> drawn;
            for (int i = 0; i < 200; ++i) drawn.push_back(key_of(shape.score(random)));
            std::sort(drawn.begin(), drawn.end());
            const BucketMap map(drawn, wanted, past_all);
            CHECK(map.size() <= 2 * wanted);
            Doubles probes = {-inf, -DBL_MAX, -tiny, -0.0, 0.0, tiny, DBL_MAX, inf};
            for (int i = 0; i < 300; ++i) {
                probes.push_back(shape.score(random));
                probes.push_back(shapes[random() % shapes.size()].score(random));
                const Key start = map.starts[random() % map.size()];
                if (start == past_all) continue;
                probes.push_back(score_of(start));
                probes.push_back(score_of(start - 1));
            }
            std::erase_if(probes, [](double probe) { return std::isnan(probe); });
            std::vector<std::uint64_t> offsets(probes.size());
            Scores{probes.data(), probes.size()}.offsets(0, probes.size(), map.low, map.high,
                                                         offsets.data());
            for (std::size_t i = 0; i < probes.size(); ++i) {
                const Key key = key_of(probes[i]);
                const std::size_t b = BucketMap::bucket(map.cells.data(), map.shift, offsets[i]);

                CHECK_NOTE(b < map.size(), shape.name);
                CHECK_NOTE(b == 0 || map.starts[b] <= key, shape.name);
                CHECK_NOTE(b + 1 == map.size() || key < map.starts[b + 1], shape.name);
            }
        }
}
