// SPDX-License-Identifier: MIT
#include "engine/chores.hpp"

#include <algorithm>
#include <utility>

#include "engine/client_core.hpp"
#include "protocol/lock_value.hpp"
#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"

namespace stn {

namespace {

chores::request end_of_tick(const std::string& key, const std::string& name, const token& mine, const tick_times& when,
                            bool done) {
    chores::request r;
    r.what = chores::request::kind::tick_end;
    r.key = key;
    r.name = name;
    r.mine = mine;
    r.when = when;
    r.done = done;
    return r;
}

} // namespace

held_tick::held_tick(std::shared_ptr<client_core> core, std::string key, std::string name, const token& mine,
                     const tick_times& when, server_ms slot, std::int64_t fence)
    : core_(std::move(core)),
      key_(std::move(key)),
      name_(std::move(name)),
      mine_(mine),
      when_(when),
      slot_(slot),
      fence_(fence) {
    chores::request r = end_of_tick(key_, name_, mine_, when_, false);
    const auto owner = core_.get();
    word_of_end_ = errand([owner, r = std::move(r)](mono_ms now) mutable {
        r.deadline = add_ms(now, r.when.memory_ms());
        owner->asks.begin(std::move(r), now);
    });
}

held_tick::~held_tick() {
    if (!ended_.exchange(true)) core_->turns.post(std::move(word_of_end_));
}

std::optional<error> held_tick::done(bool ok, std::int64_t deadline_ms, const std::shared_ptr<event_queue>& home,
                                     std::uint64_t tag) {
    chores::request r = end_of_tick(key_, name_, mine_, when_, ok);
    r.home = home;
    r.tag = tag;
    r.deadline = add_ms(core_->time.now_ms(), deadline_ms < 0 ? 4 * core_->settings.command_timeout_ms : deadline_ms);
    client_core& core = *core_;
    errand task([&core, r = std::move(r)](mono_ms now) mutable { core.asks.begin(std::move(r), now); });
    promised word(home.get());
    if (ended_.exchange(true)) return fail(status::lost, "the run was ended already", name_);
    if (!core_->post_for(home.get(), std::move(task))) return fail(status::closed, "the client is closed", name_);
    word.stands();
    return std::nullopt;
}

class chores::run final : public reply_sink, public timer, public std::enable_shared_from_this<run> {
  public:
    run(client_core& core, request r, std::uint64_t no) : core_(core), what_(std::move(r)), no_(no) {
        if (what_.what != request::kind::tick_end && what_.what != request::kind::take_back) {
            what_.mine = core_.chance.make_token();
        }
        last_why_.code = status::ok;
    }

    void send(mono_ms now) {
        again_at_ = forever_ms;
        reply_by_ = std::min(now + core_.settings.command_timeout_ms, what_.deadline);
        core_.commands.send(make(), shared_from_this(), ++attempt_, false, now);
        arm();
    }

    void replied(std::uint32_t id, delivery how, reply r, mono_ms now) override {
        if (done_ || id > attempt_) return;
        if (how == delivery::lost) unanswered_ = true;
        // An earlier copy's answer is as good as the last one's, but tells nothing if it is none.
        const bool latest = id == attempt_;
        if (how == delivery::answered && read(r, now)) return;
        if (!latest) return;
        reply_by_ = forever_ms;
        if (how == delivery::lost) {
            again_at_ = now;
        } else if (how == delivery::not_sent) {
            last_why_ = fail(status::unavailable, "the store cannot be reached", what_.name);
            again_at_ = now + schedule::write_retry(static_cast<int>(attempt_), core_.chance);
        } else {
            refused(r, now);
        }
        if (!done_) arm();
    }

    [[nodiscard]] bool awaits(std::uint32_t id) const override { return !done_ && id == attempt_; }

    void due(mono_ms now) override {
        if (done_) return;
        if (now >= what_.deadline) {
            out_of_time(now);
        } else if (now >= reply_by_) {
            core_.commands.silent(now);
            unanswered_ = true;
            send(now);
        } else if (now >= again_at_) {
            send(now);
        } else {
            arm();
        }
    }

    void connected(mono_ms now) {
        if (!done_ && again_at_ != forever_ms) send(now);
    }

    // Its caller may have gone.
    void check_caller(mono_ms now) {
        if (done_ || !what_.flight || core_.flights->waiting(what_.flight) != 0) return;
        give_up(fail(status::cancelled, {}), now);
    }

    void close(mono_ms now) {
        if (done_ || what_.what == request::kind::tick_end || what_.what == request::kind::take_back) return;
        give_up(fail(status::closed, "the client is closed", what_.name), now);
    }

