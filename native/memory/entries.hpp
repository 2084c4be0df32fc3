// SPDX-License-Identifier: Apache-2.0
//
// What a memory knows of its samples, one entry each, found by id where they have one.
//
// make, drop, find   O(1) expected
// memory             48 bytes per entry, and 8 for each column in use: weights other than 1, losses
//                    (two), times of labels; ids of more than 16 bytes lie elsewhere
//
// After reserve() making an entry does not fail, and dropping one never does. A dropped entry gets
// a new turn, so that a number remembered from before is recognised.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/huge_pages.hpp"
#include "memory/id_table.hpp"
#include "memory/moment.hpp"
#include "memory/terms.hpp"

namespace limen {

// Values by number, in chunks of 8, 16, 32, ... that never move.
template <class T>
class Slab {
public:
    T& operator[](std::uint32_t at) {
        const auto [chunk, offset] = place(at);
        return chunks_[chunk][offset];
    }
    const T& operator[](std::uint32_t at) const {
        const auto [chunk, offset] = place(at);
        return chunks_[chunk][offset];
    }
    // Make sure that there are so many values; new ones are not set.
    void reserve(std::size_t size) {
        while (capacity() < size) {
            chunks_.reserve(chunks_.size() + 1);
            const std::size_t values = smallest << chunks_.size();
            chunks_.push_back(make_chunk<T>(values, values * sizeof(T) >= 2 * huge_page));
        }
    }
    std::size_t capacity() const { return (smallest << chunks_.size()) - smallest; }
    void swap(Slab& other) noexcept { chunks_.swap(other.chunks_); }

private:
    static constexpr std::size_t smallest = 8;

    static std::pair<std::size_t, std::size_t> place(std::uint32_t at) {
        const std::size_t from = at + smallest;
        const auto chunk = static_cast<std::size_t>(std::bit_width(from)) - 4;
        return {chunk, from - (smallest << chunk)};
    }

    std::vector<Chunk<T>> chunks_;
};

// An id that is too long to lie in an entry.
struct FarName {
    char* bytes;
    std::uint32_t size;
};

struct Entry {
    union {
        std::int64_t number;
        char here[16];
        FarName far;
        std::uint32_t next_free;
    };
    double score;
    std::int64_t time;
    std::uint32_t turn;
    std::uint32_t hash;
    std::uint32_t group;  // over last_n there are none, and this is the place in line
    std::uint8_t name;    // how the id is kept, and its kind times 32
    std::uint8_t bits;    // of the amount
    EntryState state;
    bool answer : 1, label : 1, labelled : 1;
    bool real : 1, timed : 1;        // the time
    bool placed : 1;                 // stands in the line of the window
    bool as_of : 1, as_of_real : 1;  // when the label was determined

    // Up to 16: so many bytes in place.
    static constexpr std::uint8_t far_name = 17, number_name = 18, no_name = 19, name_mask = 31;

    bool named() const { return (name & name_mask) != no_name; }
    Id id() const {
        const auto kind = static_cast<std::uint8_t>(name >> 5),
                   how = static_cast<std::uint8_t>(name & name_mask);
        if (how == number_name) return Id::of(number);
        if (how == far_name) return Id::of(kind, far.bytes, far.size);
        return Id::of(kind, here, how);
    }
    bool is(const Id& id) const {
        const std::uint8_t how = name & name_mask;
        if (id.kind == Id::number_kind) return how == number_name && number == id.number;
        if (how >= number_name || name >> 5 != id.kind) return false;
        if (how == far_name)
            return far.size == id.size && std::memcmp(far.bytes, id.bytes, id.size) == 0;
        return how == id.size && std::memcmp(here, id.bytes, id.size) == 0;
    }
    Time moment() const { return {time, real}; }
};
static_assert(sizeof(Entry) == 48);

// The bytes of an id that is too long to lie in an entry, copied before anything changes.
class NameCopy {
public:
    NameCopy() = default;
    explicit NameCopy(const Id& id) {
        if (id.kind == Id::number_kind || id.size <= sizeof Entry::here) return;
        bytes_.reset(new char[id.size]);
        std::memcpy(bytes_.get(), id.bytes, id.size);
    }
    char* release() { return bytes_.release(); }

private:
    std::unique_ptr<char[]> bytes_;
};

class Entries {
public:
    static constexpr std::uint32_t none = IdTable::none;

