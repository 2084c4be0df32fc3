// SPDX-License-Identifier: Apache-2.0
//
// Whole arrays in order of score, and what lies below every cut: seen by searches as a tree is
// (parts.hpp), and parted into folds.
//
// build    O(n), besides the sort
// best     O(n): the cheapest cut, the highest of several
// fold     O(n)
// memory   24 bytes per score; where weights differ 40, and 16 per sample
//
// Nothing changes once it is built, so threads may share it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cut.hpp"
#include "samples/parts.hpp"
#include "samples/samples.hpp"

namespace limen {

// The sums of weights of both labels below a cut, and those of their squares. Squares are added up
// in the order of scores, labels and weights, so that they round alike for any order of rows.
struct RankedSums {
    std::int64_t ones = 0, zeros = 0;
    double squares[2] = {0, 0};  // of zeros, of ones

    std::int64_t weight() const { return ones + zeros; }
    double ones_squared() const { return squares[1]; }
    double zeros_squared() const { return squares[0]; }
};

inline void put(Counts& sums, bool label, std::int64_t, std::int64_t count) {
    (label ? sums.ones : sums.zeros) += count;
}
inline void put(RankedSums& sums, bool label, std::int64_t units, std::int64_t count) {
    if (count == 0) return;
    (label ? sums.ones : sums.zeros) += units;
    sums.squares[label] += static_cast<double>(units) * static_cast<double>(units);
}

// The distinct scores, and what lies below each cut. `least` is that of a part by its ends.
template <class S>
class RankedParts {
public:
    using Sums = S;
    static constexpr int most = 16;

    struct Part {
        std::size_t first, last;
        Sums from, to;
    };

    explicit RankedParts(const WholeCosts& costs) : costs_(costs), below_(1) {}

    // At least as many scores as there will be; pages that stay empty cost nothing.
    void reserve(std::size_t distinct) {
        scores_.reserve(distinct);
        below_.reserve(distinct + 1);
    }
    // Some samples of one weight; scores come in ascending order.
    LIMEN_INLINE void add(double score, bool label, std::int64_t units, std::int64_t count) {
        if (count == 0) return;
        if (scores_.empty() || scores_.back() != score) {
            scores_.push_back(score);
            below_.push_back(below_.back());
        }
        put(below_.back(), label, units, count);
    }

    std::size_t distinct() const { return scores_.size(); }
    const std::vector<double>& scores() const { return scores_; }
    const std::vector<Sums>& below() const { return below_; }
    // How many scores a threshold answers 0; all where it is nan.
    std::size_t place(double threshold) const {
        return static_cast<std::size_t>(
            std::partition_point(scores_.begin(), scores_.end(),
                                 [=](double score) { return !(score >= threshold); }) -
            scores_.begin());
    }
    std::size_t best() const {
        std::size_t best = 0;
        for (std::size_t i = 1; i < below_.size(); ++i)
            if (costs_.between(below_[best], below_[i]) <= 0) best = i;
        return best;
    }

    Part whole() const { return part(0, scores_.size()); }
    bool is_leaf(const Part& part) const { return part.last - part.first <= leaf; }
    int split(const Part& whole, Part* out) const {
        const std::size_t scores = whole.last - whole.first;
        const std::size_t each = std::max(leaf, (scores + most - 1) / most);
        int n = 0;
        for (std::size_t at = whole.first; at < whole.last; at += each)
            out[n++] = part(at, std::min(at + each, whole.last));
        return n;
    }
    int scores(const Part& part) const { return static_cast<int>(part.last - part.first); }
    const Sums& at(const Part& part, int k) const {
        return below_[part.first + static_cast<std::size_t>(k)];
    }
    double score(const Part& part, int i) const {
        return scores_[part.first + static_cast<std::size_t>(i)];
    }
    const RankedParts& counts() const { return *this; }
    static void prefetch(const Part&) {}
    Wide least(const Part& part, const Sums& than) const { return costs_.least(part, than); }

private:
    static constexpr std::size_t leaf = 64;

    Part part(std::size_t first, std::size_t last) const {
        return {first, last, below_[first], below_[last]};
    }

    WholeCosts costs_;
    std::vector<double> scores_;
    std::vector<Sums> below_;
};

// Wrong answers of one kind: how many, their weight, and that squared.
struct Wrong {
    std::int64_t rows = 0, weight = 0;
    double squared = 0;
};

// Samples in order of score. A sample is visited as its score, label, weight and count; those that
// weigh 1 come together.
template <class S>
class Ranked;

// Every sample weighs 1.
template <>
class Ranked<Counts> {
public:
    using Sums = Counts;

