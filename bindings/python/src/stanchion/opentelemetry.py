# SPDX-License-Identifier: MIT
"""Spans and metrics for OpenTelemetry; needs ``pip install stanchion[opentelemetry]``.

    import stanchion.opentelemetry

    stanchion.opentelemetry.instrument()                # spans, of all clients
    stanchion.opentelemetry.observe({"main": client})   # metrics

Both surfaces await the same few coroutines, so `instrument` puts a span around these; without it nothing is there to
cost anything. A loader has a span of its own below that of the call it runs for, and what it does stands below that.
Keys may name people: they are left out, unless asked for.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union, cast

try:
    from opentelemetry import metrics, trace
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "stanchion.opentelemetry needs opentelemetry-api: pip install stanchion[opentelemetry]"
    ) from error

from . import _fetching, _locks, _native, _ticks
from ._core import CacheCore, ClientCore, GroupCore
from ._errors import LockTimeout
from ._loops import LoopHost
from ._mailbox import Host
from ._stats import CacheStats, Stats

if TYPE_CHECKING:
    from ._sync import Client
    from .aio import Client as AioClient

__all__ = ["instrument", "observe", "uninstrument"]

_Load = Callable[[], object]


# ---- Spans

_originals: list[tuple[Any, str, Any]] = []


def instrument(tracer_provider: Optional[trace.TracerProvider] = None, *, keys: bool = False) -> None:
    """Puts spans around what this process does from now on, with any client: ``stanchion.get_or_load``,
    ``stanchion.load`` and so on. `keys`: they also carry the key. A second call replaces the first. Since 0.1.
    """
    uninstrument()
    spans = _Spans(trace.get_tracer("stanchion", _native.version(), tracer_provider), keys)
    for place, name in (
        (_fetching, "get_or_load"),
        (_fetching, "_read"),
        (_fetching, "lookup"),
        (_fetching, "put"),
        (_fetching, "invalidate"),
        (_fetching, "join"),
        (_locks, "acquire"),
        (_locks, "release"),
        (_ticks, "once"),
        (_ticks.TickBase, "_ask"),
    ):
        original = getattr(place, name)
        around = getattr(spans, name.lstrip("_"))
        _originals.append((place, name, original))
        setattr(place, name, _around(original, around))


def uninstrument() -> None:
    """Takes the spans away. Since 0.1."""
    while _originals:
        place, name, original = _originals.pop()
        setattr(place, name, original)


def _around(original: Callable[..., Any], around: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any) -> Any:  # a plain function, so that it binds like one
        return around(original, *args)

    return call


class _Spans:
    """One method for each coroutine that has a span; each is given the original first."""

    def __init__(self, tracer: trace.Tracer, keys: bool) -> None:
        self._tracer = tracer
        self._keys = keys

    def _span(self, name: str, key: Optional[bytes] = None, **attributes: str) -> Any:
        named = {f"stanchion.{word}": value for word, value in attributes.items()}
        if self._keys and key is not None:
            named["stanchion.key"] = _text(key)
        return self._tracer.start_as_current_span(f"stanchion.{name}", attributes=named)

    async def get_or_load(
        self, original: Any, host: Host, cache: CacheCore, key: bytes, loader: _Load, *rest: Any
    ) -> Any:
        with self._span("get_or_load", key, cache=cache.name) as span:
            load = self._load("load", span, host, loader, key, cache=cache.name)
            value = await original(host, cache, key, load, *rest)
            if value is cache.nothing:
                span.set_attribute("stanchion.absent", True)
            return value

    def read(self, original: Any, cache: CacheCore, event: _native.Event, share: bool) -> Any:
        """Not awaited: the span of the call that reads is the current one."""
        span = trace.get_current_span()
        span.set_attribute("stanchion.source", _fetching._SOURCES.get(event.flags & _native.SOURCE_MASK, "unknown"))
        span.set_attribute("stanchion.stale", bool(event.flags & _native.STALE))
        return original(cache, event, share)

    async def lookup(self, original: Any, host: Host, cache: CacheCore, key: bytes) -> Any:
        with self._span("lookup", key, cache=cache.name) as span:
            found = await original(host, cache, key)
            span.set_attribute("stanchion.hit", found.hit)
            return found

    async def put(self, original: Any, host: Host, cache: CacheCore, key: bytes, *rest: Any) -> Any:
        with self._span("set", key, cache=cache.name):
            return await original(host, cache, key, *rest)

    async def invalidate(self, original: Any, host: Host, cache: CacheCore, key: bytes, *rest: Any) -> Any:
        with self._span("invalidate", key, cache=cache.name):
            return await original(host, cache, key, *rest)

    async def join(
        self, original: Any, host: Host, group: GroupCore, key: bytes, work: _Load, *rest: Any
    ) -> tuple[Any, bool]:
        with self._span("do", key) as span:
            value, shared = await original(host, group, key, self._load("run", span, host, work, key), *rest)
            span.set_attribute("stanchion.shared", shared)
            return value, shared

    async def acquire(self, original: Any, host: Host, client: ClientCore, name: bytes, *rest: Any) -> Any:
        with self._span("acquire", lock=_text(name)) as span:
            try:
                lock, busy = await original(host, client, name, *rest), None
            except LockTimeout as error:  # an answer, no failure of the call
                lock, busy = None, error
            span.set_attribute("stanchion.held", lock is not None)
        if busy is not None:
            raise busy
        return lock

    async def release(self, original: Any, host: Host, lock: _native.Lock) -> None:
        with self._span("release"):
            await original(host, lock)

    async def once(self, original: Any, host: Host, client: ClientCore, id: bytes, *rest: Any) -> Any:
        with self._span("once", id) as span:
            first = await original(host, client, id, *rest)
            span.set_attribute("stanchion.first", first)
            return first

    async def ask(self, original: Any, tick: _ticks.TickBase, host: Host) -> _ticks.TickRun:
        with self._span("tick", tick=_text(tick._key)) as span:
            run = cast("_ticks.TickRun", await original(tick, host))
            span.set_attribute("stanchion.won", bool(run))
            if run.reason is not None:
                span.set_attribute("stanchion.reason", run.reason)
            return run

    def _load(self, name: str, caller: trace.Span, host: Host, loader: _Load, key: bytes, **what: str) -> _Load:
        """The loader in a span of its own. `caller`: the span of the call that it may run for."""

        def begin() -> Any:
            if caller.is_recording():  # of a refresh, that span has ended and stays as it was
                caller.set_attribute("stanchion.source", name)
            return self._span(name, key, **what)

        def load() -> object:
            with begin():
                return loader()

        async def load_awaited() -> object:
            with begin():
                value = loader()
                return await cast("Awaitable[object]", value) if inspect.isawaitable(value) else value

        return load_awaited if isinstance(host, LoopHost) else load


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


# ---- Metrics


def observe(
    clients: Mapping[str, Union[Client, AioClient]], meter_provider: Optional[metrics.MeterProvider] = None
) -> None:
    """Lets a meter read the counters of these clients, by the names they have in the attribute ``stanchion.client``:
    those of `Client.stats` as ``stanchion.<name>``, those of `Cache.stats` as ``stanchion.cache.<name>`` with the
    attribute ``stanchion.cache``. To be called once for a meter provider, with all clients; a client that is gone
    is not read any more. Since 0.1.
    """
    meter = metrics.get_meter("stanchion", _native.version(), meter_provider)
    cores = {name: weakref.ref(client._core) for name, client in clients.items()}

    def living() -> Iterator[tuple[str, ClientCore]]:
        for name, known in cores.items():
            core = known()
            if core is not None:
                yield name, core

    def read(counter: str, _: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        for client, core in living():
            yield metrics.Observation(core.counters()[counter], {"stanchion.client": client})

    def read_caches(counter: str, _: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        for client, core in living():
            for cache, native in list(core.caches.items()):
                labels = {"stanchion.client": client, "stanchion.cache": cache}
                yield metrics.Observation(core.cache_counters(native)[counter], labels)

    for name in Stats.__annotations__:
        meter.create_observable_counter(
            f"stanchion.{name}", [functools.partial(read, name)], description=_native.STATS[name]
        )
    for name in CacheStats.__annotations__:
        meter.create_observable_counter(
            f"stanchion.cache.{name}", [functools.partial(read_caches, name)], description=_native.STATS[name]
        )
