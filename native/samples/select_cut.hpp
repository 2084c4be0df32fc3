// SPDX-License-Identifier: Apache-2.0
//
// The cheapest cut of whole arrays, without sorting them.
//
// A sample has a score and z = above - below in whole units. The value of a cut is the sum of
// z below it: what the cut saves against predicting all positive. The cheapest cut is the one
// of highest value, and of several the highest cut. Equal scores are never separated.
//
// select_cut    O(n): two passes over the scores, now and then a third. O(n log n) at worst
// first_nan     O(n)
// memory        16 bytes for each sample that could not be ruled out: a few per cent of them,
//               or all of them when cuts everywhere are about equally good; at worst four times
//               over, when scores cluster within clusters. Below a megabyte for the buckets
//
// A monotone map sends scores to buckets, and a bucket is summed up by its z and by the positive
// part of it. No cut inside a bucket is worth more than the cut at its start plus that positive
// part, so most buckets are ruled out unseen; the others are searched one by one.
//
// Scores may be infinite; -0.0 is 0.0. A nan is reported, and then nothing else holds. The
// absolute values of all z must add up to less than 2^62.
//
// The interpreter is not held, so another thread may change scores and labels between two
// passes. Then the answer is that of no array, but whatever a later pass finds, it stays within
// the room that an earlier one has measured.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/bucket_map.hpp"
#include "core/cut.hpp"
#include "core/isa.hpp"
#include "samples/sample_sources.hpp"

namespace limen {

// The best cut, by the sum of z below it.
struct SelectedCut : Cut {
    std::size_t nan_at = 0;     // place of the first nan, n when there is none
    bool refused = false;       // a nan, or a label that is neither 0 nor 1; nothing else holds
    std::int64_t positive = 0;  // the sum of all positive z
};

// Sizes measured to be fast. Tests choose tiny ones, so that rare paths become common.
struct SelectTuning {
    std::size_t sort_below = 512;     // up to this many samples are sorted
    std::size_t bucket_size = 64;     // samples per bucket to aim at,
    std::size_t max_buckets = 16384;  // while their sums fit into the second-level cache
    std::size_t max_drawn = 1024;     // samples drawn to learn how the scores are spread
    int max_depth = 4;                // buckets of buckets; beyond that, sorting
};

namespace select_detail {

// A loop over samples, compiled for an instruction set.
template <class Loop>
auto run(Isa isa, const Loop& loop) {
    return with_isa(isa, [&](auto) { return loop(); });
}

// The best cut so far. Keys below `at` lie below the cut. No `at` belongs to two cuts, so that
// comparing them finds the higher cut, however either was found.
struct BestCut {
    std::int64_t value = 0;
    Key at = key_of(-std::numeric_limits<double>::infinity());
    Key lower = before_all;       // the highest score below the cut,
    bool has_neighbours = false;  // if known; then `at` is the lowest above it

    bool beaten_by(std::int64_t other, Key other_at) const {
        return other > value || (other == value && other_at > at);
    }
    void offer(std::int64_t other, Key other_at) {
        if (beaten_by(other, other_at)) *this = {other, other_at, before_all, false};
    }
};

// The keys of `wanted` samples in order: one from every stretch of equal length, at a place in
// it that no order of arrival is likely to follow.
template <class Source>
std::vector<Key> draw(const Source& source, std::size_t wanted) {
    const std::size_t stretch = source.n / wanted;
    std::vector<Key> drawn;
    drawn.reserve(wanted);
    std::uint64_t state = 1;
    for (std::size_t j = 0; j < wanted; ++j) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::size_t i = j * stretch + static_cast<std::size_t>((state >> 33) % stretch);
        if (const Key key = source.key(i); is_score(key)) drawn.push_back(key);
    }
    if (drawn.empty()) drawn.push_back(key_of(0.0));
    std::sort(drawn.begin(), drawn.end());
    return drawn;
}

// Adds every sample to its side of its bucket; false when it met one that cannot be taken.
template <class Source>
struct Tally {
    const Source& source;
    const BucketMap& map;
    typename Source::Side* sides;

