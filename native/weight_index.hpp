// SPDX-License-Identifier: Apache-2.0
//
// Sums of weights and of their squares below every cut, for samples that do not all weigh the same:
// what the trees do not keep, and what the sureness of a threshold depends on.
//
// load     O(n)
// set      O(log n)
// under    O(log n)
// memory   56 bytes per slot, of which a half to all are in use
//
// A B+-tree beside the one that holds the samples. It is made when somebody asks how sure a
// threshold is, and kept up from then on. It may be thrown away at any time and made anew: where
// memory runs out, where all weights are scaled, and where nobody has asked for long. So nodes that
// have become empty need not be joined; is_worn() says when there are too many of them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <vector>

#include "wide.hpp"

namespace limen {

// What lies below a cut: the sums of weights of both labels, and of their squares.
struct WeightSums {
    std::int64_t ones = 0, zeros = 0;
    Wide squares[2] = {0, 0};  // of zeros, of ones

    bool operator==(const WeightSums&) const = default;
    std::int64_t weight() const { return ones + zeros; }
    double ones_squared() const { return static_cast<double>(squares[1]); }
    double zeros_squared() const { return static_cast<double>(squares[0]); }
    WeightSums operator+(const WeightSums& other) const {
        return {ones + other.ones,
                zeros + other.zeros,
                {squares[0] + other.squares[0], squares[1] + other.squares[1]}};
    }
    WeightSums operator-(const WeightSums& other) const {
        return {ones - other.ones,
                zeros - other.zeros,
                {squares[0] - other.squares[0], squares[1] - other.squares[1]}};
    }
};

class WeightIndex {
public:
    static constexpr int slots = 16;

    // Fewer slots per node make splits common: for tests.
    explicit WeightIndex(int capacity = slots) : capacity_(std::clamp(capacity, 4, slots)) {}
    WeightIndex(const WeightIndex&) = delete;
    WeightIndex& operator=(const WeightIndex&) = delete;

    std::size_t distinct() const { return distinct_; }
    std::size_t memory() const {
        return leaves_.size() * sizeof(Leaf) + nodes_.size() * sizeof(Node);
    }
    // Whether it would be much smaller if it were made anew.
    bool is_worn() const {
        return leaves_.size() > 64 + 8 * distinct_ / static_cast<std::size_t>(capacity_);
    }

    // A score comes after all others; finish() when there are no more.
    void append(double score, const WeightSums& own) {
        if (leaves_.empty() || leaves_.back().used >= capacity_ - capacity_ / 4)
            leaves_.emplace_back();
        Leaf& leaf = leaves_.back();
        const WeightSums below = leaf.used ? leaf.upto[leaf.used - 1] : WeightSums{};
        leaf.score[leaf.used] = score;
        leaf.upto[leaf.used++] = below + own;
        ++distinct_;
    }
    void finish() {
        std::vector<Child> level, above;
        for (Leaf& leaf : leaves_) level.push_back({&leaf, leaf.score[0], leaf.total()});
        if (level.empty()) level.push_back({&leaves_.emplace_back(), 0, {}});
        for (; level.size() > 1; level.swap(above), ++height_) {
            above.clear();
            for (std::size_t i = 0; i < level.size(); ++i) {
                if (above.empty() || nodes_.back().used >= capacity_ - capacity_ / 4)
                    above.push_back({&nodes_.emplace_back(), level[i].first, {}});
                nodes_.back().put(nodes_.back().used, level[i]);
                above.back().total = above.back().total + level[i].total;
            }
        }
        root_ = level[0];
    }

    // A score has these weights from now on; none at all where it is held no longer.
    void set(double score, const WeightSums& own) {
        if (is_full(root_, height_)) {
            const Child old = root_;
            root_ = {&nodes_.emplace_back(), old.first, old.total};
            node(root_.at).put(0, old);
            ++height_;
            split(node(root_.at), 0, height_ - 1);
        }
        WeightSums* totals[64];
        int depth = 0;
        Child* at = &root_;
        for (int height = height_; height > 0; --height) {
            totals[depth++] = &at->total;
            Node& in = node(at->at);
            int child = in.child_of(score);
            if (is_full(in.child[child], height - 1)) {
                split(in, child, height - 1);
                child = in.child_of(score);
            }
            at = &in.child[child];
        }
        const WeightSums change = set(leaf(at->at), score, own);
        at->total = at->total + change;
        while (depth > 0) {
            --depth;
            *totals[depth] = *totals[depth] + change;
        }
    }

