// SPDX-License-Identifier: Apache-2.0
//
// Memory: all of it in columns, and back.

#pragma once

#include <algorithm>
#include <tuple>

#include "memory/memory.hpp"

namespace limen {

// ---- out ----

template <class Tree>
bool Memory<Tree>::used(const std::vector<std::uint32_t>& order,
                        std::vector<std::uint32_t>& found) const {
    std::vector<bool> is_used(placement_.groups().size(), false);
    const auto use = [&](std::uint32_t of) {
        for (; of != no_group && !is_used[of]; of = placement_.group(of).inside) is_used[of] = true;
    };
    use(0);
    for (std::uint32_t of = 0; of < placement_.groups().size(); ++of)
        if (placement_.group(of).held->samples() > 0) use(of);
    for (std::uint32_t at = 0; at < entries_.made(); ++at)
        if (entries_[at].state != EntryState::gone && !last_n()) use(entries_[at].group);
    std::size_t missing = 0;
    for (const bool is : is_used) missing += is;
    found.clear();
    for (const std::uint32_t of : order)
        if (of < placement_.groups().size() && is_used[of]) {
            found.push_back(of);
            is_used[of] = false;
            --missing;
        }
    return missing == 0;
}

// The entries in an order that depends on nothing but what they are; groups have these places.
template <class Tree>
std::vector<std::uint32_t> Memory<Tree>::ordered(const std::vector<std::uint32_t>& places) const {
    std::vector<std::uint32_t> order;
    order.reserve(entries_.size());
    for (std::uint32_t at = 0; at < entries_.made(); ++at)
        if (entries_[at].state != EntryState::gone && entries_[at].named()) order.push_back(at);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return compare(entries_[a].id(), entries_[b].id()) < 0;
    });
    const std::size_t known = order.size();
    if (last_n()) {  // those in line by their places, then the young by their turns
        clock_.each_in_line(entries_, [&](std::uint32_t at) {
            if (!entries_[at].named()) order.push_back(at);
        });
        for (const std::uint32_t at : clock_.by_maturity(entries_))
            if (entries_[at].state == EntryState::young && !entries_[at].named())
                order.push_back(at);
        return order;
    }
    for (std::uint32_t at = 0; at < entries_.made(); ++at)
        if (entries_[at].state != EntryState::gone && !entries_[at].named()) order.push_back(at);
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(known), order.end(),
              [&](std::uint32_t a, std::uint32_t b) {
                  const Entry &x = entries_[a], &y = entries_[b];
                  if (!(x.moment() == y.moment())) return x.moment() < y.moment();
                  const auto all = [&](std::uint32_t at, const Entry& of) {
                      const Amount amount = entries_.amount(at);
                      return std::tuple(of.state, of.score, of.answer, of.label, places[of.group],
                                        amount.bits, amount.first, amount.second, of.real);
                  };
                  return all(a, x) < all(b, y);
              });
    return order;
}

template <class Tree>
MemoryColumns Memory<Tree>::columns(const std::vector<std::uint32_t>& group_order) const {
    MemoryColumns out;
    std::vector<std::uint32_t> numbers = group_order, places(placement_.groups().size());
    for (std::uint32_t of = 0; group_order.empty() && of < placement_.groups().size(); ++of)
        numbers.push_back(of);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) places[numbers[i]] = i;
    const std::vector<std::uint32_t> order = ordered(places);
    bool amounts = false, as_of = false, groups = false;
    for (const std::uint32_t at : order) {
        const Entry& entry = entries_[at];
        if (entry.named()) {
            const Id id = entry.id();
            out.id_kinds.push_back(id.kind);
            out.id_numbers.push_back(id.number);
            if (id.kind != Id::number_kind) out.id_bytes.append(id.bytes, id.size);
            out.id_ends.push_back(out.id_bytes.size());
        }
        const bool labelled = entry.labelled || (!entry.named() && entry.state == EntryState::held);
        out.states.push_back(static_cast<std::uint8_t>(entry.state));
        out.answers.push_back(entry.answer);
        out.labels.push_back(labelled ? entry.label : std::uint8_t{2});
        out.scores.push_back(entry.score);
        out.times.push_back(entry.time);
        out.time_kinds.push_back(entry.timed ? entry.real : std::uint8_t{2});
        Amount amount = entries_.amount(at);
        if (!settings_.labelled && !labelled) amount = {0, 0, 0};
        out.firsts.push_back(amount.first);
        out.seconds.push_back(amount.second);
        out.bits.push_back(amount.bits);
        out.as_of.push_back(entry.as_of ? entries_.as_of(at).bits : 0);
        out.as_of_kinds.push_back(!entry.as_of ? std::uint8_t{2} : entry.as_of_real);
        out.groups.push_back(last_n() ? 0 : places[entry.group]);
        amounts = amounts || !settings_.labelled || !(amount == normal({}));
        as_of = as_of || entry.as_of;
        groups = groups || out.groups.back() != 0;
    }
    if (!amounts) out.firsts = {}, out.seconds = {}, out.bits = {};
    if (!as_of) out.as_of = {}, out.as_of_kinds = {};
    if (!groups) out.groups = {};
    put_places(order, out);
    out.newest = clock_.now();
    out.origin = placement_.origin;
    out.dropped = clock_.dropped;
    out.counts = clock_.counts;
    out.expired = expired_;
    out.refused = refused_;
    out.count = placement_.count;
    account_.put(out);
    if (fading())
        for (const std::uint32_t of : numbers)
            out.bases.push_back(placement_.has_no_base(of) ? std::nullopt
                                                           : placement_.group(of).base);
    return out;
}