    Entries(const IdHash& hash, const Amount& usual, bool losses)
        : hash_(hash), usual_(usual), losses_(losses) {}
    ~Entries() {
        for (std::uint32_t at = 0; at < made_; ++at) unname(slab_[at]);
    }
    Entries(const Entries&) = delete;
    Entries& operator=(const Entries&) = delete;

    Entry& operator[](std::uint32_t at) { return slab_[at]; }
    const Entry& operator[](std::uint32_t at) const { return slab_[at]; }
    // For the table and for timelines.
    std::uint32_t hash(std::uint32_t at) const { return slab_[at].hash; }
    std::uint32_t turn(std::uint32_t at) const { return slab_[at].turn; }
    Time time(std::uint32_t at) const { return slab_[at].moment(); }

    std::size_t size() const { return used_; }
    std::size_t ids() const { return table_.size(); }
    std::uint32_t made() const { return made_; }
    std::size_t count(EntryState state) const { return counts_[static_cast<int>(state)]; }
    std::size_t memory() const {
        const std::size_t columns =
            std::size_t{has_firsts_} + has_seconds_ + has_as_of_ + has_places_;
        return made_ * (sizeof(Entry) + 8 * columns) + table_.memory() + far_bytes_;
    }

    std::uint32_t hash_of(const Id& id) const { return hash_(id); }
    std::uint32_t find(const Id& id, std::uint32_t hash) const {
        return table_.find(hash, [&](std::uint32_t at) { return slab_[at].is(id); });
    }
    // Steps towards an id that is soon looked for, each some lookups apart.
    void warm_slot(std::uint32_t hash) const { table_.warm(hash); }
    void warm_entry(std::uint32_t hash) const {
        const std::uint32_t at = table_.likely(hash);
        if (at != none) __builtin_prefetch(&slab_[at]);
    }

    // Whether so many more would be too many to count.
    bool full(std::size_t more) const { return used_ + more >= none; }
    // Make sure that the next `more` entries can be made, `named` of them with an id.
    void reserve(std::size_t more, std::size_t named) {
        const std::size_t free = made_ - used_;
        const std::size_t size = made_ + (more > free ? more - free : 0);
        slab_.reserve(size);
        if (has_firsts_) firsts_.reserve(size);
        if (has_seconds_) seconds_.reserve(size);
        if (has_as_of_) as_of_.reserve(size);
        if (has_places_) places_.reserve(size);
        table_.reserve(named);
    }
    // Make sure that an amount can be set, which may be the first that is not usual.
    void reserve_amount(const Amount& amount) {
        if (has_firsts_ && (has_seconds_ || !losses_)) return;
        if (amount == usual_ && !losses_) return;
        firsts_.reserve(slab_.capacity());
        if (losses_) seconds_.reserve(slab_.capacity());
        for (std::uint32_t at = 0; at < made_; ++at) {
            firsts_[at] = usual_.first;
            if (losses_) seconds_[at] = usual_.second;
        }
        has_firsts_ = true;
        has_seconds_ = losses_;
    }
    void reserve_as_of() {
        if (!has_as_of_) as_of_.reserve(slab_.capacity());
        has_as_of_ = true;
    }
    void reserve_places() {
        if (!has_places_) places_.reserve(slab_.capacity());
        has_places_ = true;
    }

