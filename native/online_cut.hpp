// SPDX-License-Identifier: Apache-2.0
//
// The samples held, in whole units: the cut tree with its unit and its totals.
//
// Losses come in as numbers, are rounded once to whole units, and from then on are only added
// and taken away, so that any order of arrival leaves the same sums. Every call either does
// all it was asked for or changes nothing and tells why.
//
// add, remove               O(log n)
// add_many, remove_many     O(m) to sort, then O(m log n), or O(n + m) for large batches

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cut_tree.hpp"
#include "samples.hpp"
#include "units.hpp"

namespace limen {

enum class Refusal {
    none,
    lost,       // a loss that is not 0 would round to 0
    too_large,  // the sum of all losses would reach 2^62 units
    too_many,   // 2^32 samples of one score
    not_held,
};

// What one sample costs on either side of the cut, in units.
struct Losses {
    std::int64_t below = 0, above = 0;
};

class OnlineCut {
public:
    explicit OnlineCut(Unit unit = {}, int leaf_capacity = leaf_slots,
                       int node_capacity = node_slots)
        : tree_(leaf_capacity, node_capacity), unit_(unit) {}

    std::size_t samples() const { return samples_; }
    std::size_t distinct() const { return tree_.distinct(); }
    int bits() const { return bits_; }
    const Unit& unit() const { return unit_; }
    std::size_t memory() const { return sizeof *this + tree_.memory(); }
    // The sum of all absolute losses.
    std::int64_t total() const { return total_; }

    Held find(double score) const { return tree_.find(score + 0.0); }

    // The best cut, and its loss in units of the current fineness.
    Cut best() const { return tree_.best(); }
    std::int64_t loss(const Cut& cut) const { return above_ - cut.best; }

    // The binary places to measure these numbers in: those in use, or more if one needs it.
    template <class Number>
    int bits_for(Number value) const {
        return unit_.automatic ? std::max(bits_, bits_needed(value)) : 0;
    }

    // A number times a whole cost, in units of the given fineness.
    template <class Number>
    Refusal measure(Number value, std::int64_t cost, int bits, std::int64_t& units) const {
        const Whole whole = to_units(value, unit_, bits);
        if (whole.rounding == Rounding::lost) return Refusal::lost;
        if (whole.rounding == Rounding::too_large ||
            __builtin_mul_overflow(whole.units, cost, &units) || units >= most_units ||
            units <= -most_units)
            return Refusal::too_large;
        return Refusal::none;
    }

    // Losses are measured in `bits` places. A sample without any loss is the same as none.
    Refusal add(double score, const Losses& losses, int bits) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        if (!fits(Wide{magnitude(losses.below)} + magnitude(losses.above), bits))
            return Refusal::too_large;
        refine(bits);
        try {
            tree_.add({score + 0.0, losses.below, losses.above, 1});
        } catch (const std::overflow_error&) {
            return Refusal::too_many;
        }
        ++samples_;
        above_ += losses.above;
        total_ += magnitude(losses.below) + magnitude(losses.above);
        return Refusal::none;
    }

    // `one_sided`: each sample costs on one side only and nothing is negative, so a sample
    // that takes away more than is held on its side was never added.
    Refusal remove(double score, const Losses& losses, int bits, bool one_sided) {
        if (losses.below == 0 && losses.above == 0) return Refusal::none;
        if (bits > bits_ || Wide{magnitude(losses.below)} + magnitude(losses.above) > total_)
            return Refusal::not_held;
        const Held asked{score + 0.0, losses.below, losses.above, 1};
        const bool removed =
            tree_.remove(asked, [&](const Held& held) { return covers(held, asked, one_sided); });
        if (!removed) return Refusal::not_held;
        forget(1, losses.above, magnitude(losses.below) + magnitude(losses.above));
        return Refusal::none;
    }

