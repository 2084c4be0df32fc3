// SPDX-License-Identifier: Apache-2.0
//
// Whole columns: measured in units, turned into rows to hold, or searched for the cheapest cut.
//
// Everything O(n). Nothing here changes what is held; the first thing that is wrong with a
// column is reported with its place, and then nothing else holds.
//
// Another thread may change the columns while they are read. Then rows are of no use to anybody,
// but each is one that could have been given: no pass relies on what an earlier one has seen.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "samples/held_samples.hpp"
#include "samples/samples.hpp"
#include "samples/select_cut.hpp"

namespace limen {

// Weights or losses as they were given: whole numbers, numbers, or neither (1 each).
struct Column {
    const char* name;
    const std::int64_t* whole = nullptr;
    const double* real = nullptr;

    bool ones() const { return !whole && !real; }
    template <class Visit>
    auto with(Visit&& visit) const {
        return whole ? visit(whole) : visit(real);
    }
};

inline Trouble find_nan(const double* scores, std::size_t n) {
    const std::size_t at = first_nan(scores, n);
    return at == n ? Trouble{} : Trouble{Trouble::nan_score, at, "scores"};
}

// What is not finite, or negative where that is refused; and the binary places needed.
inline Trouble survey(const Column& column, std::size_t n, bool negative_too, const Measure& in,
                      int& bits) {
    return column.with([&](const auto* values) -> Trouble {
        for (std::size_t i = 0; i < n; ++i) {
            const double value = static_cast<double>(values[i]);
            if (!std::isfinite(value)) return {Trouble::not_finite, i, column.name, value};
            if (value < 0 && !negative_too) return {Trouble::negative, i, column.name, value};
            if (!is_whole(value)) bits = std::max(bits, in.bits_for(value));
        }
        return {};
    });
}

inline Trouble measure(const Column& column, std::size_t n, int bits, const Measure& in,
                       std::vector<std::int64_t>& units) {
    units.resize(n);
    return column.with([&](const auto* values) -> Trouble {
        for (std::size_t i = 0; i < n; ++i) {
            const Refusal refusal = in.measure(values[i], 1, bits, units[i]);
            if (refusal == Refusal::none) continue;
            const double value = static_cast<double>(values[i]);
            if (refusal == Refusal::lost) return {Trouble::lost, i, column.name, value};
            double size = 0;
            for (std::size_t j = 0; j < n; ++j) size += std::fabs(static_cast<double>(values[j]));
            return {Trouble::too_large, i, column.name, value, size, bits};
        }
        return {};
    });
}

// z of labelled samples: weight * cost, above the cut for label 0 and below it for label 1.
inline Trouble labelled_z(const std::uint8_t* labels, std::size_t n, const Column& weights,
                          const Costs& costs, const Measure& in, int& bits,
                          std::vector<std::int64_t>& z) {
    if (n == 0) return {};  // not even a weight of 1 is there to be measured
    if (weights.ones()) {
        constexpr std::int64_t one = 1;
        std::vector<std::int64_t> units;
        if (Trouble found = measure({weights.name, &one}, 1, bits, in, units)) return found;
        z.assign(n, units[0]);
    } else {
        if (Trouble found = survey(weights, n, false, in, bits)) return found;
        if (Trouble found = measure(weights, n, bits, in, z)) {
            found.size *= static_cast<double>(std::max(costs.false_positive, costs.false_negative));
            return found;
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t cost = labels[i] ? -costs.false_negative : costs.false_positive;
        const double size = static_cast<double>(z[i]) * std::fabs(static_cast<double>(cost));
        if (__builtin_mul_overflow(z[i], cost, &z[i]) || z[i] >= most_units || z[i] <= -most_units)
            return {
                Trouble::too_large, i, weights.name, 0, size * unit_size(in.unit(), bits), bits};
    }
    return {};
}

inline Trouble both_losses(const Column (&columns)[2], std::size_t n, const Measure& in, int& bits,
                           std::vector<std::int64_t> (&units)[2]) {
    for (const Column& column : columns)
        if (Trouble found = survey(column, n, true, in, bits)) return found;
    for (int i = 0; i < 2; ++i)
        if (Trouble found = measure(columns[i], n, bits, in, units[i])) return found;
    return {};
}

// ---- rows to hold; samples without any loss are left out ----

inline Trouble labelled_rows(const double* scores, const std::uint8_t* labels, std::size_t n,
                             const Column& weights, const Costs& costs, const Measure& in,
                             int& bits, std::vector<SignedRow>& rows) {
    std::vector<std::int64_t> z;
    if (Trouble found = find_nan(scores, n)) return found;
    if (Trouble found = labelled_z(labels, n, weights, costs, in, bits, z)) return found;
    rows.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double score = scores[i];
        if (score != score) return {Trouble::nan_score, i, "scores"};
        if (z[i] != 0) rows.push_back({ordered_bits(score), z[i]});
    }
    return {};
}

// The same for samples that weigh 1, which need no row each; nothing where one of them would be
// refused or there are none: labelled_rows says why. What they cost is measured later.
inline std::optional<LabelledScores> labelled_scores(const double* scores,
                                                     const std::uint8_t* labels, std::size_t n) {
    if (n == 0) return {};
    LabelledScores held(n, 0, 0);
    for (std::size_t i = 0; i < n; ++i) {
        const double score = scores[i];
        if (score != score) return {};
        held.put(score, labels[i] != 0);
    }
    return held;
}

// False where that is refused.
inline bool measure_ones(LabelledScores& samples, const Costs& costs, const Measure& in, int bits) {
    std::int64_t z_of_0 = 0, z_of_1 = 0;
    if (in.measure(std::int64_t{1}, costs.false_positive, bits, z_of_0) != Refusal::none ||
        in.measure(std::int64_t{1}, costs.false_negative, bits, z_of_1) != Refusal::none)
        return false;
    samples.set_losses(z_of_0, z_of_1);
    return true;
}

inline Trouble loss_rows(const double* scores, std::size_t n, const Column (&columns)[2],
                         const Measure& in, int& bits, std::vector<LossRow>& rows) {
    std::vector<std::int64_t> units[2];
    if (Trouble found = find_nan(scores, n)) return found;
    if (Trouble found = both_losses(columns, n, in, bits, units)) return found;
    rows.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double score = scores[i];
        if (score != score) return {Trouble::nan_score, i, "scores"};
        if (units[0][i] != 0 || units[1][i] != 0)
            rows.push_back({ordered_bits(score), {units[0][i], units[1][i]}});
    }
    return {};
}

