// SPDX-License-Identifier: MIT
#include "calls.hpp"
#include "arguments.hpp"

// stanchion.h, function by function. Arguments stand in the header's order, without `now` and the outs; an operation
// returns its number, `_new` and `_open` a handle. Failures are thrown.

namespace stn_node {

void refuse(Napi::Env env, const char* text) {
    auto values = Napi::Array::New(env, 4);
    values.Set(0U, Napi::String::New(env, text));
    values.Set(3U, Napi::Number::New(env, 0));
    const Napi::Value made =
        environment::of(env).make_error.Call({Napi::Number::New(env, STN_INVALID_ARGUMENT), values});
    throw Napi::Error(env, made);
}

bytes_in::bytes_in(const Napi::Value& value) {
    const Napi::Env env = value.Env();
    if (value.IsUndefined()) return;
    data_ = small_.data();
    if (napi_get_value_string_utf8(env, value, small_.data(), small_.size(), &size_) == napi_ok) {
        if (size_ + 4 < small_.size()) return; // else it may have been cut, before a character of up to four bytes
        napi_get_value_string_utf8(env, value, nullptr, 0, &size_);
        large_.resize(size_ + 1);
        napi_get_value_string_utf8(env, value, large_.data(), large_.size(), &size_);
        data_ = large_.data();
        return;
    }
    void* p = nullptr;
    if (napi_get_buffer_info(env, value, &p, &size_) != napi_ok) refuse(env, "bytes must be a string or a Uint8Array");
    if (size_ > 0) data_ = p;
}

namespace {

using info = const Napi::CallbackInfo&;

// ---- Client

Napi::Value client_open(info a) {
    const text_in url(a[0]);
    const text_in options(a[1]);
    return made<stn_client>(a.Env(),
                            [&](auto out, auto err) { return stn_client_open(url.get(), options.get(), out, err); });
}

void client_ready(info a) {
    must(a.Env(), [&](auto err) {
        return stn_client_ready(unwrap<stn_client>(a[0]), ms_in(a[1]), queue_in(a[2]), number_in(a[3]), err);
    });
}

void client_close_begin(info a) {
    must(a.Env(), [&](auto err) {
        return stn_client_close_begin(unwrap<stn_client>(a[0]), ms_in(a[1]), queue_in(a[2]), number_in(a[3]), err);
    });
}

void client_advance(info a) {
    must(a.Env(), [&](auto err) { return stn_client_advance(unwrap<stn_client>(a[0]), ms_in(a[1]), err); });
}

void client_watch(info a) {
    must(a.Env(), [&](auto err) {
        return stn_client_watch(unwrap<stn_client>(a[0]), flags_in(a[1]), queue_in(a[2]), number_in(a[3]), err);
    });
}

Napi::Value client_stats_json(info a) {
    stn_bytes* json = nullptr;
    must(a.Env(), [&](auto err) {
        return stn_client_stats_json(unwrap<stn_client>(a[0]), unwrap_or_null<stn_cache>(a[1]), &json, err);
    });
    const std::unique_ptr<stn_bytes, void (*)(stn_bytes*)> owned(json, stn_bytes_free);
    return Napi::String::New(a.Env(), static_cast<const char*>(stn_bytes_data(json)), stn_bytes_size(json));
}

// ---- Queue

Napi::Value queue_new(info a) {
    // No two environments have one address: a scope of their own for host references, unless a number is given.
    const std::uint64_t scope =
        a[0].IsUndefined() ? reinterpret_cast<std::uintptr_t>(&environment::of(a.Env())) : number_in(a[0]);
    stn_queue* q = nullptr;
    must(a.Env(), [&](auto err) { return stn_queue_new(scope, &q, err); });
    return wrap(a.Env(), new mailbox(q));
}

mailbox& mailbox_in(const Napi::Value& value) {
    auto* m = unwrap<mailbox>(value);
    if (!m) refuse(value.Env(), "the queue was freed");
    return *m;
}

Napi::Value queue_drain(info a) {
    return Napi::Number::New(
        a.Env(), mailbox_in(a[0]).drain(a.Env(), ms_in(a[1]), a[2].As<Napi::Float64Array>(), a[3].As<Napi::Array>()));
}

// (queue, row of the last drain): the event, kept; undefined if there is none.
Napi::Value queue_keep(info a) {
    auto* event = mailbox_in(a[0]).take_event(number_in(a[1]));
    return event ? wrap(a.Env(), event) : a.Env().Undefined();
}

void queue_set_doorbell(info a) {
    mailbox_in(a[0]).set_doorbell(a.Env(), a[1].As<Napi::Function>());
}
void queue_hold_process(info a) {
    mailbox_in(a[0]).hold_process(a[1].ToBoolean());
}
void queue_close(info a) {
    must(a.Env(), [&](auto err) { return stn_queue_close(queue_in(a[0]), err); });
}
void cancel(info a) {
    stn_cancel(queue_in(a[0]), op_in(a[1]));
}

// ---- Cache

Napi::Value cache_open(info a) {
    const bytes_in name(a[1]);
    const text_in options(a[2]);
    return made<stn_cache>(a.Env(), [&](auto out, auto err) {
        return stn_cache_open(unwrap<stn_client>(a[0]), static_cast<const char*>(name.data()), name.size(),
                              options.get(), out, err);
    });
}

Napi::Value policy_new(info a) {
    const text_in json(a[1]);
    return made<stn_policy>(
        a.Env(), [&](auto out, auto err) { return stn_policy_new(unwrap<stn_cache>(a[0]), json.get(), out, err); });
}

// (cache, policy, key, deadline, flags, within, queue, tag)
Napi::Value cache_fetch(info a) {
    const bytes_in key(a[2]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_cache_fetch(unwrap<stn_cache>(a[0]), unwrap_or_null<stn_policy>(a[1]), key.data(), key.size(),
                               ms_in(a[3]), flags_in(a[4]), unwrap_or_null<stn_scope>(a[5]), queue_in(a[6]),
                               number_in(a[7]), op, nullptr, err);
    });
}

// (cache, policy, event, deadline, within, queue, tag)
Napi::Value cache_refetch(info a) {
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_cache_refetch(unwrap<stn_cache>(a[0]), unwrap_or_null<stn_policy>(a[1]), unwrap<stn_event>(a[2]),
                                 ms_in(a[3]), unwrap_or_null<stn_scope>(a[4]), queue_in(a[5]), number_in(a[6]), op,
                                 nullptr, err);
    });
}

