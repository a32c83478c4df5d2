// SPDX-License-Identifier: MIT
#ifndef STANCHION_NODE_ENVIRONMENT_HPP
#define STANCHION_NODE_ENVIRONMENT_HPP

#include <napi.h>
#include <stanchion/stanchion.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace stn_node {

struct box;

// What one load of the addon in one Node-API environment (main thread, worker, vm context) has: nothing is shared
// between them. Only touched on the environment's own thread.
struct environment : std::enable_shared_from_this<environment> {
    std::unordered_set<box*> boxes;     // every handle that JavaScript may hold
    Napi::FunctionReference make_error; // (status, error_values) -> the error to throw
    static environment& of(Napi::Env env);
};

// Throws what the C ABI reported, as JavaScript makes it. Frees `err`.
[[noreturn]] void fail(Napi::Env env, stn_error* err);
Napi::Value error_values(Napi::Env env, const stn_error* err); // [message, key, server text, flags]

// A doorbell that outlives its environment: core threads ring it, the environment's thread takes it down. The mutex
// makes "is it still there" and "ring" one step; a thread-safe function that is used after its release aborts.
struct ring;

// A queue, and the events of the last drain, which stay alive until the next one.
//
// An event arrives in JavaScript as a row of numbers in `table`; bytes go along in one string or one buffer for the
// whole batch, handles and errors in an array. So a thousand answers cost a handful of Node-API calls.
class mailbox {
  public:
    enum column {
        kind,
        tag,
        status,
        flags,
        reason,
        codec,
        area,
        offset,
        length,
        age_ms,
        ttl_left_ms,
        load_ms,
        host_ref,
        columns
    };
    enum area_of { none, text, bytes }; // `area`: where offset and length count

    explicit mailbox(stn_queue* q) : queue(q) {}
    mailbox(const mailbox&) = delete;
    mailbox& operator=(const mailbox&) = delete;
    ~mailbox();

    // How many events; 0 = none in time; STN_CLOSED. `table` has columns x rows cells; `out` gets [text, bytes, extras].
    std::int32_t drain(Napi::Env env, std::int64_t timeout_ms, Napi::Float64Array table, Napi::Array out);
    // Takes an event of the last drain out, so that it outlives the next.
    stn_event* take_event(std::size_t i) { return i < read_.size() ? std::exchange(read_[i], nullptr) : nullptr; }
    void forget_read();

    void set_doorbell(Napi::Env env, Napi::Function on_ring);
    void hold_process(bool hold); // whether the doorbell keeps the event loop alive
    void shut() noexcept;         // no ring is running or will start

    stn_queue* const queue;

  private:
    struct gathered;
    void describe(const stn_event* e, double* row, gathered& all);

    std::vector<stn_event*> read_;
    std::string text_;
    std::shared_ptr<ring> ring_;
    napi_env env_ = nullptr;
};

} // namespace stn_node

#endif
