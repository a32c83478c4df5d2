// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/blocks.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "protocol/command.hpp"
#include "protocol/reply.hpp"
#include "protocol/stat.hpp"

// One lock handle's talk with the store: take the lock, keep it, give it back.
//
//   state      input                    next        what it does
//   ---------  -----------------------  ----------  ---------------------------------------------------
//   idle       start                    acquiring   acquire (a start with a pause: waiting)
//              give_up                  released    failed; nothing was sent
//   acquiring  granted in time          held        granted; renewal and max_hold are armed
//              granted, but too late    acquiring   acquire again, the same token
//              another's                waiting     timer: a step, capped by the PTTL told; a try: failed busy;
//                                                   a message came meanwhile: as if it came now
//              lost                     acquiring   acquire again, the same token
//              refused for now, unsent  waiting     timer: a pause
//              refused for good         released    failed
//              deadline, give_up        uncertain   failed; release on the same connection
//   waiting    timer                    acquiring   acquire, the same token
//              message                  acquiring   the same, or timer: others go first
//              deadline, give_up        released    failed; release if any acquire was never answered
//   held       timer                    renewing    renew
//              release                  releasing   release: the watchdog has stopped
//              safe_until is over       lost        lost: expired
//              max_hold is over         lost        lost: max_hold
//              leave                    released    nothing: the key lives out its TTL
//              another acquire of ours  held        its answer: the same fence
//              another fence, another's lost        lost: deleted, stolen
//   renewing   mine                     held        safe_until counts from when this renew was sent
//              nobody's, another's      lost        lost: deleted, stolen
//              anything else            held        again after ttl/12: unknown is not lost
//   releasing  mine                     released    released
//              nobody's, another's      released    released: lost, not mine; of a resent one: uncertain
//              lost, refused for now    releasing   release again
//              deadline                 uncertain   released: uncertain; and goes on cleaning
//   any        closing                  lost        (held) lost: closed, release; (before) failed closed
//   lost       -                        -           compare-release unless stolen, again until it is answered
//   uncertain, released after a give-up             the same, for at most one ttl
//
// One token from the first attempt to the final outcome: whatever copy of `acquire` runs, and when, it
// takes the same lock, and one release, behind it on the same connection, undoes it. A lock counts only
// until safe_until, a moment on the local clock that is reckoned from before the send; the store's own
// answers never make it longer than that. `lost` is final: no answer brings a handle back.
//
// What an answer means does not depend on which copy it belongs to: `renew` never creates, so "nobody's" is
// final whenever it was said. Only whether "nobody's" is an answer to *release* depends on it: a copy
// before it may have been what deleted the key.
namespace stn {

enum class lock_loss : std::uint8_t { none, expired, deleted, stolen, max_hold, closed };

struct lock_setup {
    std::string key;     // the store's
    std::string channel; // where a release is told
    std::string name;    // the user's, for errors
    std::string label;
    std::int64_t ttl_ms = 0;
    std::int64_t max_hold_ms = 0; // 0: no bound
    bool renew = true;
    std::int64_t command_timeout_ms = 250;
    double turn = 0; // see schedule::lock_try_after
    int seen = 0;    // releases that this process has waited through already
};

struct lock_input {
    enum class kind : std::uint8_t {
        start,     // `until`; `at`: not before; `once`: a try
        reply,     // `id`, `how`, `answer`
        message,   // the key was released; `turn`
        connected, // the connection stands anew, or messages may have been missed
        timer,     // wake_at() has come
        give_up,   // `why`: nobody wants it any more
        release,   // `until`
        renew,     // now; `until`
        leave,     // forget it
        closing,   // the client ends
    };
    kind what = kind::start;
    std::uint32_t id = 0;
    delivery how = delivery::answered;
    reply answer;
    mono_ms until = forever_ms;
    mono_ms at = 0;
    bool once = false;
    status why = status::cancelled;
    double turn = 0; // see schedule::lock_try_after
};

struct lock_output {
    enum class kind : std::uint8_t {
        send,     // `cmd`; its reply comes back under `id`
        granted,  // `fence`
        kept,     // safe_until() is another
        failed,   // `why`; `no_ttl`: busy, and what stands there does not end by itself
        lost,     // `loss`
        renewed,  // answer to `renew`: `why` is ok, lost, not_mine or uncertain
        released, // answer to `release`: `why` is ok, lost, not_mine, uncertain, or what the store said
        no_ttl,   // somebody holds it for ever; told once
        note,     // count `counter`
        done,     // nothing more is to be done
    };
    kind what = kind::done;
    std::uint32_t id = 0;
    command cmd;
    std::int64_t fence = 0;
    error why;
    bool no_ttl = false;
    lock_loss loss = lock_loss::none;
    stat counter = stat::count_;
};

class lock_port : public blocks::made {
  public:
    lock_port() = default;
    lock_port(const lock_port&) = delete;
    lock_port& operator=(const lock_port&) = delete;
    virtual ~lock_port() = default;

