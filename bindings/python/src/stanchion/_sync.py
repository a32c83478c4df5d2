# SPDX-License-Identifier: MIT
"""The blocking surface, what `import stanchion` gives: each method says what, and that a thread waits for it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union, cast, overload

from . import _background, _fetching, _locks, _native, _ticks
from ._cached import CachedCoroutine, CachedFunction, P, R, Template, is_coroutine_function
from ._codecs import CodecLike
from ._core import CacheCore, ClientCore, GroupCore
from ._durations import Duration, deadline_ms, slot_ms, to_ms
from ._errors import Error, LockTimeout
from ._keys import KeyMaker
from ._mailbox import done, run
from ._stats import CacheStats, Stats
from ._threads import here
from ._values import Fresh, Key, Lookup, Loss, Result, key_bytes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import aio
    from ._options import CacheOptions, ClientOptions, LockOptions, PolicyOptions

T = TypeVar("T")
Loader = Callable[[], Union[T, Fresh[T]]]


def connect(url: str = "memory://", **options: Unpack[ClientOptions]) -> Client:
    """Opens a client on a store: ``memory://``, ``redis://``, ``rediss://``, ``unix://``.

    Does not block and does not wait for a connection: a store that is down is no error here (see `Client.ready`).
    Options are those of stanchion.h; durations are seconds, text ("5m") or timedelta. Use it as a context manager, or
    `close` it. Raises InvalidArgument, UnknownOption, Unsupported. Since 0.1.
    """
    return Client(ClientCore(url, options))


class Client:
    """One store, for any number of threads. Made by `connect`."""

    def __init__(self, core: ClientCore) -> None:
        self._core = core

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        self.close()

    @property
    def aio(self) -> aio.Client:
        """The same client for event loops: the same flights, leases and locks."""
        from . import aio

        return aio.Client(self._core)

    def cache(
        self,
        name: str,
        *,
        codec: CodecLike = "json",
        none_is_value: bool = False,
        **options: Unpack[CacheOptions],
    ) -> Cache:
        """Opens a cache: a name for a family of keys, and the policy for them (``ttl="5m"``, ``soft_ttl="4m"``, ...).

        Does no input or output. `codec`: "json", "bytes", "str", "pickle", a `Codec`, or a pair (encode, decode).
        `none_is_value`: None is stored like any value, and absence is `ABSENT`; else None is absence. ``version=2``
        keeps apart what programs of another model stored. Since 0.1.
        """
        return Cache(CacheCore(self._core, name, codec, none_is_value, options))

    def group(self) -> Group:
        """Single-flight without a cache; the group closes with the client. Since 0.1."""
        return Group(GroupCore(self._core))

    def lock(
        self,
        name: Key,
        ttl: Duration,
        *,
        on_lost: Optional[Callable[[Loss], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        """A lock, taken by `with`: ``with client.lock("report", ttl="30s") as lock:``. Not getting it within ``wait``
        (10 s) raises `LockTimeout`.

        `ttl`: for how long a holder that has died blocks others; a living one is renewed by the library's own thread.
        `on_lost(loss)` is called once if it is lost while held, on a thread of the package for callbacks. Options:
        ``wait`` (or "forever"), ``renew``, ``max_hold``, ``label``, ``key``. Since 0.1.
        """
        return Lock(self._core, name, {"ttl": ttl, **options}, on_lost)

    def try_lock(
        self,
        name: Key,
        ttl: Duration,
        *,
        on_lost: Optional[Callable[[Loss], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Optional[Lock]:
        """The lock, held already, or None if somebody else holds it: asks once and waits for nobody.

        Use it as a context manager, or `release` it. Options as of `lock`. Since 0.1.
        """
        lock = Lock(self._core, name, {"ttl": ttl, **options}, on_lost)
        try:
            lock._take(0)
        except LockTimeout:
            return None
        return lock

    def inspect_lock(self, name: Key = "", *, key: Key = "") -> Optional[dict[str, Any]]:
        """What stands in a lock's key, by its name or by the store's key itself; None if it is free. Blocks.
        Since 0.1.
        """
        return run(_locks.inspect(here(), self._core, key_bytes(name), key_bytes(key)))

    def tick(
        self,
        name: Key,
        *,
        every: Duration,
        offset: Optional[Duration] = None,
        at_most: Optional[Duration] = None,
    ) -> Tick:
        """A job that runs once per slot of time, whoever runs it: ``with client.tick(...) as run:`` / ``if run:``.

        Slots are UTC by the store's clock, `every` long, shifted by `offset`. A run that tells nothing counts as dead
        after `at_most` (default: `every`). A body that raises gives the slot back. Since 0.1.
        """
        return Tick(self._core, name, {"every": every, "offset": offset, "at_most": at_most})

    def every(
        self,
        every: Duration,
        *,
        name: Optional[Key] = None,
        offset: Optional[Duration] = None,
        at_most: Optional[Duration] = None,
    ) -> Callable[[Callable[P, R]], Callable[P, Optional[R]]]:
        """Decorates a job: a call runs it only if it wins the slot, and gives None otherwise. `name`: by default the
        function's module and name. Options as of `tick`. Since 0.1.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, Optional[R]]:
            if is_coroutine_function(function):
                raise TypeError("every() of the blocking client takes a function; client.aio.every() takes coroutines")
            known_as = name if name is not None else f"{function.__module__}.{function.__qualname__}"

            @functools.wraps(function)
            def job(*args: P.args, **kwargs: P.kwargs) -> Optional[R]:
                with self.tick(known_as, every=every, offset=offset, at_most=at_most) as run:
                    return function(*args, **kwargs) if run else None

            return job

        return decorate

    def once(self, id: Key, ttl: Duration) -> bool:
        """Claims an id: true for the first claimant until `ttl` is over. Blocks. Since 0.1."""
        return run(_ticks.once(here(), self._core, key_bytes(id), to_ms(ttl, "ttl")))

    def ready(self, timeout: Optional[Duration] = None) -> None:
        """Waits until the store is connected and logged in; raises what went wrong (Unavailable, Denied, NotRedis,
        Timeout, ...). Optional. Default: connect_timeout. Since 0.1.
        """
        host = here()
        tag = host.begin()
        self._core.native.ready(deadline_ms(timeout, "timeout"), host.queue, tag)
        run(done(host, tag, 0))

    def stats(self) -> Stats:
        """The counters since the client was opened: {"flights": 1, ...}. Does not block. Since 0.1."""
        return cast("Stats", self._core.counters())

    def advance(self, by: Duration) -> None:
        """Moves the clock of ``memory://?clock=manual``, for tests: what expires by then has expired. Since 0.1."""
        self._core.native.advance(to_ms(by, "by"))

    def close(self, timeout: Optional[Duration] = None) -> None:
        """Closes, and waits for it: running loaders have until `timeout` (5 s) to answer, then whoever waits gets
        `Closed`; locks are released. A second close joins the first. Since 0.1.
        """
        self._core.native.close(deadline_ms(timeout, "timeout"))


