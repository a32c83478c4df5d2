/* SPDX-License-Identifier: MIT */
//
// Stanchion for C++17 and later: header-only, over the C ABI (stanchion.h is the manual). Calls block; failures are
// thrown as stanchion::error. For an event loop use the queue of stanchion.h.
//
//     stanchion::client client("memory://");
//     stanchion::cache prices(client, "prices", R"({"ttl": "5m", "codec": "json"})");
//     std::optional<std::string> text = prices.get_or_load("42", [&] { return read_price(42); });
//     std::optional<price> typed = prices.get_or_load_as<price>("42", [&] { return load_price(42); });
//
//     stanchion::lock mine(client, "report", {.ttl = 30s}); // waits for it; renewed, and released at the end of its scope
//     if (mine.held()) write_report(mine.fence());          // ask before each effect, and let the database check the fence
//     if (auto run = stanchion::try_tick(client, "nightly", {.every = 24h, .offset = 2h})) run->done();
//     if (stanchion::once(client, order_id, 1h)) send_mail(order_id);
//
// A loader returns the value, or a std::optional of it (nullopt = there is no such thing, cached too). It may take a
// `stanchion::loading&`, to set a ttl, to ask whether it is still wanted, and to name itself in calls it makes. What it
// throws reaches its caller unchanged, and so do callers of this module who joined; other processes see load_failed.
#ifndef STANCHION_STANCHION_HPP
#define STANCHION_STANCHION_HPP

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#if !defined(STANCHION_NO_JSON) && defined(__has_include)
#if __has_include(<nlohmann/json.hpp>)
#define STANCHION_JSON 1
#include <nlohmann/json.hpp>
#endif
#endif

#include <stanchion/stanchion.h>

namespace stanchion {

class error : public std::runtime_error {
  public:
    explicit error(const stn_error* e, std::int32_t reason = STN_REASON_NONE)
        : std::runtime_error(stn_error_message(e)),
          code_(stn_error_code(e)),
          reason_(reason),
          flags_(stn_error_flags(e)) {
        std::size_t n = 0;
        if (const void* key = stn_error_key(e, &n)) key_.assign(static_cast<const char*>(key), n);
        if (const char* text = stn_error_server_text(e)) server_text_ = text;
    }
    error(std::int32_t code, const std::string& text) : std::runtime_error(text), code_(code) {}

    std::int32_t code() const noexcept { return code_; }
    const char* name() const noexcept { return stn_status_name(code_); }
    std::int32_t reason() const noexcept { return reason_; } // STN_REASON_NO_TTL of a busy lock
    const std::string& key() const noexcept { return key_; }
    const std::string& server_text() const noexcept { return server_text_; }
    bool retryable() const noexcept { return (flags_ & STN_ERROR_RETRYABLE) != 0; }
    bool may_have_applied() const noexcept { return (flags_ & STN_ERROR_MAY_HAVE_APPLIED) != 0; }

