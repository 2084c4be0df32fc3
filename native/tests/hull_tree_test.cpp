// SPDX-License-Identifier: Apache-2.0
//
// The hull tree against pooling of adjacent violators over an ordered map, in exact arithmetic,
// and against a scan over all cuts, with leaves so small that they split, share and merge all
// the time.

#define LIMEN_TEST_MAIN
#include "core/hull_tree.hpp"

#include <cmath>
#include <map>
#include <string>

#include "tests/testing_memory.hpp"
#include "tests/testing_trees.hpp"

namespace {

using namespace limen;
using namespace limen::testing;
using testing::listed;  // more of the name below
using testing::same;

constexpr std::int64_t limit = std::int64_t{1} << 62;

constexpr int thoroughness = testing::effort(1, 5);

const std::vector<int> capacities = {4, 5, 8, HullTree::leaf_slots};

// ---- the oracle ----

using Ordered = std::map<double, RunSums>;

RunSums plus(const RunSums& a, const RunSums& b) {
    return {a.below + b.below, a.above + b.above, a.count + b.count};
}

// Pool adjacent violators: a block whose value is not above that of the block before it joins it.
std::vector<Block> pooled(const Ordered& ordered) {
    std::vector<Block> blocks;
    for (const auto& [score, sums] : ordered) {
        blocks.push_back({score, score, sums});
        while (blocks.size() > 1) {
            Block& before = blocks[blocks.size() - 2];
            const RunSums &low = before.sums, &high = blocks.back().sums;
            if (Wide{low.below} * (high.below + high.above) <
                Wide{high.below} * (low.below + low.above))
                break;
            before = {before.first, blocks.back().last, plus(low, high)};
            blocks.pop_back();
        }
    }
    return blocks;
}

HullCut scanned(const Ordered& ordered, std::int64_t false_positive, std::int64_t false_negative) {
    HullCut best, cut;
    Wide most = 0;
    cut.has_upper = best.has_upper = !ordered.empty();
    if (!ordered.empty()) best.upper = ordered.begin()->first;
    for (auto at = ordered.begin(); at != ordered.end(); ++at) {
        cut.under = plus(cut.under, at->second);
        cut.has_lower = true;
        cut.lower = at->first;
        cut.has_upper = std::next(at) != ordered.end();
        cut.upper = cut.has_upper ? std::next(at)->first : 0;
        const Wide worth =
            Wide{false_positive} * cut.under.above - Wide{false_negative} * cut.under.below;
        if (worth >= most) most = worth, best = cut;
    }
    return best;
}

// A cut has no neighbour where it says so, whatever number stands there.
bool same(const HullCut& a, const HullCut& b) {
    return a.under == b.under && a.has_lower == b.has_lower && a.has_upper == b.has_upper &&
           (!a.has_lower || a.lower == b.lower) && (!a.has_upper || a.upper == b.upper);
}

std::vector<ScoreSums> listed(const Ordered& ordered) {
    std::vector<ScoreSums> all;
    for (const auto& [score, sums] : ordered)
        all.push_back({score, sums.below, sums.above, static_cast<std::uint32_t>(sums.count)});
    return all;
}

std::vector<Block> fit(const HullTree& tree) {
    std::vector<Block> all;
    tree.blocks([&](const Block& block) { all.push_back(block); });
    return all;
}

const std::vector<std::pair<std::int64_t, std::int64_t>> costs = {
    {0, 0},     {0, 1},        {1, 0},
    {1, 1},     {1, 2},        {2, 1},
    {1, 10},    {9, 7},        {7, 9},
    {1, 3},     {3, 1000},     {1000, 3},
    {limit, 1}, {1, limit},    {limit, limit - 1},
    {499, 501}, {12345, 6789}, {limit - 1, limit},
};

// A tree beside the oracle; both are given the same samples.
class Pair {
public:
    explicit Pair(int capacity) : tree(capacity) {}

    void add(const ScoreSums& held) {
        tree.add(held);
        ordered[held.score] = plus(ordered[held.score], {held.below, held.above, held.count});
    }

    void remove(const ScoreSums& held, const std::string& note) {
        const auto at = ordered.find(held.score);
        const ScoreSums expected{held.score, at->second.below, at->second.above,
                                 static_cast<std::uint32_t>(at->second.count)};
        CHECK_NOTE(tree.remove(held, [&](const ScoreSums& now) { return same(now, expected); }),
                   note);
        at->second.below -= held.below;
        at->second.above -= held.above;
        if ((at->second.count -= held.count) == 0) ordered.erase(at);
    }

    void check_fit(const std::string& note) const {
        CHECK_NOTE(ordered.size() == tree.distinct(), note);
        CHECK_NOTE(pooled(ordered) == fit(tree), note);
    }

    void check_best(const std::string& note) const {
        for (const auto& [positive, negative] : costs)
            CHECK_NOTE(same(scanned(ordered, positive, negative), tree.best(positive, negative)),
                       note);
        // The cost at which all of a block may as well lie on either side.
        std::size_t stride = 1 + ordered.size() / 20, i = 0;
        for (const Block& block : pooled(ordered)) {
            if (i++ % stride) continue;
            const auto& [below, above, count] = block.sums;
            const HullCut cut = tree.best(below, above);
            CHECK_NOTE(same(scanned(ordered, below, above), cut), note);
            CHECK_NOTE(cut.has_lower && cut.lower == block.last, note);
        }
    }

