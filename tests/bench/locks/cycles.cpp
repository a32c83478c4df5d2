// SPDX-License-Identifier: MIT
#include "cycles.hpp"

#include <atomic>
#include <cstring>

#include <hiredis/hiredis.h>
#include <stanchion/stanchion.h>

#include "one_lock.hpp"
#include "timed.hpp"

namespace stn::bench {

namespace {

constexpr char compare_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

class raw_connection {
  public:
    explicit raw_connection(std::uint16_t port) : c_(::redisConnect("127.0.0.1", port)) {
        if (c_ == nullptr || c_->err != 0) give_up("hiredis cannot connect");
        redisReply* const r = ask("SCRIPT LOAD %s", compare_delete);
        if (r->type != REDIS_REPLY_STRING) give_up("hiredis could not load a script");
        sha_ = r->str;
        ::freeReplyObject(r);
    }
    ~raw_connection() { ::redisFree(c_); }
    raw_connection(const raw_connection&) = delete;
    raw_connection& operator=(const raw_connection&) = delete;

    void cycle(const std::string& key) {
        redisReply* r = ask("SET %b 0123456789abcdef NX PX 30000", key.data(), key.size());
        if (r->type != REDIS_REPLY_STATUS) give_up("hiredis did not get the lock");
        ::freeReplyObject(r);
        r = ask("EVALSHA %s 1 %b 0123456789abcdef", sha_.c_str(), key.data(), key.size());
        if (r->type != REDIS_REPLY_INTEGER || r->integer != 1) give_up("hiredis could not give the lock back");
        ::freeReplyObject(r);
    }

  private:
    template <class... Args> redisReply* ask(const char* format, Args... args) {
        auto* const r = static_cast<redisReply*>(::redisCommand(c_, format, args...));
        if (r == nullptr) give_up("hiredis got no reply");
        return r;
    }
    redisContext* c_;
    std::string sha_;
};

} // namespace

double raw_cycles(std::uint16_t port, int threads, int ms) {
    return timed(threads, ms, [&](int me, const std::atomic<bool>& go_on) {
        raw_connection c(port);
        const std::string key = "raw:{job:" + std::to_string(me) + "}";
        std::uint64_t n = 0;
        for (; go_on; ++n) c.cycle(key);
        return n;
    });
}

own_cycles::own_cycles(const std::string& url) : client_(open_client(url)) {}

own_cycles::~own_cycles() {
    close_client(client_);
}

double own_cycles::run(int threads, int ms) {
    return timed(threads, ms, [&](int me, const std::atomic<bool>& go_on) {
        one_lock lock(client_, "job:" + std::to_string(me));
        std::uint64_t n = 0;
        for (; go_on; ++n) {
            lock.take();
            lock.give_back();
        }
        return n;
    });
}

} // namespace stn::bench
