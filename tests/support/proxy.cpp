// SPDX-License-Identifier: MIT
#include "support/proxy.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "support/ports.hpp"

namespace stn::test {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t most_queued = 16 << 20; // then its source has to wait
constexpr std::size_t most_read = 64 << 10;
constexpr int backlog = 511;

// Closes what it owns.
class fd_owner {
  public:
    explicit fd_owner(int fd = -1) : fd_(fd) {}
    fd_owner(fd_owner&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    fd_owner& operator=(fd_owner&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~fd_owner() { reset(); }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }
    void reset_connection() {
        const linger at_once{1, 0};
        if (fd_ >= 0) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        reset();
    }
    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

void no_delay(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Under way, perhaps already there.
fd_owner connect_to(std::uint16_t port) {
    fd_owner fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    no_delay(fd.get());
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) fd.reset();
    return fd;
}

struct rules {
    std::chrono::milliseconds delay{0};
    bool hold = false;
    bool swallow = false;
    bool trickle = false;
    std::optional<std::uint64_t> cut_after;
};

struct chunk {
    steady::time_point due;
    std::string bytes;
};

// One way of one connection.
struct stream {
    rules by;
    std::deque<chunk> queue;
    std::size_t queued = 0;
    bool ended = false;    // its source has nothing more to say
    bool broken = false;   // ... because its connection was reset
    bool told_end = false; // and its sink knows

    [[nodiscard]] bool reads() const { return !ended && queued < most_queued; }
    [[nodiscard]] bool writes(steady::time_point now) const {
        return !by.hold && !queue.empty() && queue.front().due <= now;
    }
    void take(std::string bytes, steady::time_point now) {
        if (by.swallow) return;
        queued += bytes.size();
        queue.push_back({now + by.delay, std::move(bytes)});
    }
};

struct trap {
    bool reply = false; // else the request is lost
    std::string text;
    int which = proxy::everybody;
};

struct connection {
    int number = 0;
    fd_owner client;
    fd_owner server; // none: nobody answers
    bool mute = false;
    std::array<stream, 2> ways;
    std::string said;      // the end of what went to the server, for a trap's text to be found in
    bool lost = false;     // a trap: the next that the server says is swallowed, then the end
    bool draining = false; // the client is gone, the server hears what there is

    stream& at(way w) { return ways[static_cast<std::size_t>(w)]; }
    [[nodiscard]] const fd_owner& source(way w) const { return w == way::to_server ? client : server; }
    [[nodiscard]] const fd_owner& sink(way w) const { return w == way::to_server ? server : client; }
    void end(ending how) {
        if (how == ending::reset) {
            client.reset_connection();
            server.reset_connection();
        }
        client.reset();
        server.reset();
    }
    [[nodiscard]] bool over() const { return !client && !server; }
};

constexpr std::array both = {way::to_server, way::to_client};

} // namespace

// Everything but `jobs_` belongs to the thread.
class proxy::machine {
  public:
    explicit machine(std::uint16_t server_port);
    ~machine();

    // Runs on the machine's thread, and is done when this returns.
    void run(const std::function<void()>& job);
    void arm(trap t);
    void each(int which, const std::function<void(connection&)>& what);
    void rule(way w, int which, const std::function<void(rules&)>& change);
    void pass(int which);
    void listen();
    void ignore();

    const std::uint16_t server_port;
    std::uint16_t port = 0;
    fd_owner listener;
    bool mute = false;
    std::vector<fd_owner> fillers; // of the backlog, while SYNs are ignored
    std::array<rules, 2> rules_to_come;
    std::optional<trap> armed;
    std::uint64_t sprung = 0;
    std::uint64_t accepted = 0;
    std::array<std::uint64_t, 2> carried{};
    std::array<std::uint64_t, 2> writes{};
    std::list<connection> connections;

  private:
    void work();
    void run_jobs();
    void accept_all();
    void read(connection& c, way w, steady::time_point now);
    void write(connection& c, way w, steady::time_point now);
    void tell_end(connection& c, way w);
    bool trapped(connection& c, const std::string& bytes);
    int wait_ms(steady::time_point now) const;

