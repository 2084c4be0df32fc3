// SPDX-License-Identifier: Apache-2.0
//
// What the text of a number or of a label means. Every reader of text asks here.
//
// A number is what Python's float() reads, rounded as there: digits of any script, _ between
// digits, blanks round it, inf and nan.

#pragma once

#include <locale.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

namespace limen {

// ---- characters -----------------------------------------------------------------------------

constexpr char32_t no_character = 0xFFFFFFFF;

// Take the next character off UTF-8; `no_character` where the bytes are none.
inline char32_t next_character(std::string_view& text) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(0);
    const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || text.size() < size) return no_character;
    char32_t found = size == 1 ? first : first & (0x7Fu >> size);
    for (std::size_t at = 1; at < size; ++at) {
        if ((byte(at) & 0xC0) != 0x80) return no_character;
        found = found << 6 | (byte(at) & 0x3Fu);
    }
    const bool too_long = (size == 3 && found < 0x800) || (size == 4 && found < 0x10000);
    if (too_long || (found >= 0xD800 && found < 0xE000) || found > 0x10FFFF) return no_character;
    text.remove_prefix(size);
    return found;
}

inline bool is_ascii(std::string_view text) {
    std::uint64_t all = 0, eight = 0;  // eight at once: the compiler does not see to that
    while (text.size() >= sizeof eight) {
        std::memcpy(&eight, text.data(), sizeof eight);
        all |= eight;
        text.remove_prefix(sizeof eight);
    }
    for (const char each : text) all |= static_cast<unsigned char>(each);
    return (all & 0x8080808080808080) == 0;
}

inline bool is_utf8(std::string_view text) {
    while (!text.empty())
        if (next_character(text) == no_character) return false;
    return true;
}

constexpr bool is_digit(char each) { return each >= '0' && each <= '9'; }

constexpr bool is_blank(char32_t each) {
    return (each >= 9 && each <= 13) || each == ' ' || each == 0x85 || each == 0xA0 ||
           each == 0x1680 || (each >= 0x2000 && each <= 0x200A) || each == 0x2028 ||
           each == 0x2029 || each == 0x202F || each == 0x205F || each == 0x3000;
}

// The digits 0 of Unicode 14, which the newest Python and the oldest supported one agree on; 1 to 9
// follow each.
constexpr char32_t zeros[] = {
    0x30,    0x660,   0x6F0,   0x7C0,   0x966,   0x9E6,   0xA66,   0xAE6,   0xB66,   0xBE6,
    0xC66,   0xCE6,   0xD66,   0xDE6,   0xE50,   0xED0,   0xF20,   0x1040,  0x1090,  0x17E0,
    0x1810,  0x1946,  0x19D0,  0x1A80,  0x1A90,  0x1B50,  0x1BB0,  0x1C40,  0x1C50,  0xA620,
    0xA8D0,  0xA900,  0xA9D0,  0xA9F0,  0xAA50,  0xABF0,  0xFF10,  0x104A0, 0x10D30, 0x11066,
    0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0,
    0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2,
    0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0};

// A text with every digit as one of ASCII, every blank as a space, and ? for what else is not
// ASCII.
inline std::string in_ascii(std::string_view text) {
    std::string found;
    while (!text.empty()) {
        const char32_t each = next_character(text);
        if (each == no_character) return "?";
        const auto above = std::upper_bound(std::begin(zeros), std::end(zeros), each);
        if (each < 0x80)
            found += static_cast<char>(each);
        else if (is_blank(each))
            found += ' ';
        else if (each - above[-1] < 10)
            found += static_cast<char>('0' + (each - above[-1]));
        else
            found += '?';
    }
    return found;
}

inline std::string_view without_blanks(std::string_view text) {
    const auto blank = [](char each) { return is_blank(static_cast<unsigned char>(each)); };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

inline bool same_letters(std::string_view text, std::string_view lower) {
    return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
    });
}

// ---- numbers --------------------------------------------------------------------------------

// Digits, perhaps a point and an exponent, by the C library: slow, and right at both ends.
inline double by_library(std::string_view text) {
    const std::string ended(text);
#if defined(_WIN32)
    static const _locale_t plain = _create_locale(LC_ALL, "C");
    return _strtod_l(ended.c_str(), nullptr, plain);
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return strtod_l(ended.c_str(), nullptr, plain);
#endif
}

// Whether this is digits with perhaps a point, and perhaps an exponent.
inline bool is_decimal(std::string_view text) {
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t start = at;
        while (at < text.size() && is_digit(text[at])) ++at;
        return at - start;
    };
    std::size_t found = digits();
    if (at < text.size() && text[at] == '.') found += (++at, digits());
    if (found == 0) return false;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
        if (digits() == 0) return false;
    }
    return at == text.size();
}

inline std::optional<double> decimal_of(std::string_view text) {
#if defined(__cpp_lib_to_chars) && !defined(LIMEN_WITHOUT_FROM_CHARS)
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
    return error == std::errc() ? value : by_library(text);  // else too large, or too small
#else
    if (!is_decimal(text)) return std::nullopt;
    return by_library(text);
#endif
}

// A number without blanks and underscores, in ASCII.
inline std::optional<double> plain_number(std::string_view text) {
    const bool negative = text.substr(0, 1) == "-";
    if (negative || text.substr(0, 1) == "+") text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
    std::optional<double> value;
    if (is_digit(text[0]) || text[0] == '.')
        value = decimal_of(text);
    else if (same_letters(text, "inf") || same_letters(text, "infinity"))
        value = std::numeric_limits<double>::infinity();
    else if (same_letters(text, "nan"))
        value = std::numeric_limits<double>::quiet_NaN();
    if (value && negative) value = -*value;
    return value;
}

// The number that a text is; none where it is none.
inline std::optional<double> number_of(std::string_view text) {
    if (!text.empty() && is_digit(text[0]))  // as most are
        if (const auto value = decimal_of(text)) return value;
    if (const auto value = plain_number(without_blanks(text))) return value;
    const bool ascii = is_ascii(text);
    if (ascii && text.find('_') == text.npos) return std::nullopt;
    const std::string changed = ascii ? std::string(text) : in_ascii(text);
    const std::string_view given = without_blanks(changed);
    std::string digits;
    for (std::size_t at = 0; at < given.size(); ++at) {
        if (given[at] != '_')
            digits += given[at];
        else if (at == 0 || at + 1 == given.size() || !is_digit(given[at - 1]) ||
                 !is_digit(given[at + 1]))
            return std::nullopt;
    }
    return plain_number(digits);
}

// ---- labels ---------------------------------------------------------------------------------

// Which texts are label 1: those of the positive class, or 1 and true where none is named.
class LabelRule {
public:
    LabelRule() = default;
    explicit LabelRule(std::optional<std::string> positive) : positive_(std::move(positive)) {
        if (positive_) number_ = number_of(*positive_);
    }

    // 0 or 1; -1 where the text is neither, or missing.
    int operator()(std::string_view text) const {
        if (text.empty()) return -1;
        if (positive_) return text == *positive_ || (number_ && number_of(text) == number_) ? 1 : 0;
        if (text == "0" || text == "1") return text[0] - '0';
        const std::string changed = is_ascii(text) ? std::string() : in_ascii(text);
        const std::string_view word = without_blanks(changed.empty() ? text : changed);
        if (same_letters(word, "true")) return 1;
        if (same_letters(word, "false")) return 0;
        const auto number = number_of(text);
        return number == 0.0 ? 0 : number == 1.0 ? 1 : -1;
    }

private:
    std::optional<std::string> positive_;
    std::optional<double> number_;
};

}  // namespace limen