    void check_vertices(const std::string& note) const {
        std::vector<HullCut> expected(1), found;
        expected[0].has_upper = !ordered.empty();
        for (const Block& block : pooled(ordered)) {
            expected.back().upper = block.first;
            expected.push_back({{block.last, 0, true, block.last != ordered.rbegin()->first},
                                plus(expected.back().under, block.sums)});
        }
        tree.vertices([&](const HullCut& cut) { found.push_back(cut); });
        CHECK_NOTE(std::equal(expected.begin(), expected.end(), found.begin(), found.end(),
                              [](const HullCut& a, const HullCut& b) { return same(a, b); }),
                   note);
        CHECK_NOTE(expected.back().under == tree.totals(), note);
    }

    void check_around(double score, const std::vector<Block>& blocks,
                      const std::string& note) const {
        BlocksAround expected;
        for (const Block& block : blocks) {
            if (block.first <= score) expected.lower = block, expected.has_lower = true;
            if (block.last >= score && !expected.has_upper)
                expected.upper = block, expected.has_upper = true;
        }
        const BlocksAround found = tree.around(score);
        CHECK_NOTE(expected.has_lower == found.has_lower && expected.lower == found.lower, note);
        CHECK_NOTE(expected.has_upper == found.has_upper && expected.upper == found.upper, note);
    }

    void check_sums(double score, const std::string& note) const {
        RunSums below, at_or_below;
        for (const auto& [held, sums] : ordered) {
            if (held < score) below = plus(below, sums);
            if (held <= score) at_or_below = plus(at_or_below, sums);
        }
        CHECK_NOTE(below == tree.sums_below(score), note);
        CHECK_NOTE(at_or_below == tree.sums_at_or_below(score), note);
    }

    // The scores looked at are all of them while there are few.
    void check_all(const std::string& note) const {
        check_sound(tree, note);
        check_fit(note);
        check_best(note);
        check_vertices(note);
        const std::vector<ScoreSums> expected = listed(ordered);
        CHECK_NOTE(same(expected, listed(tree)), note);
        const std::vector<Block> blocks = pooled(ordered);
        const std::size_t stride = 1 + expected.size() / 40;
        for (std::size_t i = 0; i < expected.size(); i += stride) {
            const double score = expected[i].score;
            CHECK_NOTE(same(expected[i], tree.find(score)), note);
            for (double near : {std::nextafter(score, -inf), score, std::nextafter(score, inf)}) {
                CHECK_NOTE(ordered.count(near) || tree.find(near).count == 0, note);
                check_around(near, blocks, note);
                check_sums(near, note);
            }
        }
        for (double end : {-inf, 0.0, inf}) check_around(end, blocks, note), check_sums(end, note);
    }

    HullTree tree;
    Ordered ordered;
};

// ---- streams, named by shape ----

const std::vector<Shape> shapes = {
    {"ascending", [](Random&, int step) { return step; }},
    {"descending", [](Random&, int step) { return -step; }},
    {"zigzag_inwards",
     [](Random&, int step) { return step % 2 ? 1.0 / (1 + step) : -1.0 / (1 + step); }},
    {"uniform", [](Random& r, int) { return std::uniform_real_distribution<double>(-1, 1)(r); }},
    {"ties_everywhere", [](Random& r, int) { return double(r() % 40) / 8 - 2; }},
    {"few_distinct_scores", [](Random& r, int) { return double(r() % 6); }},
    {"infinities",
     [](Random& r, int) { return r() % 3   ? double(r() % 90)
                                 : r() % 2 ? inf
                                           : -inf; }},
    {"neighbouring_doubles",
     [](Random& r, int) { return steps_from(1.0, static_cast<int>(r() % 120) - 60); }},
    {"denormals",
     [](Random& r, int) { return (r() % 2 ? tiny : -tiny) * double(r() % 5000) + 0.0; }},
};

struct Kind {
    const char* name;
    std::function<ScoreSums(Random&, double)> sample;
};

ScoreSums labelled(double score, bool label, std::int64_t weight) {
    return label ? ScoreSums{score, weight, 0, 1} : ScoreSums{score, 0, weight, 1};
}

double share(double score) { return score < 1e300 ? 1 / (1 + std::exp(-2 * score)) : 1.0; }

const std::vector<Kind> kinds = {
    {"coin_tosses", [](Random& r, double score) { return labelled(score, r() % 2, 1); }},
    {"calibrated",
     [](Random& r, double score) {
         return labelled(score, std::uniform_real_distribution<double>(0, 1)(r) < share(score), 1);
     }},
    {"both_sides",
     [](Random& r, double score) {
         const auto below = static_cast<std::int64_t>(r() % 4);
         const auto above = static_cast<std::int64_t>(1 + r() % 3);
         return ScoreSums{score, below, above, static_cast<std::uint32_t>(1 + r() % 3)};
     }},
    {"one_to_two_to_the_forty",
     [](Random& r, double score) { return labelled(score, r() % 2, std::int64_t{1} << r() % 41); }},
    {"nearly_parallel",
     [](Random& r, double score) {
         const auto huge = (std::int64_t{1} << 48) + static_cast<std::int64_t>(r() % 3);
         return ScoreSums{score, huge + static_cast<std::int64_t>(r() % 3), huge, 1};
     }},
    {"mostly_alike",
     [](Random& r, double score) {
         if (r() % 12) return labelled(score, r() % 2, 4);
         return ScoreSums{score, static_cast<std::int64_t>(r() % 5), 4, 1};
     }},
};

// Adds and removes at the given odds, so that the trees grow and shrink again and again.
void churn(Pair& pair, std::vector<ScoreSums>& samples, const Shape& shape, const Kind& kind,
           Random& random, int steps, unsigned adds_of_ten, bool every_step,
           const std::string& note) {
    for (int step = 0; step < steps; ++step) {
        if (samples.empty() || random() % 10 < adds_of_ten) {
            samples.push_back(kind.sample(random, shape.score(random, step)));
            pair.add(samples.back());
        } else {
            const std::size_t at = random() % samples.size();
            std::swap(samples[at], samples.back());
            pair.remove(samples.back(), note);
            samples.pop_back();
        }
        const std::string where = note + ", step " + std::to_string(step);
        if (every_step) check_sound(pair.tree, where);
        if (every_step || step % 8 == 0) pair.check_fit(where);
        if (step % 64 == 0) pair.check_all(where);
    }
    pair.check_all(note);
}

// ---- parts of a tree that are nobody's business but those of a test that breaks them ----

// The arguments of an explicit instantiation may name what is private; a friend hands it out.
template <class Tag, auto member>
struct Exposed {
    friend auto expose(Tag) { return member; }
};
struct TheTotal {
    friend auto expose(TheTotal);
};
struct TheDistinct {
    friend auto expose(TheDistinct);
};
struct TheMulti {
    friend auto expose(TheMulti);
};

template struct Exposed<TheTotal, &HullTree::total_>;
template struct Exposed<TheDistinct, &HullTree::distinct_>;
template struct Exposed<TheMulti, &HullTree::multi_>;

using Leaf = HullLeaf;
using Node = HullNode;

// Several levels of nodes over leaves of eight at most. The values ascend but for a long block in
// the middle, so the bridge of the root has points of both children above it.
HullTree some_levels() {
    HullTree tree(8);
    for (int i = 0; i < 40; ++i) tree.add({double(i), i < 8 || i >= 24 ? i + 1 : 16, 60, 2});
    return tree;
}

Node& root(HullTree& tree) { return *tree.root().node(); }
Node& inner(HullTree& tree) { return *root(tree).child[1].node(); }
Leaf& leaf(HullTree& tree) {
    auto link = root(tree).child[1];
    while (!link.is_leaf()) link = link.node()->child[0];
    return *link.leaf();
}

// The same shape with nothing but single samples of one weight.
void make_single(HullTree& tree) {
    tree.clear();
    for (int i = 0; i < 40; ++i) tree.add(labelled(i, i % 3 == 0, 5));
    tree.check();
}

}  // namespace

