// SPDX-License-Identifier: MIT
//
// All of it at random, while callers never stop: nobody ever gets another's answer, nobody hangs, nothing stays for
// ever. The seed is printed; the order of things on a real network is not the seed's to say.
#include <doctest/doctest.h>

#include <atomic>
#include <random>

#include "app.hpp"
#include "protocol/scripts.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

void stir(proxy& net, live_server& server, std::mt19937& dice) {
    const auto side = dice() % 2 == 0 ? way::to_client : way::to_server;
    const auto script = static_cast<script_id>(dice() % static_cast<unsigned>(script_id::count_));
    switch (dice() % 11) {
    case 0: net.cut(ending::closed); break;
    case 1: net.cut(ending::reset); break;
    case 2: net.delay(side, std::chrono::milliseconds(dice() % 200)); break;
    case 3: net.hold(side); break;
    case 4: net.trickle(side); break;
    case 5: net.lose_reply_to(std::string(script_of(script).sha1)); break;
    case 6: net.lose_request(std::string(script_of(script).sha1)); break;
    case 7: net.cut_after(side, dice() % 20'000); break;
    case 8: static_cast<void>(server.ask({"SCRIPT", "FLUSH"})); break;
    case 9: static_cast<void>(server.ask({"CLIENT", "KILL", "TYPE", dice() % 2 == 0 ? "normal" : "pubsub"})); break;
    default: net.pass(); break;
    }
}

} // namespace

TEST_CASE("whatever the network does: nobody gets another's answer, nobody hangs, nothing stays for ever") {
    on_each([](server_kind kind) {
        const auto seed = std::random_device{}();
        INFO("seed ", seed);
        std::mt19937 dice(seed);
        live_server server(kind);
        proxy net(server.port());
        const std::string options = R"({"command_timeout": "50ms", "connect_timeout": "200ms"})";
        app here(net.url(), options);
        app there(net.url(), options);
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> done{0};
        std::atomic<std::uint64_t> strange{0};
        std::atomic<std::int64_t> slowest{0};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 8; ++t) {
            threads.emplace_back([&, t] {
                std::mt19937 own(seed + t);
                app& shop = t % 2 == 0 ? here : there;
                while (!stop.load()) {
                    const std::string key = "key " + std::to_string(own() % 40) + " ";
                    const std::string value = key + std::string(own() % 3'000, 'x');
                    const auto what = own() % 10;
                    const answer a = what == 0   ? shop.put(key, value)
                                     : what == 1 ? shop.invalidate(key, own() % 2, 200)
                                     : what < 4  ? shop.get(key)
                                                 : shop.load(key, value);
                    if (what >= 4 && a.status != STN_OK) ++strange; // a load depends on no store
                    if (!a.bytes.empty() && !a.bytes.starts_with(key)) ++strange;
                    if (a.took.count() > slowest.load()) slowest = a.took.count();
                    ++done;
                }
            });
        }
        for (int i = 0; i < 60; ++i) {
            stir(net, server, dice);
            std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 40));
        }
        net.pass();
        net.lose_reply_to("nothing that anybody says");
        stop = true;
        for (auto& t : threads) t.join();
        CHECK(done.load() > 100);
        CHECK(strange.load() == 0);
        CHECK(slowest.load() < 5'000);
        for (app* shop : {&here, &there}) {
            REQUIRE(shop->ready(10'000).status == STN_OK);
            REQUIRE(eventually([&] {
                static_cast<void>(shop->load("after", "after all"));
                return shop->get("after").bytes == "after all";
            }));
        }
        CHECK(left_in(server).without_ttl == 0);
        // No lease stands in anybody's way for longer than it takes to let go of it.
        CHECK(eventually([&] { return left_in(server).placeholders == 0; }, 12s));
    });
}
