// SPDX-License-Identifier: Apache-2.0
//
// Sorting rows and joining those of equal score, against the standard library.

#define LIMEN_TEST_MAIN
#include "samples/samples.hpp"

#include <cfloat>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double tiny = std::numeric_limits<double>::denorm_min();

using Random = std::mt19937_64;

struct Shape {
    const char* name;
    std::function<double(Random&)> score;
};

const std::vector<Shape> shapes = {
    {"all_equal", [](Random&) { return 0.7; }},
    {"zeros_of_either_sign", [](Random& r) { return r() % 2 ? 0.0 : -0.0; }},
    {"few_distinct_scores", [](Random& r) { return double(r() % 5) - 2; }},
    {"uniform", [](Random& r) { return std::uniform_real_distribution<double>(0, 1)(r); }},
    {"negative", [](Random& r) { return -1 - double(r() % 100000) / 7; }},
    {"either_sign", [](Random& r) { return std::normal_distribution<double>(0, 1)(r); }},
    {"infinities", [](Random& r) { return r() % 3   ? double(r() % 9)
                                          : r() % 2 ? inf
                                                    : -inf; }},
    {"only_infinities", [](Random& r) { return r() % 2 ? inf : -inf; }},
    {"denormals", [](Random& r) { return (r() % 2 ? tiny : -tiny) * double(r() % 1000); }},
    {"one_byte_differs",
     [](Random& r) { return std::bit_cast<double>(0x3fe0000000000000u | (r() % 256) << 24); }},
    {"any_bits",
     [](Random& r) {
         const double score = std::bit_cast<double>(r());
         return std::isnan(score) ? -0.0 : score;
     }},
};

// Both ways of sorting, on either side of where they meet.
const std::vector<std::size_t> sizes = {0, 1, 2, 3, 17, 510, 511, 512, 513, 514, 1500, 5000};

SignedRow draw(Random& random, double score, SignedRow) {
    const auto size = static_cast<std::int64_t>(1 + random() % (std::uint64_t{1} << random() % 48));
    return {ordered_bits(score), random() % 2 ? size : -size};
}

LossRow draw(Random& random, double score, LossRow) {
    return {ordered_bits(score),
            {static_cast<std::int64_t>(random() % 2001) - 1000,
             static_cast<std::int64_t>(random() % 2001) - 1000}};
}

template <class Row>
void check_rows(const Shape& shape, std::size_t size, std::uint64_t seed) {
    Random random(seed);
    std::vector<Row> rows;
    std::map<double, ScoreSums> sums;
    for (std::size_t i = 0; i < size; ++i) {
        const double score = shape.score(random);
        rows.push_back(draw(random, score, Row{}));
        ScoreSums& held = sums.try_emplace(score, ScoreSums{score + 0.0, 0, 0, 0}).first->second;
        held.below += rows.back().below();
        held.above += rows.back().above();
        ++held.count;
    }
    const std::string note = std::string(shape.name) + ", size " + std::to_string(size) +
                             ", seed " + std::to_string(seed);
    // Equal scores may come in any order, so rows are compared with their losses in order too.
    const auto by_all = [](const Row& a, const Row& b) {
        return std::tuple(a.order, a.below(), a.above()) <
               std::tuple(b.order, b.below(), b.above());
    };
    const auto by_score = [](const Row& a, const Row& b) { return a.order < b.order; };
    std::vector<Row> expected = rows, sorted = rows;
    std::stable_sort(expected.begin(), expected.end(), by_all);
    sort_rows(sorted);
    CHECK_NOTE(std::is_sorted(sorted.begin(), sorted.end(), by_score), note);
    std::stable_sort(sorted.begin(), sorted.end(), by_all);
    CHECK_NOTE(std::equal(expected.begin(), expected.end(), sorted.begin(), sorted.end(),
                          [](const Row& a, const Row& b) {
                              return a.order == b.order && a.below() == b.below() &&
                                     a.above() == b.above();
                          }),
               note);

    const std::vector<ScoreSums> held = joined(rows);
    CHECK_NOTE(std::equal(sums.begin(), sums.end(), held.begin(), held.end(),
                          [](const auto& sum, const ScoreSums& found) {
                              const ScoreSums& wanted = sum.second;
                              return wanted.score == found.score && wanted.below == found.below &&
                                     wanted.above == found.above && wanted.count == found.count &&
                                     !(found.score == 0 && std::signbit(found.score));
                          }),
               note);
}

}  // namespace

