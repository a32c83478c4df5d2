// SPDX-License-Identifier: MIT
#include "support/plain_connection.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <sys/time.h>

#include <hiredis/hiredis.h>

namespace stn::test {

namespace {

constexpr timeval patience{10, 0};

// hiredis writes without MSG_NOSIGNAL. Ignoring the signal in the whole process would hide what the
// tests look for.
class no_sigpipe {
  public:
    no_sigpipe() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~no_sigpipe() {
        const timespec at_once{};
        if (!pending_) {
            while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
            }
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    no_sigpipe(const no_sigpipe&) = delete;
    no_sigpipe& operator=(const no_sigpipe&) = delete;

  private:
    sigset_t pipe_{};
    sigset_t before_{};
    bool pending_ = false;
};

reply reply_of(const redisReply& r) {
    const auto text = [&] { return std::string(r.str, r.len); };
    switch (r.type) {
    case REDIS_REPLY_NIL: return {};
    case REDIS_REPLY_INTEGER:
    case REDIS_REPLY_BOOL: return reply::of_integer(r.integer);
    case REDIS_REPLY_STATUS: return reply::of_status(text());
    case REDIS_REPLY_ERROR: return reply::of_error(text());
    case REDIS_REPLY_ARRAY:
    case REDIS_REPLY_MAP:
    case REDIS_REPLY_SET:
    case REDIS_REPLY_PUSH: {
        std::vector<reply> items;
        items.reserve(r.elements);
        for (const redisReply* item : std::span(r.element, r.elements)) items.push_back(reply_of(*item));
        return reply::of_array(std::move(items));
    }
    default: return reply::of_bulk(text());
    }
}

} // namespace

void plain_connection::closer::operator()(redisContext* context) const {
    redisFree(context);
}

plain_connection::plain_connection(redisContext* context) : context_(context) {
    if (context == nullptr) throw std::runtime_error("hiredis has no memory for a connection");
    if (context->err != 0) give_up();
    redisSetTimeout(context, patience);
}

void plain_connection::give_up() const {
    throw std::runtime_error(std::string("the test's own connection to the server: ") + context_->errstr);
}

plain_connection plain_connection::to_port(std::uint16_t port) {
    return plain_connection(redisConnectWithTimeout("127.0.0.1", port, patience));
}

plain_connection plain_connection::to_socket(const std::string& path) {
    return plain_connection(redisConnectUnixWithTimeout(path.c_str(), patience));
}

reply plain_connection::ask(const std::vector<std::string>& words) {
    send(words);
    return receive();
}

void plain_connection::send(const std::vector<std::string>& words) {
    std::vector<const char*> starts;
    std::vector<std::size_t> lengths;
    for (const std::string& word : words) {
        starts.push_back(word.data());
        lengths.push_back(word.size());
    }
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), starts.data(), lengths.data()) !=
        REDIS_OK)
        give_up();
}

reply plain_connection::receive() {
    const no_sigpipe quiet;
    void* got = nullptr;
    if (redisGetReply(context_.get(), &got) != REDIS_OK) give_up();
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> owned(static_cast<redisReply*>(got),
                                                                        &freeReplyObject);
    return reply_of(*owned);
}

std::string shown(std::string_view bytes) {
    std::string out = "'";
    for (const char c : bytes.substr(0, 80)) {
        char text[8];
        std::snprintf(text, sizeof text, c >= ' ' && c <= '~' ? "%c" : "\\x%02x", static_cast<unsigned char>(c));
        out += text;
    }
    out += bytes.size() > 80 ? "'... (" + std::to_string(bytes.size()) + " bytes)" : "'";
    return out;
}

std::string shown(const reply& r) {
    switch (r.kind) {
    case reply_kind::nil: return "nil";
    case reply_kind::integer: return std::to_string(r.integer);
    case reply_kind::bulk: return shown(r.text);
    case reply_kind::status: return "+" + r.text;
    case reply_kind::error: return "-" + r.text;
    case reply_kind::array: break;
    }
    std::string out;
    for (const reply& item : r.items) out += (out.empty() ? "[" : ", ") + shown(item);
    return out.empty() ? "[]" : out + "]";
}

} // namespace stn::test
