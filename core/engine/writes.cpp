// SPDX-License-Identifier: MIT
#include "engine/writes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/client_core.hpp"
#include "protocol/commands.hpp"
#include "protocol/refusal.hpp"
#include "protocol/schedule.hpp"
#include "protocol/wake.hpp"

namespace stn {

class writes::run final : public reply_sink, public timer, public std::enable_shared_from_this<run> {
  public:
    run(client_core& core, request r, std::uint64_t no) : core_(core), what_(std::move(r)), no_(no) {}

    void begin(mono_ms now) {
        held_ = core_.commands.settling();
        if (held_ && !what_.own_deadline) what_.deadline = add_ms(what_.deadline, core_.settings.connect_timeout_ms);
        if (!held_) send(now);
        arm();
    }

    void settled(mono_ms now) {
        if (!std::exchange(held_, false) || done_) return;
        if (!what_.own_deadline) what_.deadline = add_ms(now, core_.settings.command_timeout_ms);
        send(now);
        arm();
    }

    void replied(std::uint32_t id, delivery how, reply r, mono_ms now) override {
        if (done_ || id != attempt_) return;
        reply_by_ = forever_ms;
        last_ = how;
        if (how == delivery::answered) answer_ = std::move(r);
        const refusal why = how == delivery::answered ? classify(answer_) : refusal::none;
        if (how == delivery::answered && why == refusal::none) {
            succeed(now);
        } else if (how == delivery::lost && what_.what == request::kind::put) {
            put_lost(now);
        } else if (now >= what_.deadline || !worth_another(why)) {
            give_up(now);
        } else {
            may_have_applied_ = may_have_applied_ || how == delivery::lost;
            retry_at_ = now + pause_after(why);
            if (what_.what == request::kind::put && retry_at_ >= what_.deadline) {
                give_up(now);
            } else {
                arm();
            }
        }
    }

    [[nodiscard]] bool awaits(std::uint32_t id) const override { return !done_ && id == attempt_; }

    void due(mono_ms now) override {
        if (done_) return;
        if (now >= reply_by_) {
            core_.commands.silent(now);
            replied(attempt_, delivery::lost, {}, now);
            return;
        }
        if (now >= what_.deadline) {
            give_up(now);
            return;
        }
        if (now >= retry_at_) {
            retry_at_ = forever_ms;
            send(now);
        }
        arm();
    }

    void close(mono_ms now) { end(outcome_error(fail(status::closed, "the client is closed")), now); }

  private:
    void send(mono_ms now) {
        ++attempt_;
        reply_by_ = now + core_.settings.command_timeout_ms;
        if (what_.what == request::kind::put && (attempt_ > 1 || what_.own_deadline)) {
            reply_by_ = std::min(reply_by_, what_.deadline);
        }
        core_.commands.send(make(now), shared_from_this(), attempt_, false, now);
        if (what_.what == request::kind::erase) {
            const wake_message news{wake_kind::invalidated, {}, what_.names->store_key, {}};
            core_.commands.send(publish_command(what_.names->wake().channel, encode_wake(news)), nullptr, 0, false,
                                now);
        }
    }

    command make(mono_ms now) {
        const std::string& key = what_.names->store_key;
        switch (what_.what) {
        case request::kind::erase: break;
        case request::kind::mark_stale: return mark_stale_command(key, core_.chance.make_token(), what_.names->wake());
        case request::kind::put: {
            const outcome& v = *what_.value;
            const auto life = schedule::jittered(v.ttl_ms, v.soft_ttl_ms, what_.policy->jitter, core_.chance);
            envelope e;
            e.codec = v.codec;
            e.generation = core_.chance.make_token();
            e.created = core_.commands.server_time(now);
            e.soft_at = life.soft_ms > 0 ? e.created + life.soft_ms : never_soft;
            e.payload = v.payload;
            return put_command(key, encode(e), life.hard_ms, what_.names->wake());
        }
        }
        return del_command(key);
    }

    void arm() {
        if (done_) return;
        mono_ms at = std::min(reply_by_, retry_at_);
        if (reply_by_ == forever_ms) at = std::min(at, what_.deadline);
        core_.turns.timers.set(*this, at);
    }

