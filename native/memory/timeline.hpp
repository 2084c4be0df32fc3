// SPDX-License-Identifier: Apache-2.0
//
// Entries that come up in the order of their times, whatever order they came in.
//
// add      O(1) for one that is older than a few before at most, else O(log n)
// first    O(1), and O(1) for each that was dropped since
// memory   8 bytes each, 32 for those that come late
//
// What stands here is an entry's number and its turn, which changes when the entry is reused:
// dropping an entry costs nothing, its places are passed over when they come up. Entries of one
// time come up in the order in which they were added.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "memory/moment.hpp"

namespace limen {

// A queue that keeps its memory; after reserve() pushing does not fail.
template <class T>
class Ring {
public:
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::size_t memory() const { return slots_.capacity() * sizeof(T); }
    const T& operator[](std::size_t i) const { return slots_[(head_ + i) & mask()]; }
    T& operator[](std::size_t i) { return slots_[(head_ + i) & mask()]; }
    const T& front() const { return slots_[head_]; }

    void reserve(std::size_t more) {
        if (size_ + more <= slots_.size()) return;
        std::size_t capacity = std::max<std::size_t>(8, 2 * slots_.size());
        while (capacity < size_ + more) capacity *= 2;
        std::vector<T> larger(capacity);
        for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
        slots_.swap(larger);
        head_ = 0;
    }
    void push(const T& value) { slots_[(head_ + size_++) & mask()] = value; }
    void pop() {
        head_ = (head_ + 1) & mask();
        --size_;
    }
    // Push a value before the last `behind` ones.
    void insert(std::size_t behind, const T& value) {
        const std::size_t at = size_++ - behind;
        for (std::size_t i = size_ - 1; i > at; --i) (*this)[i] = (*this)[i - 1];
        (*this)[at] = value;
    }
    template <class Keep>
    void keep_if(Keep&& keep) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < size_; ++i)
            if (keep((*this)[i])) (*this)[kept++] = (*this)[i];
        size_ = kept;
    }
    void swap(Ring& other) noexcept {
        std::swap(slots_, other.slots_);
        std::swap(head_, other.head_);
        std::swap(size_, other.size_);
    }

private:
    std::size_t mask() const { return slots_.size() - 1; }

    std::vector<T> slots_;
    std::size_t head_ = 0, size_ = 0;
};

// An entry as it was when it came to stand somewhere.
struct Place {
    std::uint32_t at, turn;
};

// `Entries` offers entries.turn(number) and entries.time(number).
class Timeline {
public:
    std::size_t size() const { return line_.size() + late_.size(); }
    std::size_t memory() const { return line_.memory() + late_.capacity() * sizeof(Late); }

    // Make sure that the next `more` calls of add() cannot fail.
    void reserve(std::size_t more) {
        line_.reserve(more);
        if (late_.capacity() < late_.size() + more)
            late_.reserve(std::max(late_.size() + more, 2 * late_.capacity()));
    }
    template <class Entries>
    void add(const Entries& entries, const Time& time, const Place& place) {
        // Where the line was emptied but some are late, those of the same time came before: the
        // last time stays.
        if (size() == 0 || last_ <= time) {
            last_ = time;
            return line_.push(place);
        }
        if (time < head_.time) head_known_ = false;
        if (late_.empty() || latest_late_ < time) {
            if (insert(entries, time, place)) return;
            latest_late_ = time;
        }
        late_.push_back({time, place, ++added_});
        std::push_heap(late_.begin(), late_.end());
    }

    // The first entry, where its time is not after the edge; passes over what was dropped.
    template <class Entries>
    LIMEN_INLINE bool first(const Entries& entries, const Time& edge, Place& found) {
        if (!head_known_ || entries.turn(head_.place.at) != head_.place.turn) {
            pass_over(entries);
            head_known_ = size() > 0;
            if (!head_known_) return false;
            head_ = head(entries);
        }
        if (edge < head_.time) return false;
        found = head_.place;
        return true;
    }
    // Take out what first() found.
    LIMEN_INLINE void pop() {
        if (head_.late)
            pop_late();
        else
            line_.pop();
        head_known_ = false;
    }

    // The entry after the first ones in line, to be asked for early; false where there is none.
    bool ahead(std::size_t i, Place& found) const {
        if (i >= line_.size()) return false;
        found = line_[i];
        return true;
    }

    // The first of those that came late; false where there is none.
    bool late(Place& found) const {
        if (late_.empty()) return false;
        found = late_.front().place;
        return true;
    }

