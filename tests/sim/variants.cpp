// SPDX-License-Identifier: MIT
//
// The broken machines. Each is the true one with one rule turned off from outside, as a reader of
// design.md might get it wrong; the simulator has to notice.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "probe.hpp"
#include "protocol/envelope.hpp"
#include "protocol/keys.hpp"

namespace stn::sim {

namespace {

std::string placeholder_of(const token& t) {
    envelope e;
    e.kind = entry_kind::placeholder;
    e.generation = t;
    return encode(e);
}

bool is(const fill_output& out, script_id which) {
    return out.what == fill_output::kind::send && out.cmd.what == verb::script && out.cmd.script == which;
}

class renew_by_lease final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_output& out) override {
        if (!is(out, script_id::extend)) return true;
        const std::string placeholder = placeholder_of(token_from(out.cmd.args[0]));
        out.cmd = lease_command(out.cmd.key, placeholder, std::stoll(out.cmd.args[1]), {}, {});
        asked_.insert(out.id);
        return true;
    }
    bool alter(fill_input& in, mono_ms, draws&) override {
        if (in.what == in_kind::reply && asked_.erase(in.id) != 0 && in.how == delivery::answered) {
            in.answer = reply::of_integer(read_lease(in.answer).what == lease_answer::kind::granted ? 1 : 0);
        }
        return true;
    }
    std::set<std::uint32_t> asked_;
};

// The machine draws a fresh token for each attempt; outside, the first one stands for all of them.
class same_token final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_output& out) override {
        if (is(out, script_id::lease)) {
            const token drawn = token_from(std::string_view(out.cmd.args[0]).substr(4, 16));
            const auto earlier_at = 3 + static_cast<std::ptrdiff_t>(std::stoll(out.cmd.args[2]));
            const bool again = std::any_of(out.cmd.args.begin() + earlier_at, out.cmd.args.end(),
                                           [&](const std::string& t) { return sent_.contains(token_from(t)); });
            const token used = again && first_ ? *first_ : drawn;
            if (!again) first_ = drawn;
            sent_.insert(drawn);
            stands_for_[drawn] = used;
            out.cmd.args[0].replace(4, 16, used.view());
            if (again) out.cmd.args.erase(out.cmd.args.begin() + earlier_at, out.cmd.args.end());
            return true;
        }
        if (is(out, script_id::extend) || is(out, script_id::fill)) swap(out.cmd.args[0]);
        if (is(out, script_id::abandon)) {
            for (std::size_t i = 6; i < out.cmd.args.size(); ++i) swap(out.cmd.args[i]);
        }
        if (out.what == out_kind::offer && out.leased) {
            if (const auto at = stands_for_.find(out.which); at != stands_for_.end()) out.which = at->second;
        }
        return true;
    }
    void swap(std::string& bytes) {
        if (const auto at = stands_for_.find(token_from(bytes)); at != stands_for_.end()) bytes = at->second.str();
    }
    std::optional<token> first_;
    std::set<token> sent_;
    std::map<token, token> stands_for_;
};

class late_grant final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_output& out) override {
        if (is(out, script_id::lease)) asked_[out.id] = token_from(std::string_view(out.cmd.args[0]).substr(4, 16));
        const bool fails_open =
            before_ == state::leasing && (inner_.at() == state::queued || inner_.at() == state::offered);
        if (is(out, script_id::abandon) && fails_open) return false; // it may still be granted
        if (out.what == out_kind::offer) alone_ = !out.leased;
        return true;
    }
    bool alter(fill_input& in, mono_ms, draws& draw) override {
        before_ = inner_.at();
        if (in.what == in_kind::reply && alone_ && in.how == delivery::answered) {
            const auto at = asked_.find(in.id);
            if (at != asked_.end() && read_lease(in.answer).what == lease_answer::kind::granted) late_ = at->second;
        }
        if (in.what == in_kind::loaded && alone_ && late_ && in.load->code == status::ok) {
            envelope e;
            e.codec = in.load->codec;
            e.generation = draw.make_token();
            e.created = in.load->created;
            e.delta_ms = in.load->delta_ms;
            e.payload = in.load->payload;
            add(fill_command(setup_.names->store_key, *late_, encode(e), setup_.policy->ttl_ms, setup_.names->wake()),
                own_ids);
        }
        return true;
    }
    std::map<std::uint32_t, token> asked_;
    std::optional<token> late_;
    state before_ = state::idle;
    bool alone_ = false;
};

