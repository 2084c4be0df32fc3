// SPDX-License-Identifier: Apache-2.0
//
// Rows of CSV and NDJSON, from bytes to columns of values.
//
// Only plain rows are read: one line each, every value as it must be. At any other row reading
// stops, so that limen.cli.line_reader reads that one, with the same values, or says what is wrong
// with it. So nothing here words an error, and a file of plain rows never becomes Python objects.

#pragma once

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
    explicit JsonFields(std::vector<std::string> keys) : keys_(std::move(keys)) {}

    // Whether the line is an object in which every key is there.
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
        return at_ == end_ && std::all_of(found.begin(), found.end(), [](const Field& each) {
                   return each.kind != Field::missing;
               });
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
            found.kind = Field::other;
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
    const char *at_ = nullptr, *end_ = nullptr;
};

// ---- rows -----------------------------------------------------------------------------------

// What the fields of a row are, in this order: the score, then what of these is asked for, then
// the costs of outcomes.
struct RowParts {
    bool labelled = true, weighted = false, grouped = false;
    std::size_t costs = 0;
    std::optional<std::string> positive{};
    double finest = 0;   // a smaller weight would round to 0 units
    bool comma = false;  // numbers have a decimal comma

    std::size_t count() const { return 1 + labelled + weighted + grouped + costs; }
};

struct RowValues {
    double score = 0, weight = 0;
    int label = 0;
    std::string_view group{};
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
        if (parts_.grouped) codes.push(code_of(row.group));
        for (std::size_t each = 0; each < parts_.costs; ++each) costs[each].push(row.costs[each]);
    }

    const RowParts& parts() const { return parts_; }
    const std::deque<std::string>& names() const { return names_; }

    Grown<double> scores, weights;
    Grown<std::uint8_t> labels;
    Grown<std::uint32_t> codes;
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
        if (!number(*field++, row_.score) || std::isnan(row_.score)) return false;
        if (parts_.labelled) {
            row_.label = field->kind == Field::other ? -1 : rule_(field->value);
            if (row_.label < 0) return false;
            ++field;
        }
        if (parts_.weighted) {
            if (!number(*field++, row_.weight) || !std::isfinite(row_.weight)) return false;
            if (row_.weight != 0 && !(row_.weight >= parts_.finest)) return false;
        }
        if (parts_.grouped) {
            // A number with a point may be written in several ways, of which Python has its own.
            if (field->kind == Field::other ||
                (field->kind == Field::number && !is_whole(field->value)))
                return false;
            row_.group = field++->value;
            if (row_.group.empty()) return false;
        }
        for (double& cost : row_.costs)
            if (!number(*field++, cost) || !std::isfinite(cost)) return false;
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
