// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <stanchion/stanchion.h>

#include "timed.hpp"

namespace stn::bench {

inline void must(std::int32_t code, const char* what) {
    if (code != STN_OK) give_up(what);
}

inline stn_client* open_client(const std::string& url) {
    stn_client* c = nullptr;
    must(::stn_client_open(url.c_str(), R"({"command_timeout": "10s"})", &c, nullptr), "no client");
    stn_queue* q = nullptr;
    stn_event* e = nullptr;
    must(::stn_queue_new(0, &q, nullptr), "no queue");
    must(::stn_client_ready(c, 5'000, q, 0, nullptr), "no connection");
    must(::stn_queue_next(q, -1, &e, nullptr), "no connection");
    must(::stn_event_status(e), "no connection");
    ::stn_event_free(e);
    ::stn_queue_free(q);
    return c;
}

inline void close_client(stn_client* c) {
    ::stn_client_close(c, 1'000, nullptr);
    ::stn_client_free(c);
}

// One name, taken and given back by one thread with a queue of its own.
class one_lock {
  public:
    one_lock(stn_client* client, std::string name) : client_(client), name_(std::move(name)) {
        must(::stn_queue_new(0, &queue_, nullptr), "no queue");
        must(::stn_queue_set_sync(queue_, nullptr), "no sync queue");
        must(::stn_lock_policy_new(R"({"ttl": "30s", "wait": "60s"})", &policy_, nullptr), "no policy");
    }
    ~one_lock() {
        ::stn_lock_policy_free(policy_);
        ::stn_queue_free(queue_);
    }
    one_lock(const one_lock&) = delete;
    one_lock& operator=(const one_lock&) = delete;

    void take() {
        must(::stn_lock_acquire(client_, name_.data(), name_.size(), nullptr, policy_, -1, nullptr, queue_, 0, nullptr,
                                0, nullptr, nullptr),
             "no acquire");
        stn_event* const e = next();
        lock_ = ::stn_event_take_lock(e);
        ::stn_event_free(e);
        if (lock_ == nullptr) give_up("an acquire of ours brought no lock");
    }
    void give_back() {
        must(::stn_lock_release(lock_, -1, queue_, 0, nullptr), "no release");
        stn_event* const e = next();
        if (::stn_event_kind(e) != STN_EVENT_DONE) give_up("a release of ours failed");
        ::stn_event_free(e);
        ::stn_lock_free(std::exchange(lock_, nullptr));
    }

  private:
    stn_event* next() {
        stn_event* e = nullptr;
        must(::stn_queue_next(queue_, -1, &e, nullptr), "no answer");
        return e;
    }
    stn_client* const client_;
    const std::string name_;
    stn_queue* queue_ = nullptr;
    stn_lock_policy* policy_ = nullptr;
    stn_lock* lock_ = nullptr;
};

} // namespace stn::bench
