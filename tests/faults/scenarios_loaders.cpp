// SPDX-License-Identifier: MIT
#include <array>
#include <thread>

#include <doctest/doctest.h>

#include "engine/loop.hpp"
#include "stage.hpp"
#include "trial.hpp"

// A caller of get_or_load may turn the loop itself. Here it never finds it free, so that only what
// belongs to the call itself runs out of memory.
static int asked_to_help = 0; // by this thread
extern "C" void __wrap__ZN3stn4loop10work_untilENS_12function_refIFbvEEEl(stn::loop* of,
                                                                          stn::function_ref<bool()> /*answered*/,
                                                                          std::int64_t /*timeout_ms*/) {
    ++asked_to_help;
    of->ring();
}

namespace faults {

namespace {

struct loader {
    trial* inside = nullptr; // a trial that is made by the loader
    void (*then)(trial&, stn_sink*) = nullptr;
    std::int32_t gives = STN_OK;
    int runs = 0;
};

std::int32_t load(void* ud, stn_lease*, stn_sink* sink) {
    auto& l = *static_cast<loader*>(ud);
    ++l.runs;
    if (l.then != nullptr) l.then(*l.inside, sink);
    if (l.gives != STN_OK) {
        stn_sink_error(sink, "no answer from the database of this test");
        return l.gives;
    }
    return stn_sink_write(sink, "a value of some length", 22); // there may be no memory for it
}

std::int32_t get_or_load(stage& s, loader& l, stn_event** out, stn_error** err) {
    return stn_cache_get_or_load(s.cache.get(), nullptr, "apple", 5, 20'000, 0, nullptr, load, &l, out, err);
}

// Here the whole call is on trial, its loader included.
void on_trial(trial& t, stage& s, loader& l, std::int32_t wanted, std::int32_t kind = STN_EVENT_VALUE) {
    stn_event* out = nullptr;
    t.make(
        "stn_cache_get_or_load", [&](stn_error** err) { return get_or_load(s, l, &out, err); },
        [&] { return out == nullptr; }, wanted);
    const event_handle owned(out);
    CHECK(stn_event_kind(out) == (wanted == STN_OK ? kind : 0));
}

void miss(trial& t) {
    stage s;
    loader l;
    asked_to_help = 0;
    on_trial(t, s, l, STN_OK);
    CHECK(asked_to_help > 0);
    CHECK(l.runs > 0);
    CHECK(s.value(s.q.get(), s.fetch(s.q.get(), "apple")) == "a value of some length");
}

void hit(trial& t) {
    stage s;
    s.store("apple", "red");
    loader l;
    on_trial(t, s, l, STN_OK);
    CHECK(l.runs == 0);
}

void absent(trial& t) {
    stage s;
    loader l;
    l.gives = STN_ABSENT;
    on_trial(t, s, l, STN_OK, STN_EVENT_ABSENT);
}

void failing(trial& t) {
    stage s;
    loader l;
    l.gives = STN_LOAD_FAILED;
    on_trial(t, s, l, STN_LOAD_FAILED);
}

// Somebody else loads, and answers when the call has joined.
void joined(trial& t) {
    stage s;
    lease_handle held = s.lead(s.q.get(), "apple");
    std::thread other([&] {
        stn_stats all{};
        do {
            stn_client_stats(s.client.get(), &all, sizeof all, nullptr);
        } while (all.joins == 0);
        stn_lease_fulfil(held.get(), "red", 3, -1, -1, -1, 0, nullptr, 0, nullptr, nullptr);
    });
    loader l;
    on_trial(t, s, l, STN_OK);
    CHECK(l.runs == 0);
    other.join();
}

void without_loader(trial& t) {
    stage s;
    stn_event* out = nullptr;
    t.make(
        "stn_cache_get_or_load",
        [&](stn_error** err) {
            return stn_cache_get_or_load(s.cache.get(), nullptr, "apple", 5, -1, 0, nullptr, nullptr, nullptr, &out,
                                         err);
        },
        {}, STN_INVALID_ARGUMENT);
}

// Here the trial is inside the loader: only a call to the sink meets the fault.
void inside(trial& t, void (*then)(trial&, stn_sink*), std::int32_t kind = STN_EVENT_VALUE) {
    stage s;
    loader l;
    l.inside = &t;
    l.then = then;
    stn_event* out = nullptr;
    CHECK(get_or_load(s, l, &out, nullptr) == STN_OK);
    const event_handle owned(out);
    CHECK(stn_event_kind(out) == kind);
    CHECK(l.runs == 1);
}

void sink_write(trial& t) {
    inside(t, [](trial& in, stn_sink* sink) {
        in.make_mute("stn_sink_write", [sink] { return stn_sink_write(sink, "some bytes before the value", 27); });
    });
}

void sink_absent(trial& t) {
    inside(t, [](trial& in, stn_sink* sink) {
        in.make_mute("stn_sink_absent", [sink] { return stn_sink_absent(sink); });
    });
}

void sink_ttl(trial& t) {
    inside(t, [](trial& in, stn_sink* sink) {
        in.make_mute("stn_sink_ttl", [sink] { return stn_sink_ttl(sink, 5'000, 0); });
    });
}

void sink_codec(trial& t) {
    inside(t, [](trial& in, stn_sink* sink) {
        in.make_mute("stn_sink_codec", [sink] { return stn_sink_codec(sink, STN_CODEC_RAW); });
    });
}

void sink_error(trial& t) {
    inside(t, [](trial& in, stn_sink* sink) {
        in.make_mute("stn_sink_error", [sink] { return stn_sink_error(sink, "a text that nobody will read again"); });
    });
}

constexpr std::array all{
    scenario{"stn_cache_get_or_load", "of a miss", miss},
    scenario{"stn_cache_get_or_load", "of a hit", hit},
    scenario{"stn_cache_get_or_load", "of what there is not", absent},
    scenario{"stn_cache_get_or_load", "whose loader fails", failing},
    scenario{"stn_cache_get_or_load", "while another loads", joined},
    scenario{"stn_cache_get_or_load", "without a loader", without_loader},
    scenario{"stn_sink_write", "", sink_write},
    scenario{"stn_sink_absent", "", sink_absent},
    scenario{"stn_sink_ttl", "", sink_ttl},
    scenario{"stn_sink_codec", "", sink_codec},
    scenario{"stn_sink_error", "", sink_error},
};

} // namespace

std::span<const scenario> scenarios_of_loaders() {
    return all;
}

} // namespace faults
