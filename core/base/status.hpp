// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

namespace stn {

// The one table of outcomes: X(name, number, retryable, text). Numbers are part of the C ABI and are
// never reused; a code exists only where a caller can react to it in a way of its own.
#define STN_STATUS_TABLE(X)                                                        \
    X(ok, 0, false, "ok")                                                          \
    X(absent, -1, false, "there is no such thing")                                 \
    X(invalid_argument, -2, false, "an argument is not valid")                     \
    X(unknown_option, -3, false, "there is no option of that name")                \
    X(too_large, -4, false, "the value or key is too large")                       \
    X(collision, -5, false, "the key holds something that is not ours")            \
    X(undecodable, -6, false, "the stored value cannot be decoded")                \
    X(load_failed, -7, false, "the loader failed")                                 \
    X(would_deadlock, -8, false, "the call would wait for itself")                 \
    X(overloaded, -9, true, "too many loads are running already")                  \
    X(busy, -10, true, "somebody else holds it")                                   \
    X(timeout, -11, true, "the deadline passed")                                   \
    X(cancelled, -12, false, "the call was cancelled")                             \
    X(uncertain, -13, true, "the reply was lost: it may have been applied or not") \
    X(lost, -14, false, "it was held and is held no longer")                       \
    X(not_mine, -15, false, "it belongs to somebody else")                         \
    X(refused, -16, true, "the store refused the command")                         \
    X(unavailable, -17, true, "the store cannot be reached")                       \
    X(denied, -18, false, "the store's access rules forbid it")                    \
    X(not_redis, -19, false, "the server does not speak the Redis protocol")       \
    X(unsupported, -20, false, "not supported")                                    \
    X(closed, -21, false, "the client or queue is closed")                         \
    X(forked, -22, false, "the handle was made before a fork")                     \
    X(no_memory, -23, true, "out of memory")                                       \
    X(internal, -24, false, "a fault inside the library")

enum class status : std::int32_t {
#define STN_STATUS_ENUM(name, number, retryable, text) name = number,
    STN_STATUS_TABLE(STN_STATUS_ENUM)
#undef STN_STATUS_ENUM
};

[[nodiscard]] std::string_view status_name(status code) noexcept;
[[nodiscard]] std::string_view status_text(status code) noexcept;
[[nodiscard]] bool status_retryable(status code) noexcept;

} // namespace stn
