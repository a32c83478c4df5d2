// SPDX-License-Identifier: MIT
#include <cstring>
#include <mutex>

#include "environment.hpp"
#include "handles.hpp"

namespace stn_node {

// ---- The doorbell ---------------------------------------------------------------------------------------------

struct ring {
    std::mutex mutex;
    napi_threadsafe_function wake = nullptr; // null once it was released
};

namespace {

void ring_it(void* ud) {
    auto& r = *static_cast<std::shared_ptr<ring>*>(ud);
    const std::lock_guard lock(r->mutex);
    if (r->wake && napi_call_threadsafe_function(r->wake, nullptr, napi_tsfn_nonblocking) == napi_closing) {
        r->wake = nullptr;
    }
}

void forget_ring(void* ud) {
    delete static_cast<std::shared_ptr<ring>*>(ud);
}

// On the environment's thread. A worker that is being terminated may refuse to run JavaScript: then nothing is left to do.
void answer(napi_env env, napi_value on_ring, void*, void*) {
    if (!env || !on_ring) return;
    napi_value receiver = nullptr;
    if (napi_get_undefined(env, &receiver) != napi_ok) return;
    if (napi_call_function(env, receiver, on_ring, 0, nullptr, nullptr) != napi_pending_exception) return;
    napi_value thrown = nullptr;
    if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok && thrown) napi_fatal_exception(env, thrown);
}

void shut_at_exit(void* arg) {
    static_cast<mailbox*>(arg)->shut();
}

} // namespace

void mailbox::set_doorbell(Napi::Env env, Napi::Function on_ring) {
    auto r = std::make_shared<ring>();
    const Napi::String name = Napi::String::New(env, "stanchion");
    if (napi_create_threadsafe_function(env, on_ring, nullptr, name, 0, 1, nullptr, nullptr, nullptr, answer,
                                        &r->wake) != napi_ok) {
        throw Napi::Error::New(env, "stanchion: the event loop takes no doorbell");
    }
    napi_unref_threadsafe_function(env, r->wake);
    ring_ = r;
    env_ = env;
    // After the thread-safe function was made: hooks run last first, so ours finds it alive.
    napi_add_env_cleanup_hook(env, shut_at_exit, this);
    auto* ud = new std::shared_ptr<ring>(std::move(r));
    stn_error* err = nullptr;
    if (stn_queue_set_doorbell(queue, ring_it, ud, forget_ring, &err) != STN_OK) {
        delete ud;
        fail(env, err);
    }
}

void mailbox::hold_process(bool hold) {
    if (!ring_ || !ring_->wake) return;
    if (hold) {
        napi_ref_threadsafe_function(env_, ring_->wake);
    } else {
        napi_unref_threadsafe_function(env_, ring_->wake);
    }
}

void mailbox::shut() noexcept {
    if (!ring_) return;
    {
        const std::lock_guard lock(ring_->mutex);
        if (ring_->wake) napi_release_threadsafe_function(ring_->wake, napi_tsfn_release);
        ring_->wake = nullptr;
    }
    ring_ = nullptr;
    stn_queue_set_doorbell(queue, nullptr, nullptr, nullptr, nullptr);
    stn_queue_close(queue, nullptr);
    napi_remove_env_cleanup_hook(env_, shut_at_exit, this);
}

mailbox::~mailbox() {
    shut();
    forget_read();
    stn_queue_free(queue);
}

// ---- Events ---------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t most_short = 4'096;

bool ascii(const char* p, std::size_t n) noexcept {
    std::uint64_t any = 0;
    for (; n >= 8; p += 8, n -= 8) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, p, 8);
        any |= eight;
    }
    for (; n > 0; ++p, --n) any |= static_cast<unsigned char>(*p);
    return (any & 0x8080808080808080U) == 0;
}

// What cannot be a number: handles, and what went wrong.
Napi::Value extra_of(Napi::Env env, stn_event* e) {
    switch (stn_event_kind(e)) {
    case STN_EVENT_LEASE:
    case STN_EVENT_REFRESH:
        if (auto* lease = stn_event_take_lease(e)) return wrap(env, lease);
        break;
    case STN_EVENT_FLIGHT:
        if (auto* flight = stn_event_take_flight(e)) return wrap(env, flight);
        break;
    case STN_EVENT_LOCK:
        if (auto* lock = stn_event_take_lock(e)) return wrap(env, lock);
        break;
    case STN_EVENT_TICK:
        if (auto* tick = stn_event_take_tick(e)) return wrap(env, tick);
        break;
    default:
        if (const auto* err = stn_event_error(e)) return error_values(env, err);
    }
    return {};
}

} // namespace

