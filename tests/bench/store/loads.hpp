// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stn::bench {

inline std::string key_of(int n) {
    return "user:" + std::to_string(100'000 + n);
}
inline std::string store_key_of(int n) {
    return "stn:v:bench:{" + key_of(n) + "}";
}

// Each returns GETs a second of the same small value, for about `ms`.

// The floor: hiredis alone, blocking, a connection for each thread.
[[nodiscard]] double raw_sync(std::uint16_t port, int threads, int ms);
// The floor: hiredis alone, one thread, `depth` commands written at once, then their replies read.
[[nodiscard]] double raw_pipeline(std::uint16_t port, int depth, int ms);

// Ours, one client for all.
class own_client {
  public:
    own_client(const std::string& url, int keys);
    ~own_client();
    own_client(const own_client&) = delete;
    own_client& operator=(const own_client&) = delete;

    // stn_cache_get and stn_queue_next, a queue for each thread.
    [[nodiscard]] double get(int threads, int ms);
    // stn_cache_get_or_load.
    [[nodiscard]] double get_or_load(int threads, int ms);
    // stn_cache_get with `depth` in flight on one thread's queue.
    [[nodiscard]] double get_in_flight(int depth, int ms);

    [[nodiscard]] std::uint64_t commands() const;

  private:
    struct handles;
    handles* of_;
};

} // namespace stn::bench
