// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace stn {

// Where a store is. The forms:
//
//   memory://[name][?clock=manual]
//   redis://[[user][:password]@]host[:port][/db]      rediss:// the same over TLS
//   unix://[[user][:password]@]/path[?db=n]
//   redis+sentinel://[[user][:password]@]host[:port][,host[:port]...]/service[/db]
//   redis+cluster://[[user][:password]@]host[:port][,host[:port]...]
//
// User, password, path, service and names may be percent-encoded; an IPv6 address stands in
// brackets.
enum class store_scheme : std::uint8_t { memory, redis, rediss, unix_socket, sentinel, cluster };

struct store_host {
    std::string name;
    std::uint16_t port = 0;
    friend bool operator==(const store_host&, const store_host&) = default;
};

struct store_url {
    store_scheme scheme = store_scheme::memory;
    std::string name; // memory: the store's; sentinel: the service's
    bool manual_clock = false;
    std::string user;
    std::string password;
    std::vector<store_host> hosts;
    std::string path; // unix
    std::uint32_t db = 0;

    [[nodiscard]] std::string shown() const; // never with the password
};

[[nodiscard]] std::string_view scheme_name(store_scheme scheme) noexcept;

// No error quotes more of the text than a scheme or the name of an option: a password that was not
// encoded could stand anywhere else.
[[nodiscard]] result<store_url> parse_store_url(std::string_view url);

} // namespace stn
