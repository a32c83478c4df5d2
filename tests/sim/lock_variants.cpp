// SPDX-License-Identifier: MIT
//
// Broken lock machines: the true one with one rule turned off from outside.
#include <vector>

#include "lock_world.hpp"
#include "protocol/commands.hpp"
#include "protocol/schedule.hpp"

namespace stn::sim {

namespace {

using in_kind = lock_input::kind;
using out_kind = lock_output::kind;

bool is(const lock_output& out, script_id which) {
    return out.what == out_kind::send && out.cmd.script == which;
}

class lock_probe : public lock_port {
  public:
    explicit lock_probe(const lock_setup& setup) : setup_(setup), inner_(std::make_unique<lock_machine>(setup)) {}

    void handle(lock_input in, mono_ms now, draws& draw) override {
        before(in, now, draw);
        inner_->handle(std::move(in), now, draw);
    }
    [[nodiscard]] bool poll(lock_output& out) override {
        while (inner_->poll(out)) {
            if (alter(out)) return true;
        }
        return false;
    }
    [[nodiscard]] mono_ms wake_at() const override { return inner_->wake_at(); }
    [[nodiscard]] bool awaits(std::uint32_t id) const override { return inner_->awaits(id); }
    [[nodiscard]] mono_ms safe_until() const override { return inner_->safe_until(); }
    [[nodiscard]] bool waits() const override { return inner_->waits(); }
    [[nodiscard]] bool gone() const override { return inner_->gone(); }
    [[nodiscard]] const token& mine() const override { return inner_->mine(); }
    [[nodiscard]] int releases_seen() const override { return inner_->releases_seen(); }
    [[nodiscard]] bool contended() const override { return inner_->contended(); }

  protected:
    virtual void before(lock_input&, mono_ms, draws&) {}
    // False: swallowed.
    virtual bool alter(lock_output&) { return true; }

    const lock_setup setup_;
    std::unique_ptr<lock_machine> inner_;
};

class release_blind final : public lock_probe {
  public:
    using lock_probe::lock_probe;

  private:
    bool alter(lock_output& out) override {
        if (is(out, script_id::release)) out.cmd = del_command(out.cmd.key);
        return true;
    }
};

// Whose chance is always the token that is there already.
class same_token final : public draws {
  public:
    same_token(const token& t, draws& others) : token_(t), others_(others) {}
    [[nodiscard]] token make_token() override { return token_; }
    [[nodiscard]] double unit() override { return others_.unit(); }

  private:
    const token token_;
    draws& others_;
};

// A machine that was started just now, when the answer came.
class counted_from_reply final : public lock_probe {
  public:
    using lock_probe::lock_probe;

  private:
    void before(lock_input& in, mono_ms now, draws& draw) override {
        if (in.what == in_kind::start) until_ = in.until;
        if (in.what != in_kind::reply || in.how != delivery::answered || !inner_->waits()) return;
        const auto said = read_acquire(in.answer);
        if (!said || !said->granted) return;
        same_token mine(inner_->mine(), draw);
        inner_ = std::make_unique<lock_machine>(setup_);
        lock_input start;
        start.until = forever_ms;
        inner_->handle(std::move(start), now, mine);
        lock_output sent;
        while (inner_->poll(sent)) {
            if (sent.what == out_kind::send) in.id = sent.id;
        }
    }
    mono_ms until_ = forever_ms;
};

class shorter_renew final : public lock_probe {
  public:
    using lock_probe::lock_probe;

  private:
    bool alter(lock_output& out) override {
        if (is(out, script_id::renew)) out.cmd.args[1] = std::to_string(std::max<std::int64_t>(1, setup_.ttl_ms / 4));
        return true;
    }
};

class release_misread final : public lock_probe {
  public:
    using lock_probe::lock_probe;

  private:
    void before(lock_input& in, mono_ms, draws&) override {
        if (in.what == in_kind::reply && in.how == delivery::answered) last_ = in.answer;
    }
    bool alter(lock_output& out) override {
        if (out.what == out_kind::released && out.why.code == status::uncertain && read_integer(last_)) {
            out.why = fail(status::not_mine, "the lock was gone already");
        }
        return true;
    }
    reply last_;
};

class never_released final : public lock_probe {
  public:
    using lock_probe::lock_probe;

  private:
    bool alter(lock_output& out) override {
        if (out.what == out_kind::failed) failed_ = true;
        return !(failed_ && is(out, script_id::release));
    }
    bool failed_ = false;
};

// An acquire under the name of renewal: whatever it says of a fence is taken for "mine".
class renew_creates final : public lock_probe {
  public:
    using lock_probe::lock_probe;

  private:
    void before(lock_input& in, mono_ms, draws&) override {
        if (in.what != in_kind::reply || std::erase(renewals_, in.id) == 0) return;
        if (const auto said = read_acquire(in.answer)) in.answer = reply::of_integer(said->granted ? 1 : -1);
    }
    bool alter(lock_output& out) override {
        if (!is(out, script_id::renew)) return true;
        renewals_.push_back(out.id);
        out.cmd = acquire_command(setup_.key, inner_->mine(), setup_.ttl_ms, setup_.label);
        return true;
    }
    std::vector<std::uint32_t> renewals_;
};

class taught_anyway final : public lock_probe {
  public:
    using lock_probe::lock_probe;
    [[nodiscard]] bool awaits(std::uint32_t) const override { return true; }
};

} // namespace

std::unique_ptr<lock_port> make_lock_probe(lock_variant broken, lock_setup setup) {
    switch (broken) {
#define SIM_MAKE_LOCK_VARIANT(name, text, catcher) \
    case lock_variant::name: return std::make_unique<name>(setup);
        SIM_LOCK_VARIANT_TABLE(SIM_MAKE_LOCK_VARIANT)
#undef SIM_MAKE_LOCK_VARIANT
    case lock_variant::none:
    case lock_variant::count_: break;
    }
    return std::make_unique<lock_machine>(std::move(setup));
}

} // namespace stn::sim
