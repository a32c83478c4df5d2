// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <stanchion/stanchion.h>

namespace faults {

template <auto Free> struct freed {
    template <class T> void operator()(T* handle) const noexcept { Free(handle); }
};
using lease_handle = std::unique_ptr<stn_lease, freed<stn_lease_free>>;
using flight_handle = std::unique_ptr<stn_flight, freed<stn_flight_free>>;
using event_handle = std::unique_ptr<stn_event, freed<stn_event_free>>;
using scope_handle = std::unique_ptr<stn_scope, freed<stn_scope_free>>;
using bytes_handle = std::unique_ptr<stn_bytes, freed<stn_bytes_free>>;
using client_handle = std::unique_ptr<stn_client, freed<stn_client_free>>;
using cache_handle = std::unique_ptr<stn_cache, freed<stn_cache_free>>;
using queue_handle = std::unique_ptr<stn_queue, freed<stn_queue_free>>;
using group_handle = std::unique_ptr<stn_group, freed<stn_group_free>>;
using policy_handle = std::unique_ptr<stn_policy, freed<stn_policy_free>>;

// A client with a cache, a group and three queues; `q` and `r` share their host references. It knows
// which operations were accepted, and when it ends it checks that each had one terminal event, and no
// other had any.
class stage {
  public:
    enum class meanwhile : bool { nothing, a_load };
    explicit stage(const char* url = "memory://", meanwhile goes_on = meanwhile::a_load);
    ~stage();
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;

    std::uint64_t tag() { return ++last_tag_; }
    // An operation with this tag was accepted (or answers with one more terminal event).
    void owes(std::uint64_t tag) { ++owed_[tag]; }

    // Its queue was freed: nobody will know.
    void forget(std::uint64_t tag) { owed_.erase(tag); }

    // The terminal event of an operation; the test fails when it does not come.
    stn_event* answer(stn_queue* from, std::uint64_t tag);
    // Reads what there is, for what was read by the call on trial itself.
    void read(stn_event* e);

    std::uint64_t fetch(stn_queue* to, std::string_view key, const stn_scope* within = nullptr);
    std::uint64_t join(stn_queue* to, std::string_view key); // the group; somebody else leads
    lease_handle lead(stn_queue* to, std::string_view key);  // fetches, and takes the lease
    flight_handle lead_group(stn_queue* to, std::string_view key);
    void store(std::string_view key, std::string_view value);
    std::string stored(std::string_view key); // "-": nothing

    [[nodiscard]] std::string value(stn_queue* from, std::uint64_t tag);
    [[nodiscard]] std::size_t flights() const; // of this client that have not ended, besides the stage's own
    void all_flights_end();                    // waits for it; the test fails when they do not

    client_handle client;
    cache_handle cache;
    group_handle group;
    queue_handle q;
    queue_handle r;
    queue_handle s;

  private:
    void read_all(stn_queue* from);
    void keep_busy();

    std::uint64_t last_tag_ = 0;
    std::map<std::uint64_t, int> owed_;
    std::map<std::uint64_t, int> came_;
    std::vector<event_handle> events_;
    queue_handle busy_queue_;
    cache_handle busy_cache_;
    lease_handle busy_; // a load that goes on
};

} // namespace faults
