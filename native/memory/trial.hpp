// SPDX-License-Identifier: Apache-2.0
//
// A candidate threshold on trial: the samples that are scored from now on and lie between it and
// the current one, each counted at one and the same age, whatever its label, by its weight.
//
// scored, labelled, forgot   O(log n) for a sample between the two thresholds, else O(1)
// advance                    the same for each sample that reaches the age
// memory                     about 150 bytes for each sample between the two
//
// Nothing happens by itself: a call that reports a score or a label, or asks something, lets it
// advance to the time of the clock first.
//
// A sample without a label at that age counts as missing for good: letting it in when its label
// comes would add one label sooner than the other. A label that is corrected later counts as
// corrected; a sample that is forgotten leaves no trace. Nothing fails: what there is no memory for
// ends the trial, and lost() says so.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "memory/moment.hpp"
#include "memory/terms.hpp"

namespace limen {

class CandidateTrial {
public:
    // Scores from `lower` to below `upper`, which may be nan; `since` is the clock of this moment.
    CandidateTrial(double lower, double upper, const Time& age, const std::optional<Time>& since)
        : lower_(lower), upper_(upper), age_(age), since_(since.value_or(Time::never())) {}

    // How many samples of one weight had label 0, label 1 and none at the age.
    struct Counts {
        std::uint64_t of[3] = {0, 0, 0};
    };
    // All weights that came, each as it was measured.
    template <class Visit>
    void each(Visit&& visit) const {
        for (const auto& [weight, counts] : counts_)
            visit(Amount{weight.first, 0, weight.second}, counts);
    }
    std::size_t waiting() const { return waiting_.size(); }  // samples that are younger
    bool lost() const { return lost_; }

    // A new score; `label` is -1 where none is known.
    void scored(const Id& id, double score, const Time& moment, int label,
                const Amount& weight) noexcept {
        if (!(score >= lower_) || score >= upper_ || moment < since_) return;
        guarded([&] {
            Counts& counts = counts_[{weight.first, weight.bits}];
            const auto [at, made] = samples_.try_emplace(key_of(id));
            Sample& sample = at->second;
            if (!made) leave(at->first, sample);
            sample = {moment, &counts, {weight.first, weight.bits}, to_label(label), gone};
            waiting_.emplace(moment, at->first);
            sample.counted = young;
        });
    }
    void labelled(const Id& id, int label) noexcept {
        if (label < 0 || samples_.empty()) return;
        guarded([&] {
            const auto at = samples_.find(key_of(id));
            if (at == samples_.end()) return;
            Sample& sample = at->second;
            sample.label = to_label(label);
            if (sample.counted < 0 || sample.counted == none) return;  // too young, or came without
            --sample.counts->of[sample.counted];
            ++sample.counts->of[sample.counted = sample.label];
        });
    }
    void forgot(const Id& id) noexcept {
        if (samples_.empty()) return;
        guarded([&] {
            const auto at = samples_.find(key_of(id));
            if (at == samples_.end()) return;
            leave(at->first, at->second);
            samples_.erase(at);
        });
    }
    // The clock shows this time: samples of the age enter, in the order of scoring.
    void advance(const Time& clock) noexcept {
        if (waiting_.empty()) return;
        const Time edge = before(clock, age_);
        while (!waiting_.empty() && waiting_.begin()->first <= edge) {
            Sample& sample = samples_.find(waiting_.begin()->second)->second;
            ++sample.counts->of[sample.counted = sample.label];
            waiting_.erase(waiting_.begin());
        }
    }