    // Copies `name` where the id is long; null: an entry without an id.
    std::uint32_t make(EntryState state, const Id* id, std::uint32_t hash, char* far) {
        std::uint32_t at = free_;
        if (at == none) {
            at = made_++;
            slab_[at].turn = 0;
        } else {
            free_ = slab_[at].next_free;
        }
        ++used_;
        Entry& entry = slab_[at];
        entry.hash = hash;
        entry.name = Entry::no_name;
        entry.answer = entry.label = entry.labelled = entry.placed = false;
        entry.as_of = entry.as_of_real = false;
        entry.group = 0;
        entry.score = 0;
        set_time(at, nullptr);
        entry.state = state;
        ++counts_[static_cast<int>(state)];
        set_amount(at, usual_);
        if (id) {
            give_name(entry, *id, far);
            table_.add(at, hash);
        }
        return at;
    }
    void drop(std::uint32_t at) {
        forget_id(at);
        Entry& entry = slab_[at];
        --counts_[static_cast<int>(entry.state)];
        entry.state = EntryState::gone;
        entry.placed = false;
        ++entry.turn;
        entry.next_free = free_;
        free_ = at;
        --used_;
    }
    // Instead of dropping an entry without an id and making another of the same state.
    void renew(std::uint32_t at) {
        Entry& entry = slab_[at];
        entry.answer = entry.labelled = entry.placed = entry.as_of = entry.as_of_real = false;
        ++entry.turn;
    }
    void forget_id(std::uint32_t at) {
        if (!slab_[at].named()) return;
        table_.remove(at, slab_[at].hash);
        unname(slab_[at]);
    }

    void set_state(std::uint32_t at, EntryState state) {
        --counts_[static_cast<int>(slab_[at].state)];
        ++counts_[static_cast<int>(state)];
        slab_[at].state = state;
    }
    void set_time(std::uint32_t at, const Time* time) {
        Entry& entry = slab_[at];
        entry.timed = time != nullptr;
        entry.time = time ? time->bits : 0;
        entry.real = time && time->real;
    }
    // Whether this is the amount of all entries.
    bool is_usual(const Amount& amount) const { return !has_firsts_ && amount == usual_; }
    Amount amount(std::uint32_t at) const {
        if (!has_firsts_) return usual_;
        return {firsts_[at], has_seconds_ ? seconds_[at] : 0, slab_[at].bits};
    }
    void set_amount(std::uint32_t at, const Amount& amount) {
        slab_[at].bits = amount.bits;
        if (has_firsts_) firsts_[at] = amount.first;
        if (has_seconds_) seconds_[at] = amount.second;
    }
    Time as_of(std::uint32_t at) const { return {as_of_[at], slab_[at].as_of_real}; }
    void set_as_of(std::uint32_t at, const Time* time) {
        slab_[at].as_of = time != nullptr;
        slab_[at].as_of_real = time && time->real;
        if (time) as_of_[at] = time->bits;
    }
    bool has_as_of() const { return has_as_of_; }
    std::int64_t place(std::uint32_t at) const { return places_[at]; }
    void set_place(std::uint32_t at, std::int64_t place) { places_[at] = place; }

    // Become a copy: entry for entry, so that numbers and turns stay what they are. O(n).
    void copy(const Entries& other) {
        Entries made(other.hash_, other.usual_, other.losses_);
        made.has_firsts_ = other.has_firsts_;
        made.has_seconds_ = other.has_seconds_;
        made.has_as_of_ = other.has_as_of_;
        made.has_places_ = other.has_places_;
        made.reserve(other.made_, 0);
        for (std::uint32_t at = 0; at < other.made_; ++at, ++made.made_) {
            Entry& entry = made.slab_[at];
            entry = other.slab_[at];
            if ((entry.name & Entry::name_mask) == Entry::far_name) {
                entry.name = Entry::no_name;  // not to be freed twice when memory runs out
                NameCopy far(other.slab_[at].id());
                entry.far.bytes = far.release();
                entry.name = other.slab_[at].name;
            }
            if (has_firsts(other)) made.firsts_[at] = other.firsts_[at];
            if (other.has_seconds_) made.seconds_[at] = other.seconds_[at];
            if (other.has_as_of_) made.as_of_[at] = other.as_of_[at];
            if (other.has_places_) made.places_[at] = other.places_[at];
        }
        made.table_ = other.table_;
        made.free_ = other.free_;
        made.used_ = other.used_;
        made.far_bytes_ = other.far_bytes_;
        std::copy(other.counts_, other.counts_ + 6, made.counts_);
        swap(made);
    }
    void swap(Entries& other) noexcept {
        std::swap(hash_, other.hash_);
        std::swap(usual_, other.usual_);
        std::swap(losses_, other.losses_);
        slab_.swap(other.slab_);
        firsts_.swap(other.firsts_);
        seconds_.swap(other.seconds_);
        as_of_.swap(other.as_of_);
        places_.swap(other.places_);
        std::swap(has_firsts_, other.has_firsts_);
        std::swap(has_seconds_, other.has_seconds_);
        std::swap(has_as_of_, other.has_as_of_);
        std::swap(has_places_, other.has_places_);
        table_.swap(other.table_);
        std::swap(made_, other.made_);
        std::swap(free_, other.free_);
        std::swap(used_, other.used_);
        std::swap(far_bytes_, other.far_bytes_);
        std::swap(counts_, other.counts_);
    }

