// SPDX-License-Identifier: Apache-2.0
//
// What goes into a memory and comes out of it: settings, amounts, ids, results, columns.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "core/wide.hpp"
#include "memory/moment.hpp"
#include "samples/held_samples.hpp"

namespace limen {

// What a sample weighs, measured once and before any lock. With labels `first` is the weight;
// with losses `first` and `second` are those below and above the cut.
struct Amount {
    std::int64_t first = 1, second = 0;
    std::uint8_t bits = 0;  // whole numbers of 2^-bits, the fewest places that suffice; of a fixed
                            // unit 0. Over fading `real`, and the numbers are bits of doubles

    static constexpr std::uint8_t real = 255;

    bool operator==(const Amount&) const = default;
};

enum class Keep : std::uint8_t { all, last_n, last_period, fading };

struct MemorySettings {
    Keep keep = Keep::all;
    std::uint64_t n = 0;   // last_n: how many samples, at least 1
    Time period{};         // last_period: how far back; fading: the half-life
    bool by_time = false;  // fading: by time, else by the number of samples
    bool labelled = true;  // else samples have losses
    Costs costs{};         // what samples of a labelled model cost: those of its HeldSamples
    Costs account{};       // what answers cost: the same, but of a calibrator those of the ledger
    // With ids: when a score without a label, or a label without a score, is dropped; when a
    // negative begins to count; when an id is forgotten whose sample stays; how old a new id's
    // score may be. Without ids none of them may be given.
    std::optional<Time> time_to_live, maturity, correctable, horizon;
    std::optional<Time> max_ahead;  // how far after the newest time an event may be
    std::uint64_t at_least = 0;     // how many samples a group needs to answer for itself
};

// An id. The kinds are the caller's: ids of two kinds are never the same.
struct Id {
    static constexpr std::uint8_t number_kind = 0;  // `number` is the id; other kinds have bytes
    static constexpr std::uint8_t most_kinds = 8;

    std::uint8_t kind = number_kind;
    std::int64_t number = 0;
    const char* bytes = nullptr;
    std::uint32_t size = 0;

    static Id of(std::int64_t number) { return {number_kind, number, nullptr, 0}; }
    static Id of(std::uint8_t kind, const char* bytes, std::size_t size) {
        return {kind, 0, bytes, static_cast<std::uint32_t>(size)};
    }
};

// Below 0, 0 or above: by kind, then number or bytes.
inline int compare(const Id& a, const Id& b) {
    if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
    if (a.kind == Id::number_kind) return a.number < b.number ? -1 : a.number > b.number;
    const std::uint32_t shorter = a.size < b.size ? a.size : b.size;
    const int order = shorter ? std::memcmp(a.bytes, b.bytes, shorter) : 0;
    return order ? order : a.size < b.size ? -1 : a.size > b.size;
}

// Why nothing was changed.
enum class MemoryRefusal : std::uint8_t {
    none,
    too_large,    // the sum of all losses would reach 2^62 units
    too_many,     // 2^32 samples of one score, or 2^32 - 2 entries
    far_time,     // so far from zero that no period before it can be represented, or too many
                  // half-lives
    other_score,  // the id has another score or weight, or group
    no_time,      // earlier scores have a time
    some_time,    // earlier scores have none and count as one step each
    not_alike,    // merge: other settings
    same_id,      // merge: an id that both know
    other_as_of,  // merge: labels are as of another kind of times
    not_merged,   // merge: the order in which samples came is unknown
};

struct Result {
    MemoryRefusal refusal = MemoryRefusal::none;  // else nothing was changed
    bool yes = true;      // update: whether it counts; score: whether it is recorded, now or
                          // before; label: whether the id has a score; forget: whether there was
                          // such an id
    int answer = 0;       // score
    std::size_t row = 0;  // of a batch: where the refusal is
    double score = 0;     // other_score: what the id has
    Amount amount{};
    std::uint32_t group = 0;
};

// Samples, scores or labels of a batch, in columns. What is null is the same for all rows.
struct BatchColumns {
    std::size_t rows = 0;
    const Id* ids = nullptr;
    const double* scores = nullptr;
    const std::uint8_t* labels = nullptr;  // with losses null
    const std::int64_t* firsts = nullptr;  // amounts; null: 1, and 0
    const std::int64_t* seconds = nullptr;
    const std::uint8_t* bits = nullptr;
    const std::int64_t* times = nullptr;       // or as_of of labels; null: none
    const std::uint8_t* times_real = nullptr;  // null: all whole
    const std::int8_t* answers = nullptr;      // -1: by the threshold; null: all -1
    const std::uint32_t* groups = nullptr;     // null: all 0