// (cache, key, deadline, queue, tag)
Napi::Value cache_get(info a) {
    const bytes_in key(a[1]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_cache_get(unwrap<stn_cache>(a[0]), key.data(), key.size(), ms_in(a[2]), queue_in(a[3]),
                             number_in(a[4]), op, nullptr, err);
    });
}

// (cache, policy, key, value, codec, ttl, soft ttl, deadline, queue, tag)
Napi::Value cache_put(info a) {
    const bytes_in key(a[2]);
    const bytes_in value(a[3]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_cache_put(unwrap<stn_cache>(a[0]), unwrap_or_null<stn_policy>(a[1]), key.data(), key.size(),
                             value.data(), value.size(), int_in(a[4]), ms_in(a[5]), ms_in(a[6]), ms_in(a[7]),
                             queue_in(a[8]), number_in(a[9]), op, err);
    });
}

// (cache, key, flags, deadline, queue, tag)
Napi::Value cache_invalidate(info a) {
    const bytes_in key(a[1]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_cache_invalidate(unwrap<stn_cache>(a[0]), key.data(), key.size(), flags_in(a[2]), ms_in(a[3]),
                                    queue_in(a[4]), number_in(a[5]), op, err);
    });
}

// ---- Lease

// Answers by f(shared, err) and gives how many events will carry the host reference.
template <class F> Napi::Value answered(Napi::Env env, F&& f) {
    std::uint32_t shared = 0;
    must(env, [&](auto err) { return f(&shared, err); });
    return Napi::Number::New(env, shared);
}

