// SPDX-License-Identifier: MIT
#include "crew.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <tuple>

namespace scheduler {
namespace {

constexpr std::int64_t patience_ns = 60'000'000'000;

} // namespace

Crew::Crew(std::size_t size, const std::string& store) {
    // Each run has keys of its own, so that two of them may share a store.
    std::string prefix = "scheduler." + std::to_string(::getpid()) + "." + std::to_string(now_ns());
    try {
        while (members_.size() < size) start(opening(store, prefix));
        until_all(Happening::ready);
    } catch (...) {
        for (const Member& member : members_) ::kill(member.pid, SIGKILL);
        for (const Member& member : members_) ::waitpid(member.pid, nullptr, 0);
        throw;
    }
}

Crew::~Crew() {
    for (const Member& member : members_) ::kill(member.pid, SIGKILL);
    for (const Member& member : members_) ::waitpid(member.pid, nullptr, 0);
}

void Crew::start(const std::string& opening) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw CouldNotRun("there are no sockets left");
    Channel ours(ends[0]);
    Channel theirs(ends[1]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, theirs.fd(), instance_fd);
    std::string program = "scheduler";
    std::string word = instance_word;
    char* words[] = {program.data(), word.data(), nullptr};
    pid_t pid = -1;
    int failed = ::posix_spawn(&pid, "/proc/self/exe", &files, nullptr, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw CouldNotRun("an instance cannot be started");
    ours.send(opening);
    members_.push_back({pid, std::move(ours)});
}

Journal Crew::work_by(const std::string& order) {
    for (Member& member : members_) member.channel.send(order);
    return until_all(Happening::leaves);
}

Journal Crew::until_all(Happening what) {
    Journal journal;
    std::size_t have = 0;
    const std::int64_t limit = now_ns() + patience_ns;
    while (have < members_.size()) {
        std::vector<pollfd> polled;
        for (const Member& member : members_) polled.push_back({member.channel.fd(), POLLIN, 0});
        if (now_ns() > limit) throw CouldNotRun("an instance does not come to an end");
        ::poll(polled.data(), polled.size(), 1'000);
        for (std::size_t who = 0; who < members_.size(); ++who) {
            if (polled[who].revents == 0) continue;
            Channel& channel = members_[who].channel;
            bool there = channel.listen();
            while (auto line = channel.next()) {
                journal.push_back(entry_of(*line));
                journal.back().who = who;
                if (journal.back().what == what) ++have;
            }
            if (there) continue;
            bool said = !journal.empty() && journal.back().what == Happening::trouble;
            throw CouldNotRun(said ? journal.back().text : "an instance has ended");
        }
    }
    std::sort(journal.begin(), journal.end(), [](const Entry& one, const Entry& other) {
        return std::tie(one.at_ns, one.who, one.what) < std::tie(other.at_ns, other.who, other.what);
    });
    return journal;
}

} // namespace scheduler
