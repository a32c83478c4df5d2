// SPDX-License-Identifier: MIT
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace stampede {

// The Redis or Valkey of a run, asked past the library: a connection of hiredis' own, blocking. What it counts
// is nobody else's opinion. Throws Refused.
class Server {
  public:
    // redis://, rediss:// or unix://, as the library takes them; `ca` is a file, or empty.
    Server(const std::string& url, const std::string& ca);

    const std::string& name() const { return name_; } // "redis 7.0.15"
    bool alone();                                     // no other client is connected
    ServerCounts counts();                            // since the server was started
    // Under a prefix: how many keys there are, and how many without a TTL.
    KeysLeft keys(const std::string& prefix);
    // Deletes them; how many are there all the same.
    std::uint64_t remove(const std::string& prefix);

  private:
    struct Freed {
        void operator()(redisContext* context) const { redisFree(context); }
        void operator()(redisReply* reply) const { freeReplyObject(reply); }
    };
    using Reply = std::unique_ptr<redisReply, Freed>;

    void secure(const std::string& host, const std::string& ca);
    Reply ask(const std::vector<std::string>& words);
    std::string info(const std::string& section);
    std::vector<std::string> scan(const std::string& prefix);

    std::unique_ptr<redisContext, Freed> context_;
    std::string name_;
};

} // namespace stampede
