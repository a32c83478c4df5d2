// SPDX-License-Identifier: MIT
#include "app.hpp"

#include <algorithm>
#include <stdexcept>

#include <doctest/doctest.h>

#include "protocol/envelope.hpp"
#include "protocol/keys.hpp"

namespace stn::test {

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t stuck_ms = 60'000;
constexpr std::size_t fill_bit = std::size_t{1} << 40;

milliseconds since(steady::time_point when) {
    return std::chrono::duration_cast<milliseconds>(steady::now() - when);
}

void read_error(const stn_error* e, answer& out) {
    if (e == nullptr) return;
    out.message = stn_error_message(e);
    if (const char* said = stn_error_server_text(e)) out.server_text = said;
    out.may_have_applied = (stn_error_flags(e) & STN_ERROR_MAY_HAVE_APPLIED) != 0;
}

answer read_event(const stn_event* e) {
    answer out;
    out.status = stn_event_status(e);
    out.flags = stn_event_flags(e);
    std::size_t n = 0;
    if (const void* p = stn_event_bytes(e, &n)) out.bytes.assign(static_cast<const char*>(p), n);
    read_error(stn_event_error(e), out);
    return out;
}

owned<stn_queue> make_queue() {
    stn_queue* q = nullptr;
    if (stn_queue_new(1, &q, nullptr) != STN_OK) throw std::runtime_error("no queue");
    return owned<stn_queue>(q);
}

owned<stn_event> next(stn_queue* q, std::int64_t timeout_ms) {
    stn_event* e = nullptr;
    static_cast<void>(stn_queue_next(q, timeout_ms, &e, nullptr));
    return owned<stn_event>(e);
}

// Begins an operation on a queue of its own and waits for its end.
template <class Begin> answer one(Begin&& begin) {
    const auto q = make_queue();
    const auto began = steady::now();
    stn_error* refused = nullptr;
    const std::int32_t status = begin(q.get(), &refused);
    const owned<stn_error> why(refused);
    answer out;
    if (status != STN_OK) {
        out.status = status;
        read_error(why.get(), out);
        return out;
    }
    const auto e = next(q.get(), stuck_ms);
    if (!e) throw std::runtime_error("a call has no answer after a minute");
    out = read_event(e.get());
    out.took = since(began);
    return out;
}

} // namespace

app::app(const std::string& url, const std::string& options, const std::string& policy) : told_to_(make_queue()) {
    stn_client* client = nullptr;
    stn_error* why = nullptr;
    if (stn_client_open(url.c_str(), options.c_str(), &client, &why) != STN_OK) {
        const owned<stn_error> e(why);
        throw std::runtime_error(stn_error_message(e.get()));
    }
    client_.reset(client);
    static_cast<void>(stn_client_watch(client, STN_NOTICE_ALL, told_to_.get(), 0, nullptr));
    stn_cache* cache = nullptr;
    if (stn_cache_open(client, "prices", 6, policy.c_str(), &cache, &why) != STN_OK) {
        const owned<stn_error> e(why);
        throw std::runtime_error(stn_error_message(e.get()));
    }
    cache_.reset(cache);
}

answer app::load(std::string_view key, const loader& with, std::int64_t deadline_ms) {
    struct call {
        const loader& with;
        bool ran = false;
    } mine{with};
    const auto began = steady::now();
    stn_event* e = nullptr;
    stn_error* why = nullptr;
    answer out;
    const std::int32_t status = stn_cache_get_or_load(
        cache_.get(), nullptr, key.data(), key.size(), deadline_ms, 0, nullptr,
        [](void* ud, stn_lease*, stn_sink* sink) -> std::int32_t {
            auto& c = *static_cast<call*>(ud);
            c.ran = true;
            const auto value = c.with();
            return value ? stn_sink_write(sink, value->data(), value->size()) : std::int32_t{STN_LOAD_FAILED};
        },
        &mine, &e, &why);
    const owned<stn_event> event(e);
    const owned<stn_error> error(why);
    if (event) out = read_event(event.get());
    read_error(error.get(), out);
    out.status = status;
    out.loaded = mine.ran;
    out.took = since(began);
    return out;
}

