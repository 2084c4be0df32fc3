// SPDX-License-Identifier: Apache-2.0
//
// Memories and their oracle, side by side in random walks; also while memory runs out.

#define LIMEN_TEST_MAIN
#include "memory/memory.hpp"

#include <random>
#include <string>
#include <vector>

#include "instances.hpp"
#include "tests/memory_oracle.hpp"
#include "tests/testing.hpp"
#include "tests/testing_memory.hpp"

using namespace limen;
using limen::testing::effort;
using limen::testing::id_of;
using limen::testing::MemoryOracle;
using limen::testing::name_of;
using limen::testing::small_tree_for;
using limen::testing::succeeds_with;

namespace {

std::string key_of_id(int number) { return std::to_string(number); }

struct Walk {
    MemorySettings settings;
    Unit unit;
    bool with_ids = true, timed = true, real_times = false;
    int groups = 1;
    std::string note;
};

// A memory and an oracle that are asked the same.
template <class Tree>
class Pair {
public:
    explicit Pair(const Walk& walk, unsigned seed)
        : walk_(walk), random_(seed), note_(walk.note + " seed " + std::to_string(seed)) {
        std::vector<std::uint32_t> inside{~0u};
        trees_.reserve(8);
        trees_.push_back(small_tree_for<Tree>(walk.unit, walk.settings));
        memory_.emplace(trees_[0], walk.settings, MemoryOptions{seed, seed % 3 ? ~0ull : 7});
        for (int i = 1; i < walk.groups; ++i) {
            trees_.push_back(small_tree_for<Tree>(walk.unit, walk.settings));
            inside.push_back(static_cast<std::uint32_t>(draw(i)));
            memory_->add_group(trees_.back(), inside.back());
        }
        oracle_.emplace(walk.settings, walk.unit, inside);
    }

    void step() {
        const int what = draw(20);
        if (!walk_.with_ids) {
            if (what == 0 && walk_.settings.keep == Keep::last_period)
                advance();
            else if (what < 3)
                update_many();
            else
                update();
        } else if (what < 9) {
            score();
        } else if (what < 16) {
            label();
        } else if (what < 17) {
            forget();
        } else if (what < 18 && walk_.settings.keep != Keep::last_n) {
            advance();
        } else if (what < 19) {
            score_many();
        } else {
            label_many();
        }
        ++steps;
    }

    void compare() {
        const Memory<Tree>& memory = *memory_;
        memory.check();
        require(memory.ids() == oracle_->ids(), "ids");
        require(memory.expired() == oracle_->expired, "expired");
        require(memory.refused() == oracle_->refused, "refused");
        require(memory.newest() == oracle_->clock, "newest");
        require(memory.cost() == oracle_->cost(), "cost");
        require(memory.ever() == oracle_->ever, "ever");
        for (int number = 0; number < ids; ++number) {
            const std::string name = name_of(number);
            require(memory.contains(id_of(number, name)) == oracle_->contains(key_of_id(number)),
                    "contains");
        }
        for (std::uint32_t group = 0; group < trees_.size(); ++group)
            require(trees_[group].state() == oracle_->held(group).state(), "what is held");
        StateCounts counts;
        for (const auto& record : oracle_->records) {
            counts.waiting += record.state == EntryState::waiting;
            counts.open += record.state == EntryState::open;
            counts.young += record.state == EntryState::young;
        }
        const StateCounts found = memory.states();
        require(found.waiting == counts.waiting && found.open == counts.open &&
                    found.young == counts.young,
                "states");
    }

    // What was stored and comes back is the same, and goes on the same.
    void restore() {
        const MemoryColumns columns = memory_->columns();
        const bool window =
            walk_.settings.keep == Keep::last_n || walk_.settings.keep == Keep::last_period;
        std::vector<HeldSamples<Tree>> trees;
        trees.reserve(8);
        for (std::size_t i = 0; i < trees_.size(); ++i)
            trees.push_back(window ? small_tree_for<Tree>(walk_.unit, walk_.settings)
                                   : trees_[i].copy());
        auto other = std::make_unique<std::optional<Memory<Tree>>>();
        other->emplace(trees[0], walk_.settings, MemoryOptions{random_(), ~0ull});
        for (std::size_t i = 1; i < trees.size(); ++i)
            (*other)->add_group(trees[i], oracle_->inside[i]);
        require((*other)->restore(columns), "columns are taken back");
        (*other)->check();
        require((*other)->columns() == columns, "columns are the same");
        for (std::size_t i = 0; i < trees.size(); ++i)
            require(trees[i].state() == trees_[i].state(), "trees are the same");
        require(memory_->restore(columns) == !window || trees_[0].samples() == 0,
                "a window is not filled twice");
    }