// In which order entries leave and come of age.
template <class Tree>
void Memory<Tree>::put_places(const std::vector<std::uint32_t>& order, MemoryColumns& out) const {
    if (!last_n() && !by_number()) return;
    std::vector<std::int64_t> place(entries_.made(), -1), turn(entries_.made(), -1);
    std::int64_t next = 0;
    if (last_n()) clock_.each_in_line(entries_, [&](std::uint32_t at) { place[at] = next++; });
    next = 0;
    for (const std::uint32_t at : clock_.by_maturity(entries_)) turn[at] = next++;
    for (const std::uint32_t at : order) {
        if (by_number())
            out.places.push_back(entries_[at].placed ? entries_.place(at) : -1);
        else
            out.places.push_back(place[at]);
        if (settings_.maturity) out.turns.push_back(turn[at]);
    }
}

// ---- in ----

template <class Tree>
bool Memory<Tree>::has_shape(const MemoryColumns& in) const {
    const std::size_t rows = in.rows(), known = in.known();
    const auto is = [&](std::size_t size) { return size == rows; };
    const auto may_be = [&](std::size_t size) { return size == rows || size == 0; };
    if (known > rows || rows >= Entries::none || in.id_numbers.size() != known ||
        in.id_ends.size() != known || !is(in.answers.size()) || !is(in.labels.size()) ||
        !is(in.scores.size()) || !is(in.times.size()) || !is(in.time_kinds.size()) ||
        !may_be(in.firsts.size()) || in.seconds.size() != in.firsts.size() ||
        in.bits.size() != in.firsts.size() || !may_be(in.as_of.size()) ||
        in.as_of_kinds.size() != in.as_of.size() || !may_be(in.groups.size()) ||
        !(last_n() || by_number() ? is(in.places.size()) : in.places.empty()) ||
        !((last_n() || by_number()) && settings_.maturity ? is(in.turns.size())
                                                          : in.turns.empty()) ||
        in.bases.size() != (fading() ? placement_.groups().size() : 0) ||
        in.origin.has_value() > fading_by_time())
        return false;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < known; ++i) {
        const bool number = in.id_kinds[i] == Id::number_kind;
        if (in.id_kinds[i] >= Id::most_kinds || in.id_ends[i] < end ||
            in.id_ends[i] > in.id_bytes.size() || (number && in.id_ends[i] != end) ||
            in.id_ends[i] - end >= std::uint64_t{1} << 32)
            return false;
        end = in.id_ends[i];
    }
    return end == in.id_bytes.size();
}