    fd_owner wake_;
    std::mutex mutex_;
    std::condition_variable done_;
    std::deque<std::function<void()>> jobs_; // guarded by mutex_
    std::uint64_t posted_ = 0;               // guarded by mutex_
    std::uint64_t finished_ = 0;             // guarded by mutex_
    bool stopping_ = false;
    std::thread thread_;
};

proxy::machine::machine(std::uint16_t to) : server_port(to), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    while (!listener) {
        port = free_port();
        listener.reset(listen_on(port, backlog));
    }
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { work(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

proxy::machine::~machine() {
    run([this] { stopping_ = true; });
    thread_.join();
}

void proxy::machine::run(const std::function<void()>& job) {
    std::exception_ptr fault;
    std::unique_lock lock(mutex_);
    jobs_.emplace_back([&] {
        try {
            job();
        } catch (...) {
            fault = std::current_exception();
        }
    });
    const std::uint64_t mine = ++posted_;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
    done_.wait(lock, [&] { return finished_ >= mine; });
    if (fault) std::rethrow_exception(fault);
}

void proxy::machine::run_jobs() {
    std::uint64_t ignored = 0;
    static_cast<void>(!::read(wake_.get(), &ignored, sizeof ignored));
    const std::lock_guard lock(mutex_);
    for (; !jobs_.empty(); jobs_.pop_front(), ++finished_) jobs_.front()();
    done_.notify_all();
}

void proxy::machine::each(int which, const std::function<void(connection&)>& what) {
    for (connection& c : connections) {
        if (which == everybody || which == c.number) what(c);
    }
}

void proxy::machine::rule(way w, int which, const std::function<void(rules&)>& change) {
    if (which == everybody) change(rules_to_come[static_cast<std::size_t>(w)]);
    each(which, [&](connection& c) { change(c.at(w).by); });
}

void proxy::machine::arm(trap t) {
    armed = std::move(t);
    for (connection& c : connections) c.said.clear();
}

void proxy::machine::pass(int which) {
    for (const way w : both) {
        rule(w, which, [](rules& r) { r = {}; });
        each(which, [&](connection& c) {
            for (chunk& held : c.at(w).queue) held.due = {};
        });
    }
    if (which != everybody) return;
    armed.reset();
    mute = false;
    listen();
}

void proxy::machine::listen() {
    if (listener && fillers.empty()) return;
    listener.reset();
    fillers.clear();
    listener.reset(listen_on(port, backlog));
    if (!listener) throw std::runtime_error("somebody else took the port of a test's proxy");
}

void proxy::machine::ignore() {
    if (!fillers.empty()) return;
    listener.reset();
    listener.reset(listen_on(port, 0));
    // the kernel keeps one connection more than it was asked to, and drops the SYNs of all the others
    for (int i = 0; i < 4; ++i) fillers.push_back(connect_to(port));
}

void proxy::machine::work() {
    std::vector<pollfd> polled;
    while (!stopping_) {
        const auto before = steady::now();
        polled.assign(1, {wake_.get(), POLLIN, 0});
        if (listener && fillers.empty()) polled.push_back({listener.get(), POLLIN, 0});
        for (connection& c : connections) {
            for (const way w : both) {
                const stream& in = c.at(w);
                const stream& out = c.at(w == way::to_server ? way::to_client : way::to_server);
                const auto events = (in.reads() ? POLLIN : 0) | (out.writes(before) ? POLLOUT : 0);
                if (c.source(w) && events != 0) polled.push_back({c.source(w).get(), static_cast<short>(events), 0});
            }
        }
        ::poll(polled.data(), polled.size(), wait_ms(before));
        run_jobs();
        accept_all();
        const auto now = steady::now();
        for (connection& c : connections) {
            for (const way w : both) {
                read(c, w, now);
                write(c, w, now);
                tell_end(c, w);
            }
        }
        std::erase_if(connections, [](const connection& c) { return c.over(); });
    }
}

int proxy::machine::wait_ms(steady::time_point now) const {
    std::int64_t wait = -1;
    for (const connection& c : connections) {
        for (const stream& s : c.ways) {
            if (s.by.hold || s.queue.empty() || s.queue.front().due <= now) continue;
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(s.queue.front().due - now).count();
            wait = wait < 0 ? left : std::min<std::int64_t>(wait, left);
        }
    }
    return static_cast<int>(std::min<std::int64_t>(wait, 1'000'000));
}

void proxy::machine::accept_all() {
    while (listener && fillers.empty()) {
        fd_owner client(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!client) return;
        no_delay(client.get());
        connection& c = connections.emplace_back();
        c.number = static_cast<int>(accepted++);
        c.client = std::move(client);
        c.mute = mute;
        for (const way w : both) c.at(w).by = rules_to_come[static_cast<std::size_t>(w)];
        if (mute) continue;
        c.server = connect_to(server_port);
        if (!c.server) c.end(ending::reset);
    }
}

// True: these bytes go no further.
bool proxy::machine::trapped(connection& c, const std::string& bytes) {
    if (!armed || (armed->which != everybody && armed->which != c.number)) return false;
    c.said += bytes;
    const bool found = c.said.find(armed->text) != std::string::npos;
    const std::size_t kept = armed->text.empty() ? 0 : armed->text.size() - 1;
    if (c.said.size() > kept) c.said.erase(0, c.said.size() - kept);
    if (!found) return false;
    const bool reply = armed->reply;
    armed.reset();
    ++sprung;
    if (reply) {
        c.lost = true;
        return false;
    }
    c.end(ending::closed);
    return true;
}

void proxy::machine::read(connection& c, way w, steady::time_point now) {
    stream& s = c.at(w);
    while (c.source(w) && s.reads()) {
        std::string bytes(most_read, '\0');
        const ssize_t n = ::recv(c.source(w).get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
        // a connection still under way
        if (n < 0 && errno == ENOTCONN) return;
        if (n <= 0) {
            s.ended = true;
            s.broken = n < 0;
            return;
        }
        bytes.resize(static_cast<std::size_t>(n));
        if (c.mute || c.draining) continue;
        if (w == way::to_server && trapped(c, bytes)) return;
        if (w == way::to_client && c.lost) {
            // the server may not have read the command yet: it hears the end only behind it
            c.client.reset();
            c.draining = true;
            c.at(way::to_server).ended = true;
            c.at(way::to_client) = {};
            continue;
        }
        s.take(std::move(bytes), now);
    }
}

void proxy::machine::write(connection& c, way w, steady::time_point now) {
    stream& s = c.at(w);
    while (c.sink(w) && s.writes(now)) {
        chunk& next = s.queue.front();
        std::size_t want = s.by.trickle ? 1 : next.bytes.size();
        if (s.by.cut_after) want = static_cast<std::size_t>(std::min<std::uint64_t>(want, *s.by.cut_after));
        const ssize_t n = ::send(c.sink(w).get(), next.bytes.data(), want, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOTCONN) return;
            c.end(ending::reset);
            return;
        }
        const auto sent = static_cast<std::size_t>(n);
        carried[static_cast<std::size_t>(w)] += sent;
        ++writes[static_cast<std::size_t>(w)];
        s.queued -= sent;
        next.bytes.erase(0, sent);
        if (next.bytes.empty()) s.queue.pop_front();
        if (s.by.cut_after && (*s.by.cut_after -= sent) == 0) {
            c.end(ending::closed);
            return;
        }
        if (s.by.trickle) return;
    }
}

void proxy::machine::tell_end(connection& c, way w) {
    stream& s = c.at(w);
    if (!s.ended || s.told_end || s.by.hold || s.by.swallow || !s.queue.empty()) return;
    s.told_end = true;
    if (c.mute || (s.broken && !c.draining)) {
        c.end(s.broken ? ending::reset : ending::closed);
        return;
    }
    if (c.sink(w)) ::shutdown(c.sink(w).get(), SHUT_WR);
    const bool both_told = c.at(way::to_server).told_end && c.at(way::to_client).told_end;
    if (both_told || (c.draining && w == way::to_client)) c.end(ending::closed);
}

proxy::proxy(std::uint16_t server_port) : machine_(std::make_unique<machine>(server_port)) {}

proxy::~proxy() = default;

std::uint16_t proxy::port() const {
    return machine_->port;
}

std::string proxy::url(std::string_view scheme) const {
    const std::string host = scheme == "rediss" ? "localhost" : "127.0.0.1";
    return std::string(scheme) + "://" + host + ":" + std::to_string(machine_->port);
}

void proxy::pass(int which) {
    machine_->run([&] { machine_->pass(which); });
}

void proxy::delay(way which_way, std::chrono::milliseconds by, int which) {
    machine_->run([&] { machine_->rule(which_way, which, [&](rules& r) { r.delay = by; }); });
}

void proxy::hold(way which_way, int which) {
    machine_->run([&] { machine_->rule(which_way, which, [](rules& r) { r.hold = true; }); });
}

void proxy::swallow(way which_way, int which) {
    machine_->run([&] { machine_->rule(which_way, which, [](rules& r) { r.swallow = true; }); });
}

void proxy::trickle(way which_way, int which) {
    machine_->run([&] { machine_->rule(which_way, which, [](rules& r) { r.trickle = true; }); });
}

void proxy::cut(ending how, int which) {
    machine_->run([&] { machine_->each(which, [&](connection& c) { c.end(how); }); });
}

void proxy::cut_after(way which_way, std::uint64_t bytes, int which) {
    if (bytes == 0) throw std::invalid_argument("cut_after: at least one byte");
    machine_->run([&] { machine_->rule(which_way, which, [&](rules& r) { r.cut_after = bytes; }); });
}

void proxy::lose_reply_to(std::string text, int which) {
    machine_->run([&] { machine_->arm({true, std::move(text), which}); });
}

void proxy::lose_request(std::string text, int which) {
    machine_->run([&] { machine_->arm({false, std::move(text), which}); });
}

std::uint64_t proxy::sprung() const {
    std::uint64_t n = 0;
    machine_->run([&] { n = machine_->sprung; });
    return n;
}

void proxy::answer_nothing() {
    machine_->run([&] {
        machine_->listen();
        machine_->mute = true;
    });
}

void proxy::refuse() {
    machine_->run([&] {
        machine_->listener.reset();
        machine_->fillers.clear();
    });
}

void proxy::ignore() {
    machine_->run([&] { machine_->ignore(); });
}

std::uint64_t proxy::accepted() const {
    std::uint64_t n = 0;
    machine_->run([&] { n = machine_->accepted; });
    return n;
}

std::uint64_t proxy::alive() const {
    std::uint64_t n = 0;
    machine_->run([&] { machine_->each(everybody, [&](const connection& c) { n += c.client ? 1U : 0U; }); });
    return n;
}

std::uint64_t proxy::writes(way which_way) const {
    std::uint64_t n = 0;
    machine_->run([&] { n = machine_->writes[static_cast<std::size_t>(which_way)]; });
    return n;
}

std::uint64_t proxy::carried(way which_way) const {
    std::uint64_t n = 0;
    machine_->run([&] { n = machine_->carried[static_cast<std::size_t>(which_way)]; });
    return n;
}

} // namespace stn::test