class fill_blind final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_output& out) override {
        if (!is(out, script_id::fill)) return true;
        const std::vector<std::string> args = out.cmd.args;
        out.cmd.script = script_id::put;
        out.cmd.args.assign(args.begin() + 1, args.end());
        return true;
    }
};

class no_timer final : public probe {
  public:
    using probe::probe;
    [[nodiscard]] mono_ms wake_at() const override {
        return inner_.at() == state::waiting ? forever_ms : probe::wake_at();
    }
};

class promotion_lease final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_output& out) override {
        if (out.what != out_kind::offer || !out.leased || setup_.mode == fill_mode::refresh) return true;
        const bool again = held_ && *held_ == out.which;
        held_ = out.which;
        if (again) ask();
        return true;
    }
    bool alter(fill_input& in, mono_ms, draws&) override {
        if (in.what == in_kind::offered && inner_.at() == state::offered && held_) ask();
        return true;
    }
    void ask() { add(lease_command(setup_.names->store_key, placeholder_of(*held_), 10'000, {}, {}), own_ids); }
    std::optional<token> held_;
};

class refresh_deleted final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_output& out) override {
        if (is(out, script_id::refresh)) {
            key_ = out.cmd.key;
            token_ = token_from(out.cmd.args[0]);
        }
        return true;
    }
    bool alter(fill_input& in, mono_ms, draws&) override {
        if (in.what == in_kind::reply && asked_by(in.id) == sent::fill && !key_.empty() &&
            in.how == delivery::answered && in.answer.integer == 1) {
            add(release_command(key_, token_, {}), own_ids);
        }
        return true;
    }
    std::string key_;
    token token_;
};

class wake_unseen final : public probe {
  public:
    using probe::probe;

  private:
    bool alter(fill_input& in, mono_ms, draws&) override {
        if (over_) return false;
        if (in.what != in_kind::message || inner_.at() != state::waiting || setup_.mode != fill_mode::normal ||
            in.news.kind != wake_kind::filled || in.news.envelope.empty()) {
            return true;
        }
        fill_output out;
        out.what = out_kind::answer;
        out.result = outcome_of(std::string(in.news.envelope), source::store);
        add(std::move(out));
        fill_output end;
        end.what = out_kind::done;
        add(std::move(end));
        over_ = true;
        return false;
    }
    bool over_ = false;
};

} // namespace

std::unique_ptr<fill_port> make_probe(variant broken, fill_setup setup, coverage& seen, tale& told, int node) {
    switch (broken) {
#define SIM_MAKE_VARIANT(name) \
    case variant::name: return std::make_unique<name>(setup, seen, told, node);
        SIM_MAKE_VARIANT(renew_by_lease)
        SIM_MAKE_VARIANT(same_token)
        SIM_MAKE_VARIANT(late_grant)
        SIM_MAKE_VARIANT(fill_blind)
        SIM_MAKE_VARIANT(no_timer)
        SIM_MAKE_VARIANT(promotion_lease)
        SIM_MAKE_VARIANT(refresh_deleted)
        SIM_MAKE_VARIANT(wake_unseen)
#undef SIM_MAKE_VARIANT
    case variant::mark_skips: // broken in the transport
    case variant::none:
    case variant::count_: break;
    }
    return std::make_unique<probe>(setup, seen, told, node);
}

} // namespace stn::sim
