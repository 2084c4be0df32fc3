// SPDX-License-Identifier: Apache-2.0
//
// Memory for many nodes or rows, in huge pages where it is much and the system has them: a page of
// four kilobytes costs about a microsecond when it is first touched, and one more look-up whenever
// it has not been touched for a while.

#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace limen {

inline constexpr std::size_t huge_page = std::size_t{1} << 21;

struct FreeMemory {
    std::align_val_t alignment;
    void operator()(void* memory) const { ::operator delete(memory, alignment); }
};

template <class T>
using Chunk = std::unique_ptr<T[], FreeMemory>;

// Room for n of T, which hold whatever their constructor leaves in them.
template <class T>
Chunk<T> make_chunk(std::size_t n, bool huge) {
    static_assert(std::is_trivially_destructible_v<T>);
    const std::size_t unit = huge ? huge_page : alignof(T);
    const std::size_t bytes = (n * sizeof(T) + unit - 1) / unit * unit;
    const std::align_val_t alignment{unit};
    void* const memory = ::operator new(bytes, alignment);
#if defined(__linux__)
    if (huge) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    T* const made = static_cast<T*>(memory);
    std::uninitialized_default_construct_n(made, n);
    return {made, FreeMemory{alignment}};
}

// The same for vectors, once they are large.
template <class T>
struct HugePages {
    using value_type = T;

    HugePages() = default;
    template <class Other>
    HugePages(const HugePages<Other>&) {}

    T* allocate(std::size_t n) { return make_chunk<Bytes>(n, is_large(n)).release()->as(); }
    void deallocate(T* memory, std::size_t n) {
        ::operator delete (memory, std::align_val_t{is_large(n) ? huge_page : alignof(T)});
    }
    bool operator==(const HugePages&) const = default;

private:
    // What is not made yet.
    struct alignas(T) Bytes {
        std::byte bytes[sizeof(T)];
        T* as() { return reinterpret_cast<T*>(this); }
    };
    static bool is_large(std::size_t n) { return n * sizeof(T) >= 2 * huge_page; }
};

}  // namespace limen
