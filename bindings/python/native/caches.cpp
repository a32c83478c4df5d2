// SPDX-License-Identifier: MIT

#include "handles.hpp"

namespace stanchion_python {

namespace {

std::unique_ptr<cache> open(const client& c, const std::string& name, const std::string& options) {
    auto made = std::make_unique<cache>();
    must([&](stn_error** e) {
        stn_cache* out = nullptr;
        const auto status = stn_cache_open(c.h.get(), name.data(), name.size(), options.c_str(), &out, e);
        made->h.reset(out);
        return status;
    });
    return made;
}

std::unique_ptr<policy> new_policy(const cache& c, const std::string& json) {
    auto made = std::make_unique<policy>();
    must([&](stn_error** e) {
        stn_policy* out = nullptr;
        const auto status = stn_policy_new(c.h.get(), json.c_str(), &out, e);
        made->h.reset(out);
        return status;
    });
    return made;
}

// Each of these begins an operation and gives (op, event): the event if the answer is here already, else None.

py::tuple fetch(const cache& c, const policy* with, const py::bytes& key, std::int64_t deadline_ms, std::uint32_t flags,
                const scope* within, const queue& q, std::uint64_t tag) {
    const auto k = view(key);
    std::uint64_t op = 0;
    stn_event* now = nullptr;
    must([&](stn_error** e) {
        return stn_cache_fetch(c.h.get(), pointer(with), k.data, k.size, deadline_ms, flags, pointer(within), q.h.get(),
                               tag, &op, &now, e);
    });
    return py::make_tuple(op, wrapped<event>(now));
}

py::tuple refetch(const cache& c, const policy* with, const event& undecodable, std::int64_t deadline_ms,
                  const scope* within, const queue& q, std::uint64_t tag) {
    std::uint64_t op = 0;
    stn_event* now = nullptr;
    must([&](stn_error** e) {
        return stn_cache_refetch(c.h.get(), pointer(with), undecodable.h.get(), deadline_ms, pointer(within), q.h.get(),
                                 tag, &op, &now, e);
    });
    return py::make_tuple(op, wrapped<event>(now));
}

py::tuple get(const cache& c, const py::bytes& key, std::int64_t deadline_ms, const queue& q, std::uint64_t tag) {
    const auto k = view(key);
    std::uint64_t op = 0;
    stn_event* now = nullptr;
    must([&](stn_error** e) {
        return stn_cache_get(c.h.get(), k.data, k.size, deadline_ms, q.h.get(), tag, &op, &now, e);
    });
    return py::make_tuple(op, wrapped<event>(now));
}

std::uint64_t put(const cache& c, const policy* with, const py::bytes& key, const py::bytes& value, std::int64_t ttl_ms,
                  std::int64_t soft_ttl_ms, std::int64_t deadline_ms, const queue& q, std::uint64_t tag,
                  std::int32_t codec) {
    const auto k = view(key);
    const auto v = view(value);
    std::uint64_t op = 0;
    must([&](stn_error** e) {
        return stn_cache_put(c.h.get(), pointer(with), k.data, k.size, v.data, v.size, codec, ttl_ms, soft_ttl_ms,
                             deadline_ms, q.h.get(), tag, &op, e);
    });
    return op;
}

std::uint64_t invalidate(const cache& c, const py::bytes& key, std::uint32_t flags, std::int64_t deadline_ms,
                         const queue& q, std::uint64_t tag) {
    const auto k = view(key);
    std::uint64_t op = 0;
    must([&](stn_error** e) {
        return stn_cache_invalidate(c.h.get(), k.data, k.size, flags, deadline_ms, q.h.get(), tag, &op, e);
    });
    return op;
}

// The answers of a lease: how many events will carry host_ref. With a queue, FILLED tells what became of the fill.

std::uint32_t fulfil(const lease& l, const py::bytes& value, std::int64_t ttl_ms, std::int64_t soft_ttl_ms,
                     std::uint64_t host_ref, std::int32_t codec, const queue* q, std::uint64_t tag) {
    const auto v = view(value);
    std::uint32_t shared = 0;
    must([&](stn_error** e) {
        return stn_lease_fulfil(l.h.get(), v.data, v.size, codec, ttl_ms, soft_ttl_ms, host_ref, pointer(q), tag,
                                &shared, e);
    });
    return shared;
}

std::uint32_t fulfil_absent(const lease& l, std::int64_t ttl_ms, std::uint64_t host_ref, const queue* q,
                            std::uint64_t tag) {
    std::uint32_t shared = 0;
    must([&](stn_error** e) {
        return stn_lease_fulfil_absent(l.h.get(), ttl_ms, host_ref, pointer(q), tag, &shared, e);
    });
    return shared;
}

std::uint32_t fail(const lease& l, std::int32_t code, const std::string& text, std::uint64_t host_ref) {
    std::uint32_t shared = 0;
    must([&](stn_error** e) {
        return stn_lease_fail(l.h.get(), code, text.empty() ? nullptr : text.c_str(), host_ref, &shared, e);
    });
    return shared;
}

// How many wait for it; -1: it was answered already.
std::int64_t detach(const lease& l) {
    std::uint32_t waiters = 0;
    return stn_lease_detach(l.h.get(), &waiters) == STN_OK ? std::int64_t{waiters} : -1;
}

} // namespace

void bind_caches(py::module_& m) {
    py::class_<scope>(m, "Scope");
    py::class_<policy>(m, "Policy").def(py::init(&new_policy), py::arg("cache"), py::arg("json"));

    py::class_<cache>(m, "Cache")
        .def(py::init(&open), py::arg("client"), py::arg("name"), py::arg("options"))
        .def("fetch", &fetch, py::arg("policy").none(true), py::arg("key"), py::arg("deadline_ms"), py::arg("flags"),
             py::arg("within").none(true), py::arg("queue"), py::arg("tag"))
        .def("refetch", &refetch, py::arg("policy").none(true), py::arg("undecodable"), py::arg("deadline_ms"),
             py::arg("within").none(true), py::arg("queue"), py::arg("tag"))
        .def("get", &get, py::arg("key"), py::arg("deadline_ms"), py::arg("queue"), py::arg("tag"))
        .def("put", &put, py::arg("policy").none(true), py::arg("key"), py::arg("value"), py::arg("ttl_ms"),
             py::arg("soft_ttl_ms"), py::arg("deadline_ms"), py::arg("queue"), py::arg("tag"),
             py::arg("codec") = STN_CODEC_DEFAULT + 0)
        .def("invalidate", &invalidate, py::arg("key"), py::arg("flags"), py::arg("deadline_ms"), py::arg("queue"),
             py::arg("tag"));

    py::class_<lease>(m, "Lease")
        .def("fulfil", &fulfil, py::arg("value"), py::arg("ttl_ms"), py::arg("soft_ttl_ms"), py::arg("host_ref"),
             py::arg("codec") = STN_CODEC_DEFAULT + 0, py::arg("queue").none(true) = py::none(), py::arg("tag") = 0)
        .def("fulfil_absent", &fulfil_absent, py::arg("ttl_ms"), py::arg("host_ref") = 0,
             py::arg("queue").none(true) = py::none(), py::arg("tag") = 0)
        .def("fail", &fail, py::arg("code"), py::arg("text"), py::arg("host_ref"))
        .def("detach", &detach)
        .def("scope", [](const lease& l) { return wrapped<scope>(stn_lease_scope(l.h.get())); })
        .def("state", [](const lease& l) { return stn_lease_state(l.h.get()); })
        .def("free", [](lease& l) { l.h.reset(); });
}

} // namespace stanchion_python