    // Every allocation fails in turn; then nothing has changed.
    bool fail_allocations = false;
    long failures = 0, steps = 0, refusals = 0;

private:
    static constexpr int ids = 14;

    int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
    void require(bool holds, const char* claim) { CHECK_NOTE(holds, note_ + ": " + claim); }

    template <class Call>
    Result call(Call&& body) {
        Result done;
        if (!fail_allocations) return body();
        const MemoryColumns before = memory_->columns();
        std::vector<std::string> states;
        for (const auto& tree : trees_) states.push_back(tree.state());
        for (long granted = 0; !succeeds_with(granted, [&] { done = body(); }); ++granted) {
            ++failures;
            memory_->check();
            require(memory_->columns() == before, "unchanged when memory runs out");
            for (std::size_t i = 0; i < trees_.size(); ++i)
                require(trees_[i].state() == states[i], "trees unchanged when memory runs out");
        }
        return done;
    }

    double a_score() { return draw(9) / 8.0 - (draw(10) == 0 ? 1 : 0); }
    Amount an_amount() {
        if (!walk_.settings.labelled) {
            static const Amount all[] = {{1, 0, 0}, {0, 1, 0},  {0, 0, 0},  {1, 3, 0}, {-1, 2, 0},
                                         {3, 1, 2}, {5, -2, 1}, {0, 1, 20}, {0, 2, 0}, {4, 0, 0}};
            return all[draw(10)];
        }
        if (walk_.note.find("weights") == std::string::npos) return {};
        static const Amount all[] = {{1, 0, 0}, {1, 0, 0}, {2, 0, 0},  {1, 0, 1},
                                     {0, 0, 0}, {3, 0, 2}, {7, 0, 20}, {1000, 0, 0}};
        Amount amount = all[draw(8)];
        if (!walk_.unit.automatic) amount.bits = 0;
        return amount;
    }
    Amount a_weight() { return walk_.settings.labelled ? an_amount() : Amount{}; }
    Time a_time() {
        // Mostly forward, now and then late, rarely far ahead.
        if (draw(3)) clock_ += draw(3);
        if (draw(60) == 0) clock_ += 12;
        double at = clock_ - (draw(4) == 0 ? draw(14) : 0) + (draw(40) == 0 ? 9 : 0);
        if (walk_.real_times && draw(2)) return Time::of(at + draw(4) / 4.0);
        return Time::whole(static_cast<std::int64_t>(at));
    }
    int an_answer() { return draw(3) ? -1 : draw(2); }

    void same(const Result& a, const Result& b) {
        require(a.refusal == b.refusal, "the refusal");
        if (a.refusal != MemoryRefusal::none) return;
        require(a.yes == b.yes, "yes");
        require(a.answer == b.answer, "the answer");
    }

    void update() {
        const double score = a_score();
        const bool label = draw(2);
        const Amount amount = an_amount();
        const Time time = a_time();
        const Time* when = walk_.settings.keep == Keep::last_period ? &time : nullptr;
        same(call([&] { return memory_->update(score, label, amount, when); }),
             oracle_->update(score, label, amount, when));
    }

