// SPDX-License-Identifier: MIT
#include "server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stanchion/stanchion.hpp>

#include "crew.hpp"

namespace scheduler {
namespace {

int free_port() {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    bool got = fd >= 0 && ::bind(fd, any, size) == 0 && ::getsockname(fd, any, &size) == 0;
    if (fd >= 0) ::close(fd);
    if (!got) throw CouldNotRun("there is no free port");
    return ntohs(address.sin_port);
}

} // namespace

Server::Server() {
    std::string name = (std::filesystem::temp_directory_path() / "scheduler-XXXXXX").string(); // NOLINT
    if (::mkdtemp(name.data()) == nullptr) throw CouldNotRun("there is no room for a temporary folder");
    folder_ = name;
    for (int attempt = 0; attempt < 5; ++attempt) {
        if (starts()) return;
        stop();
    }
    std::filesystem::remove_all(folder_);
    throw CouldNotRun("redis-server does not start. Install one, name it by STN_REDIS_SERVER, or give --store");
}

Server::~Server() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

// Somebody else may take the port between the question and the server.
bool Server::starts() {
    port_ = free_port();
    const char* said = std::getenv("STN_REDIS_SERVER");
    std::string program = said != nullptr && *said != '\0' ? said : "redis-server";
    std::string port = std::to_string(port_);
    std::string folder = folder_.string();
    const char* words[] = {program.c_str(), "--bind", "127.0.0.1", "--port",       port.c_str(), "--save", "",
                           "--appendonly",  "no",     "--dir",     folder.c_str(), nullptr};
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) { // from here on nothing that could take a lock
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);
        int nothing = ::open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= 2; ++fd) ::dup2(nothing, fd);
        ::execvp(words[0], const_cast<char* const*>(words));
        ::_exit(127);
    }
    if (pid_ < 0) return false;
    const std::int64_t limit = now_ns() + 10'000'000'000;
    while (now_ns() < limit && running()) {
        try {
            stanchion::client(url()).ready(500);
            return running();
        } catch (const stanchion::error&) {
            ::usleep(10'000);
        }
    }
    return false;
}

bool Server::running() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
    return pid_ > 0;
}

void Server::stop() {
    if (!running()) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

} // namespace scheduler
