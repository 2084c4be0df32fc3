// SPDX-License-Identifier: Apache-2.0
//
// The cut tree against an ordered map that is scanned from end to end, with nodes so small that
// they split, share and merge all the time, for every instruction set of this processor.

#define LIMEN_TEST_MAIN
#include "core/cut_tree.hpp"

#include <cfloat>
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

constexpr int thoroughness = testing::effort(1, 6);

struct Capacity {
    int leaf, node;
};
const std::vector<Capacity> capacities = {{4, 4}, {5, 4}, {8, 5}, {leaf_slots, node_slots}};

std::vector<Isa> supported() {
    std::vector<Isa> all;
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
        if (isa_supported(isa)) all.push_back(isa);
    return all;
}

// ---- the oracle ----

struct Sums {
    std::int64_t below = 0, above = 0;
    std::uint32_t count = 0;
};

using Ordered = std::map<double, Sums>;

Cut best_of(const Ordered& sums) {
    Cut cut;
    std::int64_t value = 0;
    auto above = sums.begin();
    for (auto at = sums.begin(); at != sums.end(); ++at) {
        value += at->second.above - at->second.below;
        if (value >= cut.best) cut.best = value, above = std::next(at);
    }
    cut.has_lower = above != sums.begin();
    cut.has_upper = above != sums.end();
    if (cut.has_lower) cut.lower = std::prev(above)->first;
    if (cut.has_upper) cut.upper = above->first;
    return cut;
}

bool same(const Cut& a, const Cut& b) {
    return a.best == b.best && a.has_lower == b.has_lower && a.has_upper == b.has_upper &&
           a.lower == b.lower && a.upper == b.upper;
}

std::vector<ScoreSums> listed(const Ordered& sums) {
    std::vector<ScoreSums> all;
    for (const auto& [score, held] : sums)
        all.push_back({score, held.below, held.above, held.count});
    return all;
}

// One tree per instruction set beside the oracle; all are given the same samples.
class Trees {
public:
    explicit Trees(Capacity capacity) {
        for (Isa isa : supported()) trees.emplace_back(capacity.leaf, capacity.node, isa);
    }

    void add(const ScoreSums& held) {
        for (CutTree& tree : trees) tree.add(held);
        Sums& sums = ordered[held.score];
        sums.below += held.below;
        sums.above += held.above;
        sums.count += held.count;
    }

    void remove(const ScoreSums& held, const std::string& note) {
        const auto at = ordered.find(held.score);
        const ScoreSums expected{held.score, at->second.below, at->second.above, at->second.count};
        for (CutTree& tree : trees)
            CHECK_NOTE(tree.remove(held, [&](const ScoreSums& now) { return same(now, expected); }),
                       note);
        at->second.below -= held.below;
        at->second.above -= held.above;
        if ((at->second.count -= held.count) == 0) ordered.erase(at);
    }

    // Both at once; each tree has memory for what comes and needs no more.
    void replace(const ScoreSums& old, const ScoreSums& held, const std::string& note) {
        const auto at = ordered.find(old.score);
        const ScoreSums expected{old.score, at->second.below, at->second.above, at->second.count};
        std::vector<ScoreSums> before;
        for (CutTree& tree : trees) {
            tree.reserve(1);
            bool replaced = false;
            ScoreSums seen{};
            const bool enough = testing::succeeds_with(0, [&] {
                replaced = tree.replace(
                    old, held, [&](const ScoreSums& now) { return same(now, expected); },
                    [&](const ScoreSums& now) { seen = now; });
            });
            CHECK_NOTE(replaced && enough, note);
            before.push_back(seen);
        }
        at->second.below -= old.below;
        at->second.above -= old.above;
        if ((at->second.count -= old.count) == 0) ordered.erase(at);
        Sums& sums = ordered[held.score];
        for (const ScoreSums& seen : before)
            CHECK_NOTE(same(seen, {held.score, sums.below, sums.above, sums.count}), note);
        sums.below += held.below;
        sums.above += held.above;
        sums.count += held.count;
    }

    void load() {
        for (CutTree& tree : trees) tree.load(listed(ordered));
    }

    void check_best(const std::string& note) const {
        const Cut expected = best_of(ordered);
        for (const CutTree& tree : trees) {
            CHECK_NOTE(same(expected, tree.best()), note);
            CHECK_NOTE(ordered.size() == tree.distinct(), note);
        }
    }

    void check_all(const std::string& note) const {
        check_best(note);
        const std::vector<ScoreSums> expected = listed(ordered);
        for (const CutTree& tree : trees) {
            check_sound(tree, note);
            CHECK_NOTE(same(expected, listed(tree)), note);
            for (const ScoreSums& held : expected) {
                CHECK_NOTE(same(held, tree.find(held.score)), note);
                for (double beside :
                     {std::nextafter(held.score, -inf), std::nextafter(held.score, inf)})
                    CHECK_NOTE(ordered.count(beside) || tree.find(beside).count == 0, note);
            }
        }
    }

    std::vector<CutTree> trees;
    Ordered ordered;
};

// ---- streams, named by shape ----

