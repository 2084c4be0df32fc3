// SPDX-License-Identifier: Apache-2.0
//
// The answers that were true before long work began, for those who ask meanwhile.
//
// They are published and read with the interpreter held, so nobody reads while another one writes;
// that they hold no longer is said without it, but before the object is free. Where Python has no
// such lock nothing is published, and a reader waits.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "bindings/object_lock.hpp"
#include "core/hull_copy.hpp"

namespace limen::bindings {

// How long work takes that goes through all scores held, in steps; that on rows takes one for each.
inline constexpr std::size_t all_scores = ~std::size_t{0};

// Asked as the samples themselves.
class PublishedAnswers {
public:
    // Long work is about to begin. O(1), but for the hull, where the tree has one: that is copied
    // if the work takes much longer than the copy, and that does not keep the interpreter for long.
    template <class Samples>
    void publish(const Samples& held, std::size_t steps) noexcept {
        if (!possible) return;
        samples_ = held.samples();
        bits_ = held.bits();
        if constexpr (requires { held.best(); }) {
            cut_ = held.best();
            loss_ = held.loss(cut_);
        }
        if constexpr (requires { held.bound(); }) bound_ = held.bound();
        if constexpr (requires { held.tree().vertices([](const HullCut&) {}); }) {
            if (steps == all_scores) steps = held.distinct();
            try {
                hull_.take(held.tree(), std::min(steps / 8, most_cuts));
            } catch (const std::bad_alloc&) {
                hull_.forget();
            }
        }
        asked_.store(true, std::memory_order_relaxed);
    }
    // What the weights of a group that fades are to be divided by, and where that counts from.
    void set_fading(double scale, const std::optional<std::int64_t>& base) {
        scale_ = scale;
        base_ = base;
    }
    void end() noexcept { asked_.store(false, std::memory_order_relaxed); }
    // With the interpreter, after the work: give back what nobody needs.
    void tidy() noexcept {
        if (possible && !published()) hull_.forget();
    }

    // Whether to ask here; and whether about the hull, too.
    LIMEN_INLINE bool published() const {
        return possible && asked_.load(std::memory_order_relaxed);
    }
    bool knows_hull() const { return published() && hull_.known(); }

    std::size_t samples() const { return samples_; }
    int bits() const { return bits_; }
    const Cut& best() const { return cut_; }
    std::int64_t loss(const Cut&) const { return loss_; }
    std::int64_t bound() const { return bound_; }
    const HullCopy& tree() const { return hull_; }
    double scale(std::uint32_t) const { return scale_; }
    std::optional<std::int64_t> base(std::uint32_t) const { return base_; }

private:
#ifdef Py_GIL_DISABLED
    static constexpr bool possible = false;
#else
    static constexpr bool possible = true;
#endif
    static constexpr std::size_t most_cuts = std::size_t{1} << 16;

    std::atomic<bool> asked_{false};
    int bits_ = 0;
    std::size_t samples_ = 0;
    Cut cut_;
    std::int64_t loss_ = 0, bound_ = 0;
    HullCopy hull_;
    double scale_ = 1;
    std::optional<std::int64_t> base_;
};

}  // namespace limen::bindings
