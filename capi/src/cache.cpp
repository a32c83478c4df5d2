// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include <new>

#include "protocol/keys.hpp"
#include "protocol/options.hpp"

using namespace stn;

namespace {

void clear(std::uint64_t* op, stn_event** now) {
    if (op != nullptr) *op = 0;
    if (now != nullptr) *now = nullptr;
}

// The part of a call that all entries check alike.
failure make_call(const stn_cache* cache, const stn_policy* policy, const void* key, size_t n, int64_t deadline_ms,
                  const stn_scope* within, const stn_queue* q, uint64_t tag, stn::cache::call& c) {
    STN_TRY(check_handle(cache, "cache"));
    STN_TRY(check_handle(q, "q"));
    STN_TRY(check_bytes(key, n, "key"));
    if (policy != nullptr) {
        STN_TRY(check_handle(policy, "policy"));
        if (policy->of != &cache->cache.state()) {
            return fail(status::invalid_argument, "policy was made for another cache");
        }
        c.policy = policy->policy;
    }
    STN_TRY(scope_of(within, c.within));
    c.key = text_of(key, n);
    c.deadline_ms = deadline_ms;
    c.home = q->q;
    c.tag = tag;
    return no_failure;
}

// Takes an answer that is there at once, for callers that want it `now`.
class answer_now {
  public:
    answer_now(stn::cache::call& c, stn_event** now) : now_(now) {
        if (now != nullptr) c.now = &event_;
    }
    failure begun(const result<std::uint64_t>& how, std::uint64_t* op) {
        if (!how) return how.failure();
        if (event_) {
            auto made = std::make_unique<stn_event>();
            made->e = std::move(*event_);
            *now_ = finish_event(std::move(made));
        }
        if (op != nullptr) *op = *how;
        return no_failure;
    }

  private:
    stn_event** now_;
    std::optional<event> event_;
};

failure check_flags(std::uint32_t flags, std::uint32_t known) {
    if ((flags & ~known) == 0) return no_failure;
    return fail(status::invalid_argument, "flags has the unknown flag " + std::to_string(flags & ~known));
}

} // namespace

int32_t stn_cache_open(stn_client* client, const char* name, size_t n, const char* options_json, stn_cache** out,
                       stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_bytes(name, n, "name"));
        if (out == nullptr) return null_argument("out");
        if (!valid_name(text_of(name, n))) {
            return fail(status::invalid_argument, "the name of a cache is 1 to 64 of the characters A-Z a-z 0-9 . _ -",
                        std::string(text_of(name, n)));
        }
        const auto options = read_cache_options(options_json == nullptr ? "{}" : options_json);
        if (!options) return options.failure();
        if (client->handle->core->closing()) return fail(status::closed, "the client is closed");
        std::string full(text_of(name, n));
        if (options->version != 0) full = versioned_name(full, options->version);
        *out = new stn_cache{{}, stn::cache(client->handle, full, options->policy)};
        return no_failure;
    });
}

void stn_cache_free(stn_cache* cache) noexcept {
    free_handle(cache);
}

int32_t stn_policy_new(stn_cache* cache, const char* json, stn_policy** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(cache, "cache"));
        if (out == nullptr) return null_argument("out");
        const auto policy = read_policy(json == nullptr ? "{}" : json, cache->cache.policy());
        if (!policy) return policy.failure();
        *out = new stn_policy{{}, std::make_shared<const fill_policy>(*policy), &cache->cache.state()};
        return no_failure;
    });
}

void stn_policy_free(stn_policy* policy) noexcept {
    free_handle(policy);
}

int32_t stn_cache_fetch(stn_cache* cache, const stn_policy* policy, const void* key, size_t n, int64_t deadline_ms,
                        uint32_t flags, const stn_scope* within, stn_queue* q, uint64_t tag, uint64_t* op,
                        stn_event** now, stn_error** err) noexcept {
    clear(op, now);
    return guarded(err, [&]() -> failure {
        stn::cache::call c;
        STN_TRY(make_call(cache, policy, key, n, deadline_ms, within, q, tag, c));
        STN_TRY(check_flags(flags, STN_FETCH_FORCE | STN_FETCH_NO_STORE | STN_FETCH_REFRESH));
        c.force = (flags & STN_FETCH_FORCE) != 0;
        c.no_store = (flags & STN_FETCH_NO_STORE) != 0;
        c.refresh = (flags & STN_FETCH_REFRESH) != 0;
        answer_now at_once(c, now);
        return at_once.begun(cache->cache.fetch(c), op);
    });
}

