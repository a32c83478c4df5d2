// SPDX-License-Identifier: MIT
#include "fake_server.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <stdexcept>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/ports.hpp"

namespace stn::test {

struct fake_server::guest {
    int fd;
    std::string heard;

    // The next command that is there as a whole.
    std::optional<words> next() {
        const auto line_at = [&](std::size_t from) { return heard.find("\r\n", from); };
        auto end = line_at(0);
        if (end == std::string::npos) return std::nullopt;
        words out;
        if (heard[0] != '*') {
            out.push_back(heard.substr(0, end));
            heard.erase(0, end + 2);
            return out;
        }
        const auto n = std::stoul(heard.substr(1, end - 1));
        std::size_t at = end + 2;
        for (std::size_t i = 0; i < n; ++i) {
            end = line_at(at);
            if (end == std::string::npos) return std::nullopt;
            const auto size = std::stoul(heard.substr(at + 1, end - at - 1));
            if (heard.size() < end + 2 + size + 2) return std::nullopt;
            out.push_back(heard.substr(end + 2, size));
            at = end + 2 + size + 2;
        }
        heard.erase(0, at);
        return out;
    }
};

fake_server::fake_server(answers say, std::string greeting) : say_(std::move(say)), greeting_(std::move(greeting)) {
    for (int race = 0; door_ < 0 && race < 20; ++race) {
        port_ = free_port();
        door_ = listen_on(port_);
    }
    bell_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (door_ < 0 || bell_ < 0) throw std::runtime_error("no port for a test's fake server");
    thread_ = std::thread([this] { run(); });
}

fake_server::~fake_server() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(bell_, &one, sizeof one);
    thread_.join();
    ::close(door_);
    ::close(bell_);
}

void fake_server::run() {
    std::list<guest> guests;
    // False: it has gone, or is sent away.
    const auto serve = [&](guest& g) {
        std::array<char, 16'384> bytes{};
        const ssize_t n = ::recv(g.fd, bytes.data(), bytes.size(), 0);
        if (n <= 0) return false;
        g.heard.append(bytes.data(), static_cast<std::size_t>(n));
        while (const auto said = g.next()) {
            const auto answer = say_(*said);
            if (!answer) return false;
            if (::send(g.fd, answer->data(), answer->size(), MSG_NOSIGNAL) < 0) return false;
        }
        return true;
    };
    for (;;) {
        std::vector<pollfd> fds{{bell_, POLLIN, 0}, {door_, POLLIN, 0}};
        for (const guest& g : guests) fds.push_back({g.fd, POLLIN, 0});
        ::poll(fds.data(), fds.size(), -1);
        if (fds[0].revents != 0) break;
        std::size_t i = 2;
        for (auto g = guests.begin(); g != guests.end(); ++i) {
            const bool stays = fds[i].revents == 0 || serve(*g);
            if (!stays) ::close(g->fd);
            g = stays ? std::next(g) : guests.erase(g);
        }
        if (fds[1].revents == 0) continue;
        const int fd = ::accept4(door_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) continue;
        ++accepted_;
        if (!greeting_.empty()) ::send(fd, greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
        guests.push_back({fd, {}});
    }
    for (const guest& g : guests) ::close(g.fd);
}

std::optional<std::string> polite(const fake_server::words& words) {
    const std::string& verb = words.at(0);
    if (verb == "HELLO") return "%1\r\n$5\r\nproto\r\n:3\r\n";
    if (verb == "CLIENT" || verb == "AUTH" || verb == "SELECT") return "+OK\r\n";
    if (verb == "SCRIPT") return "$40\r\n" + std::string(40, 'a') + "\r\n";
    if (verb == "TIME") return "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
    if (verb == "PING") return "+PONG\r\n";
    return std::nullopt;
}

} // namespace stn::test
