// SPDX-License-Identifier: Apache-2.0
//
// Judge: two rules, the current one and a candidate, and the samples that judge between them. Each
// enters once, at one and the same age, with the label that it has then, in counts by segment, by
// what both rules answer, by label and by weight.
//
// score, label, forget   O(log n)
// advance                the same for each sample that reaches the age
// memory                 about 200 bytes for each sample that waits or on which the rules differ
//
// A sample without a label at that age counts as missing for good: letting it in when its label
// comes would add one label sooner than the other. Where the rules differ its id is kept: a label
// that is corrected later counts as corrected, and a sample that is forgotten leaves no trace.
// Where they agree it is only counted, with the sum of weights.
//
// Nothing fails: where there is no memory for a sample, lost() says so.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/words.hpp"
#include "memory/moment.hpp"
#include "memory/terms.hpp"

namespace limen {

class Judge {
public:
    // A label: known, not known yet, or never to be known because of the answer that was given.
    enum Label : std::uint8_t { zero, one, none, hidden };

    // How many samples came out so. Where the rules agree, the weight is the mean of theirs.
    struct Row {
        std::string segment;
        bool now, candidate;  // what the rules answer
        Label label;
        double weight;
        std::uint64_t many;
    };

    // Samples that are scored before `since` do not judge.
    explicit Judge(const Time& age, const std::optional<Time>& since = {})
        : age_(age), since_(since.value_or(Time::never())) {}
    Judge(Judge&&) = default;
    Judge& operator=(Judge&&) = default;

    // A new score, and its label as far as it is known. One that waits already was delivered again.
    // One that has entered keeps its place without its id, as ids may come again.
    void score(const Id& id, bool now, bool candidate, const Time& moment, double weight = 1,
               std::string_view segment = {}, Label label = none) noexcept {
        if (moment < since_) return;
        guarded([&] {
            Cell& cell = cell_of({std::string(segment), now, candidate, weight});
            const auto [at, made] = samples_.try_emplace(key_of(id));
            if (!made) {
                Sample& before = at->second;
                if (before.waits) return;
                --before.cell->second.named[before.label];
                ++before.cell->second.nameless[before.label];
            }
            at->second = {moment, &cell, weight, label, true};
            try {
                waiting_.insert(&*at);
            } catch (...) {
                samples_.erase(at);
                throw;
            }
        });
    }
    // The label of a sample has come, or is another one. Returns whether that changed what is
    // counted: a sample that waits counts when it is old enough.
    bool label(const Id& id, Label label) noexcept {
        if (label == none || samples_.empty()) return false;
        bool corrected = false;
        guarded([&] {
            const auto at = samples_.find(key_of(id));
            if (at == samples_.end()) return;
            Sample& sample = at->second;
            if (!sample.waits) {
                if (sample.label >= none) return;  // it came too late
                --sample.cell->second.named[sample.label];
                ++sample.cell->second.named[label];
                corrected = sample.label != label;
            }
            sample.label = label;
        });
        return corrected;
    }
    void forget(const Id& id) noexcept {
        if (samples_.empty()) return;
        guarded([&] {
            const auto at = samples_.find(key_of(id));
            if (at == samples_.end()) return;
            const Sample& sample = at->second;
            if (sample.waits)
                waiting_.erase(&*at);
            else
                --sample.cell->second.named[sample.label];
            samples_.erase(at);
        });
    }
    // It is this time: samples of the age enter.
    void advance(const Time& clock) noexcept {
        if (waiting_.empty()) return;
        const Time edge = before(clock, age_);
        while (!waiting_.empty() && (*waiting_.begin())->second.moment <= edge) {
            Named& named = **waiting_.begin();
            Sample& sample = named.second;
            waiting_.erase(waiting_.begin());
            auto& [answers, counts] = *sample.cell;
            if (differ(answers)) {
                ++counts.named[sample.label];
                sample.waits = false;
            } else {
                ++counts.nameless[sample.label];
                counts.weights[sample.label] += sample.weight;
                samples_.erase(samples_.find(named.first));
            }
        }
    }

