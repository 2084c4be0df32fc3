// SPDX-License-Identifier: Apache-2.0
//
// Rows of CSV and NDJSON, from bytes to columns of values.
//
// Only plain rows are read: one line each, every value as it must be. At any other row reading
// stops, so that limen.cli.line_reader reads that one, with the same values, or says what is wrong
// with it. So nothing here words an error, and a file of plain rows never becomes Python objects.

#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <unordered_map>
#include <vector>

#include "rows/values.hpp"

namespace limen {

// ---- columns that grow ----------------------------------------------------------------------

// Values in one piece, which the C library may move without copying; given away when complete.
template <class T>
class Grown {
public:
    Grown() = default;
    Grown(const Grown&) = delete;
    Grown& operator=(const Grown&) = delete;
    ~Grown() { std::free(values_); }

    void push(T value) {
        if (size_ == room_) resize(room_ ? 2 * room_ : 1024);
        values_[size_++] = value;
    }
    std::size_t size() const { return size_; }
    const T* data() const { return values_; }
    // The values, which the caller frees; not null, also where there are none.
    T* release() {
        resize(size_ ? size_ : 1);
        size_ = room_ = 0;
        return std::exchange(values_, nullptr);
    }

private:
    void resize(std::size_t room) {
        void* moved = std::realloc(values_, room * sizeof(T));
        if (!moved) throw std::bad_alloc();
        values_ = static_cast<T*>(moved);
        room_ = room;
    }

    T* values_ = nullptr;
    std::size_t size_ = 0, room_ = 0;
};

// ---- the fields of a line -------------------------------------------------------------------

// A value of a row: the text of a CSV field or of a JSON string, or a JSON value as it is written.
struct Field {
    enum Kind { missing, text, number, word, other };  // word: true or false

    std::string_view value{};
    Kind kind = missing;
};

// The fields of a CSV line at some places.
class CsvFields {
public:
    CsvFields(char delimiter, std::size_t width, std::vector<std::size_t> places)
        : delimiter_(delimiter), places_(std::move(places)), fields_(width) {}

    // Whether the line is plain, with as many fields as the header has.
    bool split(std::string_view line, std::vector<Field>& found) {
        if (!(line.find('"') == line.npos ? split_plain(line) : split_quoted(line))) return false;
        for (std::size_t part = 0; part < places_.size(); ++part)
            found[part] = {fields_[places_[part]], Field::text};
        return true;
    }

private:
    bool split_plain(std::string_view line) {
        std::size_t count = 0;
        for (;;) {
            const std::size_t end = std::min(line.find(delimiter_), line.size());
            if (count == fields_.size()) return false;
            fields_[count++] = line.substr(0, end);
            if (end == line.size()) return count == fields_.size();
            line.remove_prefix(end + 1);
        }
    }

    bool split_quoted(std::string_view line) {
        std::size_t count = 0;
        unquoted_.clear();
        for (;;) {
            if (count == fields_.size()) return false;
            std::size_t end = 0;
            if (line.substr(0, 1) == "\"") {
                end = closing_quote(line);
                if (end == line.npos) return false;
                fields_[count++] = unquoted(line.substr(1, end - 1));
                if (++end < line.size() && line[end] != delimiter_) return false;
            } else {
                end = std::min(line.find(delimiter_), line.size());
                fields_[count++] = line.substr(0, end);
            }
            if (end == line.size()) return count == fields_.size();
            line.remove_prefix(end + 1);
        }
    }

    // Of two quotes in a row neither closes the field.
    static std::size_t closing_quote(std::string_view line) {
        std::size_t at = line.find('"', 1);
        while (at != line.npos && at + 1 < line.size() && line[at + 1] == '"')
            at = line.find('"', at + 2);
        return at;
    }

    std::string_view unquoted(std::string_view field) {
        if (field.find('"') == field.npos) return field;
        std::string& kept = unquoted_.emplace_back();
        for (std::size_t at = 0; at < field.size(); at += field[at] == '"' ? 2 : 1)
            kept += field[at];
        return kept;
    }

