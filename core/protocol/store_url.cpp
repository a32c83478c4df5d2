// SPDX-License-Identifier: MIT
#include "protocol/store_url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "base/nearest.hpp"
#include "protocol/keys.hpp"

namespace stn {
namespace {

constexpr std::array<std::string_view, 6> schemes = {"memory", "redis",          "rediss",
                                                     "unix",   "redis+sentinel", "redis+cluster"};
constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;
constexpr std::uint32_t most_db = INT32_MAX;
constexpr std::size_t longest_socket_path = 107; // sockaddr_un
constexpr std::size_t longest_host = 253;

error refuse(std::string message) {
    return fail(status::invalid_argument, std::move(message));
}

// The parts of a URL as they stand, before any decoding.
struct parts {
    std::string_view authority; // user and all
    std::string_view path;      // with its slash
    std::string_view query;
};

using fault = std::optional<error>;

bool is_alnum(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool looks_like_scheme(std::string_view text) {
    return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
        return is_alnum(c) || c == '+' || c == '-' || c == '.';
    });
}

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

fault decode(std::string_view text, std::string& out) {
    out.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out.push_back(text[i]);
            continue;
        }
        const int high = i + 2 < text.size() ? hex(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex(text[i + 2]) : -1;
        if (high < 0 || low < 0) return refuse("a % in a store URL is followed by two hex digits");
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
    }
    return std::nullopt;
}

template <class T> bool read_number(std::string_view text, T& out) {
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    return bad == std::errc{} && end == text.data() + text.size() && !text.empty();
}

fault read_db(std::string_view text, store_url& out) {
    if (!read_number(text, out.db) || out.db > most_db)
        return refuse("the database of a store URL is a number, as in redis://host/0");
    return std::nullopt;
}

fault read_user(std::string_view text, store_url& out) {
    const auto colon = text.find(':');
    if (auto bad = decode(text.substr(0, colon), out.user)) return bad;
    if (colon == std::string_view::npos) return std::nullopt;
    return decode(text.substr(colon + 1), out.password);
}

fault read_host(std::string_view text, std::uint16_t default_port, store_url& out) {
    std::string_view name = text;
    std::optional<std::string_view> port;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) return refuse("an IPv6 address in a store URL lacks its closing bracket");
        name = text.substr(1, end - 1);
        const auto rest = text.substr(end + 1);
        if (!rest.empty() && rest[0] != ':')
            return refuse("after the closing bracket of an IPv6 address only a port may come");
        if (!rest.empty()) port = rest.substr(1);
        if (name.find(':') == std::string_view::npos ||
            !std::all_of(name.begin(), name.end(), [](char c) { return hex(c) >= 0 || c == ':' || c == '.'; }))
            return refuse("the brackets of a store URL hold no IPv6 address");
    } else {
        const auto colon = text.find(':');
        if (colon != std::string_view::npos) {
            name = text.substr(0, colon);
            port = text.substr(colon + 1);
            if (port->find(':') != std::string_view::npos)
                return refuse("an IPv6 address in a store URL stands in brackets, as in [::1]:6379");
        }
        if (name.empty()) return refuse("a store URL lacks its host, as in redis://host:6379");
        if (name.size() > longest_host || !std::all_of(name.begin(), name.end(), [](char c) {
                return is_alnum(c) || c == '.' || c == '-' || c == '_';
            }))
            return refuse("a host in a store URL is made of letters, digits, dots and hyphens");
    }
    store_host host{std::string(name), default_port};
    if (port && (!read_number(*port, host.port) || host.port == 0))
        return refuse("a port in a store URL is a number from 1 to 65535");
    out.hosts.push_back(std::move(host));
    return std::nullopt;
}

// [user[:password]@]host[:port][,host[:port]...]
fault read_authority(std::string_view text, store_url& out) {
    const auto at = text.rfind('@');
    if (at != std::string_view::npos) {
        if (text.find('@') != at) return refuse("an @ in the user or password of a store URL is written %40");
        if (auto bad = read_user(text.substr(0, at), out)) return bad;
        text.remove_prefix(at + 1);
    }
    const bool many = out.scheme == store_scheme::sentinel || out.scheme == store_scheme::cluster;
    const std::uint16_t port = out.scheme == store_scheme::sentinel ? sentinel_port : redis_port;
    for (;;) {
        const auto comma = text.find(',');
        if (comma != std::string_view::npos && !many)
            return refuse("several hosts are for redis+sentinel:// and redis+cluster://");
        if (auto bad = read_host(text.substr(0, comma), port, out)) return bad;
        if (comma == std::string_view::npos) return std::nullopt;
        text.remove_prefix(comma + 1);
    }
}

fault read_memory(const parts& p, store_url& out) {
    if (auto bad = decode(p.authority, out.name)) return bad;
    if (!p.path.empty() || (!out.name.empty() && !valid_name(out.name)))
        return refuse("the name of a memory store is made of letters, digits, dots, hyphens and "
                      "underscores, at most 64");
    return std::nullopt;
}

fault read_redis(const parts& p, store_url& out) {
    if (auto bad = read_authority(p.authority, out)) return bad;
    return p.path.size() <= 1 ? std::nullopt : read_db(p.path.substr(1), out);
}

fault read_unix(const parts& p, store_url& out) {
    if (!p.authority.empty()) {
        if (!p.authority.ends_with('@'))
            return refuse("a socket is named by its whole path, as in unix:///run/redis.sock");
        const auto user = p.authority.substr(0, p.authority.size() - 1);
        if (user.find('@') != std::string_view::npos)
            return refuse("an @ in the user or password of a store URL is written %40");
        if (auto bad = read_user(user, out)) return bad;
    }
    if (auto bad = decode(p.path, out.path)) return bad;
    if (out.path.size() < 2) return refuse("a socket is named by its whole path, as in unix:///run/redis.sock");
    if (out.path.size() > longest_socket_path || out.path.find('\0') != std::string::npos)
        return refuse("the path of a socket has at most 107 bytes, and no NUL");
    return std::nullopt;
}

