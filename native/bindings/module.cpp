// SPDX-License-Identifier: Apache-2.0
//
// limen._core. Only the files here know both languages: Python objects in, whole units and answers
// out.

#include <nanobind/nanobind.h>

#include "bindings/numbers.hpp"
#include "bindings/object_lock.hpp"
#include "bindings/times.hpp"
#include "core/isa.hpp"
#include "core/units.hpp"

namespace limen::bindings {

// Each in the file of its name.
void bind_thresholds(nb::module_& module);
void bind_calibrator(nb::module_& module);
void bind_columns(nb::module_& module);
void bind_judge(nb::module_& module);
void bind_memories(nb::module_& module);
void bind_recommended(nb::module_& module);
void bind_stream_rows(nb::module_& module);
void bind_text_rows(nb::module_& module);

}  // namespace limen::bindings

NB_MODULE(_core, module) {
    using namespace limen::bindings;
    // Python ends with objects alive that a daemon thread or a cache holds: to users no leak.
    nb::set_leak_warnings(false);
    module.doc() = "The native core of limen. Private: use the names in limen itself.";
    module.attr("isa") = limen::isa_name(limen::active_isa());  // what it throws: ImportError
    module.attr("finest_bits") = limen::finest_bits;
    module.attr("most_units") = limen::most_units;
    find_number_types();
    find_time_types();
    make_forks_wait();
    bind_thresholds(module);
    bind_calibrator(module);
    bind_columns(module);
    bind_judge(module);
    bind_memories(module);
    bind_recommended(module);
    bind_stream_rows(module);
    bind_text_rows(module);
}