  private:
    std::int32_t code_;
    std::int32_t reason_ = STN_REASON_NONE;
    std::uint32_t flags_ = 0;
    std::string key_;
    std::string server_text_;
};

// What a call may say besides its key. A default is the policy's.
struct call {
    std::int64_t deadline_ms = STN_DEFAULT_MS;
    std::uint32_t flags = 0;            // STN_FETCH_FORCE, STN_FETCH_NO_STORE
    const stn_scope* within = nullptr;  // loading::scope() of the load that makes this call
    const stn_policy* policy = nullptr; // policy::get()
};

namespace detail {

template <auto Free> struct freed_by {
    template <class T> void operator()(T* p) const noexcept { Free(p); }
};
template <class T, auto Free> using handle = std::unique_ptr<T, freed_by<Free>>;
using event = handle<stn_event, stn_event_free>;
using lease = handle<stn_lease, stn_lease_free>;
using flight = handle<stn_flight, stn_flight_free>;
using scope = handle<stn_scope, stn_scope_free>;

// Calls f(stn_error**) and throws what it reports.
template <class F> void must(F&& f) {
    stn_error* e = nullptr;
    if (f(&e) == STN_OK) return;
    handle<stn_error, stn_error_free> owned(e);
    throw error(e);
}

// Makes a handle by f(T** out, stn_error**).
template <class T, auto Free, class F> handle<T, Free> made(F&& f) {
    T* out = nullptr;
    must([&](stn_error** e) { return f(&out, e); });
    return handle<T, Free>(out);
}

// One exception, shared by the leader of a load and the callers of this module who joined it. The core tells how many
// events carry it, perhaps after the first of them was read; the last one out deletes it.
class failure {
  public:
    explicit failure(std::exception_ptr what) : what_(std::move(what)) {}
    std::uint64_t ref() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }
    void share(std::uint32_t events) noexcept { drop(unknown - events); }
    static std::exception_ptr take(std::uint64_t ref) noexcept {
        auto* self = reinterpret_cast<failure*>(static_cast<std::uintptr_t>(ref));
        std::exception_ptr what = self->what_;
        self->drop(1);
        return what;
    }

  private:
    static constexpr std::int64_t unknown = std::int64_t{1} << 40;
    void drop(std::int64_t n) noexcept {
        if (left_.fetch_sub(n) == n) delete this;
    }
    std::exception_ptr what_;
    std::atomic<std::int64_t> left_{unknown};
};
inline char module_anchor; // its address is the host_scope of this module's queues

// A queue for one operation: waits for its terminal event.
class mailbox {
  public:
    mailbox()
        : q_(made<stn_queue, stn_queue_free>([](stn_queue** out, stn_error** e) {
              return stn_queue_new(reinterpret_cast<std::uintptr_t>(&module_anchor), out, e);
          })) {}
    stn_queue* get() const noexcept { return q_.get(); }
    event wait(stn_event* now = nullptr) const { // throws what ended the operation
        event ev(now);
        if (!ev) {
            ev = made<stn_event, stn_event_free>(
                [&](stn_event** out, stn_error** e) { return stn_queue_next(q_.get(), STN_NO_LIMIT, out, e); });
        }
        if (stn_event_kind(ev.get()) != STN_EVENT_ERROR) return ev;
        if (const auto ref = stn_event_host_ref(ev.get())) {
            const auto what = failure::take(ref);
            if (stn_event_status(ev.get()) != STN_CLOSED) std::rethrow_exception(what);
        }
        throw error(stn_event_error(ev.get()), stn_event_reason(ev.get()));
    }

  private:
    handle<stn_queue, stn_queue_free> q_;
};

inline std::string_view bytes_of(const event& ev) noexcept {
    std::size_t n = 0;
    const auto* p = static_cast<const char*>(stn_event_bytes(ev.get(), &n));
    return {p, n};
}

struct text_codec {
    static std::optional<std::string> decode(std::string_view bytes) { return std::string(bytes); }
    static const std::string& encode(const std::string& text) { return text; }
};

#if defined(STANCHION_JSON)
// Strict JSON: NaN and Infinity have no text, and nlohmann would write null for them.
inline bool finite(const nlohmann::json& j) {
    if (j.is_number_float()) return std::isfinite(j.get<double>());
    for (const auto& item : j) {
        if (item.is_structured() ? !finite(item) : item.is_number_float() && !std::isfinite(item.get<double>())) {
            return false;
        }
    }
    return true;
}
template <class T> struct json_codec {
    static std::optional<T> decode(std::string_view bytes) {
        try {
            return nlohmann::json::parse(bytes).template get<T>();
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception&) {
            return std::nullopt;
        }
    }
    static std::string encode(const T& value) {
        const nlohmann::json j = value;
        if (!finite(j)) throw error(STN_INVALID_ARGUMENT, "NaN and Infinity cannot be written as JSON");
        return j.dump();
    }
};
#endif

} // namespace detail

