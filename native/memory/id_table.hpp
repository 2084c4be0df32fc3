// SPDX-License-Identifier: Apache-2.0
//
// Where the entry of an id is: open addressing over entry numbers and hashes, and the hash of ids.
//
// find, add, remove   O(1) expected; the hash has a key, so that nobody can choose ids that meet
// memory              8 bytes per slot, of which three eighths to three quarters are in use
//
// Slots know the hash of their entry: looking for an id, growing and shifting read the table from
// one slot to the next, and no entry but the one that is found. Removing shifts what follows back
// instead of leaving marks, so a table never grows old.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/wide.hpp"
#include "memory/terms.hpp"

namespace limen {

// A hash with a secret key: every bit of the id and of the key moves every bit of the hash. Two
// rounds of multiplying to 128 bits and folding for each 16 bytes, after wyhash.
class IdHash {
public:
    explicit IdHash(std::uint64_t key, std::uint64_t mask = ~std::uint64_t{0})
        : first_(fold(key ^ 0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu) | 1),
          second_(fold(key ^ 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u) | 1), mask_(mask) {}

    std::uint32_t operator()(const Id& id) const {
        const std::uint64_t hash = id.kind == Id::number_kind
                                       ? mixed(static_cast<std::uint64_t>(id.number), 0, 8)
                                       : of_bytes(id.bytes, id.size, id.kind);
        return static_cast<std::uint32_t>((hash ^ hash >> 32) & mask_);
    }

private:
    static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
        const WideUnsigned product = WideUnsigned{a} * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }
    std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t seed) const {
        return fold(fold(a ^ first_, b ^ second_ ^ seed) ^ first_, second_);
    }
    std::uint64_t of_bytes(const char* bytes, std::size_t size, std::uint8_t kind) const {
        std::uint64_t seed = (std::uint64_t{size} << 8 | kind) * 0x9e3779b97f4a7c15u;
        std::uint64_t a, b;
        for (; size > 16; bytes += 16, size -= 16) {
            std::memcpy(&a, bytes, 8);
            std::memcpy(&b, bytes + 8, 8);
            seed = mixed(a, b, seed);
        }
        a = b = 0;
        std::memcpy(&a, bytes, size < 8 ? size : 8);
        if (size > 8) std::memcpy(&b, bytes + 8, size - 8);
        return mixed(a, b, seed);
    }

    std::uint64_t first_, second_, mask_;
};

// Numbers of entries from 0, by hash.
class IdTable {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    std::size_t size() const { return used_; }
    std::size_t memory() const { return slots_.capacity() * sizeof(Slot); }

    // The entry for which `is` holds among those of this hash, or none.
    template <class Is>
    std::uint32_t find(std::uint32_t hash, Is&& is) const {
        if (slots_.empty()) return none;
        for (std::size_t i = home(hash);; i = next(i)) {
            const Slot& slot = slots_[i];
            if (slot.at == none || (slot.hash == hash && is(slot.at))) return slot.at;
        }
    }
    void warm(std::uint32_t hash) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[home(hash)]);
    }
    // The entry if there is one, judging by its hash.
    std::uint32_t likely(std::uint32_t hash) const {
        return find(hash, [](std::uint32_t) { return true; });
    }

    // Make sure that the next `more` calls of add() cannot fail.
    void reserve(std::size_t more) {
        const std::size_t needed = used_ + more;
        if (needed * 4 <= slots_.size() * 3) return;
        std::size_t size = slots_.empty() ? 8 : 2 * slots_.size();
        while (needed * 4 > size * 3) size *= 2;
        Slots old(size);
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.at != none) put(slot);
    }
    void add(std::uint32_t at, std::uint32_t hash) {
        put({at, hash});
        ++used_;
    }
    void remove(std::uint32_t at, std::uint32_t hash) {
        std::size_t hole = home(hash);
        while (slots_[hole].at != at) hole = next(hole);
        --used_;
        for (std::size_t i = next(hole); slots_[i].at != none; i = next(i)) {
            // An entry may move back to the hole unless its home lies behind it.
            const std::size_t from = home(slots_[i].hash);
            if (((i - from) & mask()) < ((i - hole) & mask())) continue;
            slots_[hole] = slots_[i];
            hole = i;
        }
        slots_[hole].at = none;
    }
    void swap(IdTable& other) noexcept {
        std::swap(slots_, other.slots_);
        std::swap(used_, other.used_);
    }

    // Every entry can be found from its home by its hash, `entries.hash(number)`, and there are as
    // many as said.
    template <class Entries>
    void check(const Entries& entries) const {
        std::size_t seen = 0;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i].at == none) continue;
            ++seen;
            if (slots_[i].hash != entries.hash(slots_[i].at))
                throw std::logic_error("broken table: a hash is not that of its entry");
            for (std::size_t at = home(slots_[i].hash); at != i; at = next(at))
                if (slots_[at].at == none) throw std::logic_error("broken table: an id is astray");
        }
        if (seen != used_ || used_ * 4 > slots_.size() * 3)
            throw std::logic_error("broken table: the number of ids is wrong");
    }

private:
    struct Slot {
        std::uint32_t at = none, hash = 0;
    };
    using Slots = std::vector<Slot, HugePages<Slot>>;

    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(std::uint32_t hash) const { return hash & mask(); }
    std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
    void put(const Slot& slot) {
        std::size_t i = home(slot.hash);
        while (slots_[i].at != none) i = next(i);
        slots_[i] = slot;
    }

    Slots slots_;
    std::size_t used_ = 0;
};

}  // namespace limen
