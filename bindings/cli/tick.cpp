// SPDX-License-Identifier: MIT
#include "commands.hpp"

#include "exit_code.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

namespace {

ending somebody_else(const options& given, const std::string& subject, const stn_event* event) {
    const bool running = stn_event_reason(event) == STN_REASON_STILL_RUNNING;
    const std::int64_t left_ms = stn_event_ttl_left_ms(event);
    tell(given, "busy",
         subject +
             (running ? ": the run of an earlier slot goes on; it counts as dead in "
                      : ": this slot was given out already; the next begins in ") +
             about(left_ms),
         {{"reason", running ? "still_running" : "taken"}, {"left_ms", left_ms}});
    return {given.busy_code.value_or(exit_ok), 0};
}

} // namespace

ending run_tick(const options& given, const signals& outside, bool shares_group) {
    const runner program(given, shares_group);
    const std::string subject = "tick " + in_quotes(given.name);
    const std::string json = given.setting.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    session store(given, outside);
    const auto event = store.ask(subject, [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
        return stn_tick_acquire(store.client(), given.name.data(), given.name.size(), json.c_str(), STN_DEFAULT_MS, q,
                                tag, op, e);
    });
    if (stn_event_kind(event.get()) != STN_EVENT_TICK) return somebody_else(given, subject, event.get());

    const tick_handle tick(stn_event_take_tick(event.get()));
    const child::variables more = {{"STANCHION_TICK", given.name},
                                   {"STANCHION_SLOT", std::to_string(stn_tick_slot_ms(tick.get()))},
                                   {"STANCHION_FENCE", std::to_string(stn_tick_fence(tick.get()))},
                                   {"STANCHION_TOKEN", stn_tick_token(tick.get())}};
    const auto result = program.run(store, more, [](const stn_event*) { return false; });
    try {
        static_cast<void>(store.ask(
            subject,
            [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
                *op = 0;
                return stn_tick_done(tick.get(), result.how.exit == 0 ? 1 : 0, STN_DEFAULT_MS, q, tag, e);
            },
            true));
    } catch (const failure& said) {
        tell(given, said.kind, std::string("the command has ended, but ") + said.what());
    }
    return result.how;
}

ending run_once(const options& given, const signals& outside, bool shares_group) {
    const runner program(given, shares_group);
    const std::string subject = "id " + in_quotes(given.name);
    const std::int64_t ttl_ms = duration_ms("--ttl", given.ttl);
    session store(given, outside);
    const auto event = store.ask(subject, [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
        return stn_once(store.client(), given.name.data(), given.name.size(), ttl_ms, STN_DEFAULT_MS, q, tag, op, e);
    });
    if (stn_event_status(event.get()) == STN_BUSY) {
        tell(given, "busy", subject + " is taken", {{"reason", "taken"}});
        return {given.busy_code.value_or(exit_ok), 0};
    }
    return program.run(store, {{"STANCHION_ONCE", given.name}}, [](const stn_event*) { return false; }).how;
}

} // namespace cli