fault read_sentinel(const parts& p, store_url& out) {
    if (auto bad = read_authority(p.authority, out)) return bad;
    const auto path = p.path.empty() ? p.path : p.path.substr(1);
    const auto slash = path.find('/');
    if (auto bad = decode(path.substr(0, slash), out.name)) return bad;
    if (out.name.empty())
        return refuse("redis+sentinel:// lacks the name of its service, as in "
                      "redis+sentinel://host/mymaster");
    return slash == std::string_view::npos ? std::nullopt : read_db(path.substr(slash + 1), out);
}

fault read_cluster(const parts& p, store_url& out) {
    if (auto bad = read_authority(p.authority, out)) return bad;
    if (p.path.size() > 1) return refuse("a cluster has no database to choose");
    return std::nullopt;
}

std::span<const std::string_view> options_of(store_scheme scheme) {
    static constexpr std::array<std::string_view, 1> memory = {"clock"};
    static constexpr std::array<std::string_view, 1> unix_socket = {"db"};
    if (scheme == store_scheme::memory) return memory;
    if (scheme == store_scheme::unix_socket) return unix_socket;
    return {};
}

fault read_options(std::string_view query, store_url& out) {
    const auto known = options_of(out.scheme);
    std::string seen;
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        const auto option = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const auto equals = option.find('=');
        const auto name = option.substr(0, equals);
        if (known.empty()) // not quoted: it could be the tail of a password
            return fail(status::unknown_option, std::string(scheme_name(out.scheme)) + ":// has no options in its URL");
        const std::string quoted = "\"" + std::string(name.substr(0, 40)) + "\"";
        if (std::find(known.begin(), known.end(), name) == known.end())
            return fail(status::unknown_option, "unknown option " + quoted + ": did you mean \"" +
                                                    std::string(nearest_name(name, known)) + "\"?");
        if (!seen.empty()) return refuse("the option " + quoted + " is named twice");
        seen = name;
        std::string value;
        if (equals != std::string_view::npos)
            if (auto bad = decode(option.substr(equals + 1), value)) return bad;
        if (name == "clock") {
            if (value != "manual") return refuse("the option \"clock\" can only be \"manual\"");
            out.manual_clock = true;
        } else if (auto bad = read_db(value, out)) {
            return bad;
        }
    }
    return std::nullopt;
}

} // namespace

std::string_view scheme_name(store_scheme scheme) noexcept {
    return schemes[static_cast<std::size_t>(scheme)];
}

result<store_url> parse_store_url(std::string_view url) {
    const auto colon = url.find("://");
    const auto scheme = url.substr(0, colon);
    if (colon == std::string_view::npos || !looks_like_scheme(scheme))
        return refuse("a store URL begins with its scheme, as in memory:// or redis://host");
    const auto known = std::find(schemes.begin(), schemes.end(), scheme);
    if (known == schemes.end())
        return refuse("unknown scheme \"" + std::string(scheme) + "://\": did you mean \"" +
                      std::string(nearest_name(scheme, schemes)) + "://\"?");
    auto rest = url.substr(colon + 3);
    if (rest.find('#') != std::string_view::npos) return refuse("a # in a store URL is written %23");

    parts p;
    const auto question = rest.find('?');
    if (question != std::string_view::npos) p.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
    const auto slash = std::min(rest.find('/'), rest.size());
    p.authority = rest.substr(0, slash);
    p.path = rest.substr(slash);

    store_url out;
    out.scheme = static_cast<store_scheme>(known - schemes.begin());
    // else a / or ? in a password would turn its other half into a path or an option
    const bool path_is_free = out.scheme == store_scheme::unix_socket;
    if (p.query.find('@') != std::string_view::npos || (!path_is_free && p.path.find('@') != std::string_view::npos))
        return refuse("in the user and password of a store URL, / ? # and @ are percent-encoded");

    fault bad;
    switch (out.scheme) {
    case store_scheme::memory: bad = read_memory(p, out); break;
    case store_scheme::redis:
    case store_scheme::rediss: bad = read_redis(p, out); break;
    case store_scheme::unix_socket: bad = read_unix(p, out); break;
    case store_scheme::sentinel: bad = read_sentinel(p, out); break;
    case store_scheme::cluster: bad = read_cluster(p, out); break;
    }
    if (!bad) bad = read_options(p.query, out);
    if (bad) return *bad;
    return out;
}

std::string store_url::shown() const {
    std::string out(scheme_name(scheme));
    out.append("://");
    if (scheme == store_scheme::memory) {
        out.append(name);
        return manual_clock ? out.append("?clock=manual") : out;
    }
    std::string_view between;
    for (const store_host& host : hosts) {
        const bool v6 = host.name.find(':') != std::string::npos;
        out.append(between).append(v6 ? "[" : "").append(host.name).append(v6 ? "]" : "");
        out.append(":").append(std::to_string(host.port));
        between = ",";
    }
    if (scheme == store_scheme::unix_socket) {
        out.append(path);
        return db == 0 ? out : out.append("?db=").append(std::to_string(db));
    }
    if (scheme == store_scheme::sentinel) out.append("/").append(name);
    if (scheme != store_scheme::cluster) out.append("/").append(std::to_string(db));
    return out;
}

} // namespace stn
