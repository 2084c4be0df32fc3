// SPDX-License-Identifier: Apache-2.0
//
// The bytes of the samples held, and back.
//
// Little-endian words: bits, samples, total, distinct, then score, below, above, count of each
// score in ascending order; then, where the sums do not show it, how many samples need exactly 1,
// 2,
// ... bits binary places; then, where they do not give the squares of some scores, for each of
// these its place and two sums of squares in two words each, the number of such scores and a word
// that says so.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "core/measure.hpp"
#include "core/units.hpp"
#include "core/wide.hpp"
#include "core/words.hpp"
#include "samples/held_sums.hpp"
#include "samples/squares.hpp"

namespace limen {

// What bytes say of samples, all but the tree of their scores.
struct HeldState {
    int bits = 0;
    std::size_t samples = 0;
    std::int64_t above = 0, total = 0;
    Wide summed = 0;
    std::vector<ScoreSums> held;
    bool has_places = false;  // else the sums do
    FractionBits places;
    std::vector<std::pair<std::uint64_t, Squares>>
        squares;  // by place, where sums do not give them
};

inline constexpr std::uint64_t squares_follow = 0xffff'7371'7561'7265;

// Losses and squares are written in `spare` places fewer than they are held in.
template <class Tree>
void put_scores(std::string& bytes, const Tree& tree, int spare) {
    bytes.reserve(bytes.size() + 8 * (4 * tree.distinct() + finest_bits));
    tree.scan([&](const ScoreSums& held) {
        put_word(bytes, std::bit_cast<std::uint64_t>(held.score));
        put_word(bytes, static_cast<std::uint64_t>(held.below >> spare));
        put_word(bytes, static_cast<std::uint64_t>(held.above >> spare));
        put_word(bytes, held.count);
    });
}

template <class Tree>
void put_squares(std::string& bytes, const Tree& tree, const SquaresOfTies& squares, int spare) {
    if (squares.size() == 0) return;
    std::uint64_t place = 0, ties = 0;
    tree.scan([&](const ScoreSums& held) {
        const std::uint64_t at = place++;
        const Squares* own = squares.kept(held.score);
        if (!own) return;
        put_word(bytes, at);
        for (const Wide sum : {own->below, own->above}) {
            put_word(bytes, static_cast<std::uint64_t>(sum >> 2 * spare));
            put_word(bytes, static_cast<std::uint64_t>(sum >> 2 * spare >> 64));
        }
        ++ties;
    });
    put_word(bytes, ties);
    put_word(bytes, squares_follow);
}

// One score out of its four words; false when no samples could have left it so.
inline bool get_held(const std::string& bytes, std::size_t i, ScoreSums& held) {
    const std::uint64_t score = get_word(bytes, 4 + 4 * i), count = get_word(bytes, 7 + 4 * i);
    held = {std::bit_cast<double>(score), static_cast<std::int64_t>(get_word(bytes, 5 + 4 * i)),
            static_cast<std::int64_t>(get_word(bytes, 6 + 4 * i)),
            static_cast<std::uint32_t>(count)};
    const bool minus_zero = score == std::bit_cast<std::uint64_t>(-0.0);
    const auto in_range = [](std::int64_t units) {
        return units < most_units && units > -most_units;
    };
    return held.score == held.score && !minus_zero && in_range(held.below) &&
           in_range(held.above) && count > 0 && count <= most_of_a_score &&
           (count > 1 || held.below != 0 || held.above != 0);
}

// The squares of one score out of five words; false when no samples could have left them so.
inline bool get_squares(const std::string& bytes, std::size_t word,
                        const std::vector<ScoreSums>& held,
                        std::vector<std::pair<std::uint64_t, Squares>>& out) {
    const std::uint64_t place = get_word(bytes, word);
    if (place >= held.size() || (!out.empty() && place <= out.back().first)) return false;
    const auto sum = [&](std::size_t at) {
        return static_cast<Wide>(WideUnsigned{get_word(bytes, at + 1)} << 64 | get_word(bytes, at));
    };
    const Squares squares{sum(word + 1), sum(word + 3)};
    const ScoreSums& of = held[place];
    const Squares most = square_of(of.below, of.above);
    if (of.count < 2 || squares.below < 0 || squares.above < 0 || squares.below > most.below ||
        squares.above > most.above)
        return false;
    out.emplace_back(place, squares);
    return true;
}

// False when the bytes describe nothing, or not what is one-sided where that is asked for.
inline bool get_state(const std::string& bytes, const Unit& unit, bool labelled, bool one_sided,
                      HeldState& out) {
    if (bytes.size() < 32 || bytes.size() % 8 != 0) return false;
    const std::uint64_t bits = get_word(bytes, 0), samples = get_word(bytes, 1),
                        total = get_word(bytes, 2), distinct = get_word(bytes, 3);
    std::size_t words = bytes.size() / 8 - 4, ties = 0;
    if (words > 0 && get_word(bytes, 3 + words) == squares_follow) {
        ties = get_word(bytes, 2 + words);
        if (!labelled || ties > distinct || 5 * ties + 2 > words) return false;
        words -= 5 * ties + 2;
    }
    if (bits > (unit.automatic ? finest_bits : 0) || distinct > words / 4 ||
        (words != 4 * distinct && words != 4 * distinct + bits) ||
        total >= static_cast<std::uint64_t>(most_units) ||
        (samples == 0 && (bits != 0 || total != 0)))
        return false;
    std::vector<ScoreSums>& held = out.held;
    held.resize(distinct);
    WideUnsigned counted = 0;
    Wide summed = 0, above = 0;
    for (std::size_t i = 0; i < distinct; ++i) {
        if (!get_held(bytes, i, held[i]) || (i && !(held[i - 1].score < held[i].score)))
            return false;
        if (one_sided && (held[i].below < 0 || held[i].above < 0 || size_of(held[i]) == 0))
            return false;
        counted += held[i].count;
        summed += size_of(held[i]);
        above += held[i].above;
        if (summed > static_cast<Wide>(total)) return false;
    }
    if (counted != samples || (one_sided && summed != static_cast<Wide>(total))) return false;
    WideUnsigned fine = 0;
    for (std::size_t i = 4 * distinct; i < words; ++i) {
        const std::uint64_t needing = get_word(bytes, 4 + i);
        if ((fine += needing) > samples) return false;
        out.places.add(static_cast<int>(i - 4 * distinct) + 1, needing);
    }
    for (std::size_t i = 0; i < ties; ++i)
        if (!get_squares(bytes, 4 + words + 5 * i, held, out.squares)) return false;
    out.bits = static_cast<int>(bits);
    out.samples = samples;
    out.above = static_cast<std::int64_t>(above);
    out.total = static_cast<std::int64_t>(total);
    out.summed = summed;
    out.has_places = words != 4 * distinct;
    return true;
}

}  // namespace limen
