// SPDX-License-Identifier: Apache-2.0
//
// A candidate threshold on trial: the samples that are scored from now on and lie between it and
// the current one, each counted at one and the same age, whatever its label.
//
// scored, labelled, forgot   O(log n) for a sample between the two thresholds, else O(1)
// advance                    the same for each sample that reaches the age
// memory                     about 150 bytes for each sample between the two
//
// A sample without a label at that age counts as missing for good: letting it in when its label
// comes would let in one label sooner than the other. A label that is corrected later counts as
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

#include "memory_terms.hpp"
#include "moment.hpp"

namespace limen {

class CandidateTrial {
public:
    // Scores from `lower` to below `upper`, which may be nan; `since` is the clock of this moment.
    CandidateTrial(double lower, double upper, const Time& age, const std::optional<Time>& since)
        : lower_(lower), upper_(upper), age_(age), since_(since.value_or(Time::never())) {}

    // At the age: how many had label 0, label 1 and none; how many are younger.
    std::uint64_t counted(bool label) const { return counts_[label]; }
    std::uint64_t missing() const { return missing_; }
    std::size_t waiting() const { return waiting_.size(); }
    bool weighted() const { return weighted_; }  // some sample does not weigh 1
    bool lost() const { return lost_; }

    // A new score; `label` is -1 where none is known.
    void scored(const Id& id, double score, const Time& moment, int label,
                bool weighs_one) noexcept {
        if (!(score >= lower_) || score >= upper_ || moment < since_) return;
        weighted_ |= !weighs_one;
        guarded([&] {
            const auto [at, made] = samples_.try_emplace(key_of(id));
            if (!made && at->second.counted == young) leave_line(at->first, at->second);
            at->second = {moment, static_cast<std::int8_t>(label), young};
            waiting_.emplace(moment, at->first);
        });
    }
    void labelled(const Id& id, int label) noexcept {
        if (label < 0 || samples_.empty()) return;
        guarded([&] {
            const auto at = samples_.find(key_of(id));
            if (at == samples_.end() || at->second.label == label) return;
            Sample& sample = at->second;
            sample.label = static_cast<std::int8_t>(label);
            if (sample.counted < 0) return;  // too young, or came without a label
            --counts_[sample.counted];
            ++counts_[sample.counted = sample.label];
        });
    }
    void forgot(const Id& id) noexcept {
        if (samples_.empty()) return;
        guarded([&] {
            const auto at = samples_.find(key_of(id));
            if (at == samples_.end()) return;
            if (at->second.counted == young)
                leave_line(at->first, at->second);
            else if (at->second.counted == no_label)
                --missing_;
            else
                --counts_[at->second.counted];
            samples_.erase(at);
        });
    }
    // The clock shows this time: samples of the age enter, in the order of scoring.
    void advance(const Time& clock) noexcept {
        if (waiting_.empty()) return;
        const Time edge = before(clock, age_);
        while (!waiting_.empty() && waiting_.begin()->first <= edge) {
            Sample& sample = samples_.find(waiting_.begin()->second)->second;
            sample.counted = sample.label;
            if (sample.label < 0)
                ++missing_;
            else
                ++counts_[sample.label];
            waiting_.erase(waiting_.begin());
        }
    }

    // Little-endian words: the thresholds, age and beginning; flags; then of each sample in the
    // order of ids the length of its id, the id, when it was scored, its label and what it counts
    // as.
    std::string state() const {
        std::string bytes;
        put(bytes, std::bit_cast<std::uint64_t>(lower_));
        put(bytes, std::bit_cast<std::uint64_t>(upper_));
        put(bytes, age_);
        put(bytes, since_);
        put(bytes, (weighted_ ? 1u : 0u) | (lost_ ? 2u : 0u));
        for (const auto& [key, sample] : samples_) {
            put(bytes, key.size());
            bytes += key;
            put(bytes, sample.moment);
            put(bytes, static_cast<std::uint64_t>(sample.label + 1));
            put(bytes, static_cast<std::uint64_t>(sample.counted + 2));
        }
        return bytes;
    }
    // None where no trial is so described.
    static std::optional<CandidateTrial> restored(const std::string& bytes) {
        std::size_t at = 0;
        std::uint64_t lower, upper, flags;
        Time age, since;
        if (!get(bytes, at, lower) || !get(bytes, at, upper) || !get(bytes, at, age) ||
            !get(bytes, at, since) || !get(bytes, at, flags) || flags > 3)
            return {};
        CandidateTrial made(std::bit_cast<double>(lower), std::bit_cast<double>(upper), age, since);
        made.weighted_ = flags & 1;
        made.lost_ = flags & 2;
        while (at < bytes.size()) {
            std::uint64_t size, label, counted;
            if (!get(bytes, at, size) || size == 0 || size > bytes.size() - at) return {};
            std::string key = bytes.substr(at, size);
            at += size;
            Time moment;
            if (!get(bytes, at, moment) || !get(bytes, at, label) || !get(bytes, at, counted) ||
                label > 2 || counted > 3)
                return {};
            const Sample sample{moment, static_cast<std::int8_t>(static_cast<int>(label) - 1),
                                static_cast<std::int8_t>(static_cast<int>(counted) - 2)};
            if (sample.counted >= 0 && sample.counted != sample.label) return {};
            if (!made.samples_.empty() && !(made.samples_.rbegin()->first < key)) return {};
            if (sample.counted == young)
                made.waiting_.emplace(moment, key);
            else if (sample.counted == no_label)
                ++made.missing_;
            else
                ++made.counts_[sample.counted];
            made.samples_.emplace_hint(made.samples_.end(), std::move(key), sample);
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
    static constexpr std::int8_t no_label = -1, young = -2;

    struct Sample {
        Time moment;
        std::int8_t label = no_label;
        std::int8_t counted = young;  // or as what it was counted at the age
    };

    template <class Work>
    void guarded(Work&& work) noexcept {
        try {
            work();
        } catch (const std::bad_alloc&) {
            lost_ = true;
        }
    }

    void leave_line(const std::string& key, const Sample& sample) {
        auto [at, end] = waiting_.equal_range(sample.moment);
        while (at != end && at->second != key) ++at;
        if (at != end) waiting_.erase(at);
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
    std::uint64_t counts_[2] = {0, 0}, missing_ = 0;
    bool weighted_ = false, lost_ = false;
    std::map<std::string, Sample> samples_;  // by id
    std::multimap<Time, std::string> waiting_;
};

}  // namespace limen
