// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>

#include "engine/transport.hpp"
#include "io/memory_server.hpp"

namespace stn {

// The way to a memory server: commands are executed while they are submitted, their replies wait
// for `poll`. It keeps the server alive until it is closed.
class memory_transport final : public transport {
  public:
    explicit memory_transport(std::shared_ptr<memory_server> server);
    ~memory_transport() override;

    void submit(command_seq seq, command cmd, mono_ms now) override;
    bool poll(transport_event& out, mono_ms now) override;
    [[nodiscard]] mono_ms next_ms() const override;
    [[nodiscard]] server_ms server_time(mono_ms now) override;
    void set_ring(std::function<void()> ring) override;
    void close() override;

  private:
    class mailbox;

    std::shared_ptr<memory_server> server_; // null once closed
    std::int64_t ahead_ms_ = 0;             // of the server's clock, as last seen
    std::shared_ptr<mailbox> mail_;
};

} // namespace stn
