// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/transport.hpp"
#include "io/memory_transport.hpp"

namespace stn::test {

// What becomes of a command.
enum class fate : std::uint8_t {
    lose_reply, // applied; nothing is ever heard of it
    vanish,     // neither
    refuse,     // the store says no (`text`)
    not_sent,   // told at once that it did not go out
};

// A memory transport that does as it is told. Times are those of the world's clock.
class test_link final : public transport {
  public:
    explicit test_link(std::shared_ptr<memory_server> server);
    ~test_link() override;

    // The next `times` commands that are `which` (-1: all from now on). Rules are asked in order.
    void next(verb which, fate what, int times = 1, std::string text = "ERR no");
    void next(script_id which, fate what, int times = 1, std::string text = "ERR no");
    void every(fate what, std::string text = "ERR no"); // whatever is sent
    void heal();                                        // forgets all rules

    // Replies arrive so much later.
    void slow(std::int64_t ms) { delay_ms_ = ms; }
    // Commands stay on the way until `let_go`; then they are applied, in order.
    void hold() { holding_ = true; }
    void let_go();
    // The connection ends: what is on the way is lost, nothing goes out until `mend`. Held commands are
    // kept as old bytes, which may still run (`let_go`) although nobody hears their replies.
    void cut();
    void mend();

    struct sent {
        mono_ms at = 0;
        command cmd;
    };
    // Every command submitted, subscriptions aside.
    [[nodiscard]] const std::vector<sent>& log() const noexcept { return log_; }
    [[nodiscard]] std::size_t count(verb which) const;
    [[nodiscard]] std::size_t count(script_id which) const;
    void clear_log() { log_.clear(); }
    // How much has happened here; changes tell the world that it is not quiet yet.
    [[nodiscard]] std::uint64_t activity() const noexcept { return activity_; }

    void submit(command_seq seq, command cmd, mono_ms now) override;
    bool poll(transport_event& out, mono_ms now) override;
    [[nodiscard]] mono_ms next_ms() const override;
    [[nodiscard]] server_ms server_time(mono_ms now) override;
    void set_ring(std::function<void()> ring) override;
    void close() override;

  private:
    struct rule {
        std::function<bool(const command&)> which;
        fate what;
        int times;
        std::string text;
    };
    struct way {
        command_seq seq;
        command cmd;
        bool old; // of a connection that has ended
    };

    void tell(transport_event::kind what, std::string payload);
    void tell_reply(command_seq seq, delivery how, reply answer, mono_ms at);
    void take_in(mono_ms now);
    rule* rule_for(const command& cmd);

    std::shared_ptr<memory_server> server_;
    std::unique_ptr<memory_transport> inner_; // null: cut
    std::function<void()> ring_;
    std::deque<rule> rules_;
    std::multimap<mono_ms, transport_event> due_;
    std::set<command_seq> open_;   // submitted and not told of
    std::set<command_seq> silent_; // applied, but the reply gets lost
    std::vector<std::string> channels_;
    std::vector<way> held_;
    std::vector<sent> log_;
    std::int64_t delay_ms_ = 0;
    std::uint64_t activity_ = 0;
    bool holding_ = false;
    bool closed_ = false;
};

} // namespace stn::test
