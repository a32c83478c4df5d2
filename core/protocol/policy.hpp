// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stn {

// What a cache promises its callers; one immutable value per handle. Defaults are the documented
// ones. A time of 0 means "not set" unless its line says otherwise.
struct fill_policy {
    std::int64_t ttl_ms = 0;      // 0: this handle can get and invalidate only
    std::int64_t soft_ttl_ms = 0; // refreshed from here on, still served
    std::int64_t absent_ttl_ms = 30'000;
    std::int64_t error_ttl_ms = 1'000; // 0: failures leave no marker
    std::int64_t lease_ms = 0;         // 0: three times the load time seen, within 1..10 s
    std::int64_t wait_ms = -1;         // -1: max(10 s, twice the expected load); 0: do not wait
    std::int64_t max_load_ms = 60'000;
    double jitter = 0.1;         // ttl + U(0, ttl x jitter)
    double early = 1.0;          // XFetch beta; 0: no early refresh
    std::uint32_t max_loads = 0; // 0: no bound while the store is up
    std::size_t max_value = std::size_t{8} << 20;
    bool coalesce = true;
    bool fleet = true;
    std::uint8_t codec = 0;
};

// How a lock is taken and kept.
struct lock_policy {
    std::int64_t ttl_ms = 0;       // required
    std::int64_t wait_ms = 10'000; // 0: a try; forever_ms (9223372036854775807): for ever
    std::int64_t max_hold_ms = 0;  // 0: no bound
    bool renew = true;
    std::string label; // shown to whoever inspects the key
    std::string key;   // the store's key, literally; empty: made of the name
};

// When the slots of a tick begin, and how long a run that tells nothing holds later ones up.
struct tick_policy {
    std::int64_t every_ms = 0; // required
    std::int64_t offset_ms = 0;
    std::int64_t at_most_ms = 0; // 0: `every`
};

// What a client is opened with.
struct client_settings {
    std::string prefix = "stn";
    std::int64_t command_timeout_ms = 250;
    std::int64_t connect_timeout_ms = 2'000;
    std::int64_t close_at_exit_ms = 0;  // 0: exit() does not close it
    std::uint32_t max_loads_down = 32;  // loads without the store, all caches together
    std::uint32_t max_waiters = 10'000; // callers that wait for a lock behind others of this client
    // Files of rediss://; empty: not given.
    std::string tls_ca_file;
    std::string tls_cert_file;
    std::string tls_key_file;
    std::string tls_server_name;
};

} // namespace stn
