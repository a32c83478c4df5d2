// SPDX-License-Identifier: MIT
#ifndef STANCHION_NODE_HANDLES_HPP
#define STANCHION_NODE_HANDLES_HPP

#include <stanchion/stanchion.h>

#include <cstdint>

#include "environment.hpp"

// Handles of the C ABI as JavaScript externals. An external holds a box; the garbage collector, or `free`, ends what is
// in it. A value from JavaScript is a handle only if its box is on the environment's list, so a foreign external, or a
// handle of another kind, is an error and never a crash.

namespace stn_node {

enum class kind : std::uint8_t {
    client,
    queue,
    cache,
    policy,
    group,
    lease,
    flight,
    scope,
    lock,
    lock_policy,
    tick,
    event
};

template <class T> struct handle_of;
#define STN_NODE_HANDLE(type, name, free_it)       \
    template <> struct handle_of<type> {           \
        static constexpr kind is = kind::name;     \
        static constexpr const char* text = #name; \
        static void end(type* p) noexcept {        \
            free_it;                               \
        }                                          \
    };
STN_NODE_HANDLE(stn_client, client, stn_client_free(p))
STN_NODE_HANDLE(stn_cache, cache, stn_cache_free(p))
STN_NODE_HANDLE(stn_policy, policy, stn_policy_free(p))
STN_NODE_HANDLE(stn_group, group, stn_group_free(p))
STN_NODE_HANDLE(stn_lease, lease, stn_lease_free(p))
STN_NODE_HANDLE(stn_flight, flight, stn_flight_free(p))
STN_NODE_HANDLE(stn_scope, scope, stn_scope_free(p))
STN_NODE_HANDLE(stn_lock, lock, stn_lock_free(p))
STN_NODE_HANDLE(stn_lock_policy, lock_policy, stn_lock_policy_free(p))
STN_NODE_HANDLE(stn_tick, tick, stn_tick_free(p))
STN_NODE_HANDLE(stn_event, event, stn_event_free(p))
STN_NODE_HANDLE(mailbox, queue, delete p)
#undef STN_NODE_HANDLE

struct box {
    kind is;
    void* held; // null once it was freed
    void (*end)(void*) noexcept;
    std::shared_ptr<environment> home;
};

// Hands a handle to JavaScript.
template <class T> Napi::Value wrap(Napi::Env env, T* held) {
    auto* b = new box{handle_of<T>::is, held, [](void* p) noexcept { handle_of<T>::end(static_cast<T*>(p)); },
                      environment::of(env).shared_from_this()};
    b->home->boxes.insert(b);
    return Napi::External<box>::New(env, b, [](Napi::Env, box* dead) {
        if (dead->held) dead->end(dead->held);
        dead->home->boxes.erase(dead);
        delete dead;
    });
}

box* box_of(Napi::Env env, napi_value value, kind is, const char* text); // throws a TypeError

// The handle in an argument; throws if it is another thing. Freed already: null, which the C ABI refuses.
template <class T> T* unwrap(const Napi::Value& value) {
    return static_cast<T*>(box_of(value.Env(), value, handle_of<T>::is, handle_of<T>::text)->held);
}
template <class T> T* unwrap_or_null(const Napi::Value& value) {
    return value.IsUndefined() ? nullptr : unwrap<T>(value);
}

} // namespace stn_node

#endif
