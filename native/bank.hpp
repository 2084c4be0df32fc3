// SPDX-License-Identifier: Apache-2.0
//
// Several memories of one stream: all samples, and memories that fade by a half-life each. The one
// whose answers cost least of late leads.
//
// update        an update of each
// update_many   the same for each sample, and O(n): it works on copies, which are kept if all went
//               well
//
// A sample is answered by every member before any of them holds it, and what wrong answers cost
// fades by a half-life too, the patience. Members change together or not at all: all that can fail
// comes before the first change.
//
// Not safe for concurrent use: locks are the caller's.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "memory.hpp"

namespace limen {

// Why nothing was changed: what the member of this place said, at this sample of a batch.
struct BankRefusal {
    Refusal refusal = Refusal::none;
    int bits = 0;  // the places it was measured in
    std::size_t member = 0, row = 0;

    explicit operator bool() const { return refusal != Refusal::none; }
};

// All of a bank but its settings.
struct BankState {
    std::vector<std::string> members;  // what each of them holds
    std::uint64_t count = 0;           // samples so far
    std::vector<std::optional<std::int64_t>> bases;
    std::vector<double> spent;
};

class MemoryBank {
public:
    using Fading = Memory<CutTree>;

    // A member that fades by the number of samples, and its samples; both must outlive this.
    struct Member {
        OnlineCut* held;
        Fading* memory;
    };

    // All are labelled, have these costs and a common unit, and hold nothing. `prices` is what a
    // mistake costs, of label 0 and of label 1.
    MemoryBank(OnlineCut& all, std::vector<Member> fading, const Costs& costs,
               std::pair<double, double> prices, double patience)
        : all_(&all), fading_(std::move(fading)),
          costs_(costs), prices_{prices.first, prices.second}, fades_(std::exp2(-1 / patience)),
          spent_(size(), 0.0), wrong_(size()), updates_(fading_.size()) {}
    MemoryBank(MemoryBank&&) = default;
    MemoryBank& operator=(MemoryBank&&) = delete;

    std::size_t size() const { return 1 + fading_.size(); }
    std::size_t samples() const { return all_->samples(); }
    double threshold(std::size_t member) const { return threshold_of(held(member).best()); }
    // What wrong answers of each member cost of late; the first with the least leads.
    const std::vector<double>& spent() const { return spent_; }
    std::size_t leader() const {
        return static_cast<std::size_t>(std::min_element(spent_.begin(), spent_.end()) -
                                        spent_.begin());
    }

    // Members are judged by these thresholds, or by those of this moment where there are none.
    template <class Weight>
    BankRefusal update(double score, bool label, Weight weight, const double* thresholds) {
        if (weight == 0) return {};
        for (std::size_t i = 0; i < size(); ++i)
            wrong_[i] = (score >= (thresholds ? thresholds[i] : threshold(i))) != label;
        Amount amount;
        if (const BankRefusal no = measured(label, weight, amount)) return no;
        struct LetGo {
            ~LetGo() {
                for (auto& update : updates) update.reset();
            }
            std::vector<std::optional<Fading::Update>>& updates;
        } let_go{updates_};
        for (std::size_t i = 0; i < fading_.size(); ++i) {
            updates_[i].emplace(*fading_[i].memory, score, label, amount, nullptr);
            if (updates_[i]->refusal() != MemoryRefusal::none)
                return {refusal_of(updates_[i]->refusal()), fading_[i].held->bits(), i + 1};
        }
        if (const BankRefusal no = hold(*all_, score, label, weight)) return no;
        for (auto& update : updates_) update->keep();
        for (std::size_t i = 0; i < size(); ++i) spend(spent_[i], wrong_[i], label, weight);
        return {};
    }

    // The same one by one, all or none. Scores are no nan, and weights numbers from 0.
    BankRefusal update_many(const double* scores, const std::uint8_t* labels, std::size_t rows,
                            const Column& weights) {
        static constexpr std::int64_t one = 1;
        if (weights.ones()) return learn(scores, labels, rows, [](std::size_t) { return one; });
        return weights.with([&](const auto* given) {
            return learn(scores, labels, rows, [=](std::size_t i) { return given[i]; });
        });
    }

    BankState state() const {
        BankState out;
        for (std::size_t i = 0; i < size(); ++i) out.members.push_back(held(i).state());
        for (const Member& member : fading_) {
            out.bases.push_back(member.memory->base());
            out.count = member.memory->columns().count;
        }
        out.spent = spent_;
        return out;
    }
    // Become what state() described. False, and of no use any more, where nothing is so described.
    bool restore(const BankState& in) {
        if (in.members.size() != size() || in.spent.size() != size() ||
            in.bases.size() != fading_.size())
            return false;
        for (const double spent : in.spent)
            if (!(spent >= 0) || std::isinf(spent)) return false;
        for (std::size_t i = 0; i < size(); ++i) {
            OnlineCut& held = i ? *fading_[i - 1].held : *all_;
            if (!held.restore(in.members[i], true)) return false;
        }
        for (std::size_t i = 0; i < fading_.size(); ++i) {
            MemoryColumns columns;
            columns.count = in.count;
            columns.bases.push_back(in.bases[i]);
            if (!fading_[i].memory->restore(columns)) return false;
        }
        spent_ = in.spent;
        return true;
    }

