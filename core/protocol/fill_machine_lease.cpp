// SPDX-License-Identifier: MIT
// Places and leases: taking, keeping and giving them up.
#include "protocol/fill_machine.hpp"

#include <algorithm>
#include <utility>

#include "protocol/keys.hpp"
#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"

namespace stn {

namespace {

constexpr std::size_t max_error_text = 512;

} // namespace

void fill_machine::want_slot(lease_form next, bool store_down, turn& t) {
    form_ = next;
    state_ = state::queued;
    const bool hopeless = store_down || setup_.mode == fill_mode::alone || setup_.mode == fill_mode::refresh;
    look_at_ = hopeless ? forever_ms : t.now + schedule::first_look(0, -1, t.draw);
    if (has_slot_ && !store_down) {
        on_slot(t);
        return;
    }
    if (has_slot_) emit(fill_output::kind::drop_slot);
    emit(fill_output::kind::need_slot).store_down = store_down;
}

void fill_machine::on_slot(turn& t) {
    look_at_ = forever_ms;
    primary_ = {};
    resends_ = 0;
    switch (form_) {
    case lease_form::none: offer(t); break;
    case lease_form::placeholder: take_lease(t); break;
    case lease_form::generation:
        token_ = t.draw.make_token();
        ask_generation(t);
        break;
    }
}

void fill_machine::take_lease(turn& t) {
    state_ = state::leasing;
    form_ = lease_form::placeholder;
    token_ = t.draw.make_token();
    envelope e;
    e.kind = entry_kind::placeholder;
    e.codec = 0;
    e.generation = token_;
    e.created = t.server_now;
    e.delta_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(known_delta_ms_, setup_.expected_load_ms));
    ask(asked::lease, lease_command(setup_.names->store_key, encode(e), lease_ms(), rejected_, earlier_), true, t);
}

void fill_machine::on_lease(delivery how, const reply& r, turn& t) {
    if (how == delivery::lost) {
        earlier_.push_back(token_);
        if (resends_++ < schedule::lease_resends) {
            take_lease(t);
            return;
        }
    }
    if (how != delivery::answered) {
        if (!earlier_.empty()) abandon(marker_kind::none, {}, t);
        want_slot(lease_form::none, true, t);
        return;
    }
    lease_answer said = read_lease(r);
    switch (said.what) {
    case lease_answer::kind::granted:
        if (said.overwrote_foreign) count(stat::foreign);
        earlier_.clear();
        safe_until_ = schedule::safe_until(primary_.sent, lease_ms());
        if (t.now >= safe_until_) { // the process slept over it: ask whether it is still ours
            earlier_.push_back(token_);
            if (resends_++ < schedule::lease_resends) {
                take_lease(t);
            } else {
                abandon(marker_kind::none, {}, t);
                want_slot(lease_form::none, true, t);
            }
            return;
        }
        count(stat::leases_granted);
        offer(t);
        return;
    case lease_answer::kind::held: {
        earlier_.clear();
        count(stat::leases_held);
        envelope theirs;
        std::int64_t finish_in = 0;
        if (decode(said.bytes, theirs) == reading::ours) {
            saw_.insert(theirs.generation);
            if (theirs.delta_ms != 0) finish_in = theirs.created + theirs.delta_ms - t.server_now;
            wait(finish_in, said.pttl_ms, t);
            emit(fill_output::kind::waiting).which = theirs.generation;
        } else {
            wait(0, said.pttl_ms, t);
        }
        return;
    }
    case lease_answer::kind::value:
        earlier_.clear();
        if (has_slot_) emit(fill_output::kind::drop_slot);
        has_slot_ = false;
        ++looks_;
        consider(std::move(said.bytes), t);
        return;
    case lease_answer::kind::bad:
        // A store that refuses to remember the lease still lets us load.
        if (!earlier_.empty()) abandon(marker_kind::none, {}, t);
        load_alone(store_useless(classify(r)), t);
        return;
    }
}

// In the place it has, or, without the store, in one of those for that.
void fill_machine::load_alone(bool store_down, turn& t) {
    form_ = lease_form::none;
    if (store_down) {
        want_slot(lease_form::none, true, t);
    } else {
        offer(t);
    }
}

void fill_machine::consider_forced(const envelope& e, std::string bytes, turn& t) {
    if (e.kind == entry_kind::error || e.kind == entry_kind::pass) {
        rejected_.push_back(e.generation);
        miss(t);
        return;
    }
    const server_ms began = e.created - static_cast<std::int64_t>(e.delta_ms);
    if (began >= called_at_ && looks_ > 1 && ours(e)) {
        serve(std::move(bytes), e, source::store, t);
        return;
    }
    if (!setup_.policy->fleet) {
        want_slot(lease_form::none, false, t);
        return;
    }
    if (ours(e) && e.generation != generation_) {
        auto at_hand = outcome_of(std::move(bytes), source::memory);
        at_hand->key = setup_.names->key;
        at_hand->stale = true;
        emit(fill_output::kind::hold).result = std::move(at_hand);
    }
    if (e.generation == generation_ && t.now < ask_again_at_) {
        state_ = state::waiting;
        look_at_ = t.now + schedule::next_look(looks_, ask_again_at_ - t.now, t.draw);
        return;
    }
    generation_ = e.generation;
    forced_over_value_ = true;
    want_slot(lease_form::generation, false, t);
}

