// SPDX-License-Identifier: Apache-2.0
//
// Judge: the samples that judge between two rules, for a service and for floors. A ledger has its
// own, which it reports to itself.

#include "bindings/judges.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <new>
#include <optional>
#include <string>

#include "bindings/ids.hpp"
#include "bindings/memories.hpp"

namespace limen::bindings {

namespace {

nb::object from_label(Judge::Label label) {
    if (label == Judge::none) return nb::none();
    return label == Judge::hidden ? nb::object(nb::str("hidden"))
                                  : nb::object(nb::int_(int{label}));
}

Judge::Label to_label_known(nb::handle given) {
    if (given.is_none()) return Judge::none;
    if (given.equal(nb::str("hidden"))) return Judge::hidden;
    return to_label(given.ptr(), 0.5, nothing_changed) ? Judge::one : Judge::zero;
}

// What there is no memory for raises here.
void require_held(const Judge& judge) {
    if (judge.lost()) throw std::bad_alloc();
}

void begin(Judge* self, nb::handle age, nb::handle since) {
    std::optional<Time> period, first;
    set_periods(nb::make_tuple(age), {&period});
    if (!since.is_none()) first = to_moment(since.ptr(), {}, "since").time;
    new (self) Judge(period.value_or(Time{}), first);
}

void score(Judge& judge, nb::handle id, bool now, bool candidate, nb::handle time, double weight,
           const std::string& segment, nb::handle label) {
    const OneId own(id.ptr());
    const Time moment = to_moment(time.ptr(), {}, "time").time;
    const Judge::Label known = to_label_known(label);
    if (!(weight >= 0 && std::isfinite(weight)))
        refuse(PyExc_ValueError, "weight must be a number of at least 0, got " +
                                     shown(nb::float_(weight).ptr()) + "." + nothing_changed);
    judge.score(own, now, candidate, moment, weight, segment, known);
    require_held(judge);
}

bool label(Judge& judge, nb::handle id, nb::handle label) {
    const OneId own(id.ptr());
    const bool corrected = judge.label(own, to_label_known(label));
    require_held(judge);
    return corrected;
}

void forget(Judge& judge, nb::handle id) {
    judge.forget(OneId(id.ptr()));
    require_held(judge);
}

nb::list ids(const Judge& judge) {
    nb::list found;
    judge.each_id([&](const Id& id) { found.append(from_id(id)); });
    return found;
}

}  // namespace

JudgeRows from_rows(const std::vector<Judge::Row>& rows) {
    nb::list found;
    for (const Judge::Row& row : rows) {
        const nb::object weight = is_whole(row.weight)
                                      ? nb::object(nb::int_(static_cast<std::int64_t>(row.weight)))
                                      : nb::object(nb::float_(row.weight));
        found.append(nb::make_tuple(nb::str(row.segment.data(), row.segment.size()), int{row.now},
                                    int{row.candidate}, from_label(row.label), weight, row.many));
    }
    return found;
}

Judge restored_judge(nb::bytes state) {
    auto found = Judge::restored({static_cast<const char*>(state.data()), state.size()});
    if (!found) refuse(PyExc_ValueError, "a judge that no samples could have left");
    return std::move(*found);
}

void bind_judge(nb::module_& module) {
    nb::class_<Judge>(module, "Judge")
        .def("__init__", &begin, nb::arg("age"), nb::arg("since") = nb::none())
        .def("score", &score, nb::arg("id"), nb::arg("now"), nb::arg("candidate"), nb::arg("time"),
             nb::arg("weight") = 1.0, nb::arg("segment") = "", nb::arg("label") = nb::none(),
             nb::lock_self())
        .def("label", &label, nb::arg("id"), nb::arg("label").none(), nb::lock_self())
        .def("forget", &forget, nb::arg("id"), nb::lock_self())
        .def(
            "advance",
            [](Judge& judge, nb::handle time) {
                judge.advance(to_moment(time.ptr(), {}, "time").time);
            },
            nb::arg("time"), nb::lock_self())
        .def(
            "counts", [](const Judge& judge) { return from_rows(judge.counts()); }, nb::lock_self())
        .def("ids", &ids, nb::lock_self())
        .def(
            "__contains__",
            [](const Judge& judge, nb::handle id) { return judge.knows(OneId(id.ptr())); },
            nb::lock_self())
        .def_prop_ro("waiting", &Judge::waiting, nb::lock_self())
        .def_prop_ro("differing", &Judge::differing, nb::lock_self())
        .def_prop_ro("lost", &Judge::lost, nb::lock_self())
        .def(
            "state",
            [](const Judge& judge) {
                const std::string state = judge.state();
                return nb::bytes(state.data(), state.size());
            },
            nb::lock_self())
        .def_static("restored", &restored_judge);
}

}  // namespace limen::bindings