// What a loader may know and say about its own load.
class loading {
  public:
    explicit loading(stn_lease* lease) : lease_(lease), scope_(stn_lease_scope(lease)) {}
    explicit loading(stn_flight* flight) : scope_(stn_flight_scope(flight)) {}

    // Own expiry for this result (of a cache).
    void expires(std::int64_t ttl_ms, std::int64_t soft_ttl_ms = STN_DEFAULT_MS) noexcept {
        ttl_ms_ = ttl_ms;
        soft_ttl_ms_ = soft_ttl_ms;
    }
    bool wanted() const noexcept { return lease_ == nullptr || stn_lease_state(lease_) == STN_LEASE_LIVE; }
    const stn_scope* scope() const noexcept { return scope_.get(); } // for call::within
    std::int64_t ttl_ms() const noexcept { return ttl_ms_; }
    std::int64_t soft_ttl_ms() const noexcept { return soft_ttl_ms_; }

  private:
    stn_lease* lease_ = nullptr;
    detail::scope scope_;
    std::int64_t ttl_ms_ = STN_DEFAULT_MS;
    std::int64_t soft_ttl_ms_ = STN_DEFAULT_MS;
};

namespace detail {

// Runs the loader and hands its result to `finish`. On an exception of either tells fail(code, text, host_ref, &shared)
// and lets it through.
template <class T, class Load, class Finish, class Fail>
std::optional<T> run(Load& load, loading& how, Finish&& finish, Fail&& fail) {
    auto failed = [&](std::int32_t code, const char* text) {
        auto* shared = new failure(std::current_exception());
        std::uint32_t events = 0;
        fail(code < STN_ABSENT ? code : std::int32_t{STN_LOAD_FAILED}, text, shared->ref(), &events);
        shared->share(events);
    };
    try {
        auto value = [&] {
            if constexpr (std::is_invocable_v<Load&, loading&>) {
                return std::optional<T>(load(how));
            } else {
                return std::optional<T>(load());
            }
        }();
        must([&](stn_error** e) { return finish(value, e); });
        return value;
    } catch (const error& e) {
        failed(e.code(), e.what());
        throw;
    } catch (const std::exception& e) {
        failed(STN_LOAD_FAILED, e.what());
        throw;
    } catch (...) {
        failed(STN_LOAD_FAILED, "the loader threw something that is not a std::exception");
        throw;
    }
}

} // namespace detail

// One store. Frees its handle at the end, without closing: close() waits for running loaders, and tells the fleet.
class client {
  public:
    explicit client(const std::string& url, const char* options_json = nullptr)
        : c_(detail::made<stn_client, stn_client_free>(
              [&](stn_client** out, stn_error** e) { return stn_client_open(url.c_str(), options_json, out, e); })) {}
    stn_client* get() const noexcept { return c_.get(); }

    void ready(std::int64_t deadline_ms = STN_DEFAULT_MS) const {
        const detail::mailbox box;
        detail::must([&](stn_error** e) { return stn_client_ready(get(), deadline_ms, box.get(), 0, e); });
        box.wait();
    }
    void close(std::int64_t deadline_ms = STN_DEFAULT_MS) const {
        detail::must([&](stn_error** e) { return stn_client_close(get(), deadline_ms, e); });
    }
    void advance(std::int64_t ms) const { // memory://...?clock=manual
        detail::must([&](stn_error** e) { return stn_client_advance(get(), ms, e); });
    }
    stn_stats stats() const {
        stn_stats out;
        detail::must([&](stn_error** e) { return stn_client_stats(get(), &out, sizeof out, e); });
        return out;
    }

  private:
    detail::handle<stn_client, stn_client_free> c_;
};

class cache {
  public:
    cache(const client& c, std::string_view name, const char* options_json = nullptr)
        : cache_(detail::made<stn_cache, stn_cache_free>([&](stn_cache** out, stn_error** e) {
              return stn_cache_open(c.get(), name.data(), name.size(), options_json, out, e);
          })) {}
    stn_cache* get() const noexcept { return cache_.get(); }

