// SPDX-License-Identifier: MIT
#include "io/redis_greeting.hpp"

#include "protocol/refusal.hpp"
#include "protocol/scripts.hpp"

namespace stn {

std::vector<greeting_step> greeting_of(const store_url& where, greeting_for purpose) {
    using kind = greeting_step::kind;
    std::vector<greeting_step> steps;
    if (!where.user.empty()) {
        steps.push_back({kind::auth, {"AUTH", where.user, where.password}});
    } else if (!where.password.empty()) {
        steps.push_back({kind::auth, {"AUTH", where.password}});
    }
    steps.push_back({kind::hello, {"HELLO", "3"}});
    steps.push_back({kind::name, {"CLIENT", "SETNAME", "stanchion"}});
    if (purpose == greeting_for::messages) return steps;
    if (where.db != 0) steps.push_back({kind::select, {"SELECT", std::to_string(where.db)}});
    for (std::size_t i = 0; i < static_cast<std::size_t>(script_id::count_); ++i) {
        const auto& script = script_of(static_cast<script_id>(i));
        steps.push_back({kind::load, {"SCRIPT", "LOAD", std::string(script.text)}});
    }
    steps.push_back({kind::time, {"TIME"}});
    return steps;
}

std::optional<error> judge(const greeting_step& step, const reply& said) {
    using kind = greeting_step::kind;
    const refusal why = classify(said);
    if (why == refusal::none) return std::nullopt;
    if (traits_of(why).ails || why == refusal::no_auth) return refused_by_store(said, {});
    error e;
    switch (step.what) {
    case kind::auth: e = fail(status::denied, "the store refuses the user or password of the URL"); break;
    case kind::select: e = fail(status::refused, "the store refuses the database of the URL"); break;
    case kind::hello:
    case kind::name:
    case kind::load:
    case kind::time: return std::nullopt;
    }
    e.server_text = said.text;
    return e;
}

std::string described(const reply& hello) {
    std::string out = "{";
    for (std::size_t i = 0; i + 1 < hello.items.size(); i += 2) {
        const std::string& name = hello.items[i].text;
        const std::string& value = hello.items[i + 1].text;
        if (name != "server" && name != "version" && name != "mode" && name != "role") continue;
        const bool plain =
            value.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+_ ") ==
            std::string::npos; // nothing to escape
        if (plain) out.append(out.size() > 1 ? ",\"" : "\"").append(name).append("\":\"").append(value).append("\"");
    }
    return out + '}';
}

} // namespace stn
