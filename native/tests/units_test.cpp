// SPDX-License-Identifier: Apache-2.0
//
// Rounding to whole units against exact fractions of unbounded size.

#define LIMEN_TEST_MAIN
#include "core/units.hpp"

#include <bit>
#include <cfloat>
#include <random>
#include <string>
#include <vector>

#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr std::int64_t largest_int = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t lowest_int = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t parts_most = most_units - 1;  // of a unit, above and below the line
constexpr std::int64_t middle = std::int64_t{1} << 31;

using Random = std::mt19937_64;

constexpr int rounds = testing::effort(4000, 60000);

// ---- the oracle: whole numbers of any size ----

class Natural {
public:
    explicit Natural(WideUnsigned value) {
        for (; value; value >>= 32) digits_.push_back(static_cast<std::uint32_t>(value));
    }

    Natural shifted(int bits) const {
        Natural result(0);
        result.digits_.assign(static_cast<std::size_t>(bits / 32), 0);
        std::uint64_t carry = 0;
        for (std::uint32_t digit : digits_) {
            carry |= std::uint64_t{digit} << bits % 32;
            result.digits_.push_back(static_cast<std::uint32_t>(carry));
            carry >>= 32;
        }
        result.digits_.push_back(static_cast<std::uint32_t>(carry));
        return result.trimmed();
    }

    Natural times(std::uint64_t factor) const {
        Natural result(0);
        WideUnsigned carry = 0;
        for (std::uint32_t digit : digits_) {
            carry += static_cast<WideUnsigned>(factor) * digit;
            result.digits_.push_back(static_cast<std::uint32_t>(carry));
            carry >>= 32;
        }
        for (; carry; carry >>= 32) result.digits_.push_back(static_cast<std::uint32_t>(carry));
        return result.trimmed();
    }

    // Below, equal or above: -1, 0, 1.
    int against(const Natural& other) const {
        if (digits_.size() != other.digits_.size())
            return digits_.size() < other.digits_.size() ? -1 : 1;
        for (std::size_t i = digits_.size(); i-- > 0;)
            if (digits_[i] != other.digits_[i]) return digits_[i] < other.digits_[i] ? -1 : 1;
        return 0;
    }

private:
    Natural trimmed() const {
        Natural result = *this;
        while (!result.digits_.empty() && result.digits_.back() == 0) result.digits_.pop_back();
        return result;
    }

    std::vector<std::uint32_t> digits_;  // least first, none at the top is 0
};

// Whether `found` is the nearest whole number to the fraction top * 2^exponent / bottom, which
// is not 0: lost up to a half, too large from 2^62 - 1/2 on, ties to even.
bool is_nearest(const Whole& found, WideUnsigned top, int exponent, WideUnsigned bottom,
                bool negative) {
    const Natural twice = Natural(top).shifted(1 + std::max(exponent, 0));
    const Natural one = Natural(bottom).shifted(std::max(-exponent, 0));
    const bool lost = twice.against(one) <= 0;
    const bool too_large = twice.against(one.times(2 * std::uint64_t{most_units} - 1)) >= 0;
    if (lost) return found.rounding == Rounding::lost && found.units == 0;
    if (too_large) return found.rounding == Rounding::too_large && found.units == 0;
    if (found.rounding != Rounding::done || (found.units < 0) != negative || found.units == 0)
        return false;
    const auto size = static_cast<std::uint64_t>(negative ? -found.units : found.units);
    const int low = one.times(2 * size - 1).against(twice);
    const int high = twice.against(one.times(2 * size + 1));
    return low <= 0 && high <= 0 && ((low < 0 && high < 0) || size % 2 == 0);
}

// |value| as a fraction, taken from its bits.
void take_apart(double value, WideUnsigned& top, int& exponent) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const int power = static_cast<int>(bits >> 52 & 2047);
    top = power ? fraction | std::uint64_t{1} << 52 : fraction;
    exponent = power ? power - 1075 : -1074;
}

bool is_right(double value, const Unit& unit, int bits = 0) {
    const Whole found = to_units(value, unit, bits);
    if (value == 0) return found.rounding == Rounding::done && found.units == 0;
    WideUnsigned top;
    int exponent;
    take_apart(value, top, exponent);
    if (unit.automatic) return is_nearest(found, top, exponent + bits, 1, value < 0);
    return is_nearest(found, top * static_cast<std::uint64_t>(unit.denominator), exponent,
                      static_cast<std::uint64_t>(unit.numerator), value < 0);
}