TEST_CASE("an empty tree has one cut, no block and no sums") {
    HullTree tree(4);
    tree.check();
    tree.scale(3);
    tree.load({});
    tree.check();

    CHECK(same(HullCut{}, tree.best(1, 1)));
    CHECK(tree.distinct() == 0 && tree.memory() == 0 && listed(tree).empty());
    CHECK(fit(tree).empty() && tree.totals() == RunSums{});
    CHECK(!tree.around(0.5).has_lower && !tree.around(0.5).has_upper);
    CHECK(tree.sums_below(0.5) == RunSums{} && tree.sums_at_or_below(inf) == RunSums{});
    CHECK(same(ScoreSums{0.5, 0, 0, 0}, tree.find(0.5)));
    CHECK(!tree.remove({0.5, 1, 0, 1}, always));
}

TEST_CASE("one score is one block") {
    for (double score : {-inf, -1.5, 0.0, tiny, inf})
        for (int label : {0, 1}) {
            Pair pair(4);
            pair.add(labelled(score, label, 3));
            pair.check_all("one score");
            pair.add(labelled(score, !label, 5));
            pair.check_all("both labels");
            pair.remove(labelled(score, label, 3), "one label left");
            pair.check_all("one label left");
            pair.remove(labelled(score, !label, 5), "none left");
            pair.check_all("none left");
        }
}

TEST_CASE("the fit equals pooled adjacent violators after every change") {
    std::uint64_t seed = 1000;
    for (int capacity : capacities)
        for (const Shape& shape : shapes)
            for (const Kind& kind : kinds)
                for (int repeat = 0; repeat < thoroughness; ++repeat) {
                    Random random(++seed);
                    Pair pair(capacity);
                    std::vector<ScoreSums> samples;
                    const std::string note =
                        std::string(shape.name) + " " + kind.name + with_seed(seed);
                    churn(pair, samples, shape, kind, random, 60, 8, true, note + ", growing");
                    churn(pair, samples, shape, kind, random, 50, 2, true, note + ", shrinking");
                    churn(pair, samples, shape, kind, random, 40, 6, true, note + ", again");
                }
}

TEST_CASE("larger trees grow to hundreds of leaves and shrink to nothing") {
    std::uint64_t seed = 20000;
    for (int capacity : capacities)
        for (std::size_t s : {0u, 1u, 2u, 3u})
            for (std::size_t k : {0u, 1u, 3u}) {
                Random random(++seed);
                Pair pair(capacity);
                std::vector<ScoreSums> samples;
                const std::string note =
                    std::string(shapes[s].name) + " " + kinds[k].name + with_seed(seed);
                const int steps = 120 * thoroughness;
                for (int step = 0; step < 5 * steps; ++step) {
                    samples.push_back(kinds[k].sample(random, shapes[s].score(random, step)));
                    pair.add(samples.back());
                    if (step % steps == 0) pair.check_all(note + ", growing");
                }
                std::shuffle(samples.begin(), samples.end(), random);
                for (int step = 0; !samples.empty(); ++step) {
                    pair.remove(samples.back(), note);
                    samples.pop_back();
                    if (step % steps == 0) pair.check_all(note + ", shrinking");
                }
                CHECK_NOTE(pair.tree.distinct() == 0, note);
            }
}

