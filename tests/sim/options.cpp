// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <algorithm>
#include <sstream>

#include "chance.hpp"

namespace stn::sim {

namespace {

template <class T> T one_of(dice& d, std::initializer_list<T> all) {
    return d.of(std::span<const T>(all.begin(), all.size()));
}

int& weight(options& o, fault f) {
    return o.fault_weights[static_cast<std::size_t>(f)];
}

int& weight(options& o, op_kind k) {
    return o.ops_weights[static_cast<std::size_t>(k)];
}

void draw_policy(options& o, dice& d) {
    fill_policy& p = o.policy;
    p.ttl_ms = one_of<std::int64_t>(d, {300, 1'000, 3'000, 10'000, 60'000});
    if (d.one_in(2)) p.soft_ttl_ms = std::max<std::int64_t>(20, p.ttl_ms * d.between(10, 80) / 100);
    p.absent_ttl_ms = one_of<std::int64_t>(d, {200, 2'000, 30'000});
    p.error_ttl_ms = one_of<std::int64_t>(d, {0, 50, 300, 1'000, 1'000});
    p.lease_ms = one_of<std::int64_t>(d, {0, 0, 0, 100, 300, 1'000, 3'000});
    p.wait_ms = one_of<std::int64_t>(d, {-1, -1, -1, 200, 2'000});
    p.max_load_ms = one_of<std::int64_t>(d, {60'000, 60'000, 1'500, 700, 3'000});
    p.jitter = one_of(d, {0.1, 0.0, 1.0});
    p.early = one_of(d, {1.0, 0.0, 3.0});
    p.max_loads = one_of<std::uint32_t>(d, {0, 0, 0, 1, 2, 3});
    p.max_value = 8'192;
    p.coalesce = !d.one_in(15);
    p.fleet = !d.one_in(25);
    if (p.fleet && d.one_in(15)) o.fleet_off_one_in = 4;
    o.two_codecs = d.one_in(12);
    if (p.max_load_ms < 60'000) o.load_long_one_in = static_cast<int>(d.between(10, 40));
    o.other = p;
    o.other.ttl_ms = one_of<std::int64_t>(d, {200, 1'000, 20'000});
    o.other.soft_ttl_ms = d.one_in(2) ? o.other.ttl_ms / 2 : 0;
    o.other.lease_ms = one_of<std::int64_t>(d, {0, 150, 2'000});
    o.other.wait_ms = one_of<std::int64_t>(d, {-1, 0, 300});
    o.other.error_ttl_ms = one_of<std::int64_t>(d, {0, 500});
    o.other.max_load_ms = one_of<std::int64_t>(d, {p.max_load_ms, 60'000, 2'000});
    o.other_one_in = one_of(d, {0, 0, 2, 6});
}

void draw_hosts(options& o, dice& d) {
    o.queues = static_cast<int>(d.between(1, 3));
    o.load_low_ms = d.between(1, 30);
    o.load_high_ms = o.load_low_ms + one_of<std::int64_t>(d, {5, 50, 300, 300, 800});
    o.load_slow_one_in = one_of(d, {0, 10, 30});
    o.load_absent_one_in = one_of(d, {0, 4, 20});
    o.load_fails_one_in = one_of(d, {0, 3, 15, 40});
    o.load_large_one_in = one_of(d, {0, 0, 8, 40});
    o.load_freed_one_in = one_of(d, {0, 4, 20});
    o.load_detached_one_in = one_of(d, {0, 6, 30});
    o.load_nested_one_in = one_of(d, {0, 0, 5, 30});
    o.untaken_one_in = one_of(d, {0, 8, 40});
    o.reject_one_in = one_of(d, {0, 0, 5, 30});
    o.reject_again_one_in = one_of(d, {1, 3});
    o.slow_host_one_in = one_of(d, {0, 20, 60, 150});
    o.own_ttl_one_in = one_of(d, {0, 0, 6});
}

void draw_ops(options& o, dice& d) {
    weight(o, op_kind::fetch) = 100;
    weight(o, op_kind::get) = one_of(d, {0, 5, 20});
    weight(o, op_kind::put) = one_of(d, {0, 0, 4, 10});
    weight(o, op_kind::invalidate) = one_of(d, {2, 10, 30});
    weight(o, op_kind::mark_stale) = one_of(d, {0, 5, 20});
    o.refresh_one_in = one_of(d, {0, 1, 2, 5});
    o.force_one_in = one_of(d, {0, 0, 6, 20});
    o.no_store_one_in = one_of(d, {0, 10, 40});
    o.no_wait_one_in = one_of(d, {0, 10, 40});
    o.cancel_one_in = one_of(d, {0, 6, 25});
    o.helped_one_in = one_of(d, {0, 2, 5});
}

void draw_faults(options& o, dice& d) {
    o.delay_low = one_of<micros>(d, {20, 50, 200, 2'000});
    o.delay_high = o.delay_low + one_of<micros>(d, {50, 500, 2'000, 20'000});
    o.one_stream = !d.one_in(3);
    o.split_one_in = one_of(d, {0, 2, 6});
    o.settings.command_timeout_ms = one_of<std::int64_t>(d, {250, 250, 100, 60});
    o.settings.max_loads_down = one_of<std::uint32_t>(d, {32, 32, 4, 1});
    o.fault_gap = o.span / one_of<micros>(d, {8, 20, 40, 80});
    const auto usual = [&](fault f, int w) { weight(o, f) = one_of(d, {0, w, w, 3 * w}); };
    usual(fault::delay, 12);
    usual(fault::drop, 6);
    usual(fault::late_bytes, 10);
    usual(fault::disconnect, 6);
    usual(fault::outage, 2);
    usual(fault::message_delayed, 6);
    usual(fault::message_dropped, 6);
    usual(fault::subscription_lost, 4);
    usual(fault::clock_jump, 3);
    usual(fault::foreign_delete, 6);
    usual(fault::foreign_bytes, 2);
    usual(fault::foreign_type, 2);
    usual(fault::persisted, 2);
    usual(fault::newer_format, 1);
    usual(fault::flushed, 1);
    usual(fault::out_of_memory, 2);
    usual(fault::publish_refused, 2);
    usual(fault::pause, 6);
    usual(fault::stall, 6);
    usual(fault::crash, 2);
    usual(fault::reopen, 2);
    usual(fault::queue_closed, 2);
    weight(o, fault::delay) += 1; // never all 0
    // It came later. Drawn apart, so that the pinned seeds, which it leaves out, run as they always did.
    dice apart(o.seed * 4 + 678);
    weight(o, fault::refusing) = one_of(apart, {0, 3, 9});
}

void calm_down(options& o, dice& d) {
    o.calm = true;
    o.delay_low = 50;
    o.delay_high = one_of<micros>(d, {300, 3'000});
    o.one_stream = true;
    o.settings.command_timeout_ms = 250;
    o.fault_weights.fill(0);
    weight(o, fault::queue_closed) = 1;
    o.policy.fleet = o.policy.coalesce = true;
    o.other.fleet = o.other.coalesce = true;
    o.policy.max_load_ms = o.other.max_load_ms = 60'000;
    o.policy.max_loads = o.other.max_loads = 0;
    o.fleet_off_one_in = 0;
    o.two_codecs = false;
    o.load_long_one_in = 0;
    o.load_nested_one_in = 0;
    o.reject_one_in = 0;
    o.untaken_one_in = 10;
    o.load_freed_one_in = 10;
    o.slow_host_one_in = 100;
}

// What makes a broken variant show soon; all of it stays within what a seed may draw anyhow.
void favour(variant which, options& o, dice& d) {
    o.policy.fleet = true;
    o.fleet_off_one_in = 0;
    o.two_codecs = false;
    o.keys = 1;
    o.policy.ttl_ms = one_of<std::int64_t>(d, {300, 3'000});
    weight(o, op_kind::put) = 0;
    weight(o, op_kind::invalidate) = 30;
    switch (which) {
    case variant::renew_by_lease:
        o.policy.lease_ms = 300;
        o.load_high_ms = 800;
        o.slow_host_one_in = 0;
        break;
    case variant::same_token: // a late copy has to meet a key that nobody has taken since
        o.fault_weights.fill(0);
        weight(o, fault::late_bytes) = 4;
        weight(o, fault::message_dropped) = 1;
        weight(o, fault::publish_refused) = 1;
        o.nodes = 3;
        o.burst = 1;
        o.span = 40 * second;
        o.fault_gap = o.span / 200;
        o.policy.ttl_ms = 300;
        o.load_low_ms = 200;
        o.load_high_ms = 1'000;
        o.ops_weights.fill(0);
        weight(o, op_kind::fetch) = 4;
        weight(o, op_kind::invalidate) = 1;
        break;
    case variant::late_grant:
        o.fault_weights.fill(0);
        weight(o, fault::delay) = 1;
        o.fault_gap = o.span / 80;
        o.settings.command_timeout_ms = 60;
        o.policy.ttl_ms = 300;
        o.load_low_ms = 200;
        o.load_high_ms = 1'000;
        break;
    case variant::fill_blind: break;
    case variant::no_timer:
        weight(o, fault::message_dropped) = 60;
        weight(o, fault::crash) = 10;
        break;
    case variant::promotion_lease:
        o.queues = 3;
        o.slow_host_one_in = 10;
        o.load_freed_one_in = 3;
        o.delay_high = o.delay_low + 20'000;
        o.load_low_ms = 1;
        o.load_high_ms = 50;
        weight(o, op_kind::invalidate) = 60;
        break;
    case variant::refresh_deleted:
        o.policy.ttl_ms = 3'000;
        o.policy.soft_ttl_ms = 300;
        o.refresh_one_in = 1;
        o.load_high_ms = 50;
        o.delay_high = o.delay_low + 20'000;
        o.load_slow_one_in = 0;
        break;
    case variant::mark_skips: weight(o, op_kind::mark_stale) = 40; break;
    case variant::wake_unseen:
        weight(o, fault::message_delayed) = 60;
        o.fault_gap = o.span / 80;
        break;
    case variant::none:
    case variant::count_: break;
    }
}

} // namespace

std::string_view op_name(op_kind k) {
    static constexpr std::string_view names[] = {"fetch",      "get",     "put",   "invalidate",
                                                 "mark_stale", "refetch", "close", "fill"};
    return names[static_cast<std::size_t>(k)];
}

options options::drawn(std::uint64_t seed, variant favoured) {
    dice d(seed * 2 + 1);
    options o;
    o.seed = seed;
    o.nodes = static_cast<int>(d.one_in(5) ? d.between(8, 20) : d.between(3, 7));
    o.keys = static_cast<int>(d.between(1, 3));
    o.ops = static_cast<int>(d.between(200, 400));
    o.span = d.between(4, 16) * second;
    o.burst = static_cast<int>(one_of(d, {1, 4, 12}));
    draw_policy(o, d);
    draw_hosts(o, d);
    draw_ops(o, d);
    draw_faults(o, d);
    if (favoured == variant::none && d.one_in(12)) calm_down(o, d);
    if (favoured != variant::none) favour(favoured, o, d);
    return o;
}

std::string options::print() const {
    std::ostringstream s;
    s << "seed " << seed << (calm ? ", calm" : "") << ": nodes " << nodes << ", keys " << keys << ", ops " << ops
      << ", queues " << queues << ", span_ms " << span / ms << ", burst " << burst << "\n  net: delay_us " << delay_low
      << ".." << delay_high << ", one_stream " << one_stream << ", split_one_in " << split_one_in
      << ", command_timeout_ms " << settings.command_timeout_ms << ", max_loads_down " << settings.max_loads_down
      << "\n  policy: ttl_ms " << policy.ttl_ms << ", soft_ttl_ms " << policy.soft_ttl_ms << ", absent_ttl_ms "
      << policy.absent_ttl_ms << ", error_ttl_ms " << policy.error_ttl_ms << ", lease_ms " << policy.lease_ms
      << ", wait_ms " << policy.wait_ms << ", max_load_ms " << policy.max_load_ms << ", jitter " << policy.jitter
      << ", early " << policy.early << ", max_loads " << policy.max_loads << ", max_value " << policy.max_value
      << ", coalesce " << policy.coalesce << ", fleet " << policy.fleet << "\n  other policy, one in " << other_one_in
      << ": ttl_ms " << other.ttl_ms << ", soft_ttl_ms " << other.soft_ttl_ms << ", error_ttl_ms " << other.error_ttl_ms
      << ", lease_ms " << other.lease_ms << ", wait_ms " << other.wait_ms << ", max_load_ms " << other.max_load_ms
      << "\n  processes: fleet_off_one_in " << fleet_off_one_in << ", two_codecs " << two_codecs << "\n  loads: ms "
      << load_low_ms << ".." << load_high_ms << ", one in: slow " << load_slow_one_in << ", long " << load_long_one_in
      << ", absent " << load_absent_one_in << ", fails " << load_fails_one_in << ", large " << load_large_one_in
      << ", freed " << load_freed_one_in << ", detached " << load_detached_one_in << ", nested " << load_nested_one_in
      << ", untaken " << untaken_one_in << ", rejected " << reject_one_in << " then " << reject_again_one_in
      << ", slow host " << slow_host_one_in << ", own ttl " << own_ttl_one_in << "\n  calls, one in: refresh "
      << refresh_one_in << ", force " << force_one_in << ", no_store " << no_store_one_in << ", no_wait "
      << no_wait_one_in << ", cancelled " << cancel_one_in << ", helped " << helped_one_in << "; weights:";
    for (std::size_t i = 0; i < ops_weights.size(); ++i) {
        if (ops_weights[i] != 0) s << " " << op_name(static_cast<op_kind>(i)) << " " << ops_weights[i];
    }
    s << "\n  faults: gap_ms " << fault_gap / ms << "; weights:";
    for (std::size_t i = 0; i < fault_count; ++i) {
        if (fault_weights[i] != 0) s << " " << fault_names[i] << " " << fault_weights[i];
    }
    s << "\n";
    return s.str();
}

} // namespace stn::sim