    struct Rows {
        std::vector<Id> ids;
        std::vector<int> numbers;
        std::vector<std::string> names;
        std::vector<double> scores;
        std::vector<std::uint8_t> labels, bits, real;
        std::vector<std::int64_t> firsts, seconds, times;
        std::vector<std::int8_t> answers;
        std::vector<std::uint32_t> groups;
        BatchColumns columns;
    };
    void fill(Rows& rows, bool as_of) {
        const int n = !walk_.with_ids && draw(3) == 0 ? 60 + draw(30) : draw(12);
        for (int i = 0; i < n; ++i) {
            rows.numbers.push_back(draw(ids));
            rows.names.push_back(name_of(rows.numbers.back()));
            rows.scores.push_back(a_score());
            rows.labels.push_back(draw(2) == 1);
            const Amount amount = as_of || !walk_.with_ids ? an_amount() : a_weight();
            rows.firsts.push_back(amount.first);
            rows.seconds.push_back(amount.second);
            rows.bits.push_back(amount.bits);
            const Time time = a_time();
            rows.times.push_back(time.bits);
            rows.real.push_back(time.real);
            rows.answers.push_back(static_cast<std::int8_t>(an_answer()));
            rows.groups.push_back(static_cast<std::uint32_t>(draw(walk_.groups)));
        }
        for (int i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(i);
            rows.ids.push_back(id_of(rows.numbers[at], rows.names[at]));
        }
        BatchColumns& columns = rows.columns;
        columns.rows = static_cast<std::size_t>(n);
        columns.ids = rows.ids.data();
        columns.scores = rows.scores.data();
        columns.labels = walk_.settings.labelled ? rows.labels.data() : nullptr;
        columns.firsts = rows.firsts.data();
        columns.seconds = rows.seconds.data();
        columns.bits = rows.bits.data();
        columns.times = rows.times.data();
        columns.times_real = rows.real.data();
        columns.answers = rows.answers.data();
        columns.groups = rows.groups.data();
    }

    void update_many() {
        Rows rows;
        fill(rows, false);
        if (walk_.settings.keep == Keep::last_n) rows.columns.times = nullptr;
        std::vector<std::uint8_t> counted(rows.columns.rows + 1);
        const Result done =
            call([&] { return memory_->update_many(rows.columns, counted.data()); });
        require(done.refusal == MemoryRefusal::none, "no refusal");
        for (std::size_t i = 0; i < rows.columns.rows; ++i) {
            Time time{};
            if (rows.columns.times) time = rows.columns.time(i);
            const Result one =
                oracle_->update(rows.scores[i], rows.columns.labels && rows.labels[i],
                                rows.columns.amount(i), rows.columns.times ? &time : nullptr);
            require((counted[i] != 0) == one.yes, "whether a row counts");
        }
    }

    void score() {
        const int number = draw(ids);
        const std::string name = name_of(number);
        const double score = a_score();
        const Amount weight = a_weight();
        const Time time = a_time();
        const Time* when = walk_.timed != (draw(200) == 0) ? &time : nullptr;
        const int answer = an_answer();
        const auto group = static_cast<std::uint32_t>(draw(walk_.groups));
        same(call([&] {
                 return memory_->score(id_of(number, name), score, weight, when, answer, group);
             }),
             oracle_->score(key_of_id(number), score, weight, when, answer, group));
    }
    void label() {
        const int number = draw(ids);
        const std::string name = name_of(number);
        const bool label = draw(3) == 0;
        const Amount losses = an_amount();
        const Time as_of = Time::whole(draw(20));
        const Time* when = draw(4) == 0 ? &as_of : nullptr;
        same(call([&] { return memory_->label(id_of(number, name), label, losses, when); }),
             oracle_->label(key_of_id(number), label, losses, when));
    }
    void forget() {
        const int number = draw(ids);
        const std::string name = name_of(number);
        require(call([&] { return memory_->forget(id_of(number, name)); }).yes ==
                    oracle_->forget(key_of_id(number)),
                "forget");
    }
    void advance() {
        const Time time = a_time();
        call([&] { return memory_->advance(time); });
        oracle_->tick(time);
    }
    void score_many();
    void label_many();

