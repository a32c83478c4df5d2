// SPDX-License-Identifier: MIT
//
// What every class of _native needs: handles that free themselves, failures that become exceptions, and the GIL.
//
// The GIL. Blocking calls give it up by PyEval_SaveThread and take it back by PyEval_RestoreThread, never by pybind11's
// gil_scoped_release: while an interpreter exits, taking it back ends a daemon thread where it stands (pthread_exit), and
// that must not happen inside a destructor. So without_gil runs a plain C call whose results are plain pointers, and
// nothing in its frame has a destructor. No thread of the library ever touches Python.
//
// No Python object is kept in a static: it would outlive the interpreter.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <stanchion/stanchion.h>

namespace stanchion_python {

namespace py = pybind11;

template <auto Free> struct freed_by {
    template <class T> void operator()(T* p) const noexcept { Free(p); }
};
template <class T, auto Free> using handle = std::unique_ptr<T, freed_by<Free>>;

// The exception for an error, made by stanchion._errors.build; a new reference.
inline py::object exception_of(const stn_error* error) {
    std::size_t n = 0;
    const void* key = stn_error_key(error, &n);
    const char* server_text = stn_error_server_text(error);
    const char* message = stn_error_message(error);
    const auto text = [](const char* bytes) {
        PyObject* decoded =
            PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(std::string_view(bytes).size()), "replace");
        if (decoded == nullptr) throw py::error_already_set();
        return py::reinterpret_steal<py::object>(decoded);
    };
    return py::module_::import("stanchion._errors")
        .attr("build")(stn_error_code(error), text(message),
                       key != nullptr ? py::object(py::bytes(static_cast<const char*>(key), n))
                                      : py::object(py::none()),
                       server_text != nullptr ? text(server_text) : py::object(py::none()), stn_error_flags(error));
}

[[noreturn]] inline void raise(stn_error* error) {
    const handle<stn_error, stn_error_free> owned(error);
    const py::object exception = exception_of(error);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    throw py::error_already_set();
}

// f(stn_error**) must say STN_OK.
template <class F> void must(F&& f) {
    stn_error* error = nullptr;
    if (f(&error) != STN_OK) raise(error);
}

// Runs f, a C call that may block. F holds nothing that has a destructor, and gives a number.
template <class F> std::int32_t without_gil(F f) {
    PyThreadState* state = PyEval_SaveThread();
    const std::int32_t status = f();
    PyEval_RestoreThread(state);
    return status;
}

struct bytes_view {
    const void* data;
    std::size_t size;
};

inline bytes_view view(const py::bytes& bytes) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
    return {data, static_cast<std::size_t>(size)};
}

} // namespace stanchion_python