    void end(error why) {
        event e;
        e.kind = event_kind::error;
        e.code = why.code;
        e.what = outcome_error(std::move(why));
        answer(std::move(e));
    }

    [[nodiscard]] std::uint64_t flight() const noexcept { return what_.flight ? what_.flight.id : 0; }

  private:
    using kind = request::kind;

    [[nodiscard]] command make() const {
        switch (what_.what) {
        case kind::tick: return tick_command(what_.key, what_.mine, what_.when);
        case kind::tick_end: return tick_end_command(what_.key, what_.mine, what_.done, what_.when.memory_ms());
        case kind::once: return once_command(what_.key, what_.mine, what_.ttl_ms);
        case kind::take_back: return release_command(what_.key, what_.mine, {});
        case kind::inspect: break;
        }
        return inspect_command(what_.key);
    }

    // True: that was the answer.
    bool read(const reply& r, mono_ms now) {
        switch (what_.what) {
        case kind::tick: return read_as_tick(r, now);
        case kind::tick_end: return read_as_end(r);
        case kind::once: return read_as_once(r, now);
        case kind::inspect: return read_as_inspect(r);
        case kind::take_back: break;
        }
        if (!read_integer(r)) return false;
        answer({});
        return true;
    }

    bool read_as_tick(const reply& r, mono_ms now) {
        const auto said = read_tick(r);
        if (!said) return false;
        event e;
        switch (said->what) {
        case tick_answer::kind::granted: return granted(*said, now);
        case tick_answer::kind::foreign:
            end(fail(status::collision, "the key holds something that is no tick: choose another prefix, or delete it",
                     what_.name));
            return true;
        case tick_answer::kind::taken: e.why = reason::taken; break;
        case tick_answer::kind::still_running: e.why = reason::still_running; break;
        }
        e.kind = event_kind::done;
        e.code = status::busy;
        e.ttl_left_ms = said->in_ms;
        answer(std::move(e));
        return true;
    }

    bool granted(const tick_answer& said, mono_ms now) {
        event e;
        e.kind = event_kind::tick;
        e.tick = std::make_shared<held_tick>(core_.shared_from_this(), what_.key, what_.name, what_.mine, what_.when,
                                             said.slot, said.fence);
        core_.totals.add(stat::ticks);
        auto& out = core_.asks.out_;
        std::erase_if(out, [](const auto& one) { return one.expired(); });
        out.push_back(e.tick);
        answer(std::move(e)); // nobody there: destroyed, and thereby undone
        static_cast<void>(now);
        return true;
    }

    bool read_as_end(const reply& r) {
        const auto said = read_integer(r);
        if (!said) return false;
        if (*said == 1) {
            event e;
            e.kind = event_kind::done;
            answer(std::move(e));
        } else if (unanswered_) {
            error why = fail(status::uncertain, "an earlier copy of the end may have been applied or not", what_.name);
            why.may_have_applied = true;
            end(std::move(why));
        } else {
            end(fail(status::lost, "the run was forgotten, or another has the tick by now: it took longer than at_most",
                     what_.name));
        }
        return true;
    }

    bool read_as_once(const reply& r, mono_ms) {
        const auto said = read_integer(r);
        if (!said) return false;
        event e;
        e.kind = event_kind::done;
        e.code = *said == 1 ? status::ok : status::busy;
        if (*said != 1) e.why = reason::taken;
        if (*said == 1 && what_.flight && core_.flights->waiting(what_.flight) == 0) {
            take_back(0);
        }
        answer(std::move(e));
        return true;
    }

    bool read_as_inspect(const reply& r) {
        const auto said = read_inspect(r);
        if (!said) return false;
        event e;
        if (said->pttl_ms == -2) {
            e.kind = event_kind::absent;
            e.code = status::absent;
            auto o = blocks::make_shared<outcome>();
            o->code = status::absent;
            e.what = std::move(o);
            answer(std::move(e));
            return true;
        }
        auto o = blocks::make_shared<outcome>();
        o->storage = show_lock(said->bytes, said->pttl_ms);
        o->payload = o->storage;
        o->codec = 1;
        o->from = source::store;
        e.kind = event_kind::value;
        e.ttl_left_ms = said->pttl_ms;
        e.what = std::move(o);
        answer(std::move(e));
        return true;
    }

    void refused(const reply& r, mono_ms now) {
        const refusal why = classify(r);
        const refusal_traits& traits = traits_of(why);
        last_why_ = why == refusal::none
                        ? fail(status::internal, "the store gave an answer of no known form", what_.name)
                        : refused_by_store(r, what_.name);
        if (last_why_.code == status::refused) last_why_.code = status::unavailable;
        const bool hopeless = traits.again == retry_pace::never || (traits.fatal && std::exchange(fatal_seen_, true));
        if (why == refusal::none || hopeless) {
            give_up(last_why_, now);
        } else {
            again_at_ = now + schedule::refused_pause(static_cast<int>(attempt_), traits.again == retry_pace::slowly,
                                                      core_.chance);
        }
    }

