// SPDX-License-Identifier: Apache-2.0
//
// Memory: whether all parts agree. O(n log n), in release builds too.

#pragma once

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/memory.hpp"

namespace limen {

// The samples that each group holds by the entries; false when one is too large.
template <class Tree>
bool Memory<Tree>::held_rows(std::vector<HeldRows>& of_groups) const {
    of_groups.assign(placement_.groups().size(), {});
    for (std::size_t of = 0; of < placement_.groups().size(); ++of)
        of_groups[of].bits = placement_.groups()[of].held->bits();
    const auto each = [&](auto&& visit) {
        for (std::uint32_t at = 0; at < entries_.made(); ++at) {
            if (entries_[at].state != EntryState::held) continue;
            std::uint32_t of = last_n() ? 0 : entries_[at].group;
            for (; of != no_group; of = placement_.group(of).inside) visit(at, of_groups[of]);
        }
    };
    each([&](std::uint32_t at, HeldRows& held) {
        if (entries_[at].bits > held.bits) held.bits = entries_[at].bits;
    });
    bool fits = true;
    each([&](std::uint32_t at, HeldRows& held) {
        Losses losses;
        const Amount amount = entries_.amount(at);
        fits = fits && losses_of(amount, entries_[at].label, losses) &&
               shifted(losses, held.bits - amount.bits);
        held.rows.push_back({ordered_bits(entries_[at].score), {losses.below, losses.above}});
    });
    return fits;
}

// Whether all trees hold the samples of their entries; where every sample has an entry, nothing
// else.
template <class Tree>
bool Memory<Tree>::trees_hold_entries() const {
    std::vector<HeldRows> of_groups;
    if (!held_rows(of_groups)) return false;
    for (std::size_t of = 0; of < placement_.groups().size(); ++of) {
        HeldRows& own = of_groups[of];
        double missing;
        HeldSamples<Tree> rest = placement_.groups()[of].held->copy();
        if (rest.remove_many(own.rows, own.bits, settings_.labelled, missing) != Refusal::none)
            return false;
        if (rest.samples() != 0 && all_have_entries()) return false;
    }
    return true;
}

// The losses and the number of the samples of each score, in one number. A caller that does not
// know the key cannot find samples with other sums but the same number: by chance that happens once
// in 2^60.
class Fingerprint {
public:
    explicit Fingerprint(std::uint64_t key) : key_(key) {
        for (WideUnsigned& factor : factors_) factor = drawn(0x9e3779b97f4a7c15u * ++key) | 1;
    }

    // `losses` are taken times 2^bits.
    void add(double score, const Losses& losses, int bits, std::uint32_t count) {
        const WideUnsigned own = factors_[0] * static_cast<WideUnsigned>(Wide{losses.below}) +
                                 factors_[1] * static_cast<WideUnsigned>(Wide{losses.above});
        const WideUnsigned of_score = drawn(std::bit_cast<std::uint64_t>(score) ^ key_);
        sum_ += ((own << bits) + factors_[2] * count) * of_score;
    }
    bool operator==(const Fingerprint& other) const { return sum_ == other.sum_; }

private:
    static std::uint64_t mixed(std::uint64_t word) {
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
        word = (word ^ word >> 27) * 0x94d049bb133111ebu;
        return word ^ word >> 31;
    }
    WideUnsigned drawn(std::uint64_t word) const {
        const std::uint64_t high = mixed(word + key_), low = mixed(high ^ word);
        return WideUnsigned{high} << 64 | low;
    }