// The bytes of a batch. Callers who joined one flight have the same bytes at the same place: they are copied once.
struct mailbox::gathered {
    std::string& text;
    std::vector<std::pair<const void*, std::size_t>> bytes{};
    std::size_t bytes_size = 0;
    const void* last = nullptr;
    std::size_t last_size = 0;
    double* last_row = nullptr;
};

void mailbox::describe(const stn_event* e, double* row, gathered& all) {
    row[kind] = stn_event_kind(e);
    row[tag] = static_cast<double>(stn_event_tag(e));
    row[status] = stn_event_status(e);
    row[flags] = stn_event_flags(e);
    row[reason] = stn_event_reason(e);
    row[codec] = stn_event_codec(e);
    row[age_ms] = static_cast<double>(stn_event_age_ms(e));
    row[ttl_left_ms] = static_cast<double>(stn_event_ttl_left_ms(e));
    row[load_ms] = static_cast<double>(stn_event_load_ms(e));
    row[host_ref] = static_cast<double>(stn_event_host_ref(e));
    row[area] = none;
    std::size_t n = 0;
    const void* p = stn_event_bytes(e, &n);
    if (!p) return;
    if (p == all.last && n == all.last_size && n > 0) {
        std::memcpy(row + area, all.last_row + area, 3 * sizeof(double));
        return;
    }
    row[length] = static_cast<double>(n);
    // Plain ASCII needs no decoding of UTF-8, and a short text is made faster than a view of a buffer; what is large
    // and may be wanted as bytes stays bytes.
    const std::int32_t how = stn_event_codec(e);
    const bool as_text = (how != STN_CODEC_RAW && how != STN_CODEC_PRIVATE) || n <= most_short;
    if (n > 0 && as_text && ascii(static_cast<const char*>(p), n)) {
        row[area] = mailbox::text;
        row[offset] = static_cast<double>(all.text.size());
        all.text.append(static_cast<const char*>(p), n);
    } else {
        row[area] = mailbox::bytes;
        row[offset] = static_cast<double>(all.bytes_size);
        all.bytes.emplace_back(p, n);
        all.bytes_size += n;
    }
    all.last = p;
    all.last_size = n;
    all.last_row = row;
}

void mailbox::forget_read() {
    for (auto* e : read_) stn_event_free(e);
    read_.clear();
}

std::int32_t mailbox::drain(Napi::Env env, std::int64_t timeout_ms, Napi::Float64Array table, Napi::Array out) {
    forget_read();
    read_.resize(table.ElementLength() / columns);
    std::size_t n = 0;
    stn_error* err = nullptr;
    const std::int32_t how = stn_queue_drain(queue, read_.size(), timeout_ms, read_.data(), &n, &err);
    read_.resize(n);
    if (how != STN_OK) {
        if (how != STN_TIMEOUT && how != STN_CLOSED) fail(env, err);
        stn_error_free(err);
        return how == STN_CLOSED ? how : 0;
    }
    text_.clear();
    gathered all{text_};
    Napi::Array extras;
    for (std::size_t i = 0; i < n; ++i) {
        describe(read_[i], table.Data() + i * columns, all);
        const std::int32_t k = stn_event_kind(read_[i]);
        if (k == STN_EVENT_VALUE || k == STN_EVENT_ABSENT) continue;
        const Napi::Value extra = extra_of(env, read_[i]);
        if (extra.IsEmpty()) continue;
        if (extras.IsEmpty()) extras = Napi::Array::New(env);
        extras.Set(static_cast<std::uint32_t>(i), extra);
    }
    if (!text_.empty()) {
        napi_value string = nullptr;
        if (napi_create_string_latin1(env, text_.data(), text_.size(), &string) == napi_ok) {
            out.Set(0U, Napi::Value(env, string));
        }
        if (text_.capacity() > (1U << 20)) std::string().swap(text_);
    }
    if (all.bytes_size > 0 || !all.bytes.empty()) {
        auto buffer = Napi::Buffer<std::uint8_t>::New(env, all.bytes_size);
        std::uint8_t* to = buffer.Data();
        for (const auto& [p, size] : all.bytes) {
            if (size > 0) std::memcpy(to, p, size);
            to += size;
        }
        out.Set(1U, buffer);
    }
    if (!extras.IsEmpty()) out.Set(2U, extras);
    return static_cast<std::int32_t>(n);
}

} // namespace stn_node
