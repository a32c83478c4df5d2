// SPDX-License-Identifier: MIT
#include "io/resolver.hpp"

#include <algorithm>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stn {

using addresses = std::vector<net_address>;

struct resolver::question {
    const std::string host;
    const std::uint16_t port;
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::mutex mutex;
    std::optional<result<addresses>> answer; // mutex

    question(std::string of, std::uint16_t at) : host(std::move(of)), port(at) {}
    question(const question&) = delete;
    question& operator=(const question&) = delete;
    ~question() {
        if (fd >= 0) ::close(fd);
    }

    void settle(result<addresses> how) {
        const std::lock_guard lock(mutex);
        answer.emplace(std::move(how));
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto n = ::write(fd, &one, sizeof one);
    }
};

namespace {

bool numeric(const std::string& host) {
    in6_addr any{};
    return ::inet_pton(AF_INET, host.c_str(), &any) == 1 || ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

result<addresses> look_up(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* list = nullptr;
    int fault = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    if (fault == EAI_NONAME || fault == EAI_FAMILY) { // a machine with a loopback only has no "configured" address
        hints.ai_flags = 0;
        fault = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    }
    if (fault != 0) {
        return fail(status::unavailable, "the name \"" + host + "\" cannot be resolved: " + ::gai_strerror(fault));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
    addresses out;
    for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
        char text[NI_MAXHOST];
        if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
        net_address one{text, port};
        if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
    }
    if (out.empty()) return fail(status::unavailable, "the name \"" + host + "\" has no address");
    return out;
}

} // namespace

resolver::resolver() = default;
resolver::~resolver() = default;

void resolver::ask(const std::string& host, std::uint16_t port) {
    open_ = std::make_shared<question>(host, port);
    if (numeric(host)) {
        open_->settle(addresses{{host, port}});
        return;
    }
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread([asked = open_] {
            ::pthread_setname_np(::pthread_self(), "stanchion-names");
            asked->settle(look_up(asked->host, asked->port));
        }).detach();
    } catch (const std::system_error& e) {
        open_->settle(fail(status::unavailable, std::string("no thread to resolve names on: ") + e.what()));
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::optional<result<addresses>> resolver::poll() {
    if (!open_) return std::nullopt;
    std::optional<result<addresses>> out;
    {
        const std::lock_guard lock(open_->mutex);
        out = std::move(open_->answer);
    }
    if (out) open_ = nullptr;
    return out;
}

void resolver::forget() {
    open_ = nullptr;
}

int resolver::fd() const noexcept {
    return open_ ? open_->fd : -1;
}

} // namespace stn
