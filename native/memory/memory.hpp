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
// One file although long: one class is declared here; its parts are defined beside it.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/entries.hpp"
#include "memory/fading.hpp"
#include "memory/terms.hpp"
#include "memory/timeline.hpp"

namespace limen {

struct MemoryOptions {
    std::uint64_t key = 0x9e3779b97f4a7c15u;      // of the hash of ids: random in each process
    std::uint64_t hash_mask = ~std::uint64_t{0};  // fewer bits make collisions: for tests
};

// All that a memory knows besides its entries and trees: what a copy takes over as it is.
struct MemoryMarks {
    Ring<Place> line_;  // last_n: samples in the order in which they leave; turns are places
    std::uint32_t places_ = 0;
    Timeline window_;                // last_period: samples by time
    Timeline open_, young_, final_;  // what waits for its time to live, maturity, end of correction

    std::optional<Time> clock_;
    // So long before the clock; without such a period before all times.
    Time window_edge_ = Time::never(), ttl_edge_ = Time::never(), maturity_edge_ = Time::never(),
         final_edge_ = Time::never(), horizon_edge_ = Time::never();
    std::optional<bool> counts_;  // whether scores come without times
    std::uint64_t expired_ = 0, refused_ = 0;
    Wide cost_ = 0, lifetime_cost_ = 0;
    std::optional<Time> dropped_;  // last_n with a horizon: the newest time that left by number