// (lease, value, codec, ttl, soft ttl, host reference, queue, tag)
Napi::Value lease_fulfil(info a) {
    const bytes_in value(a[1]);
    return answered(a.Env(), [&](auto shared, auto err) {
        return stn_lease_fulfil(unwrap<stn_lease>(a[0]), value.data(), value.size(), int_in(a[2]), ms_in(a[3]),
                                ms_in(a[4]), number_in(a[5]), queue_or_null(a[6]), number_in(a[7]), shared, err);
    });
}

// (lease, ttl, host reference, queue, tag)
Napi::Value lease_fulfil_absent(info a) {
    return answered(a.Env(), [&](auto shared, auto err) {
        return stn_lease_fulfil_absent(unwrap<stn_lease>(a[0]), ms_in(a[1]), number_in(a[2]), queue_or_null(a[3]),
                                       number_in(a[4]), shared, err);
    });
}

// (lease, code, text, host reference)
Napi::Value lease_fail(info a) {
    const text_in text(a[2]);
    return answered(a.Env(), [&](auto shared, auto err) {
        return stn_lease_fail(unwrap<stn_lease>(a[0]), int_in(a[1]), text.get(), number_in(a[3]), shared, err);
    });
}

// How many wait; -1: it was answered already.
Napi::Value lease_detach(info a) {
    std::uint32_t waiters = 0;
    const bool ok = stn_lease_detach(unwrap<stn_lease>(a[0]), &waiters) == STN_OK;
    return Napi::Number::New(a.Env(), ok ? static_cast<double>(waiters) : -1);
}

Napi::Value lease_state(info a) {
    return Napi::Number::New(a.Env(), stn_lease_state(unwrap<stn_lease>(a[0])));
}

template <class T> Napi::Value scope_of(info a, stn_scope* (*ask)(T*)) {
    stn_scope* scope = ask(unwrap<T>(a[0]));
    return scope ? wrap(a.Env(), scope) : a.Env().Undefined();
}
Napi::Value lease_scope(info a) {
    return scope_of(a, stn_lease_scope);
}

// ---- Group

Napi::Value group_new(info a) {
    const text_in options(a[1]);
    return made<stn_group>(a.Env(), [&](auto out, auto err) {
        return stn_group_new(unwrap_or_null<stn_client>(a[0]), options.get(), out, err);
    });
}

// (group, key, deadline, within, queue, tag): the flight to run, or the number of the operation that waits.
Napi::Value group_join(info a) {
    const bytes_in key(a[1]);
    std::uint64_t op = 0;
    stn_flight* lead = nullptr;
    must(a.Env(), [&](auto err) {
        return stn_group_join(unwrap<stn_group>(a[0]), key.data(), key.size(), ms_in(a[2]),
                              unwrap_or_null<stn_scope>(a[3]), queue_in(a[4]), number_in(a[5]), &op, &lead, err);
    });
    return lead ? wrap(a.Env(), lead) : op_out(a.Env(), op);
}

void group_forget(info a) {
    const bytes_in key(a[1]);
    must(a.Env(), [&](auto err) { return stn_group_forget(unwrap<stn_group>(a[0]), key.data(), key.size(), err); });
}

// (flight, code, bytes, host reference)
Napi::Value flight_finish(info a) {
    const bytes_in value(a[2]);
    return answered(a.Env(), [&](auto shared, auto err) {
        return stn_flight_finish(unwrap<stn_flight>(a[0]), int_in(a[1]), value.data(), value.size(), number_in(a[3]),
                                 shared, err);
    });
}

Napi::Value flight_detach(info a) {
    std::uint32_t waiters = 0;
    const bool ok = stn_flight_detach(unwrap<stn_flight>(a[0]), &waiters) == STN_OK;
    return Napi::Number::New(a.Env(), ok ? static_cast<double>(waiters) : -1);
}

Napi::Value flight_scope(info a) {
    return scope_of(a, stn_flight_scope);
}

// ---- Lock

Napi::Value lock_policy_new(info a) {
    const text_in json(a[0]);
    return made<stn_lock_policy>(a.Env(),
                                 [&](auto out, auto err) { return stn_lock_policy_new(json.get(), out, err); });
}

