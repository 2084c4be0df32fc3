// SPDX-License-Identifier: Apache-2.0
//
// How fast are the trees alone, without Python, against what the standard library has?
//
//     trees_bench [samples held ...]
//
// One line of JSON per measurement: what was done, at which size, by which contender, the CPU time
// of every run in nanoseconds per operation, and what a score takes in memory. Contenders take
// turns, so that a busy machine slows all of them alike, and their answers are compared first.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/cut_tree.hpp"
#include "core/hull_tree.hpp"
#include "samples/held_samples.hpp"
#include "samples/samples.hpp"

namespace {

using namespace limen;

std::int64_t cpu_nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// One sample: label 1 as often as its score says, so that there is a best cut to be found.
struct Labelled {
    double score;
    bool label;
    ScoreSums held() const { return {score, label, !label, 1}; }
};

std::vector<Labelled> draw(std::size_t n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> unit;
    std::vector<Labelled> samples(n);
    for (Labelled& sample : samples) {
        sample.score = unit(random);
        sample.label = unit(random) < sample.score;
    }
    return samples;
}

// ---- contenders: add, remove, and `best`, the loss that the best cut saves ----

constexpr auto always = [](const ScoreSums&) { return true; };

struct Cuts {
    explicit Cuts(Isa isa) : tree(leaf_slots, node_slots, isa) {}
    void add(const Labelled& sample) { tree.add(sample.held()); }
    void remove(const Labelled& sample) { tree.remove(sample.held(), always); }
    std::int64_t best() const { return tree.best().best; }
    double bytes() const {
        return static_cast<double>(tree.memory()) / static_cast<double>(tree.distinct());
    }
    CutTree tree;
};

// Knows the best cut of every cost; that of equal ones is asked for.
struct Hulls {
    void add(const Labelled& sample) { tree.add(sample.held()); }
    void remove(const Labelled& sample) { tree.remove(sample.held(), always); }
    std::int64_t best() const {
        const RunSums under = tree.best(1, 1).under;
        return under.above - under.below;
    }
    double bytes() const {
        return static_cast<double>(tree.memory()) / static_cast<double>(tree.distinct());
    }
    HullTree tree;
};

// The least that any answer must do: keep the scores in order. It knows no best cut.
struct Multimap {
    template <class T>
    struct Counting {
        using value_type = T;
        Counting() = default;
        template <class U>
        Counting(const Counting<U>&) {}
        T* allocate(std::size_t n) {
            // What malloc takes: a word of its own, in steps of sixteen bytes.
            used += (n * sizeof(T) + 8 + 15) / 16 * 16;
            return std::allocator<T>().allocate(n);
        }
        void deallocate(T* at, std::size_t n) {
            used -= (n * sizeof(T) + 8 + 15) / 16 * 16;
            std::allocator<T>().deallocate(at, n);
        }
        bool operator==(const Counting&) const { return true; }
    };
    static inline std::size_t used = 0;

