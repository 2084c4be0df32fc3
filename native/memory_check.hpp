// SPDX-License-Identifier: Apache-2.0
//
// Memory: whether all parts tell the same story. O(n log n), in release builds too.

#pragma once

#include <stdexcept>
#include <string>

#include "memory.hpp"

namespace limen {

// The samples of the entries that a group holds, in `bits` places; false when one is too large.
template <class Tree>
bool Memory<Tree>::held_rows(std::uint32_t of, std::vector<LossRow>& rows, int& bits) const {
    rows.clear();
    bits = group(of).held->bits();
    const auto each = [&](auto&& visit) {
        for (std::uint32_t at = 0; at < entries_.made(); ++at) {
            if (entries_[at].state != EntryState::held) continue;
            std::uint32_t in = last_n() ? 0 : entries_[at].group;
            while (in != no_group && in != of) in = group(in).inside;
            if (in == of) visit(at);
        }
    };
    each([&](std::uint32_t at) {
        if (entries_[at].bits > bits) bits = entries_[at].bits;
    });
    bool fits = true;
    each([&](std::uint32_t at) {
        Losses losses;
        const Amount amount = entries_.amount(at);
        fits = fits && losses_of(amount, entries_[at].label, losses) &&
               shifted(losses, bits - amount.bits);
        rows.push_back({ordered_bits(entries_[at].score), {losses.below, losses.above}});
    });
    return fits;
}

// Whether a tree holds the samples of its entries; where every sample has an entry, nothing else.
template <class Tree>
bool Memory<Tree>::holds_entries(std::uint32_t of) const {
    std::vector<LossRow> rows;
    int bits;
    double missing;
    if (!held_rows(of, rows, bits)) return false;
    HeldSamples<Tree> rest = group(of).held->copy();
    if (rest.remove_many(rows, bits, settings_.labelled, missing) != Refusal::none) return false;
    return rest.samples() == 0 || !all_have_entries();
}

template <class Tree>
void Memory<Tree>::check() const {
    const auto require = [](bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken memory: ") + otherwise);
    };
    entries_.check();
    for (const Group& group : groups_) group.held->check();
    for (const Timeline* line : {&window_, &open_, &young_, &final_}) line->check(entries_);
    Wide cost = 0;
    std::size_t in_lines[4] = {};
    for (std::uint32_t at = 0; at < entries_.made(); ++at) {
        const Entry& entry = entries_[at];
        if (entry.state == EntryState::gone) continue;
        const bool window = !entry.labelled && entry.state == EntryState::held;
        const bool scored = entry.state != EntryState::waiting;
        require(window || entry.labelled == (entry.state != EntryState::open),
                "a label is there, or not, against the state");
        require(entry.timed || !scored || window, "a score without a time");
        require(entry.named() || entry.state == EntryState::held ||
                    entry.state == EntryState::young,
                "an entry that nobody can ask for");
        require(last_n() || entry.group < groups_.size(), "a group that does not exist");
        require((entry.state == EntryState::empty) <= is_empty(entries_.amount(at)),
                "an empty sample that costs something");
        require(!(entry.state == EntryState::held && is_empty(entries_.amount(at))),
                "a sample is held that costs nothing");
        if (entry.state == EntryState::held && entry.labelled) cost += price(at);
        if (entry.state == EntryState::held && last_period())
            require(entry.placed && window_edge_ < entry.moment(), "a sample is too old");
        if (entry.state == EntryState::young)
            require(is_young(at, entry.label, entries_.amount(at)), "a negative is too old");
        if (!entry.timed) continue;
        const Time time = entry.moment();
        require(clock_ && time <= *clock_, "an entry from the future");
        in_lines[0] += last_period() && entry.placed;
        in_lines[1] += !window && younger(time, settings_.time_to_live, ttl_edge_);
        in_lines[2] += !window && scored && younger(time, settings_.maturity, maturity_edge_);
        in_lines[3] += !window && scored && younger(time, settings_.correctable, final_edge_);
        const bool waits =
            !scored || entry.state == EntryState::open || entry.state == EntryState::empty;
        require(!waits || !settings_.time_to_live || ttl_edge_ < time, "an entry has run out");
        require(!scored || !entry.named() || !settings_.correctable || final_edge_ < time ||
                    entry.state == EntryState::open,
                "an id is known too long");
    }
    const Timeline* lines[4] = {&window_, &open_, &young_, &final_};
    for (int i = 0; i < 4; ++i)
        require(lines[i]->in_order(entries_).size() == in_lines[i],
                "an entry stands in no line, or in one too many");
    if (last_n()) {
        std::size_t placed = 0;
        for (std::size_t i = 0; i < line_.size(); ++i) placed += in_line(line_[i]);
        require(placed == entries_.count(EntryState::held) && placed <= settings_.n,
                "a sample has no place in line");
    }
    require(fading() || !all_have_entries() || cost == cost_, "the cost is wrong");
    if (!fading())
        for (std::uint32_t of = 0; of < groups_.size(); ++of)
            require(holds_entries(of), "a tree holds other samples than the entries");
}

}  // namespace limen