    char delimiter_;
    std::vector<std::size_t> places_;
    std::vector<std::string_view> fields_;
    std::deque<std::string> unquoted_;  // which do not move when others come
};

// The values of some keys of a JSON object. What is not asked for must be JSON as well.
class JsonFields {
public:
    // Where rows are sparse, a key may be missing.
    JsonFields(std::vector<std::string> keys, bool sparse)
        : keys_(std::move(keys)), sparse_(sparse) {}

    // Whether the line is an object in which every key is there; null is as good as missing.
    bool split(std::string_view line, std::vector<Field>& found) {
        at_ = line.data(), end_ = at_ + line.size();
        std::fill(found.begin(), found.end(), Field{});
        skip_blanks();
        if (!take('{')) return false;
        Field key, value;
        do {
            skip_blanks();
            if (!string(key) || key.kind != Field::text) return false;
            skip_blanks();
            if (!take(':') || !any(value, 0)) return false;
            for (std::size_t part = 0; part < keys_.size(); ++part)
                if (keys_[part] == key.value) found[part] = value;  // the last one counts
        } while (take(','));
        if (!take('}')) return false;
        skip_blanks();
        return at_ == end_ && (sparse_ || std::all_of(found.begin(), found.end(), [](auto& each) {
                                   return each.kind != Field::missing;
                               }));
    }

private:
    static constexpr int deepest = 64;

    bool take(char wanted) {
        if (at_ == end_ || *at_ != wanted) return false;
        ++at_;
        return true;
    }
    bool take(std::string_view wanted) {
        if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, wanted.size()) !=
            wanted)
            return false;
        at_ += wanted.size();
        return true;
    }
    void skip_blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    // Any value, and the blanks round it.
    bool any(Field& found, int depth) {
        skip_blanks();
        if (at_ == end_ || depth > deepest) return false;
        const char* const begin = at_;
        bool valid = false;
        if (*at_ == '"') {
            valid = string(found);
        } else if (*at_ == '{' || *at_ == '[') {
            valid = nested(depth + 1);
            found.kind = Field::other;
        } else if (*at_ == 't' || *at_ == 'f') {
            valid = take("true") || take("false");
            found = {{begin, static_cast<std::size_t>(at_ - begin)}, Field::word};
        } else if (*at_ == 'n') {
            valid = take("null");
            found = {};
        } else {
            valid = number();
            found = {{begin, static_cast<std::size_t>(at_ - begin)}, Field::number};
        }
        skip_blanks();
        return valid;
    }

    bool nested(int depth) {
        const bool object = *at_++ == '{';
        const char close = object ? '}' : ']';
        skip_blanks();
        if (take(close)) return true;
        Field ignored;
        do {
            skip_blanks();
            if (object && !(string(ignored) && (skip_blanks(), take(':')))) return false;
            if (!any(ignored, depth)) return false;
        } while (take(','));
        return take(close);
    }

    // A string; of another kind than text where it has escapes.
    bool string(Field& found) {
        if (!take('"')) return false;
        const char* const begin = at_;
        found.kind = Field::text;
        for (; at_ != end_ && *at_ != '"'; ++at_) {
            if (static_cast<unsigned char>(*at_) < ' ') return false;
            if (*at_ != '\\') continue;
            found.kind = Field::other;
            if (++at_ == end_) return false;
            if (*at_ == 'u') {
                for (int digit = 0; digit < 4; ++digit)
                    if (++at_ == end_ || !std::strchr("0123456789abcdefABCDEF", *at_) || !*at_)
                        return false;
            } else if (!*at_ || !std::strchr("\"\\/bfnrt", *at_)) {
                return false;
            }
        }
        found.value = {begin, static_cast<std::size_t>(at_ - begin)};
        return take('"');
    }

    bool digits() {
        const char* const begin = at_;
        while (at_ != end_ && is_digit(*at_)) ++at_;
        return at_ != begin;
    }
    bool number() {
        take('-');
        if (!take('0') && !digits()) return false;
        if (take('.') && !digits()) return false;
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            return digits();
        }
        return true;
    }

    std::vector<std::string> keys_;
    bool sparse_;
    const char *at_ = nullptr, *end_ = nullptr;
};

