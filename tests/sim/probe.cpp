// SPDX-License-Identifier: MIT
#include "probe.hpp"

#include <algorithm>
#include <utility>

#include "protocol/envelope.hpp"

namespace stn::sim {

namespace {

std::string_view state_name(fill_machine::state s) {
    static constexpr std::string_view names[] = {"idle",    "looking", "queued",  "leasing",  "waiting",
                                                 "offered", "loading", "overdue", "settling", "done"};
    return names[static_cast<std::size_t>(s)];
}

std::string_view input_name(fill_input::kind k) {
    static constexpr std::string_view names[] = {"start",  "reply",  "message",  "resubscribed", "slot",
                                                 "timer",  "read",   "no_taker", "offered",      "freed",
                                                 "loaded", "nobody", "closing",  "detached",     "takeover"};
    return names[static_cast<std::size_t>(k)];
}

std::string_view delivery_name(delivery how) {
    return how == delivery::answered ? " answered" : how == delivery::lost ? " lost" : " not sent";
}

} // namespace

probe::probe(const fill_setup& setup, coverage& seen, tale& told, int node)
    : inner_(setup),
      setup_(setup),
      seen_(seen),
      told_(told),
      node_(node),
      own_(setup.inherited) {}

probe::sent probe::kind_of(const command& cmd) {
    if (cmd.what == verb::get) return sent::get;
    if (cmd.what != verb::script) return sent::other;
    switch (cmd.script) {
    case script_id::lease: return sent::lease;
    case script_id::refresh: return sent::refresh;
    case script_id::extend: return sent::extend;
    case script_id::renew: return sent::renew;
    case script_id::fill: return sent::fill;
    case script_id::put: return sent::put;
    default: return sent::other;
    }
}

probe::sent probe::asked_by(std::uint32_t id) const {
    const auto at = std::ranges::find(questions_, id, &question::id);
    return at == questions_.end() ? sent::other : at->what;
}

void probe::add(command cmd, std::uint32_t id) {
    fill_output out;
    out.what = out_kind::send;
    out.id = id;
    out.cmd = std::move(cmd);
    add(std::move(out));
}

void probe::handle(fill_input in, mono_ms now, server_ms server_now, draws& draw) {
    if (++seen_.inputs > coverage::most_inputs) return; // it would never end: the world will say so
    if (!alter(in, now, draw)) return;
    const state before = inner_.at();
    const sent asked = in.what == in_kind::reply ? asked_by(in.id) : sent::other;
    const fill_input seen = in; // the machine takes it
    inner_.handle(std::move(in), now, server_now, draw);
    const effects e = drain();
    if (before == state::done) return;
    classify(before, seen, asked, e, now);
    if (told_.on() && (inner_.at() != before || seen.what == in_kind::loaded || seen.what == in_kind::takeover)) {
        told_.line("machine", "n", node_, " ", setup_.names->key, " mode ", static_cast<int>(setup_.mode), ": ",
                   state_name(before), " + ", input_name(seen.what),
                   seen.what == in_kind::reply ? delivery_name(seen.how) : "", " -> ", state_name(inner_.at()));
    }
}

bool probe::poll(fill_output& out) {
    if (out_.empty() || seen_.inputs > coverage::most_inputs) return false;
    out = std::move(out_.front());
    out_.pop_front();
    return true;
}

probe::effects probe::drain() {
    effects e;
    fill_output out;
    while (inner_.poll(out)) {
        switch (out.what) {
        case out_kind::send: note_sent(out, e); break;
        case out_kind::offer:
            leased_ = out.leased;
            gone_ = false;
            told_.line("machine", "n", node_, " ", setup_.names->key, ": offer ",
                       out.leased ? brief(out.which) : "alone");
            break;
        case out_kind::ask_refresh: e.refresh_asked = true; break;
        case out_kind::revoke: e.revoked = true; break;
        default: break;
        }
        if (alter(out)) out_.push_back(std::move(out));
        out = {};
    }
    return e;
}

void probe::note_sent(const fill_output& out, effects& e) {
    const sent what = kind_of(out.cmd);
    questions_.push_back({out.id, what});
    if (questions_.size() > 12) questions_.pop_front();
    switch (what) {
    case sent::lease: own_.push_back(token_from(std::string_view(out.cmd.args[0]).substr(4, 16))); [[fallthrough]];
    case sent::get:
    case sent::refresh:
    case sent::fill:
    case sent::put:
        primary_ = what;
        e.last = what;
        break;
    case sent::extend:
    case sent::renew:
        renewal_id_ = out.id;
        e.renewed = true;
        break;
    case sent::other:
        if (out.cmd.what == verb::script && out.cmd.script == script_id::abandon && out.cmd.args[0] != "none") {
            e.marked = true;
        }
        break;
    }
}

// ---- which row was that?

void probe::classify(state before, const fill_input& in, sent asked, const effects& e, mono_ms now) {
    const state after = inner_.at();
    const bool holds = before == state::offered || before == state::loading;
    if (e.renewed) renewal_due_ = now + setup_.command_timeout_ms;
    switch (in.what) {
    case in_kind::start:
        visit(setup_.mode == fill_mode::refetch   ? row::idle_refetch
              : setup_.mode == fill_mode::alone   ? row::idle_alone
              : setup_.mode == fill_mode::refresh ? row::idle_refresh
                                                  : row::idle_start);
        break;
    case in_kind::reply: classify_reply(before, in, asked, e); break;
    case in_kind::message:
        if (before != state::waiting) break;
        visit(after == state::done                ? row::waiting_filled
              : in.news.kind == wake_kind::filled ? row::waiting_unseen
                                                  : row::waiting_message);
        break;
    case in_kind::resubscribed:
        if (before == state::waiting) visit(row::waiting_subscribed);
        break;
    case in_kind::slot:
        if (before == state::queued) visit(after == state::offered ? row::queued_slot_alone : row::queued_slot);
        break;
    case in_kind::timer: classify_timer(before, e, now); break;
    case in_kind::read:
        if (before == state::offered) visit(row::offered_read);
        break;
    case in_kind::no_taker:
        if (before == state::offered) visit(row::offered_no_taker);
        break;
    case in_kind::offered:
        if (before == state::offered) visit(row::offered_passed_on);
        break;
    case in_kind::freed:
        if (before == state::overdue) visit(row::overdue_freed);
        if (!holds) break;
        visit(after == state::leasing    ? row::offered_freed_late
              : before == state::offered ? row::offered_freed
                                         : row::loading_freed);
        break;
    case in_kind::loaded:
        if (before == state::overdue) visit(row::overdue_loaded);
        if (!holds) break;
        if (after == state::settling) {
            visit(before == state::offered ? row::offered_loaded : row::loading_loaded);
        } else if (e.marked) {
            visit(row::loading_marker);
        } else {
            visit(leased_ ? row::loading_lost : row::loading_alone);
        }
        break;
    case in_kind::nobody:
        if (after == state::done) visit(row::any_nobody);
        break;
    case in_kind::closing: visit(row::any_closing); break;
    case in_kind::detached: visit(row::any_detached); break;
    case in_kind::takeover:
        own_.push_back(in.which);
        if (before == state::waiting && after == state::queued) visit(row::waiting_takeover);
        break;
    }
}

void probe::classify_timer(state before, const effects& e, mono_ms now) {
    const state after = inner_.at();
    switch (before) {
    case state::waiting:
        if (after == state::looking) visit(row::waiting_timer);
        break;
    case state::queued:
        if (e.last == sent::get) visit(row::queued_timer);
        break;
    case state::looking: visit(after == state::looking ? row::looking_lost : row::looking_lost_twice); break;
    case state::leasing:
        if (primary_ == sent::refresh) {
            visit(after == state::leasing ? row::asking_lost : row::asking_lost_for_good);
        } else {
            visit(after == state::leasing ? row::leasing_lost : row::leasing_lost_for_good);
        }
        break;
    case state::offered:
    case state::loading:
        if (after == state::overdue) visit(row::loading_max_load);
        if (renewal_due_ <= now) {
            renewal_due_ = forever_ms;
            visit(row::loading_extend_silent);
        }
        break;
    case state::settling:
        if (std::exchange(pausing_, false)) break; // the second try after a refusal
        visit(after == state::settling ? row::settling_lost
              : primary_ == sent::put  ? row::settling_put_lost
                                       : row::settling_lost_for_good);
        break;
    case state::idle:
    case state::overdue:
    case state::done: break;
    }
}

void probe::classify_reply(state before, const fill_input& in, sent asked, const effects& e) {
    const state after = inner_.at();
    const bool answered = in.how == delivery::answered;
    if (before == state::settling) pausing_ = answered && after == state::settling;
    switch (asked) {
    case sent::get:
        if (before == state::queued && answered) visit(after == state::done ? row::queued_value : row::queued_other);
        if (before != state::looking) break;
        if (answered) {
            classify_entry(in.answer, e);
        } else if (in.how == delivery::not_sent) {
            visit(row::looking_not_sent);
        } else {
            visit(after == state::looking ? row::looking_lost : row::looking_lost_twice);
        }
        break;
    case sent::lease: {
        if (before != state::leasing) break;
        const lease_answer said = read_lease(in.answer);
        if (!answered) {
            visit(after == state::leasing ? row::leasing_lost : row::leasing_lost_for_good);
        } else if (after == state::leasing && e.last != sent::lease) {
            visit(row::leasing_late);
        } else if (said.what == lease_answer::kind::granted) {
            visit(after == state::offered ? row::leasing_granted : row::leasing_slept);
        } else if (said.what == lease_answer::kind::held) {
            visit(row::leasing_held);
        } else {
            visit(said.what == lease_answer::kind::value ? row::leasing_value
                  : after == state::queued               ? row::leasing_useless
                                                         : row::leasing_refused);
        }
        break;
    }
    case sent::refresh:
        if (before != state::leasing) break;
        if (in.how == delivery::lost && after == state::leasing) {
            visit(row::asking_lost);
        } else if (!answered || in.answer.kind == reply_kind::error) {
            visit(row::asking_lost_for_good);
        } else {
            visit(after == state::offered ? row::asking_granted : row::asking_held);
        }
        break;
    case sent::extend:
    case sent::renew:
        if (in.id != renewal_id_ || (before != state::offered && before != state::loading)) break;
        renewal_due_ = forever_ms;
        if (!answered || in.answer.kind != reply_kind::integer) {
            visit(answered ? row::loading_extend_refused : row::loading_extend_silent);
        } else if (in.answer.integer == 1) {
            visit(row::loading_extended);
        } else if (asked == sent::renew) {
            visit(row::loading_renew_lost);
        } else {
            visit(before == state::offered ? row::offered_extend_lost : row::loading_extend_lost);
        }
        break;
    case sent::fill:
        if (before != state::settling) break;
        if (answered && in.answer.kind == reply_kind::integer) {
            visit(in.answer.integer == 1 ? row::settling_stored : row::settling_refused);
        } else {
            visit(after != state::settling ? row::settling_lost_for_good
                  : answered               ? row::settling_again
                                           : row::settling_lost);
        }
        break;
    case sent::put:
        if (before == state::settling) {
            visit(in.how == delivery::lost   ? row::settling_put_lost
                  : after == state::settling ? row::settling_put_again
                                             : row::settling_put);
        }
        break;
    case sent::other: break;
    }
}

void probe::classify_entry(const reply& r, const effects& e) {
    const state after = inner_.at();
    if (r.kind == reply_kind::nil) {
        visit(row::looking_nothing);
        return;
    }
    if (r.kind == reply_kind::error && after == state::queued && !r.text.starts_with("WRONGTYPE")) {
        visit(row::looking_refused);
        return;
    }
    envelope there;
    const reading read = r.kind == reply_kind::bulk ? decode(r.text, there) : reading::foreign;
    if (read != reading::ours) {
        visit(read == reading::newer ? row::looking_newer : row::looking_foreign);
        return;
    }
    switch (there.kind) {
    case entry_kind::placeholder:
        if (std::ranges::find(own_, there.generation) != own_.end()) {
            visit(row::looking_own);
        } else {
            visit(after == state::waiting ? row::looking_seen : row::looking_first);
        }
        break;
    case entry_kind::error: visit(row::looking_error); break;
    case entry_kind::pass: visit(row::looking_pass); break;
    case entry_kind::value:
    case entry_kind::absent:
        if (after == state::done) {
            visit(e.refresh_asked                    ? row::looking_stale
                  : there.kind == entry_kind::absent ? row::looking_absent
                                                     : row::looking_fresh);
        } else if (setup_.mode == fill_mode::force) {
            visit(row::looking_forced);
        } else {
            visit(there.codec != setup_.policy->codec ? row::looking_codec : row::looking_rejected);
        }
        break;
    }
}

} // namespace stn::sim