    void out_of_time(mono_ms now) {
        error why = last_why_;
        if (reply_by_ != forever_ms || unanswered_) {
            why = fail(status::uncertain, "the store did not answer: it may have been applied or not", what_.name);
            why.may_have_applied = what_.what != kind::inspect;
            if (what_.what == kind::inspect)
                why = fail(status::timeout, "the store did not answer in time", what_.name);
        } else if (why.code == status::ok) {
            why = fail(status::timeout, "there was no time to ask", what_.name);
        }
        give_up(std::move(why), now);
    }

    void give_up(error why, mono_ms now) {
        const bool may_stand = reply_by_ != forever_ms || unanswered_;
        if (may_stand) take_back(now);
        end(std::move(why));
    }

    // Behind whatever copy may still run, on the same connection.
    void take_back(mono_ms now) {
        if (what_.what != kind::tick && what_.what != kind::once) return;
        request r;
        r.what = what_.what == kind::tick ? kind::tick_end : kind::take_back;
        r.key = what_.key;
        r.name = what_.name;
        r.mine = what_.mine;
        r.when = what_.when;
        if (now == 0) now = core_.time.now_ms();
        r.deadline = add_ms(now, what_.what == kind::tick ? what_.when.memory_ms() : what_.ttl_ms);
        core_.asks.begin(std::move(r), now);
    }

    void answer(event e) {
        if (std::exchange(done_, true)) return;
        core_.turns.timers.cancel(*this);
        if (what_.flight) {
            auto who = core_.flights->take_all(what_.flight);
            if (!who.empty()) {
                e.tag = who.front().tag;
                core_.turns.out.add(std::move(who.front().home), std::move(e));
            } else if (e.tick) {
                core_.turns.out.bury(std::move(e.tick)); // undone there
            }
            core_.flights->drop(what_.flight);
        } else if (what_.home) {
            e.tag = what_.tag;
            core_.turns.out.add(std::move(what_.home), std::move(e));
        }
        const auto self = shared_from_this();
        core_.asks.running_.erase(no_);
        core_.turns.out.bury(self);
    }

    void arm() {
        if (!done_) core_.turns.timers.set(*this, std::min({reply_by_, again_at_, what_.deadline}));
    }

    client_core& core_;
    request what_;
    const std::uint64_t no_;
    std::uint32_t attempt_ = 0;
    mono_ms reply_by_ = forever_ms;
    mono_ms again_at_ = forever_ms;
    error last_why_;
    bool unanswered_ = false; // of a copy no answer has come
    bool fatal_seen_ = false;
    bool done_ = false;
};

void chores::begin(request r, mono_ms now) {
    const std::uint64_t no = ++last_no_;
    auto one = std::make_shared<run>(core_, std::move(r), no);
    running_.emplace(no, one);
    if (one->flight() != 0) {
        one->check_caller(now); // cancelled meanwhile
        if (!running_.contains(no)) return;
    }
    one->send(now);
}

void chores::check_caller(std::uint64_t flight, mono_ms now) {
    for (const auto& one : all()) {
        if (one->flight() == flight) one->check_caller(now);
    }
}

void chores::look_round(mono_ms now) {
    for (const auto& one : all()) one->check_caller(now);
}

void chores::on_connection(mono_ms now) {
    for (const auto& one : all()) one->connected(now);
}

// Runs in the hands of the host are undone, so that another host may take their slots.
void chores::close(mono_ms now) {
    for (const auto& one : all()) one->close(now);
    for (const auto& weak : std::exchange(out_, {})) {
        const auto tick = weak.lock();
        if (!tick || !tick->disarm()) continue;
        request r;
        r.what = request::kind::tick_end;
        r.key = tick->key_;
        r.name = tick->name_;
        r.mine = tick->mine_;
        r.when = tick->when_;
        r.deadline = add_ms(now, r.when.memory_ms());
        begin(std::move(r), now);
    }
}

void chores::end() {
    for (const auto& one : all()) {
        error why = fail(status::uncertain, "the client was closed before the store answered");
        why.may_have_applied = true;
        one->end(std::move(why));
    }
}

std::vector<std::shared_ptr<chores::run>> chores::all() const {
    std::vector<std::shared_ptr<run>> out;
    out.reserve(running_.size());
    for (const auto& [no, one] : running_) out.push_back(one);
    return out;
}

} // namespace stn
