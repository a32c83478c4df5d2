// SPDX-License-Identifier: MIT
#include "signals.hpp"

#include <cstdlib>

#include <sys/signalfd.h>
#include <unistd.h>

#include "exit_code.hpp"
#include "report.hpp"

namespace cli {

namespace {

constexpr int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
constexpr int of_job_control[] = {SIGTSTP, SIGCONT};

void add_unless_ignored(sigset_t& to, int number) {
    struct sigaction how{};
    ::sigaction(number, nullptr, &how);
    if (how.sa_handler != SIG_IGN) sigaddset(&to, number);
}

} // namespace

signals::signals(bool with_job_control) {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (const int number : passed_on) add_unless_ignored(ours, number);
    if (with_job_control) {
        for (const int number : of_job_control) add_unless_ignored(ours, number);
    }
    ::signal(SIGCHLD, SIG_DFL); // ignored, there would be nothing to wait for
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &pipe_before_); // nobody reads our messages: no reason to let the command go
    ::sigprocmask(SIG_BLOCK, &ours, &before_);
    fd_ = ::signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd_ < 0) throw failure(exit_internal, "internal", "no descriptor is left");
}

signals::~signals() {
    ::close(fd_);
}

std::optional<signal_seen> signals::next() const {
    signalfd_siginfo info{};
    if (::read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
    return signal_seen{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

void signals::undo() const noexcept {
    ::sigaction(SIGPIPE, &pipe_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void die_of(int number) {
    ::signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(number);
    std::_Exit(exit_signal + number);
}

} // namespace cli