    std::size_t waiting() const { return waiting_.size(); }
    bool lost() const { return lost_; }
    bool knows(const Id& id) const { return samples_.contains(key_of(id)); }
    // The ids of samples that wait or on which the rules differ.
    template <class Visit>
    void each_id(Visit&& visit) const {
        for (const auto& [key, sample] : samples_) visit(id_of(key));
    }
    // How many samples on which the rules differ have entered.
    std::uint64_t differing() const {
        std::uint64_t many = 0;
        for (const Row& row : counts()) many += row.now != row.candidate ? row.many : 0;
        return many;
    }
    // All that have entered, in an order that depends on them alone.
    std::vector<Row> counts() const {
        std::vector<Row> rows;
        for (const auto& [key, counts] : cells_)
            for (const Label label : {zero, one, none, hidden}) {
                const std::uint64_t many = counts.of(label);
                if (!many) continue;
                const auto& [segment, now, candidate, weight] = key;
                const double mean = counts.weights[label] / static_cast<double>(many);
                rows.push_back({segment, now, candidate, label, differ(key) ? weight : mean, many});
            }
        return rows;
    }

    // Little-endian words: the age and the beginning, each a number or the bits of a float, and 1
    // for a float; 1 where samples were lost; how many counts of samples without an id there are.
    // Of each of these where it counts, and for each label how many and, where the rules agree, the
    // sum of their weights; then of each sample with an id the length of that, its kind and bytes,
    // where it counts, when it was scored, its label, and 1 where it waits. Where a sample counts
    // is the length of the segment, the segment, both answers and the weight, of counts 0 where
    // they agree.
    std::string state() const {
        std::string bytes, cells;
        std::uint64_t many = 0;
        for (const Cell& cell : cells_) {
            const Counts& counts = cell.second;
            if (counts.nameless == Each<std::uint64_t>{}) continue;
            ++many;
            put(cells, cell.first);
            for (const std::uint64_t each : counts.nameless) put(cells, each);
            for (const double each : counts.weights) put(cells, each);
        }
        put(bytes, age_);
        put(bytes, since_);
        put(bytes, std::uint64_t{lost_});
        put(bytes, many);
        bytes += cells;
        for (const auto& [key, sample] : samples_) {
            Answers own = sample.cell->first;
            std::get<3>(own) = sample.weight;
            put(bytes, key);
            put(bytes, own);
            put(bytes, sample.moment);
            put(bytes, std::uint64_t{sample.label});
            put(bytes, std::uint64_t{sample.waits});
        }
        return bytes;
    }
    // None where no samples could have left these bytes.
    static std::optional<Judge> restored(std::string_view bytes) {
        Reader from{bytes};
        Judge made{Time{}};
        made.age_ = from.time();
        made.since_ = from.time();
        made.lost_ = from.at_most(1);
        for (std::uint64_t many = from.word(); many && from.sound; --many) {
            Answers answers = from.answers();
            Counts counts;
            for (std::uint64_t& each : counts.nameless) each = from.word();
            for (double& each : counts.weights) each = from.weight();
            from.require(made.cells_.empty() || made.cells_.rbegin()->first < answers);
            made.cells_.emplace_hint(made.cells_.end(), std::move(answers), counts);
        }
        while (from.sound && !from.rest.empty()) {
            std::string key = from.text();
            const Answers own = from.answers();
            const Time moment = from.time();
            const auto label = static_cast<Label>(from.at_most(hidden));
            const bool waits = from.at_most(1);
            from.require((waits || differ(own)) && is_key(key) &&
                         (made.samples_.empty() || made.samples_.rbegin()->first < key));
            if (!from.sound) break;
            Cell& cell = made.cell_of(own);
            const auto at =
                made.samples_.emplace_hint(made.samples_.end(), std::move(key),
                                           Sample{moment, &cell, std::get<3>(own), label, waits});
            if (waits)
                made.waiting_.insert(&*at);
            else
                ++cell.second.named[label];
        }
        return from.sound ? std::optional(std::move(made)) : std::nullopt;
    }

    // An id as it is held.
    static std::string key_of(const Id& id) {
        std::string key(1, static_cast<char>(id.kind));
        if (id.kind == Id::number_kind)
            put(key, static_cast<std::uint64_t>(id.number));
        else
            key.append(id.bytes, id.size);
        return key;
    }

private:
    template <class T>
    using Each = std::array<T, 4>;  // by label

