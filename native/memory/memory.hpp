// SPDX-License-Identifier: Apache-2.0
//
// Which samples a model holds, and for how long: all, the last n, those of the last period, or all
// of them with weights that fade; with ids, joined from scores and labels that come apart.
//
// update, score, label, forget   what the tree takes for a sample that comes or goes, and O(1);
//                                O(log n) for what comes late
// advance                        the same for each sample that comes to count or leaves
// columns, restore, merge        O(n log n)
// memory                         48 bytes per entry, 11 to 21 per id, 8 per period that it waits
// for
//
// A call either happens or does not. What can fail comes first: it is found out how many samples
// will be added at most, whether the trees have room for them, and all memory is had. Then come
// changes that cannot fail. Where there is no room for the old and the new together, or weights
// are to be divided, everything happens in a copy, which is kept if all went well. So every
// refusal and every bad_alloc leaves all as it was.
//
// Not safe for concurrent use: locks are the caller's. check() throws std::logic_error on a broken
// invariant, in release builds too.
//
// Entries knows what is known of each sample, Clock what time it is and which entries come up,
// Placement how samples lie in trees, Account what answers cost. Memory calls them in order; its
// parts are defined beside it.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/account.hpp"
#include "memory/clock.hpp"
#include "memory/entries.hpp"
#include "memory/placement.hpp"
#include "memory/rules.hpp"
#include "memory/terms.hpp"

