// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "protocol/reply.hpp"
#include "support/certificates.hpp"
#include "support/plain_connection.hpp"
#include "support/scratch_folder.hpp"

namespace stn::test {

enum class server_kind : std::uint8_t { redis, valkey };
inline constexpr server_kind server_kinds[] = {server_kind::redis, server_kind::valkey};

[[nodiscard]] std::string_view server_name(server_kind kind) noexcept;

// The program: $STN_REDIS_SERVER or $STN_VALKEY_SERVER, else redis-server or valkey-server of the PATH, else
// what packaging/bootstrap_*.sh has put into build/deps. Throws, with what to do, when there is none: a
// test that needs a server fails without it and is never skipped.
[[nodiscard]] std::string server_program(server_kind kind);

struct live_tls {
    certificate_files shown;    // by the server
    std::string client_ca = {}; // whose clients it lets in; empty: it asks for no certificate
};

struct live_options {
    std::vector<std::string> config = {}; // more lines of its configuration: "maxmemory 3mb"
    std::string password = {};            // of the default user; part of the URLs
    std::optional<live_tls> tls = {};     // listens for TLS too, on a port of its own
};

// A real server of a test's own: on free ports of 127.0.0.1 and a unix socket, in a temporary folder,
// nothing kept on disk unless `config` says so. It is killed by the destructor, and by the kernel when
// the thread that started it ends, however that ends.
//
//     live_server redis(server_kind::redis);
//     redis.ask({"CONFIG", "SET", "maxmemory", "1"});
//
// Everything that fails throws std::runtime_error, with the end of the server's log.
class live_server {
  public:
    explicit live_server(server_kind kind, live_options options = {});
    ~live_server();
    live_server(const live_server&) = delete;
    live_server& operator=(const live_server&) = delete;

    [[nodiscard]] server_kind kind() const { return kind_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::uint16_t tls_port() const { return tls_port_; }
    [[nodiscard]] std::string url() const;      // redis://127.0.0.1:...
    [[nodiscard]] std::string tls_url() const;  // rediss://localhost:...
    [[nodiscard]] std::string unix_url() const; // unix:///...
    [[nodiscard]] std::string socket() const { return folder_.file("s"); }
    [[nodiscard]] std::string log() const;           // the end of it
    [[nodiscard]] pid_t pid() const { return pid_; } // -1: it does not run

    // A command over a connection of its own (unix socket, all rights), which is opened when needed.
    reply ask(const std::vector<std::string>& words);
    // A connection more, the same way.
    [[nodiscard]] plain_connection connect() const;

    void kill9();
    void stop();                  // SIGTERM: it saves what it is configured to
    void start();                 // on the same ports, where it does not run; returns when it answers PING
    void start_without_waiting(); // returns when its process runs: it may be LOADING, or not listen yet
    void wait_until_ready();
    void restart(); // kill9 and start
    void pause();   // SIGSTOP; returns when it stands
    void go_on();   // SIGCONT

  private:
    void write_config() const;
    void spawn();
    bool got_its_ports();
    [[nodiscard]] bool running(); // reaps it when not
    [[nodiscard]] bool ready();
    void await_end(std::chrono::seconds at_most);
    [[noreturn]] void give_up(const std::string& what) const;

    const server_kind kind_;
    const live_options options_;
    const std::string program_;
    const scratch_folder folder_;
    std::uint16_t port_ = 0;
    std::uint16_t tls_port_ = 0;
    pid_t pid_ = -1;
    std::optional<plain_connection> admin_;
};

} // namespace stn::test