    // The value, loaded by `load` if need be, by one caller of the fleet; nullopt = there is no such thing.
    template <class Load>
    std::optional<std::string> get_or_load(std::string_view key, Load&& load, const call& how = {}) const {
        return fetch<std::string, detail::text_codec>(key, load, how);
    }
    // What is cached; nullopt = nothing, or a cached absence.
    std::optional<std::string> get(std::string_view key, const call& how = {}) const {
        return look<std::string, detail::text_codec>(key, how);
    }
    void put(std::string_view key, std::string_view value, std::int64_t ttl_ms = STN_DEFAULT_MS,
             std::int64_t soft_ttl_ms = STN_DEFAULT_MS, const call& how = {}) const {
        const detail::mailbox box;
        detail::must([&](stn_error** e) {
            return stn_cache_put(get(), how.policy, key.data(), key.size(), value.data(), value.size(),
                                 STN_CODEC_DEFAULT, ttl_ms, soft_ttl_ms, how.deadline_ms, box.get(), 0, nullptr, e);
        });
        box.wait();
    }
    // flags: 0 = delete, STN_INVALIDATE_STALE = mark stale.
    void invalidate(std::string_view key, std::uint32_t flags = 0, std::int64_t deadline_ms = STN_DEFAULT_MS) const {
        const detail::mailbox box;
        detail::must([&](stn_error** e) {
            return stn_cache_invalidate(get(), key.data(), key.size(), flags, deadline_ms, box.get(), 0, nullptr, e);
        });
        box.wait();
    }

#if defined(STANCHION_JSON)
    // The same for any type with to_json and from_json; open the cache with "codec": "json". A stored value that T
    // cannot be made of is loaded again, once for all who ask.
    template <class T, class Load>
    std::optional<T> get_or_load_as(std::string_view key, Load&& load, const call& how = {}) const {
        return fetch<T, detail::json_codec<T>>(key, load, how);
    }
    template <class T> std::optional<T> get_as(std::string_view key, const call& how = {}) const {
        return look<T, detail::json_codec<T>>(key, how);
    }
    template <class T>
    void put_as(std::string_view key, const T& value, std::int64_t ttl_ms = STN_DEFAULT_MS,
                std::int64_t soft_ttl_ms = STN_DEFAULT_MS, const call& how = {}) const {
        put(key, detail::json_codec<T>::encode(value), ttl_ms, soft_ttl_ms, how);
    }
#endif

  private:
    template <class T, class Codec> std::optional<T> look(std::string_view key, const call& how) const {
        const detail::mailbox box;
        stn_event* now = nullptr;
        detail::must([&](stn_error** e) {
            return stn_cache_get(get(), key.data(), key.size(), how.deadline_ms, box.get(), 0, nullptr, &now, e);
        });
        const auto ev = box.wait(now);
        if (stn_event_kind(ev.get()) == STN_EVENT_ABSENT) return std::nullopt;
        auto value = Codec::decode(detail::bytes_of(ev));
        if (!value) throw error(STN_UNDECODABLE, "the stored value cannot be decoded");
        return value;
    }

    template <class T, class Codec, class Load>
    std::optional<T> fetch(std::string_view key, Load& load, const call& how) const {
        const detail::mailbox box;
        stn_event* now = nullptr;
        detail::must([&](stn_error** e) {
            return stn_cache_fetch(get(), how.policy, key.data(), key.size(), how.deadline_ms, how.flags, how.within,
                                   box.get(), 0, nullptr, &now, e);
        });
        auto ev = box.wait(now);
        for (int rejected = 0;; ++rejected) {
            if (stn_event_kind(ev.get()) == STN_EVENT_ABSENT) return std::nullopt;
            if (stn_event_kind(ev.get()) == STN_EVENT_LEASE) return answer<T, Codec>(ev, load);
            if (auto value = Codec::decode(detail::bytes_of(ev))) return value;
            if (rejected == 2) throw error(STN_UNDECODABLE, "what was loaded cannot be decoded");
            now = nullptr;
            detail::must([&](stn_error** e) {
                return stn_cache_refetch(get(), how.policy, ev.get(), how.deadline_ms, how.within, box.get(), 0,
                                         nullptr, &now, e);
            });
            ev = box.wait(now);
        }
    }