    LIMEN_INLINE bool operator()() const {
        const Source from = source;
        const auto* const cells = map.cells.data();
        const std::uint32_t shift = map.shift;
        const Key low = map.low, high = map.high;
        std::uint64_t offset[block];
        for (std::size_t first = 0; first < from.n; first += block) {
            const std::size_t count = std::min(block, from.n - first);
            if (count == block ? from.offsets(first, block, low, high, offset)
                               : from.offsets(first, count, low, high, offset))
                return false;
            if (count == block ? !from.fine(first, block) : !from.fine(first, count)) return false;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t b = BucketMap::bucket(cells, shift, offset[i]);
                from.add(first + i, sides[2 * b + from.side(first + i)]);
            }
        }
        return true;
    }
};

// A bucket that may hold the best cut, and where its samples are put.
struct Survivor {
    std::size_t bucket;
    std::int64_t value, bound;  // of the cut at its start; of any cut inside, at most
    std::size_t begin, end;     // its samples among those copied,
    std::size_t limit;          // and where its room ends
    Key common;
    std::int64_t common_z;
};

inline constexpr std::uint32_t nowhere = ~std::uint32_t{0};

// Copies out the samples of all survivors. Those of a common score are added up instead: a
// bucket of equal scores would never grow smaller.
template <class Source>
struct Gather {
    const Source& source;
    const BucketMap& map;
    const std::uint32_t* place;  // of a bucket among the survivors, or `nowhere`
    std::vector<Survivor>& survivors;
    Sample* out;

    LIMEN_INLINE bool operator()() const {
        const Source from = source;
        const auto* const cells = map.cells.data();
        const std::uint32_t shift = map.shift;
        const Key low = map.low, high = map.high;
        Survivor* const all = survivors.data();
        const Key end = map.starts[survivors.back().bucket + 1];
        const std::uint64_t near = distance(low, map.starts[survivors.front().bucket]);
        const std::uint64_t width = distance(low, std::min(high, end - 1)) - near;
        std::uint64_t offset[block];
        std::uint32_t kept[block], places[block];
        for (std::size_t first = 0; first < from.n; first += block) {
            const std::size_t count = std::min(block, from.n - first);
            if (count == block)
                from.offsets(first, block, low, high, offset);
            else
                from.offsets(first, count, low, high, offset);
            // Write always and step on when it counts: a branch here would be a guess.
            std::uint32_t maybe = 0, sure = 0;
            for (std::uint32_t i = 0; i < count; ++i) {
                kept[maybe] = i;
                maybe += offset[i] - near <= width;
            }
            for (std::uint32_t i = 0; i < maybe; ++i) {
                const std::uint32_t at = kept[i];
                kept[sure] = at;
                places[sure] = place[BucketMap::bucket(cells, shift, offset[at])];
                sure += places[sure] != nowhere;
            }
            for (std::uint32_t i = 0; i < sure; ++i) {
                Survivor& survivor = all[places[i]];
                const Sample sample = {from.key(first + kept[i]), from.z(first + kept[i])};
                if (sample.key == survivor.common)
                    survivor.common_z += sample.z;
                else if (survivor.end < survivor.limit)  // unless scores were changed meanwhile
                    out[survivor.end++] = sample;
            }
        }
        return true;
    }
};

// Few samples, as a bucket has them, are mostly spread evenly: counting brings each near its
// place and insertion does the rest.
inline constexpr std::size_t few = 512;

inline bool sort_few(const Sample* samples, std::size_t n, Sample* sorted) {
    Key low = past_all, high = before_all;
    for (std::size_t i = 0; i < n; ++i) {
        low = std::min(low, samples[i].key);
        high = std::max(high, samples[i].key);
    }
    const std::uint64_t range = distance(low, high);
    const int shift = std::max(0, width_of(range) - width_of(n - 1));
    std::array<std::uint16_t, few + 1> next = {};
    for (std::size_t i = 0; i < n; ++i) ++next[(distance(low, samples[i].key) >> shift) + 1];
    for (std::size_t b = 0; b <= range >> shift; ++b) {
        if (next[b + 1] > 24) return false;  // uneven, and insertion is slow
        next[b + 1] = static_cast<std::uint16_t>(next[b + 1] + next[b]);
    }
    for (std::size_t i = 0; i < n; ++i)
        sorted[next[distance(low, samples[i].key) >> shift]++] = samples[i];
    for (std::size_t i = 1; i < n; ++i) {
        const Sample sample = sorted[i];
        std::size_t j = i;
        for (; j > 0 && sorted[j - 1].key > sample.key; --j) sorted[j] = sorted[j - 1];
        sorted[j] = sample;
    }
    return true;
}

