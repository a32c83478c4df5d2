# SPDX-License-Identifier: MIT
"""The host of an event loop: one queue for each running loop, read in batches when its descriptor is readable.

Only the loop holds its host, by the reader it has registered: a loop that is closed, or forgotten, takes it along.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Optional, cast

from . import _fork, _native, _scope
from ._mailbox import Duty, Host, Refresh, discard, log

_BATCH = 256  # as in native/events.cpp


class _Outcome:
    """How a load ended. A task that gives it never fails, so nobody has to retrieve its exception."""

    __slots__ = ("error", "value")

    def __init__(self, value: object = None, error: Optional[Exception] = None) -> None:
        self.value = value
        self.error = error


class LoopHost(Host):
    """One for each loop that makes calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self._futures: dict[int, asyncio.Future[_native.Event]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        loop.add_reader(self.queue.fd(), self._ready)

    def _ready(self) -> None:
        futures = self._futures
        while True:
            events = self.queue.drain()
            for event in events:
                future = futures.pop(event.tag, None)
                if future is None:
                    self.dispatch(event)
                elif future.done():
                    discard(event)
                else:
                    future.set_result(event)
            if len(events) < _BATCH:
                return

    async def wait(self, tag: int, op: int) -> _native.Event:
        future: asyncio.Future[_native.Event] = self.loop.create_future()
        self._futures[tag] = future
        try:
            return await future
        except BaseException:
            if self._futures.pop(tag, None) is not None:
                if op:
                    self.queue.cancel(op)  # what comes all the same finds no future, and is discarded
            elif future.done() and not future.cancelled():
                discard(future.result())
            raise

    def _keep(self, tag: int, event: _native.Event) -> None:
        # The task that has its VALUE runs before what is scheduled now; if it then expects nothing, it is gone.
        super()._keep(tag, event)
        self.loop.call_soon(self._drop, tag)

    def _drop(self, tag: int) -> None:
        event = self._unexpected.pop(tag, None)
        if event is not None:
            discard(event)

    async def load(self, duty: Duty, loader: Callable[[], object], tag: int) -> object:
        task = self._start(self._run(duty, loader), copy_context())

        def revoked(event: _native.Event) -> None:
            if _native.REASONS.get(event.reason) == "unwanted":
                task.cancel()

        self.handlers[tag] = revoked
        task.add_done_callback(lambda _: self.handlers.pop(tag, None))
        try:
            outcome = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done() and not duty.detach():
                task.cancel()
            raise
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def background(self, duty: Duty, refresh: Refresh) -> None:
        async def work() -> None:
            outcome = await self._run(duty, refresh.loader)
            if outcome.error is not None:
                log.warning("stanchion: the refresh of %s failed", duty.name, exc_info=outcome.error)

        self._start(work(), refresh.context)

    async def _run(self, duty: Duty, loader: Callable[[], object]) -> _Outcome:
        """In a task of its own, so that its context is its own and it outlives the caller it began for."""
        try:
            _scope.enter(duty.scope())
            value = loader()
            if inspect.isawaitable(value):
                value = await cast("Awaitable[object]", value)
            return _Outcome(duty.succeed(value))
        except Exception as error:
            duty.fail(error)
            return _Outcome(error=error)
        except BaseException:
            duty.give_up()
            raise

    def _start(self, work: Coroutine[Any, Any, Any], context: Context) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = context.run(self.loop.create_task, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs a coroutine that nobody awaits; it has to deal with its own failures."""
        self._start(work, copy_context())


class _Known:
    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.hosts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[LoopHost]] = (
            weakref.WeakKeyDictionary()
        )
        self.local = threading.local()


_known = _Known()


@_fork.in_child
def _forget() -> None:
    global _known
    _known = _Known()


def here() -> LoopHost:
    """The host of the running loop."""
    loop = asyncio.get_running_loop()
    last: Optional[weakref.ref[LoopHost]] = getattr(_known.local, "last", None)
    if last is not None:
        host = last()
        if host is not None and host.loop is loop:
            return host
    with _known.mutex:
        known = _known.hosts.get(loop)
        host = known() if known is not None else None
        if host is None:
            host = LoopHost(loop)
            _known.hosts[loop] = weakref.ref(host)
    _known.local.last = weakref.ref(host)
    return host
