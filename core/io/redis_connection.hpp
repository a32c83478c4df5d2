// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "io/reply_builder.hpp"
#include "io/resolver.hpp"
#include "io/tls.hpp"
#include "protocol/reply.hpp"

struct redisContext;

namespace stn {

struct unix_path {
    std::string path;
};
using endpoint = std::variant<net_address, unix_path>;

// One socket to one address, never waited for: connecting, then perhaps TLS, then words out and replies in.
// hiredis connects, encrypts and parses; nobody of us dies of SIGPIPE.
class redis_connection {
  public:
    enum class phase : std::uint8_t { connecting, securing, open, failed };

    // `tls` null: none. `name` is who the certificate must be for.
    redis_connection(const endpoint& where, std::shared_ptr<tls_context> tls, std::string name);
    ~redis_connection();
    redis_connection(const redis_connection&) = delete;
    redis_connection& operator=(const redis_connection&) = delete;

    [[nodiscard]] phase at() const noexcept { return phase_; }
    [[nodiscard]] const error& failure() const noexcept { return failure_; } // when failed
    [[nodiscard]] int fd() const noexcept;
    // What the descriptor has to be waited for, besides something to read.
    [[nodiscard]] bool wants_write() const noexcept;

    // Goes on with connecting and securing; call it when the descriptor is ready.
    void advance();

    // Once open. Words go to the buffer; `write` sends what the socket takes.
    [[nodiscard]] bool append(std::span<const std::string_view> words);
    [[nodiscard]] std::size_t unsent() const noexcept;
    [[nodiscard]] bool blocked() const noexcept { return blocked_; } // the socket took only a part
    void write();
    // Reads of what has arrived; `next` gives the replies one by one, all of them before the next `read`. True:
    // there may be more.
    bool read();
    [[nodiscard]] bool next(reply& out, bool& push);
    // Says that nothing more will come from us, and gives the peer `patience_ms` to take it.
    void finish(int patience_ms);
    // Closes the descriptor and nothing else.
    void abandon_after_fork() noexcept;

  private:
    void fail_with(status code, std::string why);
    void fail_of_context();
    bool feed();
    void secure();

    const std::shared_ptr<tls_context> tls_;
    const std::string name_;
    reply_builder builder_; // before the context, whose reader refers to it
    redisContext* context_ = nullptr;
    ssl_st* session_ = nullptr; // the context's, once it has it
    phase phase_ = phase::connecting;
    bool blocked_ = false;
    bool heard_ = false; // anything at all, once open
    error failure_;
    std::unique_ptr<char[]> gulp_; // what was read last, of which
    std::size_t gulped_ = 0;       // so much is there, and
    std::size_t fed_ = 0;          // so much the reader has had
    std::string line_;             // of `append`, kept for its memory
};

} // namespace stn
