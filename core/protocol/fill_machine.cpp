// SPDX-License-Identifier: MIT
#include "protocol/fill_machine.hpp"

#include <algorithm>
#include <utility>

#include "protocol/keys.hpp"
#include "protocol/schedule.hpp"

namespace stn {

namespace {

constexpr std::size_t max_error_text = 512;

bool wrong_type(const reply& r) {
    return r.kind == reply_kind::error && r.text.starts_with("WRONGTYPE");
}

error store_said(const reply& r, const std::string& key) {
    error e = fail(status::refused, "the store refused the command", key);
    e.server_text = r.text;
    return e;
}

error store_silent(delivery how, const std::string& key) {
    return how == delivery::lost ? fail(status::timeout, "the store did not answer in time", key)
                                 : fail(status::unavailable, "the store cannot be reached", key);
}

} // namespace

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
        push(fill_output::kind::drop_slot);
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
            (state_ == state::overdue && form_ == lease_form::placeholder)) {
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
    if (out_.empty()) return false;
    out = std::move(out_.front());
    out_.pop_front();
    return true;
}

mono_ms fill_machine::wake_at() const {
    if (state_ == state::done) return forever_ms;
    return std::min({primary_.deadline, renewal_.deadline, look_at_, renew_at_, check_at_, max_load_at_});
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

// ---- looking

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
    const bool failed = how != delivery::answered || (r.kind == reply_kind::error && !wrong_type(r));
    if (beside) {
        look_at_ = t.now + schedule::next_look(looks_++, -1, t.draw);
        if (failed || r.kind != reply_kind::bulk) return;
        envelope e;
        if (decode(r.text, e) != reading::ours || rejects(e.generation)) return;
        if (e.kind != entry_kind::value && e.kind != entry_kind::absent) return;
        if (setup_.mode == fill_mode::force || !ours(e)) return;
        push(fill_output::kind::drop_slot);
        serve(std::move(r.text), e, source::store, t);
        return;
    }
    if (failed) {
        if (setup_.mode == fill_mode::peek) {
            answer_error(how == delivery::answered ? store_said(r, setup_.names->key)
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
    if (wrong_type(r)) count(stat::foreign);
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
        push(fill_output::kind::reject_twice);
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
        fill_output out;
        out.what = fill_output::kind::ask_refresh;
        out.which = generation;
        out.span_ms = delta;
        out_.push_back(std::move(out));
    }
    finish();
}

void fill_machine::miss(turn& t) {
    if (setup_.mode == fill_mode::peek) {
        count(stat::misses);
        auto o = std::make_shared<outcome>();
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
    if (has_slot_) push(fill_output::kind::drop_slot);
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

// ---- the slot, then the lease

void fill_machine::want_slot(lease_form next, bool store_down, turn& t) {
    form_ = next;
    state_ = state::queued;
    const bool hopeless = store_down || setup_.mode == fill_mode::alone || setup_.mode == fill_mode::refresh;
    look_at_ = hopeless ? forever_ms : t.now + schedule::first_look(0, -1, t.draw);
    if (has_slot_ && !store_down) {
        on_slot(t);
        return;
    }
    if (has_slot_) push(fill_output::kind::drop_slot);
    fill_output out;
    out.what = fill_output::kind::need_slot;
    out.store_down = store_down;
    out_.push_back(std::move(out));
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
            fill_output out;
            out.what = fill_output::kind::waiting;
            out.which = theirs.generation;
            out_.push_back(std::move(out));
        } else {
            wait(0, said.pttl_ms, t);
        }
        return;
    }
    case lease_answer::kind::value:
        earlier_.clear();
        if (has_slot_) push(fill_output::kind::drop_slot);
        has_slot_ = false;
        ++looks_;
        consider(std::move(said.bytes), t);
        return;
    case lease_answer::kind::bad:
        // A store that refuses to remember the lease (out of memory, read only) still lets us load.
        if (!earlier_.empty()) abandon(marker_kind::none, {}, t);
        form_ = lease_form::none;
        offer(t);
        return;
    }
}

// ---- force and refresh: the lease of one generation

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
        fill_output out;
        out.what = fill_output::kind::hold;
        out.result = std::move(at_hand);
        out_.push_back(std::move(out));
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
        if (how == delivery::lost) send(release_command(refresh_key_(), token_, {}), false);
        if (background) {
            fill_output out;
            out.what = fill_output::kind::asked;
            out.which = generation_;
            out.span_ms = lease_ms();
            out_.push_back(std::move(out));
            push(fill_output::kind::drop_slot);
            finish();
        } else {
            form_ = lease_form::none;
            want_slot(lease_form::none, true, t);
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
        fill_output out;
        out.what = fill_output::kind::asked;
        out.which = generation_;
        out.span_ms = pttl;
        out_.push_back(std::move(out));
        push(fill_output::kind::drop_slot);
        finish();
        return;
    }
    ask_again_at_ = t.now + pttl;
    wait(0, pttl, t);
    push(fill_output::kind::waiting); // nobody knows for whose token
}

