# SPDX-License-Identifier: MIT
"""The host of a thread: it waits inside the call, for the events of a queue that the thread has for itself."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context

from . import _background, _fork, _native, _scope
from ._mailbox import Duty, Host, Refresh, discard, log, new_tag

_SLICE_MS = 50  # how soon the main thread sees a signal: Python runs handlers between two calls, not inside one
_LONG_MS = 1_000


class ThreadHost(Host):
    """One for each thread that makes blocking calls."""

    def __init__(self) -> None:
        super().__init__()
        self.queue.set_sync()  # each call waits for what it has begun
        # What another reader of the queue (the attendant; a call made by a signal handler or a finalizer) took for a
        # call that waits here.
        self._waiting: set[int] = set()
        self._begun: deque[int] = deque(maxlen=32)  # an answer may be there before the call waits for it
        self._taken: dict[int, _native.Event] = {}
        self._slice_ms = _SLICE_MS if threading.current_thread() is threading.main_thread() else _LONG_MS
        self._attended = False

    def begin(self) -> int:
        if self._attended:
            self._attended = False
            _background.attendant().unwatch(self)
        tag = new_tag()
        self._begun.append(tag)
        return tag

    async def wait(self, tag: int, op: int) -> _native.Event:
        event = None
        self._waiting.add(tag)
        try:
            while True:
                event = self._taken.pop(tag, None) if self._taken else None
                if event is not None:
                    return event
                event = self.queue.next(self._slice_ms)
                if event is None:
                    continue
                if event.tag == tag:
                    return event
                self.deliver(event)
        except BaseException:
            self._leave(tag, op, event)
            raise
        finally:
            self._waiting.discard(tag)

    def _leave(self, tag: int, op: int, event: object) -> None:
        """The call ends without its answer (Ctrl-C): nothing that comes for it may stay unread, a lock least of all."""
        if isinstance(event, _native.Event):
            if event.tag == tag:
                discard(event)
                return
            self.deliver(event)
        if op:
            self.queue.cancel(op)
        for _ in range(20):  # it comes in a moment
            late = self._taken.pop(tag, None) or self.queue.next(50)
            if late is None:
                continue
            if late.tag == tag:
                discard(late)
                return
            self.deliver(late)
        if tag in self._begun:
            self._begun.remove(tag)

    def deliver(self, event: _native.Event) -> None:
        """Hands on an event that was read by somebody else than the call it is for."""
        tag = event.tag
        if (tag in self._waiting or tag in self._begun) and event.kind not in (_native.REFRESH, _native.REVOKED):
            self._taken[tag] = event
        else:
            self.dispatch(event)

    async def load(self, duty: Duty, loader: Callable[[], object], tag: int) -> object:
        try:
            value = copy_context().run(_call, duty, loader)
        except Exception as error:
            duty.fail(error)
            raise
        except BaseException:
            duty.give_up()
            raise
        return value

    def background(self, duty: Duty, refresh: Refresh) -> None:
        def work() -> None:
            try:
                refresh.context.run(_call, duty, refresh.loader)
            except Exception as error:
                duty.fail(error)
                log.warning("stanchion: the refresh of %s failed", duty.name, exc_info=True)
            except BaseException:
                duty.give_up()
                raise

        if not _background.refreshers().submit(work):
            duty.give_up()

    def attend(self) -> None:
        self._attended = True
        _background.attendant().watch(self)

    def attended(self) -> None:
        """The attendant reads what came while no call waits."""
        for event in self.queue.drain():
            self.deliver(event)
        self.queue.wake()


def _call(duty: Duty, loader: Callable[[], object]) -> object:
    _scope.enter(duty.scope())
    value = loader()
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("the loader gives an awaitable: use the same call of stanchion.aio (client.aio crosses over)")
    return duty.succeed(value)


_local = threading.local()


@_fork.in_child
def _forget() -> None:
    global _local
    _local = threading.local()


def here() -> ThreadHost:
    """The host of this thread."""
    try:
        host: ThreadHost = _local.host
    except AttributeError:
        host = _local.host = ThreadHost()
    return host