// Offers all cuts of these samples but the one at their start, which is worth `value`. No other
// key lies between theirs, nor between theirs and `end`.
inline void search_sorted(Sample* samples, std::size_t n, std::int64_t value, Key end,
                          BestCut& best) {
    Sample sorted[few];
    if (n > 16 && n <= few && sort_few(samples, n, sorted))
        samples = sorted;
    else
        std::sort(samples, samples + n,
                  [](const Sample& a, const Sample& b) { return a.key < b.key; });
    for (std::size_t i = 0; i < n; ++i) {
        value += samples[i].z;
        if (i + 1 == n)
            best.offer(value, end);
        else if (const Key at = samples[i + 1].key;
                 at != samples[i].key && best.beaten_by(value, at))
            best = {value, at, samples[i].key, true};
    }
}

// The same without sorting, and the sum of all positive z; false when it met a sample that cannot
// be taken. Needs two samples.
template <class Source>
bool search(const Source& source, std::int64_t value, Key end, BestCut& best,
            std::int64_t& positive, const SelectTuning& tuning, Isa isa, int depth = 1) {
    const auto to_draw = std::clamp<std::size_t>(source.n / 16, 2, tuning.max_drawn);
    const auto wanted =
        std::clamp<std::size_t>(source.n / tuning.bucket_size, 2, tuning.max_buckets);
    const BucketMap map(draw(source, to_draw), wanted, end);
    std::vector<typename Source::Side> sides(2 * map.size());
    if (!run(isa, Tally<Source>{source, map, sides.data()})) return false;

    std::int64_t start = value;
    for (std::size_t b = 0; b < map.size(); ++b) {
        positive += source.sum(sides[2 * b], 0).z;
        start += source.sum(sides[2 * b], 0).z + source.sum(sides[2 * b + 1], 1).z;
        best.offer(start, map.starts[b + 1]);
    }
    std::vector<Survivor> survivors;
    std::size_t total = 0;
    start = value;
    for (std::size_t b = 0; b < map.size(); ++b) {
        const Sum some = source.sum(sides[2 * b], 0), others = source.sum(sides[2 * b + 1], 1);
        const std::int64_t bound =
            start + std::max<std::int64_t>(some.z, 0) + std::max<std::int64_t>(others.z, 0);
        const std::size_t count = some.count + others.count;
        if (count > 1 && best.beaten_by(bound, map.starts[b + 1] - 1)) {
            survivors.push_back({b, start, bound, total, total, total + count, map.common[b], 0});
            total += count;
        }
        start += some.z + others.z;
    }
    if (survivors.empty()) return true;

    std::vector<std::uint32_t> place(map.size(), nowhere);
    for (std::size_t j = 0; j < survivors.size(); ++j)
        place[survivors[j].bucket] = static_cast<std::uint32_t>(j);
    const auto samples = std::make_unique_for_overwrite<Sample[]>(total);
    run(isa, Gather<Source>{source, map, place.data(), survivors, samples.get()});

    std::sort(survivors.begin(), survivors.end(),
              [](const Survivor& a, const Survivor& b) { return a.bound > b.bound; });
    std::int64_t ignored = 0;
    for (Survivor& survivor : survivors) {
        const Key stop = map.starts[survivor.bucket + 1];
        if (!best.beaten_by(survivor.bound, stop - 1)) continue;
        if (survivor.common != past_all && survivor.end < survivor.limit)
            samples[survivor.end++] = {survivor.common, survivor.common_z};
        const Gathered inside = {&samples[survivor.begin], survivor.end - survivor.begin};
        if (inside.n < 2 || inside.n <= tuning.sort_below || depth == tuning.max_depth)
            search_sorted(inside.samples, inside.n, survivor.value, stop, best);
        else
            search(inside, survivor.value, stop, best, ignored, tuning, isa, depth + 1);
    }
    return true;
}

// The scores next to a cut of which only `at` is known. Keys cannot be before_all or past_all.
struct Neighbours {
    const double* scores;
    std::size_t n;
    Key at;

