// SPDX-License-Identifier: Apache-2.0
//
// Which samples a model holds, and for how long: all, the last n, those of the last period, or all
// of them with weights that fade; with ids, joined from scores and labels that come apart.
//
// A call either happens or does not. What can fail (too large, no memory) comes first; then come
// changes that cannot. Every refusal and every bad_alloc leaves all as it was. Nothing here is
// safe for concurrent use: locks are the caller's. check() throws std::logic_error on a broken
// invariant, in release builds too.
//
// update, score, label, forget   what the tree takes for a sample that comes or goes, and O(1);
//                                O(log n) for what comes late
// advance                        the same for each sample that comes to count or leaves
// columns, restore, merge        O(n log n)
// memory                         48 bytes per entry, 5 to 11 per id, 8 per period that it waits for

#pragma once

#include "memory_terms.hpp"

namespace limen {

struct MemoryOptions {
    std::uint64_t key = 0x9e3779b97f4a7c15u;      // of the hash of ids: random in each process
    std::uint64_t hash_mask = ~std::uint64_t{0};  // fewer bits make collisions: for tests
};

template <class Tree>
class Memory {
public:
    // What is held must be empty and outlive this. `held` has its costs set (set_costs).
    Memory(HeldSamples<Tree>& held, const MemorySettings& settings, const MemoryOptions& = {});
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // A further group, inside of an earlier one: what it holds, that one holds too. Group 0 is the
    // one of the constructor. Returns its number. Not for last_n, nor for fading by number.
    std::uint32_t add_group(HeldSamples<Tree>& held, std::uint32_t inside = 0);

    // ---- without ids: last_n, last_period, fading ----

    // `time` is needed by last_period and fading by time, and must be null otherwise.
    Done update(double score, bool label, const Amount& amount, const Time* time);
    // The same as one by one, all or none; counted[i] becomes whether row i counts.
    Done update_many(const BatchColumns& rows, std::uint8_t* counted);

    // ---- with ids ----

    // With losses the amount is ignored. answer -1: by the threshold of this moment.
    Done score(const Id& id, double score, const Amount& weight, const Time* time, int answer,
               std::uint32_t group = 0);
    // With labels the amount is ignored; with losses the label.
    Done label(const Id& id, bool label, const Amount& losses, const Time* as_of = nullptr);
    Done forget(const Id& id);
    // answers[i], and whether row i is recorded (null: who cares).
    Done score_many(const BatchColumns& rows, std::uint8_t* answers, std::uint8_t* recorded);
    // scored[i] becomes whether the id has a score.
    Done label_many(const BatchColumns& rows, std::uint8_t* scored);

    // ---- for both ----

    Done advance(const Time& time);

    bool contains(const Id& id) const;
    std::size_t ids() const;
    StateCounts states() const;  // O(1)
    std::optional<Time> newest() const;
    std::uint64_t expired() const;
    std::uint64_t refused() const;  // too old for the window or the horizon, or too far ahead
    std::size_t memory() const;     // bytes, without the trees

    // In units of 2^-sum_bits() (of a fixed unit 2^0), times the whole costs: exact.
    int sum_bits() const;
    Wide cost() const;
    Wide ever() const;
    Wide loss(std::uint32_t group = 0) const;  // of the cheapest cut, at the costs of the account
    // Fading: what sums of a group are to be divided by, and the cost in units of today.
    double scale(std::uint32_t group = 0) const;
    double faded_cost() const;

    MemoryColumns columns() const;
    // Become what columns() described, with the same settings; the model must hold what it held
    // then. False, and unchanged, when these columns describe no such memory. Over last_n and
    // last_period the model must be empty instead, and is filled with the samples of the entries.
    bool restore(const MemoryColumns& columns);
    // Know what another memory with the same settings knows too; its model stays as it is.
    Done merge(const Memory& other);

    void check() const;
};

}  // namespace limen