// Whether a memory could have such an entry.
template <class Tree>
bool Memory<Tree>::is_possible(const MemoryColumns& in, std::size_t i) const {
    if (in.states[i] >= static_cast<std::uint8_t>(EntryState::gone) || in.answers[i] > 1 ||
        in.labels[i] > 2 || in.time_kinds[i] > 2 || in.scores[i] != in.scores[i] ||
        (in.scores[i] == 0 && std::signbit(in.scores[i])))
        return false;
    const auto state = static_cast<EntryState>(in.states[i]);
    const bool known = i < in.known(), labelled = in.labels[i] != 2, timed = in.time_kinds[i] != 2;
    const bool window = !known && state == EntryState::held;
    if (labelled != (state != EntryState::open)) return false;
    if (!timed && !(state == EntryState::waiting && !in.newest) && !(window && last_n()))
        return false;
    if (!known && state != EntryState::held && state != EntryState::young) return false;
    if (timed) {
        const Time time{in.times[i], in.time_kinds[i] == 1};
        if (time.real && !std::isfinite(time.number())) return false;
        if (!in.newest || *in.newest < time) return false;
    }
    if (!in.groups.empty() && in.groups[i] >= placement_.groups().size()) return false;
    if (!in.as_of.empty() && in.as_of_kinds[i] > 2) return false;
    if (!in.firsts.empty()) {
        const Amount amount{in.firsts[i], in.seconds[i], in.bits[i]};
        const auto sound = [&](std::int64_t word) {
            if (fading())
                return std::isfinite(real(word)) && (!settings_.labelled || real(word) >= 0);
            return word < most_units && word > -most_units && (!settings_.labelled || word >= 0);
        };
        const int most = sum_bits();
        if (fading() ? amount.bits != Amount::real && labelled : amount.bits > most) return false;
        if (amount.bits == Amount::real && !fading()) return false;
        if ((labelled || settings_.labelled) && !(sound(amount.first) && sound(amount.second)))
            return false;
        if (!(normal(amount) == amount) && (labelled || settings_.labelled)) return false;
    } else if (!settings_.labelled && labelled) {
        return false;
    }
    return true;
}

template <class Tree>
bool Memory<Tree>::take(const MemoryColumns& in) {
    if (in.newest) {
        if (in.newest->real && !std::isfinite(in.newest->number())) return false;
        clock_.set(*in.newest);
        if (last_period() && !clock_.in_window(*in.newest)) return false;
    }
    placement_.origin = in.origin;
    clock_.dropped = in.dropped;
    clock_.counts = in.counts;
    expired_ = in.expired;
    refused_ = in.refused;
    placement_.count = in.count;
    if (!account_.take(in) && fading()) return false;
    for (std::size_t i = 0; i < in.bases.size(); ++i) placement_.groups()[i].base = in.bases[i];
    entries_.reserve(in.rows(), in.known());
    if (!in.firsts.empty()) entries_.reserve_amount({2, 0, 0});
    if (!in.as_of.empty()) entries_.reserve_as_of();
    constexpr std::size_t ahead = 16;
    std::uint32_t hashes[ahead];  // of the next ids
    const auto ask_for = [&](std::size_t i) {
        if (i >= in.known()) return;
        hashes[i % ahead] = entries_.hash_of(id_in(in, i));
        entries_.warm_slot(hashes[i % ahead]);
    };
    for (std::size_t i = 0; i < ahead; ++i) ask_for(i);
    bool ascending = true;  // so far: then no id came before
    for (std::size_t i = 0; i < in.rows(); ++i) {
        if (i > 0 && i < in.known())
            ascending = ascending && compare(id_in(in, i - 1), id_in(in, i)) < 0;
        if (!is_possible(in, i) || !take_entry(in, i, hashes[i % ahead], ascending)) return false;
        ask_for(i + ahead);
    }
    take_lines(in);
    return true;
}

template <class Tree>
Id Memory<Tree>::id_in(const MemoryColumns& in, std::size_t i) {
    if (in.id_kinds[i] == Id::number_kind) return Id::of(in.id_numbers[i]);
    const std::uint64_t from = i ? in.id_ends[i - 1] : 0;
    return Id::of(in.id_kinds[i], in.id_bytes.data() + from, in.id_ends[i] - from);
}

