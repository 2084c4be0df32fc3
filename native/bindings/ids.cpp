// SPDX-License-Identifier: Apache-2.0
//
// Ids of Python as bytes, and back.

#include "bindings/ids.hpp"

#include <cstring>

#include "bindings/arrays.hpp"
#include "bindings/refusals.hpp"

namespace limen::bindings {

namespace {

constexpr int deepest = 8;  // tuples in tuples

PyObject* type_of(const char* module, const char* name) {
    return nb::object(nb::module_::import_(module).attr(name)).release().ptr();
}

bool is_instance(PyObject* object, PyObject* type) {
    const int found = PyObject_IsInstance(object, type);
    if (found < 0) throw nb::python_error();
    return found == 1;
}

void put(std::string& bytes, std::uint64_t word) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
}

std::uint64_t word_at(const char* bytes) {
    std::uint64_t word = 0;
    for (int i = 8; i-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes[i]);
    return word;
}

nb::object steal(PyObject* object) {
    if (!object) throw nb::python_error();
    return nb::steal(object);
}

// The bytes of a UUID, most significant first.
void put_uuid(PyObject* uuid, std::string& bytes) {
    const nb::object number = nb::getattr(uuid, "int");
    const nb::object shifted = number >> nb::int_(64);
    for (PyObject* half : {shifted.ptr(), number.ptr()}) {
        const unsigned long long word = PyLong_AsUnsignedLongLongMask(half);
        if (word == ~0ULL && PyErr_Occurred()) throw nb::python_error();
        for (int i = 8; i-- > 0;) bytes.push_back(static_cast<char>(word >> (8 * i) & 255));
    }
}

void put_large(PyObject* number, std::string& bytes) {
    const nb::handle value(number);
    const auto bits = nb::cast<std::size_t>(value.attr("bit_length")());
    const nb::bytes all(value.attr("to_bytes")(bits / 8 + 1, "little", nb::arg("signed") = true));
    bytes.append(all.c_str(), all.size());
}

constexpr std::ptrdiff_t alone = -1;  // the place of an id that is in no list

[[noreturn]] void refuse_id(PyObject* object, std::ptrdiff_t place) {
    refuse(PyExc_TypeError,
           (place == alone ? "id" : "ids[" + std::to_string(place) + "]") + " is " + shown(object) +
               ". An id is a str, an int, bytes, a uuid.UUID or a tuple of these." +
               nothing_changed);
}

// The kind of an id. `number` is set where that is 0; else `bytes` and `size` are where its bytes
// are: in the object, or at the end of `own`.
struct Read {
    std::uint8_t kind = Id::number_kind;
    std::int64_t number = 0;
    const char* bytes = nullptr;  // null: those that were added to `own`
    std::size_t size = 0;
};

Read read_id(PyObject* object, std::string& own, std::ptrdiff_t place, int deep);

Read read_text(PyObject* object, std::string& own) {
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(object, &size))
        return {text_id, 0, bytes, static_cast<std::size_t>(size)};
    PyErr_Clear();  // a lone surrogate
    const nb::object encoded = steal(PyUnicode_AsEncodedString(object, "utf-8", "surrogatepass"));
    const nb::bytes bytes(encoded);
    own.append(bytes.c_str(), bytes.size());
    return {text_id};
}

Read read_number(PyObject* object, std::string& own) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return {Id::number_kind, number};
    put_large(object, own);
    return {large_id};
}

Read read_tuple(PyObject* object, std::string& own, std::ptrdiff_t place, int deep) {
    if (deep == deepest) refuse_id(object, place);
    const Py_ssize_t count = PyTuple_Size(object);
    put(own, static_cast<std::uint64_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
        const std::size_t begin = own.size();
        const Read item = read_id(PyTuple_GetItem(object, i), own, place, deep + 1);
        constexpr char tags[] = {'i', 's', 'b', 'U', 'I', '('};
        std::string head(1, tags[item.kind]);
        const std::size_t size = item.bytes ? item.size : own.size() - begin;
        if (item.kind == Id::number_kind)
            put(head, static_cast<std::uint64_t>(item.number));
        else if (item.kind != uuid_id && item.kind != tuple_id)
            put(head, size);
        own.insert(begin, head);
        if (item.bytes) own.append(item.bytes, item.size);
    }
    return {tuple_id};
}

