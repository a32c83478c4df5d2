// SPDX-License-Identifier: MIT
#include "line.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include <poll.h>

#include "protocol/store_url.hpp"

namespace stn::test {

namespace {

redis_settings settings_of(const std::string& url, std::int64_t connect_timeout_ms) {
    const auto where = parse_store_url(url);
    if (!where) throw std::runtime_error(where.failure().message);
    redis_settings how;
    how.where = *where;
    how.connect_timeout_ms = connect_timeout_ms;
    return how;
}

} // namespace

line::line(const std::string& url, std::int64_t connect_timeout_ms)
    : link_(settings_of(url, connect_timeout_ms), std::make_shared<system_random>()) {}

command_seq line::send(command c) {
    const command_seq seq = next_++;
    link_.submit(seq, std::move(c), time_.now_ms());
    return seq;
}

void line::turn(std::int64_t at_most_ms) {
    transport_event e;
    const mono_ms now = time_.now_ms();
    while (link_.poll(e, now)) {
        if (e.what == transport_event::kind::reply) {
            replies[e.seq].push_back({e.how, std::move(e.answer)});
        } else {
            news.push_back(std::move(e));
        }
        e = {};
    }
    if (!holds_back) link_.flush(now);
    const auto on = link_.watch();
    std::vector<pollfd> fds;
    for (const watched& w : on) fds.push_back({w.fd, static_cast<short>(w.writable ? POLLIN | POLLOUT : POLLIN), 0});
    const std::int64_t wait = std::clamp<std::int64_t>(link_.next_ms() - time_.now_ms(), 0, at_most_ms);
    ::poll(fds.data(), fds.size(), static_cast<int>(wait));
    const auto again = link_.watch();
    for (std::size_t i = 0; i < again.size() && i < fds.size(); ++i) again[i].ready = fds[i].revents != 0;
}

bool line::turn_until(const std::function<bool()>& done, std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!done()) {
        if (std::chrono::steady_clock::now() > until) return false;
        turn(20);
    }
    return true;
}

bool line::connect() {
    const command_seq first = send({verb::ping, script_id::count_, {}, {}});
    return turn_until([&] { return replies.contains(first); }) && replies[first].front().how == delivery::answered;
}

std::size_t line::told(transport_event::kind what) const {
    return static_cast<std::size_t>(
        std::count_if(news.begin(), news.end(), [&](const transport_event& e) { return e.what == what; }));
}

std::size_t line::ended_as(delivery how) const {
    std::size_t n = 0;
    for (const auto& [seq, all] : replies) {
        if (all.size() == 1 && all.front().how == how) ++n;
    }
    return n;
}

} // namespace stn::test