const std::vector<Shape> shapes = {
    {"ascending", [](Random&, int step) { return step; }},
    {"descending", [](Random&, int step) { return -step; }},
    {"zigzag_outwards", [](Random&, int step) { return step % 2 ? step : -step; }},
    {"zigzag_inwards",
     [](Random&, int step) { return step % 2 ? 1.0 / (1 + step) : -1.0 / (1 + step); }},
    {"uniform", [](Random& r, int) { return std::uniform_real_distribution<double>(-1, 1)(r); }},
    {"ties_everywhere", [](Random& r, int) { return double(r() % 40) / 8 - 2; }},
    {"few_distinct_scores", [](Random& r, int) { return double(r() % 6); }},
    {"clusters",
     [](Random& r, int step) { return double(step / 50 * 7919 % 13) + double(r() % 1000) * 1e-9; }},
    {"infinities",
     [](Random& r, int) { return r() % 3   ? double(r() % 90)
                                 : r() % 2 ? inf
                                           : -inf; }},
    {"neighbouring_doubles",
     [](Random& r, int) { return steps_from(1.0, static_cast<int>(r() % 120) - 60); }},
    {"neighbours_of_zero",
     [](Random& r, int) { return steps_from(0.0, static_cast<int>(r() % 120) - 60); }},
    {"denormals",
     [](Random& r, int) { return (r() % 2 ? tiny : -tiny) * double(r() % 5000) + 0.0; }},
    {"ends_of_the_doubles",
     [](Random& r, int) {
         const int steps = static_cast<int>(r() % 30);
         return r() % 2 ? steps_from(inf, -steps) : steps_from(-inf, steps);
     }},
};

struct Kind {
    const char* name;
    std::function<ScoreSums(Random&, double)> sample;
};

const std::vector<Kind> kinds = {
    {"labels",
     [](Random& r, double score) {
         return r() % 2 ? ScoreSums{score, 1, 0, 1} : ScoreSums{score, 0, 1, 1};
     }},
    {"many_equal_cuts",
     [](Random& r, double score) {
         const auto below = static_cast<std::int64_t>(r() % 3);
         return ScoreSums{score, below, 1, 1};
     }},
    {"negative_losses_and_counts",
     [](Random& r, double score) {
         const auto count = static_cast<std::uint32_t>(1 + r() % 3);
         return ScoreSums{score, static_cast<std::int64_t>(r() % 9) - 4,
                          static_cast<std::int64_t>(r() % 9) - 4, count};
     }},
    {"one_to_two_to_the_forty",
     [](Random& r, double score) {
         const std::int64_t size = std::int64_t{1} << r() % 41;
         return r() % 2 ? ScoreSums{score, size, 0, 1} : ScoreSums{score, 0, size, 1};
     }},
};

// Adds and removes at the given odds, so that the trees grow and shrink again and again.
void churn(Trees& trees, std::vector<ScoreSums>& samples, const Shape& shape, const Kind& kind,
           Random& random, int steps, unsigned adds_of_ten, bool every_step,
           const std::string& note) {
    for (int step = 0; step < steps; ++step) {
        if (samples.empty() || random() % 10 < adds_of_ten) {
            samples.push_back(kind.sample(random, shape.score(random, step)));
            trees.add(samples.back());
        } else {
            const std::size_t at = random() % samples.size();
            std::swap(samples[at], samples.back());
            trees.remove(samples.back(), note);
            samples.pop_back();
        }
        const std::string where = note + ", step " + std::to_string(step);
        if (every_step)
            for (const CutTree& tree : trees.trees) check_sound(tree, where);
        if (every_step || step % 16 == 0) trees.check_best(where);
        if (step % 128 == 0) trees.check_all(where);
    }
    trees.check_all(note);
}

// ---- parts of a tree that are nobody's business but those of a test that breaks them ----

// The arguments of an explicit instantiation may name what is private; a friend hands it out.
template <class Tag, auto member>
struct Exposed {
    friend auto expose(Tag) { return member; }
};
struct TheBest {
    friend auto expose(TheBest);
};
struct TheKept {
    friend auto expose(TheKept);
};
struct TheCutOf {
    friend auto expose(TheCutOf);
};
struct TheDistinct {
    friend auto expose(TheDistinct);
};

template struct Exposed<TheBest, &CutTree::best_>;
template struct Exposed<TheKept, &CutTree::kept_>;
template struct Exposed<TheCutOf, &KeptCut::cut_>;
template struct Exposed<TheDistinct, &CutTree::distinct_>;

using Leaf = CutLeaf;
using Node = CutNode;

void* root_of(CutTree& tree) { return const_cast<void*>(tree.root()); }
std::int64_t& best_in(CutTree& tree) { return tree.*expose(TheBest{}); }
std::size_t& distinct_in(CutTree& tree) { return tree.*expose(TheDistinct{}); }

// Three levels: a root, nodes, leaves of four at most.
CutTree three_levels() {
    CutTree tree(4, 4, Isa::baseline);
    for (int i = 0; i < 30; ++i) tree.add({double(i), i % 3, i % 2, 2});
    return tree;
}

Node& root(CutTree& tree) { return *static_cast<Node*>(root_of(tree)); }
Node& inner(CutTree& tree) { return *static_cast<Node*>(root(tree).child[1]); }
Leaf& leaf(CutTree& tree) { return *static_cast<Leaf*>(inner(tree).child[1]); }

}  // namespace

TEST_CASE("an empty tree has one cut and it costs nothing") {
    for (Isa isa : supported()) {
        CutTree tree(4, 4, isa);
        tree.check();
        tree.scale(3);
        tree.load({});

        CHECK(same(Cut{}, tree.best()));
        CHECK(tree.distinct() == 0 && tree.memory() == 0 && listed(tree).empty());
        CHECK(same(ScoreSums{0.5, 0, 0, 0}, tree.find(0.5)));
        CHECK(!tree.remove({0.5, 0, 0, 1}, always));
        tree.check();
    }
}

TEST_CASE("a single score lies below the cut unless that costs more") {
    for (double score : {-inf, -1.0, 0.0, tiny, inf})
        for (std::int64_t z : {-7, 0, 7})
            for (Isa isa : supported()) {
                CutTree tree(4, 4, isa);
                tree.add({score, z < 0 ? -z : 0, z > 0 ? z : 0, 1});
                tree.check();
                const Cut cut = tree.best();

                CHECK(cut.best == std::max(z, std::int64_t{0}));
                CHECK(cut.has_lower == (z >= 0) && cut.has_upper == (z < 0));
                CHECK((z < 0 ? cut.upper : cut.lower) == score);
            }
}

