// SPDX-License-Identifier: Apache-2.0
//
// Memories that fade, against sums over all samples that ever came.

#define LIMEN_TEST_MAIN
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "instances.hpp"
#include "memory/memory.hpp"
#include "tests/memory_oracle.hpp"
#include "tests/testing.hpp"
#include "tests/testing_memory.hpp"

using namespace limen;
using limen::testing::effort;
using limen::testing::small_tree;
using limen::testing::succeeds_with;

namespace {

std::int64_t bits_of(double number) { return std::bit_cast<std::int64_t>(number); }
Amount amount_of(double first, double second = 0) {
    return {bits_of(first), bits_of(second), Amount::real};
}

struct Faded {
    double score, below, above;  // as new
    double at;                   // in half-lives
    int answer = 0;
};

// The cheapest loss, of samples as old as they are.
double cheapest(const std::vector<Faded>& samples, double now) {
    std::map<double, double> gain;  // what passing a score brings
    double loss = 0;
    for (const Faded& sample : samples) {
        const double weight = std::exp2(sample.at - now);
        loss += weight * sample.above;  // all above the cut
        gain[sample.score] += weight * (sample.below - sample.above);
    }
    double best = loss;
    for (const auto& [score, change] : gain) best = std::min(best, loss += change);
    return best;
}

template <class Tree>
class FadingWalk {
public:
    FadingWalk(bool by_time, bool labelled, double half_life, unsigned seed)
        : random_(seed), half_life_(half_life),
          note_((by_time ? "by time, seed " : "by number, seed ") + std::to_string(seed)) {
        settings_.keep = Keep::fading;
        settings_.by_time = by_time;
        settings_.labelled = labelled;
        settings_.period = half_life == std::floor(half_life)
                               ? Time::whole(static_cast<std::int64_t>(half_life))
                               : Time::of(half_life);
        const bool hull = std::is_same_v<Tree, HullTree>;
        settings_.costs = hull || !labelled ? Costs{} : Costs{2, 3};
        settings_.account = labelled ? Costs{2, 3} : Costs{};
        tree_.emplace(small_tree<Tree>({}, settings_.costs));
        memory_.emplace(*tree_, settings_);
    }

    bool fail_allocations = false;
    long failures = 0;

    // An update, without ids.
    void update() {
        const Faded sample = any_sample();
        const Time time = any_time();
        const double at = settings_.by_time ? time.number() / half_life_
                                            : static_cast<double>(samples_.size()) / half_life_;
        const Result done = call([&] {
            return memory_->update(sample.score, label_, amount_,
                                   settings_.by_time ? &time : nullptr);
        });
        require(done.refusal == MemoryRefusal::none, "no refusal");
        now_ = settings_.by_time ? std::max(now_, at) : at;
        if (!done.yes) {
            require(at < now_ - 25, "refused only when old");
            return;
        }
        samples_.push_back(sample);
        samples_.back().at = at;
    }

    void update_many() {
        std::vector<double> scores;
        std::vector<std::uint8_t> labels, bits, real, counted(20);
        std::vector<std::int64_t> firsts, seconds, times;
        std::vector<Faded> coming;
        const auto n = random_() % 9;
        for (unsigned i = 0; i < n; ++i) {
            coming.push_back(any_sample());
            scores.push_back(coming.back().score);
            labels.push_back(label_);
            firsts.push_back(amount_.first);
            seconds.push_back(amount_.second);
            bits.push_back(Amount::real);
            const Time time = any_time();
            times.push_back(time.bits);
            real.push_back(time.real);
        }
        BatchColumns rows;
        rows.rows = n;
        rows.scores = scores.data();
        if (settings_.labelled) rows.labels = labels.data();
        rows.firsts = firsts.data();
        rows.seconds = seconds.data();
        rows.bits = bits.data();
        if (settings_.by_time) rows.times = times.data(), rows.times_real = real.data();
        const Result done = call([&] { return memory_->update_many(rows, counted.data()); });
        require(done.refusal == MemoryRefusal::none, "no refusal");
        for (unsigned i = 0; i < n; ++i) {
            const double at = settings_.by_time ? rows.time(i).number() / half_life_
                                                : static_cast<double>(samples_.size()) / half_life_;
            now_ = settings_.by_time ? std::max(now_, at) : at;
            if (!counted[i]) continue;
            coming[i].at = at;
            samples_.push_back(coming[i]);
        }
    }

