# SPDX-License-Identifier: MIT
"""The two loads there are: for a cache's lease, and for a group's flight. See `Duty` in _mailbox.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Optional

from . import _native, _refs
from ._durations import slot_ms
from ._errors import Error, status_of, text_of
from ._values import Fresh

if TYPE_CHECKING:
    from ._core import CacheCore

# Of these a loader's caller is told by name, and the fleet may try again at once; all else is a failed load.
_OWN = frozenset(("closed", "timeout", "overloaded", "would_deadlock", "cancelled"))


def _code_of(error: BaseException) -> int:
    if isinstance(error, Error) and error.code in _OWN:
        return status_of(error.code)
    return _native.LOAD_FAILED


def _tell(error: BaseException, answer: Callable[[int, str, int], int]) -> None:
    """Answers with the exception. The load's own failure is what counts: one in telling it is not raised."""
    try:
        _refs.share(_refs.Raised(error), lambda ref: answer(_code_of(error), text_of(error), ref))
    except Error:
        return


class LeaseDuty:
    """To answer for one key of a cache."""

    __slots__ = ("_cache", "_ended", "_key", "_lease", "_share")

    def __init__(self, cache: CacheCore, key: bytes, lease: _native.Lease, share: bool) -> None:
        self._cache = cache
        self._key = key
        self._lease = lease
        self._share = share
        self._ended = False

    @property
    def name(self) -> str:
        return f"{self._cache.name}:{self._key.decode('utf-8', 'backslashreplace')}"

    def scope(self) -> Optional[_native.Scope]:
        return self._lease.scope()

    def succeed(self, value: object) -> object:
        ttl = soft_ttl = _native.DEFAULT
        if isinstance(value, Fresh):
            ttl, soft_ttl, value = slot_ms(value.ttl, "ttl"), slot_ms(value.soft_ttl, "soft_ttl"), value.value
        if self._cache.is_absence(value):
            if not self._ended:
                self._lease.fulfil_absent(ttl)
            return self._cache.nothing
        data = self._cache.codec.encode(value)
        # Before anybody has it: what cannot be read back is never stored.
        read_back = value if self._share else self._cache.codec.decode(data)
        if self._ended:
            return read_back
        if self._share:
            _refs.share(value, lambda ref: self._lease.fulfil(data, ttl, soft_ttl, ref))
        else:
            self._lease.fulfil(data, ttl, soft_ttl, 0)
        return read_back

    def fail(self, error: BaseException) -> None:
        if not self._ended:
            _tell(error, self._lease.fail)

    def give_up(self) -> None:
        self._lease.free()

    def detach(self) -> bool:
        self._ended = self._lease.detach() <= 0
        return not self._ended


class FlightDuty:
    """To run the work of one key of a group. Objects are handed over as they are."""

    __slots__ = ("_ended", "_flight", "name")

    def __init__(self, key: bytes, flight: _native.Flight) -> None:
        self.name = key.decode("utf-8", "backslashreplace")
        self._flight = flight
        self._ended = False

    def scope(self) -> Optional[_native.Scope]:
        return self._flight.scope()

    def succeed(self, value: object) -> object:
        if not self._ended:
            _refs.share(value, lambda ref: self._flight.finish(_native.OK, b"", ref))
        return value

    def fail(self, error: BaseException) -> None:
        if not self._ended:
            _tell(error, lambda code, text, ref: self._flight.finish(code, text.encode("utf-8", "replace"), ref))

    def give_up(self) -> None:
        self._flight.free()

    def detach(self) -> bool:
        self._ended = self._flight.detach() <= 0
        return not self._ended
