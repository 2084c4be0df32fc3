// SPDX-License-Identifier: Apache-2.0
//
// Ids of Python as bytes, which are compared without running anything of Python, and back.

#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memory/terms.hpp"

namespace limen::bindings {

namespace nb = nanobind;

// The kinds of ids, as they are stored. A whole number of 64 bits is Id::number_kind.
enum IdKind : std::uint8_t {
    text_id = 1,   // UTF-8
    bytes_id = 2,  // as they are
    uuid_id = 3,   // 16 bytes
    large_id = 4,  // a whole number beyond 64 bits, little-endian, the fewest bytes
    tuple_id = 5,  // as docs/format.md writes a sequence of these
};

// One id; it refers to the object it was read from, or to its own bytes.
class OneId {
public:
    explicit OneId(PyObject* object);
    OneId(const OneId&) = delete;
    OneId& operator=(const OneId&) = delete;

    operator const Id&() const { return id_; }

private:
    Id id_;
    std::string own_;
};

// A list of ids, or an array of whole numbers. The bytes are copied: a list may change while the
// interpreter is released.
class IdColumn {
public:
    explicit IdColumn(nb::handle values);

    const Id* data() const { return ids_.data(); }
    std::size_t size() const { return ids_.size(); }

private:
    std::vector<Id> ids_;
    std::string bytes_;
};

// What an id was made of. Raises ValueError where no object was.
nb::object from_id(const Id& id);

}  // namespace limen::bindings