template <class Tree>
bool Memory<Tree>::take_entry(const MemoryColumns& in, std::size_t i, std::uint32_t hash,
                              bool is_new) {
    const auto state = static_cast<EntryState>(in.states[i]);
    Id id;
    const bool known = i < in.known();
    if (known) {
        id = id_in(in, i);
        if (!is_new && entries_.find(id, hash) != Entries::none) return false;
    }
    NameCopy name;
    if (known) name = NameCopy(id);
    const std::uint32_t at =
        entries_.make(state, known ? &id : nullptr, known ? hash : 0, name.release());
    Entry& entry = entries_[at];
    entry.score = in.scores[i];
    entry.answer = in.answers[i] != 0;
    entry.label = in.labels[i] == 1;
    // Only where ids are forgotten, samples without one have an answer.
    entry.labelled = in.labels[i] != 2 && (known || settings_.correctable);
    if (!in.groups.empty()) entry.group = in.groups[i];
    const Time time{in.times[i], in.time_kinds[i] == 1};
    entries_.set_time(at, in.time_kinds[i] == 2 ? nullptr : &time);
    if (!in.firsts.empty() && (settings_.labelled || in.labels[i] != 2))
        entries_.set_amount(at, {in.firsts[i], in.seconds[i], in.bits[i]});
    if (!in.as_of.empty() && in.as_of_kinds[i] != 2) {
        const Time as_of{in.as_of[i], in.as_of_kinds[i] == 1};
        entries_.set_as_of(at, &as_of);
    }
    if (by_number() && in.places[i] >= 0) {
        entries_.set_place(at, in.places[i]);
        entry.placed = true;
    }
    return !fault_of(at);
}

// Entries line up in the order of their times and turns, and in line by their places.
template <class Tree>
void Memory<Tree>::take_lines(const MemoryColumns& in) {
    std::vector<std::uint32_t> order(in.rows());
    for (std::uint32_t at = 0; at < order.size(); ++at) order[at] = at;
    Needs needs;
    needs.scored = needs.entering = order.size();
    reserve(needs);
    if (last_n()) {
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::tuple(in.places[a], a) < std::tuple(in.places[b], b);
        });
        for (const std::uint32_t at : order)
            if (entries_[at].state == EntryState::held) clock_.enter_window(entries_, at);
    }
    if (!last_period() && !settings_.time_to_live && !settings_.maturity && !settings_.correctable)
        return;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const Time x = entries_[a].moment(), y = entries_[b].moment();
        if (!(x == y)) return x < y;
        return !in.turns.empty() && in.turns[a] != in.turns[b] ? in.turns[a] < in.turns[b] : a < b;
    });
    for (const std::uint32_t at : order) {
        if (last_period() && entries_[at].state == EntryState::held)
            clock_.enter_window(entries_, at);
        if (entries_[at].timed && (entries_[at].labelled || entries_[at].state == EntryState::open))
            clock_.line_up(entries_, at);
    }
}

// Fill the trees of a window with the samples of its entries.
template <class Tree>
bool Memory<Tree>::fill_trees() {
    std::vector<HeldRows> of_groups;
    if (!held_rows(of_groups)) return false;
    for (std::size_t of = 0; of < placement_.groups().size(); ++of) {
        HeldRows& own = of_groups[of];
        HeldSamples<Tree>& held = *placement_.groups()[of].held;
        if (held.add_many(own.rows, own.bits) != Refusal::none) return false;
    }
    return true;
}

template <class Tree>
bool Memory<Tree>::restore(const MemoryColumns& in, bool empty) {
    if (!has_shape(in)) return false;
    // Beside this one, over the same trees; where they are to be filled, over others that are
    // empty.
    const bool fills = last_n() || last_period() || (empty && settings_.keep == Keep::all);
    if (fills && !all_have_entries()) return false;
    std::vector<HeldSamples<Tree>> trees;
    Memory memory(*placement_.groups()[0].held, settings_, options_);
    memory.placement_.groups() = placement_.groups();
    if (fills) trees.reserve(placement_.groups().size());
    for (Group& group : memory.placement_.groups()) {
        if (!fills) break;
        if (group.held->samples() != 0) return false;
        trees.push_back(group.held->copy());
        group.held = &trees.back();
    }
    if (!memory.take(in)) return false;
    if (fills && !memory.fill_trees()) return false;
    // What entries are by themselves was looked at; now whether trees and sums are theirs.
    if (last_n() && memory.entries_.count(EntryState::held) > settings_.n) return false;
    if (all_have_entries() && memory.cost_of_held() != memory.cost()) return false;
    if (settings_.keep == Keep::all && !fills &&
        !(all_have_entries() ? memory.trees_are_entries() : memory.trees_hold_entries()))
        return false;
    swap(memory);
    return true;
}

}  // namespace limen