// ---- rows -----------------------------------------------------------------------------------

// A time as it is written: a number, or a date and time in microseconds since 1970.
struct WrittenTime {
    enum Kind : std::uint8_t { missing, whole, real, local, zoned };

    std::int64_t word = 0;  // the bits of a double where it is real
    Kind kind = missing;
};

// The digits at the front of a text, as many as are asked for, or -1.
inline int take_digits(std::string_view& text, std::size_t count) {
    int found = 0;
    if (text.size() < count) return -1;
    for (const char each : text.substr(0, count)) {
        if (!is_digit(each)) return -1;
        found = 10 * found + (each - '0');
    }
    text.remove_prefix(count);
    return found;
}

inline bool take_character(std::string_view& text, char wanted) {
    if (text.empty() || text.front() != wanted) return false;
    text.remove_prefix(1);
    return true;
}

// A time such as 2026-11-15T12:00:00.5+01:00; nothing where it is written in another way.
inline std::optional<WrittenTime> date_of(std::string_view text) {
    using namespace std::chrono;
    const int years = take_digits(text, 4);
    if (!take_character(text, '-')) return std::nullopt;
    const int months = take_digits(text, 2);
    if (!take_character(text, '-')) return std::nullopt;
    const int days = take_digits(text, 2);
    if (years < 1 || months < 1 || days < 1) return std::nullopt;
    const year_month_day date = year(years) / months / days;
    if (!date.ok() || !(take_character(text, 'T') || take_character(text, ' ')))
        return std::nullopt;
    const int hours_ = take_digits(text, 2);
    if (!take_character(text, ':')) return std::nullopt;
    const int minutes_ = take_digits(text, 2);
    int seconds_ = 0, micros = 0;
    if (take_character(text, ':')) {
        seconds_ = take_digits(text, 2);
        if (take_character(text, '.')) {
            int places = 0;
            for (; places < 6 && !text.empty() && is_digit(text.front()); ++places)
                micros = 10 * micros + take_digits(text, 1);
            if (places == 0) return std::nullopt;
            for (; places < 6; ++places) micros *= 10;
        }
    }
    if (hours_ < 0 || hours_ > 23 || minutes_ < 0 || minutes_ > 59 || seconds_ < 0 || seconds_ > 59)
        return std::nullopt;
    WrittenTime found{0, WrittenTime::local};
    std::int64_t minute = hours_ * 60 + minutes_;
    if (!text.empty()) {
        found.kind = WrittenTime::zoned;
        if (!take_character(text, 'Z')) {
            const bool east = take_character(text, '+');
            if (!east && !take_character(text, '-')) return std::nullopt;
            const int ahead = take_digits(text, 2);
            if (!take_character(text, ':')) return std::nullopt;
            const int more = take_digits(text, 2);
            if (ahead < 0 || ahead > 23 || more < 0 || more > 59) return std::nullopt;
            minute -= (east ? 1 : -1) * (ahead * 60 + more);
        }
        if (!text.empty()) return std::nullopt;
    }
    const std::int64_t day = sys_days(date).time_since_epoch().count();
    found.word = ((day * 1440 + minute) * 60 + seconds_) * 1'000'000 + micros;
    return found;
}

// What the fields of a row are, in this order: the score, then what of these is asked for, then
// the costs of outcomes. Where rows are sparse, score and label may come in rows of their own,
// joined by an id, and anything else but the id may be missing as well.
struct RowParts {
    bool labelled = true, weighted = false, grouped = false, sparse = false, timed = false;
    std::size_t costs = 0;
    std::optional<std::string> positive{};
    double finest = 0;            // a smaller weight would round to 0 units
    bool comma = false;           // numbers have a decimal comma
    std::optional<bool> dated{};  // whether times are dates; nothing: or numbers, as they come

