// SPDX-License-Identifier: MIT

#include "handles.hpp"

namespace stanchion_python {

namespace {

std::unique_ptr<client> open(const std::string& url, const std::string& options) {
    auto made = std::make_unique<client>();
    must([&](stn_error** e) {
        stn_client* out = nullptr;
        const auto status = stn_client_open(url.c_str(), options.c_str(), &out, e);
        made->h.reset(out);
        return status;
    });
    return made;
}

void close(const client& c, std::int64_t deadline_ms) {
    stn_client* raw = c.h.get();
    stn_error* error = nullptr;
    if (without_gil([raw, deadline_ms, e = &error] { return stn_client_close(raw, deadline_ms, e); }) != STN_OK)
        raise(error);
}

void advance(const client& c, std::int64_t ms) {
    stn_client* raw = c.h.get();
    stn_error* error = nullptr;
    if (without_gil([raw, ms, e = &error] { return stn_client_advance(raw, ms, e); }) != STN_OK) raise(error);
}

py::bytes stats(const client& c, const cache* of) {
    handle<stn_bytes, stn_bytes_free> out;
    must([&](stn_error** e) {
        stn_bytes* bytes = nullptr;
        const auto status = stn_client_stats_json(c.h.get(), pointer(of), &bytes, e);
        out.reset(bytes);
        return status;
    });
    return {static_cast<const char*>(stn_bytes_data(out.get())), stn_bytes_size(out.get())};
}

} // namespace

void bind_client(py::module_& m) {
    py::class_<client>(m, "Client")
        .def(py::init(&open), py::arg("url"), py::arg("options"))
        .def(
            "ready",
            [](const client& c, std::int64_t deadline_ms, const queue& q, std::uint64_t tag) {
                must([&](stn_error** e) { return stn_client_ready(c.h.get(), deadline_ms, q.h.get(), tag, e); });
            },
            py::arg("deadline_ms"), py::arg("queue"), py::arg("tag"))
        .def("close", &close, py::arg("deadline_ms"))
        .def(
            "close_begin",
            [](const client& c, std::int64_t deadline_ms, const queue& q, std::uint64_t tag) {
                must([&](stn_error** e) { return stn_client_close_begin(c.h.get(), deadline_ms, q.h.get(), tag, e); });
            },
            py::arg("deadline_ms"), py::arg("queue"), py::arg("tag"))
        .def(
            "watch",
            [](const client& c, std::uint32_t mask, const queue& q, std::uint64_t tag) {
                must([&](stn_error** e) { return stn_client_watch(c.h.get(), mask, q.h.get(), tag, e); });
            },
            py::arg("mask"), py::arg("queue"), py::arg("tag"))
        .def("advance", &advance, py::arg("ms"))
        .def("stats", &stats, py::arg("cache").none(true));
}

} // namespace stanchion_python
