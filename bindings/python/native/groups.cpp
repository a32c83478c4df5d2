// SPDX-License-Identifier: MIT

#include <pybind11/stl.h>

#include "handles.hpp"

namespace stanchion_python {

namespace {

std::unique_ptr<group> open(const client* c, const std::optional<std::string>& options) {
    auto made = std::make_unique<group>();
    must([&](stn_error** e) {
        stn_group* out = nullptr;
        const auto status = stn_group_new(pointer(c), options ? options->c_str() : nullptr, &out, e);
        made->h.reset(out);
        return status;
    });
    return made;
}

// (op, flight): the flight if this caller leads, else None and an event will come.
py::tuple join(const group& g, const py::bytes& key, std::int64_t deadline_ms, const scope* within, const queue& q,
               std::uint64_t tag) {
    const auto k = view(key);
    std::uint64_t op = 0;
    stn_flight* lead = nullptr;
    must([&](stn_error** e) {
        return stn_group_join(g.h.get(), k.data, k.size, deadline_ms, pointer(within), q.h.get(), tag, &op, &lead, e);
    });
    return py::make_tuple(op, wrapped<flight>(lead));
}

void forget(const group& g, const py::bytes& key) {
    const auto k = view(key);
    must([&](stn_error** e) { return stn_group_forget(g.h.get(), k.data, k.size, e); });
}

std::uint32_t finish(const flight& f, std::int32_t code, const py::bytes& text, std::uint64_t host_ref) {
    const auto t = view(text);
    std::uint32_t shared = 0;
    must([&](stn_error** e) { return stn_flight_finish(f.h.get(), code, t.data, t.size, host_ref, &shared, e); });
    return shared;
}

// How many wait for it; -1: it was answered already.
std::int64_t detach(const flight& f) {
    std::uint32_t waiters = 0;
    return stn_flight_detach(f.h.get(), &waiters) == STN_OK ? std::int64_t{waiters} : -1;
}

} // namespace

void bind_groups(py::module_& m) {
    py::class_<group>(m, "Group")
        .def(py::init(&open), py::arg("client").none(true), py::arg("options").none(true) = py::none())
        .def("join", &join, py::arg("key"), py::arg("deadline_ms"), py::arg("within").none(true), py::arg("queue"),
             py::arg("tag"))
        .def("forget", &forget, py::arg("key"));

    py::class_<flight>(m, "Flight")
        .def("finish", &finish, py::arg("code"), py::arg("text"), py::arg("host_ref"))
        .def("detach", &detach)
        .def("scope", [](const flight& f) { return wrapped<scope>(stn_flight_scope(f.h.get())); })
        .def("free", [](flight& f) { f.h.reset(); });
}

} // namespace stanchion_python
