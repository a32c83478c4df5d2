// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stanchion/stanchion.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fence {

// Where things are, for both processes.
struct Places {
    std::string store;
    std::string prefix;
    std::string database;
    bool guarded = true;
};

inline constexpr const char* holder_word = "--holder";
inline constexpr const char* lock_name = "stock of item 1";

stanchion::client open_store(const Places& places);
std::string reason_name(std::int32_t reason);

// A: a process that gets the lock, stands still just before it writes, and writes when it goes on.
int run_holder(const std::vector<std::string>& words);

// The same, seen from the process that starts it.
class Holder {
  public:
    explicit Holder(const Places& places);
    ~Holder();
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    nlohmann::json hear();    // waits for what it tells next; throws if it has ended
    void wait_until_paused(); // the whole process stands still
    void go_on();

  private:
    pid_t pid_ = -1;
    std::FILE* told_ = nullptr;
};

} // namespace fence
