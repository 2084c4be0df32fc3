// SPDX-License-Identifier: Apache-2.0
//
// Where the nodes of a tree live: in chunks that double from one node to 64, so that small trees
// stay small, and from four megabytes on in huge pages where the system has them: the nodes of one
// path through a large tree lie far apart, and finding their pages would take as long as reading
// them. A node is made and given back in O(1) and keeps its place; giving back never fails, and
// after reserve() making does not either. T has reset().

#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/isa.hpp"

namespace limen {

// A node of a large tree is in no near cache, and all its lines are soon needed: ask for them at
// once instead of one after the other, to read or, with 1, to write them.
template <int to_write = 0, class T>
LIMEN_INLINE void prefetch(const T* node) {
#if defined(__GNUC__) || defined(__clang__)
    const char* line = reinterpret_cast<const char*>(node);
    for (std::size_t i = 0; i < sizeof(T); i += 64) __builtin_prefetch(line + i, to_write);
    asm volatile("" : : "r"(node));  // else GCC takes what does only this to have no effect
#else
    (void)node;
#endif
}

template <class T>
class Pool {
public:
    // Make sure that the next `nodes` calls of make() cannot fail.
    void reserve(std::size_t nodes) {
        if (spare() >= nodes) return;
        const bool large = std::max(made_, nodes) * sizeof(T) >= 2 * huge_page;
        const std::size_t usual = large ? huge_page / sizeof(T) : std::min<std::size_t>(64, made_);
        const std::size_t size = std::max(nodes, usual);
        free_.reserve(made_ + size);  // so that giving back never allocates
        chunks_.reserve(chunks_.size() + 1);
        Chunk<T> chunk = make_chunk<T>(size, large);
        for (; left_ > 0; --left_) free_.push_back(next_++);
        next_ = chunk.get();
        left_ = size;
        made_ += size;
        chunks_.push_back(std::move(chunk));
    }
    T* make() {
        reserve(1);
        T* made;
        if (free_.empty()) {  // what was given back is warm; what was never used may never be
            made = next_++;
            --left_;
        } else {
            made = free_.back();
            free_.pop_back();
        }
        made->reset();
        return made;
    }
    void give_back(T* node) { free_.push_back(node); }
    std::size_t in_use() const { return made_ - left_ - free_.size(); }
    void clear() {
        chunks_.clear();
        free_.clear();
        left_ = made_ = 0;
    }
    // How many nodes can be made without memory from elsewhere.
    std::size_t spare() const { return left_ + free_.size(); }
    std::size_t memory() const { return made_ * sizeof(T) + free_.capacity() * sizeof(T*); }
    void swap(Pool& other) noexcept {
        std::swap(chunks_, other.chunks_);
        std::swap(free_, other.free_);
        std::swap(next_, other.next_);
        std::swap(left_, other.left_);
        std::swap(made_, other.made_);
    }

private:
    std::vector<Chunk<T>> chunks_;
    std::vector<T*> free_;
    T* next_ = nullptr;
    std::size_t left_ = 0, made_ = 0;
};

}  // namespace limen
