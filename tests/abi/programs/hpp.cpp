// SPDX-License-Identifier: MIT
// The promises of stanchion.hpp, over the shared library.
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include <stanchion/stanchion.hpp>

#include "check.h"

namespace {

struct price {
    double net = 0;
};
void to_json(nlohmann::json& j, const price& p) {
    j = {{"net", p.net}};
}
void from_json(const nlohmann::json& j, price& p) {
    j.at("net").get_to(p.net);
}

struct no_database {
    int attempt;
};

const char* const five_minutes = R"({"ttl": "5m"})";
const char* const as_json = R"({"ttl": "5m", "codec": "json"})";
constexpr int crowd = 8;

std::int32_t code_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const stanchion::error& e) {
        return e.code();
    }
    return STN_OK;
}

// Runs f in `crowd` threads.
void together(const std::function<void(int)>& f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < crowd; ++i) threads.emplace_back(f, i);
    for (auto& t : threads) t.join();
}

// A loader that waits until everybody else has joined its flight.
void wait_for_joins(const stanchion::client& c, std::uint64_t joins) {
    for (int i = 0; i < 5000 && c.stats().joins < joins; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void values() {
    const stanchion::client c("memory://");
    const stanchion::cache k(c, "values", five_minutes);
    int loads = 0;
    auto load = [&] { return "v" + std::to_string(++loads); };
    PROMISE(k.get("1") == std::nullopt, "get finds nothing");
    PROMISE(k.get_or_load("1", load) == "v1" && k.get_or_load("1", load) == "v1", "a value is loaded once");
    PROMISE(k.get("1") == "v1", "get finds it");
    k.invalidate("1");
    PROMISE(k.get_or_load("1", load) == "v2", "an invalidated value is loaded again");
    k.put("1", "put");
    PROMISE(k.get_or_load("1", load) == "put", "a value that was put is found");
    PROMISE(k.get_or_load("1", load, {STN_DEFAULT_MS, STN_FETCH_FORCE}) == "v3", "force loads");
    k.put("empty", "");
    PROMISE(k.get("empty") == "", "an empty value is a value");

    auto nothing = [&]() -> std::optional<std::string> {
        ++loads;
        return std::nullopt;
    };
    PROMISE(!k.get_or_load("2", nothing) && !k.get_or_load("2", nothing) && loads == 4, "absence is cached");
    c.close();
    PROMISE(code_of([&] { (void)k.get_or_load("1", load); }) == STN_CLOSED, "a closed client says so");
}

void expiry() {
    const stanchion::client c("memory://?clock=manual");
    const stanchion::cache k(c, "expiry", five_minutes);
    const stanchion::policy brief(k, R"({"ttl": "1s"})");
    int loads = 0;
    auto load = [&](stanchion::loading& l) {
        if (++loads == 1) l.expires(10'000);
        return std::to_string(loads);
    };
    PROMISE(k.get_or_load("1", load) == "1", "a loader sets a ttl of its own");
    c.advance(9'000);
    PROMISE(k.get_or_load("1", load) == "1", "before it the value is there");
    c.advance(3'000);
    PROMISE(k.get_or_load("1", load) == "2", "after it the value is gone");
    stanchion::call how;
    how.policy = brief.get();
    PROMISE(k.get_or_load("2", load, how) == "3", "a policy of its own for a call");
    c.advance(1'500);
    PROMISE(k.get_or_load("2", load) == "4", "and its ttl holds");
}

void failures() {
    const stanchion::client c("memory://");
    const stanchion::cache k(c, "failures", R"({"ttl": "5m", "error_ttl": "1h"})");
    try {
        (void)k.get_or_load("1", []() -> std::string { throw no_database{7}; });
        PROMISE(false, "an exception of the loader reaches its caller");
    } catch (const no_database& e) {
        PROMISE(e.attempt == 7, "an exception of the loader reaches its caller");
    }
    PROMISE(code_of([&] { (void)k.get_or_load("1", [] { return "v"; }); }) == STN_LOAD_FAILED,
            "others are told load_failed, and do not try again for error_ttl");

    int loads = 0;
    std::atomic<int> caught{0};
    together([&](int) {
        try {
            (void)k.get_or_load("2", [&]() -> std::string {
                ++loads;
                wait_for_joins(c, crowd - 1);
                throw no_database{8};
            });
        } catch (const no_database& e) {
            if (e.attempt == 8) ++caught;
        }
    });
    PROMISE(loads == 1 && caught == crowd, "callers who joined get the very exception");

    PROMISE(code_of([&] { stanchion::cache(c, "x", R"({"tll": "5m"})"); }) == STN_UNKNOWN_OPTION,
            "an unknown option is refused");
    PROMISE(code_of([&] { (void)k.get_or_load("", [] { return "v"; }); }) == STN_INVALID_ARGUMENT,
            "an empty key is refused");
    PROMISE(code_of([&] {
                (void)k.get_or_load("3", [](stanchion::loading& l) {
                    l.expires(0);
                    return "v";
                });
            }) == STN_INVALID_ARGUMENT,
            "an answer that is refused is told to its caller");

    std::int32_t inner = STN_OK;
    auto outer = [&](stanchion::loading& l) {
        stanchion::call within;
        within.within = l.scope();
        inner = code_of([&] { (void)k.get_or_load("4", [] { return "inner"; }, within); });
        return "outer";
    };
    PROMISE(k.get_or_load("4", outer) == "outer" && inner == STN_WOULD_DEADLOCK,
            "a loader that asks for its own key is told would_deadlock");
}

void typed() {
    const stanchion::client c("memory://");
    const stanchion::cache k(c, "typed", as_json);
    PROMISE(k.get_or_load_as<price>("1", [] { return price{2.5}; })->net == 2.5, "a typed value is loaded");
    PROMISE(k.get_as<price>("1")->net == 2.5, "and found");
    PROMISE(k.get("1") == R"({"net":2.5})", "as JSON");
    k.put_as("2", price{3});
    PROMISE(k.get_or_load_as<price>("2", [] { return price{9}; })->net == 3, "a typed value that was put is found");
    PROMISE(!k.get_or_load_as<price>("3", [] { return std::optional<price>(); }), "typed absence");
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    PROMISE(code_of([&] { k.put_as("4", price{nan}); }) == STN_INVALID_ARGUMENT, "NaN is refused");
    PROMISE(code_of([&] { k.put_as("4", std::map<std::string, std::vector<double>>{{"a", {1, nan}}}); }) ==
                STN_INVALID_ARGUMENT,
            "NaN inside is refused");

    k.put("5", R"({"gross": 1})");
    PROMISE(code_of([&] { (void)k.get_as<price>("5"); }) == STN_UNDECODABLE, "get says that it cannot decode");
    std::atomic<int> loads{0};
    std::atomic<int> right{0};
    together([&](int) {
        const auto got = k.get_or_load_as<price>("5", [&] {
            ++loads;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            return price{4};
        });
        if (got && got->net == 4) ++right;
    });
    PROMISE(loads == 1 && right == crowd, "a broken value is loaded again, once for all");
}

void groups() {
    const stanchion::client c("memory://");
    const stanchion::group g(c);
    std::atomic<int> runs{0};
    std::atomic<int> right{0};
    together([&](int) {
        const auto got = g.run("k", [&] {
            ++runs;
            wait_for_joins(c, crowd - 1);
            return "shared";
        });
        if (got == "shared") ++right;
    });
    PROMISE(runs == 1 && right == crowd, "a group runs once for all who ask");
    together([&](int) {
        try {
            (void)g.run("k", [&]() -> std::string {
                ++runs;
                wait_for_joins(c, 2 * (crowd - 1));
                throw no_database{9};
            });
        } catch (const no_database& e) {
            if (e.attempt == 9) ++right;
        }
    });
    PROMISE(runs == 2 && right == 2 * crowd, "and gives all the very exception");
    PROMISE(stanchion::group().run("k", [] { return "alone"; }) == "alone", "a group needs no client");
    PROMISE(!g.run("k", [] { return std::optional<std::string>(); }), "a group may answer absence");
    g.forget("k");
}

} // namespace

int main() {
    try {
        values();
        expiry();
        failures();
        typed();
        groups();
    } catch (const std::exception& e) {
        std::printf("%s\n", e.what());
        PROMISE(false, "nothing else is thrown");
    }
    return finish();
}
