// SPDX-License-Identifier: MIT
#include "contest.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_lock.hpp"
#include "timed.hpp"

namespace stn::bench {

namespace {

class contestant {
  public:
    explicit contestant(std::vector<std::string> words) {
        int to[2];
        int from[2];
        if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) give_up("no pipe");
        pid_ = ::fork();
        if (pid_ < 0) give_up("no process");
        if (pid_ == 0) {
            ::dup2(to[0], 0);
            ::dup2(from[1], 1);
            std::vector<char*> argv;
            for (std::string& w : words) argv.push_back(w.data());
            argv.push_back(nullptr);
            ::execvp(argv[0], argv.data());
            ::_exit(127);
        }
        ::close(to[0]);
        ::close(from[1]);
        in_ = ::fdopen(to[1], "w");
        out_ = ::fdopen(from[0], "r");
    }
    ~contestant() {
        std::fclose(in_);
        std::fclose(out_);
        ::waitpid(pid_, nullptr, 0);
    }
    contestant(const contestant&) = delete;
    contestant& operator=(const contestant&) = delete;

    void tell(const char* what) {
        std::fputs(what, in_);
        std::fflush(in_);
    }
    std::string line() {
        std::string text;
        for (int c = std::fgetc(out_); c != '\n'; c = std::fgetc(out_)) {
            if (c == EOF) give_up("a contestant ended before its time");
            text.push_back(static_cast<char>(c));
        }
        return text;
    }

  private:
    pid_t pid_ = -1;
    FILE* in_ = nullptr;
    FILE* out_ = nullptr;
};

double at(const std::vector<double>& sorted, double share) {
    if (sorted.empty()) return 0;
    return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

} // namespace

contest_result run_contest(const std::vector<std::string>& program, const contest& how) {
    std::vector<std::string> words = program;
    for (const std::string& w :
         {std::string("--hold-us"), std::to_string(how.hold_us), std::string("--ms"), std::to_string(how.ms)}) {
        words.push_back(w);
    }
    std::vector<std::unique_ptr<contestant>> all;
    for (int i = 0; i < how.processes; ++i) all.push_back(std::make_unique<contestant>(words));
    for (const auto& c : all) {
        if (c->line() != "ready") give_up("a contestant did not get ready");
    }
    for (const auto& c : all) c->tell("go\n");
    std::vector<double> waits;
    contest_result r;
    r.least = SIZE_MAX;
    for (const auto& c : all) {
        std::istringstream text(c->line());
        std::size_t n = 0;
        for (double us = 0; text >> us; ++n) waits.push_back(us / 1'000);
        r.least = std::min(r.least, n);
        r.most = std::max(r.most, n);
    }
    std::ranges::sort(waits);
    r.per_second = static_cast<double>(waits.size()) * 1'000 / how.ms;
    r.p50_ms = at(waits, 0.5);
    r.p99_ms = at(waits, 0.99);
    r.longest_ms = at(waits, 1);
    return r;
}

void be_contestant(const std::string& url, int hold_us, int ms) {
    using clock = std::chrono::steady_clock;
    using std::chrono::milliseconds;
    stn_client* const client = open_client(url);
    std::vector<long> waits;
    {
        one_lock lock(client, "contended");
        std::puts("ready");
        std::fflush(stdout);
        if (std::getchar() == EOF) give_up("nobody said go");
        const auto from = clock::now() + milliseconds(ms / 10); // they have met by then
        const auto until = from + milliseconds(ms);
        for (auto asked = clock::now(); asked < until; asked = clock::now()) {
            lock.take();
            const auto got = clock::now();
            if (asked >= from)
                waits.push_back(std::chrono::duration_cast<std::chrono::microseconds>(got - asked).count());
            if (hold_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(hold_us));
            lock.give_back();
        }
    }
    close_client(client);
    for (const long us : waits) std::printf("%ld ", us);
    std::puts("");
}

} // namespace stn::bench