    void advance() {
        if (!settings_.by_time) return;
        const Time time = any_time();
        call([&] { return memory_->advance(time); });
        now_ = std::max(now_, time.number() / half_life_);
    }

    // With ids: a score, a label or a correction, or nothing of it any more.
    void ledger_step() {
        const auto number = static_cast<std::int64_t>(random_() % 12);
        const int what = static_cast<int>(random_() % 10);
        const Faded sample = any_sample();
        if (what < 4) {
            const Time time = any_time();
            const bool known = known_.count(number) && known_[number].scored;
            const double score = known ? known_[number].sample.score : sample.score;
            const Amount weight = !settings_.labelled ? Amount{}
                                  : known             ? known_[number].weight
                                                      : amount_;
            const Result done =
                call([&] { return memory_->score(Id::of(number), score, weight, &time, -1); });
            require(done.refusal == MemoryRefusal::none, "no refusal");
            if (known) return;
            Known& entry = known_[number];
            now_ = std::max(now_, time.number() / half_life_);
            entry.sample.score = score;
            entry.sample.answer = done.answer;
            entry.weight = weight;
            entry.moment = time.number() / half_life_;
            entry.scored = true;
            count(entry);
        } else if (what < 9) {
            call([&] { return memory_->label(Id::of(number), label_, amount_); });
            Known& entry = known_[number];
            entry.labelled = true;
            entry.label = label_;
            entry.losses = amount_;
            count(entry);
        } else {
            call([&] { return memory_->forget(Id::of(number)); });
            known_.erase(number);
        }
        if (known_.count(number) && !memory_->contains(Id::of(number))) {
            require(known_[number].sample.at < now() - 25, "dropped only when old");
            known_.erase(number);
        }
    }

    void compare() {
        memory_->check();
        std::vector<Faded> all = samples_;
        double cost = 0;
        for (const auto& [number, entry] : known_) {
            if (!entry.counts) continue;
            all.push_back(entry.sample);
            const double price = price_of(entry);
            cost += price * std::exp2(entry.sample.at - now());
        }
        const double loss =
            static_cast<double>(memory_->loss()) * std::exp2(-finest_bits) / memory_->scale();
        require(std::fabs(loss - cheapest(all, now())) < 1e-6, "the loss");
        if (known_.empty()) return;
        const double spent = memory_->faded_cost() * std::exp2(-finest_bits);
        require(std::fabs(spent - cost) < 1e-6, "the cost");
    }

    void restore() {
        const MemoryColumns columns = memory_->columns();
        HeldSamples<Tree> tree = tree_->copy();
        Memory<Tree> other(tree, settings_, {random_(), ~0ull});
        require(other.restore(columns), "columns are taken back");
        other.check();
        require(other.columns() == columns, "columns are the same");
        require(other.scale() == memory_->scale(), "the scale is the same");
    }

private:
    struct Known {
        Faded sample{};
        Amount weight, losses;
        double moment = 0;
        bool scored = false, labelled = false, label = false, counts = false, placed = false;
    };

    double now() const {
        return settings_.by_time
                   ? now_
                   : std::max(0.0,
                              (static_cast<double>(placed_ + samples_.size()) - 1) / half_life_);
    }
    void require(bool holds, const char* claim) { CHECK_NOTE(holds, note_ + ": " + claim); }

    double price_of(const Known& entry) const {
        if (!settings_.labelled)
            return entry.sample.answer ? entry.sample.above : entry.sample.below;
        if ((entry.sample.answer != 0) == entry.label) return 0;
        return std::bit_cast<double>(entry.weight.first) * (entry.label ? 3 : 2);
    }
    void count(Known& entry) {
        if (!entry.scored || !entry.labelled) return;
        if (settings_.labelled) {
            const double weight = std::bit_cast<double>(entry.weight.first);
            entry.sample.below = entry.label ? weight * 3 : 0;
            entry.sample.above = entry.label ? 0 : weight * 2;
        } else {
            entry.sample.below = std::bit_cast<double>(entry.losses.first);
            entry.sample.above = std::bit_cast<double>(entry.losses.second);
        }
        entry.counts = true;
        if (!entry.placed) {
            entry.sample.at =
                settings_.by_time ? entry.moment : static_cast<double>(placed_) / half_life_;
            ++placed_;
            entry.placed = true;
        }
    }

