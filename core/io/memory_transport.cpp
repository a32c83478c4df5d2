// SPDX-License-Identifier: MIT
#include "io/memory_transport.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace stn {

class memory_transport::mailbox final : public memory_peer {
  public:
    using kind = transport_event::kind;

    void on_reply(std::uint64_t seq, reply answer) override {
        transport_event e;
        e.seq = seq;
        e.answer = std::move(answer);
        push(std::move(e));
    }

    void on_subscribed(std::string_view channel) override {
        transport_event e;
        e.what = kind::subscribed;
        e.channel = channel;
        push(std::move(e));
    }

    void on_message(std::string_view channel, std::string_view payload) override {
        transport_event e;
        e.what = kind::message;
        e.channel = channel;
        e.payload = payload;
        push(std::move(e));
    }

    void ring() override {
        std::unique_lock lock(mutex_);
        if (closed_ || !ring_) return;
        const std::function<void()> ring = ring_;
        ++ringing_;
        lock.unlock();
        ring();
        lock.lock();
        --ringing_;
        quiet_.notify_all();
    }

    void push(transport_event e) {
        const std::lock_guard lock(mutex_);
        events_.push_back(std::move(e));
    }

    bool pop(transport_event& out) {
        const std::lock_guard lock(mutex_);
        if (events_.empty()) return false;
        out = std::move(events_.front());
        events_.pop_front();
        return true;
    }

    [[nodiscard]] bool empty() {
        const std::lock_guard lock(mutex_);
        return events_.empty();
    }

    [[nodiscard]] bool closed() {
        const std::lock_guard lock(mutex_);
        return closed_;
    }

    void set_ring(std::function<void()> ring) {
        const std::lock_guard lock(mutex_);
        ring_ = std::move(ring);
    }

    void close() {
        std::unique_lock lock(mutex_);
        closed_ = true;
        quiet_.wait(lock, [this] { return ringing_ == 0; });
        ring_ = nullptr;
    }

  private:
    std::mutex mutex_;
    std::condition_variable quiet_;
    std::deque<transport_event> events_; // guarded by mutex_, like all below
    std::function<void()> ring_;
    int ringing_ = 0;
    bool closed_ = false;
};

memory_transport::memory_transport(std::shared_ptr<memory_server> server)
    : server_(std::move(server)),
      mail_(std::make_shared<mailbox>()) {
    transport_event e;
    e.what = transport_event::kind::connected;
    e.payload = R"({"server":"memory"})";
    mail_->push(std::move(e));
}

memory_transport::~memory_transport() {
    memory_transport::close();
}

void memory_transport::submit(command_seq seq, command cmd, mono_ms /*now*/) {
    if (!mail_->closed()) {
        server_->submit(mail_, seq, cmd);
        return;
    }
    transport_event e;
    e.seq = seq;
    e.how = delivery::not_sent;
    mail_->push(std::move(e));
}

bool memory_transport::poll(transport_event& out, mono_ms /*now*/) {
    return mail_->pop(out);
}

mono_ms memory_transport::next_ms() const {
    return mail_->empty() ? forever_ms : 0;
}

server_ms memory_transport::server_time(mono_ms now) {
    if (server_) ahead_ms_ = server_->now() - now;
    return now + ahead_ms_;
}

void memory_transport::set_ring(std::function<void()> ring) {
    mail_->set_ring(std::move(ring));
}

void memory_transport::close() {
    mail_->close();
    if (!server_) return;
    server_->forget(mail_);
    server_.reset(); // a store dies with its last client, not with its last thread
}

} // namespace stn
