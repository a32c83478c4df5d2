// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stn::test {

// A server that says what it is told to, in a thread of its own, on a port of 127.0.0.1.
//
//     fake_server loads([](const auto& words) { return "-LOADING so it does\r\n"; });
//
// `answers` gets each command's words and gives the bytes to send; none closes the connection. Commands that come
// in another form than the library's own (arrays of bulks) are one word each line.
class fake_server {
  public:
    using words = std::vector<std::string>;
    using answers = std::function<std::optional<std::string>(const words&)>;

    // `greeting`: said to everybody who comes.
    explicit fake_server(answers say, std::string greeting = {});
    ~fake_server();
    fake_server(const fake_server&) = delete;
    fake_server& operator=(const fake_server&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::uint64_t accepted() const { return accepted_.load(); }

  private:
    struct guest;
    void run();

    const answers say_;
    const std::string greeting_;
    std::uint16_t port_ = 0;
    int door_ = -1;
    int bell_ = -1;
    std::atomic<std::uint64_t> accepted_{0};
    std::thread thread_;
};

// What a good server answers to whatever the library says to begin with, in RESP3; none: it is something else.
[[nodiscard]] std::optional<std::string> polite(const fake_server::words& words);

} // namespace stn::test
