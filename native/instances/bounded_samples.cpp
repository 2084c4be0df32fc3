// SPDX-License-Identifier: Apache-2.0

#include "../instances.hpp"

namespace limen {

template class BoundedSamples<RunTree<>>;
template class HeldSamples<RunTree<>>;

}  // namespace limen