    Faded any_sample() {
        Faded made{};
        made.score = static_cast<double>(random_() % 12) / 8;
        label_ = random_() % 2;
        if (settings_.labelled) {
            const double weight = std::ldexp(static_cast<double>(1 + random_() % 20), -3);
            amount_ = amount_of(weight);
            const Costs& costs = settings_.account;
            made.below = label_ ? weight * static_cast<double>(costs.false_negative) : 0;
            made.above = label_ ? 0 : weight * static_cast<double>(costs.false_positive);
        } else {
            made.below = static_cast<double>(random_() % 8) / 4;
            made.above = static_cast<double>(1 + random_() % 8) / 4;
            amount_ = amount_of(made.below, made.above);
        }
        return made;
    }
    Time any_time() {
        clock_ += static_cast<double>(random_() % 3);
        if (random_() % 50 == 0) clock_ += 30 * half_life_;
        double at = clock_ - (random_() % 4 == 0 ? static_cast<double>(random_() % 8) : 0);
        if (random_() % 60 == 0) at -= 60 * half_life_;
        return random_() % 2 ? Time::of(at + 0.25) : Time::whole(static_cast<std::int64_t>(at));
    }

    template <class Call>
    Result call(Call&& body) {
        Result done;
        if (!fail_allocations) return body();
        const MemoryColumns before = memory_->columns();
        const std::string state = tree_->state();
        for (long granted = 0; !succeeds_with(granted, [&] { done = body(); }); ++granted) {
            ++failures;
            memory_->check();
            require(memory_->columns() == before && tree_->state() == state,
                    "unchanged when memory runs out");
        }
        return done;
    }

    std::mt19937 random_;
    double half_life_;
    std::string note_;
    MemorySettings settings_;
    std::optional<HeldSamples<Tree>> tree_;
    std::optional<Memory<Tree>> memory_;
    std::vector<Faded> samples_;
    std::map<std::int64_t, Known> known_;
    std::uint64_t placed_ = 0;
    double now_ = -1e300, clock_ = 0;
    bool label_ = false;
    Amount amount_{};
};

template <class Tree>
void walk(bool ledger, bool fail, int walks, int steps) {
    long failures = 0;
    for (int kind = 0; kind < 4; ++kind) {
        const bool by_time = kind & 1, labelled = !(kind & 2);
        if (!labelled && std::is_same_v<Tree, HullTree>) continue;
        for (int seed = 0; seed < walks; ++seed) {
            FadingWalk<Tree> walk(by_time, labelled, seed % 2 ? 3 : 2.5,
                                  static_cast<unsigned>(seed));
            walk.fail_allocations = fail;
            for (int i = 0; i < steps; ++i) {
                if (ledger)
                    walk.ledger_step();
                else if (i % 7 == 6)
                    walk.update_many();
                else if (i % 11 == 10)
                    walk.advance();
                else
                    walk.update();
                walk.compare();
                if (i % 16 == 15) walk.restore();
            }
            failures += walk.failures;
        }
    }
    if (fail) CHECK(failures > effort(10, 50));
}

}  // namespace

TEST_CASE("samples fade by number and by time as sums over all of them say") {
    walk<CutTree>(false, false, effort(2, 10), effort(150, 300));
}
TEST_CASE("samples of a hull tree fade alike") {
    // The loss at the costs of the account is the same, whatever costs the samples have.
    walk<HullTree>(false, false, effort(2, 6), effort(150, 300));
}
TEST_CASE("labels over samples that fade are corrected and forgotten") {
    walk<CutTree>(true, false, effort(2, 10), effort(150, 300));
    walk<HullTree>(true, false, effort(2, 6), effort(150, 300));
}
TEST_CASE("where memory runs out, nothing has faded") {
    walk<CutTree>(false, true, 2, effort(60, 120));
    walk<CutTree>(true, true, 2, effort(60, 120));
    walk<HullTree>(true, true, 1, effort(60, 120));
}

TEST_CASE("a time too many half-lives away is refused and changes nothing") {
    HeldSamples<CutTree> tree = small_tree<CutTree>({}, {});
    MemorySettings settings;
    settings.keep = Keep::fading;
    settings.by_time = true;
    settings.period = Time::of(0.5);
    Memory<CutTree> memory(tree, settings);
    const Time first = Time::whole(0), far = Time::of(1e17);
    CHECK(memory.update(0.5, true, {}, &first).yes);
    const MemoryColumns before = memory.columns();
    CHECK(memory.update(0.5, true, {}, &far).refusal == MemoryRefusal::far_time);
    CHECK(memory.advance(far).refusal == MemoryRefusal::far_time);
    CHECK(memory.columns() == before);
    const Time long_ago = Time::of(-1e17);
    CHECK(!memory.update(0.5, true, {}, &long_ago).yes);
    CHECK(memory.refused() == 1);
}

