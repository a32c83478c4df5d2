// SPDX-License-Identifier: MIT
// The load and what becomes of its result.
#include "protocol/fill_machine.hpp"

#include <utility>

#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"

namespace stn {

void fill_machine::offer(turn& t) {
    state_ = state::offered;
    lease_gone_ = false;
    check_at_ = t.now + schedule::untaken_ms;
    max_load_at_ = forever_ms;
    renew_at_ = form_ == lease_form::none ? forever_ms : t.now + schedule::renew_after(lease_ms());
    emit_offer();
}

void fill_machine::overdue(turn& t) {
    max_load_at_ = forever_ms;
    if (state_ != state::loading) return;
    state_ = state::overdue;
    renew_at_ = check_at_ = forever_ms;
    renewal_ = {};
    emit(fill_output::kind::unlist);
    answer_error(fail(status::timeout, "the load ran longer than max_load", setup_.names->key));
    emit(fill_output::kind::overdue_slot);
    emit(fill_output::kind::revoke).why = status::timeout;
    if (form_ == lease_form::placeholder && !lease_gone_) {
        emit_spare(token_);
    } else if (form_ == lease_form::generation) {
        give_up_lease(marker_kind::error, {}, t);
        state_ = state::overdue;
    }
}

void fill_machine::on_freed(turn& t) {
    if (state_ == state::overdue) {
        emit(fill_output::kind::drop_slot);
        finish();
        return;
    }
    if (state_ != state::offered && state_ != state::loading) return;
    max_load_at_ = forever_ms;
    if (setup_.mode == fill_mode::refresh) {
        give_up_lease(marker_kind::none, {}, t);
        emit(fill_output::kind::drop_slot);
        finish();
        return;
    }
    if (form_ == lease_form::placeholder && (lease_gone_ || t.now >= safe_until_)) {
        earlier_.push_back(token_);
        renew_at_ = check_at_ = forever_ms;
        renewal_ = {};
        resends_ = 0;
        take_lease(t);
        return;
    }
    state_ = state::offered;
    check_at_ = t.now + schedule::untaken_ms;
    emit_offer();
}

void fill_machine::on_loaded(const outcome_ptr& load, turn& t) {
    if (state_ == state::overdue) {
        emit(fill_output::kind::drop_slot);
        finish();
        return;
    }
    if (state_ != state::offered && state_ != state::loading) return;
    renew_at_ = check_at_ = max_load_at_ = forever_ms;
    renewal_ = {};
    emit(fill_output::kind::drop_slot);
    has_slot_ = false;
    const bool good = load->code == status::ok || load->code == status::absent;
    const bool small = load->payload.size() <= setup_.policy->max_value;
    const bool may_put =
        !setup_.policy->fleet && !detached_ &&
        (setup_.mode == fill_mode::normal || setup_.mode == fill_mode::refetch || setup_.mode == fill_mode::force);
    state_ = state::settling;
    if (good && small && (form_ == lease_form::none ? may_put : !lease_gone_)) {
        resends_ = 0;
        store(*load, t);
        return;
    }
    if (form_ != lease_form::none && good && !small) {
        give_up_lease(marker_kind::pass, {}, t);
    } else if (form_ != lease_form::none && good) {
        count(stat::fills_refused);
    } else if (form_ != lease_form::none) {
        const bool failed = load->code == status::load_failed;
        give_up_lease(failed ? marker_kind::error : marker_kind::none, load->why.message, t);
    }
    if (good) emit(fill_output::kind::filled).why = small ? status::lost : status::too_large;
    finish();
}

void fill_machine::store(const outcome& load, turn& t) {
    const fill_policy& p = *setup_.policy;
    const bool absent = load.code == status::absent;
    const std::int64_t ttl = load.ttl_ms > 0 ? load.ttl_ms : absent ? p.absent_ttl_ms : p.ttl_ms;
    const std::int64_t soft = load.soft_ttl_ms >= 0 ? load.soft_ttl_ms : absent ? 0 : p.soft_ttl_ms;
    const auto life = schedule::jittered(ttl, soft, p.jitter, t.draw);
    filled_generation_ = t.draw.make_token();
    envelope e;
    e.kind = absent ? entry_kind::absent : entry_kind::value;
    e.codec = absent ? std::uint8_t{0} : load.codec;
    e.generation = filled_generation_;
    // When the load ended, not when this turn came: who asks for a load begun after his call counts from there.
    e.created = load.created != 0 ? load.created : t.server_now;
    e.soft_at = life.soft_ms > 0 ? t.server_now + life.soft_ms : never_soft;
    e.delta_ms = load.delta_ms;
    e.payload = load.payload;
    if (life.soft_ms > 0 && life.hard_ms - life.soft_ms < 2 * static_cast<std::int64_t>(load.delta_ms)) {
        count(stat::soft_margin_small);
    }
    filled_envelope_ = encode(e);
    filled_px_ = life.hard_ms;
    store_retries_ = 0;
    send_stored(t);
}

void fill_machine::send_stored(turn& t) {
    store_again_at_ = forever_ms;
    if (form_ != lease_form::none) {
        send_fill(t);
    } else if (detached_) { // by an invalidation that came between two tries
        count(stat::fills_lost);
        emit(fill_output::kind::filled).why = status::lost;
        finish();
    } else {
        ask(asked::put, put_command(setup_.names->store_key, filled_envelope_, filled_px_, setup_.names->wake()), false,
            t);
    }
}

// A store that has refused it for a moment only is asked once more.
bool fill_machine::retry_store(delivery how, const reply& r, turn& t) {
    if (how != delivery::answered || traits_of(classify(r)).again != retry_pace::soon) return false;
    if (store_retries_++ >= schedule::fill_retries) return false;
    store_again_at_ = t.now + schedule::refused_pause(store_retries_, false, t.draw);
    return true;
}

void fill_machine::tell_filled(status how, const reply& r) {
    fill_output& out = emit(fill_output::kind::filled);
    out.why = how;
    if (classify(r) != refusal::none) out.result = outcome_error(refused_by_store(r, setup_.names->key));
}

void fill_machine::send_fill(turn& t) {
    const token& expected = form_ == lease_form::generation ? generation_ : token_;
    ask(asked::fill,
        fill_command(setup_.names->store_key, expected, filled_envelope_, filled_px_, setup_.names->wake()), false, t);
}

void fill_machine::on_put(delivery how, const reply& r, turn& t) {
    if (retry_store(how, r, t)) return;
    const bool stored = how == delivery::answered && r.kind != reply_kind::error;
    count(stored ? stat::fills_stored : stat::fills_lost);
    if (how == delivery::lost) emit_send(del_command(setup_.names->store_key), false); // it may be applied later
    tell_filled(stored ? status::ok : status::unavailable, r);
    finish();
}

void fill_machine::on_fill(delivery how, const reply& r, turn& t) {
    if (how == delivery::lost && resends_++ < schedule::fill_resends) {
        send_fill(t);
        return;
    }
    if (retry_store(how, r, t)) return;
    const auto said = how == delivery::answered ? read_integer(r) : std::nullopt;
    status told = status::ok;
    if (said && *said == 1) {
        count(stat::fills_stored);
    } else if (said) {
        count(stat::fills_refused);
        told = status::refused;
    } else {
        count(stat::fills_lost);
        told = status::unavailable;
        // It may have been applied: a refresh lease given back would let the next who asks load again.
        give_up_lease(form_ == lease_form::generation ? marker_kind::error : marker_kind::none, {}, t);
    }
    tell_filled(told, r);
    finish();
}

} // namespace stn
