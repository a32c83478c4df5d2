// SPDX-License-Identifier: MIT
#include "commands.hpp"

#include <string_view>

#include "exit_code.hpp"
#include "holder.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

ending inspect(const options& given, const signals& outside) {
    const std::string subject = given.key.empty() ? "lock " + in_quotes(given.name) : "key " + in_quotes(given.key);
    session store(given, outside);
    const auto event = store.ask(subject, [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
        return stn_lock_inspect(store.client(), given.name.data(), given.name.size(), given.key.data(),
                                given.key.size(), STN_DEFAULT_MS, q, tag, op, e);
    });
    nlohmann::json found = {{"held", false}};
    std::string text = subject + " is free";
    std::size_t n = 0;
    if (const void* bytes = stn_event_bytes(event.get(), &n)) {
        found = nlohmann::json::parse(std::string_view(static_cast<const char*>(bytes), n));
        found["held"] = true;
        text = subject + " " + sentence(found);
    }
    found[given.key.empty() ? "name" : "key"] = given.key.empty() ? given.name : given.key;
    answer(given, text, found);
    return {found["held"] ? exit_ok : exit_free, 0};
}

} // namespace cli
