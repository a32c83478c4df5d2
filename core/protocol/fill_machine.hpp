// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/blocks.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "protocol/command.hpp"
#include "protocol/commands.hpp"
#include "protocol/keys.hpp"
#include "protocol/outcome.hpp"
#include "protocol/policy.hpp"
#include "protocol/reply.hpp"
#include "protocol/stat.hpp"
#include "protocol/wake.hpp"

// One flight's talk with the store: look, take the lease, have the value loaded, fill.
//
// The lease lives in the value key, as a placeholder that carries a random token. A plain DEL by
// anybody voids value and lease together; a writer that comes late finds another token, or none, and
// writes nothing. The machine therefore never has to be told of an invalidation to be correct.
//
//   state     input                      next        what it does
//   --------  -------------------------  ----------  -------------------------------------------------
//   idle      start                      looking     GET (refetch: straight to queued)
//   looking   fresh or stale value       done        answer; stale or early: ask_refresh
//             absent, error marker       done        answer
//             nothing, foreign           queued      need_slot, then lease
//             pass marker, newer         queued      need_slot, then load alone
//             placeholder, first sight   queued      need_slot, then lease (which marks it)
//             placeholder, seen          waiting     timer
//             lost twice, not sent       queued      need_slot, then load alone (fail open)
//   queued    slot                       leasing     lease (or offered, when it loads alone)
//             timer                      queued      GET beside: a value ends the wait
//   leasing   granted                    offered     offer; renewal starts here
//             held                       waiting     drop_slot, timer
//             value                      done        as under looking
//             lost                       leasing     fresh token, earlier ones named; then abandon + alone
//             refused (full, ...)        offered     load alone, nothing is written
//             refused (loading, ...)     queued      need_slot, then load alone (fail open)
//   waiting   timer, message             looking     GET; `filled` for a token seen here: answer
//   offered   check: read                loading     max_load counts from the reading
//             check: not read            offered     another queue; nobody: abandon, looking
//             freed                      offered     next caller; lease run out: leasing again
//   loading   loaded                     settling    fill, or abandon with a marker
//             extend says 0              loading     unlist, revoke: the value is for its callers only
//             max_load                   overdue     answer timeout, unlist, revoke
//   overdue   loaded, freed              done        nothing is written
//   settling  fill 1 / 0                 done        stored / refused
//             lost                       settling    the same fill again; then abandon
//             refused for now            settling    once again after a pause; then abandon
//   any       nobody waits, no load      done        tokens sent and not answered are abandoned
//
// A lease counts only if its grant came before the load began: a late grant is never used, its token
// is abandoned on the same connection, where the order of commands makes the abandon run after it.
// A resent `lease` carries a fresh token and names the earlier ones, so a first copy that runs late
// cannot revive a placeholder that an invalidation has removed.
//
// `force` and `refresh` replace a value in place: their lease is the refresh lease of that value's
// generation, a key of its own, and their fill expects the generation instead of a token.
namespace stn {

enum class fill_mode : std::uint8_t {
    normal,
    peek,     // look only
    force,    // replace a value although it is fresh
    refetch,  // treat one generation as a miss
    alone,    // load, store nothing: a second rejection
    no_store, // look, else load and store nothing
    refresh,  // in the background, for nobody
};

struct key_names {
    std::string prefix;
    std::string cache;
    std::string key;       // the user's
    std::string store_key; // P:v:...

