// SPDX-License-Identifier: MIT
//
// The opaque handles Python holds. Each owns one handle of stanchion.h; its destructor is the `_free`, which never
// blocks, so it may run with the GIL, in any thread, in any order.
#pragma once

#include "support.hpp"

namespace stanchion_python {

struct client {
    handle<stn_client, stn_client_free> h;
};
struct queue {
    handle<stn_queue, stn_queue_free> h;
};
struct event {
    handle<stn_event, stn_event_free> h;
};
struct cache {
    handle<stn_cache, stn_cache_free> h;
};
struct policy {
    handle<stn_policy, stn_policy_free> h;
};
struct lease {
    handle<stn_lease, stn_lease_free> h;
};
struct group {
    handle<stn_group, stn_group_free> h;
};
struct flight {
    handle<stn_flight, stn_flight_free> h;
};
struct scope {
    handle<stn_scope, stn_scope_free> h;
};
struct lock {
    handle<stn_lock, stn_lock_free> h;
};
struct lock_policy {
    handle<stn_lock_policy, stn_lock_policy_free> h;
};
struct tick {
    handle<stn_tick, stn_tick_free> h;
};

// A Python object, or None for a null pointer.
template <class T, class P> py::object wrapped(P* pointer) {
    if (pointer == nullptr) return py::none();
    auto made = std::make_unique<T>();
    made->h.reset(pointer);
    return py::cast(std::move(made));
}

// The pointer inside an object that may be None.
template <class T> auto* pointer(const T* object) {
    return object != nullptr ? object->h.get() : nullptr;
}

void bind_client(py::module_& m);
void bind_events(py::module_& m);
void bind_caches(py::module_& m);
void bind_groups(py::module_& m);
void bind_locks(py::module_& m);

} // namespace stanchion_python
