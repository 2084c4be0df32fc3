// SPDX-License-Identifier: Apache-2.0
//
// Compiles what instances.hpp promises. One file: together they take half of what they take apart.

#include "instances.hpp"

namespace limen {

LIMEN_SAMPLES(, CutTree);
LIMEN_SAMPLES(, HullTree);
template class BoundedSamples<RunTree<>>;
template class HeldSamples<RunTree<>>;
template class Memory<CutTree>;
template class Memory<HullTree>;
template class Memory<RunTree<>>;

}  // namespace limen