    // Little-endian words: the thresholds, age and beginning; whether samples were lost; then of
    // each sample in the order of ids the length of its id, the id, when it was scored, its weight
    // and the places of that, its label and what it counts as.
    std::string state() const {
        std::string bytes;
        put(bytes, std::bit_cast<std::uint64_t>(lower_));
        put(bytes, std::bit_cast<std::uint64_t>(upper_));
        put(bytes, age_);
        put(bytes, since_);
        put(bytes, lost_ ? 1u : 0u);
        for (const auto& [key, sample] : samples_) {
            if (sample.counted == gone) continue;  // there was no memory for it
            put(bytes, key.size());
            bytes += key;
            put(bytes, sample.moment);
            put(bytes, static_cast<std::uint64_t>(sample.weight.first));
            put(bytes, sample.weight.second);
            put(bytes, static_cast<std::uint64_t>(sample.label));
            put(bytes, static_cast<std::uint64_t>(sample.counted - young));
        }
        return bytes;
    }
    // None where no trial is so described.
    static std::optional<CandidateTrial> restored(const std::string& bytes) {
        std::size_t at = 0;
        std::uint64_t lower, upper, flags;
        Time age, since;
        if (!get(bytes, at, lower) || !get(bytes, at, upper) || !get(bytes, at, age) ||
            !get(bytes, at, since) || !get(bytes, at, flags) || flags > 1)
            return {};
        CandidateTrial made(std::bit_cast<double>(lower), std::bit_cast<double>(upper), age, since);
        made.lost_ = flags;
        while (at < bytes.size()) {
            std::uint64_t size, weight, bits, label, counted;
            if (!get(bytes, at, size) || size == 0 || size > bytes.size() - at) return {};
            std::string key = bytes.substr(at, size);
            at += size;
            Time moment;
            if (!get(bytes, at, moment) || !get(bytes, at, weight) || !get(bytes, at, bits) ||
                !get(bytes, at, label) || !get(bytes, at, counted) || bits > 255 || label > none ||
                counted > none - young)
                return {};
            const Weight own{static_cast<std::int64_t>(weight), static_cast<std::uint8_t>(bits)};
            const auto as = static_cast<std::int8_t>(static_cast<int>(counted) + young);
            if (as == gone || (as >= 0 && as != none && as != static_cast<int>(label))) return {};
            if (!made.samples_.empty() && !(made.samples_.rbegin()->first < key)) return {};
            Counts& counts = made.counts_[own];
            if (as == young)
                made.waiting_.emplace(moment, key);
            else
                ++counts.of[as];
            made.samples_.emplace_hint(
                made.samples_.end(), std::move(key),
                Sample{moment, &counts, own, static_cast<std::int8_t>(label), as});
        }
        return made;
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
    // Labels, and what a sample counts as: 0, 1, none, or not yet.
    static constexpr std::int8_t none = 2, gone = -1, young = -2;

    using Weight = std::pair<std::int64_t, std::uint8_t>;  // as it was measured, and its places
    struct Sample {
        Time moment;
        Counts* counts = nullptr;  // of its weight
        Weight weight;
        std::int8_t label = none;
        std::int8_t counted = gone;
    };

    static std::int8_t to_label(int label) {
        return label < 0 ? none : static_cast<std::int8_t>(label);
    }

    template <class Work>
    void guarded(Work&& work) noexcept {
        try {
            work();
        } catch (const std::bad_alloc&) {
            lost_ = true;
        }
    }

    // A sample is counted, or waited for, no longer.
    void leave(const std::string& key, Sample& sample) {
        if (sample.counted >= 0) --sample.counts->of[sample.counted];
        if (sample.counted == young) {
            auto [at, end] = waiting_.equal_range(sample.moment);
            while (at != end && at->second != key) ++at;
            if (at != end) waiting_.erase(at);
        }
        sample.counted = gone;
    }

    static void put(std::string& bytes, std::uint64_t word) {
        for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
    }
    static void put(std::string& bytes, const Time& time) {
        put(bytes, static_cast<std::uint64_t>(time.bits));
        put(bytes, std::uint64_t{time.real});
    }
    static bool get(const std::string& bytes, std::size_t& at, std::uint64_t& word) {
        if (bytes.size() - at < 8) return false;
        word = 0;
        for (std::size_t i = 8; i-- > 0;)
            word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
        at += 8;
        return true;
    }
    static bool get(const std::string& bytes, std::size_t& at, Time& time) {
        std::uint64_t word, real;
        if (!get(bytes, at, word) || !get(bytes, at, real) || real > 1) return false;
        time = {static_cast<std::int64_t>(word), real == 1};
        return time.number() == time.number();
    }

    double lower_, upper_;
    Time age_, since_;
    bool lost_ = false;
    std::map<Weight, Counts> counts_;
    std::map<std::string, Sample> samples_;  // by id
    std::multimap<Time, std::string> waiting_;
};

}  // namespace limen
