// SPDX-License-Identifier: MIT
#include "engine/locker.hpp"

#include <algorithm>
#include <utility>

#include "engine/client_core.hpp"
#include "engine/held_lock.hpp"
#include "engine/wait_graph.hpp"
#include "protocol/schedule.hpp"
#include "protocol/wake.hpp"

namespace stn {

namespace {

constexpr std::size_t most_rivals = 1'024;  // keys
constexpr std::size_t most_endless = 1'024; // keys
constexpr mono_ms rivals_for_ms = 1'000;    // since the key was last wanted here

} // namespace

lock_run::lock_run(client_core& core, request r, std::uint64_t no)
    : core_(core),
      what_(std::move(r)),
      no_(no),
      machine_(core.make_lock(what_.setup)) {}

void lock_run::ask(mono_ms not_before, double turn, int seen, mono_ms now) {
    asked_ = true;
    forget_edge();
    what_.setup.turn = turn;
    what_.setup.seen = seen;
    machine_ = core_.make_lock(what_.setup); // it knows now what it is up against
    lock_input in;
    in.what = lock_input::kind::start;
    in.until = what_.deadline;
    // Neither a try nor a short wait is spent on letting others go first.
    if (!what_.once) in.at = std::min(not_before, now + (std::max(now, what_.deadline) - now) / 2);
    in.once = what_.once;
    feed(std::move(in), now);
}

void lock_run::feed(lock_input::kind what, mono_ms now) {
    lock_input in;
    in.what = what;
    feed(std::move(in), now);
}

void lock_run::feed(lock_input in, mono_ms now) {
    if (done_) return;
    const auto self = shared_from_this();
    machine_->handle(std::move(in), now, core_.chance);
    pump(now);
    core_.locks.settle(self, now);
}

void lock_run::replied(std::uint32_t id, delivery how, reply r, mono_ms now) {
    lock_input in;
    in.what = lock_input::kind::reply;
    in.id = id;
    in.how = how;
    in.answer = std::move(r);
    feed(std::move(in), now);
}

void lock_run::due(mono_ms now) {
    if (asked_) {
        feed(lock_input::kind::timer, now);
    } else if (now >= what_.deadline) {
        give_up(fail(status::busy, "the lock is held, and others of this process have waited longer", name()), now);
    } else {
        arm(now);
    }
}

// One pump at a time: what an output leads to comes after it, not inside it.
void lock_run::pump(mono_ms now) {
    if (pumping_) return;
    pumping_ = true;
    lock_output out;
    while (machine_->poll(out)) perform(out, now);
    pumping_ = false;
    // A waiter subscribes, and then looks once more: `subscribed` is told as a new connection.
    if (machine_->waits() && machine_->contended()) core_.commands.listen(core_.settings.prefix, now);
    const bool rests = !done_ && machine_->safe_until() != 0 && renewers_.empty();
    if (rests != std::exchange(resting_, rests)) core_.locks.note_rest(rests);
    arm(now);
}

void lock_run::arm(mono_ms) {
    mono_ms at = forever_ms;
    if (!done_) at = asked_ ? machine_->wake_at() : what_.deadline;
    core_.turns.timers.set(*this, at);
}

void lock_run::perform(lock_output& out, mono_ms now) {
    using k = lock_output::kind;
    switch (out.what) {
    case k::send: core_.commands.send(std::move(out.cmd), shared_from_this(), out.id, false, now); break;
    case k::granted: grant(out.fence, now); break;
    case k::kept:
        if (const auto handle = handle_.lock()) handle->kept(machine_->safe_until());
        break;
    case k::failed: answer_error(std::move(out.why), out.no_ttl); break;
    case k::lost: lose(out.loss); break;
    case k::renewed:
        for (const reply_to& whom : std::exchange(renewers_, {})) tell(whom, out.why);
        break;
    case k::released: tell_releaser(std::move(out.why)); break;
    case k::no_ttl:
        if (!core_.locks.note_endless(what_.setup.key)) break;
        core_.tell(notice::log, status::busy,
                   "what stands in \"" + what_.setup.key +
                       "\" has no TTL: whoever waits for that lock waits until somebody deletes it");
        break;
    case k::note: core_.totals.add(out.counter); break;
    case k::done: done_ = true; break;
    }
}

void lock_run::grant(std::int64_t fence, mono_ms now) {
    granted_ = true;
    mine_ = machine_->mine();
    core_.locks.endless_.erase(what_.setup.key);
    auto who = core_.flights->take_all(what_.flight);
    if (who.empty()) { // its caller has just gone
        lock_input in;
        in.what = lock_input::kind::release;
        machine_->handle(std::move(in), now, core_.chance);
        return;
    }
    const auto handle =
        blocks::make_shared<held_lock>(core_.shared_from_this(), shared_from_this(), fence, machine_->safe_until());
    handle_ = handle;
    event e;
    e.kind = event_kind::lock;
    e.tag = who.front().tag;
    e.lock = handle;
    core_.turns.out.add(std::move(who.front().home), std::move(e));
}

void lock_run::answer_error(error why, bool no_ttl) {
    auto who = core_.flights->take_all(what_.flight);
    if (who.empty()) return;
    event e;
    e.kind = event_kind::error;
    e.code = why.code;
    e.tag = who.front().tag;
    if (no_ttl) e.why = reason::no_ttl;
    e.what = outcome_error(std::move(why));
    core_.turns.out.add(std::move(who.front().home), std::move(e));
}

void lock_run::tell_releaser(error how) {
    if (!releaser_) return;
    const reply_to whom = std::move(*releaser_);
    releaser_.reset();
    tell(whom, std::move(how));
}

void lock_run::lose(lock_loss why) {
    const auto handle = handle_.lock();
    // The clock may have been faster than a release: then that is how the loss is told.
    if (releaser_) tell_releaser(fail(status::lost, "the lock was lost before it could be released", name()));
    if (!handle || !handle->lose(why) || !what_.loss.home) return;
    event e;
    e.kind = event_kind::lock_lost;
    e.code = status::lost;
    e.tag = what_.loss.tag;
    switch (why) {
    case lock_loss::expired: e.why = reason::expired; break;
    case lock_loss::deleted: e.why = reason::deleted; break;
    case lock_loss::stolen: e.why = reason::stolen; break;
    case lock_loss::max_hold: e.why = reason::max_hold; break;
    case lock_loss::closed: e.why = reason::closed; break;
    case lock_loss::none: break;
    }
    core_.turns.out.add(what_.loss.home, std::move(e));
}

void lock_run::tell(const reply_to& whom, error how) {
    if (!whom.home) return;
    event e;
    e.tag = whom.tag;
    e.code = how.code;
    e.kind = how.code == status::ok ? event_kind::done : event_kind::error;
    if (how.code != status::ok) e.what = outcome_error(std::move(how));
    core_.turns.out.add(whom.home, std::move(e));
}

// ---- what the handle says

void lock_run::renew(reply_to whom, mono_ms until, mono_ms now) {
    if (machine_->safe_until() == 0) {
        tell(whom, fail(status::lost, "the lock is held no longer", name()));
        return;
    }
    renewers_.push_back(std::move(whom));
    lock_input in;
    in.what = lock_input::kind::renew;
    in.until = until;
    feed(std::move(in), now);
}

void lock_run::let_go(reply_to whom, mono_ms until, mono_ms now) {
    if (machine_->safe_until() == 0) {
        tell(whom, fail(status::lost, "the lock was lost before it could be released", name()));
        return;
    }
    releaser_ = std::move(whom);
    lock_input in;
    in.what = lock_input::kind::release;
    in.until = until == forever_ms ? add_ms(now, 4 * core_.settings.command_timeout_ms) : until;
    feed(std::move(in), now);
}

void lock_run::leave(mono_ms now) {
    feed(lock_input::kind::leave, now);
}

// ---- waiting in line

void lock_run::give_up(error why, mono_ms now) {
    const auto self = shared_from_this();
    if (why.code == status::busy) core_.totals.add(stat::locks_busy);
    answer_error(std::move(why), false);
    done_ = true;
    arm(now);
    core_.locks.leave_line(self);
    core_.locks.forget(self);
}

// False: it would wait for the very load that asks.
bool lock_run::wait_for(std::uint64_t holder) {
    forget_edge();
    if (holder == 0 || what_.within == 0) return true;
    if (!wait_graph::of_process().add(what_.flight.id, holder)) return false;
    edge_ = holder;
    return true;
}

void lock_run::forget_edge() {
    if (edge_ != 0) wait_graph::of_process().drop(what_.flight.id, edge_);
    edge_ = 0;
}

// ---- all of them

locker::~locker() = default;

void locker::begin(lock_run::request r, mono_ms now) {
    const auto run = blocks::make_shared<lock_run>(core_, std::move(r), ++last_no_);
    runs_.emplace(run->no_, run);
    by_flight_.emplace(run->what_.flight.id, run->no_);
    const std::string& key = run->what_.setup.key;
    line& l = lines_[key];
    if (core_.flights->waiting(run->what_.flight) == 0) { // cancelled meanwhile
        run->give_up(fail(status::cancelled, {}), now);
    } else if (!l.front) {
        l.behind.push_back(run);
        ++waiting_;
        advance(key, l, now);
    } else if (run->what_.once) {
        run->give_up(fail(status::busy, "the lock is held, or waited for, in this process", run->name()), now);
    } else if (waiting_ >= core_.settings.max_waiters) {
        core_.totals.add(stat::overloaded);
        run->give_up(fail(status::overloaded,
                          std::to_string(waiting_) + " callers wait for locks already (max_waiters)", run->name()),
                     now);
    } else if (!run->wait_for(l.front->what_.within)) {
        core_.totals.add(stat::deadlocks);
        run->give_up(fail(status::would_deadlock, "this call would wait for the load that makes it", run->name()), now);
    } else {
        l.behind.push_back(run);
        ++waiting_;
        run->arm(now);
    }
}

void locker::check_caller(std::uint64_t flight, mono_ms now) {
    const auto it = by_flight_.find(flight);
    if (it == by_flight_.end()) return;
    const auto run = runs_.at(it->second);
    if (core_.flights->waiting(run->what_.flight) != 0) return;
    if (run->asked_) {
        if (!run->granted_) run->feed(lock_input::kind::give_up, now);
    } else {
        run->give_up(fail(status::cancelled, {}), now);
    }
}

void locker::look_round(mono_ms now) {
    for (const auto& run : all()) check_caller(run->what_.flight.id, now);
}

void locker::on_message(std::string_view payload, mono_ms now) {
    const auto news = decode_wake(payload);
    if (!news || news->kind != wake_kind::released) return;
    const std::string key(news->key);
    const auto it = lines_.find(key);
    const auto front = it == lines_.end() ? nullptr : it->second.front;
    const bool waits = front && front->machine_->waits();
    const auto known = rivals_.find(key);
    rivals* const r = known != rivals_.end() ? &known->second : waits ? meet_rivals(key, now) : nullptr;
    if (r != nullptr) {
        if (r->mine == news->replaced) return;
        if (const auto seen = waited_through(*news)) r->turn = schedule::lock_turn(r->turn, *seen);
    }
    if (!waits) return;
    lock_input in;
    in.what = lock_input::kind::message;
    if (r != nullptr) in.turn = r->believed();
    front->feed(std::move(in), now);
}

void locker::on_connection(mono_ms now) {
    for (const auto& run : all()) {
        if (run->asked_) run->feed(lock_input::kind::connected, now);
    }
}

void locker::close(mono_ms now) {
    for (const auto& run : all()) {
        if (run->done_) continue;
        if (run->asked_) {
            run->feed(lock_input::kind::closing, now);
        } else {
            run->give_up(fail(status::closed, "the client is closed", run->name()), now);
        }
    }
}

void locker::end() {
    for (const auto& run : all()) {
        run->done_ = true;
        run->arm(0);
        if (run->releaser_) {
            error why = fail(status::uncertain, "the client was closed before the store answered", run->name());
            why.may_have_applied = true;
            run->tell_releaser(std::move(why));
        }
        forget(run);
    }
    lines_.clear();
}

void locker::settle(const std::shared_ptr<lock_run>& run, mono_ms now) {
    const std::string& key = run->what_.setup.key;
    const auto it = lines_.find(key);
    if (it != lines_.end() && it->second.front == run && (run->machine_->gone() || run->done_)) {
        line& l = it->second;
        l.front.reset();
        if (run->granted_) ++l.turns;
        note_end(*run, now);
        advance(key, l, now);
    }
    if (run->done_) forget(run);
}

// True: that is news. It is told again when the lock could be had meanwhile.
bool locker::note_endless(const std::string& key) {
    if (endless_.size() >= most_endless) endless_.clear();
    return endless_.insert(key).second;
}

double locker::rivals::believed() const noexcept {
    return vain < schedule::lock_vain_turns ? std::max(turn, schedule::lock_turn_least) : turn;
}

// Null: there is no room.
locker::rivals* locker::meet_rivals(const std::string& key, mono_ms now) {
    const auto it = rivals_.find(key);
    if (it != rivals_.end()) return &it->second;
    if (rivals_.size() >= most_rivals) {
        std::erase_if(rivals_, [&](const auto& r) { return r.second.at + rivals_for_ms <= now; });
    }
    if (rivals_.size() >= most_rivals) return nullptr;
    rivals& met = rivals_[key];
    met.at = now;
    return &met;
}

// A front has given the lock back, or has given up.
void locker::note_end(const lock_run& run, mono_ms now) {
    const std::string& key = run.what_.setup.key;
    const bool contended = run.machine_->contended();
    const auto it = rivals_.find(key);
    rivals* const r = it != rivals_.end() ? &it->second : contended ? meet_rivals(key, now) : nullptr;
    if (r == nullptr) return;
    r->at = now;
    if (contended) r->vain = 0;
    if (!run.granted_) {
        r->seen = run.machine_->releases_seen();
        return;
    }
    r->turn = schedule::lock_turn(r->turn, run.machine_->releases_seen());
    r->seen = 0;
    r->given = now;
    r->mine = run.mine_;
    if (!contended && ++r->vain >= schedule::lock_vain_turns && schedule::lock_try_after(0, r->turn) == 0) {
        rivals_.erase(key);
    }
}

const locker::rivals* locker::rivals_of(const std::string& key, mono_ms now) {
    const auto it = rivals_.find(key);
    if (it == rivals_.end()) return nullptr;
    if (it->second.at + rivals_for_ms > now) return &it->second;
    rivals_.erase(it);
    return nullptr;
}

// The next of the line becomes its front.
void locker::advance(const std::string& key, line& l, mono_ms now) {
    if (l.behind.empty()) {
        if (!l.front) lines_.erase(std::string(key));
        return;
    }
    const auto next = l.behind.front();
    l.behind.pop_front();
    --waiting_;
    l.front = next;
    // Who waits behind it waits for the load that it was asked from.
    const auto others = l.behind;
    for (const auto& other : others) {
        if (other->wait_for(next->what_.within)) continue;
        core_.totals.add(stat::deadlocks);
        other->give_up(fail(status::would_deadlock, "this call would wait for the load that makes it", other->name()),
                       now);
    }
    if (const rivals* const r = rivals_of(key, now)) {
        const double turn = r->believed();
        next->ask(r->given + schedule::lock_try_after(r->seen, turn), turn, r->seen, now);
    } else {
        const bool too_often = l.turns > 0 && l.turns % schedule::lock_turns == 0;
        next->ask(too_often ? now + schedule::lock_step_ms : now, 0, 0, now);
    }
}

void locker::leave_line(const std::shared_ptr<lock_run>& run) {
    const auto it = lines_.find(run->what_.setup.key);
    if (it == lines_.end()) return;
    line& l = it->second;
    waiting_ -= std::erase(l.behind, run);
    if (!l.front && l.behind.empty()) lines_.erase(it);
}

void locker::forget(const std::shared_ptr<lock_run>& run) {
    if (runs_.erase(run->no_) == 0) return;
    if (std::exchange(run->resting_, false)) note_rest(false);
    run->forget_edge();
    by_flight_.erase(run->what_.flight.id);
    core_.flights->drop(run->what_.flight);
    core_.turns.out.bury(run);
}

std::vector<std::shared_ptr<lock_run>> locker::all() const {
    std::vector<std::shared_ptr<lock_run>> out;
    out.reserve(runs_.size());
    for (const auto& [no, run] : runs_) out.push_back(run);
    return out;
}

} // namespace stn