TEST_CASE("a window that slides over ascending, descending and random scores") {
    for (int capacity : capacities)
        for (std::size_t s : {0u, 1u, 3u}) {
            Random random(30000);
            Pair pair(capacity);
            std::vector<ScoreSums> samples;
            const std::size_t width = 150;
            for (int step = 0; step < 400 * thoroughness; ++step) {
                samples.push_back(kinds[1].sample(random, shapes[s].score(random, step)));
                pair.add(samples.back());
                if (samples.size() > width)
                    pair.remove(samples[samples.size() - 1 - width], shapes[s].name);
                if (step % 50 == 0) pair.check_all(shapes[s].name);
            }
        }
}

TEST_CASE("one label only is one block of that value") {
    for (int capacity : capacities)
        for (int label : {0, 1}) {
            Pair pair(capacity);
            for (int i = 0; i < 200; ++i) {
                pair.add(labelled(i * 37 % 211, label, 1 + i % 5));
                check_sound(pair.tree, "one label");
                CHECK(fit(pair.tree).size() == 1);
            }
            pair.check_all("one label");
        }
}

TEST_CASE("separable labels are two blocks, whichever way round they make one") {
    for (int capacity : capacities)
        for (bool right_way : {true, false}) {
            Pair pair(capacity);
            for (int i = 0; i < 200; ++i) {
                const int score = i * 37 % 211;
                pair.add(labelled(score, (score >= 100) == right_way, 1));
                check_sound(pair.tree, "separable");
            }
            pair.check_all("separable");
            CHECK(fit(pair.tree).size() == (right_way ? 2u : 1u));
        }
}

TEST_CASE("scores of equal value are one block, and a cost of that value takes all of it") {
    for (int capacity : capacities)
        for (int bits : {0, 20, 50}) {
            Pair pair(capacity);
            for (int i = 0; i < 300; ++i) {
                const std::int64_t times = (1 + i % 3) * (std::int64_t{1} << bits);
                pair.add({double(i * 37 % 307), 2 * times, 3 * times, 1});
                check_sound(pair.tree, "equal values");
                CHECK(fit(pair.tree).size() == 1);
            }
            pair.check_all("equal values");
            CHECK(!pair.tree.best(2, 3).has_upper);
            CHECK(!pair.tree.best(1999, 3000).has_lower);
            for (int i = 0; i < 299; ++i) {
                const std::int64_t times = (1 + i % 3) * (std::int64_t{1} << bits);
                pair.remove({double(i * 37 % 307), 2 * times, 3 * times, 1}, "equal values");
                check_sound(pair.tree, "equal values");
                CHECK(fit(pair.tree).size() == 1);
            }
        }
}

TEST_CASE("a staircase of values keeps every score a block of its own") {
    for (int capacity : capacities) {
        Pair pair(capacity);
        for (int i = 0; i < 300; ++i) {
            const int score = i * 37 % 307;
            pair.add({double(score), 1 + score, 400, 1});
            check_sound(pair.tree, "staircase");
        }
        pair.check_all("staircase");
        CHECK(fit(pair.tree).size() == 300);
    }
}

TEST_CASE("totals may come close to two to the 62") {
    std::uint64_t seed = 40000;
    for (int capacity : capacities)
        for (int scores : {2, 50, 200})
            for (int pattern = 0; pattern < 3; ++pattern) {
                Random random(++seed);
                Pair pair(capacity);
                const std::int64_t most = (limit - 1) / scores;
                std::vector<ScoreSums> samples;
                for (int i = 0; i < scores; ++i) {
                    const auto less = static_cast<std::int64_t>(random() % 1000);
                    const double score = i * 37 % 211;
                    if (pattern == 0) samples.push_back(labelled(score, random() % 2, most));
                    if (pattern == 1) samples.push_back({score, most / 2 - less, most / 2, 1});
                    if (pattern == 2) samples.push_back({score, most / 211 * (i * 37 % 211), 1, 1});
                    pair.add(samples.back());
                    check_sound(pair.tree, "near the limit" + with_seed(seed));
                }
                pair.check_all("near the limit" + with_seed(seed));
                for (const ScoreSums& sample : samples) {
                    pair.remove(sample, "near the limit");
                    check_sound(pair.tree, "near the limit" + with_seed(seed));
                    pair.check_fit("near the limit" + with_seed(seed));
                }
            }
}

// Weights that are 2^40 times as large take the 192 bits of a product of three, the others not.
TEST_CASE("large and small weights of the same proportions give the same fit") {
    std::uint64_t seed = 50000;
    for (int capacity : capacities)
        for (std::size_t k : {0u, 1u, 2u}) {
            Random random(++seed);
            HullTree small(capacity), large(capacity);
            std::vector<ScoreSums> samples;
            for (int step = 0; step < 300 * thoroughness; ++step) {
                if (samples.empty() || random() % 10 < (step / 200 % 2 ? 3u : 8u)) {
                    samples.push_back(kinds[k].sample(random, shapes[3].score(random, step)));
                    ScoreSums held = samples.back();
                    small.add(held);
                    held.below <<= 40, held.above <<= 40;
                    large.add(held);
                } else {
                    ScoreSums held = samples.back();
                    samples.pop_back();
                    CHECK(small.remove(held, always));
                    held.below <<= 40, held.above <<= 40;
                    CHECK(large.remove(held, always));
                }
                if (step % 10) continue;
                check_sound(large, "large" + with_seed(seed));
                std::vector<Block> expected = fit(small);
                for (Block& block : expected) block.sums.below <<= 40, block.sums.above <<= 40;
                CHECK_NOTE(expected == fit(large), with_seed(seed));
            }
        }
}

