// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <optional>

namespace cli {

struct signal_seen {
    int number = 0;
    bool from_terminal = false; // the kernel has sent it to the whole foreground group
};

// The signals that are passed on to the command, and SIGCHLD, as a descriptor. Made before the first thread, which
// inherits what is blocked. A signal that was ignored when this program began (nohup) is left alone: the command
// ignores it too.
class signals {
  public:
    // `with_job_control`: SIGTSTP and SIGCONT too; otherwise they do what they do.
    explicit signals(bool with_job_control);
    ~signals();
    signals(const signals&) = delete;
    signals& operator=(const signals&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] std::optional<signal_seen> next() const; // does not block
    // For the child between fork and exec, and for who ends by a signal: as it was when this program began.
    void undo() const noexcept;

  private:
    sigset_t before_{};
    struct sigaction pipe_before_{};
    int fd_ = -1;
};

// Ends this program by a signal, as far as that goes; else with its exit code.
[[noreturn]] void die_of(int number);

} // namespace cli