TEST_CASE("ordered bits ascend with the scores, join the zeros and lead back") {
    const std::vector<double> ascending = {-inf, -DBL_MAX, -1, -DBL_MIN, -tiny, 0.0,
                                           tiny, DBL_MIN,  1,  DBL_MAX,  inf};
    for (std::size_t i = 0; i < ascending.size(); ++i) {
        CHECK(score_of(ordered_bits(ascending[i])) == ascending[i]);
        if (i > 0) CHECK(ordered_bits(ascending[i - 1]) < ordered_bits(ascending[i]));
    }
    CHECK(ordered_bits(-0.0) == ordered_bits(0.0));
    CHECK(!std::signbit(score_of(ordered_bits(-0.0))));
    Random random(0);
    for (int round = 0; round < 10000; ++round) {
        const double a = shapes.back().score(random), b = shapes.back().score(random);

        CHECK((a < b) == (ordered_bits(a) < ordered_bits(b)));
        CHECK((a == b) == (ordered_bits(a) == ordered_bits(b)));
        CHECK(score_of(ordered_bits(a)) == a);
    }
}

TEST_CASE("a one-sided row costs above when z is positive and below when it is negative") {
    const SignedRow above{0, 5}, below{0, -5}, neither{0, 0};

    CHECK(above.above() == 5 && above.below() == 0);
    CHECK(below.above() == 0 && below.below() == 5);
    CHECK(neither.above() == 0 && neither.below() == 0);
}

TEST_CASE("one-sided rows of every shape and size are sorted and joined without loss") {
    std::uint64_t seed = 1000;
    for (const Shape& shape : shapes)
        for (std::size_t size : sizes) check_rows<SignedRow>(shape, size, ++seed);
}

TEST_CASE("two-sided rows of every shape and size are sorted and joined without loss") {
    std::uint64_t seed = 2000;
    for (const Shape& shape : shapes)
        for (std::size_t size : sizes) check_rows<LossRow>(shape, size, ++seed);
}

TEST_CASE("rows sorted already, in reverse or but for the last one come out the same") {
    for (std::size_t size : sizes) {
        std::vector<SignedRow> ascending;
        for (std::size_t i = 0; i < size; ++i)
            ascending.push_back({ordered_bits(double(i) - double(size) / 2), std::int64_t(i) + 1});
        const auto comes_out = [&](std::vector<SignedRow> rows) {
            sort_rows(rows);
            return std::equal(rows.begin(), rows.end(), ascending.begin(), ascending.end(),
                              [](const SignedRow& a, const SignedRow& b) {
                                  return a.order == b.order && a.z == b.z;
                              });
        };
        std::vector<SignedRow> reversed(ascending.rbegin(), ascending.rend());
        std::vector<SignedRow> rotated = ascending;
        if (size) std::rotate(rotated.begin(), rotated.end() - 1, rotated.end());

        CHECK(comes_out(ascending) && comes_out(reversed) && comes_out(rotated));
    }
}

TEST_CASE("scores of either label are joined as the same samples in rows are") {
    std::uint64_t seed = 3000;
    for (const Shape& shape : shapes)
        for (std::size_t size : sizes)
            for (std::uint64_t ones_of_ten : {0u, 1u, 5u, 10u}) {
                Random random(++seed);
                LabelledScores scores(size, 3, 7);
                std::vector<SignedRow> rows;
                for (std::size_t i = 0; i < size; ++i) {
                    const double score = shape.score(random);
                    const bool label = random() % 10 < ones_of_ten;
                    scores.put(score, label);
                    rows.push_back({ordered_bits(score), label ? -7 : 3});
                }
                CHECK(scores.zeros() + scores.ones() == size && scores.rows().size() == size);
                std::vector<SignedRow> same = scores.rows();
                const std::vector<ScoreSums> expected = joined(rows), as_rows = joined(same);
                for (int again = 0; again < 2; ++again) {  // it may be asked more than once
                    std::vector<ScoreSums> found;
                    scores.joined([&](const ScoreSums& held) { found.push_back(held); });
                    for (const std::vector<ScoreSums>& wanted : {expected, as_rows})
                        CHECK_NOTE(std::equal(wanted.begin(), wanted.end(), found.begin(),
                                              found.end(),
                                              [](const ScoreSums& a, const ScoreSums& b) {
                                                  return a.score == b.score && a.below == b.below &&
                                                         a.above == b.above && a.count == b.count;
                                              }),
                                   std::string(shape.name) + ", seed " + std::to_string(seed));
                }
            }
}

TEST_CASE("rows that ascend already are left where they are") {
    std::vector<std::uint64_t> rows, other(2000);
    for (std::uint64_t i = 0; i < 2000; ++i) rows.push_back(i / 2);

    CHECK(sort_rows(rows.data(), other.data(), rows.size()) == rows.data());
    CHECK(other == std::vector<std::uint64_t>(2000));
    std::swap(rows[7], rows[1999]);
    const std::uint64_t* sorted = sort_rows(rows.data(), other.data(), rows.size());
    CHECK(std::is_sorted(sorted, sorted + rows.size()));
}
