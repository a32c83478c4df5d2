// SPDX-License-Identifier: MIT
#pragma once

#include <stanchion/stanchion.h>

#include <memory>

namespace cli {

// What the C library gives is freed by its own function.
template <auto free> struct freed_by {
    template <typename T> void operator()(T* handle) const noexcept { free(handle); }
};

using client_handle = std::unique_ptr<stn_client, freed_by<stn_client_free>>;
using queue_handle = std::unique_ptr<stn_queue, freed_by<stn_queue_free>>;
using event_handle = std::unique_ptr<stn_event, freed_by<stn_event_free>>;
using error_handle = std::unique_ptr<stn_error, freed_by<stn_error_free>>;
using cache_handle = std::unique_ptr<stn_cache, freed_by<stn_cache_free>>;
using lock_handle = std::unique_ptr<stn_lock, freed_by<stn_lock_free>>;
using tick_handle = std::unique_ptr<stn_tick, freed_by<stn_tick_free>>;

} // namespace cli
