// SPDX-License-Identifier: MIT
#include "child.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exit_code.hpp"
#include "report.hpp"
#include "text.hpp"

namespace cli {

namespace {

int judge(const std::string& path) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return errno;
    return S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0 ? 0 : EACCES;
}

std::vector<std::string> environment_with(const child::variables& more) {
    std::vector<std::string> out;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const auto name = text.substr(0, text.find('='));
        if (std::ranges::none_of(more, [&](const auto& one) { return one.first == name; })) out.emplace_back(text);
    }
    for (const auto& [name, value] : more) out.push_back(name + "=" + value);
    return out;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> out;
    for (const auto& word : words) out.push_back(const_cast<char*>(word.c_str()));
    out.push_back(nullptr);
    return out;
}

} // namespace

void cannot_run(const std::string& program, int why) {
    throw failure(why == ENOENT ? exit_not_found : exit_not_executable, "cannot_run",
                  in_quotes(program) + " cannot be run: " + std::strerror(why));
}

bool child::at_terminal() {
    const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return false;
    const bool ours = ::tcgetpgrp(terminal) == ::getpgrp();
    ::close(terminal);
    return ours;
}

int child::missing(const std::string& program) {
    if (program.find('/') != std::string::npos) return judge(program);
    const char* path = std::getenv("PATH");
    if (path == nullptr) return 0; // execvp has a default of its own
    int worst = ENOENT;
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        const int said = judge((folder.empty() ? "." : folder) + "/" + program);
        if (said == 0) return 0;
        if (said == EACCES) worst = EACCES;
    }
    return worst;
}

child::child(const std::vector<std::string>& command, const variables& more, const signals& ours, bool share_group)
    : shares_group_(share_group) {
    const auto environment = environment_with(more);
    const auto words = pointers(command);
    const auto variables_of = pointers(environment);
    int word[2]; // closed by exec, or what it failed with
    if (::pipe2(word, O_CLOEXEC) != 0) throw failure(exit_internal, "internal", "no descriptor is left");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) { // other threads were not copied: nothing here may take a lock or allocate
        if (!share_group) ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) ::_exit(exit_signal + SIGTERM); // it died before that
        ours.undo();
        ::execvpe(words[0], words.data(), variables_of.data());
        const int why = errno;
        static_cast<void>(!::write(word[1], &why, sizeof why));
        ::_exit(exit_not_found);
    }
    const int forked = errno;
    ::close(word[1]);
    int why = 0;
    ssize_t heard = 0;
    if (pid_ > 0) {
        if (!share_group) ::setpgid(pid_, pid_); // whoever of the two is first
        do heard = ::read(word[0], &why, sizeof why);
        while (heard < 0 && errno == EINTR);
    }
    ::close(word[0]);
    if (pid_ < 0)
        throw failure(exit_internal, "internal", std::string("no process could be made: ") + std::strerror(forked));
    if (heard != sizeof why) return;
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    cannot_run(command.front(), why);
}

void child::send(int number) const {
    if (!shares_group_) {
        ::kill(-pid_, number);
    } else if (!how_) {
        ::kill(pid_, number);
    }
}

std::optional<int> child::ended() {
    int how = 0;
    if (!how_ && ::waitpid(pid_, &how, WNOHANG) == pid_) how_ = how;
    return how_;
}

bool child::group_lives() const {
    return !shares_group_ && ::kill(-pid_, 0) == 0;
}

} // namespace cli