TEST_CASE("a product of three is compared in all its bits") {
    Random random(60000);
    const auto wide = [&](int bits) {
        return (WideUnsigned{random()} << 64 | random()) >> (128 - bits);
    };
    for (int i = 0; i < 20000; ++i) {
        const int bits = 1 + static_cast<int>(random() % 62);
        const WideUnsigned a = wide(bits), c = random() % 3 ? wide(bits) : a;
        const std::uint64_t b = random() >> 2, d = random() % 3 ? random() >> 2 : b;
        const bool expected = a * b > c * d;
        CHECK(expected == product_greater(a, b, c, d));
        CHECK(expected == product_greater_exact(a, b, c, d));
        const int up = static_cast<int>(random() % static_cast<unsigned>(126 - bits));
        CHECK(expected == product_greater(a << up, b, c << up, d));
    }
    const WideUnsigned top = ~WideUnsigned{0};
    const std::uint64_t most = ~std::uint64_t{0};
    CHECK(!product_greater(top, most, top, most) && product_greater(top, most, top, most - 1));
    CHECK(product_greater(top, most, top - 1, most) && !product_greater(top - 1, most, top, most));
}

TEST_CASE("loading any number of scores equals adding them, and changes go on from there") {
    for (int capacity : capacities)
        for (int size = 0; size <= 500; size += size < 40 ? 1 : 23) {
            Random random(static_cast<std::uint64_t>(70000 + size));
            Pair pair(capacity);
            std::vector<ScoreSums> samples, sorted;
            for (int i = 0; i < size; ++i) {
                samples.push_back(kinds[1].sample(random, i));
                pair.ordered[i] = {samples[samples.size() - 1].below,
                                   samples[samples.size() - 1].above, 1};
            }
            const std::string note = "size " + std::to_string(size);
            pair.tree.load(samples);
            pair.check_all(note);
            churn(pair, samples, shapes[4], kinds[0], random, 30, 5, true, note);
            for (int i = 0; i < size / 2 && !samples.empty(); ++i) {
                pair.remove(samples.back(), note);
                samples.pop_back();
                check_sound(pair.tree, note);
            }
            pair.check_all(note + ", shrunk");
        }
}

// Sorted, and one entry for each score.
std::vector<ScoreSums> batch_of(const Shape& shape, const Kind& kind, Random& random, int size) {
    Ordered ordered;
    for (int step = 0; step < size; ++step) {
        const ScoreSums held = kind.sample(random, shape.score(random, step));
        RunSums& sums = ordered[held.score];
        sums = plus(sums, {held.below, held.above, held.count});
    }
    return listed(ordered);
}

TEST_CASE("batches of ascending scores equal adding them one by one") {
    std::uint64_t seed = 75000;
    for (int capacity : capacities)
        for (std::size_t s : {0u, 1u, 3u, 4u, 6u})
            for (const Kind& kind : kinds) {
                Random random(++seed);
                Pair pair(capacity);
                const std::string note = std::string(shapes[s].name) + " " + kind.name;
                for (int size : {1, 5, 200, 3, 40, 300, 90}) {
                    const std::vector<ScoreSums> batch = batch_of(shapes[s], kind, random, size);
                    std::size_t seen = 0;
                    const ScoreSums* done = batch.data();
                    pair.tree.add_all(
                        done, batch.data() + batch.size(), [&](const ScoreSums& before) {
                            const RunSums& sums = pair.ordered[before.score];
                            seen += before.score == done->score && before.below == sums.below &&
                                    before.above == sums.above && before.count == sums.count;
                        });
                    CHECK_NOTE(seen == batch.size(), note + with_seed(seed));
                    for (const ScoreSums& held : batch) {
                        RunSums& sums = pair.ordered[held.score];
                        sums = plus(sums, {held.below, held.above, held.count});
                    }
                    pair.check_all(note + with_seed(seed));
                }
            }
}

TEST_CASE("a batch without memory for all of it is added up to where it stopped") {
    std::uint64_t seed = 76000;
    for (int capacity : {4, 8, HullTree::leaf_slots})
        for (std::size_t k : {0u, 2u, 5u, 6u, 7u})
            for (long granted = 0;; ++granted) {
                Random random(seed);
                Pair pair(capacity);
                // Many, or so few that the weight of most is found while the batch is added.
                const int held = k < 6 ? 150 : k == 6 ? capacity : 0;
                for (int i = held; i-- > 0;)
                    pair.add(labelled(i, i % 3 == 0, i + 1 < held ? 4 : 1));
                const std::vector<ScoreSums> batch =
                    batch_of(shapes[k < 6 ? 4 : 3], kinds[k % 6], random, 60);
                const ScoreSums* done = batch.data();
                const bool enough = testing::succeeds_with(granted, [&] {
                    pair.tree.add_all(done, batch.data() + batch.size(), [](const ScoreSums&) {});
                });
                CHECK(enough == (done == batch.data() + batch.size()));
                for (const ScoreSums* held = batch.data(); held != done; ++held) {
                    RunSums& sums = pair.ordered[held->score];
                    sums = plus(sums, {held->below, held->above, held->count});
                }
                pair.check_all("granted " + std::to_string(granted));
                if (enough) break;
            }
}

TEST_CASE("a finer unit multiplies every sum and moves no block, and a coarser one leads back") {
    std::uint64_t seed = 80000;
    for (int capacity : capacities)
        for (int size : {1, 4, 60, 300})
            for (int bits : {0, 1, 7, 20}) {
                Random random(++seed);
                Pair pair(capacity);
                std::vector<ScoreSums> samples;
                const std::string note = "bits " + std::to_string(bits) + with_seed(seed);
                churn(pair, samples, shapes[3], kinds[2], random, size, 9, false, note);
                pair.tree.scale(bits);
                for (auto& [score, sums] : pair.ordered) sums.below <<= bits, sums.above <<= bits;
                for (ScoreSums& sample : samples) sample.below <<= bits, sample.above <<= bits;
                pair.check_all(note);
                churn(pair, samples, shapes[3], kinds[2], random, 40, 3, true, note + ", refined");
                pair.tree.scale(5);
                pair.tree.check();
                pair.tree.scale(-5);
                pair.check_all(note + ", and back");
            }
}

