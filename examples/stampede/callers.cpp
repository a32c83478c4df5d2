// SPDX-License-Identifier: MIT
#include "callers.hpp"

#include <array>
#include <memory>
#include <utility>

#include "opening.hpp"

namespace stampede {
namespace {

constexpr std::uint64_t fill_tag = std::uint64_t{1} << 63;

} // namespace

Callers::Callers(std::vector<Arrival> arrivals, const Strategy& strategy, Source source)
    : strategy_(strategy),
      source_(std::move(source)),
      tally_(std::move(arrivals)) {}

void Callers::submit(std::size_t caller, stn_cache* cache, stn_queue* queue) {
    stn_event* now = nullptr;
    stn_error* raw = nullptr;
    auto flags = static_cast<std::uint32_t>(strategy_.soft ? STN_FETCH_REFRESH : 0);
    int32_t status = stn_cache_fetch(cache, nullptr, hot_key.data(), hot_key.size(), STN_DEFAULT_MS, flags, nullptr,
                                     queue, caller, nullptr, &now, &raw);
    Error error(raw);
    if (status != STN_OK) {
        tally_.error(caller, described(status, raw));
    } else if (now) {
        take(Event(now), queue);
    }
}

int32_t Callers::drain(stn_queue* queue, std::int64_t timeout_ms, std::size_t& taken) {
    std::array<stn_event*, batch> events{};
    int32_t status = stn_queue_drain(queue, events.size(), timeout_ms, events.data(), &taken, nullptr);
    for (std::size_t i = 0; i < taken; ++i) take(Event(events[i]), queue);
    return status;
}

void Callers::take(Event event, stn_queue* queue) {
    std::uint64_t tag = stn_event_tag(event.get());
    switch (stn_event_kind(event.get())) {
    case STN_EVENT_VALUE: value(event.get(), tag); break;
    case STN_EVENT_LEASE:
        ++leases_;
        load(event.get(), tag, queue, true);
        break;
    case STN_EVENT_REFRESH:
        ++refreshes_;
        load(event.get(), tag, queue, false);
        break;
    case STN_EVENT_FILLED: filled(stn_event_status(event.get())); break;
    case STN_EVENT_REVOKED: ++revoked_; break;
    case STN_EVENT_ABSENT: tally_.error(tag, "absent: nobody ever said so"); break;
    case STN_EVENT_ERROR: {
        std::string text = described(stn_event_status(event.get()), stn_event_error(event.get()));
        if (tag & fill_tag) {
            filled(stn_event_status(event.get()));
        } else {
            tally_.error(tag, std::move(text));
        }
        break;
    }
    default: break; // a kind of a later version, not ours to judge
    }
}

void Callers::value(const stn_event* event, std::uint64_t caller) {
    std::size_t n = 0;
    const void* bytes = stn_event_bytes(event, &n);
    std::uint32_t flags = stn_event_flags(event);
    tally_.value(caller, {static_cast<const char*>(bytes), n}, flags & STN_ANSWER_STALE,
                 (flags & STN_ANSWER_SOURCE_MASK) == STN_SOURCE_FLIGHT, strategy_.soft);
}

// Takes the lease and asks the source. A caller who got LEASE has its answer from itself; for
// a REFRESH nobody waits.
void Callers::load(stn_event* event, std::uint64_t caller, stn_queue* queue, bool waited_for) {
    std::shared_ptr<stn_lease> lease(stn_event_take_lease(event), stn_lease_free);
    if (!lease) {
        tally_.fault("an event without the lease that it announced");
        return;
    }
    ++loads_open_;
    source_([=, this](const std::string& answer) {
        if (first_load_ms_ < 0) first_load_ms_ = tally_.since_start_ms();
        if (waited_for) tally_.loaded_by_itself(caller, answer);
        stn_error* raw = nullptr;
        int32_t status = stn_lease_fulfil(lease.get(), answer.data(), answer.size(), STN_CODEC_DEFAULT, STN_DEFAULT_MS,
                                          STN_DEFAULT_MS, 0, queue, fill_tag | caller, nullptr, &raw);
        Error error(raw);
        if (status == STN_OK) return; // FILLED will follow
        tally_.fault("fulfil: " + described(status, raw));
        --loads_open_;
    });
}

void Callers::filled(int32_t status) {
    tally_.fill(status == STN_OK ? "stored" : stn_status_name(status));
    --loads_open_;
}

} // namespace stampede
