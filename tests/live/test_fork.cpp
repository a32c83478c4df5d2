// SPDX-License-Identifier: MIT
//
// After a fork the connection is the parent's alone.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stanchion/stanchion.h>

#include "support/live_server.hpp"

using namespace stn::test;

namespace {

int open_sockets() {
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        struct stat about{};
        if (::stat(entry.path().c_str(), &about) == 0 && S_ISSOCK(about.st_mode)) ++n;
    }
    return n;
}

std::int32_t load(void*, stn_lease*, stn_sink* sink) {
    return stn_sink_write(sink, "value", 5);
}

std::int32_t get_or_load(stn_cache* cache) {
    stn_event* e = nullptr;
    const std::int32_t code =
        stn_cache_get_or_load(cache, nullptr, "k", 1, 5'000, 0, nullptr, load, nullptr, &e, nullptr);
    stn_event_free(e);
    return code;
}

} // namespace

TEST_CASE(
    "a fork child is told so, closes its copy of the connection with the handle, and the parent notices nothing") {
    live_server server(server_kind::redis);
    stn_client* client = nullptr;
    stn_cache* cache = nullptr;
    REQUIRE(stn_client_open(server.url().c_str(), nullptr, &client, nullptr) == STN_OK);
    REQUIRE(stn_cache_open(client, "fork", 4, "{\"ttl\": \"1h\"}", &cache, nullptr) == STN_OK);
    REQUIRE(get_or_load(cache) == STN_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); // the fill is done, and nobody is in a turn
    const int before = open_sockets();
    const pid_t child = ::fork();
    if (child == 0) {
        const bool told = get_or_load(cache) == STN_FORKED;
        stn_cache_free(cache);
        stn_client_free(client);
        const bool closed = open_sockets() < before;
        stn_client* own = nullptr;
        stn_cache* own_cache = nullptr;
        const bool works = stn_client_open(server.url().c_str(), nullptr, &own, nullptr) == STN_OK &&
                           stn_cache_open(own, "fork", 4, "{\"ttl\": \"1h\"}", &own_cache, nullptr) == STN_OK &&
                           get_or_load(own_cache) == STN_OK;
        ::_exit((told ? 0 : 1) | (closed ? 0 : 2) | (works ? 0 : 4));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    for (int i = 0; i < 100; ++i) CHECK(get_or_load(cache) == STN_OK);
    CHECK(stn_client_close(client, -1, nullptr) == STN_OK);
    stn_cache_free(cache);
    stn_client_free(client);
}
