// SPDX-License-Identifier: MIT
//
// stanchion._native: stanchion.h for Python, bytes in and bytes out. No policy, no texts, no waiting but that of the
// queue: the package above it is where Python begins.

#include "handles.hpp"

namespace stanchion_python {

namespace {

void bind_numbers(py::module_& m) {
    py::dict statuses;
#define ROW(number, NAME, name, retryable, text) statuses[py::int_(number)] = #name;
    STN_STATUS_MAP(ROW)
#undef ROW
    m.attr("STATUSES") = statuses;

    py::dict reasons;
#define ROW(number, NAME, name, text) reasons[py::int_(number)] = #name;
    STN_REASON_MAP(ROW)
#undef ROW
    m.attr("REASONS") = reasons;

    py::dict stats;
#define ROW(name, doc) stats[#name] = doc;
    STN_STATS_MAP(ROW)
#undef ROW
    m.attr("STATS") = stats;

    const auto number = [&](const char* name, std::int64_t value) { m.attr(name) = py::int_(value); };
    number("VALUE", STN_EVENT_VALUE);
    number("ABSENT", STN_EVENT_ABSENT);
    number("LEASE", STN_EVENT_LEASE);
    number("REFRESH", STN_EVENT_REFRESH);
    number("FLIGHT", STN_EVENT_FLIGHT);
    number("LOCK", STN_EVENT_LOCK);
    number("TICK", STN_EVENT_TICK);
    number("DONE", STN_EVENT_DONE);
    number("REVOKED", STN_EVENT_REVOKED);
    number("LOCK_LOST", STN_EVENT_LOCK_LOST);
    number("FILLED", STN_EVENT_FILLED);
    number("NOTICE", STN_EVENT_NOTICE);
    number("ERROR", STN_EVENT_ERROR);
    number("STALE", STN_ANSWER_STALE);
    number("SHARED", STN_ANSWER_SHARED);
    number("SOURCE_MASK", STN_ANSWER_SOURCE_MASK);
    number("SOURCE_STORE", STN_SOURCE_STORE);
    number("SOURCE_FLIGHT", STN_SOURCE_FLIGHT);
    number("SOURCE_NEAR", STN_SOURCE_NEAR);
    number("SOURCE_MEMORY", STN_SOURCE_MEMORY);
    number("FORCE", STN_FETCH_FORCE);
    number("NO_STORE", STN_FETCH_NO_STORE);
    number("WANT_REFRESH", STN_FETCH_REFRESH);
    number("INVALIDATE_STALE", STN_INVALIDATE_STALE);
    number("NOTICE_ALL", STN_NOTICE_ALL);
    number("NOTICE_BREAKER", STN_NOTICE_BREAKER);
    number("NOTICE_CONNECTION", STN_NOTICE_CONNECTION);
    number("LOCK_HELD", STN_LOCK_HELD);
    number("ERROR_RETRYABLE", STN_ERROR_RETRYABLE);
    number("ERROR_MAY_HAVE_APPLIED", STN_ERROR_MAY_HAVE_APPLIED);
    number("OK", STN_OK);
    number("BUSY", STN_BUSY);
    number("LOAD_FAILED", STN_LOAD_FAILED);
    number("DEFAULT", STN_DEFAULT_MS);
    number("NO_LIMIT", STN_NO_LIMIT);
    number("DURATION_MAX", STN_DURATION_MAX_MS);
}

std::int64_t duration_parse(const std::string& text) {
    std::int64_t ms = 0;
    must([&](stn_error** e) { return stn_duration_parse(text.c_str(), &ms, e); });
    return ms;
}

} // namespace

PYBIND11_MODULE(_native, m) {
    m.doc() = "stanchion.h for the package stanchion; not an interface of its own.";
    bind_numbers(m);
    m.def("duration_parse", &duration_parse, py::arg("text"));
    m.def("version", [] { return stn_version_string(); });
    bind_events(m);
    bind_client(m);
    bind_caches(m);
    bind_groups(m);
    bind_locks(m);
}

} // namespace stanchion_python