int32_t stn_cache_refetch(stn_cache* cache, const stn_policy* policy, const stn_event* undecodable, int64_t deadline_ms,
                          const stn_scope* within, stn_queue* q, uint64_t tag, uint64_t* op, stn_event** now,
                          stn_error** err) noexcept {
    clear(op, now);
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(undecodable, "undecodable"));
        if (undecodable->e.kind != event_kind::value || undecodable->e.what->key.empty()) {
            return fail(status::invalid_argument, "undecodable is not a VALUE event of a cache");
        }
        stn::cache::call c;
        const std::string& key = undecodable->e.what->key;
        STN_TRY(make_call(cache, policy, key.data(), key.size(), deadline_ms, within, q, tag, c));
        answer_now at_once(c, now);
        return at_once.begun(cache->cache.refetch(c, *undecodable->e.what), op);
    });
}

int32_t stn_cache_get(stn_cache* cache, const void* key, size_t n, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                      uint64_t* op, stn_event** now, stn_error** err) noexcept {
    clear(op, now);
    return guarded(err, [&]() -> failure {
        stn::cache::call c;
        STN_TRY(make_call(cache, nullptr, key, n, deadline_ms, nullptr, q, tag, c));
        answer_now at_once(c, now);
        return at_once.begun(cache->cache.get(c), op);
    });
}

int32_t stn_cache_put(stn_cache* cache, const stn_policy* policy, const void* key, size_t n, const void* p, size_t len,
                      int32_t codec, int64_t ttl_ms, int64_t soft_ttl_ms, int64_t deadline_ms, stn_queue* q,
                      uint64_t tag, uint64_t* op, stn_error** err) noexcept {
    clear(op, nullptr);
    return guarded(err, [&]() -> failure {
        stn::cache::call c;
        STN_TRY(make_call(cache, policy, key, n, deadline_ms, nullptr, q, tag, c));
        STN_TRY(check_bytes(p, len, "p"));
        answer_now at_once(c, nullptr);
        return at_once.begun(cache->cache.put(c, text_of(p, len), codec, ttl_ms, soft_ttl_ms), op);
    });
}

int32_t stn_cache_invalidate(stn_cache* cache, const void* key, size_t n, uint32_t flags, int64_t deadline_ms,
                             stn_queue* q, uint64_t tag, uint64_t* op, stn_error** err) noexcept {
    clear(op, nullptr);
    return guarded(err, [&]() -> failure {
        stn::cache::call c;
        STN_TRY(make_call(cache, nullptr, key, n, deadline_ms, nullptr, q, tag, c));
        STN_TRY(check_flags(flags, STN_INVALIDATE_STALE));
        answer_now at_once(c, nullptr);
        return at_once.begun(cache->cache.invalidate(c, (flags & STN_INVALIDATE_STALE) != 0), op);
    });
}

// ---- the blocking form

namespace {

constexpr std::size_t largest_value = std::size_t{512} << 20;
constexpr std::size_t longest_text = 1'024;

outcome failed_load(std::int32_t code, const std::string& text) {
    outcome o;
    o.code = code < 0 ? static_cast<status>(code) : status::load_failed;
    o.why = fail(o.code, text.empty() ? std::string(status_text(o.code)) : text);
    return o;
}

outcome run_loader(stn_loader loader, void* ud, stn_lease& held, std::uint8_t codec) {
    stn_sink sink;
    sink.how.codec = codec;
    const std::int32_t code = loader(ud, &held, &sink);
    if (code != STN_OK && code != STN_ABSENT) return failed_load(code, sink.how.why.message);
    sink.how.why = {};
    if (code == STN_ABSENT || sink.absent) {
        sink.how.code = status::absent;
        sink.how.storage.clear();
    }
    return std::move(sink.how);
}

} // namespace

