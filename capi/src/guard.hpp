// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "handles.hpp"

// Every entry of the C ABI is `return guarded(err, [&]() -> failure { ... })`: nothing thrown inside
// leaves it. What is thrown means that nothing was done: what may throw comes before what counts.
namespace stn {

using failure = std::optional<error>;
inline const failure no_failure = std::nullopt;

// Where a test may throw from, inside the entry of that name and before anything is done.
#ifdef STN_TEST_FAULTS
extern void (*test_fault)(const char* entry);
inline void enter(const char* entry) {
    if (test_fault != nullptr) test_fault(entry);
}
#else
inline void enter(const char*) noexcept {}
#endif

std::int32_t report(stn_error** err, error why) noexcept;
std::int32_t report_no_memory(stn_error** err) noexcept;

template <class Body>
std::int32_t guarded(stn_error** err, Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
    if (err != nullptr) *err = nullptr;
    try {
        enter(entry);
        failure f = std::forward<Body>(body)();
        if (!f) return STN_OK;
        return report(err, std::move(*f));
    } catch (const std::bad_alloc&) {
        return report_no_memory(err);
    } catch (const queue_is_closed& e) {
        try {
            return report(err, fail(status::closed, e.what()));
        } catch (...) {
            return report_no_memory(err);
        }
    } catch (const std::exception& e) {
        try {
            return report(err, fail(status::internal, std::string("a fault inside the library: ") + e.what()));
        } catch (...) {
            return report_no_memory(err);
        }
    } catch (...) {
        try {
            return report(err, fail(status::internal, "a fault inside the library"));
        } catch (...) {
            return report_no_memory(err);
        }
    }
}

// The same for entries that cannot say why: `otherwise` when something was thrown.
template <class R, class Body> R quietly(R otherwise, Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
    try {
        enter(entry);
        return std::forward<Body>(body)();
    } catch (...) {
        return otherwise;
    }
}

inline failure null_argument(const char* name) {
    return fail(status::invalid_argument, std::string(name) + " is NULL");
}

template <class H> failure check_handle(const H* handle, const char* name) {
    if (handle == nullptr) return null_argument(name);
    if (handle->made.forked()) {
        return fail(status::forked, std::string(name) + " was made before a fork: open your own in the child");
    }
    return no_failure;
}

inline failure check_bytes(const void* p, std::size_t n, const char* name) {
    if (p == nullptr && n != 0) return null_argument(name);
    return no_failure;
}

inline failure check_wait(std::int64_t ms, const char* name) {
    if (ms < -1) {
        return fail(status::invalid_argument,
                    std::string(name) + " is " + std::to_string(ms) + "; it is -1 (the default), 0 or more");
    }
    return no_failure;
}

inline std::string_view text_of(const void* p, std::size_t n) {
    return {static_cast<const char*>(p), n};
}

// Frees a handle; one that was made before a fork is left alone but for what it says itself.
template <class H> void free_handle(H* handle) noexcept {
    if (handle != nullptr && !handle->made.forked()) delete handle;
}

#define STN_TRY(...) \
    if (stn::failure f_ = (__VA_ARGS__)) return f_

// The flight that `within` names.
inline failure scope_of(const stn_scope* within, std::uint64_t& flight) {
    flight = 0;
    if (within == nullptr) return no_failure;
    STN_TRY(check_handle(within, "within"));
    flight = within->flight;
    return no_failure;
}

// Readies an event for the host.
stn_event* finish_event(std::unique_ptr<stn_event> made) noexcept;

} // namespace stn
