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
// threshold is, and brought up to date by the next read. It may be thrown away at any time and made
// again: where memory runs out, where all weights are scaled, and where nobody has asked for long.
// So blocks that have become empty need not be joined; is_worn() says when there are too many of
// them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/pool.hpp"
#include "core/wide.hpp"

namespace limen {

// The sums of weights of both labels below a cut: where every sample weighs 1, how many there are.
struct Counts {
    std::int64_t ones = 0, zeros = 0;

    std::int64_t weight() const { return ones + zeros; }
    double ones_squared() const { return static_cast<double>(ones); }
    double zeros_squared() const { return static_cast<double>(zeros); }
    Counts operator+(const Counts& other) const { return {ones + other.ones, zeros + other.zeros}; }
};

// The same, and the sums of their squares.
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

    // Fewer slots per block make splits common: for tests.
    explicit WeightIndex(int capacity = slots) : capacity_(std::clamp(capacity, 4, slots)) {}
    WeightIndex(const WeightIndex&) = delete;
    WeightIndex& operator=(const WeightIndex&) = delete;

    std::size_t distinct() const { return distinct_; }
    std::size_t memory() const { return leaves_.memory() + nodes_.memory(); }
    // Whether it would be much smaller if it were made again.
    bool is_worn() const {
        return leaves_.in_use() > 64 + 8 * distinct_ / static_cast<std::size_t>(capacity_);
    }

    // `each` shows all scores in ascending order, with their weights.
    template <class Each>
    void load(std::size_t scores, Each&& each) {
        const int full = capacity_ - capacity_ / 4;
        const auto blocks = [&](std::size_t n) { return n / static_cast<std::size_t>(full) + 1; };
        std::vector<Block*> level, above;
        leaves_.reserve(blocks(scores));
        level.reserve(blocks(scores));
        level.push_back(leaves_.make());
        each([&](double score, const WeightSums& own) {
            if (own == WeightSums{}) return;
            if (level.back()->used == full) level.push_back(leaves_.make());
            level.back()->append(score, own);
            ++distinct_;
        });
        for (; level.size() > 1; level.swap(above), ++height_) {
            above.clear();
            nodes_.reserve(blocks(level.size()));
            for (Block* child : level) {
                if (above.empty() || above.back()->used == full) above.push_back(nodes_.make());
                node(above.back()).put(above.back()->used, child);
            }
        }
        root_ = level[0];
    }

    // A score has these weights from now on; none at all where it is held no longer.
    void set(double score, const WeightSums& own) {
        if (is_full(*root_)) {
            Node* top = nodes_.make();
            top->put(0, root_);
            split(*top, 0, height_++);
            root_ = top;
        }
        std::pair<Node*, int> path[64];
        int depth = 0;
        Block* at = root_;
        for (int height = height_; height > 0; --height) {
            Node& in = node(at);
            int child = in.child_of(score);
            if (is_full(*in.child[child])) {
                split(in, child, height - 1);
                child = in.child_of(score);
            }
            path[depth++] = {&in, child};
            at = in.child[child];
        }
        const WeightSums change = set(*at, score, own);
        for (int i = 0; i < depth; ++i) path[i].first->grow(path[i].second, change);
    }

    // A score is going to be set soon. Of many, warming some ahead lets their memory be fetched at
    // the same time.
    void warm(double score) const {
        const Block* at = root_;
        for (int height = height_; height > 0; --height) {
            at = node(at).child[node(at).child_of(score)];
            if (height <= 2) fetch(at, sizeof(Block));
        }
    }

    // What scores up to this one weigh.
    WeightSums under(double score) const {
        WeightSums below;
        const Block* at = root_;
        for (int height = height_; height > 0; --height) {
            const int child = node(at).child_of(score);
            below = below + at->upto<WeightSums>(child);
            at = node(at).child[child];
        }
        const auto after = std::upper_bound(at->score, at->score + at->used, score) - at->score;
        return below + at->upto<WeightSums>(static_cast<int>(after));
    }

    void check() const {
        std::size_t scores = 0;
        double last = 0;
        check(root_, height_, scores, last);
        if (scores != distinct_) throw std::logic_error("scores of weights are lost");
    }

private:
    template <class Sums>
    friend class WeightedParts;

    // Neighbours in ascending order, and the sums of all up to each of them. Those who need few of
    // the sums touch little memory.
    struct Block {
        int used;
        double score[slots];
        std::int64_t ones[slots], zeros[slots];
        Wide squares[2][slots];