TEST_CASE("weights that grow too large for the tree are divided earlier") {
    HeldSamples<CutTree> tree = small_tree<CutTree>({}, {});
    MemorySettings settings;
    settings.keep = Keep::fading;
    settings.period = Time::whole(1'000'000);
    Memory<CutTree> memory(tree, settings);
    const Amount heavy = amount_of(0x1p21);
    double sum = 0;
    for (int i = 0; i < 3000; ++i) {
        CHECK(memory.update(i % 2, i % 2 == 0, heavy, nullptr).refusal == MemoryRefusal::none);
        memory.check();
        sum = sum * std::exp2(-1e-6) + 0x1p21;
    }
    const double total =
        static_cast<double>(tree.total()) * std::exp2(-tree.bits()) / memory.scale();
    CHECK(std::fabs(total / sum - 1) < 1e-6);
}

TEST_CASE("memories that fade by time are merged in the terms of one of them") {
    for (unsigned seed = 0; seed < static_cast<unsigned>(effort(20, 100)); ++seed) {
        std::mt19937 random(seed);
        MemorySettings settings;
        settings.keep = Keep::fading;
        settings.by_time = true;
        settings.period = Time::of(2.5);
        std::vector<HeldSamples<CutTree>> trees;
        for (int i = 0; i < 3; ++i) trees.push_back(small_tree<CutTree>({}, {}));
        Memory<CutTree> parts[3] = {
            {trees[0], settings}, {trees[1], settings}, {trees[2], settings}};
        for (int step = 0; step < 60; ++step) {
            const auto number = static_cast<std::int64_t>(step);
            const Time time = Time::of(static_cast<double>(random() % 30) + step / 2.0);
            for (Memory<CutTree>* memory : {&parts[step % 2], &parts[2]}) {
                memory->score(Id::of(number), static_cast<double>(number % 7), {}, &time,
                              number % 3 == 0);
                memory->label(Id::of(number), number % 2 == 0, {});
            }
        }
        CHECK(parts[0].merge(parts[1]).refusal == MemoryRefusal::none);
        parts[0].check();
        const auto close = [](double a, double b) { return std::fabs(a - b) < 1e-6; };
        const auto loss = [](const Memory<CutTree>& memory) {
            return static_cast<double>(memory.loss()) * 0x1p-20 / memory.scale();
        };
        CHECK(close(loss(parts[0]), loss(parts[2])));
        CHECK(close(parts[0].faded_cost() * 0x1p-20, parts[2].faded_cost() * 0x1p-20));
        CHECK(parts[0].ever() == parts[2].ever() && parts[0].ids() == parts[2].ids());
    }
}

TEST_CASE("scores and labels that fade are the same in batches and one by one") {
    for (unsigned seed = 0; seed < static_cast<unsigned>(effort(24, 160)); ++seed) {
        std::mt19937 random(seed);
        const auto draw = [&](unsigned below) { return static_cast<int>(random() % below); };
        MemorySettings settings;
        settings.keep = Keep::fading;
        settings.by_time = seed % 2;
        settings.labelled = seed % 4 < 2;
        settings.period = Time::whole(2);
        if (seed % 3) settings.maturity = Time::whole(4);
        std::vector<HeldSamples<CutTree>> trees;
        for (int i = 0; i < 2; ++i) trees.push_back(small_tree<CutTree>({}, {}));
        Memory<CutTree> batches(trees[0], settings), singles(trees[1], settings);
        std::int64_t clock = 0;
        for (int step = 0; step < 40; ++step) {
            std::vector<Id> ids;
            std::vector<double> scores;
            std::vector<std::uint8_t> labels, bits;
            std::vector<std::int64_t> firsts, seconds, times;
            const std::size_t n = static_cast<std::size_t>(draw(8));
            for (std::size_t i = 0; i < n; ++i) {
                const int number = draw(30) + step;
                ids.push_back(Id::of(number));
                scores.push_back(number % 9 / 4.0);
                labels.push_back(draw(2) == 1);
                firsts.push_back(bits_of(settings.labelled ? 1 + number % 3 : draw(4) / 2.0));
                seconds.push_back(bits_of(settings.labelled ? 0 : draw(4) / 2.0));
                bits.push_back(Amount::real);
                times.push_back(clock += draw(3));
            }
            BatchColumns rows;
            rows.rows = n;
            rows.ids = ids.data();
            rows.scores = scores.data();
            if (settings.labelled) rows.labels = labels.data();
            rows.firsts = firsts.data();
            rows.seconds = seconds.data();
            rows.bits = bits.data();
            const bool scoring = draw(2);
            if (scoring) rows.times = times.data();
            std::vector<std::uint8_t> out(n + 1);
            const Result done = scoring ? batches.score_many(rows, out.data(), nullptr)
                                        : batches.label_many(rows, out.data());
            CHECK(done.refusal == MemoryRefusal::none);
            for (std::size_t i = 0; i < n; ++i) {
                const Time time = Time::whole(times[i]);
                const Amount amount = rows.amount(i);
                const Result one = scoring ? singles.score(ids[i], scores[i], amount, &time, -1)
                                           : singles.label(ids[i], labels[i], amount);
                CHECK(out[i] == (scoring ? one.answer : one.yes));
            }
            batches.check();
            CHECK_NOTE(batches.columns() == singles.columns(), "seed " + std::to_string(seed));
            CHECK(trees[0].state() == trees[1].state());
        }
    }
}

