// SPDX-License-Identifier: Apache-2.0
//
// The samples and memories that are compiled once, in instances.cpp: a file that includes this is
// compiled in a third of the time, and is linked with that file.

#pragma once

#include "memory/memory.hpp"
#include "samples/batch.hpp"
#include "samples/bounded_samples.hpp"
#include "samples/held_samples.hpp"

// `linkage` is `extern` here, and nothing in the one file that compiles them.
#define LIMEN_SAMPLES_OF_ROWS(linkage, Tree, Row)                                         \
    linkage template Refusal HeldSamples<Tree>::add_many(std::vector<Row>&, int);         \
    linkage template Refusal HeldSamples<Tree>::remove_many(std::vector<Row>&, int, bool, \
                                                            double&);                     \
    linkage template Refusal HeldSamples<Tree>::remove_rows(std::vector<Row>&, bool, double&)
#define LIMEN_SAMPLES(linkage, Tree)               \
    linkage template class SampleTree<Tree>;       \
    linkage template class HeldSamples<Tree>;      \
    LIMEN_SAMPLES_OF_ROWS(linkage, Tree, LossRow); \
    LIMEN_SAMPLES_OF_ROWS(linkage, Tree, SignedRow)

namespace limen {

LIMEN_SAMPLES(extern, CutTree);
LIMEN_SAMPLES(extern, HullTree);
extern template class BoundedSamples<RunTree<>>;
extern template class HeldSamples<RunTree<>>;
extern template class Memory<CutTree>;
extern template class Memory<HullTree>;
extern template class Memory<RunTree<>>;

}  // namespace limen