    LIMEN_INLINE std::array<Key, 2> operator()() const {
        constexpr std::size_t lanes = 16;  // independent, to be vectorised
        Key lower[lanes], upper[lanes];
        std::fill_n(lower, lanes, before_all);
        std::fill_n(upper, lanes, past_all);
        std::size_t i = 0;
        for (; i + lanes <= n; i += lanes)
            for (std::size_t j = 0; j < lanes; ++j) narrow(scores[i + j], lower[j], upper[j]);
        for (; i < n; ++i) narrow(scores[i], lower[0], upper[0]);
        return {*std::max_element(lower, lower + lanes), *std::min_element(upper, upper + lanes)};
    }

    LIMEN_INLINE void narrow(double score, Key& lower, Key& upper) const {
        const Key key = key_of(score);
        const Key below = key < at ? key : before_all, above = key < at ? past_all : key;
        lower = below > lower ? below : lower;
        upper = above < upper ? above : upper;
    }
};

struct FirstNan {
    const double* scores;
    std::size_t n;

    LIMEN_INLINE std::size_t operator()() const {
        std::size_t i = 0;
        for (; i + block <= n; i += block) {
            std::uint64_t nan = 0;
            for (std::size_t j = 0; j < block; ++j) nan |= scores[i + j] != scores[i + j] ? 1u : 0u;
            if (nan) break;
        }
        while (i < n && scores[i] == scores[i]) ++i;
        return i;
    }
};

template <class Source>
SelectedCut select(const Source& source, const SelectTuning& tuning, Isa isa) {
    const std::size_t n = source.n;
    SelectedCut cut;
    BestCut best;
    if (n < 2 || n <= tuning.sort_below) {
        std::vector<Sample> samples(n);
        for (std::size_t i = 0; i < n; ++i) {
            samples[i] = {source.key(i), source.z(i)};
            cut.refused |= !is_score(samples[i].key) || !source.fine(i, 1);
            cut.positive += samples[i].z > 0 ? samples[i].z : 0;
        }
        search_sorted(samples.data(), n, 0, past_all, best);
    } else {
        cut.refused = !search(source, 0, past_all, best, cut.positive, tuning, isa);
    }
    cut.nan_at = cut.refused ? run(isa, FirstNan{source.scores, n}) : n;
    if (cut.refused) return cut;
    std::array<Key, 2> sides = {best.lower, best.at};
    if (!best.has_neighbours) sides = run(isa, Neighbours{source.scores, n, best.at});
    cut.best = best.value;
    cut.has_lower = sides[0] != before_all;
    cut.has_upper = sides[1] != past_all;
    if (cut.has_lower) cut.lower = score_of(sides[0]);
    if (cut.has_upper) cut.upper = score_of(sides[1]);
    return cut;
}

}  // namespace select_detail

// The place of the first nan, n when there is none.
inline std::size_t first_nan(const double* scores, std::size_t n, Isa isa = active_isa()) {
    return select_detail::run(isa, select_detail::FirstNan{scores, n});
}

// Labels are 0 or 1; all samples of a label have the same z.
inline SelectedCut select_cut(const double* scores, const std::uint8_t* labels, std::size_t n,
                              std::int64_t z_of_0, std::int64_t z_of_1,
                              const SelectTuning& tuning = {}, Isa isa = active_isa()) {
    using namespace select_detail;
    if (n <= std::numeric_limits<std::uint32_t>::max())
        return select(Labelled<std::uint32_t>{{scores, n}, labels, {z_of_0, z_of_1}}, tuning, isa);
    return select(Labelled<std::uint64_t>{{scores, n}, labels, {z_of_0, z_of_1}}, tuning, isa);
}

// The same for labels of any whole type that nobody has looked at; n < 2^32.
template <class Label>
SelectedCut select_unread(const double* scores, const Label* labels, std::size_t n,
                          std::int64_t z_of_0, std::int64_t z_of_1, const SelectTuning& tuning = {},
                          Isa isa = active_isa()) {
    using namespace select_detail;
    return select(Unread<Label>{{{scores, n}, labels, {z_of_0, z_of_1}}}, tuning, isa);
}

inline SelectedCut select_cut(const double* scores, const std::int64_t* z, std::size_t n,
                              const SelectTuning& tuning = {}, Isa isa = active_isa()) {
    using namespace select_detail;
    return select(Weighed{{scores, n}, z}, tuning, isa);
}

}  // namespace limen