answer app::get(std::string_view key, std::int64_t deadline_ms) {
    return one([&](stn_queue* q, stn_error** e) {
        return stn_cache_get(cache_.get(), key.data(), key.size(), deadline_ms, q, 0, nullptr, nullptr, e);
    });
}

answer app::put(std::string_view key, std::string_view value, std::int64_t deadline_ms) {
    return one([&](stn_queue* q, stn_error** e) {
        return stn_cache_put(cache_.get(), nullptr, key.data(), key.size(), value.data(), value.size(),
                             STN_CODEC_DEFAULT, STN_DEFAULT_MS, STN_DEFAULT_MS, deadline_ms, q, 0, nullptr, e);
    });
}

answer app::invalidate(std::string_view key, std::uint32_t flags, std::int64_t deadline_ms) {
    return one([&](stn_queue* q, stn_error** e) {
        return stn_cache_invalidate(cache_.get(), key.data(), key.size(), flags, deadline_ms, q, 0, nullptr, e);
    });
}

answer app::ready(std::int64_t deadline_ms) {
    return one([&](stn_queue* q, stn_error** e) { return stn_client_ready(client_.get(), deadline_ms, q, 0, e); });
}

std::vector<told> app::notices() {
    while (const auto e = next(told_to_.get(), 0)) {
        const answer a = read_event(e.get());
        told_.push_back({stn_event_reason(e.get()), a.status, a.bytes});
    }
    return told_;
}

std::vector<told> app::notices(std::int32_t of_kind, std::optional<std::int32_t> status) {
    auto all = notices();
    std::erase_if(all, [&](const told& t) { return t.what != of_kind || (status && t.status != *status); });
    return all;
}

stn_stats app::stats() {
    stn_stats out{};
    static_cast<void>(stn_client_stats(client_.get(), &out, sizeof out, nullptr));
    return out;
}

answer refused_open(const std::string& url, const std::string& options) {
    stn_client* client = nullptr;
    stn_error* why = nullptr;
    answer out;
    out.status = stn_client_open(url.c_str(), options.c_str(), &client, &why);
    const owned<stn_client> c(client);
    const owned<stn_error> e(why);
    read_error(e.get(), out);
    return out;
}

// ---- crowds

crowd::crowd(app& of, milliseconds load_takes) : app_(of), load_takes_(load_takes), queue_(make_queue()) {}

std::size_t crowd::begin(std::string_view key) {
    answers.emplace_back();
    keys_.emplace_back(key);
    began_.push_back(steady::now());
    ++open_;
    return answers.size() - 1;
}

std::size_t crowd::fetch(std::string_view key, std::int64_t deadline_ms) {
    const auto who = begin(key);
    CHECK(stn_cache_fetch(app_.cache(), nullptr, key.data(), key.size(), deadline_ms, 0, nullptr, queue_.get(), who,
                          nullptr, nullptr, nullptr) == STN_OK);
    return who;
}

std::size_t crowd::get(std::string_view key) {
    const auto who = begin(key);
    CHECK(stn_cache_get(app_.cache(), key.data(), key.size(), STN_DEFAULT_MS, queue_.get(), who, nullptr, nullptr,
                        nullptr) == STN_OK);
    return who;
}

std::size_t crowd::put(std::string_view key, std::string_view value) {
    const auto who = begin(key);
    CHECK(stn_cache_put(app_.cache(), nullptr, key.data(), key.size(), value.data(), value.size(), STN_CODEC_DEFAULT,
                        STN_DEFAULT_MS, STN_DEFAULT_MS, STN_DEFAULT_MS, queue_.get(), who, nullptr, nullptr) == STN_OK);
    return who;
}

std::size_t crowd::invalidate(std::string_view key) {
    const auto who = begin(key);
    CHECK(stn_cache_invalidate(app_.cache(), key.data(), key.size(), 0, STN_DEFAULT_MS, queue_.get(), who, nullptr,
                               nullptr) == STN_OK);
    return who;
}

bool crowd::serve(milliseconds patience) {
    return serve_until([&] { return open_ == 0 && loads_.empty(); }, patience);
}