    Walk walk_;
    std::mt19937 random_;
    std::string note_;
    std::vector<HeldSamples<Tree>> trees_;
    std::optional<Memory<Tree>> memory_;
    std::optional<MemoryOracle<Tree>> oracle_;
    double clock_ = 0;
};

// A batch that is refused leaves all as it was; another is the same as one by one.
template <class Tree>
void Pair<Tree>::score_many() {
    Rows rows;
    fill(rows, false);
    if (draw(2))  // fewer contradictions
        for (std::size_t i = 0; i < rows.columns.rows; ++i) {
            rows.scores[i] = rows.numbers[i] / 16.0;
            rows.groups[i] = 0;
            rows.firsts[i] = 1;
            rows.bits[i] = 0;
        }
    if (!walk_.timed) rows.columns.times = nullptr;
    if (walk_.settings.keep == Keep::last_n) rows.columns.groups = nullptr;
    std::vector<std::uint8_t> answers(rows.columns.rows + 1), recorded(rows.columns.rows + 1);
    const MemoryColumns before = memory_->columns();
    const Result done =
        call([&] { return memory_->score_many(rows.columns, answers.data(), recorded.data()); });
    MemoryOracle<Tree> tried = *oracle_;
    for (std::size_t i = 0; i < rows.columns.rows; ++i) {
        Time time{};
        if (rows.columns.times) time = rows.columns.time(i);
        const Result one = tried.score(key_of_id(rows.numbers[i]), rows.scores[i],
                                       rows.columns.amount(i), rows.columns.times ? &time : nullptr,
                                       rows.answers[i], rows.columns.groups ? rows.groups[i] : 0);
        if (one.refusal != MemoryRefusal::none) {
            require(done.refusal == one.refusal && done.row == i, "the refusal of a batch");
            require(memory_->columns() == before, "unchanged when refused");
            ++refusals;
            return;
        }
        if (done.refusal != MemoryRefusal::none) continue;
        require(answers[i] == one.answer, "an answer");
        require((recorded[i] != 0) == one.yes, "whether a row is recorded");
    }
    require(done.refusal == MemoryRefusal::none, "no refusal");
    *oracle_ = tried;
}

template <class Tree>
void Pair<Tree>::label_many() {
    Rows rows;
    fill(rows, true);
    if (draw(3)) rows.columns.times = nullptr;
    std::vector<std::uint8_t> scored(rows.columns.rows + 1);
    const Result done = call([&] { return memory_->label_many(rows.columns, scored.data()); });
    require(done.refusal == MemoryRefusal::none, "no refusal");
    for (std::size_t i = 0; i < rows.columns.rows; ++i) {
        Time as_of{};
        if (rows.columns.times) as_of = rows.columns.time(i);
        const Result one =
            oracle_->label(key_of_id(rows.numbers[i]), rows.columns.label(i),
                           rows.columns.amount(i), rows.columns.times ? &as_of : nullptr);
        require((scored[i] != 0) == one.yes, "whether a row has a score");
    }
}

// Every policy with every period and kind of sample, in turn.
template <class Visit>
void each_walk(Visit&& visit) {
    for (int keep = 0; keep < 3; ++keep)
        for (int periods = 0; periods < 16; ++periods)
            for (int kind = 0; kind < 4; ++kind) {
                Walk walk;
                MemorySettings& settings = walk.settings;
                settings.keep = static_cast<Keep>(keep);
                settings.n = 1 + static_cast<std::uint64_t>(periods) % 5;
                settings.period = Time::whole(10);
                settings.labelled = kind != 3;
                walk.unit.automatic = kind != 2;
                settings.costs = kind == 1 ? Costs{2, 5} : Costs{};
                settings.account = settings.costs;
                walk.real_times = kind % 2 == 1;
                if (periods & 1) settings.time_to_live = Time::whole(7);
                if (periods & 2) settings.maturity = kind == 1 ? Time::of(3.5) : Time::whole(3);
                if (periods & 4) settings.correctable = Time::whole(8);
                if (periods & 8) {
                    settings.max_ahead = Time::whole(11);
                    if (periods & 5) settings.horizon = Time::whole(6);
                }
                walk.timed = periods != 9;
                walk.note = "keep " + std::to_string(keep) + " periods " + std::to_string(periods) +
                            " kind " + std::to_string(kind) +
                            (kind == 1 || kind == 2 ? " weights" : "");
                visit(walk);
                if (keep > 0 && periods == 0) {
                    walk.with_ids = false;
                    walk.note += " without ids";
                    visit(walk);
                    if (keep == 2) {
                        walk.settings.max_ahead = Time::whole(8);
                        visit(walk);
                    }
                }
                if (keep != 1 && periods % 3 == 0) {
                    walk.with_ids = true;
                    walk.groups = 4;
                    walk.note += " in groups";
                    visit(walk);
                }
            }
}

template <class Tree>
long walk_with_oracle(int walks, int steps, bool fail, long& failures) {
    long total = 0;
    each_walk([&](Walk walk) {
        if (std::is_same_v<Tree, HullTree>) {
            if (!walk.settings.labelled) return;
            walk.settings.account = {3, 2};
            walk.settings.costs = {};
        }
        for (int seed = 0; seed < walks; ++seed) {
            Pair<Tree> pair(walk, static_cast<unsigned>(seed));
            pair.fail_allocations = fail;
            for (int i = 0; i < steps; ++i) {
                pair.step();
                pair.compare();
                if (i % 16 == 15) pair.restore();
            }
            total += pair.steps;
            failures += pair.failures;
        }
    });
    return total;
}

}  // namespace

