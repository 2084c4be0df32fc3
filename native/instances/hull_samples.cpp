// SPDX-License-Identifier: Apache-2.0

#include "../instances.hpp"

namespace limen {

LIMEN_SAMPLES(, HullTree);

}  // namespace limen
