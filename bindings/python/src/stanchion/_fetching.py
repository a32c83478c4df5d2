# SPDX-License-Identifier: MIT
"""What a cache and a group do, for both kinds of host."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from . import _native, _refs, _scope
from ._core import CacheCore, GroupCore
from ._durations import to_seconds
from ._duties import FlightDuty, LeaseDuty
from ._errors import Error, InvalidArgument
from ._mailbox import Host, Refresh, done, failure_of
from ._values import Lookup

MISSING: Any = object()
"""No fallback was given."""

# What a fallback stands in for: there is no answer now, and nobody's loader has failed.
_NO_ANSWER = frozenset(("timeout", "overloaded", "unavailable"))

_SOURCES = {
    _native.SOURCE_STORE: "store",
    _native.SOURCE_FLIGHT: "flight",
    _native.SOURCE_NEAR: "near",
    _native.SOURCE_MEMORY: "memory",
}


async def get_or_load(
    host: Host,
    cache: CacheCore,
    key: bytes,
    loader: Callable[[], object],
    fallback: Any,
    wait_ms: int,
    flags: int,
    share: bool,
) -> Any:
    """The value of a key; loads it if it is this caller's turn."""
    tag = host.begin()
    queue = host.queue
    op, event = cache.native.fetch(
        cache.policy, key, wait_ms, flags | _native.WANT_REFRESH, _scope.within(), queue, tag
    )
    while True:
        if event is None:
            event = await host.wait(tag, op)
        kind = event.kind
        if kind == _native.VALUE:
            if cache.soft or event.flags & _native.STALE:
                host.expect_refresh(
                    tag, Refresh(lambda lease: LeaseDuty(cache, key, lease, False), loader, copy_context())
                )
            try:
                return _read(cache, event, share)
            except Exception:  # whatever a decoder raises
                tag = host.begin()
                op, event = cache.native.refetch(cache.policy, event, wait_ms, _scope.within(), queue, tag)
                continue
        if kind == _native.ABSENT:
            return cache.nothing
        if kind == _native.LEASE:
            lease = event.take_lease()
            if lease is not None:
                return await host.load(LeaseDuty(cache, key, lease, share), loader, tag)
        error = failure_of(event)
        if fallback is not MISSING and isinstance(error, Error) and error.code in _NO_ANSWER and not event.host_ref:
            return fallback
        raise error


def _read(cache: CacheCore, event: _native.Event, share: bool) -> Any:
    if event.host_ref:
        shared = _refs.take(event.host_ref)
        if share:
            return shared
    return cache.codec.decode(event.data or b"")


async def lookup(host: Host, cache: CacheCore, key: bytes) -> Lookup:
    """What the store holds; never loads."""
    tag = host.begin()
    op, event = cache.native.get(key, _native.DEFAULT, host.queue, tag)
    if event is None:
        event = await host.wait(tag, op)
    if event.kind == _native.VALUE:
        try:
            value = _read(cache, event, False)
        except Exception:
            return Lookup(hit=False)
        return _found(event, hit=True, value=value)
    if event.kind == _native.ABSENT:
        if _native.REASONS.get(event.reason) == "miss":
            return Lookup(hit=False, value=cache.nothing)
        return _found(event, hit=False, value=cache.nothing)
    error = failure_of(event)
    if isinstance(error, Error) and error.code in ("load_failed", "undecodable"):
        return Lookup(hit=False, value=cache.nothing)
    raise error


def _found(event: _native.Event, hit: bool, value: object) -> Lookup:
    return Lookup(
        hit=hit,
        absent=not hit,
        value=value,
        stale=bool(event.flags & _native.STALE),
        age=to_seconds(event.age_ms),
        soft_ttl_left=to_seconds(event.ttl_left_ms),
        source=_SOURCES.get(event.flags & _native.SOURCE_MASK),
    )


async def put(host: Host, cache: CacheCore, key: bytes, value: object, ttl_ms: int, soft_ttl_ms: int) -> None:
    """Writes a value; the last writer wins."""
    if cache.is_absence(value):
        raise InvalidArgument("set() takes a value; None means absence here, and only a loader can say that", key=key)
    tag = host.begin()
    data = cache.codec.encode(value)
    op = cache.native.put(cache.policy, key, data, ttl_ms, soft_ttl_ms, _native.DEFAULT, host.queue, tag)
    await done(host, tag, op)


async def invalidate(host: Host, cache: CacheCore, key: bytes, stale: bool) -> None:
    """Deletes a value, or marks it stale."""
    tag = host.begin()
    flags = _native.INVALIDATE_STALE if stale else 0
    op = cache.native.invalidate(key, flags, _native.DEFAULT, host.queue, tag)
    await done(host, tag, op)


async def join(host: Host, group: GroupCore, key: bytes, work: Callable[[], object], wait_ms: int) -> tuple[Any, bool]:
    """(value, shared) of a group's flight; runs the work if nobody does."""
    tag = host.begin()
    op, flight = group.native.join(key, wait_ms, _scope.within(), host.queue, tag)
    if flight is None:
        event = await host.wait(tag, op)
        if event.kind == _native.VALUE:
            return _refs.take(event.host_ref), True
        flight = event.take_flight()
        if flight is None:
            raise failure_of(event)
    return await host.load(FlightDuty(key, flight), work, tag), False