    // Where scripts tell of this key. Made when it is needed, which for a hit is never.
    [[nodiscard]] wake_target wake() const { return {wake_channel(prefix, key), wake_tail(store_key), false}; }
};

struct fill_setup {
    fill_mode mode = fill_mode::normal;
    std::shared_ptr<const fill_policy> policy;
    std::shared_ptr<const key_names> names;
    token generation{};                // refetch: the rejected one; refresh: the one to replace
    std::int64_t expected_load_ms = 0; // 0: unknown
    std::int64_t command_timeout_ms = 250;
    std::vector<token> inherited; // tokens of this process that may still stand in the key
};

struct fill_input {
    enum class kind : std::uint8_t {
        start,
        reply,        // `id`, `how`, `answer`
        message,      // `news`: a wake-up for this key
        resubscribed, // messages may have been missed
        slot,         // the load slot asked for
        timer,        // wake_at() has come
        read,         // the offer was read at `at`
        no_taker,     // the offer was withdrawn and nobody else is there
        offered,      // the offer was withdrawn and given to another queue
        freed,        // the lease was freed without an answer
        loaded,       // `load`
        nobody,       // nobody waits any more
        closing,      // the client ends now: let go of everything
        detached,     // an invalidation of this process has passed
        takeover,     // `which`: a token of this process whose load is overdue
    };
    kind what = kind::start;
    std::uint32_t id = 0;
    delivery how = delivery::answered;
    reply answer;
    wake_message news;
    mono_ms at = 0;
    token which{};
    outcome_ptr load;
};

struct fill_output {
    enum class kind : std::uint8_t {
        send,         // `cmd`; its reply comes back under `id`; `gated`: the breaker may refuse it
        answer,       // `what` to everybody who waits
        offer,        // a LEASE (or REFRESH) to the oldest who waits; `leased`: with a token
        check,        // was the offer read? if not, withdraw it; not `leased`: and free it, it has run out
        need_slot,    // a place among the running loads; `store_down`: of the fail-open pool
        drop_slot,    // gives it back, or leaves the line
        overdue_slot, // moves it to the pool of overdue loads
        waiting,      // a load elsewhere is waited for: its token is `which`
        hold,         // `result` is a value at hand, in place of an error or of waiting
        unlist,       // nobody may join any more
        revoke,       // tell the holder: `why`
        ask_refresh,  // the value `which` is due
        asked,        // do not ask for generation `which` again within `span_ms`
        spare,        // token `which`, given up here: the next lease of this key names it as earlier
        filled,       // `why`: ok stored, lost refused, unavailable (`result`: what the store said), too_large
        reject_twice, // two formats under one name
        note,         // count `counter`
        done,
    };
    kind what = kind::done;
    std::uint32_t id = 0;
    command cmd;
    bool gated = false;
    bool leased = false;
    bool store_down = false;
    outcome_ptr result;
    token which{};
    std::int64_t span_ms = 0;
    status why = status::ok;
    stat counter = stat::count_;
};

class fill_port : public blocks::made {
  public:
    fill_port() = default;
    fill_port(const fill_port&) = delete;
    fill_port& operator=(const fill_port&) = delete;
    virtual ~fill_port() = default;

    virtual void handle(fill_input in, mono_ms now, server_ms server_now, draws& draw) = 0;
    [[nodiscard]] virtual bool poll(fill_output& out) = 0;
    [[nodiscard]] virtual mono_ms wake_at() const = 0;
    // Whether the reply to `id` is still waited for.
    [[nodiscard]] virtual bool awaits(std::uint32_t id) const = 0;
};

class fill_machine final : public fill_port {
  public:
    explicit fill_machine(fill_setup setup);

    void handle(fill_input in, mono_ms now, server_ms server_now, draws& draw) override;
    [[nodiscard]] bool poll(fill_output& out) override;
    [[nodiscard]] mono_ms wake_at() const override;
    [[nodiscard]] bool awaits(std::uint32_t id) const override;

    enum class state : std::uint8_t {
        idle,
        looking,
        queued,
        leasing,
        waiting,
        offered,
        loading,
        overdue,
        settling,
        done
    };
    [[nodiscard]] state at() const noexcept { return state_; }

  private:
    enum class asked : std::uint8_t { none, get, lease, generation, fill, put, shorten };
    enum class lease_form : std::uint8_t { none, placeholder, generation };
    struct turn {
        mono_ms now;
        server_ms server_now;
        draws& draw;
    };
    struct pending {
        asked what = asked::none;
        std::uint32_t id = 0;
        mono_ms sent = 0;
        mono_ms deadline = forever_ms;
    };

