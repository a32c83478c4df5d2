// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "coverage.hpp"
#include "options.hpp"
#include "protocol/fill_machine.hpp"
#include "tale.hpp"

namespace stn::sim {

// Stands between the engine and a fill machine: sees which rows of its table are visited, and gives
// broken variants a place to break it.
class probe : public fill_port {
  public:
    probe(const fill_setup& setup, coverage& seen, tale& told, int node);

    void handle(fill_input in, mono_ms now, server_ms server_now, draws& draw) override;
    [[nodiscard]] bool poll(fill_output& out) override;
    [[nodiscard]] mono_ms wake_at() const override { return inner_.wake_at(); }
    [[nodiscard]] bool awaits(std::uint32_t id) const override { return inner_.awaits(id); }

  protected:
    enum class sent : std::uint8_t { other, get, lease, refresh, extend, renew, fill, put };
    using state = fill_machine::state;
    using in_kind = fill_input::kind;
    using out_kind = fill_output::kind;

    // A variant may change what comes in and what goes out; false: it is swallowed.
    virtual bool alter(fill_input&, mono_ms, draws&) { return true; }
    virtual bool alter(fill_output&) { return true; }
    // Something of a variant's own, after what came before.
    void add(fill_output out) { out_.push_back(std::move(out)); }
    void add(command cmd, std::uint32_t id);

    [[nodiscard]] static sent kind_of(const command& cmd);
    [[nodiscard]] sent asked_by(std::uint32_t id) const;

    static constexpr std::uint32_t own_ids = 1U << 30; // of commands that no machine sends

    fill_machine inner_;
    const fill_setup setup_;

  private:
    struct question {
        std::uint32_t id = 0;
        sent what = sent::other;
    };
    // What one input led to.
    struct effects {
        bool refresh_asked = false;
        bool revoked = false;
        bool marked = false; // abandon with a marker
        bool renewed = false;
        sent last = sent::other;
    };
    effects drain();
    void note_sent(const fill_output& out, effects& e);
    void classify(state before, const fill_input& in, sent asked, const effects& e, mono_ms now);
    void classify_reply(state before, const fill_input& in, sent asked, const effects& e);
    void classify_entry(const reply& r, const effects& e);
    void classify_timer(state before, const effects& e, mono_ms now);
    void visit(row r) { seen_.visit(r); }

    coverage& seen_;
    tale& told_;
    const int node_;
    std::deque<question> questions_; // the last few
    std::deque<fill_output> out_;
    std::vector<token> own_; // that the flight itself, or its process, has sent
    sent primary_ = sent::other;
    bool leased_ = false;
    bool gone_ = false;
    bool pausing_ = false; // before the second try of a refused fill
    std::uint32_t renewal_id_ = 0;
    mono_ms renewal_due_ = forever_ms;
};

[[nodiscard]] std::unique_ptr<fill_port> make_probe(variant broken, fill_setup setup, coverage& seen, tale& told,
                                                    int node);

} // namespace stn::sim
