// SPDX-License-Identifier: Apache-2.0
//
// Memory that runs out on demand: what must hold when an allocation fails is tested by letting
// each one fail in turn.
//
//     for (long granted = 0; !limen::testing::succeeds_with(granted, [&] { tree.add(held); });
//          ++granted)
//         tree.check();
//
// Replaces operator new of the whole program, so one file of it may include this.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace limen::testing {

inline long allocations_left = -1;  // below 0: as many as the system gives

// Runs the body with so many allocations and no more; false when that was not enough.
template <class Body>
bool succeeds_with(long allocations, Body&& body) {
    allocations_left = allocations;
    try {
        body();
    } catch (const std::bad_alloc&) {
        allocations_left = -1;
        return false;
    } catch (...) {
        allocations_left = -1;
        throw;
    }
    allocations_left = -1;
    return true;
}

inline void* allocate(std::size_t size, std::size_t alignment) {
    if (allocations_left == 0) throw std::bad_alloc();
    if (allocations_left > 0) --allocations_left;
    const std::size_t whole = (size + alignment - 1) / alignment * alignment;
    if (void* made = std::aligned_alloc(alignment, whole ? whole : alignment)) return made;
    throw std::bad_alloc();
}

}  // namespace limen::testing

void* operator new(std::size_t size) {
    return limen::testing::allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return limen::testing::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
void operator delete(void* made, std::align_val_t) noexcept { std::free(made); }
void operator delete(void* made, std::size_t, std::align_val_t) noexcept { std::free(made); }