class Cache:
    """A family of keys with one policy. Made by `Client.cache`. Every call blocks, and may be made by any thread."""

    def __init__(self, core: CacheCore) -> None:
        self._core = core

    @property
    def aio(self) -> aio.Cache:
        """The same cache for event loops."""
        from . import aio

        return aio.Cache(self._core)

    def get_or_load(
        self,
        key: Key,
        loader: Loader[T],
        *,
        fallback: T = _fetching.MISSING,
        wait: Optional[Duration] = None,
        share: bool = False,
        force: bool = False,
        store: bool = True,
    ) -> T:
        """The value; on a miss one caller in the fleet runs its loader, and everybody gets what it gives.

        `loader` runs on this thread, with this context. It returns the value, `Fresh` (a value with its own ttl), or
        None or `ABSENT` for "there is no such thing", which is cached too; absence is answered by None. What it raises
        reaches everybody in this process who waits, as the same object; in other processes it is `LoadFailed`.
        `wait`: how long to wait for somebody else's load; over: a stale value, else `fallback`, else `Timeout`.
        `fallback` also stands in for `Overloaded`. `share`: callers of one load get one object, not each their own.
        `force`: load even if a fresh value is there. `store`: False loads for this caller alone and stores nothing.
        Since 0.1.
        """
        flags = (_native.FORCE if force else 0) | (0 if store else _native.NO_STORE)
        value: T = run(
            _fetching.get_or_load(
                here(), self._core, key_bytes(key), loader, fallback, deadline_ms(wait, "wait"), flags, share
            )
        )
        return value

    def get(self, key: Key, default: Any = None) -> Any:
        """The value in the store, or `default` (also for a cached absence). Never loads. Since 0.1."""
        found = self.lookup(key)
        return found.value if found.hit else default

    def lookup(self, key: Key) -> Lookup:
        """What the store holds: hit, absent, value, stale, age, source. Never loads. Since 0.1."""
        return run(_fetching.lookup(here(), self._core, key_bytes(key)))

    def set(self, key: Key, value: Any, *, ttl: Optional[Duration] = None, soft_ttl: Optional[Duration] = None) -> None:
        """Writes a value; the last writer wins, outside the promises of `invalidate`: prefer that. Since 0.1."""
        run(
            _fetching.put(here(), self._core, key_bytes(key), value, slot_ms(ttl, "ttl"), slot_ms(soft_ttl, "soft_ttl"))
        )

    def invalidate(self, key: Key, *, stale: bool = False) -> None:
        """Deletes the value: after this call nobody in this process gets the old one, and a load in progress anywhere
        cannot store what it read before. `stale`: keeps it as stale instead, for one caller to refresh. Raises if it
        may not have worked. Since 0.1.
        """
        run(_fetching.invalidate(here(), self._core, key_bytes(key), stale))

    def cached(self, key: Template, **how: Any) -> _Decorator:
        """Decorates a function or coroutine function: its answers are cached under `key`, a template of its parameters
        (``"user:{id}"``, ``"user:{user.id}"``) or a function of them. Options: those of `get_or_load`.

        The template is checked here and now. The result also has ``.invalidate(...)``, ``.refresh(...)`` and
        ``.key(...)``, with the parameters of the function. Since 0.1.
        """
        return _Decorator(self, key, how)

    def with_policy(self, **options: Unpack[PolicyOptions]) -> Cache:
        """The same cache with another policy for its calls: ``cache.with_policy(ttl="1h")``. Since 0.1."""
        return Cache(self._core.variant(options))

    def stats(self) -> CacheStats:
        """The counters of this cache. Does not block. Since 0.1."""
        return cast("CacheStats", self._core.client.cache_counters(self._core.native))


