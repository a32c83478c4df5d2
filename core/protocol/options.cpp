// SPDX-License-Identifier: MIT
#include "protocol/options.hpp"

#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/duration.hpp"
#include "base/nearest.hpp"
#include "protocol/keys.hpp"
#include "protocol/lock_value.hpp"

namespace stn {

namespace {

using nlohmann::json;

constexpr std::int64_t ten_years_ms = 315'360'000'000;
constexpr std::int64_t hour_ms = 3'600'000;

error bad(std::string_view name, std::string_view what) {
    return fail(status::invalid_argument, "option \"" + std::string(name) + "\" " + std::string(what));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& names) {
    const std::string_view near = nearest_name(word, names);
    return near.empty() ? "; there are none here" : "; did you mean \"" + std::string(near) + "\"?";
}

// One option of a T: how to read it into one.
template <class T> struct option {
    std::string name;
    bool duration; // "name": "5m", or "name_ms": 300000
    std::function<std::optional<error>(T&, const json&, std::string_view shown)> read;
};

std::string shown_ms(std::int64_t ms) {
    return std::to_string(ms) + " ms";
}

std::optional<error> read_ms(const json& value, bool in_ms, std::int64_t low, std::int64_t high, std::string_view shown,
                             std::int64_t& out) {
    if (in_ms) {
        if (!value.is_number_integer()) return bad(shown, "is a whole number of milliseconds, without a fraction");
        if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
            return bad(shown, "is over the limit of ten years");
        }
        out = value.get<std::int64_t>();
    } else {
        if (!value.is_string()) {
            return bad(shown, "is a duration in text, as \"5m\" or \"1500ms\"; for a number of milliseconds write \"" +
                                  std::string(shown) + "_ms\"");
        }
        const auto parsed = parse_duration(value.get_ref<const std::string&>());
        if (!parsed) return bad(shown, "is not a duration: " + parsed.failure().message);
        out = *parsed;
    }
    if (out < 0) return bad(shown, "is negative; durations are " + shown_ms(low) + " or more");
    if (out < low)
        return bad(shown, out == 0 ? "is zero; it is " + shown_ms(low) + " or more" : "is below " + shown_ms(low));
    if (out > high) {
        return bad(shown, high == ten_years_ms ? std::string("is over ten years") : "is over " + shown_ms(high));
    }
    return std::nullopt;
}

template <class T>
option<T> duration(std::string name, std::int64_t T::* field, std::int64_t low = 1, std::int64_t high = ten_years_ms) {
    return {std::move(name), true, [=](T& to, const json& v, std::string_view shown) {
                return read_ms(v, shown.ends_with("_ms"), low, high, shown, to.*field);
            }};
}

template <class T, class N> option<T> integer(std::string name, N T::* field, std::uint64_t low, std::uint64_t high) {
    return {std::move(name), false, [=](T& to, const json& v, std::string_view shown) -> std::optional<error> {
                const std::string range = std::to_string(low) + " .. " + std::to_string(high);
                if (!v.is_number_integer()) return bad(shown, "is a whole number, " + range);
                if (!v.is_number_unsigned() || v.get<std::uint64_t>() < low || v.get<std::uint64_t>() > high) {
                    return bad(shown, "is out of its range " + range);
                }
                to.*field = static_cast<N>(v.get<std::uint64_t>());
                return std::nullopt;
            }};
}

template <class T> option<T> number(std::string name, double T::* field, double low, double high) {
    return {std::move(name), false, [=](T& to, const json& v, std::string_view shown) -> std::optional<error> {
                if (!v.is_number()) return bad(shown, "is a number");
                const auto x = v.get<double>();
                if (!std::isfinite(x) || x < low || x > high) {
                    return bad(shown, "is out of its range " + json(low).dump() + " .. " + json(high).dump());
                }
                to.*field = x;
                return std::nullopt;
            }};
}

template <class T> option<T> boolean(std::string name, bool T::* field) {
    return {std::move(name), false, [=](T& to, const json& v, std::string_view shown) -> std::optional<error> {
                if (!v.is_boolean()) return bad(shown, "is true or false");
                to.*field = v.get<bool>();
                return std::nullopt;
            }};
}

const std::vector<option<fill_policy>>& policy_table() {
    using p = fill_policy;
    static const auto* const table = new std::vector<option<p>>{
        duration("ttl", &p::ttl_ms),
        duration("soft_ttl", &p::soft_ttl_ms),
        duration("absent_ttl", &p::absent_ttl_ms),
        duration("error_ttl", &p::error_ttl_ms, 0),
        duration("wait", &p::wait_ms, 0),
        duration("max_load", &p::max_load_ms),
        number("jitter", &p::jitter, 0, 1),
        number("early", &p::early, 0, 10),
        integer("max_value", &p::max_value, 1, 536'870'912),
        boolean("coalesce", &p::coalesce),
        boolean("fleet", &p::fleet),
        {"lease", true,
         [](p& to, const json& v, std::string_view shown) -> std::optional<error> {
             if (v.is_string() && v.get_ref<const std::string&>() == "auto" && shown == "lease") {
                 to.lease_ms = 0;
                 return std::nullopt;
             }
             return read_ms(v, shown.ends_with("_ms"), 100, hour_ms, shown, to.lease_ms);
         }},
    };
    return *table;
}

std::optional<error> read_codec(fill_policy& to, const json& v, std::string_view shown) {
    static const auto* const names = new std::vector<std::string_view>{"raw", "json", "private"};
    if (v.is_string()) {
        const auto& text = v.get_ref<const std::string&>();
        for (std::size_t i = 0; i < names->size(); ++i) {
            if ((*names)[i] != text) continue;
            to.codec = static_cast<std::uint8_t>(i);
            return std::nullopt;
        }
        return bad(shown, "is raw, json or private, not \"" + text + "\"" + did_you_mean(text, *names));
    }
    return bad(shown, "is one of the texts raw, json, private");
}

const std::vector<option<cache_options>>& cache_table() {
    static const auto* const table = [] {
        auto t = std::make_unique<std::vector<option<cache_options>>>(std::initializer_list<option<cache_options>>{
            integer("version", &cache_options::version, 1, 2'147'483'647),
            {"max_loads", false,
             [](cache_options& to, const json& v, std::string_view shown) {
                 return integer("max_loads", &fill_policy::max_loads, 1, 1'000'000).read(to.policy, v, shown);
             }},
            {"codec", false,
             [](cache_options& to, const json& v, std::string_view shown) { return read_codec(to.policy, v, shown); }},
        });
        for (const auto& o : policy_table()) {
            t->push_back({o.name, o.duration, [&o](cache_options& to, const json& v, std::string_view shown) {
                              return o.read(to.policy, v, shown);
                          }});
        }
        return t.release();
    }();
    return *table;
}

template <class T> option<T> text(std::string name, std::string T::* field) {
    return {std::move(name), false, [=](T& to, const json& v, std::string_view shown) -> std::optional<error> {
                if (!v.is_string() || v.get_ref<const std::string&>().empty() ||
                    v.get_ref<const std::string&>().find('\0') != std::string::npos) {
                    return bad(shown, "is a text that is not empty");
                }
                to.*field = v.get<std::string>();
                return std::nullopt;
            }};
}

const std::vector<option<client_settings>>& client_table() {
    using c = client_settings;
    static const auto* const table = new std::vector<option<c>>{
        duration("command_timeout", &c::command_timeout_ms, 1, hour_ms),
        duration("connect_timeout", &c::connect_timeout_ms, 1, hour_ms),
        duration("close_at_exit", &c::close_at_exit_ms, 0, 60'000),
        integer("max_loads_down", &c::max_loads_down, 1, 1'000'000),
        integer("max_waiters", &c::max_waiters, 1, 1'000'000),
        text("tls_ca_file", &c::tls_ca_file),
        text("tls_cert_file", &c::tls_cert_file),
        text("tls_key_file", &c::tls_key_file),
        text("tls_server_name", &c::tls_server_name),
        {"prefix", false,
         [](c& to, const json& v, std::string_view shown) -> std::optional<error> {
             if (!v.is_string() || !valid_name(v.get_ref<const std::string&>())) {
                 return bad(shown, "is a name of 1 to 64 of the characters A-Z a-z 0-9 . _ -");
             }
             to.prefix = v.get<std::string>();
             return std::nullopt;
         }},
    };
    return *table;
}

const std::vector<option<lock_policy>>& lock_table() {
    using p = lock_policy;
    static const auto* const table = new std::vector<option<p>>{
        duration("ttl", &p::ttl_ms, least_lock_ttl_ms),
        {"wait", true,
         [](p& to, const json& v, std::string_view shown) -> std::optional<error> {
             if (v.is_string() && v.get_ref<const std::string&>() == "forever" && shown == "wait") {
                 to.wait_ms = forever_ms;
                 return std::nullopt;
             }
             return read_ms(v, shown.ends_with("_ms"), 0, ten_years_ms, shown, to.wait_ms);
         }},
        duration("max_hold", &p::max_hold_ms),
        boolean("renew", &p::renew),
        {"label", false,
         [](p& to, const json& v, std::string_view shown) -> std::optional<error> {
             if (!v.is_string() || v.get_ref<const std::string&>().size() > max_label) {
                 return bad(shown, "is a text of at most " + std::to_string(max_label) + " bytes");
             }
             to.label = v.get<std::string>();
             return std::nullopt;
         }},
        {"key", false,
         [](p& to, const json& v, std::string_view shown) -> std::optional<error> {
             if (!v.is_string() || !valid_key(v.get_ref<const std::string&>())) {
                 return bad(shown, "is a key of 1 to " + std::to_string(max_key) + " bytes");
             }
             to.key = v.get<std::string>();
             return std::nullopt;
         }},
    };
    return *table;
}

const std::vector<option<tick_policy>>& tick_table() {
    using p = tick_policy;
    static const auto* const table = new std::vector<option<p>>{
        duration("every", &p::every_ms),
        duration("offset", &p::offset_ms, 0),
        duration("at_most", &p::at_most_ms),
    };
    return *table;
}

// Reads an object of scalars; what is nested counts as an empty array, which no option is. No tree of json
// is built: destroying one needs memory, and ends the process when there is none.
struct flat_object {
    using number_integer_t = json::number_integer_t;
    using number_unsigned_t = json::number_unsigned_t;
    using number_float_t = json::number_float_t;
    using string_t = json::string_t;
    using binary_t = json::binary_t;

    struct member {
        std::string name;
        json value;
    };
    std::vector<member> members;
    bool is_object = false;
    int depth = 0;

    bool scalar(json value) {
        if (depth == 1 && is_object) members.back().value = std::move(value);
        return true;
    }
    bool null() { return scalar(nullptr); }
    bool boolean(bool v) { return scalar(v); }
    bool number_integer(number_integer_t v) { return scalar(v); }
    bool number_unsigned(number_unsigned_t v) { return scalar(v); }
    bool number_float(number_float_t v, const string_t&) { return scalar(v); }
    bool string(string_t& v) { return scalar(std::move(v)); }
    bool binary(binary_t&) { return false; }
    bool key(string_t& name) {
        if (depth == 1) members.push_back({std::move(name), nullptr});
        return true;
    }
    bool start_object(std::size_t) {
        if (depth == 0) is_object = true;
        scalar(json::array());
        return ++depth != 0;
    }
    bool start_array(std::size_t) {
        scalar(json::array());
        return ++depth != 0;
    }
    bool end_object() { return --depth >= 0; }
    bool end_array() { return --depth >= 0; }
    bool parse_error(std::size_t, const std::string&, const json::exception&) { return false; }
};

template <class T> std::optional<error> read_object(std::string_view text, const std::vector<option<T>>& table, T& to) {
    flat_object object;
    if (!json::sax_parse(text.empty() ? "{}" : text, &object)) {
        return fail(status::invalid_argument, "the options are not valid JSON");
    }
    if (!object.is_object) return fail(status::invalid_argument, "the options are not a JSON object");
    std::set<std::string_view> seen;
    for (const auto& [name, value] : object.members) {
        const option<T>* found = nullptr;
        for (const auto& o : table) {
            if (name == o.name || (o.duration && name == o.name + "_ms")) found = &o;
        }
        if (found == nullptr) {
            std::vector<std::string_view> names;
            names.reserve(table.size());
            for (const auto& o : table) names.push_back(o.name);
            return fail(status::unknown_option, "there is no option \"" + name + "\"" + did_you_mean(name, names));
        }
        if (!seen.insert(found->name).second) return bad(found->name, "is given twice");
        if (auto wrong = found->read(to, value, name)) return wrong;
    }
    return std::nullopt;
}

std::optional<error> check(const fill_policy& p) {
    if (p.soft_ttl_ms > 0 && p.ttl_ms > 0 && p.soft_ttl_ms >= p.ttl_ms) {
        return bad("soft_ttl", "(" + shown_ms(p.soft_ttl_ms) + ") is not below \"ttl\" (" + shown_ms(p.ttl_ms) + ")");
    }
    if (p.soft_ttl_ms > 0 && p.ttl_ms == 0) return bad("soft_ttl", "needs \"ttl\" as well");
    return std::nullopt;
}

} // namespace

result<client_settings> read_client_options(std::string_view json_text) {
    client_settings s;
    if (auto wrong = read_object(json_text, client_table(), s)) return *wrong;
    return s;
}

result<cache_options> read_cache_options(std::string_view json_text) {
    cache_options o;
    if (auto wrong = read_object(json_text, cache_table(), o)) return *wrong;
    if (auto wrong = check(o.policy)) return *wrong;
    return o;
}

result<fill_policy> read_policy(std::string_view json_text, const fill_policy& base) {
    fill_policy p = base;
    if (auto wrong = read_object(json_text, policy_table(), p)) return *wrong;
    if (auto wrong = check(p)) return *wrong;
    return p;
}

std::optional<error> check_lock_policy(const lock_policy& p) {
    if (p.ttl_ms == 0) {
        return bad("ttl", "is required: the lock of a process that has died ends with it, and nothing else ends it");
    }
    if (p.ttl_ms < least_lock_ttl_ms || p.ttl_ms > longest_ttl_ms) {
        return bad("ttl", "is " + shown_ms(p.ttl_ms) + "; it is " + shown_ms(least_lock_ttl_ms) + " to ten years");
    }
    if (p.label.size() > max_label) return bad("label", "is over " + std::to_string(max_label) + " bytes");
    return std::nullopt;
}

std::optional<error> check_tick_policy(const tick_policy& p) {
    if (p.every_ms == 0) return bad("every", "is required: it says how long a slot is");
    if (p.every_ms < 1 || p.every_ms > longest_ttl_ms) return bad("every", "is 1 ms to ten years");
    if (p.offset_ms < 0 || p.offset_ms >= p.every_ms) {
        return bad("offset", "(" + shown_ms(p.offset_ms) + ") is not below \"every\" (" + shown_ms(p.every_ms) + ")");
    }
    return std::nullopt;
}

result<lock_policy> read_lock_options(std::string_view json_text) {
    lock_policy p;
    if (auto wrong = read_object(json_text, lock_table(), p)) return *wrong;
    if (auto wrong = check_lock_policy(p)) return *wrong;
    return p;
}

result<tick_policy> read_tick_options(std::string_view json_text) {
    tick_policy p;
    if (auto wrong = read_object(json_text, tick_table(), p)) return *wrong;
    if (auto wrong = check_tick_policy(p)) return *wrong;
    return p;
}

result<bool> read_no_options(std::string_view json_text) {
    struct nothing {};
    nothing n;
    if (auto wrong = read_object(json_text, std::vector<option<nothing>>{}, n)) return *wrong;
    return true;
}

} // namespace stn
