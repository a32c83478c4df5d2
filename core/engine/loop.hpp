// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/function_ref.hpp"
#include "engine/errand.hpp"
#include "engine/event_queue.hpp"
#include "engine/timer_queue.hpp"
#include "engine/transport.hpp"

// Where a client's machines are turned: inbox -> turn(now) -> outbox.
//
// One mutex, the turn lock, guards machines, timers and the transport; whoever holds it turns. Usually
// that is the loop's own thread, which holds it except while parked. A blocking caller that finds it
// free turns on its own (`help`), which saves two hand-overs between threads; while it is the only one with
// something to wait for, it does the client's IO too (`work_until`). Who does not wait and is alone begins his
// operation himself (`help_if_idle`). A turn needs no thread at all, so a simulator calls `turn` and has time in
// its hand.
//
// Who sleeps on the transport's descriptors: the parked loop; or, in `solo_` mode, the caller at work, who
// holds the turn lock meanwhile, and the loop sleeps on its bell alone. The mode ends with the first ring by
// anybody else, or when no caller has come for `solo_patience_ms`.
//
// What may go wrong, and which line prevents it:
//   - A task is posted while a helper holds the lock: `post` rings the loop whenever it cannot know that
//     somebody will look; the helper looks at the inbox again after it has let go.
//   - A task is posted while a caller at work sleeps: it says `at_work_` first and looks at the inbox again;
//     a poster pushes first and reads `at_work_` then. It yields to the loop at once.
//   - A helper arms a timer that is due before the loop's park ends: whoever lets go of the lock compares the
//     next due moment with `park_until_` and rings; the loop reads that moment after it has said when it wakes.
//   - The loop parks while a task arrives: it says `parked_` first and looks at the inbox again; a poster
//     pushes first and reads `parked_` then. One of the two sees the other (the inbox's mutex orders them).
//   - A transport has something to tell, and nothing was posted: its ring is `ask`, which stands in the inbox.
//   - The loop falls asleep on descriptors while a caller begins to work: it says `watching_` first and
//     looks at `solo_` again; the caller sets `solo_` first, reads `watching_` then, and rings.
//   - A turn opens or closes a connection while the loop sleeps on the old descriptors: `rewatch` rings.
// Events leave after the lock was released: no host code ever runs under it.
//
// A turn that runs out of memory ends the process, on whatever thread it runs: half a turn cannot be
// undone. Everything before it can, and what is handed to it comes as an `errand` that was made before.
namespace stn {

class outbox {
  public:
    void add(std::shared_ptr<event_queue> home, event e) { mail_.emplace_back(std::move(home), std::move(e)); }
    void reserve(std::size_t more) {
        const std::size_t all = mail_.size() + more;
        if (all > mail_.capacity()) mail_.reserve(std::max(all, 2 * mail_.capacity()));
    }
    [[nodiscard]] std::size_t size() const noexcept { return mail_.size(); }
    [[nodiscard]] bool empty() const noexcept { return mail_.empty(); }
    // In order, neighbours for one queue together. No lock of ours may be held.
    void deliver() noexcept;
    void swap(outbox& other) noexcept {
        mail_.swap(other.mail_);
        graves_.swap(other.graves_);
    }
    // Things that must not be destroyed under the turn lock.
    void bury(std::shared_ptr<void> what) { graves_.push_back(std::move(what)); }

  private:
    using letter = std::pair<std::shared_ptr<event_queue>, event>;
    std::vector<letter> mail_;
    std::vector<std::shared_ptr<void>> graves_;
};

class turned {
  public:
    turned() = default;
    turned(const turned&) = delete;
    turned& operator=(const turned&) = delete;
    virtual ~turned() = default;
    virtual void on_turn(mono_ms now) = 0;                            // what came from outside
    virtual void on_mail(std::size_t events) = 0;                     // so many events leave with this turn
    [[nodiscard]] virtual mono_ms next_external_ms() = 0;             // when to look although nobody rang
    virtual void on_turn_end(mono_ms now) { static_cast<void>(now); } // nothing more is to come in this turn
    [[nodiscard]] virtual std::span<watched> watch() { return {}; }   // what else to sleep on
    [[nodiscard]] virtual std::size_t going_on() { return 0; }        // operations that are not done yet
};

class loop final : public time_listener {
  public:
    loop(std::shared_ptr<clock> time, turned& owner);
    ~loop() override;