// About the sum of the absolute losses of the rows, in the numbers given.
template <class Row>
double size_of(const std::vector<Row>& rows, const Unit& unit, int bits) {
    double size = 0;
    for (const Row& row : rows)
        size += std::fabs(static_cast<double>(row.below())) +
                std::fabs(static_cast<double>(row.above()));
    return size * unit_size(unit, bits);
}

// ---- the cheapest cut of the columns ----

struct Selection {
    Trouble trouble;
    SelectedCut cut;
    std::int64_t loss = 0;
    int bits = 0;
};

// `above` is the loss of the cut below everything, `total` the sum of all absolute losses.
inline bool sums_fit(Selection& found, Wide above, Wide total, const Unit& unit) {
    found.loss = static_cast<std::int64_t>(above);
    if (total < most_units) return true;
    const double size = static_cast<double>(total) * unit_size(unit, found.bits);
    found.trouble = {Trouble::too_large, 0, "", 0, size, found.bits};
    return false;
}

inline void finish(Selection& found, const SelectedCut& cut, std::size_t n) {
    found.cut = cut;
    found.loss -= cut.best;
    if (cut.nan_at < n) found.trouble = {Trouble::nan_score, cut.nan_at, "scores"};
}

// Rows of no loss are left out: their scores take no part.
inline void select_rows(Selection& found, const double* scores, std::vector<std::int64_t>& z,
                        const std::vector<std::uint8_t>& idle) {
    std::size_t used = 0;
    std::vector<double> kept;
    for (std::size_t i = 0; i < z.size(); ++i) {
        if (idle[i] && kept.empty()) kept.assign(scores, scores + z.size());
        if (idle[i]) continue;
        if (!kept.empty()) kept[used] = scores[i];
        z[used++] = z[i];
    }
    finish(found, select_cut(kept.empty() ? scores : kept.data(), z.data(), used), used);
}