    std::uint64_t count_ = 0;  // fading: samples so far
    std::optional<Time> origin_;
    double spent_ = 0, spent_at_ = 0;  // fading: the cost of answers, in terms of this position
};

template <class Tree>
class Memory : private MemoryMarks {
public:
    // `held` must outlive this, be empty unless restore() follows, and have its costs set.
    Memory(HeldSamples<Tree>& held, const MemorySettings& settings,
           const MemoryOptions& options = {})
        : settings_(settings), options_(options),
          entries_(IdHash(options.key, options.hash_mask), normal({}, settings),
                   !settings.labelled),
          lives_(settings.period, settings.by_time) {
        if (by_number()) entries_.reserve_places();
        groups_.push_back({no_group, &held, {}, {}});
        if (settings.keep == Keep::fading) held.set_fading();
        touched_.reserve(1);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // A further group, inside of an earlier one: what it holds, that one holds too. Group 0 is the
    // one of the constructor. Returns its number. Not for last_n, nor for fading by number.
    std::uint32_t add_group(HeldSamples<Tree>& held, std::uint32_t inside = 0) {
        reserve_group();
        groups_.push_back({inside, &held, {}, {}});
        if (settings_.keep == Keep::fading) held.set_fading();
        return static_cast<std::uint32_t>(groups_.size() - 1);
    }

    // After this, add_group() does not fail.
    void reserve_group() {
        if (groups_.size() == groups_.capacity()) groups_.reserve(2 * groups_.size());
        touched_.reserve(groups_.capacity());
    }

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
    std::uint32_t around(std::uint32_t of) const { return of ? group(of).inside : 0; }
    std::size_t ids() const { return entries_.ids(); }
    StateCounts states() const {
        return {entries_.count(EntryState::waiting), entries_.count(EntryState::open),
                entries_.count(EntryState::young), entries_.count(EntryState::held),
                entries_.count(EntryState::empty)};
    }
    std::optional<Time> newest() const { return clock_; }
    std::uint64_t expired() const { return expired_; }
    // Too old for the window or the horizon, or too far ahead.
    std::uint64_t refused() const { return refused_; }
    // In bytes, without the trees.
    std::size_t memory() const {
        return sizeof *this + entries_.memory() + line_.memory() + window_.memory() +
               open_.memory() + young_.memory() + final_.memory() +
               groups_.capacity() * sizeof(Group);
    }

    // In units of 2^-sum_bits() (of a fixed unit 2^0), times the whole costs: exact.
    int sum_bits() const { return group(0).held->unit().automatic ? finest_bits : 0; }
    Wide cost() const { return cost_; }
    Wide ever() const { return lifetime_cost_; }
    // Of the cheapest cut, at the costs of the account.
    Wide loss(std::uint32_t of = 0) const;
    double threshold(std::uint32_t of = 0) const;
    // The group that answers for this one: it holds enough samples, or is the one of all.
    std::uint32_t answering(std::uint32_t of) const {
        while (of != 0 && group(of).held->samples() < settings_.at_least) of = group(of).inside;
        return of;
    }
    // Fading by time: let a group without events drop what has faded by now. O(n) at most.
    void refresh(std::uint32_t of);
    // Fading: what the sums of a group are to be divided by, and the cost in units of today.
    double scale(std::uint32_t of = 0) const;
    // Where a sample of the group is held with its own weight: it moves when weights are divided.
    std::optional<std::int64_t> base(std::uint32_t of = 0) const { return group(of).base; }
    double faded_cost() const;

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
    static constexpr std::uint32_t no_group = ~std::uint32_t{0};
    // Single samples are not known any more: to take one back may need memory as well.
    static constexpr bool bounded = requires(const HeldSamples<Tree>& held) { held.bound(); };

    // What is going to be added to a tree at most.
    struct Demand {
        std::size_t samples = 0;
        Wide size = 0;  // in 2^-sum_bits units
        int bits = 0;
        bool uneven = false;  // some weigh other than 1
    };
    struct Copy;  // with trees of its own
    class FadeRescale;
    struct Group {
        std::uint32_t inside;
        HeldSamples<Tree>* held;
        std::optional<std::int64_t> base;  // fading: where a sample is held with its own weight
        Demand demand;
    };
    // What a call will need besides the trees.
    struct Needs {
        std::size_t entries = 0, ids = 0, scored = 0, entering = 0;
        bool copy = false;  // it may not go well, or weights are to be divided: try it in a copy
    };
    // A sample that is to be held: what an entry knows, or an update without one.
    struct Sample {
        double score;
        bool label;
        Amount amount;
        std::uint32_t group;
        std::uint64_t count;  // fading by number: how many came before
        Time time;
    };

    Group& group(std::uint32_t of) { return groups_[of]; }
    const Group& group(std::uint32_t of) const { return groups_[of]; }
    bool fading() const { return settings_.keep == Keep::fading; }
    bool by_number() const { return fading() && !settings_.by_time; }
    bool fading_by_time() const { return fading() && settings_.by_time; }
    bool last_n() const { return settings_.keep == Keep::last_n; }
    bool last_period() const { return settings_.keep == Keep::last_period; }

    // Whether an id may be forgotten in the course of a batch, and come again.
    bool forgets_ids() const {
        return last_n() || last_period() || settings_.time_to_live || settings_.correctable;
    }

    // ---- amounts ----

    // In as few places as it needs; over fading as doubles.
    static Amount normal(Amount amount, const MemorySettings& settings) {
        if (settings.keep == Keep::fading) {
            if (amount.bits == Amount::real) return amount;
            const auto real = [&](std::int64_t units) {
                return std::bit_cast<std::int64_t>(
                    std::ldexp(static_cast<double>(units), -amount.bits));
            };
            return {real(amount.first), real(amount.second), Amount::real};
        }
        while (amount.bits > 0 && ((amount.first | amount.second) & 1) == 0) {
            amount.first /= 2;
            amount.second /= 2;
            --amount.bits;
        }
        return amount;
    }
    LIMEN_INLINE Amount normal(const Amount& amount) const {
        return amount.bits == 0 && !fading() ? amount : normal(amount, settings_);
    }
    // Whether it costs nothing on either side.
    bool is_empty(const Amount& amount) const {
        if (amount.bits != Amount::real)
            return amount.first == 0 && (settings_.labelled || amount.second == 0);
        return real(amount.first) == 0 && (settings_.labelled || real(amount.second) == 0);
    }
    static double real(std::int64_t bits) { return std::bit_cast<double>(bits); }
    bool is_negative(bool label, const Amount& amount) const {
        if (settings_.labelled) return !label;
        return amount.bits == Amount::real ? real(amount.first) < real(amount.second)
                                           : amount.first < amount.second;
    }
    std::int64_t cost_of(bool label) const {
        return label ? settings_.costs.false_negative : settings_.costs.false_positive;
    }
    // In units of 2^-amount.bits, not over fading. False when that is too large.
    bool losses_of(const Amount& amount, bool label, Losses& losses) const {
        if (!settings_.labelled) {
            losses = {amount.first, amount.second};
            return true;
        }
        std::int64_t units;
        if (__builtin_mul_overflow(amount.first, cost_of(label), &units) || units >= most_units)
            return false;
        losses = label ? Losses{units, 0} : Losses{0, units};
        return true;
    }
    static std::int64_t magnitude(std::int64_t units) { return units < 0 ? -units : units; }
    static bool shifted(Losses& losses, int by) {
        if (by == 0) return true;
        const std::int64_t factor = std::int64_t{1} << by;
        return !__builtin_mul_overflow(losses.below, factor, &losses.below) &&
               !__builtin_mul_overflow(losses.above, factor, &losses.above) &&
               losses.below < most_units && losses.below > -most_units &&
               losses.above < most_units && losses.above > -most_units;
    }

    // ---- account.hpp: what answers cost ----

    Wide grains(std::int64_t word, std::uint8_t bits) const;
    Wide price(std::uint32_t at) const;
    void spend(std::uint32_t at, Wide change);
    void count_cost(std::uint32_t at, Wide change);

    // ---- trees.hpp: what trees hold ----

    Sample sample(std::uint32_t at) const;
    // The common case, in whole numbers of the unit in use and far from any limit.
    bool has_plain_room(const Amount& amount, bool label) const {
        Losses losses;
        return !fading() && in_use(amount, label, losses) &&
               group(0).held->has_plain_room(magnitude(losses.below) + magnitude(losses.above)) &&
               !entries_.full(1);
    }
    // Losses in the places in use of group 0; false where they need more, or are too large.
    bool in_use(const Amount& amount, bool label, Losses& losses) const {
        const int finer = group(0).held->bits() - amount.bits;
        return finer >= 0 && losses_of(amount, label, losses) && shifted(losses, finer);
    }
    bool want(const Sample& sample, const Time* front = nullptr);
    bool want_faded(const Sample& sample, const Time* front);
    void want_back(std::uint32_t at);
    bool has_room() const;
    void reserve_trees();
    void forget_demands();
    void hold(const Sample& sample);
    void hold_pending();
    bool add_pending();
    void release(const Sample& sample);
    bool hold_faded(const Sample& sample);
    bool hold_faded(std::uint32_t of, const Sample& sample);
    bool add_faded(const Sample& sample, const Time* time);
    void release_faded(const Sample& sample);
    bool scaled(const Sample& sample, double ahead, double (&numbers)[2]) const;
    Refusal measure(const HeldSamples<Tree>& held, const Sample& sample, const double (&numbers)[2],
                    int& bits, Losses& losses) const;
    Refusal add(HeldSamples<Tree>& held, const Sample& sample, const double (&numbers)[2]);
    double position(const Sample& sample, double base) const;
    double now(double base) const;
    bool is_late(const Time& time) const { return clock_ && time < *clock_; }
    bool divides_for(const Time& moment, bool& far) const;
    // Where nothing is held but in group 0, weights have no base yet: it will be that of group 0.
    bool has_no_base(std::uint32_t of) const { return of != 0 && group(of).held->samples() == 0; }
    std::optional<std::int64_t> base_of(std::uint32_t of) const {
        return group(has_no_base(of) ? 0 : of).base;
    }
    bool lags(std::uint32_t of, const Time& moment) const;
    bool chain_lags(std::uint32_t of, const Time& moment) const {
        while (of != no_group && !lags(of, moment)) of = group(of).inside;
        return of != no_group;
    }
    void divide_group(std::uint32_t of);
    void divide_groups(std::uint32_t of);
    void advance_fading(const Time& moment);
    static Result refused(MemoryRefusal refusal, std::size_t row = 0) {
        Result done;
        done.refusal = refusal;
        done.row = row;
        return done;
    }
    void refuse(MemoryRefusal refusal) {
        if (refusal_ == MemoryRefusal::none) refusal_ = refusal;
    }
    void refuse(Refusal refusal) {
        if (refusal == Refusal::none) return;
        refuse(refusal == Refusal::too_many ? MemoryRefusal::too_many : MemoryRefusal::too_large);
    }

    // ---- steps.hpp: how entries come to count, and cease to ----

    bool has_moment(const Time* time, Time& moment, MemoryRefusal& refusal) const;
    bool resolves_periods(const Time& moment) const;
    bool too_far_ahead(const Time& moment) const;
    bool too_old(const Time& moment) const;
    bool moves(const Time& moment) const { return !clock_ || *clock_ < moment; }
    bool younger(const Time& time, const std::optional<Time>& period, const Time& edge) const {
        return period && edge < time;
    }
    bool is_young(std::uint32_t at, bool label, const Amount& amount) const;
    MemoryRefusal plan_tick(const Time& moment, Needs& needs, FadeRescale* division = nullptr);
    void reserve(const Needs& needs);
    void set_clock(const Time& moment);
    void tick(const Time& moment, std::uint32_t* leaving = nullptr);
    void wait_from(const Time& moment);
    void settle();
    void settle_one(std::uint32_t at);
    void line_up(std::uint32_t at);
    void set_outcome(std::uint32_t at, bool label, const Amount& losses);
    void change(std::uint32_t at, bool label, const Amount& losses);
    void enter(std::uint32_t at);
    void enter_line(std::uint32_t at);
    void leave(std::uint32_t at);
    void leave_oldest();
    void leave_place(std::uint32_t at);
    bool admits(const Time& time) const;
    bool in_line(const Place& place) const;
    void hold_entry(std::uint32_t at);
    void release_entry(std::uint32_t at);
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
                          const std::optional<Time>& newest, const Time& edge,
                          std::uint8_t* counted);
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
    typename HeldSamples<Tree>::Part part_of(const Memory& other, std::uint32_t of,
                                             std::uint32_t into) const;
    void take_over(const Memory& other, const std::vector<std::uint32_t>& into);
    void take_sums(const Memory& other);

    void swap(Memory& other) noexcept;

    MemorySettings settings_;
    MemoryOptions options_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> touched_;  // groups with a demand
    Entries entries_;
    HalfLives lives_;

    // Of a batch: samples that go into the tree together, unless one has to leave before.
    std::vector<Sample> pending_;
    bool gathers_ = false;
    MemoryRefusal refusal_ = MemoryRefusal::none;  // in a copy: why it is not kept
};

}  // namespace limen

#include "memory/account.hpp"
#include "memory/batches.hpp"
#include "memory/calls.hpp"
#include "memory/check.hpp"
#include "memory/columns.hpp"
#include "memory/merge.hpp"
#include "memory/steps.hpp"
#include "memory/trees.hpp"