TEST_CASE("a score divides weights after what matures before it, and not where its label ran out") {
    for (const bool runs_out : {false, true}) {
        MemorySettings settings;
        settings.keep = Keep::fading;
        settings.period = Time::whole(2);
        settings.maturity = Time::whole(4);
        if (runs_out) settings.time_to_live = Time::whole(4);
        std::vector<HeldSamples<CutTree>> trees;
        for (int i = 0; i < 2; ++i) trees.push_back(small_tree<CutTree>({}, {}));
        Memory<CutTree> batches(trees[0], settings), singles(trees[1], settings);
        const Time first = Time::whole(0), later = Time::whole(10);
        for (Memory<CutTree>* memory : {&batches, &singles}) {
            for (int i = 0; i < 20; ++i) {
                memory->score(Id::of(i), 0.5, {}, &first, 1);
                memory->label(Id::of(i), true, {});
            }
            memory->label(Id::of(19), false, {});  // counts again at its place, once it is old
            memory->label(Id::of(20), true, {});   // the next to come is one too many
        }
        const Id id = Id::of(20);
        const double score = 0.75;
        BatchColumns rows;
        rows.rows = 1;
        rows.ids = &id;
        rows.scores = &score;
        rows.times = &later.bits;
        std::uint8_t answer = 0;
        batches.score_many(rows, &answer, nullptr);
        singles.score(id, score, {}, &later, -1);
        CHECK(batches.columns() == singles.columns());
        CHECK(trees[0].state() == trees[1].state());
        CHECK(batches.scale() == (runs_out ? std::exp2(19.5) : 0x1p10));
    }
}

TEST_CASE("every group fades, and one clock goes for all") {
    MemorySettings settings;
    settings.keep = Keep::fading;
    settings.by_time = true;
    settings.period = Time::whole(3);
    std::vector<HeldSamples<CutTree>> trees;
    for (int i = 0; i < 3; ++i) trees.push_back(small_tree<CutTree>({}, {}));
    Memory<CutTree> memory(trees[0], settings);
    memory.add_group(trees[1]);
    memory.add_group(trees[2], 1);
    std::vector<Faded> samples[3];
    std::mt19937 random(4);
    double now = 0;
    for (int i = 0; i < 600; ++i) {
        const Time time = Time::whole(i);
        // Group 2 is idle for a long time, and group 1 with it.
        const auto group = static_cast<std::uint32_t>(i > 100 && i < 400 ? 0 : random() % 3);
        const double score = static_cast<double>(random() % 20);
        const bool label = random() % 2;
        memory.score(Id::of(i), score, {}, &time, 1, group);
        memory.label(Id::of(i), label, {});
        now = i / 3.0;
        for (std::uint32_t in = 0; in <= group; ++in)
            samples[in].push_back({score, label ? 1.0 : 0.0, label ? 0.0 : 1.0, now});
        memory.check();
        for (std::uint32_t of = 0; of < 3; ++of) {
            const double loss = static_cast<double>(memory.loss(of)) * 0x1p-20 / memory.scale(of);
            CHECK(std::fabs(loss - cheapest(samples[of], now)) < 1e-6);
        }
    }
}