class _Decorator:
    """What `Cache.cached` gives: takes functions and coroutine functions."""

    def __init__(self, cache: Cache, key: Template, how: dict[str, Any]) -> None:
        self._cache = cache
        self._key = key
        self._how = how

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Awaitable[Union[R, Fresh[R]]]]
    ) -> CachedCoroutine[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Union[R, Fresh[R]]]) -> CachedFunction[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        key = KeyMaker(self._key, function)
        if is_coroutine_function(function):
            return CachedCoroutine(self._cache.aio, function, key, self._how)
        return CachedFunction(self._cache, function, key, self._how)


class Group:
    """Single-flight without a cache: callers of this process who ask for one key at one time share one run.

    Made by `Client.group`, or by itself. Since 0.1.
    """

    def __init__(self, core: Optional[GroupCore] = None) -> None:
        self._core = core if core is not None else GroupCore(None)

    @property
    def aio(self) -> aio.Group:
        """The same group for event loops."""
        from . import aio

        return aio.Group(self._core)

    def do(self, key: Key, fn: Callable[[], T], *, wait: Optional[Duration] = None) -> T:
        """What `fn` returns, or what the run that is under way for this key does: the same object for all. Blocks, for
        others' runs at most `wait` (default: for ever). What it raises, all get. Since 0.1.
        """
        value: T = run(_fetching.join(here(), self._core, key_bytes(key), fn, deadline_ms(wait, "wait")))[0]
        return value

    def call(self, key: Key, fn: Callable[[], T], *, wait: Optional[Duration] = None) -> Result[T]:
        """As `do`, and tells whether another caller's run made the value. Since 0.1."""
        value, shared = run(_fetching.join(here(), self._core, key_bytes(key), fn, deadline_ms(wait, "wait")))
        return Result(value, shared)

    def forget(self, key: Key) -> None:
        """The next caller of the key begins a run of his own. Does not block. Since 0.1."""
        self._core.native.forget(key_bytes(key))


class Lock(_locks.LockBase):
    """A lock for threads. Made by `Client.lock` and `try_lock`. Not re-entrant, bound to no thread. Since 0.1."""

    def __init__(
        self, client: ClientCore, name: Key, options: dict[str, Any], on_lost: Optional[Callable[[Loss], object]]
    ) -> None:
        super().__init__(client, name, options)
        self._on_lost = on_lost

    def __enter__(self) -> Lock:
        if self._native is None or self._entered or not self.held:
            self.acquire()
        self._entered = True
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        try:
            self.release()
        except Error as error:
            self._release_failed(error, value)

    def acquire(self) -> None:
        """Takes it, or raises: `LockTimeout` if somebody else holds it, `Uncertain`, `Unavailable`, ... Blocks."""
        self._take(_native.DEFAULT)

    def release(self) -> None:
        """Gives it back. Raises `LockLost` if it was not held any more, `Uncertain` if nobody knows. Blocks."""
        try:
            run(_locks.release(here(), self._taken()))
        finally:
            self._unwatch()

    def renew(self) -> None:
        """Renews it now, with its ttl. Rarely needed: that goes by itself. Blocks."""
        run(_locks.renew(here(), self._taken()))

    def wait_lost(self, timeout: Optional[Duration] = None) -> bool:
        """Waits until it is held no longer, whyever, and tells whether that is so. Blocks, to `timeout` seconds."""
        left = deadline_ms(timeout, "timeout")
        lock = self._taken()
        while left < 0 or left > 50:
            if lock.wait_lost(50):
                return True
            left -= 50 if left > 0 else 0
        return lock.wait_lost(left)

    def _take(self, wait_ms: int) -> None:
        self._free_to_take()
        self._entered = False
        loss_queue = None
        if self._on_lost is not None:
            attendant = _background.attendant()
            attendant.handlers[self._loss_tag] = functools.partial(_tell_loss, self._on_lost)
            loss_queue = attendant.queue
        try:
            self._native = run(
                _locks.acquire(here(), self._client, self._key, self._policy, wait_ms, loss_queue, self._loss_tag)
            )
        except BaseException:
            self._unwatch()
            raise

    def _unwatch(self) -> None:
        if self._on_lost is not None:
            _background.attendant().handlers.pop(self._loss_tag, None)


def _tell_loss(on_lost: Callable[[Loss], object], event: _native.Event) -> None:
    loss = Loss(_native.REASONS.get(event.reason, "lost"))
    _background.callbacks().submit(functools.partial(on_lost, loss))  # type: ignore[arg-type]


class Tick(_ticks.TickBase):
    """A tick for threads. Made by `Client.tick`. Since 0.1."""

    def __enter__(self) -> _ticks.TickRun:
        return run(self._ask(here()))

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        run(self._end(here(), kind is None))
