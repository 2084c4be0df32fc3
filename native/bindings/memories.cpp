// SPDX-License-Identifier: Apache-2.0
//
// Memories over models: how they begin, what goes into them, and why they refuse it.

#include "bindings/memories.hpp"

#include <cmath>
#include <random>
#include <type_traits>

namespace limen::bindings {

namespace {

template <class T>
ModelParts parts_in(T& model, bool labelled, Costs costs) {
    ModelParts parts;
    if constexpr (std::is_same_v<decltype(model.held), OnlineCut>)
        parts.cut = &model.held;
    else if constexpr (std::is_same_v<decltype(model.held), OnlineHull>)
        parts.hull = &model.held;
    else
        parts.bounded = &model.held;
    parts.ownership = &model;
    parts.unit = model.held.unit();
    parts.scale = model.scale;
    parts.labelled = labelled;
    parts.costs = costs;
    return parts;
}

// For one more value, without moving all of them each time.
template <class T>
void make_room(std::vector<T>& values) {
    if (values.size() == values.capacity()) values.reserve(2 * values.size() + 1);
}

// Chosen at random in each process, so that nobody can choose ids that all share one place.
std::uint64_t hash_key() {
    static const std::uint64_t key = [] {
        std::random_device random;
        return std::uint64_t{random()} << 32 | random();
    }();
    return key;
}

}  // namespace

ModelParts parts_of(nb::handle model) {
    const auto labelled = [](auto& held) {
        return parts_in(held, true, {held.costs.false_positive, held.costs.false_negative});
    };
    if (nb::isinstance<Threshold>(model)) return labelled(instance<Threshold>(model.ptr()));
    if (nb::isinstance<Calibrator>(model)) return labelled(instance<Calibrator>(model.ptr()));
    if (nb::isinstance<AnyCut>(model)) return parts_in(instance<AnyCut>(model.ptr()), false, {});
    if (nb::isinstance<BoundedThreshold>(model))
        return labelled(instance<BoundedThreshold>(model.ptr()));
    if (nb::isinstance<BoundedCut>(model))
        return parts_in(instance<BoundedCut>(model.ptr()), false, {});
    if (nb::isinstance<BoundedCalibrator>(model))
        refuse(
            PyExc_TypeError,
            "a calibrator with a capacity cannot be in a window or a ledger: it has no costs, by "
            "which it could forget. Give an OnlineThreshold(capacity=...) for each pair of "
            "costs, or an OnlineCalibrator without a capacity.");
    refuse(PyExc_TypeError,
           "model must be an OnlineThreshold, an OnlineCut or an OnlineCalibrator; got " +
               shown(model.ptr()) + ".");
}

// ---- keepers ----

MemoryHandle::MemoryHandle(const ModelParts& model, const MemorySettings& settings,
                           std::optional<bool> dated)
    : model_(model), settings_(settings), account_(model.scale), dated_(dated) {
    settings_.labelled = model.labelled;
    settings_.costs = settings_.account = model.costs;
    one_refusal =
        measure_amount(std::int64_t{1}, model.unit, 1, settings.keep, one.first, one.bits);
    make();
}

MemoryHandle::~MemoryHandle() {
    if (!claimed_) return;
    ObjectLock::Guard guard(lock());
    model_.ownership->owner = nullptr;
    for (const ModelParts& other : others_) other.ownership->owner = nullptr;
}

void MemoryHandle::make() {
    const MemoryOptions options{.key = hash_key()};
    if (model_.cut)
        cut_ = std::make_unique<Memory<CutTree>>(*model_.cut, settings_, options);
    else if (model_.hull)
        hull_ = std::make_unique<Memory<HullTree>>(*model_.hull, settings_, options);
    else
        bounded_ = std::make_unique<Memory<RunTree<>>>(*model_.bounded, settings_, options);
}

void MemoryHandle::claim(const char* owner) {
    std::size_t held = 0;
    const char* other = nullptr;
    {
        ObjectLock::Guard guard(lock());
        other = model_.ownership->owner;
        held = samples();
        if (!other && held == 0) {
            model_.ownership->owner = owner;
            claimed_ = true;
            return;
        }
    }
    if (other)
        refuse(PyExc_ValueError,
               std::string("model belongs to a ") + other + " already. Give one of its own.");
    refuse(PyExc_ValueError,
           "model holds " + std::string(nb::str(nb::str("{:,}").attr("format")(held)).c_str()) +
               " samples already, and nobody knows when they came. Give an empty one, and add them "
               "through update_many().");
}

void MemoryHandle::begin_groups(nb::object model) { members_.push_back(std::move(model)); }

std::uint32_t MemoryHandle::add_group(nb::object model, std::uint32_t inside, const char* owner) {
    const ModelParts parts = parts_of(model);
    const std::optional<std::uint32_t> number = take_group(parts, inside, owner, std::move(model));
    if (!number)
        refuse(PyExc_RuntimeError,
               "the model of a group must be like that of all samples, and new.");
    return *number;
}

// None where the model is not like ours, holds samples, or is in use.
std::optional<std::uint32_t> MemoryHandle::take_group(const ModelParts& parts, std::uint32_t inside,
                                                      const char* owner, nb::object model) {
    ObjectLock::Guard guard(lock());
    Ownership& ownership = *parts.ownership;
    if (!parts.cut != !model_.cut || !parts.hull != !model_.hull || inside >= groups())
        return std::nullopt;
    make_room(others_);
    make_room(members_);
    with([](auto& memory) { memory.reserve_group(); });
    ObjectLock* const before = ownership.lock;
    if (!ObjectLock::share(ownership.lock, *lock().load())) return std::nullopt;
    if (ownership.owner || parts.with([](const auto& held) { return held.samples(); }) > 0) {
        ownership.lock = before;
        return std::nullopt;
    }
    const std::uint32_t number = cut_    ? cut_->add_group(*parts.cut, inside)
                                 : hull_ ? hull_->add_group(*parts.hull, inside)
                                         : bounded_->add_group(*parts.bounded, inside);
    others_.push_back(parts);
    ownership.owner = owner;
    ownership.group = number;
    ownership.lock_owner = members_[0];
    members_.push_back(std::move(model));
    return number;
}

void MemoryHandle::adopt(const MemorySettings& settings, const LossScale& account,
                         std::optional<bool> dated) {
    const MemorySettings before = settings_;
    settings_ = settings;
    try {
        make();
    } catch (...) {
        settings_ = before;
        throw;
    }
    account_ = account;
    dated_ = dated;
}

// ---- what others read during long work ----

std::uint32_t MemoryHandle::publish(std::size_t steps) noexcept {
    const auto published = groups() <= steps / 8 ? static_cast<std::uint32_t>(groups()) : 1;
    with([&](const auto& memory) {
        before_ = MemoryBefore(memory, times);
        for (std::uint32_t of = 0; of < published; ++of) {
            PublishedAnswers& before = model(of).ownership->before;
            model(of).with([&](const auto& held) { before.publish(held, steps); });
            before.set_fading(memory.scale(of), memory.base(of));
        }
    });
    at_work_.store(true, std::memory_order_relaxed);
    return published;
}

void MemoryHandle::end(std::uint32_t published) noexcept {
    at_work_.store(false, std::memory_order_relaxed);
    for (std::uint32_t of = 0; of < published; ++of) model(of).ownership->before.end();
}

void MemoryHandle::tidy(std::uint32_t published) noexcept {
    for (std::uint32_t of = 0; of < published; ++of) model(of).ownership->before.tidy();
}

Denial MemoryHandle::denial(MemoryRefusal refusal, double size) const {
    const auto found = [&](const auto& held) {
        Denial denial;
        denial.refusal =
            refusal == MemoryRefusal::too_many ? Refusal::too_many : Refusal::too_large;
        denial.bits = held.bits();
        denial.size =
            static_cast<double>(held.total()) * unit_size(held.unit(), held.bits()) + size;
        return denial;
    };
    return model_.with(found);
}

// ---- numbers in ----

namespace {

[[noreturn]] void refuse_amount(const MemoryHandle& keeper, Refusal refusal, const char* name,
                                double value, double size, const char* outcome) {
    if (refusal == Refusal::lost) refuse_lost(keeper.unit(), name, value, outcome);
    Denial denial;
    denial.refusal = refusal;
    denial.size = size;
    refuse(denial, keeper.unit(), outcome);
}

Refusal measure_number(const MemoryHandle& keeper, const Number& number, std::int64_t cost,
                       std::int64_t& word, std::uint8_t& bits) {
    const Keep keep = keeper.settings().keep;
    return number.whole ? measure_amount(number.integer, keeper.unit(), cost, keep, word, bits)
                        : measure_amount(number.real, keeper.unit(), cost, keep, word, bits);
}

}  // namespace

Amount any_to_weight(const MemoryHandle& keeper, PyObject* given, std::int64_t cost,
                     const char* outcome, double& size) {
    if (!given) refuse_amount(keeper, keeper.one_refusal, "weight", 1, size, outcome);
    const Number weight = to_number(given, "weight");
    if (!(weight.real >= 0) || std::isinf(weight.real))
        refuse_number("weight", shown(given), wanted_weight, outcome);
    size *= weight.real;
    Amount amount;
    const Refusal refusal = measure_number(keeper, weight, cost, amount.first, amount.bits);
    if (refusal != Refusal::none)
        refuse_amount(keeper, refusal, "weight", weight.real, size, outcome);
    return amount;
}

Amount to_losses(const MemoryHandle& keeper, PyObject* below, PyObject* above, const char* outcome,
                 double& size) {
    const char* const names[2] = {"below", "above"};
    PyObject* const given[2] = {below, above};
    std::int64_t words[2];
    std::uint8_t bits[2] = {0, 0};
    Number numbers[2];
    for (int i = 0; i < 2; ++i) numbers[i] = to_number(given[i], names[i]);
    size = std::fabs(numbers[0].real) + std::fabs(numbers[1].real);
    for (int i = 0; i < 2; ++i) {
        if (!std::isfinite(numbers[i].real))
            refuse_number(names[i], shown(given[i]), wanted_loss, outcome);
        const Refusal refusal = measure_number(keeper, numbers[i], 1, words[i], bits[i]);
        if (refusal != Refusal::none)
            refuse_amount(keeper, refusal, names[i], numbers[i].real, size, outcome);
    }
    Amount amount;
    if (!align(words[0], bits[0], words[1], bits[1], amount))
        refuse_amount(keeper, Refusal::too_large, "", 0, size, outcome);
    return amount;
}

nb::object from_amount(const MemoryHandle& keeper, const Amount& amount) {
    if (amount.bits == Amount::real) return nb::float_(std::bit_cast<double>(amount.first));
    const LossScale scale{keeper.unit().automatic ? 1 : keeper.unit().numerator,
                          keeper.unit().automatic ? 1 : keeper.unit().denominator};
    const double nearest = scale(amount.first, amount.bits);
    if (amount.bits == 0 && keeper.unit().automatic) return nb::int_(amount.first);
    if (is_whole(nearest)) return nb::int_(static_cast<std::int64_t>(nearest));
    return nb::float_(nearest);
}

namespace {

[[noreturn]] void refuse_far(const MemoryHandle& keeper, PyObject* time) {
    const MemorySettings& settings = keeper.settings();
    if (!time)
        refuse(
            PyExc_ValueError,
            std::string("there is no step after the newest. Give scores a time that is nearer to "
                        "zero, and start with an empty ledger.") +
                nothing_changed);
    const bool dated = keeper.must_be_dated().value_or(false);
    // The shortest is the first that cannot be represented.
    Time shortest = settings.period;
    bool known = settings.keep == Keep::last_period || settings.keep == Keep::fading;
    for (const auto& period :
         {settings.time_to_live, settings.maturity, settings.correctable, settings.horizon})
        if (settings.keep != Keep::fading && period && (!known || *period < shortest)) {
            shortest = *period;
            known = true;
        }
    const std::string length = dated ? shown(nb::module_::import_("datetime")
                                                 .attr("timedelta")(0, 0, nb::int_(shortest.bits))
                                                 .ptr())
                                     : shown(from_time(shortest, Calendar::numbers).ptr());
    if (settings.keep == Keep::fading)
        refuse(PyExc_ValueError, "time is " + shown(time) + ", too many times half_life=" + length +
                                     " after the first. Give times that are nearer, or a longer "
                                     "half-life." +
                                     nothing_changed);
    refuse(PyExc_ValueError,
           "time is " + shown(time) + ", from where no period of " + length +
               " can be represented. Give times that are nearer to zero, or a longer "
               "period." +
               nothing_changed);
}

[[noreturn]] void refuse_other_score(const MemoryHandle& keeper, const Result& done,
                                     const Request& asked) {
    if (done.group != asked.number)
        refuse(PyExc_ValueError, "id " + shown(asked.id) + " belongs to another group already" +
                                     (asked.group ? ", got " + shown(asked.group) : std::string()) +
                                     ". Forget it first, or use another id." + nothing_changed);
    const Direction direction = keeper.direction();
    refuse(PyExc_ValueError, "id " + shown(asked.id) + " has score " +
                                 shown(direction.turn(done.score)) + " and weight " +
                                 shown(from_amount(keeper, done.amount).ptr()) + " already, got " +
                                 shown(direction.turn(asked.score)) + " and " +
                                 shown(from_amount(keeper, asked.amount).ptr()) +
                                 ". Forget it first, or use another id." + nothing_changed);
}

}  // namespace

std::unique_ptr<Obstacle> obstacle_of(const Window& window, const Moment* moment,
                                      const Result& done, const Request& asked) {
    const MemoryHandle& keeper = *window.keeper;
    const bool other = moment && !keeper.comparable(*moment, asked.calendar);
    return std::make_unique<Obstacle>(
        Obstacle{window.adopted, other, done, keeper.denial(done.refusal, asked.size)});
}

void refuse(const MemoryHandle& keeper, const Obstacle& obstacle, const Request& asked) {
    if (obstacle.adopted) refuse_owned("window", "Ledger", nothing_added);
    if (obstacle.other_calendar && !asked.time)  // of all that another object knows
        refuse(PyExc_TypeError,
               std::string("cannot merge: times are of another kind there. All must be numbers, or "
                           "all datetimes, and these all with a time zone or all without.") +
                   nothing_changed);
    if (obstacle.other_calendar)
        refuse(PyExc_TypeError,
               (asked.calendar == &MemoryHandle::times ? "time is " : "as_of is ") +
                   shown(asked.time) +
                   ", but earlier ones are of another kind. Give all times as numbers or all as "
                   "datetimes, and these all with a time zone or all without." +
                   nothing_changed);
    const Result& done = obstacle.done;
    switch (done.refusal) {
        case MemoryRefusal::far_time:
            refuse_far(keeper, asked.time);
        case MemoryRefusal::other_score:
            refuse_other_score(keeper, done, asked);
        case MemoryRefusal::no_time:
            refuse(PyExc_ValueError, std::string("time is missing: earlier scores have one, or "
                                                 "periods are timedeltas.") +
                                         nothing_changed);
        case MemoryRefusal::some_time:
            refuse(PyExc_ValueError,
                   "time is " + shown(asked.time) +
                       ", but earlier scores have none and count as one step each. Give all of "
                       "them a time, or none." +
                       nothing_changed);
        case MemoryRefusal::not_alike:
            refuse(PyExc_ValueError,
                   std::string("cannot merge: the settings differ.") + nothing_changed);
        case MemoryRefusal::same_id:
            refuse(PyExc_ValueError, "cannot merge: both know the id " +
                                         (asked.id ? shown(asked.id) : std::string()) +
                                         ", and its sample would count twice." + nothing_changed);
        case MemoryRefusal::other_as_of:
            refuse(PyExc_TypeError,
                   std::string("cannot merge: as_of is of another kind there. All must be numbers, "
                               "or all datetimes, and these all with a time zone or all without.") +
                       nothing_changed);
        case MemoryRefusal::not_merged:
            refuse(PyExc_ValueError, std::string("cannot merge: without times it is unknown which "
                                                 "samples came before which.") +
                                         nothing_changed);
        default:
            refuse(obstacle.denial, keeper.unit(), asked.outcome);
    }
}

double to_score(PyObject* given, const char* outcome) {
    const double score = to_double(given, "score");
    if (score != score) refuse_nan(outcome);
    return score + 0.0;
}

nb::object newest_of(Window& window) {
    MemoryHandle& keeper = keeper_of(window);
    std::optional<Time> newest;
    Calendar calendar;
    if (const MemoryBefore* before = keeper.before()) {
        newest = before->newest();
        calendar = before->calendar;
    } else {
        ObjectLock::Guard guard(keeper.lock());
        newest = keeper.with([](const auto& memory) { return memory.newest(); });
        calendar = keeper.times;
    }
    if (!newest) return nb::none();
    return from_time(*newest, calendar == Calendar::unknown ? Calendar::numbers : calendar);
}

std::optional<bool> set_periods(nb::tuple given, std::initializer_list<std::optional<Time>*> to) {
    std::optional<bool> dated;
    std::size_t i = 0;
    for (std::optional<Time>* period : to) {
        const nb::object length = given[i++];
        if (length.is_none()) continue;
        *period = to_period(length.ptr());
        dated = is_timedelta(length.ptr());
    }
    return dated;
}

int visit_references(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(self)));
    if (!nb::inst_ready(self)) return 0;
    const Window& window = *nb::inst_ptr<Window>(self);
    Py_VISIT(window.model.ptr());
    Py_VISIT(window.given.ptr());
    return 0;
}

}  // namespace limen::bindings