TEST_CASE("groups fade alike in batches and one by one, and not where memory runs out") {
    long failures = 0;
    for (unsigned seed = 0; seed < static_cast<unsigned>(effort(4, 40)); ++seed) {
        std::mt19937 random(seed);
        const auto draw = [&](unsigned to) { return static_cast<std::int64_t>(random() % to); };
        MemorySettings settings;
        settings.keep = Keep::fading;
        settings.by_time = true;
        settings.period = Time::whole(1 + draw(3));
        settings.at_least = 2;
        if (draw(2)) settings.maturity = Time::whole(4);
        std::vector<HeldSamples<CutTree>> trees;
        for (int i = 0; i < 8; ++i) trees.push_back(small_tree<CutTree>({}, {}));
        Memory<CutTree> singles(trees[0], settings), batches(trees[4], settings);
        for (std::size_t i = 1; i < 4; ++i) {
            singles.add_group(trees[i], i == 2);  // 2 is inside of 1
            batches.add_group(trees[4 + i], i == 2);
        }
        const auto states = [&](std::size_t first) {
            std::string all;
            for (std::size_t i = first; i < first + 4; ++i) all += trees[i].state();
            return all;
        };
        // Either it happens, or nothing is changed.
        const auto attempt = [&](Memory<CutTree>& memory, std::size_t first, auto&& act) {
            const MemoryColumns before = memory.columns();
            const std::string held = states(first);
            for (long granted = 0; !succeeds_with(granted, act); ++granted, ++failures) {
                CHECK(memory.columns() == before);
                CHECK(states(first) == held);
            }
            memory.check();
        };
        std::int64_t clock = 0, next = 0;
        for (int step = 0; step < 40; ++step) {
            const auto n = static_cast<std::size_t>(1 + draw(4));
            const bool scoring = draw(2) || next == 0;
            if (draw(4) == 0) clock += 15 * draw(3);
            std::vector<Id> ids;
            std::vector<double> scores;
            std::vector<std::uint8_t> labels, out(n), one(n);
            std::vector<std::int64_t> times, weights;
            std::vector<std::uint32_t> groups;
            std::vector<std::uint8_t> bits(n, Amount::real);
            for (std::size_t i = 0; i < n; ++i) {
                ids.push_back(Id::of(scoring ? next++ : draw(static_cast<unsigned>(next + 3))));
                scores.push_back(static_cast<double>(draw(8)));
                labels.push_back(static_cast<std::uint8_t>(draw(2)));
                times.push_back(std::max<std::int64_t>(0, clock + draw(8) - 4));
                weights.push_back(bits_of(static_cast<double>(draw(4)) / 2));
                groups.push_back(static_cast<std::uint32_t>(draw(4)));
            }
            BatchColumns rows;
            rows.rows = n;
            rows.ids = ids.data();
            rows.scores = scores.data();
            rows.labels = labels.data();
            rows.firsts = weights.data();
            rows.bits = bits.data();
            rows.groups = groups.data();
            if (scoring) rows.times = times.data();
            attempt(batches, 4, [&] {
                const Result done = scoring ? batches.score_many(rows, out.data(), nullptr)
                                            : batches.label_many(rows, out.data());
                CHECK(done.refusal == MemoryRefusal::none);
            });
            for (std::size_t i = 0; i < n; ++i) {
                const Time time = Time::whole(times[i]);
                attempt(singles, 0, [&] {
                    const Result done = scoring ? singles.score(ids[i], scores[i], rows.amount(i),
                                                                &time, -1, groups[i])
                                                : singles.label(ids[i], labels[i], {});
                    CHECK(out[i] == (scoring ? done.answer : done.yes));
                });
            }
            if (draw(3) == 0) {
                const Time time = Time::whole(clock += draw(30));
                attempt(singles, 0, [&] { singles.advance(time); });
                attempt(batches, 4, [&] { batches.advance(time); });
            }
            if (draw(3) == 0) {
                const auto of = static_cast<std::uint32_t>(draw(4));
                attempt(singles, 0, [&] { singles.refresh(of); });
                attempt(batches, 4, [&] { batches.refresh(of); });
            }
            CHECK_NOTE(batches.columns() == singles.columns(), "seed " + std::to_string(seed));
            CHECK(states(0) == states(4));
        }
    }
    CHECK(failures > effort(100, 1000));
}