    void start(turn& t);
    void on_reply(fill_input& in, turn& t);
    void on_get(delivery how, reply& r, turn& t);
    void on_lease(delivery how, const reply& r, turn& t);
    void on_generation(delivery how, const reply& r, turn& t);
    void on_fill(delivery how, const reply& r, turn& t);
    void on_put(delivery how, const reply& r, turn& t);
    void on_renewal(delivery how, const reply& r, turn& t);
    void on_timer(turn& t);
    void on_message(const wake_message& news, turn& t);
    void on_loaded(const outcome_ptr& load, turn& t);
    void on_freed(turn& t);
    void on_nobody();

    void consider(std::string bytes, turn& t);
    void consider_forced(const envelope& e, std::string bytes, turn& t);
    void serve(std::string bytes, const envelope& e, source from, turn& t);
    void see(const envelope& placeholder, turn& t);
    void wait(std::int64_t finish_in_ms, std::int64_t pttl_ms, turn& t);
    void miss(turn& t);
    void reject(const token& generation, turn& t);
    void want_slot(lease_form next, bool store_down, turn& t);
    void on_slot(turn& t);
    void look(turn& t);
    void take_lease(turn& t);
    void load_alone(bool store_down, turn& t);
    void ask_generation(turn& t);
    void offer(turn& t);
    void renew(turn& t);
    void store(const outcome& load, turn& t);
    void send_fill(turn& t);
    void send_stored(turn& t);
    bool retry_store(delivery how, const reply& r, turn& t);
    void tell_filled(status how, const reply& r);
    void give_up_lease(marker_kind marker, std::string_view text, turn& t);
    void abandon(marker_kind marker, std::string_view text, turn& t);
    void overdue(turn& t);

    [[nodiscard]] bool rejects(const token& generation) const;
    [[nodiscard]] bool ours(const envelope& e) const;
    [[nodiscard]] std::int64_t lease_ms() const;
    [[nodiscard]] std::string refresh_key_() const;
    std::uint32_t emit_send(command cmd, bool gated);
    void ask(asked what, command cmd, bool gated, turn& t);
    void answer(outcome_ptr result);
    void answer_error(error why);
    fill_output& emit(fill_output::kind what);
    void emit_asked(std::int64_t not_again_ms);
    void emit_spare(const token& which);
    void emit_offer();
    void count(stat s);
    void finish();

    fill_setup setup_;
    state state_ = state::idle;
    std::vector<fill_output, blocks::allocator<fill_output>> out_;
    std::size_t told_ = 0; // of them, by `poll`
    std::uint32_t next_id_ = 0;

    pending primary_; // look, lease, generation lease or fill
    pending renewal_; // extend or renew, beside a load
    mono_ms look_at_ = forever_ms;
    mono_ms renew_at_ = forever_ms;
    mono_ms check_at_ = forever_ms;
    mono_ms max_load_at_ = forever_ms;
    mono_ms store_again_at_ = forever_ms; // settling: the second try
    mono_ms ask_again_at_ = 0;

    lease_form form_ = lease_form::none; // what the slot is for, then what is held
    token token_{};                      // of the lease held or asked for
    std::vector<token> earlier_;         // sent since the last answer
    std::vector<token> spares_;          // that the process knows of already
    mono_ms safe_until_ = 0;
    bool lease_gone_ = false;
    bool has_slot_ = false;
    bool detached_ = false;
    bool forced_over_value_ = false;

    std::set<token> saw_;         // placeholders this flight has met
    std::vector<token> rejected_; // generations that count as a miss
    token generation_{};          // force, refresh: the one to replace
    server_ms called_at_ = 0;
    std::int64_t known_delta_ms_ = 0;
    std::int64_t pttl_until_ = -1;
    int looks_ = 0;
    int resends_ = 0;
    int codec_rejections_ = 0;
    int store_retries_ = 0;

    token filled_generation_{};
    std::string filled_envelope_;
    std::int64_t filled_px_ = 0;
};

} // namespace stn
