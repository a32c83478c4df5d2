// SPDX-License-Identifier: MIT
#include "holder.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "database.hpp"
#include "shop.hpp"

namespace fence {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int tell_fd = 3;

void tell(const json& what) {
    const std::string line = what.dump() + "\n";
    if (::write(tell_fd, line.data(), line.size()) < 0) ::_exit(1);
}

} // namespace

stanchion::client open_store(const Places& places) {
    const std::string options = R"({"command_timeout": "1s", "prefix": ")" + places.prefix + "\"}";
    stanchion::client store(places.store, options.c_str());
    store.ready();
    return store;
}

std::string reason_name(std::int32_t reason) {
    switch (reason) {
#define FENCE_CASE(number, NAME, name, text) \
    case number: return #name;
        STN_REASON_MAP(FENCE_CASE)
#undef FENCE_CASE
    default: return "unknown";
    }
}

int run_holder(const std::vector<std::string>& words) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        const Places places{words.at(0), words.at(1), words.at(2), words.at(3) == "guarded"};
        const stanchion::client store = open_store(places);
        Database database(places.database);
        Shop shop(database, places.guarded);

        bool sold = false;
        {
            const stanchion::lock mine(store, lock_name, {.ttl = 1s}); // and renewed
            const std::int64_t found = shop.enter(mine.fence()).value();
            tell({{"fence", mine.fence()}, {"found", found}});
            if (!mine.held()) return 1;
            ::raise(SIGSTOP); // asked at the last moment, and still too early
            {
                Transaction transaction(database);
                sold = shop.sell(mine.fence(), 1, found - 1, "A");
                if (sold) transaction.commit();
            }
            const bool held = mine.held();
            mine.wait_lost(5s);
            tell({{"sold", sold}, {"held", held}, {"loss", reason_name(mine.loss())}});
        }
        if (sold) return 0;
        const stanchion::lock again(store, lock_name, {.ttl = 1s});
        Transaction transaction(database);
        const std::int64_t found = shop.enter(again.fence()).value();
        sold = shop.sell(again.fence(), 1, found - 1, "A");
        transaction.commit();
        tell({{"sold", sold}, {"found", found}});
        return 0;
    } catch (const std::exception& error) {
        tell({{"error", error.what()}});
        return 1;
    }
}

Holder::Holder(const Places& places) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("there is no pipe left");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], tell_fd);
    std::vector<std::string> words{"fence",       holder_word,     places.store,
                                   places.prefix, places.database, places.guarded ? "guarded" : "unguarded"};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, "/proc/self/exe", &files, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    ::close(ends[1]);
    told_ = ::fdopen(ends[0], "r");
    if (failed != 0 || told_ == nullptr) throw std::runtime_error("the holder cannot be started");
}

Holder::~Holder() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    if (told_ != nullptr) std::fclose(told_);
}

json Holder::hear() {
    std::array<char, 1'024> line{};
    if (std::fgets(line.data(), static_cast<int>(line.size()), told_) == nullptr) {
        throw std::runtime_error("the holder has ended");
    }
    json what = json::parse(line.data());
    if (what.contains("error")) throw std::runtime_error("the holder: " + what["error"].get<std::string>());
    return what;
}

void Holder::wait_until_paused() {
    int how = 0;
    if (::waitpid(pid_, &how, WUNTRACED) != pid_ || !WIFSTOPPED(how)) {
        pid_ = -1;
        throw std::runtime_error("the holder has ended");
    }
}

void Holder::go_on() {
    ::kill(pid_, SIGCONT);
}

} // namespace fence