    template <class T, class Codec, class Load> static std::optional<T> answer(const detail::event& ev, Load& load) {
        const detail::lease mine(stn_event_take_lease(ev.get()));
        loading how(mine.get());
        return detail::run<T>(
            load, how,
            [&](const std::optional<T>& value, stn_error** e) {
                if (!value) return stn_lease_fulfil_absent(mine.get(), how.ttl_ms(), 0, nullptr, 0, nullptr, e);
                const std::string& bytes = Codec::encode(*value);
                return stn_lease_fulfil(mine.get(), bytes.data(), bytes.size(), STN_CODEC_DEFAULT, how.ttl_ms(),
                                        how.soft_ttl_ms(), 0, nullptr, 0, nullptr, e);
            },
            [&](std::int32_t code, const char* text, std::uint64_t ref, std::uint32_t* shared) {
                stn_lease_fail(mine.get(), code, text, ref, shared, nullptr);
            });
    }

    detail::handle<stn_cache, stn_cache_free> cache_;
};

// A variant of a cache's policy, for call::policy.
class policy {
  public:
    policy(const cache& c, const char* options_json)
        : policy_(detail::made<stn_policy, stn_policy_free>(
              [&](stn_policy** out, stn_error** e) { return stn_policy_new(c.get(), options_json, out, e); })) {}
    const stn_policy* get() const noexcept { return policy_.get(); }

  private:
    detail::handle<stn_policy, stn_policy_free> policy_;
};

// Single-flight without a cache: callers of this process who ask for one key at one time share one run.
class group {
  public:
    group() : group(nullptr) {}
    explicit group(const client& c) : group(c.get()) {}

    template <class Work>
    std::optional<std::string> run(std::string_view key, Work&& work, const call& how = {}) const {
        const detail::mailbox box;
        stn_flight* lead = nullptr;
        detail::must([&](stn_error** e) {
            return stn_group_join(group_.get(), key.data(), key.size(), how.deadline_ms, how.within, box.get(), 0,
                                  nullptr, &lead, e);
        });
        detail::flight mine(lead);
        if (!mine) {
            const auto ev = box.wait();
            if (stn_event_kind(ev.get()) == STN_EVENT_ABSENT) return std::nullopt;
            if (stn_event_kind(ev.get()) == STN_EVENT_VALUE) return std::string(detail::bytes_of(ev));
            mine.reset(stn_event_take_flight(ev.get()));
        }
        loading own(mine.get());
        return detail::run<std::string>(
            work, own,
            [&](const std::optional<std::string>& value, stn_error** e) {
                return stn_flight_finish(mine.get(), value ? STN_OK : STN_ABSENT, value ? value->data() : nullptr,
                                         value ? value->size() : 0, 0, nullptr, e);
            },
            [&](std::int32_t code, const char* text, std::uint64_t ref, std::uint32_t* shared) {
                stn_flight_finish(mine.get(), code, text, std::char_traits<char>::length(text), ref, shared, nullptr);
            });
    }
    void forget(std::string_view key) const {
        detail::must([&](stn_error** e) { return stn_group_forget(group_.get(), key.data(), key.size(), e); });
    }

  private:
    explicit group(stn_client* c)
        : group_(detail::made<stn_group, stn_group_free>(
              [&](stn_group** out, stn_error** e) { return stn_group_new(c, nullptr, out, e); })) {}
    detail::handle<stn_group, stn_group_free> group_;
};

// ---- Locks, ticks and ids: durations are of std::chrono; from C++20 on options are named, {.ttl = 30s} -------------