// (client, name, options, policy, deadline, within, queue, tag, loss queue, loss tag)
Napi::Value lock_acquire(info a) {
    const bytes_in name(a[1]);
    const text_in options(a[2]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_lock_acquire(unwrap<stn_client>(a[0]), name.data(), name.size(), options.get(),
                                unwrap_or_null<stn_lock_policy>(a[3]), ms_in(a[4]), unwrap_or_null<stn_scope>(a[5]),
                                queue_in(a[6]), number_in(a[7]), queue_or_null(a[8]), number_in(a[9]), op, err);
    });
}

Napi::Value lock_held(info a) {
    return Napi::Boolean::New(a.Env(), stn_lock_held(unwrap<stn_lock>(a[0])) == 1);
}
Napi::Value lock_remaining_ms(info a) {
    return Napi::Number::New(a.Env(), static_cast<double>(stn_lock_remaining_ms(unwrap<stn_lock>(a[0]))));
}
Napi::Value lock_fence(info a) {
    return Napi::Number::New(a.Env(), static_cast<double>(stn_lock_fence(unwrap<stn_lock>(a[0]))));
}
Napi::Value lock_token(info a) {
    return Napi::String::New(a.Env(), stn_lock_token(unwrap<stn_lock>(a[0])));
}
Napi::Value lock_state(info a) {
    return Napi::Number::New(a.Env(), stn_lock_state(unwrap<stn_lock>(a[0])));
}
Napi::Value lock_loss(info a) {
    return Napi::Number::New(a.Env(), stn_lock_loss(unwrap<stn_lock>(a[0])));
}

void lock_renew(info a) {
    must(a.Env(), [&](auto err) {
        return stn_lock_renew(unwrap<stn_lock>(a[0]), ms_in(a[1]), queue_in(a[2]), number_in(a[3]), err);
    });
}
void lock_release(info a) {
    must(a.Env(), [&](auto err) {
        return stn_lock_release(unwrap<stn_lock>(a[0]), ms_in(a[1]), queue_or_null(a[2]), number_in(a[3]), err);
    });
}
void lock_leave(info a) {
    must(a.Env(), [&](auto err) { return stn_lock_leave(unwrap<stn_lock>(a[0]), err); });
}

// (client, name, key, deadline, queue, tag)
Napi::Value lock_inspect(info a) {
    const bytes_in name(a[1]);
    const bytes_in key(a[2]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_lock_inspect(unwrap<stn_client>(a[0]), name.data(), name.size(), key.data(), key.size(), ms_in(a[3]),
                                queue_in(a[4]), number_in(a[5]), op, err);
    });
}

// ---- Ticks and ids

// (client, name, options, deadline, queue, tag)
Napi::Value tick_acquire(info a) {
    const bytes_in name(a[1]);
    const text_in options(a[2]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_tick_acquire(unwrap<stn_client>(a[0]), name.data(), name.size(), options.get(), ms_in(a[3]),
                                queue_in(a[4]), number_in(a[5]), op, err);
    });
}

Napi::Value tick_slot_ms(info a) {
    return Napi::Number::New(a.Env(), static_cast<double>(stn_tick_slot_ms(unwrap<stn_tick>(a[0]))));
}
Napi::Value tick_fence(info a) {
    return Napi::Number::New(a.Env(), static_cast<double>(stn_tick_fence(unwrap<stn_tick>(a[0]))));
}
Napi::Value tick_token(info a) {
    return Napi::String::New(a.Env(), stn_tick_token(unwrap<stn_tick>(a[0])));
}

// (tick, whether it went well, deadline, queue, tag)
void tick_done(info a) {
    must(a.Env(), [&](auto err) {
        return stn_tick_done(unwrap<stn_tick>(a[0]), a[1].ToBoolean() ? 1 : 0, ms_in(a[2]), queue_or_null(a[3]),
                             number_in(a[4]), err);
    });
}

