// SPDX-License-Identifier: MIT
#include "holder.hpp"

#include <cstdint>

#include <unistd.h>

#include "text.hpp"

namespace cli {

std::string own_label() {
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) return std::to_string(::getpid());
    return std::string(host).substr(0, 48) + ":" + std::to_string(::getpid());
}

std::string sentence(const nlohmann::json& found) {
    std::string out = "is held by ";
    if (!found.value("ours", false)) {
        out += "another program";
    } else {
        const auto label = found.value("label", "");
        out += (label.empty() ? "somebody without a label" : in_quotes(label)) + " (fence " +
               std::to_string(found.value("fence", std::int64_t{0})) + ")";
    }
    const auto ttl = found.find("ttl_ms");
    if (ttl == found.end() || !ttl->is_number()) return out + ", and does not end by itself";
    return out + ", for another " + about(ttl->get<std::int64_t>());
}

} // namespace cli