    // Rows are measured in `bits` places and cost something each.
    template <class Row>
    Refusal add_many(std::vector<Row>& rows, int bits) {
        Wide above = 0, total = 0;
        for (const Row& row : rows) {
            above += row.above();
            total += magnitude(row.below()) + magnitude(row.above());
            if (total >= most_units) return Refusal::too_large;
        }
        if (!fits(total, bits)) return Refusal::too_large;
        const std::vector<Held> batch = joined(rows);
        if (samples_ + rows.size() > std::numeric_limits<std::uint32_t>::max())
            for (const Held& held : batch)
                if (tree_.find(held.score).count + std::size_t{held.count} >
                    std::numeric_limits<std::uint32_t>::max())
                    return Refusal::too_many;
        if (rows.empty()) return Refusal::none;
        refine(bits);
        if (batch.size() >= tree_.distinct() / 4)
            load_with(batch, 1);
        else
            for (const Held& held : batch) tree_.add(held);
        samples_ += rows.size();
        above_ += static_cast<std::int64_t>(above);
        total_ += static_cast<std::int64_t>(total);
        return Refusal::none;
    }

    // On refusal, `missing` is a score that is not held as often, or not with these losses.
    template <class Row>
    Refusal remove_many(std::vector<Row>& rows, int bits, bool one_sided, double& missing) {
        if (rows.empty()) return Refusal::none;
        if (bits > bits_) {
            missing = score_of(rows[0].order);
            return Refusal::not_held;
        }
        Wide above = 0, total = 0;
        for (const Row& row : rows) {
            above += row.above();
            total += magnitude(row.below()) + magnitude(row.above());
            if (total <= total_) continue;
            missing = score_of(row.order);
            return Refusal::not_held;
        }
        const std::vector<Held> batch = joined(rows);
        for (const Held& asked : batch) {
            const Held held = tree_.find(asked.score);
            if (held.count >= asked.count && covers(held, asked, one_sided)) continue;
            missing = asked.score;
            return Refusal::not_held;
        }
        if (batch.size() >= tree_.distinct() / 4)
            load_with(batch, -1);
        else
            for (const Held& held : batch) tree_.remove(held, [](const Held&) { return true; });
        forget(rows.size(), static_cast<std::int64_t>(above), static_cast<std::int64_t>(total));
        return Refusal::none;
    }

    // Every cut in ascending order: visit(loss, lower, upper, has_lower, has_upper).
    template <class Visit>
    void curve(Visit&& visit) const {
        std::int64_t loss = above_;
        double lower = 0;
        bool has_lower = false;
        tree_.scan([&](const Held& held) {
            visit(loss, lower, held.score, has_lower, true);
            loss -= held.above - held.below;
            lower = held.score;
            has_lower = true;
        });
        visit(loss, lower, 0.0, has_lower, false);
    }

    // The same samples give the same bytes, whatever came and went before: the unit is the
    // coarsest that still holds every sum. Little-endian words: bits, samples, total, distinct,
    // then score, below, above, count of each score in ascending order.
    std::string state() const {
        std::uint64_t used = static_cast<std::uint64_t>(total_);
        tree_.scan([&](const Held& held) {
            used |= static_cast<std::uint64_t>(held.below) | static_cast<std::uint64_t>(held.above);
        });
        const int spare = used ? std::min(bits_, std::countr_zero(used)) : bits_;
        std::string bytes;
        bytes.reserve(8 * (4 + 4 * tree_.distinct()));
        put(bytes, static_cast<std::uint64_t>(bits_ - spare));
        put(bytes, samples_);
        put(bytes, static_cast<std::uint64_t>(total_ >> spare));
        put(bytes, tree_.distinct());
        tree_.scan([&](const Held& held) {
            put(bytes, std::bit_cast<std::uint64_t>(held.score));
            put(bytes, static_cast<std::uint64_t>(held.below >> spare));
            put(bytes, static_cast<std::uint64_t>(held.above >> spare));
            put(bytes, held.count);
        });
        return bytes;
    }

