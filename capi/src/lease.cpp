// SPDX-License-Identifier: MIT
#include "guard.hpp"

using namespace stn;

namespace {

constexpr std::size_t longest_text = 1'024;

failure answer(stn_lease* held, outcome how, uint64_t host_ref, stn_queue* q, uint64_t tag, uint32_t* shared) {
    if (host_ref != 0 && shared == nullptr) return null_argument("shared");
    lease::filled_to told;
    if (q != nullptr) {
        STN_TRY(check_handle(q, "q"));
        if (q->q->closed()) return fail(status::closed, "the queue is closed");
        told = {q->q, tag};
    }
    how.host_ref = host_ref;
    const auto answered = held->lease->answer(std::move(how), told);
    if (!answered) return fail(status::invalid_argument, "lease is answered already");
    if (shared != nullptr) *shared = answered->shared;
    return no_failure;
}

} // namespace

int32_t stn_lease_fulfil(stn_lease* lease, const void* p, size_t len, int32_t codec, int64_t ttl_ms,
                         int64_t soft_ttl_ms, uint64_t host_ref, stn_queue* q, uint64_t tag, uint32_t* shared,
                         stn_error** err) noexcept {
    if (shared != nullptr) *shared = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lease, "lease"));
        STN_TRY(check_bytes(p, len, "p"));
        if (auto no = stn::cache::check_lifetime(ttl_ms, soft_ttl_ms)) return no;
        const std::uint8_t own = lease->lease->codec();
        if (codec != STN_CODEC_DEFAULT && codec != own) {
            return fail(status::invalid_argument,
                        "codec " + std::to_string(codec) + " is not the cache's own (" + std::to_string(own) + ")");
        }
        outcome how;
        how.storage.assign(text_of(p, len));
        how.codec = own;
        how.ttl_ms = ttl_ms;
        how.soft_ttl_ms = soft_ttl_ms;
        return answer(lease, std::move(how), host_ref, q, tag, shared);
    });
}

int32_t stn_lease_fulfil_absent(stn_lease* lease, int64_t ttl_ms, uint64_t host_ref, stn_queue* q, uint64_t tag,
                                uint32_t* shared, stn_error** err) noexcept {
    if (shared != nullptr) *shared = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lease, "lease"));
        if (auto no = stn::cache::check_lifetime(ttl_ms, -1)) return no;
        outcome how;
        how.code = status::absent;
        how.ttl_ms = ttl_ms;
        return answer(lease, std::move(how), host_ref, q, tag, shared);
    });
}

int32_t stn_lease_fail(stn_lease* lease, int32_t code, const char* text, uint64_t host_ref, uint32_t* shared,
                       stn_error** err) noexcept {
    if (shared != nullptr) *shared = 0;
    return guarded(err, [&]() -> failure {
        STN_TRY(check_handle(lease, "lease"));
        if (code >= 0 || code == STN_ABSENT) {
            return fail(status::invalid_argument, "code is " + std::to_string(code) + "; it is a negative status");
        }
        outcome how;
        how.code = status_name(static_cast<status>(code)) == "unknown" ? status::internal : static_cast<status>(code);
        how.why = fail(how.code, std::string(status_text(how.code)));
        if (text != nullptr) how.why.message.assign(std::string_view(text).substr(0, longest_text));
        return answer(lease, std::move(how), host_ref, nullptr, 0, shared);
    });
}

int32_t stn_lease_detach(stn_lease* lease, uint32_t* waiters) noexcept {
    if (waiters != nullptr) *waiters = 0;
    return guarded(nullptr, [&]() -> failure {
        STN_TRY(check_handle(lease, "lease"));
        if (waiters == nullptr) return null_argument("waiters");
        if (!lease->lease->detach(*waiters)) return fail(status::invalid_argument, "lease is answered already");
        return no_failure;
    });
}

stn_scope* stn_lease_scope(stn_lease* lease) noexcept {
    if (lease == nullptr || lease->made.forked()) return nullptr;
    return quietly<stn_scope*>(nullptr, [&] { return new stn_scope{{}, lease->lease->open_scope()}; });
}

int32_t stn_lease_state(const stn_lease* lease) noexcept {
    if (lease == nullptr) return 0;
    if (lease->made.forked()) return STN_FORKED;
    return static_cast<int32_t>(lease->lease->at());
}

void stn_lease_free(stn_lease* lease) noexcept {
    free_handle(lease);
}
void stn_scope_free(stn_scope* scope) noexcept {
    free_handle(scope);
}