inline Selection select_labelled(const double* scores, const std::uint8_t* labels, std::size_t n,
                                 const Column& weights, const Costs& costs, const Measure& in) {
    Selection found;
    std::int64_t one = 0;
    if (weights.ones() && in.measure(std::int64_t{1}, 1, 0, one) == Refusal::none) {
        std::size_t ones = 0;
        for (std::size_t i = 0; i < n; ++i) ones += labels[i] != 0;
        const Wide above = Wide{one} * costs.false_positive * static_cast<Wide>(n - ones);
        const Wide below = Wide{one} * costs.false_negative * static_cast<Wide>(ones);
        if (!sums_fit(found, above, above + below, in.unit())) return found;
        // What no sample costs may be any size, and is 0 as well.
        const std::int64_t z_of_0 = ones < n ? one * costs.false_positive : 0;
        const std::int64_t z_of_1 = ones > 0 ? -one * costs.false_negative : 0;
        finish(found, select_cut(scores, labels, n, z_of_0, z_of_1), n);
        return found;
    }
    std::vector<std::int64_t> z;
    found.trouble = find_nan(scores, n);
    if (!found.trouble) found.trouble = labelled_z(labels, n, weights, costs, in, found.bits, z);
    if (found.trouble) return found;
    Wide above = 0, total = 0;
    std::vector<std::uint8_t> idle(n);
    for (std::size_t i = 0; i < n; ++i) {
        above += z[i] > 0 ? z[i] : 0;
        total += z[i] > 0 ? z[i] : -z[i];
        idle[i] = z[i] == 0;
    }
    if (sums_fit(found, above, total, in.unit())) select_rows(found, scores, z, idle);
    return found;
}

// The same for samples that weigh 1 and labels that nobody has looked at, in as few passes as there
// are; nothing where something is wrong with them or they are none: select_labelled says what.
template <class Label>
std::optional<Selection> select_unread(const double* scores, const Label* labels, std::size_t n,
                                       const Costs& costs, const Measure& in) {
    std::int64_t one = 0;
    if (n == 0 || n > std::numeric_limits<std::uint32_t>::max() ||
        in.measure(std::int64_t{1}, 1, 0, one) != Refusal::none)
        return {};
    const Wide most = std::max(costs.false_positive, costs.false_negative);
    if (one * most * static_cast<Wide>(n) >= most_units) return {};
    const SelectedCut cut =
        select_unread(scores, labels, n, one * costs.false_positive, -one * costs.false_negative);
    if (cut.refused) return {};
    Selection found;
    found.loss = cut.positive;
    finish(found, cut, n);
    return found;
}

inline Selection select_any(const double* scores, std::size_t n, const Column (&columns)[2],
                            const Measure& in) {
    Selection found;
    std::vector<std::int64_t> units[2];
    found.trouble = find_nan(scores, n);
    if (!found.trouble) found.trouble = both_losses(columns, n, in, found.bits, units);
    if (found.trouble) return found;
    Wide above = 0, total = 0;
    std::vector<std::uint8_t> idle(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t low = units[0][i], high = units[1][i];
        above += high;
        total += Wide{low < 0 ? -low : low} + (high < 0 ? -high : high);
        idle[i] = low == 0 && high == 0;
    }
    if (!sums_fit(found, above, total, in.unit())) return found;
    for (std::size_t i = 0; i < n; ++i) units[1][i] -= units[0][i];
    select_rows(found, scores, units[1], idle);
    return found;
}

}  // namespace limen
