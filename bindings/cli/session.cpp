// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <algorithm>

#include <poll.h>
#include <unistd.h>

#include "exit_code.hpp"
#include "report.hpp"

namespace cli {

namespace {

template <class Call> void must(const std::string& subject, Call&& call) {
    stn_error* raw = nullptr;
    const std::int32_t status = call(&raw);
    const error_handle error(raw);
    if (status != STN_OK) throw failed(subject, status, raw);
}

bool ends_us(const signal_seen& seen) {
    return seen.number == SIGTERM || seen.number == SIGINT || seen.number == SIGHUP || seen.number == SIGQUIT;
}

// A reason for which no connection will ever stand, until somebody changes something.
bool hopeless(std::int32_t status) {
    return status == STN_DENIED || status == STN_REFUSED || status == STN_NOT_REDIS || status == STN_UNSUPPORTED;
}

} // namespace

session::session(const options& given, const signals& from_outside) : given_(given), signals_(from_outside) {
    if (given.store.empty()) {
        throw failure(exit_usage, "usage", "which store? Give --store URL, or set STANCHION_URL");
    }
    std::string json;
    try {
        json = given.client.dump();
    } catch (const nlohmann::json::exception&) {
        throw failure(exit_usage, "usage", "an option is not UTF-8");
    }
    stn_client* client = nullptr;
    must("", [&](stn_error** e) { return stn_client_open(given.store.c_str(), json.c_str(), &client, e); });
    client_.reset(client);
    stn_queue* queue = nullptr;
    must("", [&](stn_error** e) { return stn_queue_new(0, &queue, e); });
    queue_.reset(queue);
    std::int32_t fd = -1;
    must("", [&](stn_error** e) { return stn_queue_fd(queue, &fd, e); });
    fd_ = fd;
    must("", [&](stn_error** e) {
        return stn_client_watch(client, STN_NOTICE_LOG | STN_NOTICE_CONNECTION, queue, notice_tag, e);
    });
}

session::~session() {
    if (!client_) return;
    // What is on its way out to a store that is away will not get there by waiting.
    const std::int64_t deadline_ms = hopeless(trouble_status_) ? 0 : trouble_.empty() ? STN_DEFAULT_MS : 1'000;
    static_cast<void>(stn_client_close(client_.get(), deadline_ms, nullptr));
}

void session::sleep(std::chrono::milliseconds at_most) const {
    pollfd both[] = {{signals_.fd(), POLLIN, 0}, {fd_, POLLIN, 0}};
    static_cast<void>(::poll(both, 2, static_cast<int>(at_most.count())));
}

event_handle session::next() {
    for (;;) {
        stn_event* event = nullptr;
        static_cast<void>(stn_queue_next(queue_.get(), 0, &event, nullptr));
        event_handle one(event);
        if (!one || stn_event_kind(event) != STN_EVENT_NOTICE) return one;
        notice(event);
    }
}

void session::notice(const stn_event* event) {
    std::size_t n = 0;
    const void* bytes = stn_event_bytes(event, &n);
    std::string text(static_cast<const char*>(bytes), n);
    if (keeps_notices_) {
        noticed_.emplace_back(exit_code_of(stn_event_status(event)), stn_status_name(stn_event_status(event)), text);
    } else if (stn_event_reason(event) == STN_NOTICE_LOG) {
        tell(given_, "notice", text);
    } else if (stn_event_status(event) != STN_OK) {
        trouble_ = std::move(text);
        trouble_status_ = stn_event_status(event);
        if (!hopeless(trouble_status_)) tell(given_, "disconnected", trouble_);
    } else if (!trouble_.empty()) {
        trouble_.clear();
        trouble_status_ = STN_OK;
        tell(given_, "connected", text);
    }
}

event_handle session::ask(const std::string& subject, const begin& how, bool patient) {
    const std::uint64_t tag = ++tag_;
    std::uint64_t op = 0;
    must(subject, [&](stn_error** e) { return how(queue_.get(), tag, &op, e); });
    std::optional<signal_seen> ended_by;
    bool given_up = false;
    const auto cancel = [&] { static_cast<void>(stn_cancel(queue_.get(), op)); };
    for (;;) {
        while (auto event = next()) {
            if (stn_event_tag(event.get()) != tag) continue;
            if (ended_by) throw interrupted{*ended_by};
            if (stn_event_kind(event.get()) != STN_EVENT_ERROR) return event;
            throw failed_at(subject, event.get());
        }
        while (const auto seen = signals_.next()) {
            if (patient || ended_by) continue;
            if (seen->number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
            if (!ends_us(*seen)) continue;
            ended_by = seen;
            cancel();
        }
        if (!patient && !given_up && hopeless(trouble_status_)) {
            given_up = true;
            cancel();
        }
        sleep(std::chrono::milliseconds(-1));
    }
}

failure session::failed_at(const std::string& subject, const stn_event* event) const {
    auto error = failed(subject, stn_event_status(event), stn_event_error(event));
    const bool away = error.kind == "unavailable" || error.kind == "cancelled";
    if (!away || trouble_.empty()) return error;
    if (hopeless(trouble_status_))
        return {exit_code_of(trouble_status_), stn_status_name(trouble_status_), trouble_, {}};
    if (given_.quiet) return {error.code, error.kind, error.what() + (": " + trouble_), error.more}; // not told yet
    return error;
}

std::int64_t duration_ms(const std::string& option, const std::string& text) {
    std::int64_t ms = 0;
    must(option, [&](stn_error** e) { return stn_duration_parse(text.c_str(), &ms, e); });
    return ms;
}

} // namespace cli