    std::size_t memory() const {
        std::size_t bytes = sizeof *this + all_->memory();
        for (const Member& member : fading_)
            bytes += member.held->memory() + member.memory->memory();
        return bytes;
    }
    void check() const {
        all_->check();
        for (const Member& member : fading_) {
            member.held->check();
            member.memory->check();
        }
    }

private:
    const OnlineCut& held(std::size_t member) const {
        return member ? *fading_[member - 1].held : *all_;
    }
    std::int64_t cost_of(bool label) const {
        return label ? costs_.false_negative : costs_.false_positive;
    }
    template <class Weight>
    void spend(double& spent, bool wrong, bool label, Weight weight) const {
        spent = fades_ * spent + (wrong ? prices_[label] * static_cast<double>(weight) : 0.0);
    }
    static Refusal refusal_of(MemoryRefusal refusal) {
        return refusal == MemoryRefusal::too_many ? Refusal::too_many : Refusal::too_large;
    }

    // A weight as members that fade take it.
    template <class Weight>
    BankRefusal measured(bool label, Weight weight, Amount& amount) const {
        const Refusal refusal = measure_amount(weight, all_->unit(), cost_of(label), Keep::fading,
                                               amount.first, amount.bits);
        return {refusal, all_->bits_for(weight)};
    }

    template <class Weight>
    BankRefusal hold(OnlineCut& held, double score, bool label, Weight weight) const {
        const auto add = [&](int& bits) {
            Losses losses;
            bits = held.bits_for(weight);
            const Refusal refusal =
                held.measure(weight, cost_of(label), bits, label ? losses.below : losses.above);
            return refusal == Refusal::none ? held.add(score, losses, bits, true) : refusal;
        };
        int bits = 0;
        Refusal refusal = add(bits);
        if (refusal == Refusal::too_large && held.coarsen()) refusal = add(bits);
        return {refusal, bits};
    }

    // Each member learns the batch in a copy of its own.
    template <class Weight>
    BankRefusal learn(const double* scores, const std::uint8_t* labels, std::size_t rows,
                      Weight&& weight_of) {
        std::vector<double> spent = spent_;
        const auto each = [&](std::size_t member, const OnlineCut& held, auto&& add) {
            BankRefusal refusal;
            for (std::size_t row = 0; row < rows && !refusal; ++row) {
                const auto weight = weight_of(row);
                const bool label = labels[row] != 0;
                if (weight == 0) continue;
                const bool wrong = (scores[row] >= threshold_of(held.best())) != label;
                refusal = add(scores[row], label, weight);
                refusal.member = member;
                refusal.row = row;
                spend(spent[member], wrong, label, weight);
            }
            return refusal;
        };
        OnlineCut all = all_->copy();
        const auto add = [&](double score, bool label, auto weight) {
            return hold(all, score, label, weight);
        };
        if (const BankRefusal no = each(0, all, add)) return no;
        std::vector<std::unique_ptr<Fading::Copy>> copies;
        copies.reserve(fading_.size());
        for (const Member& member : fading_) {
            copies.push_back(std::make_unique<Fading::Copy>(*member.memory));
            Fading& memory = copies.back()->memory;
            const OnlineCut& held = copies.back()->trees[0];
            const auto fade_in = [&](double score, bool label, auto weight) -> BankRefusal {
                Amount amount;
                if (const BankRefusal no = measured(label, weight, amount)) return no;
                const Done done = memory.update(score, label, amount, nullptr);
                if (done.refusal == MemoryRefusal::none) return {};
                return {refusal_of(done.refusal), held.bits()};
            };
            if (const BankRefusal no = each(copies.size(), held, fade_in)) return no;
        }
        std::swap(*all_, all);
        for (std::size_t i = 0; i < copies.size(); ++i) fading_[i].memory->keep(*copies[i]);
        spent_.swap(spent);
        return {};
    }

    OnlineCut* all_;
    std::vector<Member> fading_;
    Costs costs_;
    double prices_[2];
    double fades_;
    std::vector<double> spent_;
    // Of one update: whose answer is wrong, and what the others are about to do.
    std::vector<std::uint8_t> wrong_;
    std::vector<std::optional<Fading::Update>> updates_;
};

}  // namespace limen