TEST_CASE("removing what is not held changes nothing") {
    for (int capacity : capacities) {
        HullTree tree(capacity);
        for (int i = 0; i < 100; ++i) tree.add({double(2 * i), i % 3 + 1, i % 2 + 1, 2});
        const std::vector<ScoreSums> before = listed(tree);
        const std::vector<Block> blocks = fit(tree);
        for (int i = -1; i <= 100; ++i) CHECK(!tree.remove({2.0 * i + 1, 1, 0, 1}, always));
        for (double score : {-inf, inf, tiny, -tiny}) CHECK(!tree.remove({score, 1, 0, 1}, always));
        for (int i = 0; i < 100; ++i) {
            const std::int64_t below = i % 3 + 1, above = i % 2 + 1;
            CHECK(!tree.remove({2.0 * i, below, above, 3}, always));
            CHECK(!tree.remove({2.0 * i, below + 1, above, 2}, always));
            CHECK(!tree.remove({2.0 * i, below, above + 1, 2}, always));
            // Samples would be left without weight, or weight without samples.
            CHECK(!tree.remove({2.0 * i, below, above, 1}, always));
            CHECK(!tree.remove({2.0 * i, below, 0, 2}, always));
            CHECK(!tree.remove({2.0 * i, below, above, 2}, [](const ScoreSums&) { return false; }));
        }
        tree.check();

        CHECK(same(before, listed(tree)) && blocks == fit(tree));
    }
}

TEST_CASE("an addition shows what was held before, once, and nothing when it is refused") {
    HullTree tree(4);
    int seen = 0;
    for (int i = 0; i < 60; ++i) {
        const ScoreSums held{double(i % 20), i, 2 * i + 1, 1}, before = tree.find(held.score);
        tree.add(held, [&](const ScoreSums& shown) { seen += same(shown, before); });
    }
    CHECK(seen == 60);
    const ScoreSums crowd{100, 1, 0, std::numeric_limits<std::uint32_t>::max()};
    tree.add(crowd);
    bool refused = false;
    try {
        tree.add({100, 1, 0, 1}, [&](const ScoreSums&) { ++seen; });
    } catch (const std::overflow_error&) {
        refused = true;
    }
    tree.check();

    CHECK(refused && seen == 60 && same(crowd, tree.find(100)));
    CHECK(tree.totals().count == 60 + std::uint64_t{crowd.count});
}

TEST_CASE("a large tree needs at most 90 bytes per score however they arrive") {
    for (std::size_t s : {0u, 1u, 2u, 3u}) {
        HullTree tree;
        Random random(90000);
        for (int step = 0; step < 30000; ++step)
            tree.add(kinds[0].sample(random, shapes[s].score(random, step)));

        CHECK_NOTE(tree.memory() <= 90 * tree.distinct(), shapes[s].name);
        tree.load(listed(tree));
        CHECK_NOTE(tree.memory() <= 50 * tree.distinct(), shapes[s].name);
    }
}

TEST_CASE("single samples of one weight take less than half of what others take") {
    for (std::int64_t weight : {std::int64_t{1}, std::int64_t{3} << 40}) {
        HullTree alike, others;
        Random random(91000);
        for (int step = 0; step < 30000; ++step) {
            const ScoreSums held = labelled(shapes[3].score(random, step), random() % 2, weight);
            alike.add(held);
            others.add({held.score, held.below, held.above, 2});
        }
        CHECK(alike.memory() <= 26 * alike.distinct());
        CHECK(2 * alike.memory() < others.memory());
        alike.load(listed(alike));
        CHECK(alike.memory() <= 22 * alike.distinct());
    }
}

// The first sample may be the only one of its weight.
TEST_CASE("the weight of most samples is found when the first leaf is full") {
    HullTree tree;
    tree.add({-1.0, 5, 0, 1});
    for (int i = 0; i < 5000; ++i) tree.add({double(i * 37 % 5003), 0, 1, 1});
    tree.check();
    CHECK(tree.memory() <= 40 * tree.distinct());
}

TEST_CASE("scores become alike and different again as their samples come and go") {
    std::uint64_t seed = 92000;
    for (int capacity : capacities)
        for (int repeat = 0; repeat < thoroughness; ++repeat) {
            Random random(++seed);
            Pair pair(capacity);
            std::vector<ScoreSums> samples;
            const auto take_back = [&](std::size_t at) {
                pair.remove(samples[at], "one of many" + with_seed(seed));
                samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(at));
            };
            for (int step = 0; step < 300; ++step) {
                const double score = double(random() % 150);
                const std::int64_t finer = step / 50 % 2 ? 8 : 1;
                samples.push_back(labelled(score, random() % 2, finer * (random() % 20 ? 8 : 2)));
                pair.add(samples.back());
                if (random() % 2) take_back(random() % samples.size());
                // Losses that go without a sample, and come back with one.
                const ScoreSums& some =
                    samples.empty() ? ScoreSums{} : samples[random() % samples.size()];
                if (some.count && random() % 8 == 0) {
                    const ScoreSums half{some.score, some.below / 2, some.above / 2, 0};
                    pair.remove(half, "half of one" + with_seed(seed));
                    check_sound(pair.tree, "half of one" + with_seed(seed));
                    pair.tree.add({half.score, half.below, half.above, 1});
                    pair.tree.remove({half.score, 0, 0, 1}, always);
                    auto& sums = pair.ordered[half.score];
                    sums.below += half.below, sums.above += half.above;
                }
                if (step % 50 == 49) {
                    pair.tree.scale(finer == 1 ? 3 : -3);
                    const std::int64_t by = 9 - finer, from = finer;
                    for (auto& [at, sums] : pair.ordered)
                        sums = {sums.below * by / from, sums.above * by / from, sums.count};
                    for (ScoreSums& each : samples)
                        each.below = each.below * by / from, each.above = each.above * by / from;
                }
                check_sound(pair.tree, "step " + std::to_string(step) + with_seed(seed));
                if (step % 20 == 0) pair.check_all("mixed" + with_seed(seed));
            }
            while (!samples.empty()) {
                take_back(samples.size() - 1);
                check_sound(pair.tree, "shrinking" + with_seed(seed));
            }
        }
}