    void succeed(mono_ms now) {
        if (what_.what != request::kind::put) {
            what_.cache->stats.add(stat::invalidations);
            const auto n = core_.flights->detach(what_.cache->space, what_.names->key);
            what_.cache->stats.add(stat::detached, n);
            core_.fetches.detached(what_.cache->space, what_.names->store_key, now);
        } else {
            what_.cache->stats.add(stat::puts);
        }
        auto o = blocks::make_shared<outcome>();
        o->code = status::ok;
        end(std::move(o), now);
    }

    // An invalidation goes on whatever happened, unless only a person can help; a put, if it was refused
    // and surely not applied.
    bool worth_another(refusal why) {
        const refusal_traits& t = traits_of(why);
        if (t.fatal) return t.again != retry_pace::never && !std::exchange(once_more_, true);
        return what_.what != request::kind::put || t.again != retry_pace::never;
    }

    [[nodiscard]] std::int64_t pause_after(refusal why) const {
        const int attempt = static_cast<int>(attempt_);
        const retry_pace again = traits_of(why).again;
        if (again == retry_pace::never) return schedule::write_retry(attempt, core_.chance);
        return schedule::refused_pause(attempt, again == retry_pace::slowly, core_.chance);
    }

    void put_lost(mono_ms now) {
        // It may be applied later; a deletion behind it on the same connection makes an end of it.
        core_.commands.send(del_command(what_.names->store_key), nullptr, 0, false, now);
        error why = fail(status::uncertain, "the reply to the put was lost; a deletion of the key was queued",
                         what_.names->key);
        why.may_have_applied = true;
        end(outcome_error(std::move(why)), now);
    }

    void give_up(mono_ms now) {
        error why = fail(status::unavailable, "the store cannot be reached", what_.names->key);
        const bool refused = classify(answer_) != refusal::none;
        if (last_ == delivery::answered || (refused && last_ == delivery::not_sent && !may_have_applied_)) {
            why = refused_by_store(answer_, what_.names->key); // what it said last tells more than that it is away
        } else if (may_have_applied_ || last_ == delivery::lost) {
            why.code = status::uncertain;
            why.message = "the store did not answer: it may have been applied or not";
        }
        why.may_have_applied = may_have_applied_ || last_ == delivery::lost;
        end(outcome_error(std::move(why)), now);
    }

    void end(const outcome_ptr& how, mono_ms now) {
        if (std::exchange(done_, true)) return;
        core_.turns.timers.cancel(*this);
        auto who = core_.flights->take_all(what_.flight);
        for (caller& c : who) {
            event e;
            e.tag = c.tag;
            e.code = how->code;
            e.kind = how->code == status::ok ? event_kind::done : event_kind::error;
            if (how->code != status::ok) e.what = how;
            core_.turns.out.add(std::move(c.home), std::move(e));
        }
        core_.flights->drop(what_.flight);
        const auto self = shared_from_this();
        core_.changes.running_.erase(no_);
        core_.turns.out.bury(self);
        static_cast<void>(now);
    }

    client_core& core_;
    request what_;
    const std::uint64_t no_;
    std::uint32_t attempt_ = 0;
    mono_ms reply_by_ = forever_ms;
    mono_ms retry_at_ = forever_ms;
    delivery last_ = delivery::not_sent;
    reply answer_;
    bool may_have_applied_ = false;
    bool once_more_ = false; // after a fatal refusal, on a connection made anew
    bool held_ = false;      // nothing is sent yet
    bool done_ = false;
};

void writes::begin(request r, mono_ms now) {
    const std::uint64_t no = ++last_no_;
    auto one = blocks::make_shared<run>(core_, std::move(r), no);
    running_.emplace(no, one);
    one->begin(now);
}

void writes::settle(bool unsettled, mono_ms now) {
    if (unsettled) return;
    const auto all = running_;
    for (const auto& [no, one] : all) one->settled(now);
}

void writes::close(mono_ms now) {
    const auto all = running_;
    for (const auto& [no, one] : all) one->close(now);
}

} // namespace stn
