// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agenda.hpp"
#include "chance.hpp"
#include "engine/transport.hpp"
#include "faults.hpp"
#include "options.hpp"
#include "store.hpp"

namespace stn::sim {

class link;

// What all links share, and what the storm turns.
struct network {
    const options& opt;
    agenda& when;
    tale& told;
    store& server;
    fault_counts& faults;
    micros out_until = 0;      // the server answers nobody
    micros refusing_until = 0; // it answers everybody with `refusal`
    std::string_view refusal;
    bool refusing_reads = false;
    // How many connections have run something, by node: to see when an old one comes after a newer one.
    std::vector<std::uint64_t> newest_run;
    std::uint64_t next_connection = 1;
    // The scripts that the server knows. Whoever connects loads them all.
    std::bitset<static_cast<std::size_t>(script_id::count_)> scripts = all_scripts();
    std::uint64_t taught = 0; // scripts that were loaded again and run after NOSCRIPT
    [[nodiscard]] static std::bitset<static_cast<std::size_t>(script_id::count_)> all_scripts() {
        return std::bitset<static_cast<std::size_t>(script_id::count_)>{}.set();
    }

    void hit(fault f, std::uint64_t n = 1) { faults[static_cast<std::size_t>(f)] += n; }
};

// One TCP connection: bytes in order each way, each with the delay the link draws. It outlives its
// link's interest in it: what was sent may still run.
class connection final : public memory_peer, public actor, public std::enable_shared_from_this<connection> {
  public:
    connection(network& net, link& owner, int node, std::uint64_t seed);

    void send(command_seq seq, command cmd);
    void subscribe(const std::vector<std::string>& channels, const std::vector<command_seq>& seqs);
    void unsubscribe();

    // Faults.
    void hold_up(micros how_long, bool towards_server);
    void blackhole() { dead_ = true; } // nothing arrives from now on, and nobody knows
    [[nodiscard]] bool broken() const noexcept { return dead_ || owner_ == nullptr; }
    // The client's side is gone. What has not run yet comes `late_by` later, or never.
    void cut(bool lost, micros late_by);
    void hold_messages(micros how_long) { messages_held_until_ = how_long; }
    void drop_messages(int n) { drop_messages_ = n; }

    void act(std::uint32_t what, std::uint64_t with) override;
    [[nodiscard]] const std::deque<command_seq>& unanswered() const noexcept { return unanswered_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] std::size_t on_the_way() const noexcept { return to_server_.size(); }

    // memory_peer
    void on_reply(std::uint64_t, reply) override {}
    void on_subscribed(std::string_view) override {}
    void on_message(std::string_view channel, std::string_view payload) override;
    void ring() override {}

  private:
    enum : std::uint32_t { arrive, deliver, deliver_message };
    struct outgoing {
        micros at;
        micros sent;
        command_seq seq;
        command cmd;
        std::vector<command_seq> seqs; // of a subscription: all of them
        std::vector<std::string> channels;
        bool taught = false; // the script comes with it
    };
    struct incoming {
        micros at;
        transport_event what;
        std::optional<command> unknown; // a script that the server did not know
    };
    micros delay();
    void push(outgoing o);
    void execute(outgoing& o);
    [[nodiscard]] bool refused(const command& cmd) const;
    void answer(transport_event e, std::optional<command> unknown = std::nullopt);
    void hear(incoming i);

    network& net_;
    link* owner_;
    const int node_;
    const std::uint64_t number_;
    dice dice_;
    bool dead_ = false;
    bool subscribed_ = false;
    micros out_floor_ = 0; // nothing arrives earlier
    micros in_floor_ = 0;
    micros messages_held_until_ = 0;
    int drop_messages_ = 0;
    std::deque<outgoing> to_server_;
    std::deque<incoming> to_client_;
    std::deque<incoming> messages_; // when they come on a stream of their own
    std::deque<command_seq> unanswered_;
};

// The transport of one client. Reconnects by itself, never resends.
class link final : public transport, public actor {
  public:
    link(network& net, int node, node_clock& time, std::uint64_t seed, std::function<void()> wake);
    ~link() override;

    void submit(command_seq seq, command cmd, mono_ms now) override;
    bool poll(transport_event& out, mono_ms now) override;
    [[nodiscard]] mono_ms next_ms() const override { return inbox_.empty() ? forever_ms : 0; }
    [[nodiscard]] server_ms server_time(mono_ms now) override;
    void set_ring(std::function<void()>) override {} // the world turns
    void set_wanted(const std::function<bool(command_seq)>& wanted) override { wanted_ = wanted; }
    void close() override;

    void act(std::uint32_t what, std::uint64_t with) override;
    // From its connection.
    void arrived(transport_event e);
    [[nodiscard]] bool wanted(command_seq seq) const { return !wanted_ || wanted_(seq); }

    // Faults. False: there is no connection to break.
    struct breakage {
        bool lost = false;        // what has not run yet never will
        micros late_by = 0;       // else: how much later it comes
        micros noticed_after = 0; // by us
        bool by_script = false;   // `break_next`: when a script is sent, the dangerous part
    };
    // At once, or soon after the next command is sent.
    bool break_now(const breakage& how);
    void break_next(const breakage& how) { armed_ = how; }
    bool blackhole(micros noticed_after);
    bool hold_up(micros how_long, bool towards_server);
    bool hold_messages(micros until);
    bool drop_messages(int n);
    bool lose_subscription(micros how_long);
    // The process died.
    void crash(bool bytes_lost);
    [[nodiscard]] bool up() const noexcept { return state_ == state::up && !now_->broken(); }
    // When a look at `key` was last sent, in true time; also when somebody tried to.
    [[nodiscard]] micros last_look(const std::string& key) const;

  private:
    enum class state : std::uint8_t { connecting, up, waiting, closed };
    enum : std::uint32_t { connected, refused, retry, noticed, resubscribe, strike };
    struct held {
        command_seq seq;
        command cmd;
    };
    void begin_connect();
    void lose(std::string_view why);
    void tell(command_seq seq, delivery how);
    void measure(mono_ms now);

    network& net_;
    const int node_;
    node_clock& time_;
    dice dice_;
    std::function<void()> wake_;
    std::function<bool(command_seq)> wanted_;
    state state_ = state::connecting;
    std::uint64_t attempt_ = 0; // events of earlier ones mean nothing
    int failures_ = 0;
    std::shared_ptr<connection> now_;
    std::vector<std::shared_ptr<connection>> all_; // things may still happen to old ones
    std::deque<held> held_;
    std::deque<transport_event> inbox_;
    std::vector<std::string> channels_;
    std::vector<command_seq> new_subscriptions_;
    std::vector<std::string> new_channels_;
    std::vector<std::pair<std::string, micros>> looks_; // by key
    std::optional<breakage> armed_;
    breakage striking_;
    std::int64_t offset_ = 0;
    mono_ms measured_ = 0;
};

} // namespace stn::sim
