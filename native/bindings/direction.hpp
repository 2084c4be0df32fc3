// SPDX-License-Identifier: Apache-2.0
//
// Which scores mean positive. The core knows one direction, in which higher ones do: where lower
// ones do, a score is negated on its way in, and a threshold on its way out.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bindings/arrays.hpp"
#include "core/isa.hpp"

namespace limen::bindings {

class Direction {
public:
    Direction() = default;
    // As the settings of a model have it.
    explicit Direction(nb::dict given)
        : lower_(given.contains("direction") && nb::str("<=").equal(given["direction"])) {}

    bool lower_is_positive() const { return lower_; }

    // A score on its way in, or a threshold on its way out. 0 stays 0, and nan stays nan.
    LIMEN_INLINE double turn(double number) const { return lower_ ? 0.0 - number : number; }

private:
    bool lower_ = false;
};

// Scores on their way in: those given, or a negated copy.
class TurnedScores {
public:
    TurnedScores(const Array<double>& given, Direction direction)
        : scores_(given.data()), size_(given.shape(0)) {
        if (!direction.lower_is_positive()) return;
        nb::gil_scoped_release released;
        negated_.resize(size_);
        std::transform(scores_, scores_ + size_, negated_.begin(),
                       [=](double score) { return direction.turn(score); });
        scores_ = negated_.data();
    }
    TurnedScores(const TurnedScores&) = delete;
    TurnedScores& operator=(const TurnedScores&) = delete;

    const double* data() const { return scores_; }
    std::size_t size() const { return size_; }

private:
    const double* scores_;
    std::size_t size_;
    std::vector<double> negated_;
};

}  // namespace limen::bindings
