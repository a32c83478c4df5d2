// SPDX-License-Identifier: MIT
#include "support/live_server.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support/ports.hpp"

namespace stn::test {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto start_patience = 30s;
constexpr auto end_patience = 30s;
constexpr auto glance = 2ms;
constexpr int most_races = 20;
constexpr std::size_t log_shown = 2'000;
constexpr std::string_view lost_race = "Failed listening on port";

bool executable(const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path);
}

std::optional<std::string> in_path(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (const auto found = folder + "/" + name; executable(found)) return found;
    }
    return std::nullopt;
}

// Between fork and exec nothing may be called that takes a lock.
[[noreturn]] void become(const char* program, const char* config, int log, pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127); // too late to be told of its death
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::close_range(3, ~0U, 0);
    const char* words[] = {program, config, nullptr};
    ::execv(program, const_cast<char* const*>(words));
    ::_exit(127);
}

} // namespace

std::string_view server_name(server_kind kind) noexcept {
    return kind == server_kind::redis ? "redis" : "valkey";
}

std::string server_program(server_kind kind) {
    const std::string variable = kind == server_kind::redis ? "STN_REDIS_SERVER" : "STN_VALKEY_SERVER";
    const std::string name = std::string(server_name(kind)) + "-server";
    if (const char* said = std::getenv(variable.c_str()); said != nullptr && *said != '\0') {
        if (executable(said)) return said;
        throw std::runtime_error(variable + " is " + said + ", which is no program");
    }
    if (auto found = in_path(name)) return *found;
    const std::string deps = STN_SOURCE_DIR "/build/deps/";
    const std::string fetched =
        deps + (kind == server_kind::redis ? "redis/redis-server" : "valkey/usr/bin/valkey-server");
    if (executable(fetched)) return fetched;
    const std::string bootstrap = "packaging/bootstrap_" + std::string(server_name(kind)) + ".sh";
    throw std::runtime_error("this test needs " + name + ": install it, set " + variable + " or run " + bootstrap);
}

live_server::live_server(server_kind kind, live_options options)
    : kind_(kind),
      options_(std::move(options)),
      program_(server_program(kind)) {
    for (int race = 0; race < most_races; ++race) {
        port_ = free_port();
        do tls_port_ = options_.tls ? free_port() : std::uint16_t{0};
        while (tls_port_ == port_);
        if (got_its_ports()) return;
    }
    give_up("loses every race for a port");
}

live_server::~live_server() {
    kill9();
}

std::string live_server::url() const {
    const std::string user = options_.password.empty() ? "" : ":" + options_.password + "@";
    return "redis://" + user + "127.0.0.1:" + std::to_string(port_);
}

std::string live_server::tls_url() const {
    const std::string user = options_.password.empty() ? "" : ":" + options_.password + "@";
    return "rediss://" + user + "localhost:" + std::to_string(tls_port_);
}

std::string live_server::unix_url() const {
    const std::string user = options_.password.empty() ? "" : ":" + options_.password + "@";
    return "unix://" + user + socket();
}

std::string live_server::log() const {
    std::ifstream file(folder_.file("log"));
    std::ostringstream all;
    all << file.rdbuf();
    const std::string text = all.str();
    return text.size() <= log_shown ? text : text.substr(text.size() - log_shown);
}

void live_server::give_up(const std::string& what) const {
    throw std::runtime_error(program_ + " " + what + "; the end of its log:\n" + log());
}

void live_server::write_config() const {
    std::ofstream file(folder_.file("conf"));
    file << "bind 127.0.0.1\nport " << port_ << "\nunixsocket " << socket() << "\ndir " << folder_.path().string()
         << "\ndaemonize no\nsave \"\"\nappendonly no\n";
    if (!options_.password.empty()) file << "requirepass " << options_.password << "\n";
    if (options_.tls) {
        file << "tls-port " << tls_port_ << "\ntls-cert-file " << options_.tls->shown.certificate << "\ntls-key-file "
             << options_.tls->shown.key << "\n";
        if (options_.tls->client_ca.empty())
            file << "tls-auth-clients no\n";
        else
            file << "tls-auth-clients yes\ntls-ca-cert-file " << options_.tls->client_ca << "\n";
    }
    for (const std::string& line : options_.config) file << line << "\n";
    file.close();
    if (!file) throw std::runtime_error("the configuration of a test's server cannot be written");
}

void live_server::spawn() {
    write_config();
    const std::string config = folder_.file("conf");
    const int log = ::open(folder_.file("log").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) become(program_.c_str(), config.c_str(), log, parent);
    ::close(log);
    if (child < 0) throw std::runtime_error("no process for a test's server");
    pid_ = child;
}

bool live_server::running() {
    if (pid_ < 0) return false;
    int ignored = 0;
    if (::waitpid(pid_, &ignored, WNOHANG) == 0) return true;
    pid_ = -1;
    return false;
}

bool live_server::ready() {
    try {
        if (!admin_) admin_ = connect();
        const reply answer = admin_->ask({"PING"});
        return answer.kind == reply_kind::status && answer.text == "PONG";
    } catch (const std::runtime_error&) {
        admin_.reset();
        return false;
    }
}

void live_server::start_without_waiting() {
    if (pid_ >= 0) throw std::runtime_error("this test's server runs already");
    admin_.reset();
    spawn();
}

void live_server::wait_until_ready() {
    const auto until = steady::now() + start_patience;
    while (!ready()) {
        if (!running()) give_up("ended at its start");
        if (steady::now() > until) give_up("does not answer PING");
        std::this_thread::sleep_for(glance);
    }
}

// False: somebody else has them.
bool live_server::got_its_ports() {
    start_without_waiting();
    try {
        wait_until_ready();
        return true;
    } catch (const std::runtime_error&) {
        kill9();
        if (log().find(lost_race) == std::string::npos) throw;
        return false;
    }
}

void live_server::start() {
    const auto until = steady::now() + start_patience;
    while (!got_its_ports()) {
        if (steady::now() > until) give_up("does not get its ports back");
        std::this_thread::sleep_for(glance);
    }
}

void live_server::await_end(std::chrono::seconds at_most) {
    const auto until = steady::now() + at_most;
    while (running()) {
        if (steady::now() > until) give_up("does not end");
        std::this_thread::sleep_for(glance);
    }
    admin_.reset();
}

void live_server::kill9() {
    admin_.reset();
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    int ignored = 0;
    while (::waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void live_server::stop() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGTERM);
    await_end(end_patience);
}

void live_server::restart() {
    kill9();
    start();
}

void live_server::pause() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGSTOP);
    int how = 0;
    while (::waitpid(pid_, &how, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(how)) pid_ = -1;
}

void live_server::go_on() {
    if (pid_ >= 0) ::kill(pid_, SIGCONT);
}

plain_connection live_server::connect() const {
    plain_connection made = plain_connection::to_socket(socket());
    if (!options_.password.empty()) static_cast<void>(made.ask({"AUTH", options_.password}));
    return made;
}

reply live_server::ask(const std::vector<std::string>& words) {
    try {
        if (!admin_) admin_ = connect();
        return admin_->ask(words);
    } catch (const std::runtime_error& e) {
        admin_.reset();
        give_up(std::string("cannot be asked (") + e.what() + ")");
    }
}

} // namespace stn::test
