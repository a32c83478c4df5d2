# SPDX-License-Identifier: MIT
"""What the blocking and the awaitable surface share: one open client, one open cache, one group."""

from __future__ import annotations

import atexit
import functools
import json
import weakref
from collections.abc import Mapping
from typing import Any, Optional, cast

from . import _background, _fork, _native
from ._codecs import CodecLike, codec_of
from ._errors import Error
from ._mailbox import log, new_tag, when_gone
from ._options import to_json
from ._stats import CacheStats
from ._values import ABSENT

_AT_EXIT_MS = 1_000

_open: weakref.WeakSet[ClientCore]


class ClientCore:
    """An open client."""

    def __init__(self, url: str, options: Mapping[str, object]) -> None:
        self.native = _native.Client(url, to_json(options))
        self.memory = url.startswith("memory:")
        self.caches: dict[str, _native.Cache] = {}  # by name; the library, too, keeps them as long as the client
        self._lock_policies: dict[tuple[object, ...], _native.LockPolicy] = {}
        self._watch(place_of(url))
        _open.add(self)

    def _watch(self, place: str) -> None:
        """Notices go to the log, from the attendant's thread."""
        attendant = _background.attendant()
        tag = new_tag()
        attendant.handlers[tag] = functools.partial(_log_notice, place)
        when_gone(self, attendant.handlers.pop, tag, None)
        self.native.watch(_native.NOTICE_ALL, attendant.queue, tag)

    def lock_policy(self, options: Mapping[str, object]) -> _native.LockPolicy:
        """The policy for these options, read once."""
        same = (*options.items(), *map(type, options.values()))  # True equals 1, and is no duration
        try:
            policy = self._lock_policies.get(same)
        except TypeError:  # something that has no hash will not do for an option
            return _native.LockPolicy(to_json(options))
        if policy is None:
            made = _native.LockPolicy(to_json(options))
            if len(self._lock_policies) >= 1_000:
                self._lock_policies.clear()
            policy = self._lock_policies[same] = made
        return policy

    def counters(self) -> dict[str, int]:
        """A snapshot of the counters."""
        return cast("dict[str, int]", json.loads(self.native.stats(None)))

    def cache_counters(self, cache: _native.Cache) -> dict[str, int]:
        """The same of one cache, without what only a client counts."""
        every = json.loads(self.native.stats(cache))
        return {name: every[name] for name in CacheStats.__annotations__}


class CacheCore:
    """A cache of a client, or a variant of one."""

    def __init__(
        self,
        client: ClientCore,
        name: str,
        codec: CodecLike,
        none_is_value: bool,
        options: Mapping[str, object],
    ) -> None:
        self.client = client
        self.name = name
        self.codec = codec_of(codec)
        self.none_is_value = none_is_value
        self.nothing: Any = ABSENT if none_is_value else None
        self.soft = options.get("soft_ttl") is not None
        self.policy: Optional[_native.Policy] = None
        if "codec" in options:
            raise TypeError("codec is given twice")
        self.native = _native.Cache(client.native, name, to_json({**options, "codec": self.codec.wire}))
        version = options.get("version")
        client.caches.setdefault(f"{name}@{version}" if version else name, self.native)

    def variant(self, options: Mapping[str, object]) -> CacheCore:
        """The same cache with another policy."""
        other: CacheCore = object.__new__(CacheCore)
        other.__dict__.update(self.__dict__)
        other.policy = _native.Policy(self.native, to_json(options))
        other.soft = self.soft or options.get("soft_ttl") is not None
        return other

    def is_absence(self, value: object) -> bool:
        """Does a loader that gives this say "there is no such thing"?"""
        return value is ABSENT or (value is None and not self.none_is_value)


class GroupCore:
    """A group of flights."""

    def __init__(self, client: Optional[ClientCore]) -> None:
        self.native = _native.Group(client.native if client is not None else None)


_GOOD_NEWS = (_native.NOTICE_CONNECTION, _native.NOTICE_BREAKER)  # if their status is ok


def _log_notice(place: str, event: _native.Event) -> None:
    text = (event.data or b"").decode("utf-8", "replace")
    good = event.status == _native.OK and event.reason in _GOOD_NEWS
    (log.info if good else log.warning)("%s: %s", place, text)


def place_of(url: str) -> str:
    """A store's address for the log: nothing of it that may be secret."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


_open = weakref.WeakSet()


@_fork.in_child
def _forget() -> None:
    global _open
    _open = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_open):
        try:
            client.native.close(_AT_EXIT_MS)
        except Error:
            log.debug("stanchion: a client could not be closed at exit", exc_info=True)
