// SPDX-License-Identifier: MIT
#include "io/redis_link.hpp"

#include <algorithm>
#include <utility>

#include "io/system_clock.hpp"
#include "protocol/commands.hpp"
#include "protocol/schedule.hpp"

namespace stn {

namespace {

constexpr int last_words_ms = 100; // for the server to take what was sent before a close

error timed_out(std::string what) {
    return fail(status::unavailable, std::move(what));
}

} // namespace

redis_link::redis_link(const redis_settings& settings, greeting_for purpose, draws& chance, redis_link_owner& owner)
    : settings_(settings),
      greeting_(greeting_of(settings.where, purpose)),
      chance_(chance),
      owner_(owner) {}

bool redis_link::settling() const noexcept {
    return state_ != state::up && state_ != state::closed && failures_ == 0;
}

void redis_link::open(mono_ms now) {
    if (state_ == state::idle) begin(now);
}

void redis_link::close(bool stay_for_last_words) {
    if (connection_ && state_ == state::up && stay_for_last_words) connection_->finish(last_words_ms);
    connection_ = nullptr;
    names_.forget();
    state_ = state::closed;
}

void redis_link::begin(mono_ms now) {
    attempt_until_ = add_ms(now, settings_.connect_timeout_ms);
    addresses_.clear();
    if (settings_.where.scheme == store_scheme::unix_socket) {
        addresses_.emplace_back(unix_path{settings_.where.path});
        connect_next(now);
        return;
    }
    const store_host& host = settings_.where.hosts.front();
    state_ = state::resolving;
    names_.ask(host.name, host.port);
    resolve(now);
}

void redis_link::resolve(mono_ms now) {
    const auto found = names_.poll();
    if (found && found->ok()) {
        addresses_.assign((*found)->rbegin(), (*found)->rend());
        connect_next(now);
    } else if (found) {
        failed(found->failure(), now);
    } else if (now >= attempt_until_) {
        names_.forget();
        failed(timed_out("the name \"" + settings_.where.hosts.front().name + "\" was not resolved in time"), now);
    }
}

void redis_link::connect_next(mono_ms now) {
    const auto left = static_cast<std::int64_t>(addresses_.size());
    step_until_ = now + std::max<std::int64_t>(1, (attempt_until_ - now) / left);
    const endpoint where = std::move(addresses_.back());
    addresses_.pop_back();
    state_ = state::connecting;
    connection_ = std::make_unique<redis_connection>(where, settings_.tls, settings_.tls_name);
}

void redis_link::greet(mono_ms now) {
    state_ = state::greeting;
    greeted_ = 0;
    server_now_.reset();
    std::vector<std::string_view> words;
    for (const greeting_step& step : greeting_) {
        words.assign(step.words.begin(), step.words.end());
        if (!connection_->append(words)) {
            failed(fail(status::no_memory, "no memory to greet the store with"), now);
            return;
        }
    }
    greeted_at_us_ = monotonic_us();
    connection_->write();
}

void redis_link::hear_greeting(mono_ms now) {
    reply said;
    bool push = false;
    while (state_ == state::greeting && connection_->next(said, push)) {
        if (push) continue;
        const greeting_step& step = greeting_[greeted_];
        if (const auto no = judge(step, said)) {
            failed(*no, now);
            return;
        }
        if (step.what == greeting_step::kind::hello) server_ = described(said);
        if (step.what == greeting_step::kind::time) server_now_ = read_time(said);
        if (++greeted_ != greeting_.size()) continue;
        state_ = state::up;
        up_since_ = now;
        owner_.on_up(server_now_, monotonic_us() - greeted_at_us_, now);
    }
}

void redis_link::hear(mono_ms now) {
    reply said;
    bool push = false;
    bool more = true;
    for (int gulps = 0; more && gulps < 16; ++gulps) { // then others have their turn
        more = connection_->read();
        while (state_ == state::up && connection_->next(said, push)) owner_.on_reply(std::move(said), push, now);
        if (state_ != state::up) return;
    }
}

void redis_link::turn(mono_ms now) {
    const bool ready = std::exchange(ready_, false);
    switch (state_) {
    case state::idle:
    case state::closed: return;
    case state::resting:
        if (now >= rest_until_) begin(now);
        return;
    case state::resolving: resolve(now); return;
    case state::connecting:
        connection_->advance();
        if (connection_->at() == redis_connection::phase::open) greet(now);
        break;
    case state::greeting:
        connection_->write();
        static_cast<void>(connection_->read()); // the rest, if there is more, in the next turn
        hear_greeting(now);
        break;
    case state::up:
        if (!ready) return;
        hear(now);
        break;
    }
    if (!connection_) return;
    if (connection_->at() == redis_connection::phase::failed) {
        failed(connection_->failure(), now);
    } else if (state_ == state::connecting && now >= step_until_) {
        const bool securing = connection_->at() == redis_connection::phase::securing;
        failed(timed_out(securing ? "the server did not answer to TLS in time: perhaps it speaks none on this port"
                                  : "the server did not accept the connection in time"),
               now);
    } else if (state_ == state::greeting && now >= step_until_) {
        failed(timed_out("the server accepted the connection but did not answer in time"), now);
    }
}

void redis_link::write(mono_ms now) {
    if (state_ != state::up) return;
    connection_->write();
    if (connection_->at() == redis_connection::phase::failed) failed(connection_->failure(), now);
}

void redis_link::drop(const error& why, mono_ms now) {
    if (state_ == state::up) failed(why, now);
}

void redis_link::failed(const error& why, mono_ms now) {
    const auto ended = std::move(connection_); // `why` may be its own
    const bool stood = state_ == state::up;
    if (!stood && !addresses_.empty() && now < attempt_until_) {
        connect_next(now);
        return;
    }
    // A connection that ends as soon as it stands is no success.
    if (stood && now - up_since_ >= schedule::stands_after_ms) failures_ = 0;
    rest_until_ = now + schedule::reconnect_pause(failures_, chance_);
    if (!stood || now - up_since_ < schedule::stands_after_ms) ++failures_;
    state_ = state::resting;
    owner_.on_down(why, stood, now);
}

mono_ms redis_link::next_ms() const noexcept {
    switch (state_) {
    case state::idle:
    case state::closed:
    case state::up: return forever_ms;
    case state::resolving: return attempt_until_;
    case state::connecting:
    case state::greeting: return step_until_;
    case state::resting: return rest_until_;
    }
    return forever_ms;
}

watched redis_link::watch() const noexcept {
    if (state_ == state::resolving) return {names_.fd(), false, false};
    if (connection_) return {connection_->fd(), connection_->wants_write(), false};
    return {};
}

} // namespace stn
