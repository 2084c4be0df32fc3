// SPDX-License-Identifier: Apache-2.0
//
// update, revert and the properties, bound by hand through the slots of their type, because a call
// that takes a hundred nanoseconds notices the dispatch around it.

#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <new>

#include "bindings/models.hpp"
#include "bindings/numbers.hpp"

namespace limen::bindings {

// What is being caught, as an error of Python: nothing else may cross the border.
LIMEN_NOINLINE inline PyObject* raise_caught() {
    try {
        throw;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

template <class Body>
LIMEN_INLINE PyObject* guarded(Body&& body) {
    try {
        return body();
    } catch (...) {
        return raise_caught();
    }
}

template <class T>
struct LabelledFace {
    using Type = T;
    static constexpr const char* names[3] = {"score", "label", "weight"};
    static constexpr Py_ssize_t required = 2;
};

// Not by guarded(): compilers hand a body of this size its arguments through memory.
template <class Face, bool adding>
PyObject* one(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
    try {
        PyObject* args[3];
        if (!keywords && count >= Face::required && count <= 3) {
            for (Py_ssize_t i = 0; i < 3; ++i) args[i] = i < count ? given[i] : nullptr;
        } else {
            parse({adding ? "update" : "revert", Face::names, 3, 3, Face::required}, given, count,
                  keywords, args);
        }
        instance<typename Face::Type>(self).one(args, adding);
        return Py_NewRef(Py_None);
    } catch (...) {
        return raise_caught();
    }
}

template <class T>
Py_ssize_t get_length(PyObject* self) {
    Py_ssize_t length = -1;
    guarded([&]() -> PyObject* {
        length = static_cast<Py_ssize_t>(
            instance<T>(self).read([](const auto& held) { return held.samples(); }));
        return nullptr;
    });
    return length;
}

template <class T>
PyObject* get_direction(PyObject* self, void*) {
    static PyObject* const names[] = {PyUnicode_InternFromString(">="),
                                      PyUnicode_InternFromString("<=")};
    return guarded(
        [&] { return Py_NewRef(names[instance<T>(self).direction.lower_is_positive()]); });
}
#define LIMEN_DIRECTION(T)                                                                   \
    {                                                                                        \
        "direction", get_direction<T>, nullptr,                                              \
            "\">=\" where higher scores mean positive, \"<=\" where lower ones do.", nullptr \
    }

// The class that Python extends the native one by gets its methods and properties as its own. The
// interpreter calls a method at once where an object is of the very class that the method belongs
// to; an inherited one it looks for and checks at every call.
inline void give_slots(nb::handle type, PyMethodDef* methods, PyGetSetDef* properties) {
    auto* owner = reinterpret_cast<PyTypeObject*>(type.ptr());
    const auto give = [&](const char* name, PyObject* made) {
        const nb::object slot = nb::steal(made);
        if (!slot.is_valid() || PyObject_SetAttrString(type.ptr(), name, made) != 0)
            throw nb::python_error();
    };
    for (; methods->ml_name; ++methods) give(methods->ml_name, PyDescr_NewMethod(owner, methods));
    for (; properties && properties->name; ++properties)
        give(properties->name, PyDescr_NewGetSet(owner, properties));
}

template <class T, class... Bases>
void bind_slots(nb::class_<T, Bases...>& type, PyMethodDef* methods,
                PyGetSetDef* properties = nullptr) {
    type.def_static("_give_slots",
                    [=](nb::type_object_t<T> to) { give_slots(to, methods, properties); });
}

#define LIMEN_METHOD(NAME, FACE, ADDING, DOC)                                             \
    {                                                                                     \
        NAME, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&one<FACE, ADDING>)), \
            METH_FASTCALL | METH_KEYWORDS, DOC                                            \
    }

}  // namespace limen::bindings