bool is_right(std::int64_t value, const Unit& unit, int bits = 0) {
    const Whole found = to_units(value, unit, bits);
    if (value == 0) return found.rounding == Rounding::done && found.units == 0;
    const Wide wide = value;
    const auto size = static_cast<WideUnsigned>(wide < 0 ? -wide : wide);
    if (unit.automatic) return is_nearest(found, size, bits, 1, value < 0);
    return is_nearest(found, size * static_cast<std::uint64_t>(unit.denominator), 0,
                      static_cast<std::uint64_t>(unit.numerator), value < 0);
}

// The places of the nearest multiple of 2^-20, ties to even; 20 when that is 0.
int places(double value) {
    if (value == 0) return 0;
    WideUnsigned top;
    int exponent;
    take_apart(value, top, exponent);
    if ((exponent += finest_bits) >= 0) {
        if (exponent >= finest_bits) return 0;
    } else if (exponent < -60) {
        return finest_bits;
    } else {
        const WideUnsigned half = WideUnsigned{1} << (-exponent - 1);
        const WideUnsigned left = top & (2 * half - 1);
        top >>= -exponent;
        if (left > half || (left == half && top % 2)) ++top;
        if (top == 0) return finest_bits;
        exponent = 0;
    }
    int found = finest_bits - exponent;
    for (; found > 0 && top % 2 == 0; --found) top /= 2;
    return found;
}

// ---- numbers and units ----

constexpr Unit fixed(std::int64_t numerator, std::int64_t denominator) {
    return {false, numerator, denominator};
}

const std::vector<Unit> units = {
    fixed(1, 1),
    fixed(1, 100),
    fixed(1, 3),
    fixed(100, 1),
    fixed(7, 3),
    fixed(1, 2),
    fixed(2, 1),
    fixed(3, 1000),
    fixed(1, middle),
    fixed(middle, 1),
    fixed(middle - 1, middle),
    fixed(middle, middle - 1),
    fixed(1, parts_most),
    fixed(1, parts_most - 1),
    fixed(1, most_units / 2),
    fixed(parts_most, 1),
    fixed(parts_most - 1, 1),
    fixed(most_units / 2, 1),
    fixed(parts_most, parts_most - 1),
    fixed(parts_most - 1, parts_most),
    fixed(parts_most, middle),
    fixed(middle, parts_most),
};

std::string note(double value, const Unit& unit, int bits) {
    char text[120];
    std::snprintf(text, sizeof text, "%a in units of %lld/%lld, %d places", value,
                  static_cast<long long>(unit.numerator), static_cast<long long>(unit.denominator),
                  bits);
    return text;
}

double random_double(Random& random) {
    for (;;) {
        const double any = std::bit_cast<double>(random());
        if (std::isfinite(any)) return any;
    }
}

// A double whose size is spread evenly over the powers of two from low to high.
double random_double(Random& random, int low, int high) {
    const double mantissa = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    return std::ldexp(random() % 2 ? mantissa : -mantissa, exponent);
}

// The doubles next to a number, on both sides of both signs.
std::vector<double> around(double value) {
    std::vector<double> all;
    double low = value, high = value;
    for (int i = 0; i < 4; ++i) {
        for (double near : {low, high, -low, -high}) all.push_back(near);
        low = std::nextafter(low, -inf);
        high = std::nextafter(high, inf);
    }
    std::erase_if(all, [](double near) { return !std::isfinite(near); });
    return all;
}

bool gives(const Whole& found, std::int64_t expected) {
    return found.rounding == Rounding::done && found.units == expected;
}
bool is_lost(const Whole& found) { return found.rounding == Rounding::lost; }
bool is_large(const Whole& found) { return found.rounding == Rounding::too_large; }

}  // namespace

TEST_CASE("cents, thirds and hundreds are whole where they should be") {
    CHECK(gives(to_units(0.1, fixed(1, 100), 0), 10));
    CHECK(gives(to_units(19.99, fixed(1, 100), 0), 1999));
    CHECK(gives(to_units(-0.01, fixed(1, 100), 0), -1));
    CHECK(gives(to_units(1.0, fixed(1, 3), 0), 3));
    CHECK(gives(to_units(1.0 / 3, fixed(1, 3), 0), 1));
    CHECK(gives(to_units(1234.0, fixed(100, 1), 0), 12));
    CHECK(gives(to_units(7.0, fixed(7, 3), 0), 3));
    CHECK(gives(to_units(std::int64_t{-7}, fixed(7, 3), 0), -3));
    CHECK(gives(to_units(0.5, Unit{}, 1), 1));
    CHECK(gives(to_units(std::int64_t{3}, Unit{}, 20), 3 << 20));
}

