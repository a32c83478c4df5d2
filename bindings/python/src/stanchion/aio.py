# SPDX-License-Identifier: MIT
"""Stanchion for asyncio: the same names as in ``stanchion``, awaitable. Any number of loops may use one client.

Nothing here blocks the loop. A call that is cancelled disturbs nobody else: whoever waits for the same key goes on
waiting, and the load goes on for them.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import weakref
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union, cast, overload

from . import _fetching, _locks, _native, _ticks
from ._cached import CachedCoroutine, P, R, Template
from ._codecs import CodecLike
from ._core import CacheCore, ClientCore, GroupCore
from ._durations import Duration, deadline_ms, slot_ms, to_ms
from ._errors import Error, LockTimeout
from ._keys import KeyMaker
from ._loops import LoopHost, here
from ._mailbox import done, log, when_gone
from ._stats import CacheStats, Stats
from ._values import Fresh, Key, Lookup, Loss, Result, key_bytes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _sync
    from ._options import CacheOptions, ClientOptions, LockOptions, PolicyOptions

T = TypeVar("T")
OnLost = Callable[[Loss], Union[object, Awaitable[object]]]

__all__ = ["Cache", "Client", "Group", "Lock", "Tick", "connect"]


def connect(url: str = "memory://", **options: Unpack[ClientOptions]) -> Client:
    """As `stanchion.connect`. Does not block; ``async with`` closes it. Since 0.1."""
    return Client(ClientCore(url, options))


class Client:
    """One store, for any number of event loops. Made by `connect`, or ``client.aio``."""

    def __init__(self, core: ClientCore) -> None:
        self._core = core

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: object, value: object, traceback: object) -> None:
        await self.close()

    @property
    def sync(self) -> _sync.Client:
        """The same client for threads."""
        from . import _sync

        return _sync.Client(self._core)

    def cache(
        self,
        name: str,
        *,
        codec: CodecLike = "json",
        none_is_value: bool = False,
        **options: Unpack[CacheOptions],
    ) -> Cache:
        """As `stanchion.Client.cache`. Does no input or output. Since 0.1."""
        return Cache(CacheCore(self._core, name, codec, none_is_value, options))

    def group(self) -> Group:
        """As `stanchion.Client.group`. Since 0.1."""
        return Group(GroupCore(self._core))

    def lock(
        self,
        name: Key,
        ttl: Duration,
        *,
        on_lost: Optional[OnLost] = None,
        cancel_on_loss: bool = False,
        **options: Unpack[LockOptions],
    ) -> Lock:
        """As `stanchion.Client.lock`, taken by ``async with``. `on_lost` runs in the loop and may be a coroutine
        function. `cancel_on_loss`: a loss cancels the body of ``async with``, which then raises `LockLost`. Since 0.1.
        """
        return Lock(self._core, name, {"ttl": ttl, **options}, on_lost, cancel_on_loss)

    async def try_lock(
        self,
        name: Key,
        ttl: Duration,
        *,
        on_lost: Optional[OnLost] = None,
        cancel_on_loss: bool = False,
        **options: Unpack[LockOptions],
    ) -> Optional[Lock]:
        """As `stanchion.Client.try_lock`. Since 0.1."""
        lock = Lock(self._core, name, {"ttl": ttl, **options}, on_lost, cancel_on_loss)
        try:
            await lock._take(0)
        except LockTimeout:
            return None
        return lock

    async def inspect_lock(self, name: Key = "", *, key: Key = "") -> Optional[dict[str, Any]]:
        """As `stanchion.Client.inspect_lock`. Since 0.1."""
        return await _locks.inspect(here(), self._core, key_bytes(name), key_bytes(key))

    def tick(
        self,
        name: Key,
        *,
        every: Duration,
        offset: Optional[Duration] = None,
        at_most: Optional[Duration] = None,
    ) -> Tick:
        """As `stanchion.Client.tick`: ``async with client.tick(...) as run:`` / ``if run:``. Since 0.1."""
        return Tick(self._core, name, {"every": every, "offset": offset, "at_most": at_most})

    def every(
        self,
        every: Duration,
        *,
        name: Optional[Key] = None,
        offset: Optional[Duration] = None,
        at_most: Optional[Duration] = None,
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[Optional[R]]]]:
        """As `stanchion.Client.every`, for coroutine functions. Since 0.1."""

        def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[Optional[R]]]:
            known_as = name if name is not None else f"{function.__module__}.{function.__qualname__}"

            @functools.wraps(function)
            async def job(*args: P.args, **kwargs: P.kwargs) -> Optional[R]:
                async with self.tick(known_as, every=every, offset=offset, at_most=at_most) as run:
                    return await function(*args, **kwargs) if run else None

            return job

        return decorate

    async def once(self, id: Key, ttl: Duration) -> bool:
        """As `stanchion.Client.once`. Since 0.1."""
        return await _ticks.once(here(), self._core, key_bytes(id), to_ms(ttl, "ttl"))

    async def ready(self, timeout: Optional[Duration] = None) -> None:
        """As `stanchion.Client.ready`. Since 0.1."""
        host = here()
        tag = host.begin()
        self._core.native.ready(deadline_ms(timeout, "timeout"), host.queue, tag)
        await done(host, tag, 0)

    def stats(self) -> Stats:
        """As `stanchion.Client.stats`: not awaited. Since 0.1."""
        return cast("Stats", self._core.counters())

    def advance(self, by: Duration) -> None:
        """As `stanchion.Client.advance`: not awaited. Since 0.1."""
        self._core.native.advance(to_ms(by, "by"))

    async def close(self, timeout: Optional[Duration] = None) -> None:
        """As `stanchion.Client.close`. Since 0.1."""
        host = here()
        tag = host.begin()
        self._core.native.close_begin(deadline_ms(timeout, "timeout"), host.queue, tag)
        await done(host, tag, 0)


class Cache:
    """A family of keys with one policy. Made by `Client.cache`."""

    def __init__(self, core: CacheCore) -> None:
        self._core = core

    @property
    def sync(self) -> _sync.Cache:
        """The same cache for threads."""
        from . import _sync

        return _sync.Cache(self._core)

    @overload
    async def get_or_load(
        self,
        key: Key,
        loader: Callable[[], Awaitable[Union[T, Fresh[T]]]],
        *,
        fallback: T = ...,
        wait: Optional[Duration] = ...,
        share: bool = ...,
        force: bool = ...,
        store: bool = ...,
    ) -> T: ...
    @overload
    async def get_or_load(
        self,
        key: Key,
        loader: Callable[[], Union[T, Fresh[T]]],
        *,
        fallback: T = ...,
        wait: Optional[Duration] = ...,
        share: bool = ...,
        force: bool = ...,
        store: bool = ...,
    ) -> T: ...
    async def get_or_load(
        self,
        key: Key,
        loader: Callable[[], Any],
        *,
        fallback: Any = _fetching.MISSING,
        wait: Optional[Duration] = None,
        share: bool = False,
        force: bool = False,
        store: bool = True,
    ) -> Any:
        """As `stanchion.Cache.get_or_load`. The loader, a function or coroutine function, runs in a task of its own
        with a copy of this context: if this call is cancelled it goes on for whoever waits, and is cancelled if
        nobody does. Since 0.1.
        """
        flags = (_native.FORCE if force else 0) | (0 if store else _native.NO_STORE)
        return await _fetching.get_or_load(
            here(), self._core, key_bytes(key), loader, fallback, deadline_ms(wait, "wait"), flags, share
        )

    async def get(self, key: Key, default: Any = None) -> Any:
        """As `stanchion.Cache.get`. Since 0.1."""
        found = await self.lookup(key)
        return found.value if found.hit else default

    async def lookup(self, key: Key) -> Lookup:
        """As `stanchion.Cache.lookup`. Since 0.1."""
        return await _fetching.lookup(here(), self._core, key_bytes(key))

    async def set(
        self, key: Key, value: Any, *, ttl: Optional[Duration] = None, soft_ttl: Optional[Duration] = None
    ) -> None:
        """As `stanchion.Cache.set`. Since 0.1."""
        await _fetching.put(
            here(), self._core, key_bytes(key), value, slot_ms(ttl, "ttl"), slot_ms(soft_ttl, "soft_ttl")
        )

    async def invalidate(self, key: Key, *, stale: bool = False) -> None:
        """As `stanchion.Cache.invalidate`. Since 0.1."""
        await _fetching.invalidate(here(), self._core, key_bytes(key), stale)

    def cached(
        self, key: Template, **how: Any
    ) -> Callable[[Callable[P, Awaitable[Union[R, Fresh[R]]]]], CachedCoroutine[P, R]]:
        """As `stanchion.Cache.cached`, for coroutine functions. Since 0.1."""

        def decorate(function: Callable[P, Awaitable[Union[R, Fresh[R]]]]) -> CachedCoroutine[P, R]:
            return CachedCoroutine(self, function, KeyMaker(key, function), how)

        return decorate

    def with_policy(self, **options: Unpack[PolicyOptions]) -> Cache:
        """As `stanchion.Cache.with_policy`. Since 0.1."""
        return Cache(self._core.variant(options))

    def stats(self) -> CacheStats:
        """As `stanchion.Cache.stats`: not awaited. Since 0.1."""
        return cast("CacheStats", self._core.client.cache_counters(self._core.native))


class Group:
    """As `stanchion.Group`. Made by `Client.group`, or by itself."""

    def __init__(self, core: Optional[GroupCore] = None) -> None:
        self._core = core if core is not None else GroupCore(None)

    @property
    def sync(self) -> _sync.Group:
        """The same group for threads."""
        from . import _sync

        return _sync.Group(self._core)

    @overload
    async def do(self, key: Key, fn: Callable[[], Awaitable[T]], *, wait: Optional[Duration] = ...) -> T: ...
    @overload
    async def do(self, key: Key, fn: Callable[[], T], *, wait: Optional[Duration] = ...) -> T: ...
    async def do(self, key: Key, fn: Callable[[], Any], *, wait: Optional[Duration] = None) -> Any:
        """As `stanchion.Group.do`; `fn`, a function or coroutine function, runs in a task of its own. Since 0.1."""
        return (await _fetching.join(here(), self._core, key_bytes(key), fn, deadline_ms(wait, "wait")))[0]

    @overload
    async def call(self, key: Key, fn: Callable[[], Awaitable[T]], *, wait: Optional[Duration] = ...) -> Result[T]: ...
    @overload
    async def call(self, key: Key, fn: Callable[[], T], *, wait: Optional[Duration] = ...) -> Result[T]: ...
    async def call(self, key: Key, fn: Callable[[], Any], *, wait: Optional[Duration] = None) -> Any:
        """As `stanchion.Group.call`. Since 0.1."""
        value, shared = await _fetching.join(here(), self._core, key_bytes(key), fn, deadline_ms(wait, "wait"))
        return Result(value, shared)

    def forget(self, key: Key) -> None:
        """As `stanchion.Group.forget`: not awaited. Since 0.1."""
        self._core.native.forget(key_bytes(key))


class Lock(_locks.LockBase):
    """A lock for tasks. Made by `Client.lock` and `try_lock`. Not re-entrant, bound to no task. Since 0.1."""

    def __init__(
        self,
        client: ClientCore,
        name: Key,
        options: dict[str, Any],
        on_lost: Optional[OnLost],
        cancel_on_loss: bool,
    ) -> None:
        super().__init__(client, name, options)
        self._on_lost = on_lost
        self._cancel_on_loss = cancel_on_loss
        self._body: Optional[asyncio.Task[Any]] = None  # whom a loss cancels
        self._cancelling = 0
        self._cancelled = False
        self._ended: Optional[asyncio.Event] = None

    async def __aenter__(self) -> Lock:
        if self._native is None or self._entered or not self.held:
            await self.acquire()
        self._entered = True
        self._cancelled = False
        if self._cancel_on_loss:
            self._body = asyncio.current_task()
            if sys.version_info >= (3, 11) and self._body is not None:
                self._cancelling = self._body.cancelling()
            if self.lost is not None:
                self._body = None
                raise self._lost_error()
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        body, self._body = self._body, None
        if self._cancelled and isinstance(value, asyncio.CancelledError):
            ours = True
            if sys.version_info >= (3, 11) and body is not None:
                ours = body.uncancel() <= self._cancelling
            if ours:
                raise self._lost_error() from value
        try:
            await self.release()
        except Error as error:
            self._release_failed(error, value)

    async def acquire(self) -> None:
        """Takes it, or raises: `LockTimeout` if somebody else holds it, `Uncertain`, `Unavailable`, ..."""
        await self._take(_native.DEFAULT)

    async def release(self) -> None:
        """Gives it back. Raises `LockLost` if it was not held any more, `Uncertain` if nobody knows."""
        lock = self._taken()
        here().handlers.pop(self._loss_tag, None)
        try:
            await _locks.release(here(), lock)
        finally:
            if self._ended is not None:
                self._ended.set()

    async def renew(self) -> None:
        """Renews it now, with its ttl. Rarely needed: that goes by itself."""
        await _locks.renew(here(), self._taken())

    async def wait_lost(self, timeout: Optional[Duration] = None) -> bool:
        """Waits until it is held no longer, whyever, and tells whether that is so; to `timeout` seconds."""
        self._taken()
        if self._ended is None:
            raise RuntimeError(f"the lock {self.name!r} is not taken")
        seconds = None if timeout is None else to_ms(timeout, "timeout") / 1000
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    def leave(self) -> None:
        super().leave()
        if self._ended is not None:
            self._ended.set()

    async def _take(self, wait_ms: int) -> None:
        self._free_to_take()
        self._entered = False
        host = here()
        self._ended = asyncio.Event()
        self._watch(host)
        try:
            self._native = await _locks.acquire(
                host, self._client, self._key, self._policy, wait_ms, host.queue, self._loss_tag
            )
        except BaseException:
            host.handlers.pop(self._loss_tag, None)
            raise

    def _watch(self, host: LoopHost) -> None:
        """Hears of a loss, without being kept by that: a lock that the program forgets is released."""
        me = weakref.ref(self)

        def lost(event: _native.Event) -> None:
            lock = me()
            if lock is not None:
                lock._on_loss(event)

        host.handlers[self._loss_tag] = lost
        when_gone(self, host.handlers.pop, self._loss_tag, None)

    def _on_loss(self, event: _native.Event) -> None:
        here().handlers.pop(self._loss_tag, None)
        if self._ended is not None:
            self._ended.set()
        if self._on_lost is not None:
            here().spawn(_tell_loss(self._on_lost, Loss(_native.REASONS.get(event.reason, "lost"))))
        if self._body is not None:
            self._cancelled = True
            self._body.cancel()


async def _tell_loss(on_lost: OnLost, loss: Loss) -> None:
    try:
        told = on_lost(loss)
        if inspect.isawaitable(told):
            await cast("Awaitable[object]", told)
    except Exception:
        log.exception("stanchion: on_lost failed")


class Tick(_ticks.TickBase):
    """A tick for tasks. Made by `Client.tick`. Since 0.1."""

    async def __aenter__(self) -> _ticks.TickRun:
        return await self._ask(here())

    async def __aexit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self._end(here(), kind is None)
