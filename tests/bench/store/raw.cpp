// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <string>

#include <hiredis/hiredis.h>

#include "loads.hpp"
#include "timed.hpp"

namespace stn::bench {

namespace {

redisContext* connect(std::uint16_t port) {
    redisContext* const c = ::redisConnect("127.0.0.1", port);
    if (c == nullptr || c->err != 0) give_up("hiredis cannot connect");
    return c;
}

void take(redisContext* c) {
    void* r = nullptr;
    if (::redisGetReply(c, &r) != REDIS_OK || static_cast<redisReply*>(r)->type != REDIS_REPLY_STRING) {
        give_up("hiredis got no value");
    }
    ::freeReplyObject(r);
}

} // namespace

double raw_sync(std::uint16_t port, int threads, int ms) {
    return timed(threads, ms, [&](int me, const std::atomic<bool>& go_on) {
        redisContext* const c = connect(port);
        const std::string key = store_key_of(me);
        std::uint64_t n = 0;
        for (; go_on; ++n) {
            ::redisAppendCommand(c, "GET %b", key.data(), key.size());
            take(c);
        }
        ::redisFree(c);
        return n;
    });
}

double raw_pipeline(std::uint16_t port, int depth, int ms) {
    return timed(1, ms, [&](int, const std::atomic<bool>& go_on) {
        redisContext* const c = connect(port);
        std::vector<std::string> keys;
        for (int i = 0; i < depth; ++i) keys.push_back(store_key_of(i));
        std::uint64_t n = 0;
        while (go_on) {
            for (const std::string& key : keys) {
                const char* words[] = {"GET", key.data()};
                const std::size_t sizes[] = {3, key.size()};
                ::redisAppendCommandArgv(c, 2, words, sizes);
            }
            for (int i = 0; i < depth; ++i) take(c);
            n += static_cast<std::uint64_t>(depth);
        }
        ::redisFree(c);
        return n;
    });
}

} // namespace stn::bench