TEST_CASE("small trees stay small, and a window that moves on takes no more memory") {
    HullTree tree;
    tree.add({0.0, 0, 1, 1});
    CHECK(tree.memory() < 3000);
    const int width = 500;
    std::size_t after_some_windows = 0;
    for (int step = 1; step < 20 * width; ++step) {
        tree.add({double(step), step % 2, 1, 1});
        if (step >= width) {
            const int old = step - width;
            CHECK(tree.remove({double(old), old % 2, 1, 1}, always));
        }
        if (step == 4 * width) after_some_windows = tree.memory();
    }

    CHECK(tree.memory() == after_some_windows);
}

TEST_CASE("an emptied tree gives its leaves back and starts over") {
    HullTree tree(4);
    for (int i = 0; i < 1000; ++i) tree.add({double(i), 1, 0, 1});
    for (int i = 0; i < 1000; ++i) tree.remove({double(i), 1, 0, 1}, always);
    tree.check();

    CHECK(tree.distinct() == 0 && tree.memory() < 10000 && tree.totals() == RunSums{});
    for (int i = 0; i < 1000; ++i) tree.add({double(i), 0, 1, 1});
    tree.check();
    CHECK(fit(tree) == std::vector<Block>({{0, 999, {0, 1000, 1000}}}));
    tree.clear();
    tree.check();
    CHECK(tree.distinct() == 0 && tree.find(1.0).count == 0);
}

TEST_CASE("moved and swapped trees take everything along") {
    HullTree source(5);
    for (int i = 0; i < 100; ++i) source.add({double(i), i % 3, i % 2 + 1, 1});
    const std::vector<Block> blocks = fit(source);
    HullTree target(std::move(source));
    source.check();
    target.check();

    CHECK(source.distinct() == 0 && source.totals() == RunSums{} && fit(source).empty());
    CHECK(target.leaf_capacity() == 5 && blocks == fit(target));
    HullTree assigned(8);
    assigned.add({7.0, 1, 0, 1});
    assigned = std::move(target);
    for (int i = 100; i < 200; ++i) assigned.add({double(i), 0, 1, 1});
    assigned.check();
    CHECK(assigned.distinct() == 200 && assigned.leaf_capacity() == 5);
}

TEST_CASE("an addition without memory for it changes nothing") {
    for (int capacity : {4, 8})
        for (std::size_t s : {0u, 1u, 3u}) {
            HullTree tree(capacity);
            Random random(0);
            for (int step = 0; step < 150; ++step) {
                const ScoreSums held{shapes[s].score(random, step), step % 3, step % 2 + 1, 1};
                const std::vector<ScoreSums> before = listed(tree);
                const std::vector<Block> blocks = fit(tree);
                const RunSums totals = tree.totals();
                for (long granted = 0; !testing::succeeds_with(granted, [&] { tree.add(held); });
                     ++granted) {
                    check_sound(tree, shapes[s].name);
                    CHECK_NOTE(same(before, listed(tree)), shapes[s].name);
                    CHECK_NOTE(blocks == fit(tree) && totals == tree.totals(), shapes[s].name);
                }
                check_sound(tree, shapes[s].name);
            }
        }
}

TEST_CASE("a load without memory for it changes nothing") {
    HullTree tree(4);
    tree.add({1.0, 1, 0, 1});
    std::vector<ScoreSums> many;
    for (int i = 0; i < 200; ++i) many.push_back({double(i), i % 2, 1, 1});
    for (long granted = 0; !testing::succeeds_with(granted, [&] { tree.load(many); }); ++granted) {
        tree.check();
        CHECK(tree.distinct() == 1 && tree.find(1.0).count == 1);
    }
    tree.check();

    CHECK(same(many, listed(tree)));
}

TEST_CASE("removing needs no memory") {
    for (int capacity : capacities) {
        HullTree tree(capacity);
        for (int i = 0; i < 500; ++i) tree.add({double(i), i % 2, 1, 1});
        const bool enough = testing::succeeds_with(0, [&] {
            for (int i = 0; i < 500; ++i) {
                const int score = i * 7 % 500;
                tree.remove({double(score), score % 2, 1, 1}, always);
            }
        });
        tree.check();

        CHECK(enough && tree.distinct() == 0);
    }
}

// Two such scores that were loaded into one leaf part when it shares with another.
TEST_CASE("removing from a small loaded tree needs no memory, wherever its multi scores are") {
    for (int scores = 5; scores < 24; ++scores)
        for (int multi = 1; multi < scores; ++multi)
            for (int first = 0; first < scores; ++first) {
                std::vector<ScoreSums> all;
                for (int i = 0; i < scores; ++i)
                    all.push_back({double(i), i == multi || i == multi - 1, 1, 1});
                HullTree tree(4);
                tree.load(all);
                std::rotate(all.begin(), all.begin() + first, all.end());
                for (const ScoreSums& held : all)
                    CHECK(testing::succeeds_with(0, [&] { tree.remove(held, always); }));
                CHECK(tree.distinct() == 0);
            }
}

