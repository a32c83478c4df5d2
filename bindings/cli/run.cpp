// SPDX-License-Identifier: MIT
#include "run.hpp"

#include <algorithm>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "exit_code.hpp"
#include "report.hpp"

namespace cli {

namespace {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds group_look(20); // at processes that are not ours to wait for

ending read_end(int how) {
    ending out;
    out.signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    out.exit = out.signal != 0 ? exit_signal + out.signal : WEXITSTATUS(how);
    return out;
}

void pass_on(const signal_seen& seen, const child& command, bool share_group) {
    if (seen.number == SIGCHLD) return;
    // A terminal that is gone is told to the leader of its session only, which may be us.
    if (share_group && seen.from_terminal && seen.number != SIGHUP) return;
    command.send(seen.number);
    if (seen.number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
}

// A command that has to stop: SIGTERM (and SIGCONT, should it be stopped), then SIGKILL.
class stopping {
  public:
    stopping(const child& command, milliseconds grace) : until_(steady::now() + grace) {
        command.send(SIGTERM);
        command.send(SIGCONT);
    }
    void look(const child& command) {
        if (killed_ || steady::now() < until_) return;
        command.send(SIGKILL);
        killed_ = true;
    }
    [[nodiscard]] bool killed() const { return killed_; }
    [[nodiscard]] milliseconds left() const {
        return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(until_ - steady::now()));
    }

  private:
    const steady::time_point until_;
    bool killed_ = false;
};

} // namespace

runner::runner(const options& given, bool shares_group)
    : given_(given),
      shares_group_(shares_group),
      grace_(duration_ms("--grace", given.grace)) {
    if (const int why = child::missing(given.command.front())) cannot_run(given.command.front(), why);
}

runner::result runner::run(session& store, const child::variables& more,
                           const std::function<bool(const stn_event*)>& on_event) const {
    child program(given_.command, more, store.from_outside(), shares_group_);
    std::optional<stopping> end;
    for (;;) {
        while (const auto event = store.next()) {
            if (on_event(event.get()) && !end) end.emplace(program, grace_);
        }
        while (const auto seen = store.from_outside().next()) pass_on(*seen, program, shares_group_);
        const auto how = program.ended();
        if (how && (!end || end->killed() || !program.group_lives())) return {read_end(*how), end.has_value()};
        if (end) end->look(program);
        if (how) {
            store.sleep(group_look);
        } else {
            store.sleep(end && !end->killed() ? end->left() + milliseconds(1) : milliseconds(-1));
        }
    }
}

} // namespace cli