        void reset() { used = 0; }
        // What the `k` lowest weigh.
        template <class Sums>
        Sums upto(int k) const {
            if (k-- == 0) return {};
            if constexpr (std::is_same_v<Sums, Counts>)
                return {ones[k], zeros[k]};
            else
                return {ones[k], zeros[k], {squares[0][k], squares[1][k]}};
        }
        WeightSums total() const { return upto<WeightSums>(used); }
        WeightSums own(int i) const { return upto<WeightSums>(i + 1) - upto<WeightSums>(i); }

        void set_upto(int i, const WeightSums& sums) {
            ones[i] = sums.ones;
            zeros[i] = sums.zeros;
            for (int label : {0, 1}) squares[label][i] = sums.squares[label];
        }
        // One of them weighs so much more.
        void grow(int place, const WeightSums& change) {
            for (int i = place; i < used; ++i) ones[i] += change.ones;
            for (int i = place; i < used; ++i) zeros[i] += change.zeros;
            for (int label : {0, 1})
                for (int i = place; i < used; ++i) squares[label][i] += change.squares[label];
        }
        void append(double last, const WeightSums& own) {
            set_upto(used, total() + own);
            score[used++] = last;
        }
        void insert(int place, double first, const WeightSums& own) {
            const WeightSums below = upto<WeightSums>(place);
            ++used;
            move(place + 1, place);
            score[place] = first;
            set_upto(place, below);
            grow(place, own);
        }
        // One that weighs nothing any more.
        void erase(int place) {
            move(place, place + 1);
            --used;
        }
        // The upper part goes to an empty block.
        void halve(Block& to) {
            const int half = used / 2;
            const WeightSums below = upto<WeightSums>(half);
            for (int i = half; i < used; ++i) {
                to.score[i - half] = score[i];
                to.set_upto(i - half, upto<WeightSums>(i + 1) - below);
            }
            to.used = used - half;
            used = half;
        }

    private:
        // What begins at `from` begins at `to`, one place further on or back.
        void move(int to, int from) {
            const auto shift = [&](auto* values) {
                if (to > from)
                    std::copy_backward(values + from, values + used - 1, values + used);
                else
                    std::copy(values + from, values + used, values + to);
            };
            shift(score);
            shift(ones);
            shift(zeros);
            for (int label : {0, 1}) shift(squares[label]);
        }
    };
    using Leaf = Block;
    struct Node : Block {
        Block* child[slots];  // no score of one is below its own, but in the first

        int child_of(double wanted) const {
            return static_cast<int>(std::upper_bound(score + 1, score + used, wanted) - score) - 1;
        }
        void put(int place, Block* made) {
            std::copy_backward(child + place, child + used, child + used + 1);
            child[place] = made;
            insert(place, made->score[0], made->total());
        }
    };

    static void fetch(const void* from, std::size_t bytes) {
#if defined(__GNUC__) || defined(__clang__)
        const char* line = static_cast<const char*>(from);
        for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(line + i);
#else
        (void)from, (void)bytes;
#endif
    }
    static Node& node(Block* at) { return *static_cast<Node*>(at); }
    static const Node& node(const Block* at) { return *static_cast<const Node*>(at); }
    bool is_full(const Block& block) const { return block.used >= capacity_; }

    // Halve a child that is full; there is room for one more.
    void split(Node& in, int place, int height) {
        Block& from = *in.child[place];
        Block& to = height ? *nodes_.make() : *leaves_.make();
        from.halve(to);
        if (height) std::copy_n(node(&from).child + from.used, to.used, node(&to).child);
        in.grow(place, WeightSums{} - to.total());
        in.put(place + 1, &to);
    }

    // Returns by how much the leaf weighs more.
    WeightSums set(Leaf& in, double score, const WeightSums& own) {
        const auto place =
            static_cast<int>(std::lower_bound(in.score, in.score + in.used, score) - in.score);
        if (place == in.used || in.score[place] != score) {
            if (own == WeightSums{}) return {};
            in.insert(place, score, own);
            ++distinct_;
            return own;
        }
        const WeightSums change = own - in.own(place);
        in.grow(place, change);
        if (own == WeightSums{}) {
            in.erase(place);
            --distinct_;
        }
        return change;
    }

    void check(const Block* at, int height, std::size_t& scores, double& last) const {
        for (int i = 0; i < at->used; ++i) {
            if (height > 0) {
                const Block* inside = node(at).child[i];
                if (!(inside->total() == at->own(i)))
                    throw std::logic_error("the weights of a block are wrong");
                check(inside, height - 1, scores, last);
                continue;
            }
            if (scores++ && !(last < at->score[i]))
                throw std::logic_error("scores of weights do not ascend");
            last = at->score[i];
        }
    }

    int capacity_;
    int height_ = 0;
    std::size_t distinct_ = 0;
    Block* root_ = nullptr;
    Pool<Leaf> leaves_;
    Pool<Node> nodes_;
};

}  // namespace limen
