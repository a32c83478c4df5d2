// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace stn::test {

// From now on the system resolves `name` to these addresses, after a while; every other name as ever.
// (This program's getaddrinfo stands in front of the system's own.)
void let_name_be(const std::string& name, std::vector<std::string> addresses, std::chrono::milliseconds after = {});

} // namespace stn::test
