// SPDX-License-Identifier: MIT
#include "protocol/lock_machine.hpp"

#include "protocol/commands.hpp"
#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"

namespace stn {

lock_machine::lock_machine(lock_setup setup) : setup_(std::move(setup)), releases_seen_(setup_.seen) {
    last_why_.code = status::ok;
}

void lock_machine::handle(lock_input in, mono_ms now, draws& draw) {
    turn t{now, draw};
    using k = lock_input::kind;
    if (holds() && in.what != k::leave) over_already(t);
    switch (in.what) {
    case k::start:
        if (state_ == state::idle) start(in, t);
        break;
    case k::reply: on_reply(in, t); break;
    case k::message:
        if (waits()) on_message(in.turn, t);
        break;
    case k::connected:
        if (state_ == state::waiting) {
            acquire(t);
        } else if ((state_ == state::releasing || cleaning_) && look_at_ != forever_ms) {
            send_release(t);
        }
        break;
    case k::timer: on_timer(t); break;
    case k::give_up:
        if (state_ == state::idle || waits()) give_up(error_of(in.why, std::string(status_text(in.why))), t);
        break;
    case k::release:
        if (holds()) release(in.until, t);
        break;
    case k::renew:
        if (!holds()) break;
        asked_to_renew_ = true;
        asked_to_renew_until_ = in.until;
        renew(t);
        break;
    case k::leave:
        if (!holds()) break;
        answer_renew(status::lost);
        state_ = state::released;
        finish();
        break;
    case k::closing:
        if (state_ == state::idle || waits()) {
            give_up(error_of(status::closed, "the client is closed"), t);
        } else if (holds()) {
            lose(lock_loss::closed, t);
        }
        break;
    }
}

// What the clock alone decides, before anything that is heard now: an answer that comes too late brings
// nothing back.
void lock_machine::over_already(turn& t) {
    if (t.now >= safe_until_) {
        lose(lock_loss::expired, t);
    } else if (t.now >= max_hold_at_) {
        lose(lock_loss::max_hold, t);
    }
}

bool lock_machine::poll(lock_output& out) {
    if (told_ == out_.size()) {
        out_.clear();
        told_ = 0;
        return false;
    }
    out = std::move(out_[told_++]);
    return true;
}

mono_ms lock_machine::wake_at() const {
    if (holds()) {
        return std::min({safe_until_, renew_at_, renew_by_, max_hold_at_, asked_to_renew_until_});
    }
    if (state_ == state::idle) return forever_ms;
    mono_ms at = std::min(reply_by_, look_at_);
    if (waits() || (state_ == state::releasing && !release_told_)) at = std::min(at, until_);
    if (cleaning_) at = std::min(at, clean_until_);
    return at;
}

bool lock_machine::awaits(std::uint32_t id) const {
    const auto among = [id](const std::vector<asked>& all) {
        return std::ranges::any_of(all, [id](const asked& a) { return a.id == id; });
    };
    if (state_ == state::acquiring) return among(acquires_);
    if (holds()) return among(renewals_);
    return !releases_.empty() && id == releases_.back();
}

bool lock_machine::gone() const {
    return state_ != state::idle && !waits() && !holds();
}

void lock_machine::start(const lock_input& in, turn& t) {
    token_ = t.draw.make_token();
    until_ = in.until;
    once_ = in.once;
    if (in.at > t.now) {
        pause(in.at - t.now, t);
    } else {
        acquire(t);
    }
}

void lock_machine::on_reply(lock_input& in, turn& t) {
    const auto take = [&](std::vector<asked>& from) -> asked {
        const auto it = std::ranges::find_if(from, [&](const asked& a) { return a.id == in.id; });
        if (it == from.end()) return {0, 0};
        const asked found = *it;
        from.erase(it);
        return found;
    };
    if (const asked which = take(acquires_); which.id != 0) {
        on_acquire(which, in.how, in.answer, t);
    } else if (const asked renewal = take(renewals_); renewal.id != 0) {
        on_renew(renewal, in.how, in.answer, t);
    } else if (std::ranges::find(releases_, in.id) != releases_.end()) {
        on_release(in.id, in.how, in.answer, t);
    }
}

void lock_machine::on_timer(turn& t) {
    if (holds()) {
        if (t.now >= asked_to_renew_until_) answer_renew(status::uncertain);
        if (t.now >= renew_by_) {
            count(stat::commands_lost);
            renew_by_ = forever_ms;
            state_ = state::held;
            if (setup_.renew || asked_to_renew_) renew_at_ = t.now + schedule::renew_retry(setup_.ttl_ms);
        }
        if (t.now >= renew_at_) renew(t);
        return;
    }
    if (waits() && t.now >= until_) {
        out_of_time(t);
        return;
    }
    if (state_ == state::acquiring && t.now >= reply_by_) {
        count(stat::commands_lost);
        acquire(t);
        return;
    }
    if (state_ == state::waiting && t.now >= look_at_) {
        if (busy_ && until_ - t.now < schedule::look_floor_ms) {
            look_at_ = forever_ms; // its answer would come too late: the deadline ends it
        } else {
            acquire(t);
        }
        return;
    }
    if (state_ == state::releasing && !release_told_ && t.now >= until_) {
        const bool sent = !releases_.empty();
        error why = sent ? error_of(status::uncertain, "the store did not answer: it may be released or not")
                         : error_of(status::unavailable, "the store cannot be reached");
        if (!sent && last_why_.code != status::ok) why = last_why_;
        why.may_have_applied = sent;
        state_ = state::uncertain;
        tell_released(std::move(why));
        clean(t);
        return;
    }
    if (cleaning_ && t.now >= clean_until_) {
        finish();
        return;
    }
    if (t.now >= reply_by_) {
        count(stat::commands_lost);
        send_release(t);
    } else if (t.now >= look_at_) {
        send_release(t);
    }
}

void lock_machine::on_message(double believed, turn& t) {
    setup_.turn = believed;
    ++releases_seen_;
    contended_ = true;
    if (state_ == state::waiting) {
        try_in_turn(t);
    } else {
        released_meanwhile_ = true;
    }
}

void lock_machine::try_in_turn(turn& t) {
    // A short wait is not spent on letting others go first.
    const std::int64_t in =
        std::min(schedule::lock_try_after(releases_seen_, setup_.turn), std::max<std::int64_t>(0, until_ - t.now) / 2);
    if (in == 0) {
        acquire(t);
    } else {
        pause(in, t); // also later than it was: the lock is taken again by then, unless nobody wants it
    }
}

// ---- taking it

void lock_machine::acquire(turn& t) {
    state_ = state::acquiring;
    look_at_ = forever_ms;
    released_meanwhile_ = false;
    reply_by_ = std::min(until_, t.now + setup_.command_timeout_ms);
    const std::uint32_t id = emit_send(acquire_command(setup_.key, token_, setup_.ttl_ms, setup_.label));
    acquires_.push_back({id, t.now});
    last_hold_ = t.now;
}

void lock_machine::on_acquire(const asked& which, delivery how, const reply& r, turn& t) {
    if (holds()) {
        answered_again(how, r, t);
        return;
    }
    if (!waits()) return; // a release is on its way behind it
    if (how == delivery::lost) {
        maybe_taken_ = true; // a late copy of it may still run
        last_why_ = error_of(status::uncertain, "the store did not answer: the lock may have been taken or not");
        if (which.id == next_id_ && state_ == state::acquiring) acquire(t);
        return;
    }
    const auto said = how == delivery::answered ? read_acquire(r) : std::nullopt;
    if (said && said->granted) {
        granted(which, said->fence, t);
        return;
    }
    if (state_ != state::acquiring || which.id != next_id_) return; // a later copy will tell
    reply_by_ = forever_ms;
    ++attempts_;
    if (how == delivery::not_sent) {
        busy_ = false;
        last_why_ = error_of(status::unavailable, "the store cannot be reached");
        pause(schedule::write_retry(attempts_, t.draw), t);
    } else if (said) {
        busy(said->pttl_ms, t);
    } else {
        refused(r, t);
    }
}

// A copy that was answered after the grant ran after it, too: it finds what was granted, or that it was taken away.
void lock_machine::answered_again(delivery how, const reply& r, turn& t) {
    const auto said = how == delivery::answered ? read_acquire(r) : std::nullopt;
    if (!said || (said->granted && said->fence == fence_)) return;
    lose(said->granted ? lock_loss::deleted : lock_loss::stolen, t);
}

void lock_machine::granted(const asked& which, std::int64_t fence, turn& t) {
    const mono_ms safe = schedule::safe_until(which.sent, setup_.ttl_ms);
    if (t.now >= safe) { // the process slept over it: ask whether it is still ours
        if (state_ != state::acquiring || which.id == next_id_) acquire(t);
        return;
    }
    maybe_taken_ = false;
    state_ = state::held;
    reply_by_ = look_at_ = until_ = forever_ms;
    fence_ = fence;
    safe_until_ = safe;
    if (setup_.renew) renew_at_ = which.sent + schedule::lock_renew_after(setup_.ttl_ms, t.draw);
    if (setup_.max_hold_ms > 0) max_hold_at_ = add_ms(t.now, setup_.max_hold_ms);
    count(stat::locks);
    emit(lock_output::kind::granted).fence = fence;
}

void lock_machine::busy(std::int64_t pttl_ms, turn& t) {
    busy_ = contended_ = true;
    no_ttl_ = pttl_ms == -1;
    last_why_ = error_of(status::busy, no_ttl_ ? "somebody else holds the lock, and it has no TTL: it does not end by "
                                                 "itself"
                                               : "somebody else holds the lock");
    if (no_ttl_ && !std::exchange(no_ttl_told_, true)) emit(lock_output::kind::no_ttl);
    if (once_) {
        give_up(last_why_, t);
        return;
    }
    if (released_meanwhile_) {
        try_in_turn(t);
    } else {
        pause(schedule::lock_look(attempts_ - 1, pttl_ms, t.draw), t);
    }
}

void lock_machine::refused(const reply& r, turn& t) {
    busy_ = false;
    const refusal why = classify(r);
    const refusal_traits& traits = traits_of(why);
    last_why_ = why == refusal::none ? error_of(status::internal, "the store gave an answer of no known form")
                                     : refused_by_store(r, setup_.name);
    // The lock is free or not, who knows: the store does no work for us now.
    if (last_why_.code == status::refused) last_why_.code = status::unavailable;
    const bool hopeless = traits.again == retry_pace::never || (traits.fatal && std::exchange(fatal_seen_, true));
    if (why == refusal::none || hopeless) {
        give_up(last_why_, t);
    } else {
        pause(schedule::refused_pause(attempts_, traits.again == retry_pace::slowly, t.draw), t);
    }
}

void lock_machine::pause(std::int64_t ms, turn& t) {
    state_ = state::waiting;
    look_at_ = t.now + ms;
}

void lock_machine::out_of_time(turn& t) {
    error why = last_why_;
    if (state_ == state::acquiring) {
        why = error_of(status::uncertain, "the store did not answer in time; the lock was given up");
        why.may_have_applied = true;
    } else if (why.code == status::ok) {
        why = error_of(status::busy, "there was no time to ask");
    }
    give_up(std::move(why), t);
}

// Whatever copy of `acquire` may still run, the release comes behind it.
void lock_machine::give_up(error why, turn& t) {
    state_ = why.code == status::uncertain ? state::uncertain : state::released;
    if (why.code == status::busy) count(stat::locks_busy);
    lock_output& out = emit(lock_output::kind::failed);
    out.no_ttl = why.code == status::busy && no_ttl_;
    out.why = std::move(why);
    reply_by_ = look_at_ = until_ = forever_ms;
    if (acquires_.empty() && !maybe_taken_) {
        finish();
    } else {
        clean(t);
    }
}

// ---- keeping it

void lock_machine::renew(turn& t) {
    state_ = state::renewing;
    renew_at_ = forever_ms;
    renew_by_ = t.now + schedule::lock_renew_patience(setup_.ttl_ms, setup_.command_timeout_ms);
    count(stat::renewals);
    const std::uint32_t id = emit_send(renew_command(setup_.key, token_, setup_.ttl_ms));
    renewals_.push_back({id, t.now});
    last_hold_ = t.now;
}

void lock_machine::on_renew(const asked& which, delivery how, const reply& r, turn& t) {
    if (!holds()) return;
    const auto said = how == delivery::answered ? read_integer(r) : std::nullopt;
    const bool latest = renewals_.empty() || which.id > renewals_.back().id;
    if (latest) {
        state_ = state::held;
        renew_by_ = forever_ms;
    }
    if (!said) {
        if (latest && (setup_.renew || asked_to_renew_)) renew_at_ = t.now + schedule::renew_retry(setup_.ttl_ms);
        return;
    }
    if (*said != 1) {
        lose(*said == 0 ? lock_loss::deleted : lock_loss::stolen, t);
        return;
    }
    safe_until_ = std::max(safe_until_, schedule::safe_until(which.sent, setup_.ttl_ms));
    emit(lock_output::kind::kept);
    answer_renew(status::ok);
    if (latest) {
        renew_at_ = setup_.renew ? which.sent + schedule::lock_renew_after(setup_.ttl_ms, t.draw) : forever_ms;
    }
}

void lock_machine::answer_renew(status how) {
    asked_to_renew_until_ = forever_ms;
    if (!std::exchange(asked_to_renew_, false)) return;
    if (!setup_.renew) renew_at_ = forever_ms;
    error why = error_of(how, {});
    if (how == status::uncertain) {
        why.message = "the store did not answer: it may be renewed or not";
        why.may_have_applied = true;
    } else if (how != status::ok) {
        why.message = status_text(how);
    }
    emit(lock_output::kind::renewed).why = std::move(why);
}

// Final: the lock is not taken up again, whatever the store says later.
void lock_machine::lose(lock_loss why, turn& t) {
    state_ = state::lost;
    renew_at_ = renew_by_ = max_hold_at_ = forever_ms;
    count(stat::locks_lost);
    emit(lock_output::kind::lost).loss = why;
    answer_renew(why == lock_loss::stolen ? status::not_mine : status::lost);
    if (why == lock_loss::stolen) {
        finish();
    } else {
        clean(t);
    }
}

// ---- giving it back

void lock_machine::release(mono_ms until, turn& t) {
    state_ = state::releasing;
    renew_at_ = renew_by_ = max_hold_at_ = forever_ms;
    answer_renew(status::lost);
    until_ = until;
    last_why_ = {};
    last_why_.code = status::ok;
    send_release(t);
}

void lock_machine::send_release(turn& t) {
    look_at_ = forever_ms;
    reply_by_ = t.now + setup_.command_timeout_ms;
    ++release_tries_;
    releases_.push_back(emit_send(release_command(setup_.key, token_, setup_.channel, releases_seen_)));
}

void lock_machine::on_release(std::uint32_t id, delivery how, const reply& r, turn& t) {
    const bool latest = id == releases_.back();
    const bool resent = id != releases_.front();
    const auto said = how == delivery::answered ? read_integer(r) : std::nullopt;
    if (said) {
        status code = *said == 1 ? status::ok : *said == 0 ? status::lost : status::not_mine;
        std::string text = *said == 1   ? ""
                           : *said == 0 ? "the lock was gone already: it had expired or was deleted"
                                        : "somebody else holds the lock by now";
        if (code != status::ok && resent) {
            code = status::uncertain;
            text = "an earlier copy of the release may have been applied or not: the lock is not held";
        }
        if (state_ == state::releasing) state_ = code == status::uncertain ? state::uncertain : state::released;
        tell_released(error_of(code, std::move(text)));
        finish();
        return;
    }
    if (how != delivery::lost) std::erase(releases_, id);
    if (!latest) return;
    reply_by_ = forever_ms;
    const refusal why = how == delivery::answered ? classify(r) : refusal::none;
    const refusal_traits& traits = traits_of(why);
    if (how == delivery::answered) last_why_ = refused_by_store(r, setup_.name);
    if (how == delivery::answered && (traits.again == retry_pace::never || (traits.fatal && fatal_seen_))) {
        if (state_ == state::releasing) state_ = state::uncertain;
        tell_released(last_why_);
        finish();
        return;
    }
    fatal_seen_ = fatal_seen_ || traits.fatal;
    look_at_ = t.now + (why == refusal::none
                            ? schedule::write_retry(release_tries_, t.draw)
                            : schedule::refused_pause(release_tries_, traits.again == retry_pace::slowly, t.draw));
}

void lock_machine::tell_released(error how) {
    if (cleaning_ || std::exchange(release_told_, true)) return;
    emit(lock_output::kind::released).why = std::move(how);
}

// Nobody waits for it any more; what may stand in the store under this token is removed, or ends by its ttl.
void lock_machine::clean(turn& t) {
    cleaning_ = true;
    clean_until_ = add_ms(last_hold_, setup_.ttl_ms + setup_.command_timeout_ms);
    if (reply_by_ == forever_ms && look_at_ == forever_ms) send_release(t);
}

void lock_machine::finish() {
    cleaning_ = false;
    release_told_ = true;
    acquires_.clear();
    releases_.clear();
    renewals_.clear();
    reply_by_ = look_at_ = until_ = renew_at_ = renew_by_ = max_hold_at_ = asked_to_renew_until_ = forever_ms;
    emit(lock_output::kind::done);
}

// ----

std::uint32_t lock_machine::emit_send(command cmd) {
    lock_output& out = emit(lock_output::kind::send);
    out.id = ++next_id_;
    out.cmd = std::move(cmd);
    return next_id_;
}

lock_output& lock_machine::emit(lock_output::kind what) {
    lock_output& out = out_.emplace_back();
    out.what = what;
    return out;
}

error lock_machine::error_of(status code, std::string text) const {
    return fail(code, std::move(text), setup_.name);
}

} // namespace stn