    // Where a sample counts: segment, the current rule's answer, the candidate's, and the weight; 0
    // where they agree, as distinct weights may be many.
    using Answers = std::tuple<std::string, bool, bool, double>;
    struct Counts {
        Each<std::uint64_t> named{}, nameless{};  // samples whose ids are kept, and others
        Each<double> weights{};                   // of samples on which the rules agree

        std::uint64_t of(Label label) const { return named[label] + nameless[label]; }
    };
    using Cell = std::pair<const Answers, Counts>;
    struct Sample {
        Time moment;
        Cell* cell = nullptr;
        double weight = 1;
        Label label = none;
        bool waits = true;
    };
    using Named = std::pair<const std::string, Sample>;
    // The same order however they came: sums of weights are rounded alike.
    struct Earlier {
        bool operator()(const Named* a, const Named* b) const {
            if (a->second.moment < b->second.moment) return true;
            return !(b->second.moment < a->second.moment) && a->first < b->first;
        }
    };

    static bool differ(const Answers& answers) {
        return std::get<1>(answers) != std::get<2>(answers);
    }
    Cell& cell_of(Answers answers) {
        if (!differ(answers)) std::get<3>(answers) = 0;
        return *cells_.try_emplace(std::move(answers)).first;
    }

    template <class Work>
    void guarded(Work&& work) noexcept {
        try {
            work();
        } catch (const std::bad_alloc&) {
            lost_ = true;
        }
    }

    static Id id_of(const std::string& key) {
        const auto kind = static_cast<std::uint8_t>(key[0]);
        if (kind != Id::number_kind) return Id::of(kind, key.data() + 1, key.size() - 1);
        return Id::of(static_cast<std::int64_t>(Reader{std::string_view(key).substr(1)}.word()));
    }
    static bool is_key(std::string_view key) {
        return !key.empty() && static_cast<std::uint8_t>(key[0]) < Id::most_kinds &&
               (key[0] != Id::number_kind || key.size() == 9);
    }

    static void put(std::string& bytes, std::uint64_t word) { put_word(bytes, word); }
    static void put(std::string& bytes, double number) {
        put(bytes, std::bit_cast<std::uint64_t>(number));
    }
    static void put(std::string& bytes, const Time& time) {
        put(bytes, static_cast<std::uint64_t>(time.bits));
        put(bytes, std::uint64_t{time.real});
    }
    static void put(std::string& bytes, const std::string& text) {
        put(bytes, std::uint64_t{text.size()});
        bytes += text;
    }
    static void put(std::string& bytes, const Answers& answers) {
        const auto& [segment, now, candidate, weight] = answers;
        put(bytes, segment);
        put(bytes, std::uint64_t{now} | std::uint64_t{candidate} << 1);
        put(bytes, weight);
    }
    // Reads what was put; what is not sound gives zeros.
    struct Reader {
        std::string_view rest;
        bool sound = true;

        void require(bool holds) { sound = sound && holds; }
        std::uint64_t word() {
            require(rest.size() >= 8);
            std::uint64_t found = 0;
            for (std::size_t i = sound ? 8 : 0; i-- > 0;)
                found = found << 8 | static_cast<unsigned char>(rest[i]);
            rest.remove_prefix(sound ? 8 : 0);
            return found;
        }
        std::uint64_t at_most(std::uint64_t most) {
            const std::uint64_t found = word();
            require(found <= most);
            return sound ? found : 0;
        }
        double weight() {
            const auto found = std::bit_cast<double>(word());
            require(found >= 0 && found < std::numeric_limits<double>::infinity());
            return sound ? found : 0;
        }
        Time time() {
            const auto bits = static_cast<std::int64_t>(word());
            const Time found{bits, at_most(1) == 1};
            require(found.number() == found.number());
            return sound ? found : Time{};
        }
        std::string text() {
            const std::uint64_t size = word();
            require(size <= rest.size());
            const std::string found(rest.substr(0, sound ? size : 0));
            rest.remove_prefix(found.size());
            return found;
        }
        Answers answers() {
            std::string segment = text();
            const std::uint64_t both = at_most(3);
            return {std::move(segment), both & 1, both >> 1, weight()};
        }
    };

    Time age_, since_;
    bool lost_ = false;
    std::map<Answers, Counts> cells_;
    std::map<std::string, Sample> samples_;  // by id
    std::set<Named*, Earlier> waiting_;
};

}  // namespace limen