TEST_CASE("halves go to the even neighbour, and to nothing when that is 0") {
    CHECK(is_lost(to_units(0.5, fixed(1, 1), 0)) && is_lost(to_units(-0.5, fixed(1, 1), 0)));
    CHECK(gives(to_units(1.5, fixed(1, 1), 0), 2) && gives(to_units(2.5, fixed(1, 1), 0), 2));
    CHECK(gives(to_units(-1.5, fixed(1, 1), 0), -2) && gives(to_units(-2.5, fixed(1, 1), 0), -2));
    CHECK(is_lost(to_units(std::int64_t{50}, fixed(100, 1), 0)));
    CHECK(gives(to_units(std::int64_t{150}, fixed(100, 1), 0), 2));
    CHECK(gives(to_units(std::int64_t{250}, fixed(100, 1), 0), 2));
    CHECK(gives(to_units(3.5, fixed(7, 3), 0), 2) && gives(to_units(10.5, fixed(7, 3), 0), 4));
    CHECK(is_lost(to_units(0.5, Unit{}, 0)) && is_lost(to_units(0.25, Unit{}, 1)));
    CHECK(gives(to_units(1.5, Unit{}, 0), 2) && gives(to_units(2.5, Unit{}, 0), 2));
    CHECK(gives(to_units(0.375, Unit{}, 2), 2) && gives(to_units(-0.625, Unit{}, 2), -2));
}

TEST_CASE("every kind of zero is 0 units and never lost") {
    for (const Unit& unit : units)
        for (double zero : {0.0, -0.0}) CHECK(gives(to_units(zero, unit, 0), 0));
    for (int bits = 0; bits <= finest_bits; ++bits)
        CHECK(gives(to_units(-0.0, Unit{}, bits), 0) &&
              gives(to_units(std::int64_t{0}, Unit{}, bits), 0));
    CHECK(bits_needed(0.0) == 0 && bits_needed(-0.0) == 0);
}

TEST_CASE("doubles of all sizes are rounded to the nearest fixed unit") {
    for (std::size_t u = 0; u < units.size(); ++u) {
        Random random(u);
        for (int round = 0; round < rounds; ++round) {
            const double value =
                round % 4 ? random_double(random, -40, 100) : random_double(random);

            CHECK_NOTE(is_right(value, units[u]), note(value, units[u], 0));
        }
        for (double value : {tiny, DBL_MIN, DBL_MAX, 1.0, 9007199254740993.0})
            for (double near : around(value))
                CHECK_NOTE(is_right(near, units[u]), note(near, units[u], 0));
    }
}

TEST_CASE("doubles of all sizes are rounded to the nearest power of two") {
    for (int bits = 0; bits <= finest_bits; ++bits) {
        Random random(100 + static_cast<std::uint64_t>(bits));
        for (int round = 0; round < rounds / 2; ++round) {
            const double value = round % 4 ? random_double(random, -30, 70) : random_double(random);

            CHECK_NOTE(is_right(value, Unit{}, bits), note(value, Unit{}, bits));
        }
        for (double value : {tiny, DBL_MIN, DBL_MAX, 1.0, 9007199254740993.0})
            for (double near : around(value))
                CHECK_NOTE(is_right(near, Unit{}, bits), note(near, Unit{}, bits));
    }
}

TEST_CASE("whole numbers of all sizes are rounded to the nearest unit") {
    for (std::size_t u = 0; u <= units.size(); ++u) {
        Random random(200 + u);
        for (int round = 0; round < rounds / 2; ++round) {
            const auto value = static_cast<std::int64_t>(random()) >> random() % 64;
            const Unit unit = u < units.size() ? units[u] : Unit{};
            const int bits = u < units.size() ? 0 : round % (finest_bits + 1);

            CHECK_NOTE(is_right(value, unit, bits), note(static_cast<double>(value), unit, bits));
        }
    }
}

