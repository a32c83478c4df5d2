// SPDX-License-Identifier: MIT
//
// The queue, the one place where Python waits, and the events it gives.

#include <array>

#include "handles.hpp"

namespace stanchion_python {

namespace {

constexpr std::size_t batch = 256;

py::object next(const queue& q, std::int64_t timeout_ms) {
    stn_queue* raw = q.h.get();
    stn_event* out = nullptr;
    stn_error* error = nullptr;
    const std::int32_t status =
        timeout_ms == 0
            ? stn_queue_next(raw, 0, &out, &error)
            : without_gil([raw, timeout_ms, at = &out, e = &error] { return stn_queue_next(raw, timeout_ms, at, e); });
    if (status == STN_OK) return wrapped<event>(out);
    if (status != STN_TIMEOUT) raise(error);
    stn_error_free(error);
    return py::none();
}

// What is there, at most `batch`, without waiting; an empty list if nothing is, or ever will be.
py::list drain(const queue& q) {
    std::array<stn_event*, batch> events;
    std::size_t n = 0;
    stn_error* error = nullptr;
    const std::int32_t status = stn_queue_drain(q.h.get(), events.size(), 0, events.data(), &n, &error);
    if (status != STN_OK && status != STN_TIMEOUT && status != STN_CLOSED) raise(error);
    stn_error_free(error);
    py::list out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = wrapped<event>(events[i]);
    return out;
}

std::int32_t fd(const queue& q) {
    std::int32_t descriptor = -1;
    must([&](stn_error** e) { return stn_queue_fd(q.h.get(), &descriptor, e); });
    return descriptor;
}

py::object data(const event& e) {
    std::size_t n = 0;
    const void* bytes = stn_event_bytes(e.h.get(), &n);
    if (bytes == nullptr) return py::none();
    return py::bytes(static_cast<const char*>(bytes), n);
}

py::object error(const event& e) {
    const stn_error* what = stn_event_error(e.h.get());
    return what != nullptr ? exception_of(what) : py::object(py::none());
}

} // namespace

void bind_events(py::module_& m) {
    py::class_<queue>(m, "Queue")
        .def(py::init([](std::uint64_t host_scope) {
                 auto made = std::make_unique<queue>();
                 must([&](stn_error** e) {
                     stn_queue* out = nullptr;
                     const auto status = stn_queue_new(host_scope, &out, e);
                     made->h.reset(out);
                     return status;
                 });
                 return made;
             }),
             py::arg("host_scope"))
        .def("next", &next, py::arg("timeout_ms"))
        .def("drain", &drain)
        .def("fd", &fd)
        .def("set_sync", [](const queue& q) { must([&](stn_error** e) { return stn_queue_set_sync(q.h.get(), e); }); })
        .def("wake", [](const queue& q) { stn_queue_wake(q.h.get()); })
        .def(
            "cancel", [](const queue& q, std::uint64_t op) { stn_cancel(q.h.get(), op); }, py::arg("op"))
        .def("close", [](const queue& q) { stn_queue_close(q.h.get(), nullptr); });

    py::class_<event>(m, "Event")
        .def_property_readonly("kind", [](const event& e) { return stn_event_kind(e.h.get()); })
        .def_property_readonly("tag", [](const event& e) { return stn_event_tag(e.h.get()); })
        .def_property_readonly("status", [](const event& e) { return stn_event_status(e.h.get()); })
        .def_property_readonly("flags", [](const event& e) { return stn_event_flags(e.h.get()); })
        .def_property_readonly("reason", [](const event& e) { return stn_event_reason(e.h.get()); })
        .def_property_readonly("codec", [](const event& e) { return stn_event_codec(e.h.get()); })
        .def_property_readonly("age_ms", [](const event& e) { return stn_event_age_ms(e.h.get()); })
        .def_property_readonly("ttl_left_ms", [](const event& e) { return stn_event_ttl_left_ms(e.h.get()); })
        .def_property_readonly("load_ms", [](const event& e) { return stn_event_load_ms(e.h.get()); })
        .def_property_readonly("host_ref", [](const event& e) { return stn_event_host_ref(e.h.get()); })
        .def_property_readonly("data", &data)
        .def("error", &error)
        .def("take_lease", [](event& e) { return wrapped<lease>(stn_event_take_lease(e.h.get())); })
        .def("take_flight", [](event& e) { return wrapped<flight>(stn_event_take_flight(e.h.get())); })
        .def("take_lock", [](event& e) { return wrapped<lock>(stn_event_take_lock(e.h.get())); })
        .def("take_tick", [](event& e) { return wrapped<tick>(stn_event_take_tick(e.h.get())); })
        .def("free", [](event& e) { e.h.reset(); });
}

} // namespace stanchion_python
