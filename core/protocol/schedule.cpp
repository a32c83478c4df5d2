// SPDX-License-Identifier: MIT
#include "protocol/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace stn::schedule {

namespace {

std::int64_t between(std::int64_t low, std::int64_t high, draws& draw) {
    return low + static_cast<std::int64_t>(draw.unit() * static_cast<double>(high - low));
}

std::int64_t stretched(std::int64_t span_ms, double by) {
    return span_ms + static_cast<std::int64_t>(static_cast<double>(span_ms) * by);
}

} // namespace

lifetime jittered(std::int64_t ttl_ms, std::int64_t soft_ttl_ms, double jitter, draws& draw) {
    const double by = jitter * draw.unit();
    const bool has_soft = soft_ttl_ms > 0 && soft_ttl_ms < ttl_ms;
    return {std::max<std::int64_t>(1, stretched(ttl_ms, by)), has_soft ? stretched(soft_ttl_ms, by) : 0};
}

std::int64_t lease_length(const fill_policy& policy, std::int64_t expected_load_ms) {
    if (policy.lease_ms > 0) return policy.lease_ms;
    if (expected_load_ms <= 0) return 10'000;
    return std::clamp<std::int64_t>(3 * expected_load_ms, 1'000, 10'000);
}

mono_ms safe_until(mono_ms sent, std::int64_t ttl_ms) {
    return sent + ttl_ms - (2 + ttl_ms / 100);
}

std::int64_t renew_after(std::int64_t lease_ms) {
    return std::max<std::int64_t>(1, lease_ms / 3);
}

std::int64_t renew_retry(std::int64_t lease_ms) {
    return std::max<std::int64_t>(1, lease_ms / 12);
}

std::int64_t first_look(std::int64_t finish_in_ms, std::int64_t pttl_ms, draws& draw) {
    std::int64_t in = between(250, 500, draw);
    if (finish_in_ms > 0) in = std::min(in, finish_in_ms);
    if (pttl_ms >= 0) in = std::min(in, pttl_ms + 1);
    return std::max(look_floor_ms, in);
}

std::int64_t next_look(int looks, std::int64_t pttl_ms, draws& draw) {
    const double grown = std::pow(1.5, std::min(looks, 8));
    const auto high = std::min<std::int64_t>(200, static_cast<std::int64_t>(75 * grown));
    const auto low = std::min<std::int64_t>(high / 2, static_cast<std::int64_t>(25 * grown));
    std::int64_t in = between(low, high, draw);
    if (pttl_ms >= 0) in = std::min(in, pttl_ms + 1);
    return std::max(look_floor_ms, in);
}

std::int64_t default_wait(const fill_policy& policy, std::int64_t expected_load_ms) {
    if (policy.wait_ms >= 0) return policy.wait_ms;
    return std::max<std::int64_t>(10'000, 2 * expected_load_ms);
}

bool early(server_ms now, server_ms soft_at, std::uint32_t delta_ms, double beta, draws& draw) {
    if (beta <= 0 || delta_ms == 0) return false;
    const double ahead = static_cast<double>(delta_ms) * beta * -std::log(draw.unit());
    return static_cast<double>(soft_at - now) <= ahead;
}

std::int64_t write_retry(int attempt, draws& draw) {
    const std::int64_t high = std::min<std::int64_t>(200, std::int64_t{10} << std::min(attempt, 5));
    return between(5, high, draw);
}

std::int64_t refused_pause(int attempt, bool slowly, draws& draw) {
    if (!slowly) return between(50, 200, draw);
    const std::int64_t high = std::min<std::int64_t>(1'000, std::int64_t{100} << std::clamp(attempt, 1, 4));
    return between(high / 2, high, draw);
}

std::int64_t breaker_pause(int times_open, draws& draw) {
    const std::int64_t high = std::min<std::int64_t>(10'000, std::int64_t{1'000} << std::min(times_open, 4));
    return between(high / 2, high, draw);
}

std::int64_t reconnect_pause(int failures, draws& draw) {
    const std::int64_t high = std::min<std::int64_t>(5'000, std::int64_t{50} << std::min(failures, 7));
    return between(0, high, draw);
}

std::int64_t lock_renew_after(std::int64_t ttl_ms, draws& draw) {
    const std::int64_t third = renew_after(ttl_ms);
    return std::max<std::int64_t>(1, between(third - third / 4, third, draw));
}

std::int64_t lock_renew_patience(std::int64_t ttl_ms, std::int64_t command_timeout_ms) {
    return std::clamp<std::int64_t>(ttl_ms / 6, 1, std::max<std::int64_t>(1, command_timeout_ms));
}

std::int64_t lock_look(int looks, std::int64_t pttl_ms, draws& draw) {
    const std::int64_t in = next_look(looks, -1, draw);
    return pttl_ms < 0 ? in : std::min(in, pttl_ms + 1 + between(0, 10, draw));
}

std::int64_t lock_try_after(int seen, double turn) {
    constexpr double most_steps = 25;
    const double steps = std::ceil(turn - seen - 0.5);
    return static_cast<std::int64_t>(std::clamp(steps, 0.0, most_steps)) * lock_step_ms;
}

double lock_turn(double before, int seen) {
    const double bounded = std::min<double>(seen, 2 * before + 2); // one who had starved is no measure
    return before + (bounded - before) / 4;
}

std::int64_t average(std::int64_t before_ms, std::int64_t load_ms) {
    load_ms = std::max<std::int64_t>(1, load_ms);
    return before_ms == 0 ? load_ms : (3 * before_ms + load_ms + 3) / 4;
}

} // namespace stn::schedule
