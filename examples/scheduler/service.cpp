// SPDX-License-Identifier: MIT
#include "service.hpp"

#include <thread>

namespace scheduler {
namespace {

using namespace std::chrono_literals;

constexpr const char* job_name = "nightly report";

std::string reason_name(std::int32_t reason) {
    switch (reason) {
#define SCHEDULER_CASE(number, NAME, name, text) \
    case number: return #name;
        STN_REASON_MAP(SCHEDULER_CASE)
#undef SCHEDULER_CASE
    default: return "unknown";
    }
}

std::string options(const std::string& prefix) {
    // An example runs on machines that do other work: one that waits for its turn is not a store that is down.
    return R"({"command_timeout": "1s", "prefix": ")" + prefix + "\"}";
}

} // namespace

Service::Service(const std::string& store, const std::string& prefix, Channel& stage)
    : store_(store, options(prefix).c_str()),
      stage_(stage) {
    store_.ready();
    tell(Happening::ready);
}

void Service::tell(Happening what, std::int64_t fence, std::int64_t slot_ms, bool held, const std::string& text) {
    stage_.send(line_of({what, now_ns(), fence, slot_ms, held, text, 0}));
}

// Every instance asks for every slot; one of them gets it. Who does not is told when the next one begins.
void Service::work(const Ticks& work) {
    const auto until = std::chrono::steady_clock::now() + work.shift;
    while (std::chrono::steady_clock::now() < until) {
        try {
            stanchion::no_tick why;
            if (const auto run = stanchion::try_tick(store_, job_name, {.every = work.every}, &why)) {
                tell(Happening::begins, run->fence(), run->slot().count());
                std::this_thread::sleep_for(work.job);
                run->done();
                tell(Happening::ends, run->fence(), run->slot().count());
            } else {
                tell(Happening::taken, 0, 0, false, reason_name(why.reason));
                std::this_thread::sleep_for(why.left);
            }
        } catch (const stanchion::error& error) {
            tell(Happening::trouble, 0, 0, false, std::string(error.name()) + ": " + error.what());
            std::this_thread::sleep_for(50ms);
        }
    }
}

// The job writes when it begins and when it ends, as jobs do. It should ask held() before the second time; it does not,
// so that one can see what becomes of it.
void Service::work(const Locked& work) {
    for (int job = 0; job < work.times; ++job) {
        tell(Happening::asks);
        const stanchion::lock mine(store_, job_name,
                                   {.ttl = work.ttl, .wait = stanchion::for_ever, .renew = work.renew});
        tell(Happening::begins, mine.fence(), 0, mine.held());
        std::thread watch([&] {
            mine.wait_lost();
            if (mine.state() == STN_LOCK_LOST) tell(Happening::lost, mine.fence(), 0, false, reason_name(mine.loss()));
        });
        tell(Happening::writes, mine.fence(), 0, mine.held());
        std::this_thread::sleep_for(work.job);
        tell(Happening::writes, mine.fence(), 0, mine.held());
        tell(Happening::ends, mine.fence(), 0, mine.held());
        try {
            mine.release();
        } catch (const stanchion::error& error) {
            if (error.code() != STN_LOST) tell(Happening::trouble, mine.fence(), 0, false, error.what());
        }
        watch.join();
    }
}

} // namespace scheduler