Read read_id(PyObject* object, std::string& own, std::ptrdiff_t place, int deep) {
    if (PyUnicode_Check(object)) return read_text(object, own);
    if (PyLong_Check(object)) return read_number(object, own);
    if (PyBytes_Check(object)) {
        char* bytes = nullptr;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(object, &bytes, &size) < 0) throw nb::python_error();
        return {bytes_id, 0, bytes, static_cast<std::size_t>(size)};
    }
    if (PyTuple_Check(object)) return read_tuple(object, own, place, deep);
    static PyObject* const uuid = type_of("uuid", "UUID");
    static PyObject* const integer = type_of("numpy", "integer");
    if (is_instance(object, uuid)) {
        put_uuid(object, own);
        return {uuid_id};
    }
    if (is_instance(object, integer)) return read_number(steal(PyNumber_Index(object)).ptr(), own);
    refuse_id(object, place);
}

// The value that `bytes` holds up to `end`, as docs/format.md writes it; `bytes` is moved behind.
nb::object read_value(const char*& bytes, const char* end, int deep);

[[noreturn]] void refuse_bytes() { refuse(PyExc_ValueError, "an id that no object has"); }

const char* take(const char*& bytes, const char* end, std::uint64_t size) {
    if (size > static_cast<std::uint64_t>(end - bytes)) refuse_bytes();
    const char* begin = bytes;
    bytes += size;
    return begin;
}

nb::object read_sequence(const char*& bytes, const char* end, int deep) {
    const std::uint64_t count = word_at(take(bytes, end, 8));
    if (deep == deepest || count > static_cast<std::uint64_t>(end - bytes)) refuse_bytes();
    nb::list items;
    for (std::uint64_t i = 0; i < count; ++i) items.append(read_value(bytes, end, deep + 1));
    return nb::tuple(items);
}

nb::object value_of(std::uint8_t kind, const char* bytes, std::size_t size) {
    const auto length = static_cast<Py_ssize_t>(size);
    switch (kind) {
        case text_id:
            return steal(PyUnicode_DecodeUTF8(bytes, length, "surrogatepass"));
        case bytes_id:
            return nb::bytes(bytes, size);
        case uuid_id:
            if (size != 16) refuse_bytes();
            return nb::module_::import_("uuid").attr("UUID")(nb::arg("bytes") =
                                                                 nb::bytes(bytes, size));
        case large_id:
            return nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type))
                .attr("from_bytes")(nb::bytes(bytes, size), "little", nb::arg("signed") = true);
        default:
            break;
    }
    refuse_bytes();
}

nb::object read_value(const char*& bytes, const char* end, int deep) {
    const char tag = *take(bytes, end, 1);
    if (tag == '(') return read_sequence(bytes, end, deep);
    if (tag == 'i') return nb::int_(static_cast<std::int64_t>(word_at(take(bytes, end, 8))));
    const std::uint8_t kind = tag == 's'   ? text_id
                              : tag == 'b' ? bytes_id
                              : tag == 'U' ? uuid_id
                              : tag == 'I' ? large_id
                                           : tuple_id;
    const std::uint64_t size = kind == uuid_id ? 16 : word_at(take(bytes, end, 8));
    return value_of(kind, take(bytes, end, size), size);
}

}  // namespace

OneId::OneId(PyObject* object) {
    const Read read = read_id(object, own_, alone, 0);
    id_ = {read.kind, read.number, read.bytes, static_cast<std::uint32_t>(read.size)};
    if (read.kind != Id::number_kind && !read.bytes)
        id_ = Id::of(read.kind, own_.data(), own_.size());
}

IdColumn::IdColumn(nb::handle values) {
    Array<std::int64_t> numbers;
    if (nb::try_cast(values, numbers, false)) {
        ids_.reserve(numbers.shape(0));
        for (std::size_t i = 0; i < numbers.shape(0); ++i)
            ids_.push_back(Id::of(numbers.data()[i]));
        return;
    }
    const nb::list list(values);
    ids_.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t begin = bytes_.size();
        const nb::object item = list[i];
        const Read read = read_id(item.ptr(), bytes_, static_cast<std::ptrdiff_t>(i), 0);
        if (read.bytes) bytes_.append(read.bytes, read.size);
        ids_.push_back(
            {read.kind, read.number, nullptr, static_cast<std::uint32_t>(bytes_.size() - begin)});
    }
    const char* at = bytes_.data();
    for (Id& id : ids_) {
        id.bytes = at;
        at += id.size;
    }
}

nb::object from_id(const Id& id) {
    if (id.kind == Id::number_kind) return nb::int_(id.number);
    if (id.kind != tuple_id) return value_of(id.kind, id.bytes, id.size);
    const char *bytes = id.bytes, *end = id.bytes + id.size;
    nb::object tuple = read_sequence(bytes, end, 0);
    if (bytes != end) refuse_bytes();
    return tuple;
}

}  // namespace limen::bindings
