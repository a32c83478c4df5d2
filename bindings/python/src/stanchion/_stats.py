# SPDX-License-Identifier: MIT
"""The counters: what they are called. What each counts stands in the README, and in ``_native.STATS``."""

from __future__ import annotations

from typing import TypedDict


class CacheStats(TypedDict):
    """What `Cache.stats` gives: counters of one cache since its client was opened. Since 0.1."""

    flights: int
    joins: int
    gets: int
    hits: int
    stale_hits: int
    absent_hits: int
    misses: int
    loads: int
    loads_failed: int
    loads_alone: int
    leases_granted: int
    leases_held: int
    leases_lost: int
    fills_stored: int
    fills_refused: int
    fills_lost: int
    markers_error: int
    markers_pass: int
    looks: int
    waits: int
    promotions: int
    withdrawals: int
    detached: int
    refreshes: int
    refreshes_lost: int
    early_refreshes: int
    invalidations: int
    puts: int
    rejected: int
    foreign: int
    newer: int
    timeouts: int
    cancelled: int
    deadlocks: int
    overloaded: int
    renewals: int
    soft_margin_small: int


class Stats(CacheStats):
    """What `Client.stats` gives: the counters of its caches and groups together, and its own. Since 0.1."""

    breaker_opened: int
    commands: int
    commands_lost: int
    messages: int
    events: int
    locks: int
    locks_busy: int
    locks_lost: int
    ticks: int