    void check() const {
        std::size_t counts[6] = {}, named = 0, used = 0, far = 0;
        for (std::uint32_t at = 0; at < made_; ++at) {
            const Entry& entry = slab_[at];
            require(entry.state <= EntryState::gone, "a state that is none");
            ++counts[static_cast<int>(entry.state)];
            if (entry.state == EntryState::gone) continue;
            ++used;
            if (!entry.named()) continue;
            ++named;
            require(entry.hash == hash_(entry.id()), "the hash of an id is wrong");
            require(find(entry.id(), entry.hash) == at, "an id is not found");
            if ((entry.name & Entry::name_mask) == Entry::far_name) far += entry.far.size;
        }
        for (int state = 0; state < 5; ++state)
            require(counts[state] == counts_[state], "the number of entries in a state is wrong");
        require(used == used_ && named == table_.size(), "the number of entries is wrong");
        require(far == far_bytes_, "the size of long ids is wrong");
        std::size_t free = 0;
        for (std::uint32_t at = free_; at != none; at = slab_[at].next_free) {
            require(at < made_ && slab_[at].state == EntryState::gone && ++free <= made_,
                    "the list of free places is wrong");
        }
        require(free == made_ - used_, "a free place is lost");
        table_.check(*this);
    }

private:
    static bool has_firsts(const Entries& of) { return of.has_firsts_; }
    static void require(bool holds, const char* otherwise) {
        if (!holds) throw std::logic_error(std::string("broken entries: ") + otherwise);
    }

    void give_name(Entry& entry, const Id& id, char* far) {
        if (id.kind == Id::number_kind) {
            entry.name = Entry::number_name;
            entry.number = id.number;
            return;
        }
        const auto kind = static_cast<unsigned>(id.kind) << 5;
        if (id.size <= sizeof entry.here) {
            entry.name = static_cast<std::uint8_t>(kind | id.size);
            if (id.size) std::memcpy(entry.here, id.bytes, id.size);
            return;
        }
        entry.name = static_cast<std::uint8_t>(kind | Entry::far_name);
        entry.far.bytes = far;
        entry.far.size = id.size;
        far_bytes_ += id.size;
    }
    void unname(Entry& entry) {
        if (entry.state != EntryState::gone && (entry.name & Entry::name_mask) == Entry::far_name) {
            delete[] entry.far.bytes;
            far_bytes_ -= entry.far.size;
        }
        entry.name = Entry::no_name;
    }

    IdHash hash_;
    Amount usual_;  // what needs no column
    bool losses_;
    Slab<Entry> slab_;
    Slab<std::int64_t> firsts_, seconds_, as_of_, places_;
    bool has_firsts_ = false, has_seconds_ = false, has_as_of_ = false, has_places_ = false;
    IdTable table_;
    std::uint32_t made_ = 0, free_ = none;
    std::size_t used_ = 0, far_bytes_ = 0;
    std::size_t counts_[6] = {};
};

}  // namespace limen