    // Become what state() described; false, and unchanged, when the bytes describe nothing.
    bool restore(const std::string& bytes) {
        if (bytes.size() < 32 || (bytes.size() - 32) % 32 != 0) return false;
        const std::uint64_t bits = get(bytes, 0), samples = get(bytes, 1), total = get(bytes, 2),
                            distinct = get(bytes, 3);
        if (bits > (unit_.automatic ? finest_bits : 0) || distinct != (bytes.size() - 32) / 32 ||
            total >= static_cast<std::uint64_t>(most_units))
            return false;
        std::vector<Held> held(distinct);
        std::uint64_t counted = 0;
        WideUnsigned summed = 0;
        std::int64_t above = 0;
        for (std::size_t i = 0; i < distinct; ++i) {
            const std::uint64_t count = get(bytes, 7 + 4 * i);
            held[i] = {std::bit_cast<double>(get(bytes, 4 + 4 * i)),
                       static_cast<std::int64_t>(get(bytes, 5 + 4 * i)),
                       static_cast<std::int64_t>(get(bytes, 6 + 4 * i)),
                       static_cast<std::uint32_t>(count)};
            const bool ascends = i ? held[i - 1].score < held[i].score
                                   : held[i].score == held[i].score;
            if (!ascends || count == 0 || count > std::numeric_limits<std::uint32_t>::max() ||
                held[i].below <= -most_units || held[i].above <= -most_units)
                return false;
            counted += count;
            summed += static_cast<std::uint64_t>(magnitude(held[i].below)) +
                      static_cast<std::uint64_t>(magnitude(held[i].above));
            if (summed > total) return false;
            above += held[i].above;
        }
        if (counted != samples) return false;
        tree_.load(held);
        bits_ = static_cast<int>(bits);
        samples_ = samples;
        above_ = above;
        total_ = static_cast<std::int64_t>(total);
        return true;
    }

    void check() const {
        tree_.check();
        std::uint64_t samples = 0;
        std::int64_t above = 0, summed = 0;
        tree_.scan([&](const Held& held) {
            samples += held.count;
            above += held.above;
            summed += magnitude(held.below) + magnitude(held.above);
        });
        if (samples != samples_) throw std::logic_error("the number of samples is wrong");
        if (above != above_) throw std::logic_error("the loss above all cuts is wrong");
        if (summed > total_) throw std::logic_error("the sum of absolute losses is wrong");
        if (samples_ == 0 && (total_ || bits_)) throw std::logic_error("empty, but not new");
    }

private:
    static std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }

    bool fits(Wide more, int bits) const {
        return (Wide{total_} << (bits - bits_)) + more < most_units;
    }

    // Measure in more places from now on; every loss held is scaled with it.
    void refine(int bits) {
        if (bits <= bits_) return;
        const std::int64_t factor = std::int64_t{1} << (bits - bits_);
        tree_.refine(bits - bits_);
        above_ *= factor;
        total_ *= factor;
        bits_ = bits;
    }

    static bool covers(const Held& held, const Held& asked, bool one_sided) {
        if (held.count == asked.count)
            return held.below == asked.below && held.above == asked.above;
        if (!one_sided) return true;
        return held.below >= asked.below && held.above >= asked.above &&
               (held.below != asked.below || held.above != asked.above);
    }

    void forget(std::size_t samples, std::int64_t above, std::int64_t total) {
        samples_ -= samples;
        above_ -= above;
        total_ -= total;
        if (samples_ == 0) {
            bits_ = 0;
            above_ = total_ = 0;
        }
    }

    // Rebuild the tree from what it holds and a batch, in one pass over both.
    void load_with(const std::vector<Held>& batch, int sign) {
        std::vector<Held> all;
        all.reserve(tree_.distinct() + (sign > 0 ? batch.size() : 0));
        std::size_t next = 0;
        tree_.scan([&](Held held) {
            while (next < batch.size() && batch[next].score < held.score)
                all.push_back(batch[next++]);
            if (next < batch.size() && batch[next].score == held.score) {
                const Held& other = batch[next++];
                held.below += sign * other.below;
                held.above += sign * other.above;
                held.count = sign > 0 ? held.count + other.count : held.count - other.count;
            }
            if (held.count) all.push_back(held);
        });
        all.insert(all.end(), batch.begin() + static_cast<std::ptrdiff_t>(next), batch.end());
        tree_.load(all);
    }

    static void put(std::string& bytes, std::uint64_t word) {
        for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
    }
    static std::uint64_t get(const std::string& bytes, std::size_t word) {
        std::uint64_t value = 0;
        for (std::size_t i = 8; i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(bytes[8 * word + i]);
        return value;
    }

    CutTree tree_;
    Unit unit_;
    int bits_ = 0;               // binary places of the automatic unit
    std::size_t samples_ = 0;
    std::int64_t above_ = 0;     // the loss when everything lies above the cut
    std::int64_t total_ = 0;     // the sum of all absolute losses ever added and not removed
};

}  // namespace limen