inline constexpr std::chrono::milliseconds by_default{STN_DEFAULT_MS}; // what stanchion.h names as the default
inline constexpr std::chrono::milliseconds for_ever{STN_NO_LIMIT};

// As the options of stn_lock_acquire. A ttl is required.
struct lock_options {
    std::chrono::milliseconds ttl = by_default;      // a holder that has died blocks others for that long at most
    std::chrono::milliseconds wait = by_default;     // how long to wait for it: 10 s, or for_ever
    bool renew = true;                               // kept for as long as it is held
    std::chrono::milliseconds max_hold = by_default; // none: then it is lost, and released
    std::string label{};                             // for whoever inspects it, "host:pid" for example
    std::string key{};                               // the store's key itself, shared with other programs
};

// As the options of stn_tick_acquire. `every` is required.
struct tick_options {
    std::chrono::milliseconds every = by_default;   // how long a slot is
    std::chrono::milliseconds offset{0};            // when slots begin after midnight UTC
    std::chrono::milliseconds at_most = by_default; // a run that tells nothing counts as dead after that: `every`
};

namespace detail {

// The options that were said, as JSON text.
class options_text {
  public:
    options_text& add(const char* name, std::chrono::milliseconds t) {
        if (t == by_default) return *this;
        if (t == for_ever) return field(name, "\"forever\"");
        return field(std::string(name) + "_ms", std::to_string(t.count()));
    }
    options_text& add_flag(const char* name, bool yes) { return field(name, yes ? "true" : "false"); }
    options_text& add(const char* name, const std::string& text) {
        return text.empty() ? *this : field(name, quoted(text));
    }
    std::string text() const { return "{" + fields_ + "}"; }

  private:
    options_text& field(const std::string& name, const std::string& value) {
        fields_ += (fields_.empty() ? "" : ",") + quoted(name) + ":" + value;
        return *this;
    }
    static std::string quoted(const std::string& text) {
        static const char* const digits = "0123456789abcdef";
        std::string out = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\')
                (out += '\\') += c;
            else if (c >= 0 && c < ' ')
                ((out += "\\u00") += digits[c / 16]) += digits[c % 16];
            else
                out += c;
        }
        return out + '"';
    }
    std::string fields_;
};

} // namespace detail

// How locks are taken and kept, read once: for a lock that is taken often.
class lock_policy {
  public:
    explicit lock_policy(const char* options_json)
        : policy_(detail::made<stn_lock_policy, stn_lock_policy_free>(
              [&](stn_lock_policy** out, stn_error** e) { return stn_lock_policy_new(options_json, out, e); })) {}
    explicit lock_policy(const lock_options& o)
        : lock_policy(detail::options_text()
                          .add("ttl", o.ttl)
                          .add("wait", o.wait)
                          .add_flag("renew", o.renew)
                          .add("max_hold", o.max_hold)
                          .add("label", o.label)
                          .add("key", o.key)
                          .text()
                          .c_str()) {}
    const stn_lock_policy* get() const noexcept { return policy_.get(); }

  private:
    detail::handle<stn_lock_policy, stn_lock_policy_free> policy_;
};

// A lock in your hands, released in the background at the end of its scope. What was moved from is not held.
class lock {
  public:
    // Waits for it. Throws busy when the wait is over, uncertain if the store may hold it for us and does not answer.
    lock(const client& c, std::string_view name, const lock_policy& how, const stn_scope* within = nullptr)
        : lock(c, name, how, STN_DEFAULT_MS, within) {}
    lock(const client& c, std::string_view name, const lock_options& how, const stn_scope* within = nullptr)
        : lock(c, name, lock_policy(how), within) {}

    // By the local clock alone: nobody is asked. Ask before each effect.
    bool held() const noexcept { return stn_lock_held(get()) == 1; }
    std::chrono::milliseconds remaining() const noexcept {
        return std::chrono::milliseconds(stn_lock_remaining_ms(get()));
    }
    std::int64_t fence() const noexcept { return stn_lock_fence(get()); } // larger for every later grant
    const char* token() const noexcept { return stn_lock_token(get()); }
    std::int32_t state() const noexcept { return stn_lock_state(get()); } // one of stn_lock_state
    std::int32_t loss() const noexcept { return stn_lock_loss(get()); }   // of a lost lock a stn_reason