// ---- the load

void fill_machine::offer(turn& t) {
    state_ = state::offered;
    lease_gone_ = false;
    check_at_ = t.now + schedule::untaken_ms;
    max_load_at_ = forever_ms;
    renew_at_ = form_ == lease_form::none ? forever_ms : t.now + schedule::renew_after(lease_ms());
    fill_output out;
    out.what = fill_output::kind::offer;
    out.leased = form_ != lease_form::none;
    out.which = token_;
    out_.push_back(std::move(out));
}

void fill_machine::renew(turn& t) {
    renew_at_ = forever_ms;
    count(stat::renewals);
    renewal_.what = asked::lease;
    renewal_.sent = t.now;
    renewal_.deadline = t.now + setup_.command_timeout_ms;
    renewal_.id = send(form_ == lease_form::placeholder ? extend_command(setup_.names->store_key, token_, lease_ms())
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
    if (form_ == lease_form::placeholder) push(fill_output::kind::unlist);
    fill_output out;
    out.what = fill_output::kind::revoke;
    out.why = status::lost;
    out_.push_back(std::move(out));
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
        fill_output out;
        out.what = fill_output::kind::check;
        out.leased = form_ != lease_form::placeholder || (!lease_gone_ && t.now < safe_until_);
        out_.push_back(std::move(out));
    }
    if (t.now >= max_load_at_) overdue(t);
    if (t.now >= look_at_) {
        look_at_ = forever_ms;
        if (state_ == state::waiting) {
            look(t);
        } else if (state_ == state::queued) {
            ask(asked::get, get_command(setup_.names->store_key), true, t);
        }
    }
}

void fill_machine::overdue(turn& t) {
    max_load_at_ = forever_ms;
    if (state_ != state::loading) return;
    state_ = state::overdue;
    renew_at_ = check_at_ = forever_ms;
    renewal_ = {};
    push(fill_output::kind::unlist);
    answer_error(fail(status::timeout, "the load ran longer than max_load", setup_.names->key));
    push(fill_output::kind::overdue_slot);
    fill_output out;
    out.what = fill_output::kind::revoke;
    out.why = status::timeout;
    out_.push_back(std::move(out));
    if (form_ == lease_form::placeholder && !lease_gone_) {
        fill_output o;
        o.what = fill_output::kind::spare;
        o.which = token_;
        o.span_ms = lease_ms();
        out_.push_back(std::move(o));
    } else if (form_ == lease_form::generation) {
        give_up_lease(marker_kind::error, {}, t);
        state_ = state::overdue;
    }
}