    Amount amount(std::size_t i) const {
        return {firsts ? firsts[i] : 1, seconds ? seconds[i] : 0, bits ? bits[i] : std::uint8_t{0}};
    }
    bool label(std::size_t i) const { return labels && labels[i] != 0; }
    Time time(std::size_t i) const { return {times[i], times_real && times_real[i] != 0}; }
};

// What is known of an entry. The values are stored.
enum class EntryState : std::uint8_t {
    waiting = 0,  // a label without a score
    open = 1,     // a score without a label
    young = 2,    // both, but a negative that is too young to be trusted
    held = 3,     // both, and the model holds the sample
    empty = 4,    // both, but the sample costs nothing on either side, and no model holds such
    gone = 5,     // nothing: its place is free
};

// All of a memory but its settings and the samples of its model, in columns: equal memories
// have equal columns, whatever their history. First come the entries that have an id, ascending
// by kind, then number or bytes; then those that have none (any more).
struct MemoryColumns {
    // Ids: a kind each; of kind 0 the number, of others the bytes from the last end up to its own.
    std::vector<std::uint8_t> id_kinds;
    std::vector<std::int64_t> id_numbers;
    std::vector<std::uint64_t> id_ends;
    std::string id_bytes;

    std::vector<std::uint8_t> states, answers, labels;  // label 2: none yet
    std::vector<double> scores;
    std::vector<std::int64_t> times;
    std::vector<std::uint8_t> time_kinds;  // 0 whole, 1 double, 2 none
    // Of amounts: empty where all are 1. With losses, those of an entry without a label are 0.
    std::vector<std::int64_t> firsts, seconds;
    std::vector<std::uint8_t> bits;
    // last_n: in which order samples leave, from 0. fading by number: how many came before. Else
    // empty; -1 for entries that have no place.
    std::vector<std::int64_t> places;
    // last_n and fading by number, with maturity: in which order entries of one time come of age;
    // else empty.
    std::vector<std::int64_t> turns;
    std::vector<std::int64_t> as_of;  // empty where no label has one
    std::vector<std::uint8_t> as_of_kinds;
    std::vector<std::uint32_t> groups;  // empty where all are 0

    std::optional<Time> newest, origin;  // origin: of fading by time
    std::optional<Time> dropped;         // last_n with a horizon: newest time that left by number
    std::optional<bool> counts;          // whether scores come without times
    std::uint64_t expired = 0, refused = 0, count = 0;  // count: of fading by number
    Wide cost = 0, ever = 0;                            // in 2^-sum_bits units
    double spent = 0, spent_at = 0;                     // fading
    std::vector<std::optional<std::int64_t>> bases;     // fading: of each group

    bool operator==(const MemoryColumns&) const = default;
    std::size_t rows() const { return states.size(); }
    std::size_t known() const { return id_kinds.size(); }
};

// How many entries are in which state.
struct StateCounts {
    std::size_t waiting = 0, open = 0, young = 0, held = 0, empty = 0;
};

// Measure a weight or a loss, for a memory of this kind. `word` and `bits` belong in an Amount,
// whose bits are the most of both numbers (align() does that).
template <class Number>
Refusal measure_amount(Number value, const Unit& unit, std::int64_t cost, Keep keep,
                       std::int64_t& word, std::uint8_t& bits) {
    const Measure measure(unit);
    const int needed = measure.bits_for(value);
    std::int64_t units = 0, whole = 0;
    Refusal refusal = measure.measure(value, cost, needed, units);
    if (refusal == Refusal::none) refusal = measure.measure(value, 1, needed, whole);
    if (refusal != Refusal::none) return refusal;
    if (keep == Keep::fading) {
        word = std::bit_cast<std::int64_t>(static_cast<double>(value));
        bits = Amount::real;
    } else {
        word = whole;
        bits = static_cast<std::uint8_t>(needed);
    }
    return Refusal::none;
}

// Two losses, each measured in its own places, in the places that both need. False when that is
// too large.
inline bool align(std::int64_t below, std::uint8_t below_bits, std::int64_t above,
                  std::uint8_t above_bits, Amount& amount) {
    if (below_bits == Amount::real) {
        amount = {below, above, Amount::real};
        return true;
    }
    const std::uint8_t bits = below_bits > above_bits ? below_bits : above_bits;
    const auto shifted = [](std::int64_t units, int by, std::int64_t& out) {
        return !__builtin_mul_overflow(units, std::int64_t{1} << by, &out) && out < most_units &&
               out > -most_units;
    };
    amount.bits = bits;
    return shifted(below, bits - below_bits, amount.first) &&
           shifted(above, bits - above_bits, amount.second);
}

}  // namespace limen