    Ranked(LabelledScores& samples, const WholeCosts& costs) : parts_(costs) {
        samples.set_losses(1, 1);
        parts_.reserve(samples.size());
        samples.joined([&](const ScoreSums& held) { add(held.score, held.below, held.above); });
    }
    // Distinct scores in ascending order, and how many samples of each label have them.
    Ranked(const double* scores, const std::int64_t* ones, const std::int64_t* zeros, std::size_t n,
           const WholeCosts& costs)
        : parts_(costs) {
        for (std::size_t i = 0; i < n; ++i) add(scores[i], ones[i], zeros[i]);
    }

    const RankedParts<Counts>& parts() const { return parts_; }
    std::int64_t rows(bool label) const {
        return label ? parts_.below().back().ones : parts_.below().back().zeros;
    }
    template <class Visit>
    void each(Visit&& visit) const {
        const auto& below = parts_.below();
        for (std::size_t i = 0; i < parts_.distinct(); ++i) {
            const double score = parts_.scores()[i];
            visit(score, false, 1, below[i + 1].zeros - below[i].zeros);
            visit(score, true, 1, below[i + 1].ones - below[i].ones);
        }
    }

private:
    void add(double score, std::int64_t ones, std::int64_t zeros) {
        parts_.add(score, false, 1, zeros);
        parts_.add(score, true, 1, ones);
    }

    RankedParts<Counts> parts_;
};

// Weights differ: z of a row is its weight, below 0 for label 1 (samples.hpp).
template <>
class Ranked<RankedSums> {
public:
    using Sums = RankedSums;

    Ranked(std::vector<SignedRow>&& given, const WholeCosts& costs)
        : rows_(std::move(given)), parts_(costs) {
        sort_rows(rows_);
        for (std::size_t i = 0, end = 0; i < rows_.size(); i = end) {
            while (end < rows_.size() && rows_[end].order == rows_[i].order) ++end;
            if (end - i == 1) continue;
            const auto by_label_and_weight = [](const SignedRow& a, const SignedRow& b) {
                return (a.z < 0) != (b.z < 0) ? b.z < 0 : std::abs(a.z) < std::abs(b.z);
            };
            std::sort(rows_.begin() + static_cast<std::ptrdiff_t>(i),
                      rows_.begin() + static_cast<std::ptrdiff_t>(end), by_label_and_weight);
        }
        parts_.reserve(rows_.size());
        each([&](double score, bool label, std::int64_t units, std::int64_t count) {
            parts_.add(score, label, units, count);
            ++count_[label];
        });
    }

    const RankedParts<RankedSums>& parts() const { return parts_; }
    const std::vector<SignedRow>& held() const { return rows_; }
    std::int64_t rows(bool label) const { return count_[label]; }
    template <class Visit>
    void each(Visit&& visit) const {
        for (const SignedRow& row : rows_)
            visit(score_of(row.order), row.z < 0, std::abs(row.z), std::int64_t{1});
    }

private:
    std::vector<SignedRow> rows_;
    RankedParts<RankedSums> parts_;
    std::int64_t count_[2] = {0, 0};
};

// Every `folds`-th sample of each label in order of score is tested, beginning with that of number
// `fold`, by the threshold that `choose` finds for the others: false positives and false negatives.
template <class Samples, class Choose>
std::pair<Wrong, Wrong> tested(const Samples& samples, const WholeCosts& costs, std::int64_t fold,
                               std::int64_t folds, Choose&& choose) {
    const auto in_fold = [&](std::int64_t rank) { return (rank + folds - 1 - fold) / folds; };
    const auto parted = [&](auto&& visit) {
        std::int64_t rank[2] = {0, 0};
        samples.each([&](double score, bool label, std::int64_t units, std::int64_t count) {
            const std::int64_t before = in_fold(rank[label]);
            const std::int64_t own = in_fold(rank[label] += count) - before;
            visit(score, label, units, own, count - own);
        });
    };
    RankedParts<typename Samples::Sums> others(costs);
    others.reserve(samples.parts().distinct());
    parted([&](double score, bool label, std::int64_t units, std::int64_t, std::int64_t count) {
        others.add(score, label, units, count);
    });
    const double threshold = choose(std::as_const(others));
    Wrong below[2], all[2];
    parted([&](double score, bool label, std::int64_t units, std::int64_t count, std::int64_t) {
        if (count == 0) return;
        const auto real = static_cast<double>(units);
        all[label].rows += count;
        all[label].weight += units * count;
        all[label].squared += real * real * static_cast<double>(count);
        if (!(score >= threshold)) below[label] = all[label];
    });
    return {{all[0].rows - below[0].rows, all[0].weight - below[0].weight,
             all[0].squared - below[0].squared},
            below[1]};
}

}  // namespace limen