    std::size_t count() const { return 1 + labelled + weighted + grouped + sparse + timed + costs; }
};

constexpr std::uint8_t no_label = 255;
constexpr std::uint32_t no_group = 0xFFFFFFFF;

// A score or a weight that is missing is nan.
struct RowValues {
    double score = 0, weight = 0;
    int label = 0;
    std::string_view group{}, id{};
    WrittenTime time{};
    std::vector<double> costs{};
};

class TextRows {
public:
    struct Progress {
        std::size_t bytes = 0, lines = 0;
    };

    TextRows(RowParts parts, CsvFields fields) : TextRows(std::move(parts)) {
        csv_.emplace(std::move(fields));
    }
    TextRows(RowParts parts, JsonFields fields) : TextRows(std::move(parts)) {
        json_.emplace(std::move(fields));
    }

    // Read complete lines as long as their rows are plain; blank lines are none.
    Progress read(std::string_view block) {
        Progress done;
        std::size_t looked_at = 0;
        bool ascii = true, returns = false;
        for (;;) {
            const std::size_t end = block.find('\n', done.bytes);
            if (end == block.npos) return done;
            if (end >= looked_at) {  // for many lines at once, as most files have neither
                looked_at = std::max(end + 1, std::min(done.bytes + 4096, block.size()));
                const auto window = block.substr(done.bytes, looked_at - done.bytes);
                ascii = is_ascii(window), returns = window.find('\r') != window.npos;
            }
            std::string_view line = block.substr(done.bytes, end - done.bytes);
            if (returns && !line.empty() && line.back() == '\r') line.remove_suffix(1);
            if (line.find_first_not_of(' ') != line.npos) {
                if (returns && line.find('\r') != line.npos) return done;
                if (!ascii && !is_utf8(line)) return done;
                const bool plain = csv_ ? csv_->split(line, fields_) : json_->split(line, fields_);
                if (!plain || !values()) return done;
                add(row_);
            }
            done.bytes = end + 1;
            ++done.lines;
        }
    }

    // One row, of which every value is as it must be.
    void add(const RowValues& row) {
        scores.push(row.score);
        labels.push(static_cast<std::uint8_t>(row.label));
        if (parts_.weighted) weights.push(row.weight);
        if (parts_.grouped) codes.push(row.group.empty() ? no_group : code_of(row.group));
        if (parts_.sparse) ids.emplace_back(row.id);
        if (parts_.timed) {
            times.push(row.time.word);
            kinds.push(row.time.kind);
        }
        for (std::size_t each = 0; each < parts_.costs; ++each) costs[each].push(row.costs[each]);
    }

    const RowParts& parts() const { return parts_; }
    const std::deque<std::string>& names() const { return names_; }

    Grown<double> scores, weights;
    Grown<std::uint8_t> labels, kinds;
    Grown<std::uint32_t> codes;
    Grown<std::int64_t> times;
    std::vector<std::string> ids;
    std::vector<Grown<double>> costs;

private:
    explicit TextRows(RowParts parts)
        : costs(parts.costs), parts_(std::move(parts)), rule_(parts_.positive),
          fields_(parts_.count()) {
        row_.costs.resize(parts_.costs);
    }

    // The values of the row at hand; false where one is not as it must be.
    bool values() {
        const Field* field = fields_.data();
        const bool scored = !lacks(*field), labelled = parts_.labelled && !lacks(field[1]);
        if (parts_.sparse && !scored && !labelled) return false;
        row_.score = std::numeric_limits<double>::quiet_NaN();
        if (scored && (!number(*field, row_.score) || std::isnan(row_.score))) return false;
        ++field;
        if (parts_.labelled) {
            row_.label = !labelled                     ? no_label
                         : field->kind == Field::other ? -1
                                                       : rule_(field->value);
            if (row_.label < 0) return false;
            ++field;
        }
        if (parts_.weighted && !weight(*field++)) return false;
        if (parts_.grouped) {
            row_.group = {};
            if (scored && !name(*field, row_.group)) return false;
            ++field;
        }
        if (parts_.sparse && !name(*field++, row_.id)) return false;
        if (parts_.timed && !time(*field++)) return false;
        for (double& cost : row_.costs) {
            if (labelled || !parts_.sparse)
                if (!number(*field, cost) || !std::isfinite(cost)) return false;
            ++field;
        }
        return true;
    }