TEST_CASE("additions that memory was reserved for need none, whatever goes in between") {
    for (int capacity : capacities) check_reserved([&] { return HullTree(capacity); });
}

TEST_CASE("capacities outside of 4 to the slots of a leaf are refused") {
    for (int capacity : {-1, 0, 3, HullTree::leaf_slots + 1}) {
        bool refused = false;
        try {
            HullTree tree(capacity);
        } catch (const std::invalid_argument&) {
            refused = true;
        }
        CHECK(refused);
    }
}

TEST_CASE("scores without weight, or with a negative one, are refused") {
    HullTree tree(4);
    tree.add({1.0, 1, 2, 1});
    for (const ScoreSums& held : {ScoreSums{2.0, 0, 0, 1}, ScoreSums{1.0, 0, 0, 1},
                                  ScoreSums{2.0, -1, 3, 1}, ScoreSums{2.0, 3, -1, 1}}) {
        bool refused = false;
        try {
            tree.add(held);
        } catch (const std::invalid_argument&) {
            refused = true;
        }
        tree.check();

        CHECK(refused && tree.distinct() == 1 && tree.totals() == (RunSums{1, 2, 1}));
    }
    std::vector<ScoreSums> batch;
    for (int i = 0; i < 40; ++i) batch.push_back({2.0 + i, i == 20 ? 0 : 1, 0, 1});
    HullTree roomy;
    roomy.add({1.0, 1, 2, 1});
    const ScoreSums* done = batch.data();
    bool refused = false;
    try {
        roomy.add_all(done, batch.data() + 40, [](const ScoreSums&) {});
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    roomy.check();
    CHECK(refused && done == batch.data() + 20 && roomy.distinct() == 21);
}

TEST_CASE("every broken invariant is reported by name") {
    struct Damage {
        const char* expected;
        void (*inflict)(HullTree&);
    };
    const Damage damages[] = {
        {"a leaf is too full", [](HullTree& t) { leaf(t).used = 9; }},
        {"a leaf is too empty", [](HullTree& t) { leaf(t).used = 1; }},
        {"a leaf is wrong about being the first", [](HullTree& t) { leaf(t).first = true; }},
        {"a leaf does not start at 0", [](HullTree& t) { leaf(t).ties->points[0].weight = -1; }},
        {"scores do not ascend", [](HullTree& t) { leaf(t).score[1] = leaf(t).score[0]; }},
        {"a score is astray", [](HullTree& t) { leaf(t).score[0] = -1000; }},
        {"a score is held without samples", [](HullTree& t) { leaf(t).ties->count[0] = 0; }},
        {"a score is held without weight",
         [](HullTree& t) { leaf(t).ties->points[2] = leaf(t).ties->points[1]; }},
        {"tie columns are missing or left over", [](HullTree& t) { leaf(t).multi = 0; }},
        {"the number of multi scores of a leaf is wrong", [](HullTree& t) { --leaf(t).multi; }},
        {"the number of multi scores is wrong", [](HullTree& t) { ++(t.*expose(TheMulti{})); }},
        {"a leaf has another unit", [](HullTree& t) { make_single(t), ++leaf(t).unit; }},
        {"a leaf does not start at 0", [](HullTree& t) { make_single(t), ++leaf(t).ones[0]; }},
        {"the sums of a left child are wrong",
         [](HullTree& t) { make_single(t), ++leaf(t).ones[leaf(t).used]; }},
        {"the hull of a leaf is wrong", [](HullTree& t) { ++leaf(t).vertices; }},
        {"the hull of a leaf is wrong", [](HullTree& t) { leaf(t).hull[0] = 2; }},
        {"the sums of a left child are wrong", [](HullTree& t) { ++inner(t).left.weight; }},
        {"the count of a left child is wrong", [](HullTree& t) { ++inner(t).left_count; }},
        {"a separator is not the first score behind it",
         [](HullTree& t) { inner(t).separator -= 0.5; }},
        {"the height of a node is wrong", [](HullTree& t) { ++inner(t).height; }},
        {"a bridge was not built", [](HullTree& t) { inner(t).stale = true; }},
        {"a point lies below a bound",
         [](HullTree& t) {
             root(t).bounds[0].low = {1, 0};
         }},
        {"a point lies below a bound",
         [](HullTree& t) {
             root(t).bounds[0].high = {0, 1};
         }},
        {"a point lies below a bound",
         [](HullTree& t) {
             root(t).bounds[1].low = {1, 0};
         }},
        {"a point lies below a bound",
         [](HullTree& t) {
             root(t).bounds[1].high = {0, 1};
         }},
        {"a bridge is out of its bounds",
         [](HullTree& t) {
             root(t).bounds[0].low = {0, 1};
         }},
        {"a bridge is wrong", [](HullTree& t) { ++inner(t).to.weight; }},
        {"a bridge is wrong", [](HullTree& t) { --root(t).from.below; }},
        {"the scores of a bridge are wrong", [](HullTree& t) { ++inner(t).to_score; }},
        {"the scores of a bridge are wrong", [](HullTree& t) { --inner(t).from_score; }},
        {"the totals are wrong", [](HullTree& t) { ++(t.*expose(TheTotal{})).below; }},
        {"the number of distinct scores is wrong",
         [](HullTree& t) { ++(t.*expose(TheDistinct{})); }},
    };
    for (const Damage& damage : damages) {
        HullTree tree = some_levels();
        CHECK(complaint(tree) == "none");
        damage.inflict(tree);

        CHECK_NOTE(complaint(tree).find(damage.expected) != std::string::npos,
                   damage.expected + (", but found: " + complaint(tree)));
    }
}
