// SPDX-License-Identifier: MIT
#pragma once

#include <stanchion/stanchion.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace stampede {

// What the C library gives is freed by its own function.
template <auto free> struct FreedBy {
    template <typename T> void operator()(T* handle) const noexcept { free(handle); }
};

using Client = std::unique_ptr<stn_client, FreedBy<stn_client_free>>;
using Cache = std::unique_ptr<stn_cache, FreedBy<stn_cache_free>>;
using Queue = std::unique_ptr<stn_queue, FreedBy<stn_queue_free>>;
using Event = std::unique_ptr<stn_event, FreedBy<stn_event_free>>;
using Error = std::unique_ptr<stn_error, FreedBy<stn_error_free>>;

// The library refused what the run cannot do without.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline std::string described(int32_t status, const stn_error* error) {
    std::string text = stn_status_name(status);
    if (error && *stn_error_message(error)) text += std::string(": ") + stn_error_message(error);
    return text;
}

// call(&error) -> status; throws Refused unless it is STN_OK.
template <typename Call> void check(const std::string& what, Call call) {
    stn_error* raw = nullptr;
    int32_t status = call(&raw);
    Error error(raw);
    if (status != STN_OK) throw Refused(what + ": " + described(status, raw));
}

} // namespace stampede