void fill_machine::on_freed(turn& t) {
    if (state_ == state::overdue) {
        push(fill_output::kind::drop_slot);
        finish();
        return;
    }
    if (state_ != state::offered && state_ != state::loading) return;
    max_load_at_ = forever_ms;
    if (setup_.mode == fill_mode::refresh) {
        give_up_lease(marker_kind::none, {}, t);
        push(fill_output::kind::drop_slot);
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
    fill_output out;
    out.what = fill_output::kind::offer;
    out.leased = form_ != lease_form::none;
    out.which = token_;
    out_.push_back(std::move(out));
}

void fill_machine::on_nobody() {
    look_at_ = forever_ms;
    if (state_ == state::queued || state_ == state::leasing || state_ == state::offered) {
        push(fill_output::kind::drop_slot);
        has_slot_ = false;
    }
}

void fill_machine::on_loaded(const outcome_ptr& load, turn& t) {
    if (state_ == state::overdue) {
        push(fill_output::kind::drop_slot);
        finish();
        return;
    }
    if (state_ != state::offered && state_ != state::loading) return;
    renew_at_ = check_at_ = max_load_at_ = forever_ms;
    renewal_ = {};
    push(fill_output::kind::drop_slot);
    has_slot_ = false;
    const bool good = load->code == status::ok || load->code == status::absent;
    const bool small = load->payload.size() <= setup_.policy->max_value;
    const bool may_put =
        !setup_.policy->fleet && !detached_ &&
        (setup_.mode == fill_mode::normal || setup_.mode == fill_mode::refetch || setup_.mode == fill_mode::force);
    state_ = state::settling;
    fill_output told;
    told.what = fill_output::kind::filled;
    if (good && small && form_ != lease_form::none && !lease_gone_) {
        resends_ = 0;
        store(*load, t);
        return;
    }
    if (good && small && may_put) {
        store(*load, t);
        return;
    }
    if (form_ != lease_form::none) {
        if (good && !small) {
            give_up_lease(marker_kind::pass, {}, t);
            told.why = status::too_large;
        } else if (good) {
            count(stat::fills_refused);
            told.why = status::lost;
        } else {
            give_up_lease(load->code == status::load_failed ? marker_kind::error : marker_kind::none, load->why.message,
                          t);
        }
    } else {
        told.why = good && !small ? status::too_large : status::lost;
    }
    if (good) out_.push_back(std::move(told));
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
    e.created = t.server_now;
    e.soft_at = life.soft_ms > 0 ? t.server_now + life.soft_ms : never_soft;
    e.delta_ms = load.delta_ms;
    e.payload = load.payload;
    if (life.soft_ms > 0 && life.hard_ms - life.soft_ms < 2 * static_cast<std::int64_t>(load.delta_ms)) {
        count(stat::soft_margin_small);
    }
    filled_envelope_ = encode(e);
    filled_px_ = life.hard_ms;
    if (form_ == lease_form::none) {
        ask(asked::put, put_command(setup_.names->store_key, filled_envelope_, filled_px_, setup_.names->wake), false,
            t);
        return;
    }
    send_fill(t);
}

void fill_machine::send_fill(turn& t) {
    const token& expected = form_ == lease_form::generation ? generation_ : token_;
    ask(asked::fill, fill_command(setup_.names->store_key, expected, filled_envelope_, filled_px_, setup_.names->wake),
        false, t);
}

void fill_machine::on_put(delivery how, const reply& r, turn&) {
    const bool stored = how == delivery::answered && r.kind != reply_kind::error;
    count(stored ? stat::fills_stored : stat::fills_lost);
    if (how == delivery::lost) send(del_command(setup_.names->store_key), false); // it may be applied later
    fill_output told;
    told.what = fill_output::kind::filled;
    told.why = stored ? status::ok : status::unavailable;
    out_.push_back(std::move(told));
    finish();
}

void fill_machine::on_fill(delivery how, const reply& r, turn& t) {
    if (how == delivery::lost && resends_++ < schedule::fill_resends) {
        send_fill(t);
        return;
    }
    fill_output told;
    told.what = fill_output::kind::filled;
    const auto said = how == delivery::answered ? read_integer(r) : std::nullopt;
    if (said && *said == 1) {
        count(stat::fills_stored);
    } else if (said) {
        count(stat::fills_refused);
        told.why = status::refused;
    } else {
        count(stat::fills_lost);
        told.why = status::unavailable;
        give_up_lease(marker_kind::none, {}, t);
    }
    out_.push_back(std::move(told));
    finish();
}

// ---- giving up

// Lets go of whatever lease is held or asked for, so that others may go on at once.
void fill_machine::give_up_lease(marker_kind marker, std::string_view text, turn& t) {
    renew_at_ = check_at_ = max_load_at_ = forever_ms;
    renewal_ = {};
    if (form_ == lease_form::placeholder) {
        abandon(marker, text, t);
    } else if (form_ == lease_form::generation) {
        const bool failed = marker != marker_kind::none;
        const std::int64_t rest = std::max<std::int64_t>(setup_.policy->error_ttl_ms, 1'000);
        send(failed ? renew_command(refresh_key_(), token_, rest) : release_command(refresh_key_(), token_, {}), false);
        fill_output out;
        out.what = fill_output::kind::asked;
        out.which = generation_;
        out.span_ms = failed ? rest : lease_ms();
        out_.push_back(std::move(out));
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
    send(abandon_command(setup_.names->store_key, marker, bytes, px, setup_.names->wake, all), false);
    for (const token& one : all) {
        if (std::ranges::find(spares_, one) != spares_.end()) continue;
        fill_output out;
        out.what = fill_output::kind::spare;
        out.which = one;
        out.span_ms = lease_ms();
        out_.push_back(std::move(out));
    }
    earlier_.clear();
}

// ---- small change

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

std::uint32_t fill_machine::send(command cmd, bool gated) {
    fill_output out;
    out.what = fill_output::kind::send;
    out.id = ++next_id_;
    out.cmd = std::move(cmd);
    out.gated = gated;
    out_.push_back(std::move(out));
    return next_id_;
}

void fill_machine::ask(asked what, command cmd, bool gated, turn& t) {
    primary_.what = what;
    primary_.sent = t.now;
    primary_.deadline = t.now + setup_.command_timeout_ms;
    primary_.id = send(std::move(cmd), gated);
}

void fill_machine::answer(outcome_ptr result) {
    fill_output out;
    out.what = fill_output::kind::answer;
    out.result = std::move(result);
    out_.push_back(std::move(out));
}

void fill_machine::answer_error(error why) {
    answer(outcome_error(std::move(why)));
}

void fill_machine::push(fill_output::kind what) {
    if (what == fill_output::kind::drop_slot) has_slot_ = false;
    fill_output out;
    out.what = what;
    out_.push_back(std::move(out));
}

void fill_machine::count(stat s) {
    fill_output out;
    out.what = fill_output::kind::note;
    out.counter = s;
    out_.push_back(std::move(out));
}

void fill_machine::finish() {
    state_ = state::done;
    primary_ = {};
    renewal_ = {};
    look_at_ = renew_at_ = check_at_ = max_load_at_ = forever_ms;
    push(fill_output::kind::done);
}

} // namespace stn
