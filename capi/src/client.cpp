// SPDX-License-Identifier: MIT
#include "exit_hook.hpp"
#include "guard.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/duration.hpp"
#include "io/open_store.hpp"
#include "protocol/options.hpp"

using namespace stn;

namespace {

constexpr std::size_t stat_fields = [] {
    std::size_t n = 0;
#define STN_STATS_ONE(name, doc) ++n;
    STN_STATS_MAP(STN_STATS_ONE)
#undef STN_STATS_ONE
    return n;
}();
static_assert(stat_fields == stat_count, "the public snapshot and the core's table are one");
static_assert(sizeof(stn_stats) == stat_count * sizeof(std::uint64_t));

const char* const stat_names[] = {
#define STN_STATS_NAME(name, doc) #name,
    STN_STATS_MAP(STN_STATS_NAME)
#undef STN_STATS_NAME
};

constexpr std::int64_t close_default_ms = 5'000;

} // namespace

int32_t stn_client_open(const char* url, const char* options_json, stn_client** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        if (url == nullptr) return null_argument("url");
        if (out == nullptr) return null_argument("out");
        auto settings = read_client_options(options_json == nullptr ? "{}" : options_json);
        if (!settings) return settings.failure();
        auto opened = open_store(url, *settings);
        if (!opened) return opened.failure();
        client_parts parts;
        parts.link = std::move(opened->link);
        parts.time = std::move(opened->time);
        parts.chance = std::move(opened->chance);
        parts.manual = opened->manual;
        parts.settings = *settings;
        auto made = std::make_unique<stn_client>();
        made->manual = std::move(opened->manual);
        made->handle = client_handle::open(std::move(parts));
        if (settings->close_at_exit_ms > 0) close_at_exit(made->handle->core, settings->close_at_exit_ms);
        *out = made.release();
        return no_failure;
    });
}

int32_t stn_client_ready(stn_client* client, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                         stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_handle(q, "q"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        if (client->handle->core->closing()) return fail(status::closed, "the client is closed");
        if (q->q->closed()) return fail(status::closed, "the queue is closed");
        client_core& core = *client->handle->core;
        const mono_ms now = core.time.now_ms();
        const mono_ms until = add_ms(now, deadline_ms < 0 ? core.settings.connect_timeout_ms : deadline_ms);
        errand task([&core, home = q->q, tag, until](mono_ms) { core.ready.ask(home, tag, until); });
        promised word(q->q.get());
        if (!core.turns.post(std::move(task))) return fail(status::closed, "the client is closed");
        word.stands();
        return no_failure;
    });
}

int32_t stn_client_close(stn_client* client, int64_t deadline_ms, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        const auto home = std::make_shared<event_queue>(0);
        client->handle->core->begin_close(deadline_ms < 0 ? close_default_ms : deadline_ms, home, 0);
        event e;
        home->next(-1, e);
        return no_failure;
    });
}

int32_t stn_client_close_begin(stn_client* client, int64_t deadline_ms, stn_queue* q, uint64_t tag,
                               stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_handle(q, "q"));
        STN_TRY(check_wait(deadline_ms, "deadline_ms"));
        client->handle->core->begin_close(deadline_ms < 0 ? close_default_ms : deadline_ms, q->q, tag);
        return no_failure;
    });
}

void stn_client_free(stn_client* client) noexcept {
    if (client != nullptr && client->made.forked()) client->handle->core->abandon_after_fork();
    free_handle(client);
}

int32_t stn_client_advance(stn_client* client, int64_t ms, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        if (ms < 0 || ms > max_duration_ms) {
            return fail(status::invalid_argument, "ms is " + std::to_string(ms) + "; it is 0 to ten years");
        }
        if (client->handle->core->closing()) return fail(status::closed, "the client is closed");
        if (!client->manual) {
            return fail(status::unsupported, "only a memory store with clock=manual can be advanced");
        }
        client->manual->advance(ms);
        return no_failure;
    });
}

int32_t stn_client_watch(stn_client* client, uint32_t mask, stn_queue* q, uint64_t tag, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        STN_TRY(check_handle(q, "q"));
        if (client->handle->core->closing()) return fail(status::closed, "the client is closed");
        client->handle->core->watch(q->q, mask, tag);
        return no_failure;
    });
}

int32_t stn_client_stats(stn_client* client, stn_stats* out, size_t size, stn_error** err) noexcept {
    if (out != nullptr && size != 0) std::memset(out, 0, size);
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        if (out == nullptr) return null_argument("out");
        const stat_block all = client->handle->core->stats();
        std::memcpy(out, all.of.data(), std::min(size, sizeof(stn_stats)));
        return no_failure;
    });
}

int32_t stn_client_stats_json(stn_client* client, stn_cache* cache, stn_bytes** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(client, "client"));
        if (cache != nullptr) STN_TRY(check_handle(cache, "cache"));
        if (out == nullptr) return null_argument("out");
        if (cache != nullptr && cache->cache.owner()->core != client->handle->core) {
            return fail(status::invalid_argument, "cache is of another client");
        }
        const stat_block all = cache == nullptr ? client->handle->core->stats() : cache->cache.state().stats.snapshot();
        std::string object = "{";
        for (std::size_t i = 0; i < stat_count; ++i) {
            const auto s = static_cast<stat>(i);
            const bool of_connection = s == stat::commands || s == stat::commands_lost || s == stat::messages ||
                                       s == stat::breaker_opened || s == stat::events;
            if (cache != nullptr && of_connection) continue;
            if (object.size() > 1) object += ',';
            object.append("\"").append(stat_names[i]).append("\":").append(std::to_string(all.of[i]));
        }
        object += '}';
        *out = new stn_bytes{std::move(object)};
        return no_failure;
    });
}