bool crowd::serve_until(const std::function<bool()>& done, milliseconds patience) {
    const auto until = steady::now() + patience;
    for (;;) {
        for (std::size_t i = 0; i < loads_.size();) {
            if (loads_[i].ready > steady::now()) {
                ++i;
                continue;
            }
            load one = std::move(loads_[i]);
            loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(i));
            finish(one);
        }
        if (done()) return true;
        if (steady::now() > until) return false;
        auto wake = std::min(until, steady::now() + milliseconds(20));
        for (const load& one : loads_) wake = std::min(wake, one.ready);
        const auto ms = std::chrono::duration_cast<milliseconds>(wake - steady::now()).count();
        if (auto e = next(queue_.get(), std::max<std::int64_t>(0, ms))) take(std::move(e));
    }
}

void crowd::take(owned<stn_event> e) {
    const auto who = static_cast<std::size_t>(stn_event_tag(e.get()));
    switch (stn_event_kind(e.get())) {
    case STN_EVENT_LEASE:
        loads_.push_back({owned<stn_lease>(stn_event_take_lease(e.get())), who, steady::now() + load_takes_});
        answers[who].loaded = true;
        return;
    case STN_EVENT_FILLED: filled.push_back(stn_event_status(e.get())); return;
    case STN_EVENT_REVOKED:
    case STN_EVENT_NOTICE: return;
    default: break;
    }
    answers[who] = read_event(e.get());
    answers[who].took = since(began_[who]);
    --open_;
}

void crowd::finish(load& one) {
    const std::string value = keys_[one.who] + "!";
    values.push_back(value);
    CHECK(stn_lease_fulfil(one.held.get(), value.data(), value.size(), STN_CODEC_DEFAULT, STN_DEFAULT_MS,
                           STN_DEFAULT_MS, 0, queue_.get(), one.who | fill_bit, nullptr, nullptr) == STN_OK);
    answers[one.who].bytes = value; // who led has it from its own hands
    answers[one.who].took = since(began_[one.who]);
    --open_;
}

std::vector<answer> at_once(std::size_t n, const std::function<answer(std::size_t)>& what) {
    std::vector<answer> out(n);
    std::vector<std::thread> threads;
    threads.reserve(n);
    for (std::size_t i = 0; i < n; ++i) threads.emplace_back([&, i] { out[i] = what(i); });
    for (auto& t : threads) t.join();
    return out;
}

bool eventually(const std::function<bool()>& what, milliseconds patience) {
    const auto until = steady::now() + patience;
    while (!what()) {
        if (steady::now() > until) return false;
        std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
}

void on_each(const std::function<void(server_kind)>& what) {
    for (const server_kind kind : server_kinds) {
        INFO(server_name(kind));
        what(kind);
    }
}

// ---- what the store sees

remains left_in(live_server& server) {
    remains out;
    std::string cursor = "0";
    do {
        const reply page = server.ask({"SCAN", cursor, "COUNT", "1000"});
        cursor = page.items.at(0).text;
        for (const reply& key : page.items.at(1).items) {
            const reply ttl = server.ask({"PTTL", key.text});
            if (ttl.integer == -2) continue; // gone meanwhile
            ++out.keys;
            if (ttl.integer == -1) ++out.without_ttl;
            const reply bytes = server.ask({"GET", key.text});
            envelope e;
            if (bytes.kind != reply_kind::bulk || decode(bytes.text, e) != reading::ours) continue;
            ++(e.kind == entry_kind::placeholder                             ? out.placeholders
               : e.kind == entry_kind::value || e.kind == entry_kind::absent ? out.values
                                                                             : out.markers);
        }
    } while (cursor != "0");
    return out;
}

std::string store_key(std::string_view key) {
    return value_key("stn", "prices", key);
}

std::uint64_t calls_of(live_server& server, const std::string& command) {
    const std::string all = server.ask({"INFO", "commandstats"}).text;
    const std::string head = "cmdstat_" + command + ":calls=";
    const auto at = all.find(head);
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + head.size()));
}

} // namespace stn::test