    // Waits until it is held no longer, whyever; false: it still is.
    bool wait_lost(std::chrono::milliseconds timeout = for_ever) const {
        stn_error* e = nullptr;
        const std::int32_t code = stn_lock_wait_lost(get(), timeout.count(), &e);
        const detail::handle<stn_error, stn_error_free> owned(e);
        if (code == STN_OK || code == STN_TIMEOUT) return code == STN_OK;
        throw error(e);
    }
    // Renews now, with the same ttl as ever. Rarely needed: renewal goes by itself.
    void renew(std::chrono::milliseconds deadline = by_default) const {
        tell([&](stn_queue* q, stn_error** e) { return stn_lock_renew(get(), deadline.count(), q, 0, e); });
    }
    // Gives it back and waits for the answer. Throws lost if it had been lost before, also to another (not_mine).
    void release(std::chrono::milliseconds deadline = by_default) const {
        tell([&](stn_queue* q, stn_error** e) { return stn_lock_release(get(), deadline.count(), q, 0, e); });
    }
    // Forgets it: it stays in the store until its ttl is over.
    void leave() const {
        detail::must([&](stn_error** e) { return stn_lock_leave(get(), e); });
    }
    stn_lock* get() const noexcept { return lock_.get(); }

  private:
    friend std::optional<lock> try_lock(const client&, std::string_view, const lock_policy&, const stn_scope*);

    lock(const client& c, std::string_view name, const lock_policy& how, std::int64_t deadline_ms,
         const stn_scope* within) {
        const detail::mailbox box;
        detail::must([&](stn_error** e) {
            return stn_lock_acquire(c.get(), name.data(), name.size(), nullptr, how.get(), deadline_ms, within,
                                    box.get(), 0, nullptr, 0, nullptr, e);
        });
        lock_.reset(stn_event_take_lock(box.wait().get()));
    }
    template <class F> static void tell(F&& f) {
        const detail::mailbox box;
        detail::must([&](stn_error** e) { return f(box.get(), e); });
        box.wait();
    }

    detail::handle<stn_lock, stn_lock_free> lock_;
};

// Asks once, without waiting; nullopt: somebody else holds it.
[[nodiscard]] inline std::optional<lock> try_lock(const client& c, std::string_view name, const lock_policy& how,
                                                  const stn_scope* within = nullptr) {
    try {
        return lock(c, name, how, 0, within);
    } catch (const error& e) {
        if (e.code() != STN_BUSY) throw;
        return std::nullopt;
    }
}
[[nodiscard]] inline std::optional<lock> try_lock(const client& c, std::string_view name, const lock_options& how,
                                                  const stn_scope* within = nullptr) {
    return try_lock(c, name, lock_policy(how), within);
}

// The run of one slot in your hands. One that ends without done(), by an exception too, has failed.
class tick {
  public:
    explicit tick(stn_tick* mine) noexcept : tick_(mine) {}
    // When its slot began, since the epoch by the store's clock.
    std::chrono::milliseconds slot() const noexcept { return std::chrono::milliseconds(stn_tick_slot_ms(get())); }
    std::int64_t fence() const noexcept { return stn_tick_fence(get()); }
    const char* token() const noexcept { return stn_tick_token(get()); }

    // The slot stays used. Throws lost if the run took longer than at_most and is another's by now.
    void done(std::chrono::milliseconds deadline = by_default) const { end(1, deadline); }
    // It failed: another host may take the slot.
    void undone(std::chrono::milliseconds deadline = by_default) const { end(0, deadline); }
    stn_tick* get() const noexcept { return tick_.get(); }