    void add(const Labelled& sample) { samples.emplace(sample.score, sample.label); }
    void remove(const Labelled& sample) { samples.erase(samples.find(sample.score)); }
    std::int64_t best() const { return 0; }
    double bytes() const { return static_cast<double>(used) / static_cast<double>(samples.size()); }
    std::multimap<double, bool, std::less<>, Counting<std::pair<const double, bool>>> samples;
};

// What one writes first: a sorted vector, read from end to end for the best cut.
struct SortedVector {
    auto place(double score) const {
        return std::lower_bound(
            samples.begin(), samples.end(), score,
            [](const Labelled& held, double wanted) { return held.score < wanted; });
    }
    void add(const Labelled& sample) { samples.insert(place(sample.score), sample); }
    void remove(const Labelled& sample) { samples.erase(place(sample.score)); }
    std::int64_t best() const {
        std::int64_t value = 0, best = 0;
        for (const Labelled& sample : samples)
            best = std::max(best, value += sample.label ? -1 : 1);
        return best;
    }
    double bytes() const { return sizeof(Labelled); }
    std::vector<Labelled> samples;
};

// ---- measuring ----

volatile std::int64_t sink;

constexpr int rounds = 9;

void report(const char* work, std::size_t n, const std::string& name,
            const std::vector<double>& runs, double bytes) {
    std::printf("{\"work\": \"%s\", \"n\": %zu, \"contender\": \"%s\", \"bytes\": %.1f, \"ns\": [",
                work, n, name.c_str(), bytes);
    for (std::size_t i = 0; i < runs.size(); ++i) std::printf("%s%.1f", i ? ", " : "", runs[i]);
    std::printf("]}\n");
    std::fflush(stdout);
}

// Each contender, by the two things asked of it: so many nanoseconds for the whole batch.
struct Contender {
    std::string name;
    std::function<double(const std::vector<Labelled>&)> add;      // and take back, untimed
    std::function<double(const std::vector<Labelled>&)> replace;  // the oldest of as many held
    std::function<std::int64_t()> best;
    std::function<double()> bytes;
};

template <class Tree>
Contender contender(const std::string& name, const std::vector<Labelled>& held, Tree* made) {
    const std::shared_ptr<Tree> tree(made);
    const auto inside = std::make_shared<std::vector<Labelled>>(held);
    const auto next = std::make_shared<std::size_t>(0);
    for (const Labelled& sample : held) tree->add(sample);
    const auto per = [](std::int64_t start, std::size_t work) {
        return static_cast<double>(cpu_nanoseconds() - start) / static_cast<double>(work);
    };
    return {name,
            [=](const std::vector<Labelled>& batch) {
                const std::int64_t start = cpu_nanoseconds();
                for (const Labelled& sample : batch) {
                    tree->add(sample);
                    sink = tree->best();
                }
                const double taken = per(start, batch.size());
                for (const Labelled& sample : batch) tree->remove(sample);
                return taken;
            },
            [=](const std::vector<Labelled>& batch) {
                const std::int64_t start = cpu_nanoseconds();
                for (const Labelled& sample : batch) {
                    Labelled& oldest = (*inside)[*next];
                    *next = (*next + 1) % inside->size();
                    tree->remove(oldest);
                    tree->add(oldest = sample);
                    sink = tree->best();
                }
                return per(start, batch.size());
            },
            [=] { return tree->best(); }, [=] { return tree->bytes(); }};
}

std::vector<Isa> supported() {
    std::vector<Isa> all;
    for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
        if (isa_supported(isa)) all.push_back(isa);
    return all;
}

void one_by_one(std::size_t n) {
    const std::vector<Labelled> held = draw(n, 1);
    std::vector<Contender> all;
    for (Isa isa : supported())
        all.push_back(contender(std::string("cut tree, ") + isa_name(isa), held, new Cuts(isa)));
    const std::int64_t best = all[0].best();
    all.push_back(contender("hull tree", held, new Hulls));
    if (n <= 10'000) all.push_back(contender("sorted vector", held, new SortedVector));
    for (const Contender& one : all)
        if (one.best() != best) {
            std::fprintf(stderr, "%s finds another best cut\n", one.name.c_str());
            std::exit(1);
        }
    all.push_back(contender("std::multimap, no optimum", held, new Multimap));

    const std::size_t batch = std::clamp<std::size_t>(n / 10, 100, 100'000);
    std::vector<std::vector<double>> added(all.size()), replaced(all.size());
    std::vector<double> bytes;
    for (const Contender& one : all) bytes.push_back(one.bytes());
    for (int round = -1; round < rounds; ++round) {  // the first warms up
        const auto seed = static_cast<std::uint64_t>(100 + 2 * round);
        const std::vector<Labelled> more = draw(batch, seed), others = draw(batch, seed + 1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const double add = all[i].add(more), replace = all[i].replace(others);
            if (round < 0) continue;
            added[i].push_back(add);
            replaced[i].push_back(replace);
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        report("insert + optimum", n, all[i].name, added[i], bytes[i]);
    for (std::size_t i = 0; i < all.size(); ++i)
        report("delete + insert + optimum", n, all[i].name, replaced[i], bytes[i]);
}

// Batches, as HeldSamples holds them: all into an empty tree, then a tenth more.
template <class Tree>
void batches(std::size_t n, const char* name) {
    const std::vector<Labelled> samples = draw(n, 1), more = draw(n / 10, 2);
    const auto put = [](const std::vector<Labelled>& all, LabelledScores& to) {
        for (const Labelled& sample : all) to.put(sample.score, sample.label);
    };
    std::vector<double> loaded, added, sorted;
    double bytes = 0;
    for (int round = -1; round < rounds / 2; ++round) {
        HeldSamples<Tree> held;
        std::vector<double> scores;
        for (const Labelled& sample : samples) scores.push_back(sample.score);
        const std::int64_t t0 = cpu_nanoseconds();
        LabelledScores first(samples.size(), 1, 1);
        put(samples, first);
        held.add_many(first, 0);
        const std::int64_t t1 = cpu_nanoseconds();
        LabelledScores later(more.size(), 1, 1);
        put(more, later);
        held.add_many(later, 0);
        const std::int64_t t2 = cpu_nanoseconds();
        std::sort(scores.begin(), scores.end());
        const std::int64_t t3 = cpu_nanoseconds();
        if (round < 0) continue;
        loaded.push_back(static_cast<double>(t1 - t0) / static_cast<double>(samples.size()));
        added.push_back(static_cast<double>(t2 - t1) / static_cast<double>(more.size()));
        sorted.push_back(static_cast<double>(t3 - t2) / static_cast<double>(samples.size()));
        bytes = static_cast<double>(held.memory()) / static_cast<double>(held.distinct());
    }
    report("a batch into an empty tree", n, name, loaded, bytes);
    report("a batch of a tenth more", n, name, added, bytes);
    report("a batch into an empty tree", n, "std::sort of the scores alone", sorted, 8);
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::size_t> sizes;
    for (int i = 1; i < count; ++i) sizes.push_back(std::strtoull(arguments[i], nullptr, 10));
    if (sizes.empty()) sizes = {10'000, 1'000'000};
    for (std::size_t n : sizes) {
        one_by_one(n);
        batches<CutTree>(n, "cut tree");
        batches<HullTree>(n, "hull tree");
    }
}
