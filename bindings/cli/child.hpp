// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "signals.hpp"

namespace cli {

/*
 * The command, and what it starts.
 *
 * In which process group? There is no one right answer, so there are two.
 *
 *   At a terminal, in its foreground: in ours. Ctrl-C, Ctrl-Z and fg reach both of us at once, the command may read the
 *   terminal, and a pipeline behind us goes on. What the kernel has sent to the group is not passed on a second time
 *   (but SIGHUP, which it may have sent to us alone).
 *   Stopped by Ctrl-Z we renew nothing: the lock ends after its ttl, and after fg the command is told so.
 *   To stop it, only the command itself can be signalled: the group is our caller's, too.
 *
 *   Anywhere else (cron, systemd, CI, a background job): in a group of its own, and signals go to the whole of it.
 *   That is where nobody watches, and a lost lock must end `sh -c 'dump | upload'` with all of its processes. With us
 *   in SIGTSTP's place it stops first, and goes on when we do.
 *
 * Should this process die without a word (kill -9), the kernel sends the command SIGTERM: PR_SET_PDEATHSIG. It reaches
 * the command itself only, and not one that is setuid; the lock ends after its ttl, as for any host that has died.
 */
class child {
  public:
    // Whether it would share our group.
    [[nodiscard]] static bool at_terminal();
    // What execvp would say of it now: 0, ENOENT, EACCES, ... For who must not take a lock in vain.
    [[nodiscard]] static int missing(const std::string& program);

    using variables = std::vector<std::pair<std::string, std::string>>; // more for its environment
    // Throws failure, with the code of a shell.
    child(const std::vector<std::string>& command, const variables& more, const signals& ours, bool share_group);
    ~child() = default;
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    void send(int number) const;
    [[nodiscard]] std::optional<int> ended(); // how, for WIFEXITED
    [[nodiscard]] bool group_lives() const;   // of what it started, in its own group

  private:
    pid_t pid_ = -1;
    const bool shares_group_;
    std::optional<int> how_;
};

// Of a command that cannot be run.
[[noreturn]] void cannot_run(const std::string& program, int why);

} // namespace cli
