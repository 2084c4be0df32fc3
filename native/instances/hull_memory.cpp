// SPDX-License-Identifier: Apache-2.0

#include "../instances.hpp"

namespace limen {

template class Memory<HullTree>;

}  // namespace limen