TEST_CASE("a memory over a cut tree does what the oracle does") {
    long failures = 0;
    const long steps = walk_with_oracle<CutTree>(effort(1, 8), effort(60, 150), false, failures);
    std::printf("        %ld steps\n", steps);
}

TEST_CASE("a memory over a hull tree does what the oracle does") {
    long failures = 0;
    const long steps = walk_with_oracle<HullTree>(effort(1, 4), effort(60, 120), false, failures);
    std::printf("        %ld steps\n", steps);
}

TEST_CASE("a call that finds no memory changes nothing") {
    long failures = 0;
    long steps = walk_with_oracle<CutTree>(1, effort(25, 60), true, failures);
    steps += walk_with_oracle<HullTree>(1, effort(15, 40), true, failures);
    std::printf("        %ld steps, %ld failed allocations\n", steps, failures);
    CHECK(failures > 1000);
}

TEST_CASE("labels of a large batch are those one by one, wherever memory runs out") {
    constexpr std::size_t rows = 300;
    for (const Keep keep : {Keep::all, Keep::last_n, Keep::last_period}) {
        MemorySettings settings;
        settings.keep = keep;
        settings.n = 200;
        settings.period = Time::whole(250);
        settings.maturity = Time::whole(40);
        std::vector<Id> ids;
        std::vector<double> scores;
        std::vector<std::uint8_t> labels;
        for (std::size_t i = 0; i < rows; ++i) {
            ids.push_back(Id::of(static_cast<std::int64_t>(i * 7 % (rows - 20))));  // some twice
            scores.push_back(static_cast<double>(i * 37 % 101));
            labels.push_back(i % 3 == 0);
        }
        const auto scored = [&](Memory<CutTree>& memory) {
            for (std::size_t i = 0; i < rows - 20; ++i) {
                const Time time = Time::whole(static_cast<std::int64_t>(i));
                memory.score(Id::of(static_cast<std::int64_t>(i)), scores[i], {}, &time, i % 2);
            }
        };
        HeldSamples<CutTree> tree(Unit{}, 4, 4);
        Memory<CutTree> single(tree, settings);
        scored(single);
        for (std::size_t i = 0; i < rows; ++i) single.label(ids[i], labels[i] != 0, {});
        BatchColumns batch;
        batch.rows = rows;
        batch.ids = ids.data();
        batch.labels = labels.data();
        long failures = 0;
        for (long granted = 0; granted < 60; ++granted) {
            HeldSamples<CutTree> other(Unit{}, 4, 4);
            Memory<CutTree> many(other, settings);
            scored(many);
            const MemoryColumns before = many.columns();
            const std::string state = other.state();
            const bool done = succeeds_with(granted, [&] { many.label_many(batch, nullptr); });
            many.check();
            failures += !done;
            CHECK(many.columns() == (done ? single.columns() : before));
            CHECK(other.state() == (done ? tree.state() : state));
        }
        CHECK(failures > 3);
        CHECK(failures < 60);
    }
}
