// SPDX-License-Identifier: MIT
#include "commands.hpp"

#include <optional>

#include "exit_code.hpp"
#include "holder.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

namespace {

std::string acquire_options(const options& given) {
    auto setting = given.setting;
    if (!setting.contains("label")) setting["label"] = own_label();
    try {
        return setting.dump();
    } catch (const nlohmann::json::exception&) {
        throw failure(exit_usage, "usage", "an option is not UTF-8");
    }
}

// A refusal that says who is in the way, if that can still be found out.
failure busy(const options& given, session& store, const std::string& subject, const failure& said) {
    std::string text = said.what();
    auto more = said.more;
    try {
        const std::string key = given.setting.value("key", "");
        const auto event = store.ask(subject, [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
            return stn_lock_inspect(store.client(), given.name.data(), given.name.size(), key.data(), key.size(),
                                    STN_DEFAULT_MS, q, tag, op, e);
        });
        std::size_t n = 0;
        if (const void* bytes = stn_event_bytes(event.get(), &n)) {
            more["holder"] = nlohmann::json::parse(std::string_view(static_cast<const char*>(bytes), n));
            text += "; it " + sentence(more["holder"]);
        }
    } catch (const failure&) {
    }
    return {given.busy_code.value_or(exit_busy), said.kind, text, more};
}

const char* reason_of(const stn_event* event) {
    switch (stn_event_reason(event)) {
#define ROW(number, NAME, name, text) \
    case number: return #name;
        STN_REASON_MAP(ROW)
#undef ROW
    default: return "unknown";
    }
}

std::string why_lost(const stn_event* event) {
    switch (stn_event_reason(event)) {
    case STN_REASON_EXPIRED: return "no renewal was answered before its ttl was over";
    case STN_REASON_DELETED: return "somebody deleted it, or the store forgot it";
    case STN_REASON_STOLEN: return "somebody else's lock stands in its place";
    case STN_REASON_MAX_HOLD: return "it was held for --max-hold";
    default: return reason_of(event);
    }
}

} // namespace

ending run_lock(const options& given, const signals& outside, bool shares_group) {
    const runner program(given, shares_group);
    const std::string subject = "lock " + in_quotes(given.name);
    const std::string json = acquire_options(given);
    session store(given, outside);
    lock_handle lock;
    try {
        const auto event = store.ask(subject, [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
            return stn_lock_acquire(store.client(), given.name.data(), given.name.size(), json.c_str(), nullptr,
                                    STN_DEFAULT_MS, nullptr, q, tag, q, loss_tag, op, e);
        });
        lock.reset(stn_event_take_lock(event.get()));
    } catch (const failure& said) {
        if (said.code == exit_busy) throw busy(given, store, subject, said);
        throw;
    }

    const child::variables more = {{"STANCHION_LOCK", given.name},
                                   {"STANCHION_FENCE", std::to_string(stn_lock_fence(lock.get()))},
                                   {"STANCHION_TOKEN", stn_lock_token(lock.get())}};
    auto result = program.run(store, more, [&](const stn_event* event) {
        if (stn_event_kind(event) != STN_EVENT_LOCK_LOST) return false;
        tell(given, failure(exit_lost, "lost",
                            subject + " is lost: " + why_lost(event) +
                                ". The command gets SIGTERM, and SIGKILL after " + given.grace,
                            {{"reason", reason_of(event)}}));
        return true;
    });
    if (result.stopped) return {exit_lost, 0};

    try {
        static_cast<void>(store.ask(
            subject,
            [&](stn_queue* q, std::uint64_t tag, std::uint64_t* op, stn_error** e) {
                *op = 0;
                return stn_lock_release(lock.get(), STN_DEFAULT_MS, q, tag, e);
            },
            true));
    } catch (const failure& said) {
        if (said.code == exit_lost) {
            tell(given, failure(exit_lost, "lost",
                                subject + " was lost before the command ended with " + std::to_string(result.how.exit) +
                                    ": it may have run beside another"));
            return {exit_lost, 0};
        }
        tell(given, said.kind,
             std::string("the command has ended, but ") + said.what() + "; the lock ends after its ttl");
    }
    return result.how;
}

} // namespace cli
