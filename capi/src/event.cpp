// SPDX-License-Identifier: MIT
#include "guard.hpp"

#include "protocol/lock_value.hpp"

using namespace stn;

namespace stn {

stn_event* finish_event(std::unique_ptr<stn_event> made) noexcept {
    const event& e = made->e;
    if (e.what && e.what->code != status::ok && e.kind != event_kind::absent) made->error.what = &e.what->why;
    return made.release();
}

} // namespace stn

int32_t stn_event_kind(const stn_event* event) noexcept {
    return event == nullptr ? 0 : static_cast<int32_t>(event->e.kind);
}

uint64_t stn_event_tag(const stn_event* event) noexcept {
    return event == nullptr ? 0 : event->e.tag;
}

int32_t stn_event_status(const stn_event* event) noexcept {
    return event == nullptr ? STN_OK : static_cast<int32_t>(event->e.code);
}

uint32_t stn_event_flags(const stn_event* event) noexcept {
    if (event == nullptr || !event->e.what || event->e.kind == event_kind::error) return 0;
    uint32_t flags = static_cast<uint32_t>(event->e.what->from) << 4;
    if (event->e.what->stale) flags |= STN_ANSWER_STALE;
    if (event->e.shared) flags |= STN_ANSWER_SHARED;
    return flags;
}

int32_t stn_event_reason(const stn_event* event) noexcept {
    if (event == nullptr) return STN_REASON_NONE;
    if (event->e.kind == event_kind::notice) return static_cast<int32_t>(event->e.notice);
    return static_cast<int32_t>(event->e.why);
}

int32_t stn_event_codec(const stn_event* event) noexcept {
    return event == nullptr || event->e.kind != event_kind::value ? -1 : event->e.what->codec;
}

const void* stn_event_bytes(const stn_event* event, size_t* n) noexcept {
    if (n != nullptr) *n = 0;
    if (event == nullptr) return nullptr;
    std::string_view bytes;
    if (event->e.kind == event_kind::value) {
        bytes = event->e.what->payload;
    } else if (event->e.kind == event_kind::notice || (event->e.kind == event_kind::done && !event->e.text.empty())) {
        bytes = event->e.text;
    } else {
        return nullptr;
    }
    if (n != nullptr) *n = bytes.size();
    return bytes.data() == nullptr ? "" : bytes.data();
}

int64_t stn_event_age_ms(const stn_event* event) noexcept {
    return event == nullptr ? -1 : event->e.age_ms;
}
int64_t stn_event_ttl_left_ms(const stn_event* event) noexcept {
    return event == nullptr ? -1 : event->e.ttl_left_ms;
}
int64_t stn_event_load_ms(const stn_event* event) noexcept {
    return event == nullptr ? -1 : event->e.load_ms;
}
uint64_t stn_event_host_ref(const stn_event* event) noexcept {
    return event == nullptr ? 0 : event->e.host_ref;
}

const stn_error* stn_event_error(const stn_event* event) noexcept {
    return event == nullptr || event->error.what == nullptr ? nullptr : &event->error;
}

stn_lease* stn_event_take_lease(stn_event* event) noexcept {
    if (event == nullptr || event->made.forked() || !event->e.held) return nullptr;
    return quietly<stn_lease*>(nullptr, [&] {
        auto taken = std::make_unique<stn_lease>();
        event->e.held->mark_taken();
        taken->lease = std::move(event->e.held);
        return taken.release();
    });
}

stn_flight* stn_event_take_flight(stn_event* event) noexcept {
    if (event == nullptr || event->made.forked() || !event->e.lead) return nullptr;
    return quietly<stn_flight*>(nullptr, [&] {
        auto* const taken = new stn_flight{{}, std::move(*event->e.lead)};
        event->e.lead.reset();
        return taken;
    });
}

stn_lock* stn_event_take_lock(stn_event* event) noexcept {
    if (event == nullptr || event->made.forked() || !event->e.lock) return nullptr;
    return quietly<stn_lock*>(nullptr, [&] {
        auto taken = std::make_unique<stn_lock>();
        taken->token = hex(event->e.lock->mine());
        taken->lock = std::move(event->e.lock);
        return taken.release();
    });
}

stn_tick* stn_event_take_tick(stn_event* event) noexcept {
    if (event == nullptr || event->made.forked() || !event->e.tick) return nullptr;
    return quietly<stn_tick*>(nullptr, [&] {
        auto taken = std::make_unique<stn_tick>();
        taken->token = hex(event->e.tick->mine());
        taken->tick = std::move(event->e.tick);
        return taken.release();
    });
}

void stn_event_free(stn_event* event) noexcept {
    free_handle(event);
}
