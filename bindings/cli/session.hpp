// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "handles.hpp"
#include "options.hpp"
#include "report.hpp"
#include "signals.hpp"

namespace cli {

// A signal ended it before the command ran.
struct interrupted {
    signal_seen by;
};

// The store, one queue for all answers, and the signals: what a command of ours waits for.
class session {
  public:
    // Opens; a store that is down is told by the first call. Throws failure.
    session(const options& given, const signals& from_outside);
    // Closes, which waits for what is on its way out, for a bounded time.
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    using begin = std::function<std::int32_t(stn_queue*, std::uint64_t tag, std::uint64_t* op, stn_error**)>;
    // Begins and waits for its terminal event. An ERROR is thrown as failure, about `subject`. A signal that would end
    // this program cancels it and throws interrupted, and what only a person can change (a wrong password) ends it at
    // once; `patient` lets it wait: the answer is needed in any case.
    event_handle ask(const std::string& subject, const begin& how, bool patient = false);

    [[nodiscard]] stn_client* client() const { return client_.get(); }
    [[nodiscard]] stn_queue* queue() const { return queue_.get(); }
    [[nodiscard]] const signals& from_outside() const { return signals_; }

    // Instead of telling what the library notices, keeps it for `noticed`.
    void keep_notices() { keeps_notices_ = true; }
    [[nodiscard]] const std::vector<failure>& noticed() const { return noticed_; }

    // Sleeps until there may be an event or a signal.
    void sleep(std::chrono::milliseconds at_most) const;
    // The next event, or none; does not block. What the library notices, of the connection above all, is told here.
    [[nodiscard]] event_handle next();

  private:
    void notice(const stn_event* event);
    [[nodiscard]] failure failed_at(const std::string& subject, const stn_event* event) const;

    const options& given_;
    const signals& signals_;
    bool keeps_notices_ = false;
    std::vector<failure> noticed_;
    std::string trouble_; // with the connection, as long as there is some, and its status
    std::int32_t trouble_status_ = STN_OK;
    client_handle client_;
    queue_handle queue_;
    int fd_ = -1;
    std::uint64_t tag_ = 0;
};

// stn_duration_parse of an option's text.
[[nodiscard]] std::int64_t duration_ms(const std::string& option, const std::string& text);

inline constexpr std::uint64_t loss_tag = ~std::uint64_t{0};
inline constexpr std::uint64_t notice_tag = loss_tag - 1;

} // namespace cli