// (client, id, ttl, deadline, queue, tag)
Napi::Value once(info a) {
    const bytes_in id(a[1]);
    return begun(a.Env(), [&](auto op, auto err) {
        return stn_once(unwrap<stn_client>(a[0]), id.data(), id.size(), ms_in(a[2]), ms_in(a[3]), queue_in(a[4]),
                        number_in(a[5]), op, err);
    });
}

// ---- The rest

Napi::Value duration_parse(info a) {
    const text_in text(a[0]);
    std::int64_t ms = 0;
    must(a.Env(), [&](auto err) { return stn_duration_parse(text.get(), &ms, err); });
    return Napi::Number::New(a.Env(), static_cast<double>(ms));
}

// Ends what a handle holds now, whatever its kind; a second time does nothing.
void free_handle(info a) {
    void* p = nullptr;
    if (!a[0].IsExternal() || napi_get_value_external(a.Env(), a[0], &p) != napi_ok) return;
    auto* b = static_cast<box*>(p);
    if (environment::of(a.Env()).boxes.count(b) == 0 || !b->held) return;
    void* held = std::exchange(b->held, nullptr);
    b->end(held);
}

void set_make_error(info a) {
    auto& make_error = environment::of(a.Env()).make_error;
    make_error = Napi::Persistent(a[0].As<Napi::Function>());
    make_error.SuppressDestruct(); // the environment's end takes the reference along
}

} // namespace

void add_calls(Napi::Env env, Napi::Object to) {
#define STN_NODE_CALL(name) to.Set(#name, Napi::Function::New<name>(env, #name))
    STN_NODE_CALL(client_open);
    STN_NODE_CALL(client_ready);
    STN_NODE_CALL(client_close_begin);
    STN_NODE_CALL(client_advance);
    STN_NODE_CALL(client_watch);
    STN_NODE_CALL(client_stats_json);
    STN_NODE_CALL(queue_new);
    STN_NODE_CALL(queue_drain);
    STN_NODE_CALL(queue_keep);
    STN_NODE_CALL(queue_set_doorbell);
    STN_NODE_CALL(queue_hold_process);
    STN_NODE_CALL(queue_close);
    STN_NODE_CALL(cancel);
    STN_NODE_CALL(cache_open);
    STN_NODE_CALL(policy_new);
    STN_NODE_CALL(cache_fetch);
    STN_NODE_CALL(cache_refetch);
    STN_NODE_CALL(cache_get);
    STN_NODE_CALL(cache_put);
    STN_NODE_CALL(cache_invalidate);
    STN_NODE_CALL(lease_fulfil);
    STN_NODE_CALL(lease_fulfil_absent);
    STN_NODE_CALL(lease_fail);
    STN_NODE_CALL(lease_detach);
    STN_NODE_CALL(lease_state);
    STN_NODE_CALL(lease_scope);
    STN_NODE_CALL(group_new);
    STN_NODE_CALL(group_join);
    STN_NODE_CALL(group_forget);
    STN_NODE_CALL(flight_finish);
    STN_NODE_CALL(flight_detach);
    STN_NODE_CALL(flight_scope);
    STN_NODE_CALL(lock_policy_new);
    STN_NODE_CALL(lock_acquire);
    STN_NODE_CALL(lock_held);
    STN_NODE_CALL(lock_remaining_ms);
    STN_NODE_CALL(lock_fence);
    STN_NODE_CALL(lock_token);
    STN_NODE_CALL(lock_state);
    STN_NODE_CALL(lock_loss);
    STN_NODE_CALL(lock_renew);
    STN_NODE_CALL(lock_release);
    STN_NODE_CALL(lock_leave);
    STN_NODE_CALL(lock_inspect);
    STN_NODE_CALL(tick_acquire);
    STN_NODE_CALL(tick_slot_ms);
    STN_NODE_CALL(tick_fence);
    STN_NODE_CALL(tick_token);
    STN_NODE_CALL(tick_done);
    STN_NODE_CALL(once);
    STN_NODE_CALL(duration_parse);
    STN_NODE_CALL(free_handle);
    STN_NODE_CALL(set_make_error);
#undef STN_NODE_CALL
}

} // namespace stn_node
