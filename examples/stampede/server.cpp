// SPDX-License-Identifier: MIT
#include "server.hpp"

#include <hiredis/hiredis_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "handles.hpp"

namespace stampede {
namespace {

struct Address {
    bool tls = false;
    std::string user;
    std::string password;
    std::string host; // or the path of a socket
    int port = 0;     // 0: a socket
    std::string db;
};

std::string decoded(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        int byte = 0;
        const char* hex = text.data() + i + 1;
        if (text[i] == '%' && text.size() - i > 2 && std::from_chars(hex, hex + 2, byte, 16).ptr == hex + 2) {
            plain += static_cast<char>(byte);
            i += 2;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// Takes off what comes before `mark`, and the mark; all of it if there is none.
std::string_view before(std::string_view& text, std::string_view mark) {
    std::size_t at = std::min(text.find(mark), text.size());
    std::string_view taken = text.substr(0, at);
    text.remove_prefix(std::min(at + mark.size(), text.size()));
    return taken;
}

// The library has looked at the URL before, and knows better what is wrong with it.
Address parsed(std::string_view url) {
    Address address;
    std::string_view scheme = before(url, "://");
    address.tls = scheme == "rediss";
    if (url.find('@') != std::string_view::npos) {
        std::string_view login = before(url, "@");
        address.user = decoded(before(login, ":"));
        address.password = decoded(login);
    }
    if (scheme == "unix") {
        address.host = decoded(before(url, "?"));
        if (url.starts_with("db=")) address.db = url.substr(3);
        return address;
    }
    std::string_view place = before(url, "/");
    address.db = url;
    bool bracketed = place.starts_with("[");
    if (bracketed) place.remove_prefix(1);
    address.host = before(place, bracketed ? "]" : ":");
    if (place.starts_with(":")) place.remove_prefix(1);
    address.port = 6379;
    std::from_chars(place.data(), place.data() + place.size(), address.port);
    return address;
}

constexpr timeval patience{10, 0};

// The number after `name` in the text of INFO; 0 if it is not there.
std::uint64_t number_after(std::string_view text, std::string_view name) {
    std::uint64_t number = 0;
    std::size_t at = text.find(name);
    if (at == std::string_view::npos) return 0;
    text.remove_prefix(at + name.size());
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string word_after(std::string_view text, std::string_view name) {
    std::size_t at = text.find(name);
    if (at == std::string_view::npos) return "";
    text.remove_prefix(at + name.size());
    return std::string(text.substr(0, text.find_first_of("\r\n")));
}

} // namespace

Server::Server(const std::string& url, const std::string& ca) {
    Address address = parsed(url);
    context_.reset(address.port == 0 ? redisConnectUnixWithTimeout(address.host.c_str(), patience)
                                     : redisConnectWithTimeout(address.host.c_str(), address.port, patience));
    if (!context_ || context_->err) {
        throw Refused(std::string("the server cannot be asked: ") + (context_ ? context_->errstr : "no memory"));
    }
    redisSetTimeout(context_.get(), patience);
    if (address.tls) secure(address.host, ca);
    if (!address.user.empty()) {
        ask({"AUTH", address.user, address.password});
    } else if (!address.password.empty()) {
        ask({"AUTH", address.password});
    }
    if (!address.db.empty()) ask({"SELECT", address.db});
    std::string about = info("server");
    std::string valkey = word_after(about, "valkey_version:");
    name_ = valkey.empty() ? "redis " + word_after(about, "redis_version:") : "valkey " + valkey;
}

void Server::secure(const std::string& host, const std::string& ca) {
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> settings(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    bool trusts = settings && (ca.empty() ? SSL_CTX_set_default_verify_paths(settings.get())
                                          : SSL_CTX_load_verify_locations(settings.get(), ca.c_str(), nullptr)) == 1;
    if (!trusts) throw Refused("--ca: " + ca + " cannot be used");
    SSL_CTX_set_verify(settings.get(), SSL_VERIFY_PEER, nullptr);
    SSL* ssl = SSL_new(settings.get());
    if (!ssl) throw Refused("no memory for TLS");
    SSL_set_tlsext_host_name(ssl, host.c_str());
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) != 1) SSL_set1_host(ssl, host.c_str());
    if (redisInitiateSSL(context_.get(), ssl) != REDIS_OK) {
        throw Refused(std::string("the server cannot be asked over TLS: ") + context_->errstr);
    }
}

Server::Reply Server::ask(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
    }
    Reply reply(static_cast<redisReply*>(
        redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())));
    if (!reply) throw Refused("the server does not answer " + words[0] + ": " + context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) throw Refused("the server refuses " + words[0] + ": " + reply->str);
    return reply;
}

std::string Server::info(const std::string& section) {
    Reply reply = ask({"INFO", section});
    return {reply->str, reply->len};
}

bool Server::alone() {
    return number_after(info("clients"), "connected_clients:") == 1;
}

ServerCounts Server::counts() {
    std::string commands = info("commandstats");
    ServerCounts counts;
    counts.get = number_after(commands, "cmdstat_get:calls=");
    counts.getrange = number_after(commands, "cmdstat_getrange:calls=");
    counts.scripts = number_after(commands, "cmdstat_evalsha:calls=") + number_after(commands, "cmdstat_eval:calls=");
    return counts;
}

// A key can be told more than once.
std::vector<std::string> Server::scan(const std::string& prefix) {
    std::set<std::string> found;
    std::string cursor = "0";
    do {
        Reply reply = ask({"SCAN", cursor, "MATCH", prefix + ":*", "COUNT", "1000"});
        cursor.assign(reply->element[0]->str, reply->element[0]->len);
        const redisReply* keys = reply->element[1];
        for (std::size_t i = 0; i < keys->elements; ++i) found.emplace(keys->element[i]->str, keys->element[i]->len);
    } while (cursor != "0");
    return {found.begin(), found.end()};
}

KeysLeft Server::keys(const std::string& prefix) {
    KeysLeft left;
    for (const std::string& key : scan(prefix)) {
        ++left.found;
        if (ask({"PTTL", key})->integer == -1) ++left.without_ttl;
    }
    return left;
}

std::uint64_t Server::remove(const std::string& prefix) {
    for (const std::string& key : scan(prefix)) ask({"DEL", key});
    return scan(prefix).size();
}

} // namespace stampede