int32_t stn_sink_write(stn_sink* sink, const void* p, size_t n) noexcept {
    return guarded(nullptr, [&]() -> failure {
        if (sink == nullptr) return null_argument("sink");
        STN_TRY(check_bytes(p, n, "p"));
        if (n > largest_value - sink->how.storage.size()) return fail(status::too_large, "the value is over 512 MiB");
        sink->how.storage.append(text_of(p, n));
        sink->absent = false;
        return no_failure;
    });
}

int32_t stn_sink_absent(stn_sink* sink) noexcept {
    return guarded(nullptr, [&]() -> failure {
        if (sink == nullptr) return null_argument("sink");
        sink->absent = true;
        sink->how.storage.clear();
        return no_failure;
    });
}

int32_t stn_sink_ttl(stn_sink* sink, int64_t ttl_ms, int64_t soft_ttl_ms) noexcept {
    return guarded(nullptr, [&]() -> failure {
        if (sink == nullptr) return null_argument("sink");
        if (auto no = stn::cache::check_lifetime(ttl_ms, soft_ttl_ms)) return no;
        sink->how.ttl_ms = ttl_ms;
        sink->how.soft_ttl_ms = soft_ttl_ms;
        return no_failure;
    });
}

int32_t stn_sink_codec(stn_sink* sink, int32_t codec) noexcept {
    return guarded(nullptr, [&]() -> failure {
        if (sink == nullptr) return null_argument("sink");
        if (codec != STN_CODEC_DEFAULT && codec != sink->how.codec) {
            return fail(status::invalid_argument, "codec is not the cache's own");
        }
        return no_failure;
    });
}

int32_t stn_sink_error(stn_sink* sink, const char* text) noexcept {
    return guarded(nullptr, [&]() -> failure {
        if (sink == nullptr) return null_argument("sink");
        if (text == nullptr) return null_argument("text");
        sink->how.why.message.assign(text, 0, longest_text);
        return no_failure;
    });
}

int32_t stn_cache_get_or_load(stn_cache* cache, const stn_policy* policy, const void* key, size_t n,
                              int64_t deadline_ms, uint32_t flags, const stn_scope* within, stn_loader loader, void* ud,
                              stn_event** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        if (loader == nullptr) return null_argument("loader");
        if (out == nullptr) return null_argument("out");
        STN_TRY(check_flags(flags & ~static_cast<uint32_t>(STN_FETCH_REFRESH), STN_FETCH_FORCE | STN_FETCH_NO_STORE));
        if ((flags & STN_FETCH_REFRESH) != 0) {
            return fail(status::invalid_argument, "flags has REFRESH: a refresh needs a queue, see stn_cache_fetch");
        }
        STN_TRY(check_handle(cache, "cache"));
        client_core& core = *cache->cache.owner()->core;
        const stn_queue mailbox{{}, core.private_queues.borrow()};
        stn::cache::call c;
        STN_TRY(make_call(cache, policy, key, n, deadline_ms, within, &mailbox, 0, c));
        c.force = (flags & STN_FETCH_FORCE) != 0;
        c.no_store = (flags & STN_FETCH_NO_STORE) != 0;
        auto made = std::make_unique<stn_event>();
        event& e = made->e;
        const auto op = cache->cache.fetch(c);
        if (!op) return op.failure();
        const status s = mailbox.q->next(-1, e);
        if (s != status::ok) return fail(status::internal, "the private queue ended before its answer");
        if (e.kind != event_kind::lease) core.private_queues.give_back(mailbox.q);
        if (e.kind == event_kind::lease) {
            e.held->mark_taken();
            stn_lease held{{}, std::move(e.held)};
            const auto answered = held.lease->answer(run_loader(loader, ud, held, held.lease->codec()), {});
            const outcome_ptr& how = answered->how;
            if (how->code != status::ok && how->code != status::absent) return how->why;
            event own;
            own.kind = how->code == status::ok ? event_kind::value : event_kind::absent;
            own.code = how->code;
            own.what = how;
            own.age_ms = 0;
            own.load_ms = how->delta_ms;
            made->e = std::move(own);
        } else if (e.kind == event_kind::error) {
            return e.what->why;
        }
        *out = finish_event(std::move(made));
        return no_failure;
    });
}