    virtual void handle(lock_input in, mono_ms now, draws& draw) = 0;
    [[nodiscard]] virtual bool poll(lock_output& out) = 0;
    [[nodiscard]] virtual mono_ms wake_at() const = 0;
    // Whether the reply to `id` is still worth that its command is sent again.
    [[nodiscard]] virtual bool awaits(std::uint32_t id) const = 0;
    // Until when it is surely ours; 0: it is not.
    [[nodiscard]] virtual mono_ms safe_until() const = 0;
    // It waits for somebody else, or for the store.
    [[nodiscard]] virtual bool waits() const = 0;
    // Whoever is next may ask the store: what is still to be sent here comes first.
    [[nodiscard]] virtual bool gone() const = 0;
    [[nodiscard]] virtual const token& mine() const = 0;
    // How often the lock was seen to be released, and what the setup says of before.
    [[nodiscard]] virtual int releases_seen() const = 0;
    // Others want it too: it was seen to be held, or released.
    [[nodiscard]] virtual bool contended() const = 0;
};

class lock_machine final : public lock_port {
  public:
    explicit lock_machine(lock_setup setup);

    void handle(lock_input in, mono_ms now, draws& draw) override;
    [[nodiscard]] bool poll(lock_output& out) override;
    [[nodiscard]] mono_ms wake_at() const override;
    [[nodiscard]] bool awaits(std::uint32_t id) const override;
    [[nodiscard]] mono_ms safe_until() const override { return holds() ? safe_until_ : 0; }
    [[nodiscard]] bool waits() const override { return state_ == state::waiting || state_ == state::acquiring; }
    [[nodiscard]] bool gone() const override;
    [[nodiscard]] const token& mine() const override { return token_; }
    [[nodiscard]] int releases_seen() const override { return releases_seen_; }
    [[nodiscard]] bool contended() const override { return contended_; }

    enum class state : std::uint8_t {
        idle,
        waiting,
        acquiring,
        held,
        renewing,
        releasing,
        released,
        lost,
        uncertain,
    };
    [[nodiscard]] state at() const noexcept { return state_; }

  private:
    struct turn {
        mono_ms now;
        draws& draw;
    };
    struct asked {
        std::uint32_t id;
        mono_ms sent;
    };

    void start(const lock_input& in, turn& t);
    void on_reply(lock_input& in, turn& t);
    void on_acquire(const asked& which, delivery how, const reply& r, turn& t);
    void on_renew(const asked& which, delivery how, const reply& r, turn& t);
    void on_release(std::uint32_t id, delivery how, const reply& r, turn& t);
    void on_timer(turn& t);
    void on_message(double believed, turn& t);
    void over_already(turn& t);
    void try_in_turn(turn& t);

    void acquire(turn& t);
    void answered_again(delivery how, const reply& r, turn& t);
    void granted(const asked& which, std::int64_t fence, turn& t);
    void busy(std::int64_t pttl_ms, turn& t);
    void refused(const reply& r, turn& t);
    void pause(std::int64_t ms, turn& t);
    void out_of_time(turn& t);
    void give_up(error why, turn& t);
    void renew(turn& t);
    void answer_renew(status how);
    void lose(lock_loss why, turn& t);
    void release(mono_ms until, turn& t);
    void send_release(turn& t);
    void tell_released(error how);
    void clean(turn& t);
    void finish();

    [[nodiscard]] bool holds() const noexcept { return state_ == state::held || state_ == state::renewing; }
    std::uint32_t emit_send(command cmd);
    lock_output& emit(lock_output::kind what);
    void count(stat s) { emit(lock_output::kind::note).counter = s; }
    [[nodiscard]] error error_of(status code, std::string text) const;

    lock_setup setup_;
    state state_ = state::idle;
    std::vector<lock_output, blocks::allocator<lock_output>> out_;
    std::size_t told_ = 0; // of them, by `poll`
    std::uint32_t next_id_ = 0;

    token token_{};
    bool once_ = false;
    mono_ms until_ = forever_ms;          // of the wait, or of the release
    mono_ms reply_by_ = forever_ms;       // of the acquire or release sent last
    mono_ms look_at_ = forever_ms;        // waiting: the next attempt; releasing or cleaning: the next release
    std::vector<asked> acquires_;         // sent and not answered yet
    std::vector<asked> renewals_;         // likewise
    std::vector<std::uint32_t> releases_; // sent and never answered
    bool maybe_taken_ = false;            // of an acquire no answer will come
    int attempts_ = 0;
    int releases_seen_;
    bool released_meanwhile_ = false; // since the acquire was sent: its answer may be from before
    bool contended_ = false;
    bool busy_ = false;   // the last answer was: another's
    bool no_ttl_ = false; // and for ever
    bool no_ttl_told_ = false;
    bool fatal_seen_ = false; // worth one more try, on a connection made anew
    error last_why_;          // why the last attempt came to nothing

    std::int64_t fence_ = 0;
    mono_ms safe_until_ = 0;
    mono_ms renew_at_ = forever_ms;
    mono_ms renew_by_ = forever_ms; // then this renewal counts as unknown
    mono_ms max_hold_at_ = forever_ms;
    mono_ms asked_to_renew_until_ = forever_ms;
    bool asked_to_renew_ = false;
    mono_ms last_hold_ = 0; // when a command that makes the key live longer was sent last

    bool release_told_ = false;
    bool cleaning_ = false;
    int release_tries_ = 0;
    mono_ms clean_until_ = forever_ms;
};

} // namespace stn
