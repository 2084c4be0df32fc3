// SPDX-License-Identifier: Apache-2.0
//
// What texts mean, and which rows of CSV and NDJSON are plain. tests/test_values.py holds the same
// rules to Python's float(), and every reader to one list of odd values.

#define LIMEN_TEST_MAIN
#include "rows/values.hpp"

#include <bit>
#include <cstdio>
#include <random>

#include "rows/text_rows.hpp"
#include "tests/testing.hpp"

namespace {

using namespace limen;

constexpr double inf = std::numeric_limits<double>::infinity();

bool is(std::string_view text, double value) {
    const auto found = number_of(text);
    return found && std::bit_cast<std::uint64_t>(*found) == std::bit_cast<std::uint64_t>(value);
}

TEST_CASE("numbers are read as they are written, to the last bit") {
    CHECK(is("0.1", 0.1) && is("-0", -0.0) && is("+.5", 0.5) && is("5.", 5) && is("1E3", 1000));
    CHECK(is("9007199254740993", 9007199254740992) && is("2.5e-324", 5e-324));
    CHECK(is("1e400", inf) && is("-1e400", -inf) && is("1e-400", 0) && is("4.9e-324", 5e-324));
    CHECK(is("2.2250738585072011e-308", 0x0.fffffffffffffp-1022));
    CHECK(is("-inf", -inf) && is("+Infinity", inf) && std::isnan(*number_of("-NaN")));
    CHECK(is("1_0", 10) && is("1_0.2_5e1_0", 10.25e10));
    CHECK(is(" \t0.5\r\n", 0.5) && is("\u00a01\u3000", 1) && is("\u2028-1e2", -100));
    CHECK(is("\uff11\u0662.\u096b", 12.5) && is("\U0001D7F7", 1));
    for (const char* text : {"",
                             " ",
                             "+",
                             "-",
                             ".",
                             "e1",
                             "1e",
                             "1e+",
                             "0x1",
                             "1p3",
                             "--1",
                             "+-1",
                             "- 1",
                             "1 1",
                             "1,5",
                             "_1",
                             "1_",
                             "1__0",
                             "1_.5",
                             "1._5",
                             "1e_5",
                             "1_e5",
                             "nan(1)",
                             "infi",
                             "1.5.5",
                             "one",
                             "\u00bd",
                             "1\u200b",
                             "\u2212"
                             "1",
                             "\xff",
                             "1\xff",
                             "\u00b2"})
        CHECK_NOTE(!number_of(text), text);
    CHECK(!number_of(std::string_view("1\0", 2)) && !number_of(std::string_view("\0001", 2)));
}

TEST_CASE("both ways to a number agree") {
    std::mt19937_64 random(1);
    char text[64];
    for (int i = 0; i < testing::effort(2000, 50000); ++i) {
        const double value = std::bit_cast<double>(random() >> 1);
        if (!std::isfinite(value)) continue;
        std::snprintf(text, sizeof text, "%.*g", 1 + i % 20, value);
        CHECK_NOTE(is_decimal(text) && is(text, by_library(text)), text);
        if (i % 20 >= 16) CHECK_NOTE(is(text, value), text);
    }
    for (const char* text : {"", ".", "1e", "1e+", "e1", "1.5.5", "-1", "0x1", "1 "})
        CHECK_NOTE(!is_decimal(text), text);
}

TEST_CASE("labels are 0 and 1, or those of a class") {
    const LabelRule plain, two(std::string("2")), named(std::string("spam")), no_number("nan");
    CHECK(plain("1") == 1 && plain(" TRUE ") == 1 && plain("1.0") == 1 && plain("\uff11") == 1);
    CHECK(plain("0") == 0 && plain("\u00a0False") == 0 && plain("-0") == 0 && plain("1e-400") == 0);
    for (const char* text : {"", "2", "yes", "t", "null", "nan", "\uff34rue"})
        CHECK_NOTE(plain(text) == -1, text);
    CHECK(two("2") == 1 && two(" 2.0") == 1 && two("\uff12") == 1 && two("3") == 0 &&
          two("") == -1);
    CHECK(named("spam") == 1 && named("Spam") == 0 && named("1") == 0 && named("") == -1);
    CHECK(no_number("nan") == 1 && no_number("NaN") == 0);
}

TEST_CASE("UTF-8 is what can be decoded") {
    for (const char* text : {"", "a", "\u00e9", "\u0800", "\ud7ff", "\ue000", "\U0010ffff"})
        CHECK_NOTE(is_utf8(text), text);
    for (const char* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                             "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe9\n"})
        CHECK_NOTE(!is_utf8(text), text);
}

TextRows csv(RowParts parts, std::size_t width, std::vector<std::size_t> places) {
    return {std::move(parts), CsvFields(',', width, std::move(places))};
}

TextRows json(RowParts parts, std::vector<std::string> keys) {
    return {std::move(parts), JsonFields(std::move(keys), false)};
}

TEST_CASE("plain rows of CSV are read up to the first that is not") {
    for (const char* odd :
         {"x,1\n", "0.5\n", "0.5,1,\n", "0.5,yes\n", ",1\n", "nan,1\n", "\"0.5\",1 \"\n", "\t\n",
          "0.5,1\r\r\n", "0.5,\"1\n", "0.5,\"1\"x\n", "0.5,1\xff\n", "0.5\r,1\n", "0.5,1"}) {
        TextRows rows = csv({}, 2, {0, 1});
        const std::string begin = "0.1,0\r\n\n  \n\"0.2\",\"1\"\n", all = begin + odd + "1,1\n";
        const auto done = rows.read(all);
        CHECK_NOTE(done.bytes == begin.size() && done.lines == 4, odd);
        CHECK(rows.scores.size() == 2 && rows.scores.data()[1] == 0.2 &&
              rows.labels.data()[1] == 1);
    }
}