  private:
    void end(std::int32_t ok, std::chrono::milliseconds deadline) const {
        const detail::mailbox box;
        detail::must([&](stn_error** e) { return stn_tick_done(get(), ok, deadline.count(), box.get(), 0, e); });
        box.wait();
    }

    detail::handle<stn_tick, stn_tick_free> tick_;
};

// Why a slot is not ours.
struct no_tick {
    std::int32_t reason = STN_REASON_NONE; // taken: it was given out; still_running: the run of an earlier slot goes on
    std::chrono::milliseconds left{0};     // to the next slot, or until that run counts as dead
};

// Asks for the slot of this moment; nullopt: it is not ours, and *why tells why.
[[nodiscard]] inline std::optional<tick> try_tick(const client& c, std::string_view name, const tick_options& how,
                                                  no_tick* why = nullptr,
                                                  std::chrono::milliseconds deadline = by_default) {
    const detail::mailbox box;
    const std::string json =
        detail::options_text().add("every", how.every).add("offset", how.offset).add("at_most", how.at_most).text();
    detail::must([&](stn_error** e) {
        return stn_tick_acquire(c.get(), name.data(), name.size(), json.c_str(), deadline.count(), box.get(), 0,
                                nullptr, e);
    });
    const auto ev = box.wait();
    if (stn_event_kind(ev.get()) == STN_EVENT_TICK) return tick(stn_event_take_tick(ev.get()));
    if (why != nullptr) {
        *why = {stn_event_reason(ev.get()), std::chrono::milliseconds(stn_event_ttl_left_ms(ev.get()))};
    }
    return std::nullopt;
}

// Claims an id: true for the first claimant until ttl is over, false for all others.
[[nodiscard]] inline bool once(const client& c, std::string_view id, std::chrono::milliseconds ttl,
                               std::chrono::milliseconds deadline = by_default) {
    const detail::mailbox box;
    detail::must([&](stn_error** e) {
        return stn_once(c.get(), id.data(), id.size(), ttl.count(), deadline.count(), box.get(), 0, nullptr, e);
    });
    return stn_event_status(box.wait().get()) == STN_OK;
}

// What stands in a lock's key, as the JSON text of stn_lock_inspect; nullopt: it is free. With `key` that store key is
// looked at, whatever the name.
inline std::optional<std::string> inspect(const client& c, std::string_view name, std::string_view key = {},
                                          std::chrono::milliseconds deadline = by_default) {
    const detail::mailbox box;
    detail::must([&](stn_error** e) {
        return stn_lock_inspect(c.get(), name.data(), name.size(), key.data(), key.size(), deadline.count(), box.get(),
                                0, nullptr, e);
    });
    const auto ev = box.wait();
    if (stn_event_kind(ev.get()) == STN_EVENT_ABSENT) return std::nullopt;
    return std::string(detail::bytes_of(ev));
}

#if defined(STANCHION_JSON)
// The same for programs to read.
struct lock_seen {
    bool ours = false; // a lock of this library, by whomever; else the next three
    std::string token; // are empty
    std::int64_t fence = 0;
    std::string label;
    std::optional<std::chrono::milliseconds> ttl; // nullopt: it does not end by itself
};
inline std::optional<lock_seen> inspect_lock(const client& c, std::string_view name, std::string_view key = {},
                                             std::chrono::milliseconds deadline = by_default) {
    const auto text = inspect(c, name, key, deadline);
    if (!text) return std::nullopt;
    const auto j = nlohmann::json::parse(*text);
    lock_seen seen;
    seen.ours = j.at("ours").get<bool>();
    seen.token = j.value("token", "");
    seen.fence = j.value("fence", std::int64_t{0});
    seen.label = j.value("label", "");
    if (const auto& ttl = j.at("ttl_ms"); !ttl.is_null()) seen.ttl = std::chrono::milliseconds(ttl.get<std::int64_t>());
    return seen;
}
#endif

} // namespace stanchion

#endif // STANCHION_STANCHION_HPP
