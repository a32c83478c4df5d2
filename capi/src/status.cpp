// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include "base/duration.hpp"
#include "base/status.hpp"

#define STN_STATUS_SAME(number, NAME, name, retryable, text)                                              \
    static_assert(STN_##NAME == static_cast<std::int32_t>(stn::status::name), "one table in two places"); \
    static_assert(STN_##NAME == number, "one table in two places");
STN_STATUS_MAP(STN_STATUS_SAME)
#undef STN_STATUS_SAME

namespace stn {

#ifdef STN_TEST_FAULTS
void (*test_fault)(const char* entry) = nullptr;
#endif

namespace {

// Never freed, so that running out of memory can always be told.
stn_error& out_of_memory() noexcept {
    static auto* const e = new stn_own_error(fail(status::no_memory, "out of memory"));
    return *e;
}

[[maybe_unused]] const stn_error& made_in_time = out_of_memory();

} // namespace

std::int32_t report(stn_error** err, error why) noexcept {
    const auto code = static_cast<std::int32_t>(why.code);
    if (err == nullptr) return code;
    *err = new (std::nothrow) stn_own_error(std::move(why));
    return *err == nullptr ? report_no_memory(err) : code;
}

std::int32_t report_no_memory(stn_error** err) noexcept {
    if (err != nullptr) *err = &out_of_memory();
    return STN_NO_MEMORY;
}

} // namespace stn

using namespace stn;

uint32_t stn_version_number(void) noexcept {
    return STN_VERSION_NUMBER;
}
const char* stn_version_string(void) noexcept {
    return STN_VERSION_STRING;
}
uint32_t stn_abi_version(void) noexcept {
    return STN_ABI_VERSION;
}

const char* stn_status_name(int32_t code) noexcept {
    // The names are literals, so they end with a NUL.
    return status_name(static_cast<status>(code)).data();
}

int32_t stn_duration_parse(const char* text, int64_t* ms, stn_error** err) noexcept {
    if (ms != nullptr) *ms = 0;
    return guarded(err, [&]() -> failure {
        if (text == nullptr) return null_argument("text");
        if (ms == nullptr) return null_argument("ms");
        const auto parsed = parse_duration(text);
        if (!parsed) return parsed.failure();
        *ms = *parsed;
        return no_failure;
    });
}

int32_t stn_error_code(const stn_error* error) noexcept {
    return error == nullptr ? STN_OK : static_cast<int32_t>(error->what->code);
}

const char* stn_error_message(const stn_error* error) noexcept {
    return error == nullptr ? "" : error->what->message.c_str();
}

const void* stn_error_key(const stn_error* error, size_t* n) noexcept {
    const bool none = error == nullptr || error->what->key.empty();
    if (n != nullptr) *n = none ? 0 : error->what->key.size();
    return none ? nullptr : error->what->key.data();
}

const char* stn_error_server_text(const stn_error* error) noexcept {
    return error == nullptr || error->what->server_text.empty() ? nullptr : error->what->server_text.c_str();
}

uint32_t stn_error_flags(const stn_error* error) noexcept {
    if (error == nullptr) return 0;
    uint32_t flags = 0;
    if (status_retryable(error->what->code)) flags |= STN_ERROR_RETRYABLE;
    if (!error->what->server_text.empty()) flags |= STN_ERROR_SERVER_REPLY;
    if (error->what->may_have_applied) flags |= STN_ERROR_MAY_HAVE_APPLIED;
    return flags;
}

void stn_error_free(stn_error* error) noexcept {
    if (error != &out_of_memory()) delete static_cast<stn_own_error*>(error);
}

const void* stn_bytes_data(const stn_bytes* bytes) noexcept {
    return bytes == nullptr ? nullptr : bytes->data.c_str();
}
size_t stn_bytes_size(const stn_bytes* bytes) noexcept {
    return bytes == nullptr ? 0 : bytes->data.size();
}
void stn_bytes_free(stn_bytes* bytes) noexcept {
    delete bytes;
}