    // Whether a value is missing from a row of which it may be.
    bool lacks(const Field& field) const {
        return parts_.sparse &&
               (field.kind == Field::missing || (field.kind == Field::text && field.value.empty()));
    }

    bool weight(const Field& field) {
        row_.weight = std::numeric_limits<double>::quiet_NaN();
        if (lacks(field)) return true;
        if (!number(field, row_.weight) || !std::isfinite(row_.weight)) return false;
        return row_.weight == 0 || row_.weight >= parts_.finest;
    }

    // A number with a point may be written in several ways, of which Python has its own.
    static bool name(const Field& field, std::string_view& found) {
        found = field.value;
        if (field.kind == Field::missing || field.kind == Field::other) return false;
        return field.kind == Field::number ? is_whole(found) : !found.empty();
    }

    bool time(const Field& field) {
        row_.time = {};
        if (lacks(field)) return true;
        if (!written_time(field)) return false;
        return !parts_.dated || *parts_.dated == (row_.time.kind >= WrittenTime::local);
    }

    bool written_time(const Field& field) {
        const std::string_view text = field.value;
        if (field.kind != Field::text && field.kind != Field::number) return false;
        const bool minus = text.substr(0, 1) == "-";
        std::string_view digits = text.substr(minus);
        if (!digits.empty() && digits.size() <= 18 &&
            std::all_of(digits.begin(), digits.end(), is_digit)) {
            for (const char each : digits) row_.time.word = 10 * row_.time.word + (each - '0');
            if (minus) row_.time.word = -row_.time.word;
            row_.time.kind = WrittenTime::whole;
            return true;
        }
        if (const auto date = date_of(text); date && field.kind == Field::text) {
            row_.time = *date;
            return true;
        }
        if (text.find_first_of(".eE") == text.npos) return false;
        const auto found = number_of(text);
        if (!found || !std::isfinite(*found)) return false;
        row_.time = {std::bit_cast<std::int64_t>(*found), WrittenTime::real};
        return true;
    }

    static bool is_whole(std::string_view number) {
        return number.size() <= longest && number != "-0" &&
               number.find_first_of(".eE") == number.npos;
    }

    bool number(const Field& field, double& value) {
        std::string_view text = field.value;
        if (field.kind != Field::text && (field.kind != Field::number || text.size() > longest))
            return false;
        if (parts_.comma && field.kind == Field::text) {
            if (text.find('.') != text.npos) return false;
            pointed_ = text;
            std::replace(pointed_.begin(), pointed_.end(), ',', '.');
            text = pointed_;
        }
        const auto found = number_of(text);
        value = found.value_or(0);
        return found.has_value();
    }

    std::uint32_t code_of(std::string_view group) {
        if (const auto known = codes_of_.find(group); known != codes_of_.end())
            return known->second;
        const auto code = static_cast<std::uint32_t>(names_.size());
        codes_of_.emplace(names_.emplace_back(group), code);
        return code;
    }

    static constexpr std::size_t longest =
        300;  // digits, beyond which a whole number has no double

    RowParts parts_;
    LabelRule rule_;
    std::optional<CsvFields> csv_;
    std::optional<JsonFields> json_;
    std::vector<Field> fields_;
    RowValues row_;
    std::string pointed_;
    std::deque<std::string> names_;  // of groups, by code
    std::unordered_map<std::string_view, std::uint32_t> codes_of_;
};

}  // namespace limen
