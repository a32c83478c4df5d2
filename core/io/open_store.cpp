// SPDX-License-Identifier: MIT
#include "io/open_store.hpp"

#include "io/memory_store.hpp"
#include "io/memory_transport.hpp"
#include "io/system_random.hpp"
#include "protocol/store_url.hpp"

namespace stn {

result<store> open_store(std::string_view url) {
    const auto where = parse_store_url(url);
    if (!where) return where.failure();
    if (where->scheme != store_scheme::memory)
        return fail(status::unsupported, std::string(scheme_name(where->scheme)) + ":// comes with the next release");

    const auto opened =
        open_memory_store(where->name, where->manual_clock ? memory_clock::manual : memory_clock::system);
    if (!opened) return opened.failure();
    const std::shared_ptr<memory_store>& memory = *opened;
    store out;
    // the link keeps the whole store open, not only its server
    out.link = std::make_unique<memory_transport>(std::shared_ptr<memory_server>(memory, memory->server.get()));
    out.time = memory->time;
    out.chance = std::make_shared<system_random>();
    out.manual = memory->manual;
    out.shown = where->shown();
    return out;
}

} // namespace stn