    // What scores up to this one weigh.
    WeightSums under(double score) const {
        WeightSums below;
        const Child* at = &root_;
        for (int height = height_; height > 0; --height) {
            const Node& in = node(at->at);
            const int child = in.child_of(score);
            for (int i = 0; i < child; ++i) below = below + in.child[i].total;
            at = &in.child[child];
        }
        const Leaf& in = leaf(at->at);
        const auto after = std::upper_bound(in.score, in.score + in.used, score) - in.score;
        return after ? below + in.upto[after - 1] : below;
    }

    void check() const {
        std::size_t scores = 0;
        double last = 0;
        if (!(check(root_, height_, scores, last) == root_.total) || scores != distinct_)
            throw std::logic_error("the sums of weights are wrong");
    }

private:
    friend class WeightedParts;

    struct Child {
        void* at = nullptr;
        double first = 0;  // no score of it is below this, but for the first of a node
        WeightSums total{};
    };
    struct Leaf {
        int used = 0;
        double score[slots];
        WeightSums upto[slots];  // of the scores up to each, from the start of the leaf

        WeightSums total() const { return used ? upto[used - 1] : WeightSums{}; }
    };
    struct Node {
        int used = 0;
        Child child[slots];

        int child_of(double score) const {
            const auto after = std::upper_bound(
                child + 1, child + used, score,
                [](double wanted, const Child& each) { return wanted < each.first; });
            return static_cast<int>(after - child) - 1;
        }
        void put(int place, const Child& made) {
            std::copy_backward(child + place, child + used, child + used + 1);
            child[place] = made;
            ++used;
        }
    };

    static Leaf& leaf(void* at) { return *static_cast<Leaf*>(at); }
    static Node& node(void* at) { return *static_cast<Node*>(at); }
    bool is_full(const Child& child, int height) const {
        return (height ? node(child.at).used : leaf(child.at).used) >= capacity_;
    }

    // Halve a child that is full; there is room for one more.
    void split(Node& in, int place, int height) {
        Child& old = in.child[place];
        Child made;
        if (height == 0) {
            Leaf &from = leaf(old.at), &to = leaves_.emplace_back();
            const int half = from.used / 2;
            const WeightSums below = from.upto[half - 1];
            for (int i = half; i < from.used; ++i) {
                to.score[to.used] = from.score[i];
                to.upto[to.used++] = from.upto[i] - below;
            }
            from.used = half;
            made = {&to, to.score[0], to.total()};
        } else {
            Node &from = node(old.at), &to = nodes_.emplace_back();
            const int half = from.used / 2;
            for (int i = half; i < from.used; ++i) {
                to.put(to.used, from.child[i]);
                made.total = made.total + from.child[i].total;
            }
            from.used = half;
            made.at = &to;
            made.first = to.child[0].first;
        }
        old.total = old.total - made.total;
        in.put(place + 1, made);
    }

    // Returns by how much the leaf weighs more.
    WeightSums set(Leaf& in, double score, const WeightSums& own) {
        const auto place =
            static_cast<int>(std::lower_bound(in.score, in.score + in.used, score) - in.score);
        const WeightSums below = place ? in.upto[place - 1] : WeightSums{};
        const bool held = place < in.used && in.score[place] == score;
        const WeightSums change = held ? own - (in.upto[place] - below) : own;
        if (!held && own == WeightSums{}) return {};
        if (!held) {
            std::copy_backward(in.score + place, in.score + in.used, in.score + in.used + 1);
            std::copy_backward(in.upto + place, in.upto + in.used, in.upto + in.used + 1);
            in.score[place] = score;
            in.upto[place] = below;
            ++in.used;
            ++distinct_;
        } else if (own == WeightSums{}) {
            std::copy(in.score + place + 1, in.score + in.used, in.score + place);
            std::copy(in.upto + place + 1, in.upto + in.used, in.upto + place);
            --in.used;
            --distinct_;
        }
        for (int i = place; i < in.used; ++i) in.upto[i] = in.upto[i] + change;
        return change;
    }

    WeightSums check(const Child& at, int height, std::size_t& scores, double& last) const {
        if (height == 0) {
            const Leaf& in = leaf(at.at);
            for (int i = 0; i < in.used; ++i) {
                if (scores++ && !(last < in.score[i]))
                    throw std::logic_error("scores of weights do not ascend");
                last = in.score[i];
            }
            return in.total();
        }
        WeightSums sum;
        const Node& in = node(at.at);
        for (int i = 0; i < in.used; ++i) {
            const WeightSums own = check(in.child[i], height - 1, scores, last);
            if (!(own == in.child[i].total))
                throw std::logic_error("the weights of a node are wrong");
            sum = sum + own;
        }
        return sum;
    }

    int capacity_;
    int height_ = 0;
    std::size_t distinct_ = 0;
    Child root_;
    std::deque<Leaf> leaves_;
    std::deque<Node> nodes_;
};

}  // namespace limen
