// SPDX-License-Identifier: MIT
#include "io/redis_connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <hiredis/sds.h>

#include "io/self_connect.hpp"

namespace stn {

namespace {

constexpr std::size_t most_at_once = std::size_t{64} << 10;
constexpr std::size_t most_kept = std::size_t{64} << 10;
constexpr int unacknowledged_ms = 10'000; // then the kernel gives a silent peer up

// hiredis sends without MSG_NOSIGNAL; a caller who turns the loop on its own thread may have SIGPIPE unblocked.
ssize_t send_quietly(redisContext* c) {
    const ssize_t n = ::send(c->fd, c->obuf, sdslen(c->obuf), MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    c->err = REDIS_ERR_IO;
    const std::string why = std::system_category().message(errno);
    c->errstr[why.copy(c->errstr, sizeof c->errstr - 1)] = '\0';
    return -1;
}

// OpenSSL writes by write(2), which cannot be told to keep quiet.
class no_sigpipe {
  public:
    explicit no_sigpipe(bool needed) : needed_(needed) {
        if (!needed_) return;
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~no_sigpipe() {
        if (!needed_) return;
        if (!was_pending_) {
            const timespec at_once{};
            ::sigtimedwait(&pipe_, nullptr, &at_once);
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    no_sigpipe(const no_sigpipe&) = delete;
    no_sigpipe& operator=(const no_sigpipe&) = delete;

  private:
    const bool needed_;
    bool was_pending_ = false;
    sigset_t pipe_{};
    sigset_t before_{};
};

std::string last_tls_word(const char* otherwise) {
    const unsigned long code = ERR_peek_last_error();
    const char* const why = code == 0 ? nullptr : ERR_reason_error_string(code);
    return why == nullptr ? otherwise : why;
}

void set_option(int fd, int level, int name, int value) {
    static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value)); // without it we are slower, not wrong
}

} // namespace

redis_connection::redis_connection(const endpoint& where, std::shared_ptr<tls_context> tls, std::string name)
    : tls_(std::move(tls)),
      name_(std::move(name)) {
    redisOptions o{};
    const auto* const net = std::get_if<net_address>(&where);
    if (net != nullptr) {
        REDIS_OPTIONS_SET_TCP(&o, net->ip.c_str(), net->port);
    } else {
        REDIS_OPTIONS_SET_UNIX(&o, std::get<unix_path>(where).path.c_str());
    }
    o.options = REDIS_OPT_NONBLOCK | REDIS_OPT_NO_PUSH_AUTOFREE;
    context_ = ::redisConnectWithOptions(&o);
    if (context_ == nullptr) {
        fail_with(status::unavailable, "no memory to connect with");
        return;
    }
    if (context_->err != 0) {
        fail_of_context();
        return;
    }
    builder_.attach(*context_->reader);
    const int flags = ::fcntl(fd(), F_GETFD);
    static_cast<void>(::fcntl(fd(), F_SETFD, flags | FD_CLOEXEC));
    if (net != nullptr) {
        set_option(fd(), IPPROTO_TCP, TCP_NODELAY, 1);
        set_option(fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, unacknowledged_ms);
        set_option(fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
    }
    if (!tls_) {
        static const redisContextFuncs quiet = [&] {
            redisContextFuncs f = *context_->funcs;
            f.write = &send_quietly;
            return f;
        }();
        context_->funcs = &quiet;
    }
}

redis_connection::~redis_connection() {
    if (context_ != nullptr) ::redisFree(context_);
}

int redis_connection::fd() const noexcept {
    return context_ == nullptr ? -1 : context_->fd;
}

bool redis_connection::wants_write() const noexcept {
    switch (phase_) {
    case phase::connecting: return true;
    case phase::securing: return SSL_want_write(session_);
    case phase::open: return blocked_;
    case phase::failed: return false;
    }
    return false;
}

void redis_connection::fail_with(status code, std::string why) {
    if (phase_ == phase::failed) return;
    phase_ = phase::failed;
    failure_ = fail(code, std::move(why));
}

void redis_connection::fail_of_context() {
    if (builder_.over_bounds()) {
        fail_with(status::not_redis, "the server's reply has more parts than any that was asked for");
    } else if (!heard_ && certificate_missed(session_)) { // its alert may get lost, if we have said something meanwhile
        fail_with(status::unavailable, "the server closed the connection; it asks for a certificate of ours: see "
                                       "\"tls_cert_file\"");
    } else if (session_ != nullptr && context_->err != REDIS_ERR_PROTOCOL &&
               (context_->err != REDIS_ERR_EOF || ERR_peek_last_error() != 0)) { // an alert reads like an end
        fail_with(status::unavailable, tls_fault(session_, name_, last_tls_word(context_->errstr)));
    } else if (context_->err == REDIS_ERR_PROTOCOL) {
        fail_with(status::not_redis, std::string("the server does not speak the Redis protocol: ") + context_->errstr);
    } else if (context_->err == REDIS_ERR_EOF) {
        fail_with(status::unavailable, "the server closed the connection");
    } else {
        fail_with(status::unavailable, context_->errstr);
    }
}

void redis_connection::advance() {
    if (phase_ == phase::connecting) {
        pollfd p{fd(), POLLOUT, 0};
        if (::poll(&p, 1, 0) == 0) return;
        int fault = 0;
        socklen_t size = sizeof fault;
        if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &fault, &size) != 0) fault = errno;
        if (fault != 0) {
            fail_with(status::unavailable, std::system_category().message(fault));
            return;
        }
        if (connected_to_itself(fd())) {
            fail_with(status::unavailable, "nobody listens there");
            return;
        }
        phase_ = tls_ ? phase::securing : phase::open;
    }
    if (phase_ == phase::securing) secure();
}

void redis_connection::secure() {
    const no_sigpipe quiet(true);
    ERR_clear_error();
    if (session_ == nullptr) {
        SSL* const s = tls_->session(name_);
        if (s == nullptr) {
            fail_with(status::unavailable, "no memory for TLS");
            return;
        }
        if (::redisInitiateSSL(context_, s) != REDIS_OK) {
            fail_with(status::unavailable, tls_fault(s, name_, last_tls_word(context_->errstr)));
            SSL_free(s);
            return;
        }
        session_ = s;
    }
    const int done = SSL_do_handshake(session_);
    if (done == 1) {
        phase_ = phase::open;
        return;
    }
    const int why = SSL_get_error(session_, done);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return;
    fail_with(status::unavailable, tls_fault(session_, name_, last_tls_word("the server closed the connection")));
}

// As redisAppendCommandArgv does it, which allocates twice for each command.
bool redis_connection::append(std::span<const std::string_view> words) try {
    const auto put_size = [this](char what, std::size_t n) {
        std::array<char, 24> digits; // NOLINT(cppcoreguidelines-pro-type-member-init): to_chars fills it
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr;
        line_.append(1, what).append(digits.data(), end).append("\r\n");
    };
    line_.clear();
    put_size('*', words.size());
    for (const std::string_view w : words) {
        put_size('$', w.size());
        line_.append(w).append("\r\n");
    }
    const bool taken = ::redisAppendFormattedCommand(context_, line_.data(), line_.size()) == REDIS_OK;
    if (line_.capacity() > most_kept) std::string().swap(line_);
    return taken;
} catch (const std::bad_alloc&) {
    return false;
}

std::size_t redis_connection::unsent() const noexcept {
    return context_ == nullptr ? 0 : sdslen(context_->obuf);
}

void redis_connection::write() {
    if (phase_ != phase::open || unsent() == 0) return;
    const no_sigpipe quiet(session_ != nullptr);
    if (session_ != nullptr) ERR_clear_error();
    int all = 0;
    if (::redisBufferWrite(context_, &all) != REDIS_OK) fail_of_context();
    blocked_ = all == 0 && phase_ == phase::open;
}

bool redis_connection::read() {
    if (phase_ != phase::open) return false;
    const no_sigpipe quiet(session_ != nullptr);
    if (session_ != nullptr) ERR_clear_error();
    if (!gulp_) gulp_ = std::make_unique<char[]>(most_at_once);
    const auto got = context_->funcs->read(context_, gulp_.get(), most_at_once);
    fed_ = gulped_ = 0;
    if (got < 0) {
        fail_of_context();
        return false;
    }
    gulped_ = static_cast<std::size_t>(got);
    heard_ = heard_ || got > 0;
    return session_ != nullptr ? SSL_pending(session_) > 0 : gulped_ == most_at_once;
}

// hiredis' reader moves what is left in it to the front after every thousand bytes: it gets little at a time.
bool redis_connection::feed() {
    constexpr std::size_t bite = 2'048;
    const std::size_t n = std::min(bite, gulped_ - fed_);
    if (n == 0) return false;
    if (::redisReaderFeed(context_->reader, gulp_.get() + fed_, n) != REDIS_OK) {
        fail_with(status::no_memory, "no memory for the server's reply");
        return false;
    }
    fed_ += n;
    if (context_->reader->len - context_->reader->pos <= reply_builder::most_bytes) return true;
    fail_with(status::not_redis, "the server's reply is larger than any value may be");
    return false;
}

bool redis_connection::next(reply& out, bool& push) {
    // What came before a connection's end is still good.
    while (context_ != nullptr && context_->reader->err == 0) {
        void* found = nullptr;
        if (::redisReaderGetReply(context_->reader, &found) != REDIS_OK) {
            context_->err = context_->reader->err;
            std::memcpy(context_->errstr, context_->reader->errstr, sizeof context_->errstr);
            fail_of_context();
            return false;
        }
        if (found != nullptr) {
            push = builder_.was_push();
            out = builder_.take();
            return true;
        }
        if (!feed()) return false;
    }
    return false;
}

void redis_connection::abandon_after_fork() noexcept {
    if (fd() >= 0) ::close(fd());
}

void redis_connection::finish(int patience_ms) {
    for (;;) {
        write();
        if (phase_ != phase::open) return;
        if (unsent() == 0) break;
        pollfd p{fd(), POLLOUT, 0};
        if (::poll(&p, 1, patience_ms) <= 0) return;
    }
    // A socket that is closed with replies unread resets the connection, and takes the last words with it.
    ::shutdown(fd(), SHUT_WR);
    char rest[4'096];
    pollfd p{fd(), POLLIN, 0};
    while (::poll(&p, 1, patience_ms) > 0 && ::recv(fd(), rest, sizeof rest, MSG_DONTWAIT) > 0) {
    }
}

} // namespace stn