    // From any thread. The errand runs under the turn lock, in order of posting. False: the loop has
    // ended, and the errand will not run.
    bool post(errand e) noexcept;
    template <std::invocable<mono_ms> Do> bool post(Do what) { return post(errand(std::move(what))); }
    // The same, by somebody who calls `help` or `ring` next.
    bool post_for_help(errand e) noexcept;
    template <std::invocable<mono_ms> Do> bool post_for_help(Do what) { return post_for_help(errand(std::move(what))); }
    // A turn, please, though there is nothing to post.
    void ask() noexcept;
    // Turns once if nobody else does; else rings the loop.
    void help() noexcept;
    // Helps if the loop listens and nothing else goes on: an operation that is alone is sent by the thread that asks,
    // which saves one hand-over. Else rings: in a crowd the loop's thread works beside those who ask.
    void help_if_idle() noexcept;
    // As `help`, and goes on with turns and IO until `answered`, for `timeout_ms` (-1: for ever) or until somebody else
    // needs the loop. Whatever was posted is done then, or the loop was rung.
    void work_until(function_ref<bool()> answered, std::int64_t timeout_ms) noexcept;
    void ring() noexcept;
    // Callers leave the work to the loop: whoever posts may as well ring.
    [[nodiscard]] bool in_company() const noexcept { return time_->now_ms() < company_until_.load(); }

    // Starts the thread; `keep` lives as long as it runs. `manual`: nobody waits for the clock, it calls.
    void start(std::shared_ptr<void> keep, bool manual);
    // Ends the thread after the current turn. From any thread, the loop's own too.
    void stop();
    // The last turn: takes no task any more and runs what was taken. `stop` leads to it on the loop's
    // thread; without a thread, its owner calls it.
    void finish();

    // One turn on this thread.
    void turn() noexcept;
    // For a fork child, where nobody else runs: closes descriptors. If somebody was in a turn when it was
    // forked, `and_then` is not called: what it would see may be half done.
    void abandon_after_fork(function_ref<void()> and_then) noexcept;

    // time_listener
    [[nodiscard]] mono_ms next_due_ms() override;
    void time_moved() override { turn(); }

    // Under the turn lock only:
    timer_queue timers;
    outbox out;

  private:
    class bell; // a descriptor to sleep on, and what was slept on besides
    enum class extent : bool { one_pass, until_empty };

    void run(mono_ms now, extent how);
    void thread_main(bool manual);
    void park(bool manual);
    [[nodiscard]] bool inbox_empty();
    // Runs, notes the next due moment, and gives the mail that is to leave. `woken`: whose descriptors are ready.
    void turn_locked(mono_ms now, extent how, outbox& mail, bell* woken = nullptr) noexcept;
    void after_turn(outbox& mail) noexcept;
    void wake_loop() noexcept;
    // One sleep of a caller at work. False: somebody else needs the loop.
    [[nodiscard]] bool sleep_at_work(mono_ms until) noexcept;

    const std::shared_ptr<clock> time_;
    turned& owner_;
    std::mutex turn_mutex_;
    std::mutex inbox_mutex_;
    errand_list inbox_;       // inbox_mutex_
    bool inbox_shut_ = false; // inbox_mutex_
    bool asked_ = false;      // inbox_mutex_
    errand_list batch_;       // turn_mutex_
    std::unique_ptr<bell> loop_bell_;
    std::unique_ptr<bell> work_bell_;
    std::atomic<bool> parked_{false};
    std::atomic<bool> watching_{false}; // the parked loop sleeps on descriptors too
    std::atomic<bool> at_work_{false};  // a caller sleeps with the turn lock
    std::atomic<bool> solo_{false};
    std::atomic<bool> worked_{false};              // a caller has been at work since the loop looked
    std::atomic<mono_ms> company_until_{0};        // callers leave the work to the loop
    std::atomic<mono_ms> park_until_{-forever_ms}; // when the parked loop wakes by itself
    std::atomic<bool> idle_{true};                 // nothing went on at the end of the last turn
    std::atomic<bool> stopping_{false};
    std::atomic<bool> threaded_{false};
    std::atomic<mono_ms> next_due_{forever_ms}; // written under turn_mutex_
};

} // namespace stn
