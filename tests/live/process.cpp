// SPDX-License-Identifier: MIT
#include "process.hpp"

#include <cerrno>
#include <csignal>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stn::test {

process::process(std::vector<std::string> words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe to a test's process");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::signal(SIGPIPE, SIG_DFL);
        ::dup2(ends[1], 1);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
    if (pid_ < 0) throw std::runtime_error("no process for a test");
}

process::process(const std::string& what, const std::string& url, const std::string& key, int number,
                 const std::string& options, const std::string& policy)
    : process({STN_LIVE_CALLER, what, url, options, policy, key, std::to_string(number)}) {}

process::~process() {
    kill9();
    ::close(pipe_);
}

std::string process::line(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
        if (const auto end = heard_.find('\n'); end != std::string::npos) {
            const std::string out = heard_.substr(0, end);
            heard_.erase(0, end + 1);
            return out;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd p{pipe_, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) <= 0) return {};
        char bytes[4'096];
        const ssize_t n = ::read(pipe_, bytes, sizeof bytes);
        if (n <= 0) return {};
        heard_.append(bytes, static_cast<std::size_t>(n));
    }
}

std::vector<std::string> process::lines() {
    std::vector<std::string> out;
    for (std::string next = line(); !next.empty(); next = line()) out.push_back(next);
    return out;
}

void process::kill9() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    static_cast<void>(end());
}

void process::pause() {
    ::kill(pid_, SIGSTOP);
    int how = 0;
    while (::waitpid(pid_, &how, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(how)) throw std::runtime_error("a test's process ended instead of standing still");
}

void process::go_on() {
    ::kill(pid_, SIGCONT);
}

int process::end() {
    if (pid_ < 0) return status_;
    int how = 0;
    while (::waitpid(pid_, &how, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    status_ = WIFSIGNALED(how) ? -WTERMSIG(how) : WEXITSTATUS(how);
    return status_;
}

} // namespace stn::test
