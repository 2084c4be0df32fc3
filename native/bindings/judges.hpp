// SPDX-License-Identifier: Apache-2.0
//
// What a Judge has counted, as Python sees it.

#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/numbers.hpp"
#include "memory/judge.hpp"

namespace limen::bindings {

// Segment, the answers of both rules, label (None without one, "hidden"), weight, how many.
using JudgeRow = nb::typed<nb::tuple, nb::str, int, int, nb::any, nb::any, int>;
using JudgeRows = nb::typed<nb::list, JudgeRow>;
JudgeRows from_rows(const std::vector<Judge::Row>& rows);

Judge restored_judge(nb::bytes state);

}  // namespace limen::bindings
