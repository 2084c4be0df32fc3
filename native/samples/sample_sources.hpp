// SPDX-License-Identifier: Apache-2.0
//
// Where the search for the cheapest cut takes its samples from: scores and labels, scores and
// z, or samples gathered before.
//
// Of sample i a source gives the key of its score, its z, and on which side of 0 that lies; it
// adds sample i to a Side of a bucket, and returns what such a side sums up to. As all z of a side
// have one sign, the sum is their positive part. No z need be laid out in memory for labels.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/bucket_map.hpp"
#include "core/isa.hpp"

namespace limen::select_detail {

// Samples are taken in blocks. The fixed count of a full one lets its loop be vectorised.
inline constexpr std::size_t block = 256;

struct Scores {
    const double* scores;
    std::size_t n;

    LIMEN_INLINE Key key(std::size_t i) const { return key_of(scores[i]); }

    // Whether samples can be taken as they are, but for a nan.
    static LIMEN_INLINE bool fine(std::size_t, std::size_t) { return true; }

    // How far the keys from place `first` on lie above `low`; keys outside of low..high count
    // as the nearer of the two, and nan as low. True when there was a nan.
    LIMEN_INLINE bool offsets(std::size_t first, std::size_t count, Key low, Key high,
                              std::uint64_t* out) const {
        const double lowest = score_of(low), highest = score_of(high);
        std::uint64_t nan = 0;
        for (std::size_t i = 0; i < count; ++i) {
            double score = scores[first + i];
            nan |= score != score ? 1u : 0u;
            score = score > lowest ? score : lowest;
            score = score < highest ? score : highest;
            out[i] = distance(low, key_of(score));
        }
        return nan != 0;
    }
};

struct Sum {
    std::int64_t z;
    std::size_t count;
};

// All samples of a label have the same z. Count holds n, and is narrow to keep buckets small.
template <class Count, class Label = std::uint8_t>
struct Labelled : Scores {
    const Label* labels;
    std::array<std::int64_t, 2> z_of;

    using Side = Count;
    LIMEN_INLINE std::size_t side(std::size_t i) const { return labels[i] != 0; }
    LIMEN_INLINE std::int64_t z(std::size_t i) const { return z_of[side(i)]; }
    LIMEN_INLINE void add(std::size_t, Side& to) const { ++to; }
    Sum sum(Side of, std::size_t side) const {
        return {static_cast<std::int64_t>(of) * z_of[side], static_cast<std::size_t>(of)};
    }
};

// Labels that nobody has looked at yet.
template <class Label>
struct Unread : Labelled<std::uint32_t, Label> {
    LIMEN_INLINE bool fine(std::size_t first, std::size_t count) const {
        std::uint64_t others = 0;
        for (std::size_t i = first; i < first + count; ++i)
            others |= static_cast<std::uint64_t>(this->labels[i]);
        return others <= 1;
    }
};

struct Weighed : Scores {
    const std::int64_t* zs;

    using Side = Sum;
    LIMEN_INLINE std::size_t side(std::size_t i) const { return zs[i] < 0; }
    LIMEN_INLINE std::int64_t z(std::size_t i) const { return zs[i]; }
    LIMEN_INLINE void add(std::size_t i, Side& to) const { to.z += zs[i], ++to.count; }
    Sum sum(const Side& of, std::size_t) const { return of; }
};

struct Sample {
    Key key;
    std::int64_t z;
};

struct Gathered {
    Sample* samples;
    std::size_t n;

    using Side = Sum;
    LIMEN_INLINE Key key(std::size_t i) const { return samples[i].key; }
    static LIMEN_INLINE bool fine(std::size_t, std::size_t) { return true; }
    LIMEN_INLINE std::size_t side(std::size_t i) const { return samples[i].z < 0; }
    LIMEN_INLINE std::int64_t z(std::size_t i) const { return samples[i].z; }
    LIMEN_INLINE void add(std::size_t i, Side& to) const { to.z += samples[i].z, ++to.count; }
    Sum sum(const Side& of, std::size_t) const { return of; }
    LIMEN_INLINE bool offsets(std::size_t first, std::size_t count, Key low, Key high,
                              std::uint64_t* out) const {
        for (std::size_t i = 0; i < count; ++i)
            out[i] = distance(low, std::clamp(samples[first + i].key, low, high));
        return false;
    }
};

}  // namespace limen::select_detail
