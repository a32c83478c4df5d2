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

// What a client is opened with.
struct client_settings {
    std::string prefix = "stn";
    std::int64_t command_timeout_ms = 250;
    std::int64_t connect_timeout_ms = 2'000;
    std::uint32_t max_loads_down = 32; // loads without the store, all caches together
    // Files of rediss://; empty: not given.
    std::string tls_ca_file;
    std::string tls_cert_file;
    std::string tls_key_file;
    std::string tls_server_name;
};

} // namespace stn
