// SPDX-License-Identifier: MIT
#include "commands.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "exit_code.hpp"
#include "holder.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

namespace {

using steady = std::chrono::steady_clock;

constexpr int round_trips = 5;
constexpr auto probe_lock = R"({"ttl": "5s", "wait": "0s", "renew": false})";
constexpr auto probe_wait = R"({"ttl": "5s", "wait": "500ms"})";
constexpr auto probe_cache = R"({"ttl": "5s"})";

double ms_since(steady::time_point began) {
    return std::chrono::duration<double, std::milli>(steady::now() - began).count();
}

std::string in_ms(double ms) {
    const auto micros = static_cast<std::int64_t>(ms * 1'000);
    std::string digits = std::to_string(micros % 1'000);
    digits.insert(0, 3 - digits.size(), '0');
    return std::to_string(micros / 1'000) + "." + digits.substr(0, micros < 10'000 ? 2 : 1) + " ms";
}

event_handle ready(session& store) {
    return store.ask("", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
        *op = 0;
        return stn_client_ready(store.client(), STN_DEFAULT_MS, q, tag, e);
    });
}

// Does what locks and caches do, with keys of its own, and keeps what the store says to it.
class probe {
  public:
    probe(const options& given, session& store) : given_(given), store_(store), name_("ping:" + own_label()) {
        stn_cache* cache = nullptr;
        static_cast<void>(stn_cache_open(store.client(), "stanchion-ping", 14, probe_cache, &cache, nullptr));
        cache_.reset(cache);
    }

    // The fastest of some.
    double round_trip_ms() {
        double best = 0;
        for (int i = 0; i < round_trips; ++i) {
            const auto began = steady::now();
            if (!get()) break;
            best = i == 0 ? ms_since(began) : std::min(best, ms_since(began));
        }
        return best;
    }

    void caches() {
        const bool written =
            must("writing a value", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
                return stn_cache_put(cache_.get(), nullptr, name_.data(), name_.size(), "x", 1, STN_CODEC_DEFAULT,
                                     STN_DEFAULT_MS, STN_DEFAULT_MS, STN_DEFAULT_MS, q, tag, op, e);
            });
        if (written) {
            must("invalidating a value", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
                return stn_cache_invalidate(cache_.get(), name_.data(), name_.size(), 0, 0, q, tag, op, e);
            });
        }
    }

    void locks() {
        lock_handle lock;
        must("taking a lock", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
            return stn_lock_acquire(store_.client(), name_.data(), name_.size(), probe_lock, nullptr, STN_DEFAULT_MS,
                                    nullptr, q, tag, q, loss_tag, op, e);
        });
        lock.reset(answered_ ? stn_event_take_lock(answered_.get()) : nullptr);
        if (!lock) return;
        hear();
        must("renewing a lock", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
            *op = 0;
            return stn_lock_renew(lock.get(), STN_DEFAULT_MS, q, tag, e);
        });
        must("releasing a lock", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
            *op = 0;
            return stn_lock_release(lock.get(), STN_DEFAULT_MS, q, tag, e);
        });
    }

    void keep(const session& from) {
        for (const auto& one : from.noticed()) {
            if (one.code != exit_ok) noticed_.push_back(one);
        }
    }
    // What went wrong. What the library noticed counts where no call failed: rights to publish and to subscribe are
    // missed by nobody else.
    [[nodiscard]] const std::vector<failure>& flaws() const { return flaws_.empty() ? noticed_ : flaws_; }

  private:
    // A second client waits for the lock of the first, in vain: it subscribes.
    void hear() {
        session other(given_, store_.from_outside());
        other.keep_notices();
        try {
            static_cast<void>(ready(other));
            static_cast<void>(
                other.ask("waiting for a lock", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
                    return stn_lock_acquire(other.client(), name_.data(), name_.size(), probe_wait, nullptr,
                                            STN_DEFAULT_MS, nullptr, q, tag, q, loss_tag, op, e);
                }));
        } catch (const failure& said) {
            if (said.code != exit_busy) flaws_.push_back(said);
        }
        keep(other);
    }
    bool get() {
        return must("reading a value", [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
            return stn_cache_get(cache_.get(), name_.data(), name_.size(), STN_DEFAULT_MS, q, tag, op, nullptr, e);
        });
    }
    bool must(const std::string& what, const session::begin& how) {
        answered_.reset();
        try {
            answered_ = store_.ask(what, how);
        } catch (const failure& said) {
            flaws_.push_back(said);
        }
        return answered_ != nullptr;
    }

    const options& given_;
    session& store_;
    const std::string name_;
    cache_handle cache_;
    event_handle answered_;
    std::vector<failure> flaws_;
    std::vector<failure> noticed_;
};

} // namespace

ending ping(const options& given, const signals& outside) {
    const auto began = steady::now();
    session store(given, outside);
    const auto answered = ready(store);
    const double connected_ms = ms_since(began);

    store.keep_notices();
    probe tried(given, store);
    const double round_trip_ms = tried.round_trip_ms();
    tried.caches();
    tried.locks();
    tried.keep(store);

    std::size_t n = 0;
    const auto* told = static_cast<const char*>(stn_event_bytes(answered.get(), &n));
    const auto server = nlohmann::json::parse(std::string_view(told, n), nullptr, false);
    const auto said = [&](const char* what) { return server.is_object() ? server.value(what, "") : std::string(); };

    nlohmann::json as_json = {{"store", without_password(given.store)},
                              {"connected_ms", connected_ms},
                              {"round_trip_ms", round_trip_ms},
                              {"server", said("server")},
                              {"version", said("version")},
                              {"mode", said("mode")},
                              {"role", said("role")},
                              {"ok", tried.flaws().empty()},
                              {"flaws", nlohmann::json::array()}};
    std::string text = without_password(given.store) + ": ";
    for (const char* what : {"server", "version", "mode", "role"})
        if (!said(what).empty()) text += said(what) + (what == std::string_view("server") ? " " : ", ");
    text += "connected in " + in_ms(connected_ms) + ", round trip " + in_ms(round_trip_ms);
    for (const auto& flaw : tried.flaws()) {
        text += "\n  " + std::string(flaw.what());
        as_json["flaws"].push_back({{"code", flaw.kind}, {"message", flaw.what()}});
    }
    if (tried.flaws().empty()) text += "; caches and locks work";
    answer(given, text, as_json);
    return {tried.flaws().empty() ? int{exit_ok} : tried.flaws().front().code, 0};
}

} // namespace cli
