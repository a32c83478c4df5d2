// SPDX-License-Identifier: MIT
#include "protocol/fill_machine.hpp"

#include <algorithm>
#include <utility>

#include "protocol/schedule.hpp"

namespace stn {

fill_machine::fill_machine(fill_setup setup)
    : setup_(std::move(setup)),
      earlier_(setup_.inherited),
      spares_(setup_.inherited) {}

void fill_machine::handle(fill_input in, mono_ms now, server_ms server_now, draws& draw) {
    turn t{now, server_now, draw};
    using k = fill_input::kind;
    if (state_ == state::done) return;
    switch (in.what) {
    case k::start: start(t); break;
    case k::reply: on_reply(in, t); break;
    case k::message: on_message(in.news, t); break;
    case k::resubscribed:
        if (state_ == state::waiting) look(t);
        break;
    case k::slot:
        has_slot_ = true;
        if (state_ == state::queued) on_slot(t);
        break;
    case k::timer: on_timer(t); break;
    case k::read:
        if (state_ == state::offered) {
            state_ = state::loading;
            max_load_at_ = add_ms(in.at, setup_.policy->max_load_ms);
        }
        break;
    case k::no_taker:
        if (state_ != state::offered) break;
        give_up_lease(marker_kind::none, {}, t);
        emit(fill_output::kind::drop_slot);
        if (setup_.mode == fill_mode::refresh) {
            finish();
        } else {
            form_ = lease_form::none;
            look(t);
        }
        break;
    case k::offered:
        if (state_ == state::offered) check_at_ = t.now + schedule::untaken_ms;
        break;
    case k::freed: on_freed(t); break;
    case k::loaded: on_loaded(in.load, t); break;
    case k::nobody:
        on_nobody();
        if (state_ == state::leasing || state_ == state::offered) {
            give_up_lease(marker_kind::none, {}, t);
        }
        if (state_ != state::loading && state_ != state::overdue && state_ != state::settling) finish();
        break;
    case k::closing:
        if (state_ == state::leasing || state_ == state::offered || state_ == state::loading ||
            (state_ == state::overdue && form_ == lease_form::placeholder) ||
            (state_ == state::settling && store_again_at_ != forever_ms)) {
            give_up_lease(marker_kind::none, {}, t);
        }
        finish();
        break;
    case k::detached: detached_ = true; break;
    case k::takeover:
        for (std::vector<token>* const list : {&earlier_, &spares_}) {
            if (std::ranges::find(*list, in.which) == list->end()) list->push_back(in.which);
        }
        if (state_ == state::waiting && saw_.contains(in.which)) {
            want_slot(lease_form::placeholder, false, t);
        }
        break;
    }
}

bool fill_machine::poll(fill_output& out) {
    if (told_ == out_.size()) {
        out_.clear();
        told_ = 0;
        return false;
    }
    out = std::move(out_[told_++]);
    return true;
}

mono_ms fill_machine::wake_at() const {
    if (state_ == state::done) return forever_ms;
    return std::min(
        {primary_.deadline, renewal_.deadline, look_at_, renew_at_, check_at_, max_load_at_, store_again_at_});
}

bool fill_machine::awaits(std::uint32_t id) const {
    return (primary_.what != asked::none && primary_.id == id) || (renewal_.what != asked::none && renewal_.id == id);
}

void fill_machine::start(turn& t) {
    called_at_ = t.server_now;
    switch (setup_.mode) {
    case fill_mode::normal:
    case fill_mode::peek:
    case fill_mode::force:
    case fill_mode::no_store: look(t); break;
    case fill_mode::refetch:
        rejected_.push_back(setup_.generation);
        if (setup_.policy->fleet) {
            want_slot(lease_form::placeholder, false, t);
        } else {
            want_slot(lease_form::none, false, t);
        }
        break;
    case fill_mode::alone: want_slot(lease_form::none, false, t); break;
    case fill_mode::refresh:
        generation_ = setup_.generation;
        want_slot(lease_form::generation, false, t);
        break;
    }
}

void fill_machine::on_reply(fill_input& in, turn& t) {
    if (in.id == renewal_.id && renewal_.what != asked::none) {
        on_renewal(in.how, in.answer, t);
        return;
    }
    if (in.id != primary_.id || primary_.what == asked::none) return;
    const asked what = std::exchange(primary_.what, asked::none);
    primary_.deadline = forever_ms;
    switch (what) {
    case asked::get: on_get(in.how, in.answer, t); break;
    case asked::lease: on_lease(in.how, in.answer, t); break;
    case asked::generation: on_generation(in.how, in.answer, t); break;
    case asked::fill: on_fill(in.how, in.answer, t); break;
    case asked::put: on_put(in.how, in.answer, t); break;
    case asked::shorten: finish(); break;
    case asked::none: break;
    }
}

void fill_machine::on_timer(turn& t) {
    if (primary_.what != asked::none && t.now >= primary_.deadline) {
        count(stat::commands_lost);
        fill_input late;
        late.what = fill_input::kind::reply;
        late.id = primary_.id;
        late.how = delivery::lost;
        on_reply(late, t);
    }
    if (renewal_.what != asked::none && t.now >= renewal_.deadline) {
        count(stat::commands_lost);
        on_renewal(delivery::lost, {}, t);
    }
    if (t.now >= renew_at_) renew(t);
    if (t.now >= check_at_) {
        check_at_ = forever_ms;
        emit(fill_output::kind::check).leased =
            form_ != lease_form::placeholder || (!lease_gone_ && t.now < safe_until_);
    }
    if (t.now >= max_load_at_) overdue(t);
    if (t.now >= store_again_at_) send_stored(t);
    if (t.now >= look_at_) {
        look_at_ = forever_ms;
        if (state_ == state::waiting) {
            look(t);
        } else if (state_ == state::queued) {
            ask(asked::get, get_command(setup_.names->store_key), true, t);
        }
    }
}

void fill_machine::on_nobody() {
    look_at_ = forever_ms;
    if (state_ == state::queued || state_ == state::leasing || state_ == state::offered) {
        emit(fill_output::kind::drop_slot);
        has_slot_ = false;
    }
}

bool fill_machine::rejects(const token& generation) const {
    return std::ranges::find(rejected_, generation) != rejected_.end();
}

// Absence is written without a codec, and is the same for all.
bool fill_machine::ours(const envelope& e) const {
    return e.kind == entry_kind::absent || e.codec == setup_.policy->codec;
}

std::int64_t fill_machine::lease_ms() const {
    return schedule::lease_length(*setup_.policy, std::max(known_delta_ms_, setup_.expected_load_ms));
}

std::uint32_t fill_machine::emit_send(command cmd, bool gated) {
    fill_output& out = emit(fill_output::kind::send);
    out.id = ++next_id_;
    out.cmd = std::move(cmd);
    out.gated = gated;
    return next_id_;
}

void fill_machine::ask(asked what, command cmd, bool gated, turn& t) {
    primary_.what = what;
    primary_.sent = t.now;
    primary_.deadline = t.now + setup_.command_timeout_ms;
    primary_.id = emit_send(std::move(cmd), gated);
}

void fill_machine::answer(outcome_ptr result) {
    emit(fill_output::kind::answer).result = std::move(result);
}

void fill_machine::answer_error(error why) {
    answer(outcome_error(std::move(why)));
}

fill_output& fill_machine::emit(fill_output::kind what) {
    if (what == fill_output::kind::drop_slot) has_slot_ = false;
    if (out_.capacity() == 0) out_.reserve(4); // a hit has no more at one time
    fill_output& out = out_.emplace_back();
    out.what = what;
    return out;
}

void fill_machine::emit_asked(std::int64_t not_again_ms) {
    fill_output& out = emit(fill_output::kind::asked);
    out.which = generation_;
    out.span_ms = not_again_ms;
}

void fill_machine::emit_spare(const token& which) {
    fill_output& out = emit(fill_output::kind::spare);
    out.which = which;
    out.span_ms = lease_ms();
}

void fill_machine::emit_offer() {
    fill_output& out = emit(fill_output::kind::offer);
    out.leased = form_ != lease_form::none;
    out.which = token_;
}

void fill_machine::count(stat s) {
    emit(fill_output::kind::note).counter = s;
}

void fill_machine::finish() {
    state_ = state::done;
    primary_ = {};
    renewal_ = {};
    look_at_ = renew_at_ = check_at_ = max_load_at_ = store_again_at_ = forever_ms;
    emit(fill_output::kind::done);
}

} // namespace stn