std::string fill_machine::refresh_key_() const {
    return refresh_key(setup_.names->prefix, setup_.names->cache, setup_.names->key, generation_);
}

void fill_machine::ask_generation(turn& t) {
    state_ = state::leasing;
    ask(asked::generation, refresh_command(refresh_key_(), token_, lease_ms()), true, t);
}

void fill_machine::on_generation(delivery how, const reply& r, turn& t) {
    const bool background = setup_.mode == fill_mode::refresh;
    if (how == delivery::lost && resends_++ < 1) {
        ask_generation(t);
        return;
    }
    const auto said = how == delivery::answered ? read_refresh(r) : std::nullopt;
    if (!said) {
        if (how == delivery::lost) emit_send(release_command(refresh_key_(), token_, {}), false);
        if (background) {
            emit_asked(lease_ms());
            emit(fill_output::kind::drop_slot);
            finish();
        } else {
            load_alone(how != delivery::answered || store_useless(classify(r)), t);
        }
        return;
    }
    if (said->granted) {
        safe_until_ = schedule::safe_until(primary_.sent, lease_ms());
        if (background) count(stat::refreshes);
        offer(t);
        return;
    }
    const std::int64_t pttl = std::max<std::int64_t>(0, said->pttl_ms);
    if (background) {
        emit_asked(pttl);
        emit(fill_output::kind::drop_slot);
        finish();
        return;
    }
    ask_again_at_ = t.now + pttl;
    wait(0, pttl, t);
    emit(fill_output::kind::waiting); // nobody knows for whose token
}

void fill_machine::renew(turn& t) {
    renew_at_ = forever_ms;
    count(stat::renewals);
    renewal_.what = asked::lease;
    renewal_.sent = t.now;
    renewal_.deadline = t.now + setup_.command_timeout_ms;
    renewal_.id =
        emit_send(form_ == lease_form::placeholder ? extend_command(setup_.names->store_key, token_, lease_ms())
                                                   : renew_command(refresh_key_(), token_, lease_ms()),
                  false);
}

void fill_machine::on_renewal(delivery how, const reply& r, turn& t) {
    renewal_.what = asked::none;
    renewal_.deadline = forever_ms;
    if (state_ != state::offered && state_ != state::loading) return;
    const auto said = how == delivery::answered ? read_integer(r) : std::nullopt;
    if (!said) {
        renew_at_ = t.now + schedule::renew_retry(lease_ms());
        return;
    }
    if (*said == 1) {
        safe_until_ = schedule::safe_until(renewal_.sent, lease_ms());
        renew_at_ = renewal_.sent + schedule::renew_after(lease_ms());
        return;
    }
    lease_gone_ = true;
    count(form_ == lease_form::generation ? stat::refreshes_lost : stat::leases_lost);
    if (form_ == lease_form::placeholder) emit(fill_output::kind::unlist);
    emit(fill_output::kind::revoke).why = status::lost;
}

// Lets go of whatever lease is held or asked for, so that others may go on at once.
void fill_machine::give_up_lease(marker_kind marker, std::string_view text, turn& t) {
    renew_at_ = check_at_ = max_load_at_ = forever_ms;
    renewal_ = {};
    if (form_ == lease_form::placeholder) {
        abandon(marker, text, t);
    } else if (form_ == lease_form::generation) {
        const bool failed = marker != marker_kind::none;
        const std::int64_t rest = std::max<std::int64_t>(setup_.policy->error_ttl_ms, 1'000);
        emit_send(failed ? renew_command(refresh_key_(), token_, rest) : release_command(refresh_key_(), token_, {}),
                  false);
        emit_asked(failed ? rest : lease_ms());
    }
}

void fill_machine::abandon(marker_kind marker, std::string_view text, turn& t) {
    std::vector<token> all = earlier_;
    if (std::ranges::find(all, token_) == all.end()) all.push_back(token_);
    std::int64_t px = 0;
    std::string bytes;
    if (marker == marker_kind::error) px = setup_.policy->error_ttl_ms;
    if (marker == marker_kind::pass) px = schedule::marker_pass_ms;
    if (px > 0) {
        envelope e;
        e.kind = marker == marker_kind::error ? entry_kind::error : entry_kind::pass;
        e.codec = 0;
        e.generation = t.draw.make_token();
        e.created = t.server_now;
        const std::string_view shown = text.substr(0, max_error_text);
        if (marker == marker_kind::error) e.payload = shown;
        bytes = encode(e);
        count(marker == marker_kind::error ? stat::markers_error : stat::markers_pass);
    } else {
        marker = marker_kind::none;
    }
    emit_send(abandon_command(setup_.names->store_key, marker, bytes, px, setup_.names->wake(), all), false);
    for (const token& one : all) {
        if (std::ranges::find(spares_, one) != spares_.end()) continue;
        emit_spare(one);
    }
    earlier_.clear();
}

} // namespace stn
