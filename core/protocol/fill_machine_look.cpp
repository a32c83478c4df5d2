// SPDX-License-Identifier: MIT
// Looking: what a GET finds, and waiting for somebody else's load.
#include "protocol/fill_machine.hpp"

#include <algorithm>
#include <utility>

#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"

namespace stn {

namespace {

error store_silent(delivery how, const std::string& key) {
    return how == delivery::lost ? fail(status::timeout, "the store did not answer in time", key)
                                 : fail(status::unavailable, "the store cannot be reached", key);
}

} // namespace

void fill_machine::look(turn& t) {
    state_ = state::looking;
    look_at_ = forever_ms;
    if (looks_++ > 0) count(stat::looks);
    resends_ = 0;
    ask(asked::get, get_command(setup_.names->store_key), true, t);
}

void fill_machine::on_get(delivery how, reply& r, turn& t) {
    const bool beside = state_ == state::queued; // a look while waiting for a slot: only a value matters
    if (how == delivery::lost && !beside && resends_ < schedule::look_resends) {
        ++resends_;
        ask(asked::get, get_command(setup_.names->store_key), true, t);
        return;
    }
    const refusal why = classify(r);
    const bool failed = how != delivery::answered || (why != refusal::none && why != refusal::wrong_type);
    if (beside) {
        look_at_ = t.now + schedule::next_look(looks_++, -1, t.draw);
        if (failed || r.kind != reply_kind::bulk) return;
        envelope e;
        if (decode(r.text, e) != reading::ours || rejects(e.generation)) return;
        if (e.kind != entry_kind::value && e.kind != entry_kind::absent) return;
        if (setup_.mode == fill_mode::force || !ours(e)) return;
        emit(fill_output::kind::drop_slot);
        serve(std::move(r.text), e, source::store, t);
        return;
    }
    if (failed) {
        if (setup_.mode == fill_mode::peek) {
            answer_error(how == delivery::answered ? refused_by_store(r, setup_.names->key)
                                                   : store_silent(how, setup_.names->key));
            finish();
        } else {
            want_slot(lease_form::none, true, t);
        }
        return;
    }
    if (r.kind == reply_kind::bulk) {
        consider(std::move(r.text), t);
        return;
    }
    if (why == refusal::wrong_type) count(stat::foreign);
    miss(t);
}

void fill_machine::consider(std::string bytes, turn& t) {
    envelope e;
    switch (decode(bytes, e)) {
    case reading::foreign:
        count(stat::foreign);
        miss(t);
        return;
    case reading::newer:
        count(stat::newer);
        if (setup_.mode == fill_mode::peek) {
            miss(t);
        } else {
            setup_.mode = fill_mode::no_store;
            want_slot(lease_form::none, false, t);
        }
        return;
    case reading::ours: break;
    }
    if (setup_.mode == fill_mode::peek && (e.kind == entry_kind::placeholder || e.kind == entry_kind::pass)) {
        miss(t);
        return;
    }
    if (e.kind == entry_kind::placeholder) {
        see(e, t);
        return;
    }
    if (rejects(e.generation)) {
        miss(t);
        return;
    }
    if (setup_.mode == fill_mode::force) {
        consider_forced(e, std::move(bytes), t);
        return;
    }
    switch (e.kind) {
    case entry_kind::error: {
        error why = fail(status::load_failed, std::string(e.payload), setup_.names->key);
        if (why.message.empty()) why.message = "the loader failed in another process";
        answer_error(std::move(why));
        finish();
        return;
    }
    case entry_kind::pass: want_slot(lease_form::none, false, t); return;
    case entry_kind::value:
        if (!ours(e)) {
            count(stat::rejected);
            reject(e.generation, t);
            return;
        }
        break;
    case entry_kind::absent:
    case entry_kind::placeholder: break;
    }
    serve(std::move(bytes), e, source::store, t);
}

void fill_machine::reject(const token& generation, turn& t) {
    if (setup_.mode == fill_mode::peek) {
        answer_error(
            fail(status::undecodable, "the stored value has another codec than this cache", setup_.names->key));
        finish();
        return;
    }
    rejected_.push_back(generation);
    if (++codec_rejections_ > 1) {
        emit(fill_output::kind::reject_twice);
        setup_.mode = fill_mode::no_store;
        want_slot(lease_form::none, false, t);
        return;
    }
    miss(t);
}

void fill_machine::serve(std::string bytes, const envelope& e, source from, turn& t) {
    const bool soft = e.soft_at != never_soft;
    const bool stale = soft && t.server_now >= e.soft_at;
    const bool soon =
        soft && !stale && schedule::early(t.server_now, e.soft_at, e.delta_ms, setup_.policy->early, t.draw);
    const token generation = e.generation;
    count(e.kind == entry_kind::absent ? stat::absent_hits : stale ? stat::stale_hits : stat::hits);
    if (soon) count(stat::early_refreshes);
    auto o = outcome_of(std::move(bytes), from);
    o->key = setup_.names->key;
    o->stale = stale;
    o->retried = setup_.mode == fill_mode::refetch;
    const auto delta = o->delta_ms;
    answer(std::move(o));
    if ((stale || soon) && setup_.mode != fill_mode::peek) {
        fill_output& out = emit(fill_output::kind::ask_refresh);
        out.which = generation;
        out.span_ms = delta;
    }
    finish();
}

void fill_machine::miss(turn& t) {
    if (setup_.mode == fill_mode::peek) {
        count(stat::misses);
        auto o = blocks::make_shared<outcome>();
        o->code = status::not_mine;
        answer(std::move(o));
        finish();
        return;
    }
    if (looks_ <= 1) count(stat::misses);
    const bool leased = setup_.policy->fleet && setup_.mode != fill_mode::no_store;
    want_slot(leased ? lease_form::placeholder : lease_form::none, false, t);
}

void fill_machine::see(const envelope& placeholder, turn& t) {
    if (looks_ <= 1) count(stat::misses);
    if (placeholder.delta_ms != 0) known_delta_ms_ = placeholder.delta_ms;
    if (!setup_.policy->fleet || setup_.mode == fill_mode::no_store) {
        want_slot(lease_form::none, false, t);
        return;
    }
    const token& theirs = placeholder.generation;
    const bool mine = std::ranges::find(earlier_, theirs) != earlier_.end();
    if (mine || !saw_.contains(theirs)) {
        want_slot(lease_form::placeholder, false, t);
        return;
    }
    const std::int64_t pttl = pttl_until_ > t.now ? pttl_until_ - t.now : -1;
    state_ = state::waiting;
    look_at_ = t.now + schedule::next_look(looks_, pttl, t.draw);
}

void fill_machine::wait(std::int64_t finish_in_ms, std::int64_t pttl_ms, turn& t) {
    if (has_slot_) emit(fill_output::kind::drop_slot);
    has_slot_ = false;
    count(stat::waits);
    state_ = state::waiting;
    form_ = lease_form::none;
    pttl_until_ = add_ms(t.now, pttl_ms);
    look_at_ = t.now + (looks_ <= 1 ? schedule::first_look(finish_in_ms, pttl_ms, t.draw)
                                    : schedule::next_look(looks_, pttl_ms, t.draw));
}

void fill_machine::on_message(const wake_message& news, turn& t) {
    if (state_ != state::waiting) return;
    const bool plain = setup_.mode == fill_mode::normal && rejected_.empty();
    if (plain && news.kind == wake_kind::filled && saw_.contains(news.replaced) && !news.envelope.empty()) {
        envelope e;
        if (decode(news.envelope, e) == reading::ours &&
            (e.kind == entry_kind::absent || e.kind == entry_kind::value) && ours(e)) {
            serve(std::string(news.envelope), e, source::store, t);
            return;
        }
    }
    look(t);
}

} // namespace stn
