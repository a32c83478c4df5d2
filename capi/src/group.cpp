// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include "io/open_store.hpp"
#include "protocol/options.hpp"

using namespace stn;

namespace {

constexpr std::size_t longest_text = 1'024;

// A group without a client still has deadlines to keep: it gets a small client of its own.
std::shared_ptr<client_handle> client_of_its_own() {
    auto opened = open_store("memory://");
    if (!opened) return nullptr;
    client_parts parts;
    parts.link = std::move(opened->link);
    parts.time = std::move(opened->time);
    parts.chance = std::move(opened->chance);
    return client_handle::open(std::move(parts));
}

outcome finished_with(std::int32_t code, std::string_view bytes, std::uint64_t host_ref) {
    outcome how;
    how.code = static_cast<status>(code);
    if (status_name(how.code) == "unknown") how.code = status::internal;
    how.host_ref = host_ref;
    if (how.code == status::ok) {
        how.storage.assign(bytes);
    } else if (how.code != status::absent) {
        how.why = fail(how.code, std::string(bytes.empty() ? status_text(how.code) : bytes.substr(0, longest_text)));
    }
    return how;
}

} // namespace

int32_t stn_group_new(stn_client* client, const char* options_json, stn_group** out, stn_error** err) noexcept {
    if (out != nullptr) *out = nullptr;
    return guarded(err, [&]() -> failure {
        if (client != nullptr) STN_TRY(check_handle(client, "client"));
        if (out == nullptr) return null_argument("out");
        if (const auto none = read_no_options(options_json == nullptr ? "{}" : options_json); !none) {
            return none.failure();
        }
        if (client != nullptr && client->handle->core->closing()) return fail(status::closed, "the client is closed");
        auto owner = client != nullptr ? client->handle : client_of_its_own();
        if (!owner) return fail(status::internal, "no memory store could be made for the group");
        *out = new stn_group{{}, group(std::move(owner))};
        return no_failure;
    });
}

void stn_group_free(stn_group* group) noexcept {
    free_handle(group);
}

int32_t stn_group_join(stn_group* group, const void* key, size_t n, int64_t deadline_ms, const stn_scope* within,
                       stn_queue* q, uint64_t tag, uint64_t* op, stn_flight** lead, stn_error** err) noexcept {
    if (op != nullptr) *op = 0;
    if (lead != nullptr) *lead = nullptr;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(group, "group"));
        STN_TRY(check_handle(q, "q"));
        STN_TRY(check_bytes(key, n, "key"));
        if (lead == nullptr) return null_argument("lead");
        std::uint64_t inside = 0;
        STN_TRY(scope_of(within, inside));
        stn::group::joined joined;
        STN_TRY(group->group.join(text_of(key, n), deadline_ms, inside, q->q, tag, joined));
        if (op != nullptr) *op = joined.op;
        if (joined.lead) *lead = new stn_flight{{}, std::move(*joined.lead)};
        return no_failure;
    });
}

int32_t stn_group_forget(stn_group* group, const void* key, size_t n, stn_error** err) noexcept {
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(group, "group"));
        STN_TRY(check_bytes(key, n, "key"));
        return group->group.forget(text_of(key, n));
    });
}

int32_t stn_flight_finish(stn_flight* flight, int32_t code, const void* p, size_t len, uint64_t host_ref,
                          uint32_t* shared, stn_error** err) noexcept {
    if (shared != nullptr) *shared = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(flight, "flight"));
        STN_TRY(check_bytes(p, len, "p"));
        if (host_ref != 0 && shared == nullptr) return null_argument("shared");
        if (code > 0) {
            return fail(status::invalid_argument, "code is " + std::to_string(code) + "; it is STN_OK or negative");
        }
        std::uint32_t told = 0;
        if (!flight->lead.finish([&] { return finished_with(code, text_of(p, len), host_ref); }, told)) {
            return fail(status::invalid_argument, "flight is finished already");
        }
        if (shared != nullptr) *shared = told;
        return no_failure;
    });
}

int32_t stn_flight_detach(stn_flight* flight, uint32_t* waiters) noexcept {
    if (waiters != nullptr) *waiters = 0;
    return guarded(nullptr, [&]() -> failure {
        STN_TRY(check_handle(flight, "flight"));
        if (waiters == nullptr) return null_argument("waiters");
        if (!flight->lead.detach(*waiters)) return fail(status::invalid_argument, "flight is finished already");
        return no_failure;
    });
}

stn_scope* stn_flight_scope(stn_flight* flight) noexcept {
    if (flight == nullptr || flight->made.forked()) return nullptr;
    return quietly<stn_scope*>(nullptr, [&] { return new stn_scope{{}, flight->lead.open_scope()}; });
}

void stn_flight_free(stn_flight* flight) noexcept {
    free_handle(flight);
}
