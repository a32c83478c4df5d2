// SPDX-License-Identifier: MIT
#include "io/open_store.hpp"

#include <utility>

#include "io/memory_store.hpp"
#include "io/memory_transport.hpp"
#include "io/redis_transport.hpp"
#include "io/system_clock.hpp"
#include "io/system_random.hpp"
#include "protocol/store_url.hpp"

namespace stn {

namespace {

result<store> open_memory(const store_url& where) {
    const auto opened = open_memory_store(where.name, where.manual_clock ? memory_clock::manual : memory_clock::system);
    if (!opened) return opened.failure();
    const std::shared_ptr<memory_store>& memory = *opened;
    store out;
    // the link keeps the whole store open, not only its server
    out.link = std::make_unique<memory_transport>(std::shared_ptr<memory_server>(memory, memory->server.get()));
    out.time = memory->time;
    out.chance = std::make_shared<system_random>();
    out.manual = memory->manual;
    return out;
}

result<store> open_redis(const store_url& where, const client_settings& settings) {
    redis_settings how;
    if (where.scheme == store_scheme::rediss) {
        const auto made = tls_context::make({settings.tls_ca_file, settings.tls_cert_file, settings.tls_key_file});
        if (!made) return made.failure();
        how.tls = *made;
        how.tls_name = settings.tls_server_name.empty() ? where.hosts.front().name : settings.tls_server_name;
    }
    how.where = where;
    how.connect_timeout_ms = settings.connect_timeout_ms;
    store out;
    out.time = std::make_shared<system_clock>();
    out.chance = std::make_shared<system_random>();
    out.link = std::make_unique<redis_transport>(std::move(how), out.chance);
    return out;
}

// An option that would do nothing is a mistake, and one about trust a dangerous one.
std::optional<error> misplaced_tls(const store_url& where, const client_settings& s) {
    if (where.scheme == store_scheme::rediss) return std::nullopt;
    const std::pair<const char*, const std::string*> given[] = {{"tls_ca_file", &s.tls_ca_file},
                                                                {"tls_cert_file", &s.tls_cert_file},
                                                                {"tls_key_file", &s.tls_key_file},
                                                                {"tls_server_name", &s.tls_server_name}};
    for (const auto& [name, value] : given) {
        if (!value->empty()) {
            return fail(status::invalid_argument, std::string("\"") + name + "\" is for rediss://, and the store is " +
                                                      std::string(scheme_name(where.scheme)) + "://");
        }
    }
    return std::nullopt;
}

} // namespace

result<store> open_store(std::string_view url, const client_settings& settings) {
    const auto where = parse_store_url(url);
    if (!where) return where.failure();
    if (auto no = misplaced_tls(*where, settings)) return *no;
    std::optional<result<store>> out;
    switch (where->scheme) {
    case store_scheme::memory: out.emplace(open_memory(*where)); break;
    case store_scheme::redis:
    case store_scheme::rediss:
    case store_scheme::unix_socket: out.emplace(open_redis(*where, settings)); break;
    case store_scheme::sentinel:
    case store_scheme::cluster:
        return fail(status::unsupported, std::string(scheme_name(where->scheme)) + ":// comes with the next release");
    }
    if (out->ok()) (**out).shown = where->shown();
    return std::move(*out);
}

} // namespace stn
