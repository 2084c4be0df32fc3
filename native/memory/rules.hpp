// SPDX-License-Identifier: Apache-2.0
//
// What the settings of a memory mean: for how long samples are kept, and what their amounts cost.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/measure.hpp"
#include "memory/terms.hpp"

namespace limen {

class MemoryRules {
protected:
    explicit MemoryRules(const MemorySettings& settings) : settings_(settings) {}

    bool fading() const { return settings_.keep == Keep::fading; }
    bool by_number() const { return fading() && !settings_.by_time; }
    bool fading_by_time() const { return fading() && settings_.by_time; }
    bool last_n() const { return settings_.keep == Keep::last_n; }
    bool last_period() const { return settings_.keep == Keep::last_period; }

    // Whether an id may be forgotten in the course of a batch, and come again.
    bool forgets_ids() const {
        return last_n() || last_period() || settings_.time_to_live || settings_.correctable;
    }

    // ---- amounts ----

    // In as few places as it needs; over fading as doubles.
    static Amount normal(Amount amount, const MemorySettings& settings) {
        if (settings.keep == Keep::fading) {
            if (amount.bits == Amount::real) return amount;
            const auto real = [&](std::int64_t units) {
                return std::bit_cast<std::int64_t>(
                    std::ldexp(static_cast<double>(units), -amount.bits));
            };
            return {real(amount.first), real(amount.second), Amount::real};
        }
        while (amount.bits > 0 && ((amount.first | amount.second) & 1) == 0) {
            amount.first /= 2;
            amount.second /= 2;
            --amount.bits;
        }
        return amount;
    }
    LIMEN_INLINE Amount normal(const Amount& amount) const {
        return amount.bits == 0 && !fading() ? amount : normal(amount, settings_);
    }
    // Whether it costs nothing on either side.
    bool is_empty(const Amount& amount) const {
        if (amount.bits != Amount::real)
            return amount.first == 0 && (settings_.labelled || amount.second == 0);
        return real(amount.first) == 0 && (settings_.labelled || real(amount.second) == 0);
    }
    static double real(std::int64_t bits) { return std::bit_cast<double>(bits); }
    bool is_negative(bool label, const Amount& amount) const {
        if (settings_.labelled) return !label;
        return amount.bits == Amount::real ? real(amount.first) < real(amount.second)
                                           : amount.first < amount.second;
    }
    std::int64_t cost_of(bool label) const {
        return label ? settings_.costs.false_negative : settings_.costs.false_positive;
    }
    // In units of 2^-amount.bits, not over fading. False when that is too large.
    bool losses_of(const Amount& amount, bool label, Losses& losses) const {
        if (!settings_.labelled) {
            losses = {amount.first, amount.second};
            return true;
        }
        std::int64_t units;
        if (__builtin_mul_overflow(amount.first, cost_of(label), &units) || units >= most_units)
            return false;
        losses = label ? Losses{units, 0} : Losses{0, units};
        return true;
    }
    static std::int64_t magnitude(std::int64_t units) { return units < 0 ? -units : units; }
    static bool shifted(Losses& losses, int by) {
        if (by == 0) return true;
        const std::int64_t factor = std::int64_t{1} << by;
        return !__builtin_mul_overflow(losses.below, factor, &losses.below) &&
               !__builtin_mul_overflow(losses.above, factor, &losses.above) &&
               losses.below < most_units && losses.below > -most_units &&
               losses.above < most_units && losses.above > -most_units;
    }

    MemorySettings settings_;
};

}  // namespace limen
