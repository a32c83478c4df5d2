// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace stn::test {

enum class way : std::uint8_t { to_server, to_client };
enum class ending : std::uint8_t { closed, reset };

// What a network does to a client: a TCP proxy on a port of 127.0.0.1, in a thread of its own.
//
//     proxy net(server.port());
//     ... net.url() goes to the client ...
//     net.swallow(way::to_client);            the server hears, the client does not
//     net.lose_reply_to("GET");               once: done there, never heard of here
//     net.cut();
//     net.pass();                             and all is well again
//
// Every order is carried out when its function returns. `which` is the number of a connection, the
// first is 0; else it goes for all there are and all to come. The server is connected to anew for each
// connection; where nobody listens, the client's connection is reset. What is ordered for a way holds
// until `pass`, and the latest order for a quality of a way replaces the one before.
class proxy {
  public:
    static constexpr int everybody = -1;

    explicit proxy(std::uint16_t server_port);
    ~proxy();
    proxy(const proxy&) = delete;
    proxy& operator=(const proxy&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string url(std::string_view scheme = "redis") const; // rediss: of localhost

    // What is held or delayed goes on at once, new connections are accepted, nothing is lost any more.
    // What was swallowed stays lost.
    void pass(int which = everybody);

    void delay(way which_way, std::chrono::milliseconds by, int which = everybody);
    void hold(way which_way, int which = everybody);    // bytes and endings stay here until `pass`
    void swallow(way which_way, int which = everybody); // bytes and endings vanish: both ways is half-open
    void trickle(way which_way, int which = everybody); // one byte a write

    void cut(ending how = ending::closed, int which = everybody); // those there are
    // So many bytes more go that way, and then the connection is closed.
    void cut_after(way which_way, std::uint64_t bytes, int which = everybody);

    // Traps: one at a time, for the first connection on which `text` (empty: anything) goes to the
    // server. The later one takes the place of the earlier.
    // The server gets all, and everything that it says from then on is lost, with the connection.
    void lose_reply_to(std::string text, int which = everybody);
    // The write that ends `text` does not get through, and the connection is closed.
    void lose_request(std::string text, int which = everybody);
    [[nodiscard]] std::uint64_t sprung() const; // traps

    // New connections:
    void answer_nothing(); // accepted, and that was all
    void refuse();         // refused
    void ignore();         // not even refused: nobody answers the SYN

    [[nodiscard]] std::uint64_t accepted() const;             // connections, ever
    [[nodiscard]] std::uint64_t alive() const;                // as far as the client's end knows
    [[nodiscard]] std::uint64_t carried(way which_way) const; // bytes delivered, ever
    [[nodiscard]] std::uint64_t writes(way which_way) const;  // that delivered any

  private:
    class machine;
    const std::unique_ptr<machine> machine_;
};

} // namespace stn::test
