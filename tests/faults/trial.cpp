// SPDX-License-Identifier: MIT
#include "trial.hpp"

#include <new>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "guard.hpp"

namespace faults {

namespace {

std::string_view armed_entry; // "": none
thrown armed_with = thrown::none;
bool was_thrown = false;

void hook(const char* entry) {
    if (armed_entry != entry) return;
    was_thrown = true;
    switch (armed_with) {
    case thrown::none: break;
    case thrown::bad_alloc: throw std::bad_alloc();
    case thrown::runtime_error: throw std::runtime_error("boom");
    case thrown::number: throw 42;
    }
}

} // namespace

trial trial::throwing(thrown what) {
    trial t;
    t.what_ = what;
    return t;
}

trial trial::without_memory(std::uint64_t nth, outage how) {
    trial t;
    t.nth_ = nth;
    t.how_ = how;
    return t;
}

void trial::arm(std::string_view entry) {
    made_ = true;
    if (nth_ != 0) {
        memory::fail(nth_, how_);
        return;
    }
    armed_entry = entry;
    armed_with = what_;
    was_thrown = false;
    stn::test_fault = hook;
}

void trial::disarm() {
    if (nth_ != 0) {
        bitten_ = memory::back();
        return;
    }
    armed_entry = {};
    stn::test_fault = nullptr;
    bitten_ = was_thrown;
}

void trial::judge(std::int32_t code, bool tells, const stn_error* err) const {
    const bool of_memory = what_ == thrown::none || what_ == thrown::bad_alloc;
    CHECK(code == (of_memory ? STN_NO_MEMORY : STN_INTERNAL));
    if (!tells) return;
    REQUIRE(err != nullptr);
    CHECK(stn_error_code(err) == code);
    const std::string_view message = stn_error_message(err);
    CHECK(!message.empty());
    if (what_ == thrown::runtime_error) CHECK(message.find("boom") != std::string_view::npos);
}

void trial::make(std::string_view entry, const call& it, const check& cleared, std::int32_t wanted) {
    stn_error* err = nullptr;
    arm(entry);
    std::int32_t code = it(&err);
    disarm();
    if (what_ != thrown::none) CHECK_MESSAGE(bitten_, entry, " is not guarded");
    // A fault that the call has got over is fine: it did what it should.
    if (bitten_ && (code != wanted || what_ != thrown::none)) {
        judge(code, true, err);
        if (cleared) CHECK_MESSAGE(cleared(), entry, " leaves something in an out parameter");
        if (unchanged_) CHECK_MESSAGE(unchanged_(), entry, " has changed something");
        stn_error_free(err);
        code = it(&err);
    }
    CHECK_MESSAGE(code == wanted, entry, ": ", std::string(stn_error_message(err)));
    CHECK((err == nullptr) == (wanted == STN_OK));
    stn_error_free(err);
}

void trial::make_mute(std::string_view entry, const std::function<std::int32_t()>& it, const check& cleared) {
    arm(entry);
    std::int32_t code = it();
    disarm();
    if (what_ != thrown::none) CHECK_MESSAGE(bitten_, entry, " is not guarded");
    if (code != STN_OK) {
        judge(code, false, nullptr);
        if (cleared) CHECK_MESSAGE(cleared(), entry, " leaves something in an out parameter");
        if (unchanged_) CHECK_MESSAGE(unchanged_(), entry, " has changed something");
        code = it();
    }
    CHECK_MESSAGE(code == STN_OK, entry);
}

void trial::make_quiet(std::string_view entry, const std::function<bool()>& gives) {
    arm(entry);
    bool given = gives();
    disarm();
    if (what_ != thrown::none) CHECK_MESSAGE((bitten_ && !given), entry, " is not guarded");
    if (!given) {
        CHECK(bitten_);
        given = gives();
    }
    CHECK_MESSAGE(given, entry);
}

void trial::make_silent(std::string_view entry, const std::function<void()>& it) {
    arm(entry);
    it();
    disarm();
}

} // namespace faults