TEST_CASE("the ends of the whole numbers are right in every unit") {
    std::vector<std::int64_t> ends;
    for (std::int64_t end : {std::int64_t{0}, most_units, -most_units, largest_int - 3,
                             lowest_int + 3, most_units / 100, most_units / 3, middle})
        for (std::int64_t step = -3; step <= 3; ++step) ends.push_back(end + step);
    for (std::int64_t end : ends) {
        for (const Unit& unit : units)
            CHECK_NOTE(is_right(end, unit), note(static_cast<double>(end), unit, 0));
        for (int bits = 0; bits <= finest_bits; ++bits)
            CHECK_NOTE(is_right(end, Unit{}, bits), note(static_cast<double>(end), Unit{}, bits));
    }

    CHECK(gives(to_units(most_units - 1, Unit{}, 0), most_units - 1));
    CHECK(gives(to_units(1 - most_units, Unit{}, 0), 1 - most_units));
    CHECK(is_large(to_units(most_units, Unit{}, 0)) && is_large(to_units(lowest_int, Unit{}, 0)));
    CHECK(is_large(to_units(lowest_int, fixed(1, 1), 0)));
    CHECK(gives(to_units(lowest_int, fixed(4, 1), 0), -(most_units / 2)));
}

TEST_CASE("numbers just inside and just outside half a unit are distinguished") {
    for (const Unit& unit : units) {
        const double half =
            static_cast<double>(unit.numerator) / static_cast<double>(2 * unit.denominator);
        for (double near : around(half)) CHECK_NOTE(is_right(near, unit), note(near, unit, 0));
        CHECK(is_lost(to_units(half * (1 - 1e-9), unit, 0)));
        CHECK(gives(to_units(half * (1 + 1e-9), unit, 0), 1));
    }
    for (int bits = 0; bits <= finest_bits; ++bits) {
        const double half = std::ldexp(0.5, -bits);
        for (double near : around(half))
            CHECK_NOTE(is_right(near, Unit{}, bits), note(near, Unit{}, bits));
        CHECK(is_lost(to_units(half, Unit{}, bits)));
        CHECK(gives(to_units(std::nextafter(half, inf), Unit{}, bits), 1));
        CHECK(gives(to_units(-std::nextafter(half, inf), Unit{}, bits), -1));
    }
}

TEST_CASE("numbers just inside and just outside two to the 62 units are distinguished") {
    const auto border = static_cast<double>(most_units);
    for (const Unit& unit : units) {
        const double end =
            border / static_cast<double>(unit.denominator) * static_cast<double>(unit.numerator);
        for (double near : around(end)) CHECK_NOTE(is_right(near, unit), note(near, unit, 0));
        CHECK(is_large(to_units(end * (1 + 1e-9), unit, 0)));
        CHECK(!is_large(to_units(end * (1 - 1e-9), unit, 0)));
        if (end < 9e18)
            for (std::int64_t step = -3; step <= 3; ++step)
                CHECK(is_right(static_cast<std::int64_t>(end) + step, unit));
    }
    for (int bits = 0; bits <= finest_bits; ++bits) {
        const double end = std::ldexp(border, -bits);
        for (double near : around(end))
            CHECK_NOTE(is_right(near, Unit{}, bits), note(near, Unit{}, bits));
        CHECK(is_large(to_units(end, Unit{}, bits)) && is_large(to_units(-end, Unit{}, bits)));
        CHECK(gives(to_units(std::nextafter(end, 0), Unit{}, bits), most_units - 512));
    }
}

// A mantissa times a part of a unit comes with an exponent, a whole number times it without.
TEST_CASE("divisions of any size it may be asked for are exact") {
    const auto is_exact = [](WideUnsigned top, int exponent, WideUnsigned bottom, bool negative) {
        return is_nearest(divide(top, exponent, bottom, negative), top, exponent, bottom, negative);
    };
    Random random(300);
    for (int round = 0; round < 4 * rounds; ++round) {
        const auto any = static_cast<WideUnsigned>(random()) << 64 | random();
        const auto bottom = static_cast<WideUnsigned>(1 + (random() >> 2 >> random() % 62));
        const int exponent = round % 8 == 0   ? static_cast<int>(random() % 2100) - 1075
                             : round % 8 == 1 ? 0
                                              : static_cast<int>(random() % 260) - 190;
        const WideUnsigned top = any >> (exponent ? 13 : 3) >> random() % 115;
        if (top == 0) continue;

        CHECK_NOTE(is_exact(top, exponent, bottom, random() % 2),
                   "round " + std::to_string(round) + ", seed 300");
    }
    const WideUnsigned one = 1, end = one << 115;
    for (WideUnsigned top : {one, one + 1, one + 2, end / 2, end - 1})
        for (WideUnsigned bottom : {one, one + 1, static_cast<WideUnsigned>(middle),
                                    static_cast<WideUnsigned>(parts_most)})
            for (int exponent = -200; exponent <= 130; ++exponent)
                CHECK_NOTE(is_exact(top, exponent, bottom, false),
                           "exponent " + std::to_string(exponent));

    CHECK(is_exact(one << 125, 0, 1, false) && is_exact(one << 125, 0, parts_most, true));
}

