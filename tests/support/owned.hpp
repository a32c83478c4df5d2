// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "stanchion/stanchion.h"

namespace stn::test {

struct freer {
    void operator()(stn_client* p) const { stn_client_free(p); }
    void operator()(stn_queue* p) const { stn_queue_free(p); }
    void operator()(stn_event* p) const { stn_event_free(p); }
    void operator()(stn_cache* p) const { stn_cache_free(p); }
    void operator()(stn_lease* p) const { stn_lease_free(p); }
    void operator()(stn_group* p) const { stn_group_free(p); }
    void operator()(stn_flight* p) const { stn_flight_free(p); }
    void operator()(stn_error* p) const { stn_error_free(p); }
    void operator()(stn_lock* p) const { stn_lock_free(p); }
    void operator()(stn_tick* p) const { stn_tick_free(p); }
};
// A handle of stanchion.h with its owner.
template <class T> using owned = std::unique_ptr<T, freer>;

} // namespace stn::test