TEST_CASE("quotes hold delimiters and quotes") {
    TextRows rows = csv({.grouped = true}, 4, {1, 2, 3});
    rows.read("\"a,b\",1,0,\"x\"\"y\"\na\"b\",2,1,\"\"\"\"\n\u00e9,3,1,x\"y\n,4,1,\"\"\n");
    CHECK(rows.scores.size() == 3 && rows.names().size() == 2);
    CHECK(rows.names()[0] == "x\"y" && rows.names()[1] == "\"" && rows.codes.data()[2] == 0);
}

TEST_CASE("weights, costs and decimal commas are checked") {
    RowParts parts{.weighted = true, .costs = 1, .finest = 0.5, .comma = true};
    for (const char* row : {"\"0,5\",1,0,2\n", "1,1,\"0,5\",-3\n"})
        CHECK_NOTE(csv(parts, 4, {0, 1, 2, 3}).read(row).lines == 1, row);
    for (const char* row : {"0.5,1,1,1\n", "1,1,\"0,4\",1\n", "1,1,-1,1\n", "1,1,inf,1\n",
                            "1,1,nan,1\n", "1,1,1,inf\n", "1,1,1,\n"})
        CHECK_NOTE(csv(parts, 4, {0, 1, 2, 3}).read(row).lines == 0, row);
}

TEST_CASE("plain objects of NDJSON are read, and what is not JSON is left") {
    RowParts grouped{.grouped = true};
    for (const char* line :
         {R"({"s":0.5,"l":1,"g":"a"})", R"( { "s" : "0.5" , "l" : true , "g" : 17 } )",
          R"({"x":[1,{"y":"\u00e9\n"},null,[]],"s":-1e3,"l":"1.0","g":"a","z":{}})",
          R"({"s":9,"l":0,"g":"b","s":1})", "{\"s\":1,\"l\":1,\"g\":\"\u00e9\"}\r"})
        CHECK_NOTE(json(grouped, {"s", "l", "g"}).read(std::string(line) + "\n").lines == 1, line);
    for (const char* line : {R"({"s":0.5,"l":1})",
                             R"({"s":0.5,"l":1,"g":"a",})",
                             R"({"s":0.5,"l":1,"g":"\n"})",
                             R"({"s":.5,"l":1,"g":"a"})",
                             R"({"s":01,"l":1,"g":"a"})",
                             R"({"s":1.,"l":1,"g":"a"})",
                             R"({"s":NaN,"l":1,"g":"a"})",
                             R"({"s":true,"l":1,"g":"a"})",
                             R"({"s":1,"l":[1],"g":"a"})",
                             R"({"s":1,"l":1,"g":null})",
                             R"({"s":1,"l":1,"g":1.50})",
                             R"({"s":1,"l":1,"g":-0})",
                             R"({"\u0073":1,"s":1,"l":1,"g":"a"})",
                             R"({"s":1,"l":1,"g":"a","x":"\x"})",
                             R"({"s":1,"l":1,"g":"a","x":"\u00g0"})",
                             R"({"s":1,"l":1,"g":"a"} {})",
                             R"([1])",
                             "{",
                             R"({"s":1,"l":1,"g":"a","x":[1,]})",
                             R"({"s":1,"l":1,"g":"a","x":tru})",
                             "{\"s\":1,\"l\":1,\"g\":\"a\",\"x\":\"\t\"}",
                             R"({"s":1,"l":1,"g":"a","x":-})",
                             R"({"s":1,"l":1,"g":"a","x":"\)",
                             R"({"s":1,"l":1,"g":"a","x":1e})",
                             R"({"s" 1})"})
        CHECK_NOTE(json(grouped, {"s", "l", "g"}).read(std::string(line) + "\n").lines == 0, line);
    const std::string deep = "{\"s\":1,\"l\":1,\"g\":\"a\",\"x\":" + std::string(100000, '[');
    CHECK(json(grouped, {"s", "l", "g"}).read(deep + "\n").lines == 0);
    const std::string large = "{\"s\":1" + std::string(400, '0') + ",\"l\":1,\"g\":\"a\"}\n";
    CHECK(json(grouped, {"s", "l", "g"}).read(large).lines == 0);
}

TEST_CASE("any bytes are read without harm, in any pieces") {
    std::mt19937_64 random(2);
    const std::string_view pieces[] = {"0.5",    "1",    ",", "\"",     "\n",     "\r\n",
                                       "\u00e9", "\xff", "{", "\"s\":", "\"l\":", "}",
                                       "[",      "\\",   " ", "_",      "true"};
    for (int i = 0; i < testing::effort(2000, 20000); ++i) {
        std::string text;
        for (int j = 0; j < 40; ++j) text += pieces[random() % std::size(pieces)];
        TextRows table = csv({}, 2, {0, 1}), objects = json({}, {"s", "l"});
        const auto one = table.read(text), other = objects.read(text);
        CHECK(one.bytes <= text.size() && (one.bytes == 0 || text[one.bytes - 1] == '\n'));
        CHECK(other.bytes <= text.size() && table.scores.size() <= one.lines);
    }
}

TEST_CASE("columns are given away, and begin again") {
    TextRows rows = csv({}, 2, {0, 1});
    std::string text;
    for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "," + std::to_string(i % 2) + "\n";
    CHECK(rows.read(text).lines == 5000);
    double* scores = rows.scores.release();
    CHECK(scores[4999] == 4999 && rows.scores.size() == 0);
    std::free(scores);
    CHECK(rows.read("1,1\n").lines == 1 && rows.scores.size() == 1);
}

}  // namespace