TEST_CASE("a double is taken apart into an odd whole number and a power of two") {
    Random random(400);
    for (int round = 0; round < rounds; ++round) {
        const double value = random_double(random);
        const Dyadic parts = dyadic(value);

        CHECK(value == 0 || parts.mantissa % 2 != 0);
        CHECK(std::ldexp(static_cast<double>(parts.mantissa), parts.exponent) == value);
    }
    for (double value : {tiny, -tiny, 3 * tiny, DBL_MIN, DBL_MAX, -DBL_MAX})
        CHECK(std::ldexp(static_cast<double>(dyadic(value).mantissa), dyadic(value).exponent) ==
              value);
}

TEST_CASE("a number is whole when it has no fraction and stays below two to the 62") {
    for (double whole : {0.0, -0.0, 1.0, -7.0, 4503599627370497.0, -4611686018427387392.0})
        CHECK(is_whole(whole));
    for (double other : {0.5, -1e-300, tiny, 4503599627370495.5, 4611686018427387904.0, 1e300, inf})
        CHECK(!is_whole(other));
}

TEST_CASE("the places a number needs are those of the nearest multiple of 2^-20") {
    Random random(500);
    for (int round = 0; round < 4 * rounds; ++round) {
        double value = round % 4 ? random_double(random, -30, 60) : random_double(random);
        if (round % 3 == 0)  // few places, or as many and a tie
            value = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random()) >> 20),
                               -static_cast<int>(random() % 64));

        CHECK_NOTE(bits_needed(value) == places(value), note(value, Unit{}, places(value)));
    }
    for (int bits = 0; bits <= finest_bits; ++bits) {
        CHECK(bits_needed(std::ldexp(1.0, -bits)) == bits);
        CHECK(bits_needed(-std::ldexp(3.0, -bits)) == bits);
        CHECK(bits_needed(5 + std::ldexp(1.0, -bits)) == bits);
    }

    CHECK(bits_needed(std::ldexp(1.0, -21)) == finest_bits);  // lost, but at the finest
    CHECK(bits_needed(std::ldexp(3.0, -21)) == finest_bits - 1);
    CHECK(bits_needed(1 + std::ldexp(1.0, -21)) == 0);
    CHECK(bits_needed(DBL_MAX) == 0 && bits_needed(tiny) == finest_bits);
    CHECK(bits_needed(largest_int) == 0 && bits_needed(lowest_int) == 0);
}

TEST_CASE("what is not finite is too large in every unit") {
    for (double value : {inf, -inf, std::numeric_limits<double>::quiet_NaN()})
        for (const Unit& unit : {Unit{}, Unit{false, 1, 100}, Unit{false, 7, 3}})
            CHECK(to_units(value, unit, 0).rounding == Rounding::too_large);
}

TEST_CASE("a number is the same loss in all places from those it needs on") {
    Random random(600);
    for (int round = 0; round < rounds; ++round) {
        const double value = random_double(random, -25, 40);
        const Whole finest = to_units(value, Unit{}, finest_bits);
        for (int bits = bits_needed(value); bits <= finest_bits; ++bits) {
            const Whole found = to_units(value, Unit{}, bits);

            CHECK_NOTE(found.rounding == finest.rounding ||
                           (found.rounding == Rounding::done && is_large(finest)),
                       note(value, Unit{}, bits));
            if (finest.rounding == Rounding::done)
                CHECK_NOTE(found.units << (finest_bits - bits) == finest.units,
                           note(value, Unit{}, bits));
        }
    }
}