namespace limen {

struct MemoryOptions {
    std::uint64_t key = 0x9e3779b97f4a7c15u;      // of the hash of ids: random in each process
    std::uint64_t hash_mask = ~std::uint64_t{0};  // fewer bits make collisions: for tests
};

template <class Tree>
class Memory : private MemoryRules {
public:
    // `held` must outlive this, be empty unless restore() follows, and have its costs set.
    Memory(HeldSamples<Tree>& held, const MemorySettings& settings,
           const MemoryOptions& options = {})
        : MemoryRules(settings), options_(options),
          entries_(IdHash(options.key, options.hash_mask), normal({}), !settings.labelled),
          clock_(settings), account_(settings, held.unit()), placement_(held, settings, clock_) {
        if (by_number()) entries_.reserve_places();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // A further group, inside of an earlier one: what it holds, that one holds too. Group 0 is the
    // one of the constructor. Returns its number. Not for last_n, nor for fading by number.
    std::uint32_t add_group(HeldSamples<Tree>& held, std::uint32_t inside = 0) {
        return placement_.add_group(held, inside);
    }
    // After this, add_group() does not fail.
    void reserve_group() { placement_.reserve_group(); }

    const MemorySettings& settings() const { return settings_; }

    // ---- without ids: last_n, last_period, fading ----

    // `time` is needed by last_period and fading by time, and must be null otherwise.
    Result update(double score, bool label, const Amount& amount, const Time* time);
    // The same as one by one, all or none; counted[i] becomes whether row i counts.
    Result update_many(const BatchColumns& rows, std::uint8_t* counted);

    // ---- with ids ----

    // With losses the amount is ignored. answer -1: by the threshold of this moment.
    Result score(const Id& id, double score, const Amount& weight, const Time* time, int answer,
                 std::uint32_t group = 0);
    // With labels the amount is ignored; with losses the label. as_of is when the label was
    // determined: an older one than that held changes nothing.
    Result label(const Id& id, bool label, const Amount& losses, const Time* as_of = nullptr);
    Result forget(const Id& id);
    // answers[i], and whether row i is recorded (null: nobody asks).
    Result score_many(const BatchColumns& rows, std::uint8_t* answers, std::uint8_t* recorded);
    // scored[i] becomes whether the id has a score.
    Result label_many(const BatchColumns& rows, std::uint8_t* scored);

    // ---- for both ----

    Result advance(const Time& time);

    bool contains(const Id& id) const {
        return entries_.find(id, entries_.hash_of(id)) != Entries::none;
    }
    // Whether the id has a score, which may come again without a time.
    bool has_score(const Id& id) const {
        const std::uint32_t at = entries_.find(id, entries_.hash_of(id));
        return at != Entries::none && entries_[at].state != EntryState::waiting;
    }
    // What is known of an id, null where it is not, and when its label was determined.
    std::pair<const Entry*, std::optional<Time>> known(const Id& id) const {
        const std::uint32_t at = entries_.find(id, entries_.hash_of(id));
        if (at == Entries::none) return {nullptr, std::nullopt};
        const Entry& entry = entries_[at];
        return {&entry, entry.as_of ? std::optional(entries_.as_of(at)) : std::nullopt};
    }
    // The label of an id that has a score; -1 where none is known.
    int outcome(const Id& id) const {
        const std::uint32_t at = entries_.find(id, entries_.hash_of(id));
        return at != Entries::none && entries_[at].labelled ? entries_[at].label : -1;
    }
    // The group of an id, 0 where it is not known; the next larger group, that of all at last.
    std::uint32_t group_of(const Id& id) const {
        const std::uint32_t at = entries_.find(id, entries_.hash_of(id));
        return at == Entries::none || last_n() ? 0 : entries_[at].group;
    }
    std::uint32_t around(std::uint32_t of) const { return of ? placement_.group(of).inside : 0; }
    std::size_t ids() const { return entries_.ids(); }
    StateCounts states() const {
        return {entries_.count(EntryState::waiting), entries_.count(EntryState::open),
                entries_.count(EntryState::young), entries_.count(EntryState::held),
                entries_.count(EntryState::empty)};
    }
    std::optional<Time> newest() const { return clock_.now(); }
    std::uint64_t expired() const { return expired_; }
    // Too old for the window or the horizon, or too far ahead.
    std::uint64_t refused() const { return refused_; }
    // In bytes, without the trees.
    std::size_t memory() const {
        return sizeof *this + entries_.memory() + clock_.memory() +
               placement_.groups().capacity() * sizeof(Group);
    }

    // In units of 2^-sum_bits() (of a fixed unit 2^0), times the whole costs: exact.
    int sum_bits() const { return account_.sum_bits(); }
    Wide cost() const { return account_.cost(); }
    Wide ever() const { return account_.lifetime_cost(); }
    // Of the cheapest cut, at the costs of the account.
    Wide loss(std::uint32_t of = 0) const { return placement_.loss(of); }
    double threshold(std::uint32_t of = 0) const { return placement_.threshold(of); }
    // The group that answers for this one: it holds enough samples, or is the one of all.
    std::uint32_t answering(std::uint32_t of) const { return placement_.answering(of); }
    // Fading by time: let a group without events drop what has faded by now. O(n) at most.
    void refresh(std::uint32_t of) { placement_.refresh(of); }
    // Fading: what the sums of a group are to be divided by, and the cost in units of today.
    double scale(std::uint32_t of = 0) const { return placement_.scale(of); }
    // Where a sample of the group is held with its own weight: it moves when weights are divided.
    std::optional<std::int64_t> base(std::uint32_t of = 0) const {
        return placement_.group(of).base;
    }
    double faded_cost() const {
        return account_.faded_cost([&](double base) { return placement_.now(base); });
    }

    // Of these groups those that hold a sample or that an entry names, and the ones around them,
    // in this order. False when one of them is missing.
    bool used(const std::vector<std::uint32_t>& order, std::vector<std::uint32_t>& found) const;
    // Groups are numbered by their place in `order`; where it is empty, all as they are.
    MemoryColumns columns(const std::vector<std::uint32_t>& order = {}) const;
    // Every entry that has a score, in no order, with its amount and its place. O(n).
    template <class Visit>
    void each_score(Visit&& visit) const {
        for (std::uint32_t at = 0; at < entries_.made(); ++at) {
            const Entry& entry = entries_[at];
            if (entry.state != EntryState::gone && entry.state != EntryState::waiting)
                visit(entry, entries_.amount(at), entry.as_of ? entries_.as_of(at).bits : 0);
        }
    }
    // Become what columns() described, with the same settings. The model must hold what it held
    // then; over last_n and last_period, and where it is said to be, it must be empty instead, and
    // is filled with the samples of the entries. False, and unchanged, when these columns describe
    // no such memory.
    bool restore(const MemoryColumns& columns, bool empty = false);
    // Know what another memory with the same settings knows too; that one stays as it is. Its
    // group i is our group into[i]; where `into` is empty, groups are the same.
    Result merge(const Memory& other, std::vector<std::uint32_t> into = {});

    void check() const;

private:
    using Group = typename Placement<Tree>::Group;
    using Sample = typename Placement<Tree>::Sample;
    using FadeRescale = typename Placement<Tree>::FadeRescale;
    static constexpr std::uint32_t no_group = Placement<Tree>::no_group;
    static constexpr bool bounded = Placement<Tree>::bounded;

    struct Copy;  // with trees of its own
    // What a call will need besides the trees.
    struct Needs {
        std::size_t entries = 0, ids = 0, scored = 0, entering = 0;
        bool copy = false;  // it may not go well, or weights are to be divided: try it in a copy
    };
    // ---- what answers cost ----

    Wide price(std::uint32_t at) const { return account_.price(entries_[at], entries_.amount(at)); }
    // Let the answer to an entry cost so much more.
    void count_cost(std::uint32_t at, Wide change) {
        if (!fading()) return account_.add(change);
        const Sample of = sample(at);
        account_.add_faded(change, [&](double base) { return placement_.position(of, base); });
    }

    Sample sample(std::uint32_t at) const;
    // A sample may be taken back. One that has faded leaves a remainder, for which a tree may need
    // as much memory as for a sample that comes.
    void want_back(std::uint32_t at) {
        if (bounded || (fading() && entries_[at].state == EntryState::held))
            placement_.want_back(entries_[at].group);
    }
    static Result refused(MemoryRefusal refusal, std::size_t row = 0) {
        Result done;
        done.refusal = refusal;
        done.row = row;
        return done;
    }

    // ---- steps.hpp: how entries come to count, and cease to ----

    bool is_young(std::uint32_t at, bool label, const Amount& amount) const;
    MemoryRefusal plan_tick(const Time& moment, Needs& needs, FadeRescale* division = nullptr);
    void reserve(const Needs& needs) {
        entries_.reserve(needs.entries, needs.ids);
        clock_.reserve(needs.scored, needs.entering);
    }
    void tick(const Time& moment, std::uint32_t* leaving = nullptr);
    void wait_from(const Time& moment);
    void settle();
    void settle_one(std::uint32_t at);
    void set_outcome(std::uint32_t at, bool label, const Amount& losses);
    void change(std::uint32_t at, bool label, const Amount& losses);
    void enter(std::uint32_t at);
    void leave(std::uint32_t at);
    void leave_oldest();
    bool admits(const Time& time) const;
    void hold_entry(std::uint32_t at);
    void warm_next(bool exchanges = false) const;

    // ---- calls.hpp: what each call does once nothing can fail ----

    bool changes(std::uint32_t at, bool label, const Amount& losses, const Time* as_of) const;
    bool has_outcome(std::uint32_t at, bool label, const Amount& losses) const;
    bool stays_young(std::uint32_t at, const Amount& weight, const Time& moment) const;
    Result known_score(std::uint32_t at, double score, const Amount& weight,
                       std::uint32_t in) const;
    Result record(const Id& id, std::uint32_t hash, std::uint32_t at, double score,
                  const Amount& weight, const Time& moment, bool counts, int answer,
                  std::uint32_t in, NameCopy& name);
    Result put_label(const Id& id, std::uint32_t hash, std::uint32_t at, bool label,
                     const Amount& losses, const Time* as_of, NameCopy& name);
    bool step(double score, bool label, const Amount& amount, const Time* time);
    Result plan_and_put(double score, bool label, const Amount& amount, const Time* time);
    Result put_sample(double score, bool label, const Amount& amount, const Time* time);
    bool exchange(std::uint32_t leaving, double score, bool label, const Amount& amount);
    void set_sample(std::uint32_t at, double score, bool label, const Amount& amount,
                    const Time* time);
    MemoryRefusal plan_sample(double score, bool label, const Amount& amount, const Time* time,
                              Needs& needs);
    void plan_label(std::uint32_t at, bool label, const Amount& losses, Needs& needs);
    template <class Work>
    Result perform(const Needs& needs, Work&& work);

    // ---- batches.hpp ----

    Result update_at_once(const BatchColumns& rows, const Needs& needs,
                          std::vector<std::size_t>& staying, std::size_t refusing,
                          const std::optional<Time>& newest);
    void look_up(const BatchColumns& rows, std::vector<std::uint32_t>& hashes,
                 std::vector<std::uint32_t>& found) const;
    std::vector<NameCopy> copy_names(const BatchColumns& rows,
                                     const std::vector<std::uint32_t>& found) const;
    bool contradicts_itself(const BatchColumns& rows,
                            const std::vector<std::uint32_t>& hashes) const;
    bool divide_for_scores(const BatchColumns& rows, const std::vector<std::uint32_t>& found,
                           FadeRescale& division);
    void plan_scores(const BatchColumns& rows, const std::vector<std::uint32_t>& hashes,
                     const std::vector<std::uint32_t>& found, Needs& needs, FadeRescale& division);
    Result score_row(const BatchColumns& rows, std::size_t i, std::uint32_t hash, NameCopy& name);

    // ---- columns.hpp, check.hpp ----

    std::vector<std::uint32_t> ordered(const std::vector<std::uint32_t>& places) const;
    void put_places(const std::vector<std::uint32_t>& order, MemoryColumns& out) const;
    bool has_shape(const MemoryColumns& in) const;
    bool is_possible(const MemoryColumns& in, std::size_t i) const;
    bool take(const MemoryColumns& in);
    static Id id_in(const MemoryColumns& in, std::size_t i);
    bool take_entry(const MemoryColumns& in, std::size_t i, std::uint32_t hash, bool is_new);
    void take_lines(const MemoryColumns& in);
    bool fill_trees();
    // The samples of the entries that a group holds, in `bits` places.
    struct HeldRows {
        std::vector<LossRow> rows;
        int bits = 0;
    };
    bool held_rows(std::vector<HeldRows>& of_groups) const;
    bool trees_hold_entries() const;
    bool trees_are_entries() const;
    const char* fault_of(std::uint32_t at) const;
    Wide cost_of_held() const;
    // Whether no sample stays whose entry is gone.
    bool all_have_entries() const {
        return last_n() || last_period() || (!fading() && !settings_.correctable);
    }

    // ---- merge.hpp ----

    bool is_like(const Memory& other, const std::vector<std::uint32_t>& into) const;
    void catch_up(const Time& moment);
    void take_over(const Memory& other, const std::vector<std::uint32_t>& into);
    void take_sums(const Memory& other);

    void swap(Memory& other) noexcept;

    MemoryOptions options_;
    Entries entries_;
    Clock clock_;
    Account account_;
    Placement<Tree> placement_;
    std::uint64_t expired_ = 0, refused_ = 0;
};

}  // namespace limen

#include "memory/batches.hpp"
#include "memory/calls.hpp"
#include "memory/check.hpp"
#include "memory/columns.hpp"
#include "memory/merge.hpp"
#include "memory/steps.hpp"
