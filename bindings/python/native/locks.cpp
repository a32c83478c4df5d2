// SPDX-License-Identifier: MIT

#include "handles.hpp"

namespace stanchion_python {

namespace {

std::unique_ptr<lock_policy> new_policy(const std::string& json) {
    auto made = std::make_unique<lock_policy>();
    must([&](stn_error** e) {
        stn_lock_policy* out = nullptr;
        const auto status = stn_lock_policy_new(json.c_str(), &out, e);
        made->h.reset(out);
        return status;
    });
    return made;
}

std::uint64_t acquire(const lock_policy& with, const client& c, const py::bytes& name, std::int64_t deadline_ms,
                      const scope* within, const queue& q, std::uint64_t tag, const queue* loss_q,
                      std::uint64_t loss_tag) {
    const auto n = view(name);
    std::uint64_t op = 0;
    must([&](stn_error** e) {
        return stn_lock_acquire(c.h.get(), n.data, n.size, nullptr, with.h.get(), deadline_ms, pointer(within),
                                q.h.get(), tag, pointer(loss_q), loss_tag, &op, e);
    });
    return op;
}

// True once it is held no longer, False after timeout_ms.
bool wait_lost(const lock& l, std::int64_t timeout_ms) {
    stn_lock* raw = l.h.get();
    stn_error* error = nullptr;
    const auto status = without_gil([raw, timeout_ms, e = &error] { return stn_lock_wait_lost(raw, timeout_ms, e); });
    if (status == STN_OK) return true;
    if (status != STN_TIMEOUT) raise(error);
    stn_error_free(error);
    return false;
}

void renew(const lock& l, std::int64_t deadline_ms, const queue& q, std::uint64_t tag) {
    must([&](stn_error** e) { return stn_lock_renew(l.h.get(), deadline_ms, q.h.get(), tag, e); });
}

void release(const lock& l, std::int64_t deadline_ms, const queue* q, std::uint64_t tag) {
    must([&](stn_error** e) { return stn_lock_release(l.h.get(), deadline_ms, pointer(q), tag, e); });
}

std::uint64_t inspect(const client& c, const py::bytes& name, const py::bytes& key, std::int64_t deadline_ms,
                      const queue& q, std::uint64_t tag) {
    const auto n = view(name);
    const auto k = view(key);
    std::uint64_t op = 0;
    must([&](stn_error** e) {
        return stn_lock_inspect(c.h.get(), n.data, n.size, k.data, k.size, deadline_ms, q.h.get(), tag, &op, e);
    });
    return op;
}

std::uint64_t tick_acquire(const client& c, const py::bytes& name, const std::string& options, std::int64_t deadline_ms,
                           const queue& q, std::uint64_t tag) {
    const auto n = view(name);
    std::uint64_t op = 0;
    must([&](stn_error** e) {
        return stn_tick_acquire(c.h.get(), n.data, n.size, options.c_str(), deadline_ms, q.h.get(), tag, &op, e);
    });
    return op;
}

std::uint64_t once(const client& c, const py::bytes& id, std::int64_t ttl_ms, std::int64_t deadline_ms, const queue& q,
                   std::uint64_t tag) {
    const auto n = view(id);
    std::uint64_t op = 0;
    must([&](stn_error** e) {
        return stn_once(c.h.get(), n.data, n.size, ttl_ms, deadline_ms, q.h.get(), tag, &op, e);
    });
    return op;
}

} // namespace

void bind_locks(py::module_& m) {
    py::class_<lock_policy>(m, "LockPolicy")
        .def(py::init(&new_policy), py::arg("json"))
        .def("acquire", &acquire, py::arg("client"), py::arg("name"), py::arg("deadline_ms"),
             py::arg("within").none(true), py::arg("queue"), py::arg("tag"), py::arg("loss_queue").none(true),
             py::arg("loss_tag"));

    // No free: a thread may be waiting inside wait_lost. The last reference frees it, and what is held is released.
    py::class_<lock>(m, "Lock")
        .def("held", [](const lock& l) { return stn_lock_held(l.h.get()) == 1; })
        .def("remaining_ms", [](const lock& l) { return stn_lock_remaining_ms(l.h.get()); })
        .def("fence", [](const lock& l) { return stn_lock_fence(l.h.get()); })
        .def("token", [](const lock& l) { return stn_lock_token(l.h.get()); })
        .def("state", [](const lock& l) { return stn_lock_state(l.h.get()); })
        .def("loss", [](const lock& l) { return stn_lock_loss(l.h.get()); })
        .def("wait_lost", &wait_lost, py::arg("timeout_ms"))
        .def("renew", &renew, py::arg("deadline_ms"), py::arg("queue"), py::arg("tag"))
        .def("release", &release, py::arg("deadline_ms"), py::arg("queue").none(true), py::arg("tag"))
        .def("leave", [](const lock& l) { must([&](stn_error** e) { return stn_lock_leave(l.h.get(), e); }); });

    py::class_<tick>(m, "Tick")
        .def("slot_ms", [](const tick& t) { return stn_tick_slot_ms(t.h.get()); })
        .def("fence", [](const tick& t) { return stn_tick_fence(t.h.get()); })
        .def("token", [](const tick& t) { return stn_tick_token(t.h.get()); })
        .def(
            "done",
            [](const tick& t, bool ok, std::int64_t deadline_ms, const queue* q, std::uint64_t tag) {
                must([&](stn_error** e) {
                    return stn_tick_done(t.h.get(), ok ? 1 : 0, deadline_ms, pointer(q), tag, e);
                });
            },
            py::arg("ok"), py::arg("deadline_ms"), py::arg("queue").none(true), py::arg("tag"));

    m.def("lock_inspect", &inspect, py::arg("client"), py::arg("name"), py::arg("key"), py::arg("deadline_ms"),
          py::arg("queue"), py::arg("tag"));
    m.def("tick_acquire", &tick_acquire, py::arg("client"), py::arg("name"), py::arg("options"), py::arg("deadline_ms"),
          py::arg("queue"), py::arg("tag"));
    m.def("once", &once, py::arg("client"), py::arg("id"), py::arg("ttl_ms"), py::arg("deadline_ms"), py::arg("queue"),
          py::arg("tag"));
}

} // namespace stanchion_python