TEST_CASE("capacities outside the slots are refused and those at the ends are not") {
    const auto refused = [](int leaf_capacity, int node_capacity) {
        try {
            CutTree tree(leaf_capacity, node_capacity);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };

    CHECK(refused(3, 4) && refused(4, 3) && refused(leaf_slots + 1, 4) &&
          refused(4, node_slots + 1) && refused(-1, -1));
    CHECK(!refused(4, 4) && !refused(leaf_slots, node_slots));
}

TEST_CASE("every leaf capacity takes ascending, descending and inward scores") {
    for (int leaf_capacity = 4; leaf_capacity <= leaf_slots; ++leaf_capacity)
        for (std::size_t s : {0u, 1u, 3u}) {
            CutTree tree(leaf_capacity, 4 + leaf_capacity % 13);
            Random random(0);
            for (int step = 0; step < 6 * leaf_capacity; ++step) {
                tree.add({shapes[s].score(random, step), 0, 1, 1});
                if (step % 7 == 0) tree.check();
            }
            tree.check();

            CHECK(tree.best().best == 6 * leaf_capacity);
        }
}

TEST_CASE("streams of every shape agree with an ordered map after every step") {
    std::uint64_t seed = 0;
    for (const Capacity& capacity : capacities)
        for (const Shape& shape : shapes)
            for (const Kind& kind : kinds)
                for (int round = 0; round < thoroughness; ++round) {
                    Random random(++seed);
                    const std::string note =
                        std::string(shape.name) + ", " + kind.name + with_seed(seed);
                    Trees trees(capacity);
                    std::vector<ScoreSums> samples;
                    churn(trees, samples, shape, kind, random, 100, 8, true, note + ", growing");
                    churn(trees, samples, shape, kind, random, 80, 2, true, note + ", shrinking");
                    churn(trees, samples, shape, kind, random, 60, 6, true, note + ", again");
                    while (!samples.empty()) {
                        trees.remove(samples.back(), note);
                        samples.pop_back();
                        for (const CutTree& tree : trees.trees) check_sound(tree, note);
                        trees.check_best(note + ", emptying");
                    }
                }
}

// Reading the best cut keeps it, and later changes decide whether it is still the best.
TEST_CASE("the best cut is right after any few changes, whichever of them it was read between") {
    constexpr int scores = 3, kinds_of_z = 5, changes = scores * (kinds_of_z + 1);
    constexpr int length = thoroughness > 1 ? 4 : 3;
    int sequences = 1;
    for (int i = 0; i < length; ++i) sequences *= changes;
    for (int sequence = 0; sequence < sequences; ++sequence)
        for (bool read_always : {true, false}) {
            CutTree tree(4, 4);
            Ordered ordered;
            std::vector<ScoreSums> added[scores];
            int rest = sequence;
            for (int step = 0; step < length; ++step, rest /= changes) {
                const int at = rest % scores;
                const std::int64_t z = rest / scores % (kinds_of_z + 1) - 2;
                Sums& sums = ordered[at];
                if (z <= 2) {
                    const ScoreSums held{double(at), z < 0 ? -z : 0, z > 0 ? z : 0, 1};
                    tree.add(held);
                    added[at].push_back(held);
                    sums.below += held.below, sums.above += held.above, ++sums.count;
                } else if (!added[at].empty()) {
                    const ScoreSums held = added[at].front();
                    CHECK(tree.remove(held, always));
                    added[at].erase(added[at].begin());
                    sums.below -= held.below, sums.above -= held.above, --sums.count;
                }
                if (sums.count == 0) ordered.erase(at);
                const std::string note = "sequence " + std::to_string(sequence);
                if (read_always || step + 1 == length || sequence % (step + 2) == 0)
                    CHECK_NOTE(same(best_of(ordered), tree.best()), note);
            }
            tree.check();
        }
}

TEST_CASE("trees of several thousand scores agree with an ordered map") {
    std::uint64_t seed = 10000;
    for (const Capacity& capacity : capacities)
        for (const char* name : {"ascending", "uniform", "zigzag_inwards"}) {
            const Shape& shape = *std::find_if(shapes.begin(), shapes.end(), [&](const Shape& s) {
                return std::string(s.name) == name;
            });
            Random random(++seed);
            Trees trees(capacity);
            std::vector<ScoreSums> samples;
            const std::string note = shape.name + with_seed(seed);
            for (int step = 0; step < 1000 * (1 + thoroughness); ++step) {
                samples.push_back(kinds[0].sample(random, shape.score(random, step)));
                trees.add(samples.back());
                if (step % 97 == 0) trees.check_best(note);
            }
            trees.check_all(note);
            while (!samples.empty()) {
                const std::size_t at = random() % samples.size();
                std::swap(samples[at], samples.back());
                trees.remove(samples.back(), note);
                samples.pop_back();
                if (samples.size() % 97 == 0) trees.check_best(note);
                if (samples.size() % 997 == 0) trees.check_all(note);
            }
        }
}

TEST_CASE("sliding windows in either direction agree with an ordered map") {
    std::uint64_t seed = 20000;
    for (const Capacity& capacity : capacities)
        for (int width : {1, 3, 4, 5, 17, 120})
            for (int direction : {1, -1}) {
                Random random(++seed);
                Trees trees(capacity);
                std::vector<ScoreSums> samples;
                const std::string note = "width " + std::to_string(width) + with_seed(seed);
                for (int step = 0; step < 100 + 100 * thoroughness; ++step) {
                    samples.push_back(kinds[0].sample(random, direction * step));
                    trees.add(samples.back());
                    if (step >= width)
                        trees.remove(samples[static_cast<std::size_t>(step - width)], note);
                    for (const CutTree& tree : trees.trees) check_sound(tree, note);
                    trees.check_best(note);
                }
                trees.check_all(note);
            }
}

TEST_CASE("a sample in the place of another is the same as both one after the other") {
    std::uint64_t seed = 30000;
    for (const Capacity& capacity : capacities)
        for (int width : {1, 2, 5, 17, 120, 700}) {
            Random random(++seed);
            Trees trees(capacity);
            std::vector<ScoreSums> samples;
            const std::string note = "width " + std::to_string(width) + with_seed(seed);
            for (int step = 0; step < width + 100 * thoroughness; ++step) {
                // Ties, scores in order, and scores from anywhere.
                const double score = seed % 3 == 0   ? double(random() % 40)
                                     : seed % 3 == 1 ? double(step)
                                                     : double(random() % 4000);
                const bool label = random() % 2;
                const ScoreSums held{score, label ? 2 : 0, label ? 0 : 1, 1};
                samples.push_back(held);
                if (step < width) {
                    trees.add(held);
                    continue;
                }
                const ScoreSums& old = samples[static_cast<std::size_t>(step - width)];
                trees.replace(old, held, note);
                for (CutTree& tree : trees.trees) {
                    check_sound(tree, note);
                    const auto never = [](const ScoreSums&) { return false; };
                    CHECK_NOTE(!tree.replace({-1, 0, 1, 1}, held, always, never), note);
                    CHECK_NOTE(!tree.replace(held, old, never, never), note);
                }
                trees.check_best(note);
            }
            trees.check_all(note);
        }
}

TEST_CASE(
    "many scores taken away at once leave what they leave one after the other, in no memory") {
    for (Capacity capacity : capacities)
        for (Isa isa : supported())
            for (std::uint64_t seed = 0; seed < 12; ++seed) {
                Random random(seed);
                CutTree at_once(capacity.leaf, capacity.node, isa), singly = at_once.copy();
                const std::size_t size = 1 + random() % (seed % 2 ? 2000 : 60);
                std::map<double, std::vector<ScoreSums>> samples;
                for (std::size_t i = 0; i < size; ++i) {
                    const ScoreSums held{static_cast<double>(random() % (2 * size)),
                                         static_cast<std::int64_t>(random() % 3),
                                         static_cast<std::int64_t>(1 + random() % 3), 1};
                    samples[held.score].push_back(held);
                    for (CutTree* tree : {&at_once, &singly}) tree->add(held);
                }
                const std::uint64_t of_ten = seed % 4 == 3 ? 10 : 1 + random() % 9;
                std::vector<ScoreSums> gone;
                for (const auto& [score, of_score] : samples) {
                    ScoreSums sum{score, 0, 0, 0};
                    for (const ScoreSums& held : of_score)
                        if (random() % 10 < of_ten)
                            sum = {score, sum.below + held.below, sum.above + held.above,
                                   sum.count + 1};
                    if (sum.count) gone.push_back(sum);
                }
                for (const ScoreSums& held : gone) CHECK(singly.remove(held, always));
                at_once.best();
                CHECK(testing::succeeds_with(
                    0, [&] { at_once.remove_all(gone.data(), gone.data() + gone.size()); }));
                at_once.check();
                std::vector<ScoreSums> left, expected;
                at_once.scan([&](const ScoreSums& held) { left.push_back(held); });
                singly.scan([&](const ScoreSums& held) { expected.push_back(held); });

                CHECK(same(at_once.best(), singly.best()) && left.size() == expected.size());
                CHECK(
                    std::equal(left.begin(), left.end(), expected.begin(), expected.end(),
                               [](const ScoreSums& a, const ScoreSums& b) { return same(a, b); }));
            }
}

TEST_CASE("a loaded tree of any size up to 500 holds what it was given and can change") {
    for (const Capacity& capacity : capacities)
        for (int size = 0; size <= 500; size += size < 70 ? 1 : 1 + 12 / thoroughness) {
            const auto seed = static_cast<std::uint64_t>(30000 + size);
            Random random(seed);
            Trees trees(capacity);
            std::vector<ScoreSums> samples;
            const std::string note = "size " + std::to_string(size) + with_seed(seed);
            for (int i = 0; i < size; ++i) {
                samples.push_back(kinds[2].sample(random, i % 2 ? i : i + 0.5));
                Sums& sums = trees.ordered[samples.back().score];
                sums = {samples.back().below, samples.back().above, samples.back().count};
            }
            trees.load();
            trees.check_all(note);
            churn(trees, samples, shapes[5], kinds[2], random, 12, 5, true, note);
            trees.load();
            trees.check_all(note + ", loaded again");
        }
}

TEST_CASE("a loaded tree gives up its scores from the left, the right and the middle") {
    for (const Capacity& capacity : capacities)
        for (int end = 0; end < 3; ++end) {
            const auto seed = static_cast<std::uint64_t>(40000 + end);
            Random random(seed);
            Trees trees(capacity);
            for (int i = 0; i < 400; ++i) trees.ordered[i] = {i % 3, i % 2, 1};
            trees.load();
            while (!trees.ordered.empty()) {
                const auto steps = static_cast<std::ptrdiff_t>(trees.ordered.size());
                const auto at = std::next(trees.ordered.begin(), end == 0   ? 0
                                                                 : end == 1 ? steps - 1
                                                                            : steps / 2);
                trees.remove({at->first, at->second.below, at->second.above, 1}, with_seed(seed));
                for (const CutTree& tree : trees.trees) check_sound(tree, with_seed(seed));
                trees.check_best(with_seed(seed));
            }
        }
}

TEST_CASE("the highest of equally good cuts is chosen across leaves and nodes") {
    for (const Capacity& capacity : capacities)
        for (int pairs = 1; pairs < 120; pairs += 1 + pairs / 8) {
            Trees trees(capacity);
            for (int i = 0; i < 2 * pairs; ++i)
                trees.add(i % 2 ? ScoreSums{double(i), 1, 0, 1} : ScoreSums{double(i), 0, 1, 1});
            for (const CutTree& tree : trees.trees) {
                const Cut cut = tree.best();

                CHECK(cut.best == 1 && cut.lower == 2 * pairs - 2 && cut.upper == 2 * pairs - 1);
            }
            trees.add({-1.0, 1, 0, 1});
            for (const CutTree& tree : trees.trees) {
                const Cut cut = tree.best();

                CHECK(cut.best == 0 && cut.has_lower && cut.lower == 2 * pairs - 2);
            }
            trees.check_all("one more below everything");
        }
}

TEST_CASE("losses that add up to just below two to the 62 do not overflow") {
    const std::int64_t most = limit - 1;
    for (const Capacity& capacity : capacities)
        for (int scores : {1, 2, 5, 30, 200})
            for (int pattern = 0; pattern < 4; ++pattern) {
                Trees trees(capacity);
                std::vector<ScoreSums> samples;
                const std::int64_t share = most / scores;
                for (int i = 0; i < scores; ++i) {
                    const bool above =
                        pattern == 0 || (pattern == 1 && i % 2) || (pattern == 2 && i < scores / 2);
                    const double score = i * 37 % 211;
                    samples.push_back({score, above ? 0 : share, above ? share : 0, 1});
                    trees.add(samples.back());
                    trees.check_best("pattern " + std::to_string(pattern));
                }
                trees.check_all("pattern " + std::to_string(pattern));
                for (const ScoreSums& sample : samples) {
                    trees.remove(sample, "pattern " + std::to_string(pattern));
                    for (const CutTree& tree : trees.trees) tree.check();
                    trees.check_best("pattern " + std::to_string(pattern));
                }
            }
}

TEST_CASE("a single huge loss among small ones can be anywhere") {
    for (const Capacity& capacity : capacities)
        for (int at = 0; at < 60; at += 7)
            for (std::int64_t sign : {-1, 1}) {
                Trees trees(capacity);
                for (int i = 0; i < 60; ++i) trees.add({double(i), i % 2, (i + 1) % 2, 1});
                const std::int64_t size = limit - 100;
                const ScoreSums huge{double(at), sign < 0 ? size : 0, sign > 0 ? size : 0, 1};
                trees.add(huge);
                trees.check_all("added");
                for (int i = 0; i < 60; ++i)
                    if (i != at) trees.remove({double(i), i % 2, (i + 1) % 2, 1}, "the others");
                trees.check_all("alone");
            }
}

TEST_CASE("removing what is not held changes nothing") {
    for (const Capacity& capacity : capacities)
        for (Isa isa : supported()) {
            CutTree tree(capacity.leaf, capacity.node, isa);
            for (int i = 0; i < 100; ++i) tree.add({double(2 * i), i % 3, i % 2, 2});
            const std::vector<ScoreSums> before = listed(tree);
            const Cut cut = tree.best();
            for (int i = -1; i <= 100; ++i) CHECK(!tree.remove({2.0 * i + 1, 0, 0, 1}, always));
            for (double score : {-inf, inf, tiny, -tiny})
                CHECK(!tree.remove({score, 0, 0, 1}, always));
            for (int i = 0; i < 100; ++i) CHECK(!tree.remove({2.0 * i, i % 3, i % 2, 3}, always));
            tree.check();

            CHECK(same(before, listed(tree)) && same(cut, tree.best()));
        }
}

TEST_CASE("an addition shows what was held before, once, and nothing when it is refused") {
    CutTree tree(4, 4);
    int seen = 0;
    for (int i = 0; i < 60; ++i) {
        const ScoreSums held{double(i % 20), i, 2 * i, 1}, before = tree.find(held.score);
        tree.add(held, [&](const ScoreSums& shown) { seen += same(shown, before); });
    }
    CHECK(seen == 60);
    const ScoreSums crowd{100, 1, 0, std::numeric_limits<std::uint32_t>::max()};
    tree.add(crowd);
    try {
        tree.add({100, 1, 0, 1}, [&](const ScoreSums&) { ++seen; });
    } catch (const std::overflow_error&) {
    }
    tree.check();

    CHECK(seen == 60 && same(crowd, tree.find(100)));
}

TEST_CASE("a removal that is not allowed changes nothing and is asked about once") {
    CutTree tree(4, 4);
    for (int i = 0; i < 50; ++i) tree.add({double(i), 2 * i, i, 2});
    const std::vector<ScoreSums> before = listed(tree);
    for (int i = 0; i < 50; ++i) {
        int asked = 0;
        const auto refuse = [&](const ScoreSums& held) {
            asked += same(held, ScoreSums{double(i), 2 * i, i, 2});
            return false;
        };
        CHECK(!tree.remove({double(i), 2 * i, i, 2}, refuse));
        CHECK(!tree.remove({double(i), i, 0, 1}, refuse));
        CHECK(asked == 2);
    }
    tree.check();

    CHECK(same(before, listed(tree)));
}

TEST_CASE("a score holds as many samples as can be counted and refuses one more") {
    constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
    CutTree tree(4, 4);
    tree.add({1.0, 1, 0, 1});
    tree.add({2.0, 5, 3, most - 1});
    tree.add({2.0, 1, 0, 1});
    const std::vector<ScoreSums> before = listed(tree);
    bool refused = false;
    try {
        tree.add({2.0, 1, 1, 1});
    } catch (const std::overflow_error&) {
        refused = true;
    }
    tree.check();

    CHECK(refused);
    CHECK(same(before, listed(tree)));
}

TEST_CASE("a finer unit multiplies every loss and moves no cut, and a coarser one leads back") {
    std::uint64_t seed = 50000;
    for (const Capacity& capacity : capacities)
        for (int size : {1, 4, 60, 300})
            for (int bits : {0, 1, 7, 20}) {
                Random random(++seed);
                Trees trees(capacity);
                std::vector<ScoreSums> samples;
                const std::string note = "bits " + std::to_string(bits) + with_seed(seed);
                churn(trees, samples, shapes[4], kinds[2], random, size, 9, false, note);
                for (CutTree& tree : trees.trees) tree.scale(bits);
                for (auto& [score, sums] : trees.ordered) {
                    sums.below *= std::int64_t{1} << bits;
                    sums.above *= std::int64_t{1} << bits;
                }
                for (ScoreSums& sample : samples) {
                    sample.below *= std::int64_t{1} << bits;
                    sample.above *= std::int64_t{1} << bits;
                }
                trees.check_all(note);
                churn(trees, samples, shapes[4], kinds[2], random, 60, 3, true, note + ", refined");
                std::vector<ScoreSums> finer = listed(trees.ordered);
                for (CutTree& tree : trees.trees) {
                    tree.scale(5);
                    tree.check();
                    tree.best();
                    tree.scale(-5);
                    tree.check();
                    CHECK_NOTE(same(finer, listed(tree)), note);
                }
                trees.check_all(note + ", and back");
            }
}

TEST_CASE("a finer unit may fill all but the last of two to the 62") {
    CutTree tree(4, 4);
    const std::int64_t share = (std::int64_t{1} << 42) / 64;
    for (int i = 0; i < 63; ++i) tree.add({double(i), i % 2 ? share : 0, i % 2 ? 0 : share, 1});
    tree.scale(20);
    tree.check();

    CHECK(tree.best().best == share << 20);
}

TEST_CASE("a large tree needs at most 45 bytes per score however they arrive") {
    for (std::size_t s : {0u, 1u, 3u, 4u}) {
        CutTree tree;
        Random random(60000);
        for (int step = 0; step < 30000; ++step) tree.add({shapes[s].score(random, step), 0, 1, 1});

        CHECK_NOTE(tree.memory() <= 45 * tree.distinct(), shapes[s].name);
        const std::vector<ScoreSums> all = listed(tree);
        tree.load(all);
        CHECK_NOTE(tree.memory() <= 45 * tree.distinct(), shapes[s].name);
    }
}

TEST_CASE("small trees stay small, and a window that moves on takes no more memory") {
    CutTree tree;
    tree.add({0.0, 0, 1, 1});
    CHECK(tree.memory() < 2000);
    const int width = 500;
    std::size_t after_one_window = 0;
    for (int step = 1; step < 40 * width; ++step) {
        tree.add({double(step), 0, 1, 1});
        if (step >= width) tree.remove({double(step - width), 0, 1, 1}, always);
        if (step == 3 * width) after_one_window = tree.memory();
    }

    CHECK(tree.memory() == after_one_window);
}

TEST_CASE("an emptied tree gives its nodes back and starts over") {
    CutTree tree(4, 4);
    for (int i = 0; i < 1000; ++i) tree.add({double(i), 1, 0, 1});
    const std::size_t full = tree.memory();
    for (int i = 0; i < 1000; ++i) tree.remove({double(i), 1, 0, 1}, always);
    tree.check();

    CHECK(tree.distinct() == 0 && tree.memory() < full / 50);
    CHECK(same(Cut{}, tree.best()));
    for (int i = 0; i < 1000; ++i) tree.add({double(i), 0, 1, 1});
    tree.check();
    CHECK(tree.memory() == full && tree.best().best == 1000);
    tree.clear();
    tree.check();
    CHECK(tree.distinct() == 0 && tree.find(1.0).count == 0);
}

TEST_CASE("a moved tree takes everything along and leaves an empty tree") {
    CutTree source(5, 4);
    for (int i = 0; i < 100; ++i) source.add({double(i), i % 3, i % 2, 1});
    const std::vector<ScoreSums> all = listed(source);
    const Cut cut = source.best();
    CutTree target(std::move(source));
    source.check();
    target.check();

    CHECK(source.distinct() == 0 && same(Cut{}, source.best()) && source.find(1.0).count == 0);
    CHECK(target.leaf_capacity() == 5 && target.node_capacity() == 4);
    CHECK(same(all, listed(target)) && same(cut, target.best()));
    for (int i = 100; i < 200; ++i) target.add({double(i), 0, 1, 1});
    target.check();
    CutTree assigned(8, 5);
    assigned.add({7.0, 1, 0, 1});
    assigned = std::move(target);
    assigned.check();
    CHECK(assigned.distinct() == 200 && assigned.leaf_capacity() == 5);
}

TEST_CASE("swapped trees keep their capacities, kernels and scores") {
    for (Isa isa : supported()) {
        CutTree left(4, 4, isa), right(8, 5, Isa::baseline);
        for (int i = 0; i < 60; ++i) left.add({double(i), 0, 1, 1});
        for (int i = 0; i < 90; ++i) right.add({double(i), 1, 0, 1});
        left.swap(right);
        for (int i = 0; i < 60; ++i) left.add({i + 0.5, 1, 0, 1});
        for (int i = 0; i < 60; ++i) right.add({i + 0.5, 0, 1, 1});
        left.check();
        right.check();

        CHECK(left.leaf_capacity() == 8 && left.distinct() == 150 && left.best().best == 0);
        CHECK(right.leaf_capacity() == 4 && right.distinct() == 120 && right.best().best == 120);
    }
}

TEST_CASE("an addition without memory for it changes nothing") {
    for (const Capacity& capacity : {Capacity{4, 4}, Capacity{8, 5}})
        for (std::size_t s : {0u, 1u, 3u}) {
            CutTree tree(capacity.leaf, capacity.node);
            Random random(0);
            for (int step = 0; step < 150; ++step) {
                const ScoreSums held{shapes[s].score(random, step), step % 3, step % 2, 1};
                const std::vector<ScoreSums> before = listed(tree);
                const Cut cut = tree.best();
                for (long granted = 0; !testing::succeeds_with(granted, [&] { tree.add(held); });
                     ++granted) {
                    tree.check();
                    CHECK_NOTE(same(before, listed(tree)), shapes[s].name);
                    CHECK_NOTE(same(cut, tree.best()), shapes[s].name);
                }
                tree.check();
            }
        }
}

TEST_CASE("a load without memory for it changes nothing") {
    CutTree tree(4, 4);
    tree.add({1.0, 1, 0, 1});
    std::vector<ScoreSums> many;
    for (int i = 0; i < 200; ++i) many.push_back({double(i), 0, 1, 1});
    for (long granted = 0; !testing::succeeds_with(granted, [&] { tree.load(many); }); ++granted) {
        tree.check();
        CHECK(tree.distinct() == 1 && tree.find(1.0).count == 1);
    }
    tree.check();

    CHECK(same(many, listed(tree)));
}

TEST_CASE("removing needs no memory") {
    for (const Capacity& capacity : capacities) {
        CutTree tree(capacity.leaf, capacity.node);
        for (int i = 0; i < 500; ++i) tree.add({double(i), 0, 1, 1});
        const bool enough = testing::succeeds_with(0, [&] {
            for (int i = 0; i < 500; ++i) tree.remove({double(i * 7 % 500), 0, 1, 1}, always);
        });
        tree.check();

        CHECK(enough && tree.distinct() == 0);
    }
}

TEST_CASE("additions that memory was reserved for need none, whatever goes in between") {
    for (const Capacity& capacity : capacities)
        check_reserved([&] { return CutTree(capacity.leaf, capacity.node); });
}

// A score that is not single needs tie columns in its leaf, and leaves that share may need two for
// one.
TEST_CASE("additions of ties and of losses on both sides change nothing without memory") {
    for (const Capacity& capacity : capacities) {
        CutTree tree(capacity.leaf, capacity.node);
        Random random(0);
        for (int step = 0; step < 400; ++step) {
            const double score = double(random() % 300);
            const ScoreSums held{score, step % 40 == 0, 1 + step % 2, 1};
            const std::vector<ScoreSums> before = listed(tree);
            const Cut cut = tree.best();
            for (long granted = 0; !testing::succeeds_with(granted, [&] { tree.add(held); });
                 ++granted) {
                tree.check();
                CHECK(same(before, listed(tree)));
                CHECK(same(cut, tree.best()));
            }
            tree.check();
        }
    }
}

TEST_CASE("removing needs no memory, however few of the scores are tied or two-sided") {
    for (Isa isa : supported())
        for (const Capacity& capacity : capacities)
            for (const int every : {1, 2, 5, 40}) {
                CutTree tree(capacity.leaf, capacity.node, isa);
                Random random(static_cast<std::uint64_t>(every));
                std::vector<ScoreSums> samples;
                for (int i = 0; i < 600; ++i) {
                    samples.push_back({double(random() % 1000), i % every == 0, 1, 1});
                    tree.add(samples.back());
                }
                std::shuffle(samples.begin(), samples.end(), random);
                for (const ScoreSums& held : samples) {
                    CHECK(testing::succeeds_with(0, [&] { tree.remove(held, always); }));
                    check_sound(tree, isa_name(isa));
                }

                CHECK(tree.distinct() == 0);
            }
}

// Two such scores that were loaded into one leaf part when it shares with another.
TEST_CASE("removing from a small loaded tree needs no memory, wherever its multi scores are") {
    for (Isa isa : supported())
        for (int scores = 5; scores < 24; ++scores)
            for (int multi = 1; multi < scores; ++multi)
                for (int first = 0; first < scores; ++first) {
                    std::vector<ScoreSums> all;
                    for (int i = 0; i < scores; ++i)
                        all.push_back({double(i), i == multi || i == multi - 1, 1, 1});
                    CutTree tree(4, 4, isa);
                    tree.load(all);
                    std::rotate(all.begin(), all.begin() + first, all.end());
                    for (const ScoreSums& held : all)
                        CHECK(testing::succeeds_with(0, [&] { tree.remove(held, always); }));
                    CHECK(tree.distinct() == 0);
                }
}

TEST_CASE("losses may go without their sample, and without memory for it nothing changes") {
    for (Isa isa : supported()) {
        CutTree tree(4, 4, isa);
        for (int i = 0; i < 40; ++i) tree.add({double(i), 0, 8, 1});
        const ScoreSums part{7, 0, 3, 0}, other_side{9, -2, 1, 0}, rest{9, 2, 7, 1};

        CHECK(testing::succeeds_with(0, [&] { tree.remove(part, always); }));
        CHECK(same(tree.find(7), {7, 0, 5, 1}));
        check_sound(tree, isa_name(isa));
        CHECK(!testing::succeeds_with(0, [&] { tree.remove(other_side, always); }));
        CHECK(same(tree.find(9), {9, 0, 8, 1}));
        check_sound(tree, isa_name(isa));
        tree.remove(other_side, always);
        CHECK(same(tree.find(9), {9, 2, 7, 1}));
        check_sound(tree, isa_name(isa));
        CHECK(testing::succeeds_with(0, [&] { tree.remove(rest, always); }));
        CHECK(tree.distinct() == 39);
        check_sound(tree, isa_name(isa));
    }
}

TEST_CASE("single samples with one loss take at most 28 bytes each, and ties give theirs back") {
    CutTree tree;
    Random random(1);
    std::vector<double> scores;
    for (int i = 0; i < 400'000; ++i) {
        scores.push_back(std::uniform_real_distribution<double>()(random));
        tree.add({scores.back(), i % 2, 1 - i % 2, 1});
    }
    const std::size_t once = tree.memory();
    CHECK(once <= 28 * tree.distinct());
    for (int i = 0; i < 1000; ++i) {
        tree.add({scores[0], 1, 0, 1});
        tree.remove({scores[0], 1, 0, 1}, always);
    }
    tree.check();

    CHECK(tree.memory() <= once + 1000);
}

TEST_CASE("every broken invariant is reported by name") {
    struct Damage {
        const char* expected;
        void (*inflict)(CutTree&);
    };
    const Damage damages[] = {
        {"a leaf is too full", [](CutTree& t) { leaf(t).used = 5; }},
        {"a leaf is too empty", [](CutTree& t) { leaf(t).used = 1; }},
        {"a free slot is not +inf", [](CutTree& t) { leaf(t).score[leaf_slots - 1] = 99; }},
        {"a free slot has a sum of its own", [](CutTree& t) { ++leaf(t).prefix[leaf_slots - 1]; }},
        {"scores do not ascend", [](CutTree& t) { leaf(t).score[1] = leaf(t).score[0]; }},
        {"a score is astray", [](CutTree& t) { leaf(t).score[0] = -1000; }},
        {"a score is astray", [](CutTree& t) { leaf(t).score[leaf(t).used - 1] = 1000; }},
        {"a score is held without samples", [](CutTree& t) { leaf(t).ties->count[0] = 0; }},
        {"tie columns are missing or left over", [](CutTree& t) { leaf(t).multi = 0; }},
        {"the number of multi scores of a leaf is wrong", [](CutTree& t) { ++leaf(t).multi; }},
        {"the best cut of a child is wrong", [](CutTree& t) { leaf(t).prefix[0] += 1000; }},
        {"a node is too full", [](CutTree& t) { inner(t).used = 5; }},
        {"a node is too empty", [](CutTree& t) { inner(t).used = 1; }},
        {"the first separator is not -inf", [](CutTree& t) { inner(t).separator[0] = 0; }},
        {"a free separator is not nan", [](CutTree& t) { inner(t).separator[node_slots - 1] = 0; }},
        {"a free slot has a best cut", [](CutTree& t) { inner(t).best[node_slots - 1] = 0; }},
        {"a score is astray", [](CutTree& t) { inner(t).separator[1] = leaf(t).score[1]; }},
        {"a child starts at a wrong sum", [](CutTree& t) { ++inner(t).before[1]; }},
        {"the best cut of a child is wrong", [](CutTree& t) { ++inner(t).best[1]; }},
        {"the best cut of a child is wrong", [](CutTree& t) { ++root(t).best[1]; }},
        {"the sum of a node is wrong", [](CutTree& t) { ++inner(t).sum; }},
        {"the sum of a node is wrong", [](CutTree& t) { ++root(t).sum; }},
        {"the best cut of the root is wrong", [](CutTree& t) { ++best_in(t); }},
        {"the best cut kept is not the best",
         [](CutTree& t) { t.best(), ++((t.*expose(TheKept{})).*expose(TheCutOf{})).upper; }},
        {"the number of distinct scores is wrong", [](CutTree& t) { ++distinct_in(t); }},
    };
    for (const Damage& damage : damages) {
        CutTree tree = three_levels();
        CHECK(complaint(tree) == "none");
        damage.inflict(tree);

        CHECK_NOTE(complaint(tree).find(damage.expected) != std::string::npos,
                   damage.expected + (", but found: " + complaint(tree)));
    }
}

TEST_CASE("a root without scores is a broken tree") {
    CutTree tree(4, 4);
    tree.add({1.0, 0, 0, 1});
    Leaf& only = *static_cast<Leaf*>(root_of(tree));
    only.used = 0;
    only.score[0] = inf;
    best_in(tree) = lowest;
    distinct_in(tree) = 0;

    CHECK(complaint(tree).find("an empty tree has a root") != std::string::npos);
}

// Opening the first slot of a leaf reads the zero before it; a wrong one would enter every sum.
TEST_CASE("a leaf that does not start at 0 is a broken tree") {
    CutTree tree = three_levels();
    leaf(tree).zeros[5] = 1;

    CHECK(complaint(tree).find("a leaf does not start at 0") != std::string::npos);
}

TEST_CASE("a node with fewer children than a quarter of its slots is a broken tree") {
    CutTree tree(4, 16);
    for (int i = 0; i < 400; ++i) tree.add({double(i), 0, 0, 1});
    CHECK(complaint(tree) == "none");
    Node& node = inner(tree);
    for (int i = 3; i < node_slots; ++i) {
        node.separator[i] = std::numeric_limits<double>::quiet_NaN();
        node.best[i] = lowest;
    }
    node.used = 3;
    std::size_t left = 0;
    tree.scan([&](const ScoreSums&) { ++left; });
    distinct_in(tree) = left;

    CHECK(complaint(tree).find("a node is too empty") != std::string::npos);
}
