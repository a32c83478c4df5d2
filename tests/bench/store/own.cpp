// SPDX-License-Identifier: MIT
#include <atomic>
#include <string>
#include <vector>

#include <stanchion/stanchion.h>

#include "loads.hpp"
#include "timed.hpp"

namespace stn::bench {

struct own_client::handles {
    stn_client* client = nullptr;
    stn_cache* cache = nullptr;
    std::vector<std::string> keys;
};

namespace {

void must(std::int32_t code, const char* what) {
    if (code != STN_OK) give_up(what);
}

void must_be_value(const stn_event* e) {
    if (stn_event_kind(e) != STN_EVENT_VALUE) give_up("a get of ours brought no value");
}

std::int32_t no_loader(void*, stn_lease*, stn_sink*) {
    give_up("a hit called the loader");
}

} // namespace

own_client::own_client(const std::string& url, int keys) : of_(new handles) {
    must(stn_client_open(url.c_str(), "{\"command_timeout\": \"10s\"}", &of_->client, nullptr), "no client");
    must(stn_cache_open(of_->client, "bench", 5, "{\"ttl\": \"1h\"}", &of_->cache, nullptr), "no cache");
    stn_queue* q = nullptr;
    must(stn_queue_new(0, &q, nullptr), "no queue");
    const std::string value(200, 'v');
    for (int i = 0; i < keys; ++i) {
        of_->keys.push_back(key_of(i));
        const std::string& key = of_->keys.back();
        must(stn_cache_put(of_->cache, nullptr, key.data(), key.size(), value.data(), value.size(), STN_CODEC_DEFAULT,
                           -1, -1, -1, q, 0, nullptr, nullptr),
             "no put");
        stn_event* done = nullptr;
        must(stn_queue_next(q, 5'000, &done, nullptr), "no answer to a put");
        if (stn_event_kind(done) != STN_EVENT_DONE) give_up("a put of ours failed");
        stn_event_free(done);
    }
    stn_queue_free(q);
}

own_client::~own_client() {
    stn_cache_free(of_->cache);
    stn_client_close(of_->client, 0, nullptr);
    stn_client_free(of_->client);
    delete of_;
}

double own_client::get(int threads, int ms) {
    return timed(threads, ms, [&](int me, const std::atomic<bool>& go_on) {
        const std::string& key = of_->keys[static_cast<std::size_t>(me)];
        stn_queue* q = nullptr;
        must(stn_queue_new(0, &q, nullptr), "no queue");
        must(stn_queue_set_sync(q, nullptr), "no sync queue");
        std::uint64_t n = 0;
        for (; go_on; ++n) {
            stn_event* e = nullptr;
            must(stn_cache_get(of_->cache, key.data(), key.size(), -1, q, 0, nullptr, nullptr, nullptr), "no get");
            must(stn_queue_next(q, -1, &e, nullptr), "no answer");
            must_be_value(e);
            stn_event_free(e);
        }
        stn_queue_free(q);
        return n;
    });
}

double own_client::get_or_load(int threads, int ms) {
    return timed(threads, ms, [&](int me, const std::atomic<bool>& go_on) {
        const std::string& key = of_->keys[static_cast<std::size_t>(me)];
        std::uint64_t n = 0;
        for (; go_on; ++n) {
            stn_event* e = nullptr;
            must(stn_cache_get_or_load(of_->cache, nullptr, key.data(), key.size(), -1, 0, nullptr, no_loader, nullptr,
                                       &e, nullptr),
                 "no get_or_load");
            stn_event_free(e);
        }
        return n;
    });
}

double own_client::get_in_flight(int depth, int ms) {
    return timed(1, ms, [&](int, const std::atomic<bool>& go_on) {
        stn_queue* q = nullptr;
        must(stn_queue_new(0, &q, nullptr), "no queue");
        std::uint64_t begun = 0;
        std::uint64_t done = 0;
        const auto begin = [&](std::uint64_t which) {
            const std::string& key = of_->keys[which];
            must(stn_cache_get(of_->cache, key.data(), key.size(), -1, q, which, nullptr, nullptr, nullptr), "no get");
            ++begun;
        };
        for (int i = 0; i < depth; ++i) begin(static_cast<std::uint64_t>(i));
        std::vector<stn_event*> some(static_cast<std::size_t>(depth));
        while (done < begun) {
            std::size_t n = 0;
            must(stn_queue_drain(q, some.size(), -1, some.data(), &n, nullptr), "no answers");
            for (std::size_t i = 0; i < n; ++i) {
                must_be_value(some[i]);
                const std::uint64_t which = stn_event_tag(some[i]);
                stn_event_free(some[i]);
                if (go_on) begin(which);
            }
            done += n;
        }
        stn_queue_free(q);
        return done;
    });
}

std::uint64_t own_client::commands() const {
    stn_stats s{};
    must(stn_client_stats(of_->client, &s, sizeof s, nullptr), "no stats");
    return s.commands;
}

} // namespace stn::bench