    std::uint64_t key_;
    WideUnsigned factors_[3], sum_ = 0;
};

// Whether all trees hold the samples of their entries and nothing else, without sorting them. O(n).
template <class Tree>
bool Memory<Tree>::trees_are_entries() const {
    if constexpr (bounded) return trees_hold_entries();
    struct Sums {
        Fingerprint print;
        Wide total = 0;
        int bits = 0;
    };
    std::vector<Sums> expected(placement_.groups().size(), Sums{Fingerprint(options_.key)});
    const auto each = [&](auto&& visit) {
        for (std::uint32_t at = 0; at < entries_.made(); ++at)
            if (entries_[at].state == EntryState::held)
                for (std::uint32_t of = entries_[at].group; of != no_group;
                     of = placement_.group(of).inside)
                    visit(at, expected[of]);
    };
    each([&](std::uint32_t at, Sums& sums) {
        sums.bits = std::max(sums.bits, int{entries_[at].bits});
    });
    for (std::size_t of = 0; of < placement_.groups().size(); ++of)
        expected[of].bits = std::max(expected[of].bits, placement_.groups()[of].held->bits());
    bool fits = true;
    each([&](std::uint32_t at, Sums& sums) {
        const Amount amount = entries_.amount(at);
        Losses losses;
        fits = fits && losses_of(amount, entries_[at].label, losses);
        const int finer = sums.bits - amount.bits;
        sums.print.add(entries_[at].score, losses, finer, 1);
        const auto size = [](std::int64_t loss) { return Wide{loss < 0 ? -loss : loss}; };
        sums.total += (size(losses.below) + size(losses.above)) << finer;
    });
    for (std::size_t of = 0; fits && of < placement_.groups().size(); ++of) {
        const HeldSamples<Tree>& held = *placement_.groups()[of].held;
        const int finer = expected[of].bits - held.bits();
        Fingerprint print(options_.key);
        if constexpr (!bounded)
            held.tree().scan([&](const ScoreSums& one) {
                print.add(one.score, {one.below, one.above}, finer, one.count);
            });
        fits = print == expected[of].print && expected[of].total <= Wide{held.total()} << finer;
    }
    return fits;
}

// What is wrong with an entry by itself; null when nothing is.
template <class Tree>
const char* Memory<Tree>::fault_of(std::uint32_t at) const {
    const Entry& entry = entries_[at];
    const EntryState state = entry.state;
    const Amount amount = entries_.amount(at);
    const bool held = state == EntryState::held, young = state == EntryState::young;
    const bool window = held && !entry.labelled, scored = state != EntryState::waiting;
    if (!window && entry.labelled != (state != EntryState::open))
        return "a label is there, or not, against the state";
    if (!entry.timed && scored && !window) return "a score without a time";
    if (!entry.named() && !held && !young) return "an entry that nobody can ask for";
    if (!last_n() && entry.group >= placement_.groups().size())
        return "a group that does not exist";
    if (state == EntryState::empty && !is_empty(amount))
        return "an empty sample that costs something";
    if (held && is_empty(amount)) return "a sample is held that costs nothing";
    if (young && !is_young(at, entry.label, amount)) return "a negative is too old";
    if (!entry.timed) return nullptr;
    const Time time = entry.moment();
    if (clock_.moves(time)) return "an entry from the future";
    if (held && last_period() && !clock_.in_window(time)) return "a sample is too old";
    const bool waits = !scored || state == EntryState::open || state == EntryState::empty;
    if (waits && clock_.has_expired(time)) return "an entry has run out";
    if (scored && state != EntryState::open && entry.named() && clock_.is_final(time))
        return "an id is known too long";
    return nullptr;
}

// What the answers to all samples that are held cost.
template <class Tree>
Wide Memory<Tree>::cost_of_held() const {
    Wide cost = 0;
    for (std::uint32_t at = 0; at < entries_.made(); ++at)
        if (entries_[at].state == EntryState::held && entries_[at].labelled) cost += price(at);
    return cost;
}

template <class Tree>
void Memory<Tree>::check() const {
    const auto require = [](bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken memory: ") + otherwise);
    };
    entries_.check();
    for (const Group& group : placement_.groups()) group.held->check();
    for (std::uint32_t at = 0; at < entries_.made(); ++at) {
        const char* fault = entries_[at].state == EntryState::gone ? nullptr : fault_of(at);
        require(!fault, fault);
    }
    clock_.check(entries_);
    require(!all_have_entries() || cost_of_held() == cost(), "the cost is wrong");
    require(fading() || trees_hold_entries(), "a tree holds other samples than the entries");
}

}  // namespace limen