    // Every entry whose time is not after the edge, in no order and left where it is.
    template <class Entries, class Visit>
    void look(const Entries& entries, const Time& edge, Visit&& visit) const {
        for (std::size_t i = 0; i < line_.size(); ++i) {
            const Place& place = line_[i];
            if (entries.turn(place.at) != place.turn) continue;
            if (edge < entries.time(place.at)) break;
            visit(place.at);
        }
        look_late(0, entries, edge, visit);
    }

    // Every entry in order, with all that was dropped left out. O(n log n).
    template <class Entries>
    std::vector<std::uint32_t> in_order(const Entries& entries) const {
        std::vector<Late> all;
        all.reserve(size());
        for (std::size_t i = 0; i < line_.size(); ++i)
            if (entries.turn(line_[i].at) == line_[i].turn)
                all.push_back({entries.time(line_[i].at), line_[i], i});
        for (const Late& late : late_)
            if (entries.turn(late.place.at) == late.place.turn)
                all.push_back({late.time, late.place, line_.size() + late.number});
        std::sort(all.begin(), all.end(), [](const Late& a, const Late& b) { return b < a; });
        std::vector<std::uint32_t> order;
        order.reserve(all.size());
        for (const Late& one : all) order.push_back(one.place.at);
        return order;
    }

    // Those in line ascend, and those late form a heap.
    template <class Entries>
    void check(const Entries& entries) const {
        Time last = Time::never();
        for (std::size_t i = 0; i < line_.size(); ++i) {
            if (entries.turn(line_[i].at) != line_[i].turn) continue;
            const Time time = entries.time(line_[i].at);
            if (time < last || last_ < time) throw std::logic_error("broken timeline: no order");
            last = time;
        }
        if (!std::is_heap(late_.begin(), late_.end()))
            throw std::logic_error("broken timeline: no heap");
        for (const Late& late : late_)
            if (entries.turn(late.place.at) == late.place.turn &&
                !(entries.time(late.place.at) == late.time))
                throw std::logic_error("broken timeline: another time");
        if (!head_known_ || entries.turn(head_.place.at) != head_.place.turn) return;
        const std::vector<std::uint32_t> order = in_order(entries);
        if (order.empty() || order[0] != head_.place.at || !(entries.time(order[0]) == head_.time))
            throw std::logic_error("broken timeline: another one is first");
    }

private:
    struct Late {
        Time time;
        Place place;
        std::uint64_t number;

        // The largest of a heap comes first.
        LIMEN_INLINE bool operator<(const Late& other) const {
            if (time < other.time) return false;
            return other.time < time || other.number < number;
        }
    };

    // Put one into the line that comes up before a few others only; no late one has its time.
    template <class Entries>
    bool insert(const Entries& entries, const Time& time, const Place& place) {
        constexpr std::size_t few = 16;
        for (std::size_t behind = 0; behind < few; ++behind) {
            const std::size_t left = line_.size() - behind;
            if (left == 0 || (entries.turn(line_[left - 1].at) == line_[left - 1].turn &&
                              entries.time(line_[left - 1].at) <= time)) {
                line_.insert(behind, place);
                return true;
            }
        }
        return false;
    }
    template <class Entries>
    LIMEN_INLINE void pass_over(const Entries& entries) {
        while (!line_.empty() && entries.turn(line_.front().at) != line_.front().turn) line_.pop();
        while (!late_.empty() && entries.turn(late_.front().place.at) != late_.front().place.turn)
            pop_late();
    }
    LIMEN_NOINLINE void pop_late() {
        std::pop_heap(late_.begin(), late_.end());
        late_.pop_back();
    }
    // The first entry, and where it stands.
    struct Head {
        Time time;
        Place place;
        bool late;
    };
    // Of one time, those in line came first.
    template <class Entries>
    LIMEN_INLINE Head head(const Entries& entries) const {
        const bool none = line_.empty();
        const Time time = none ? Time{} : entries.time(line_.front().at);
        if (!late_.empty() && (none || late_.front().time < time))
            return {late_.front().time, late_.front().place, true};
        return {time, line_.front(), false};
    }
    template <class Entries, class Visit>
    void look_late(std::size_t i, const Entries& entries, const Time& edge, Visit& visit) const {
        if (i >= late_.size() || edge < late_[i].time) return;
        const Place& place = late_[i].place;
        if (entries.turn(place.at) == place.turn) visit(place.at);
        look_late(2 * i + 1, entries, edge, visit);
        look_late(2 * i + 2, entries, edge, visit);
    }

    Ring<Place> line_;
    std::vector<Late> late_;
    Time last_{};         // of what was added to the end of the line last
    Time latest_late_{};  // of those that came late, while there are any
    // Found once for the look that sees it is too young and the one that takes it. It is known
    // until it is taken out or another one comes before it, and it may be dropped meanwhile.
    Head head_{};
    bool head_known_ = false;
    std::uint64_t added_ = 0;
};

}  // namespace limen
