// SPDX-License-Identifier: Apache-2.0
//
// Arrays in and out. They arrive contiguous and of a known type: limen.columns sees to that.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "samples/batch.hpp"

namespace limen::bindings {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using NewArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// Several of them, for the stub.
template <class... T>
using Columns = nb::typed<nb::tuple, NewArray<T>...>;

template <class T>
NewArray<T> new_array(std::size_t n) {
    T* values = new T[n ? n : 1];
    nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return NewArray<T>(values, {n}, owner);
}

template <class T>
NewArray<T> array_of(std::vector<T>&& values) {
    values.reserve(1);  // an array has an address, also an empty one
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return NewArray<T>(kept->data(), {kept->size()}, owner);
}

// A column, and the Python array that keeps it alive.
struct OwnedColumn {
    Array<std::int64_t> whole;
    Array<double> real;
    Column column;

    OwnedColumn(nb::handle array, const char* name) : column{name} {
        if (array.is_none()) return;
        if (nb::try_cast(array, whole, false)) {
            column.whole = whole.data();
        } else {
            real = nb::cast<Array<double>>(array, false);
            column.real = real.data();
        }
    }
};

}  // namespace limen::bindings
