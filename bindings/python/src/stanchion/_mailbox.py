# SPDX-License-Identifier: MIT
"""A queue of the library, and who in Python its events are for.

Everything the package does is written once, as coroutines that are given a *host*: a mailbox that knows how to wait.
There are two: the one of a thread waits inside the call, so its coroutines never suspend and `run` drives them to their
end in one step; the one of an event loop suspends them. Nothing else differs between ``stanchion`` and
``stanchion.aio``.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Optional, Protocol, TypeVar

from . import _fork, _native, _refs

log = logging.getLogger("stanchion")
T = TypeVar("T")

new_tag = itertools.count(1).__next__
"""The tag of an operation: one of its own for each, over all queues."""

_REFRESH_WITHIN_S = 30.0  # a REFRESH that has not come by then will not
_REFRESHES = 10_000


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drives a coroutine whose host waits inside its calls."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a blocking call was suspended")


class Duty(Protocol):
    """A load that this caller has to run and to answer for: of a lease, or of a group's flight."""

    @property
    def name(self) -> str:
        """What is loaded, for the log."""

    def scope(self) -> Optional[_native.Scope]:
        """Its name in calls that the load makes."""

    def succeed(self, value: object) -> object:
        """Answers everybody; gives what the leader himself gets. Raises if the value cannot be encoded."""

    def fail(self, error: BaseException) -> None:
        """Answers everybody with the very exception."""

    def give_up(self) -> None:
        """Answers nobody: whoever has waited longest runs the load."""

    def detach(self) -> bool:
        """The leader has gone: does anybody wait?"""


class Refresh:
    """What to run if the library asks this caller to refresh a value: a duty for its lease, and the loader."""

    __slots__ = ("context", "duty", "loader", "until")

    def __init__(self, duty: Callable[[_native.Lease], Duty], loader: Callable[[], object], context: Context) -> None:
        self.duty = duty
        self.loader = loader
        self.context = context
        self.until = time.monotonic() + _REFRESH_WITHIN_S


class Mailbox(ABC):
    """A queue, and what becomes of events that no call waits for."""

    def __init__(self) -> None:
        self.queue = _native.Queue(_refs.SCOPE)
        self.handlers: dict[int, Callable[[_native.Event], None]] = {}  # by tag: REVOKED, LOCK_LOST, NOTICE
        self._refreshes: dict[int, Refresh] = {}  # by tag, oldest first
        self._unexpected: dict[int, _native.Event] = {}  # a REFRESH that was read before its caller went on
        # Guards both: the attendant reads while a thread goes on. Re-entrant, for signal handlers and finalizers.
        self._mutex = threading.RLock()
        when_gone(self, _end, self.queue, _fork.generation)

    @abstractmethod
    def background(self, duty: Duty, refresh: Refresh) -> None:
        """Runs a loader that nobody waits for; its failures are logged."""

    def dispatch(self, event: _native.Event) -> None:
        """For an event that no call is waiting for. Never raises."""
        try:
            tag = event.tag
            if event.kind == _native.REFRESH:
                with self._mutex:
                    refresh = self._refreshes.pop(tag, None)
                    if refresh is None:
                        self._keep(tag, event)
                        return
                self._refresh(event, refresh)
                return
            handler = self.handlers.get(tag)
            if handler is not None:
                handler(event)
            discard(event)
        except Exception:
            log.exception("stanchion: an event could not be handled")

    def _keep(self, tag: int, event: _native.Event) -> None:
        """Keeps a REFRESH whose caller has not gone on yet; one that never will is dropped when others come."""
        if len(self._unexpected) >= 16:
            discard(self._unexpected.pop(next(iter(self._unexpected))))
        self._unexpected[tag] = event

    def _refresh(self, event: _native.Event, refresh: Refresh) -> None:
        lease = event.take_lease()
        if lease is not None:
            self.background(refresh.duty(lease), refresh)


class Host(Mailbox):
    """A mailbox whose owner makes calls, and waits for what he has begun."""

    def begin(self) -> int:
        """The tag for an operation that is begun now, and waited for at once."""
        return new_tag()

    @abstractmethod
    async def wait(self, tag: int, op: int) -> _native.Event:
        """The terminal event of an operation. Left early, the operation is cancelled (if op is not 0)."""

    @abstractmethod
    async def load(self, duty: Duty, loader: Callable[[], object], tag: int) -> object:
        """Runs a loader in a copy of the caller's context, and answers."""

    def attend(self) -> None:
        """Makes sure that the queue is read although its owner does not wait."""

    def expect_refresh(self, tag: int, refresh: Refresh) -> None:
        """A REFRESH may follow the VALUE of this tag."""
        waiting = self._refreshes
        now = time.monotonic()
        with self._mutex:
            event = self._unexpected.pop(tag, None)
            if event is None:
                for oldest, kept in list(itertools.islice(waiting.items(), 2)):
                    if kept.until < now or len(waiting) > _REFRESHES:
                        waiting.pop(oldest, None)
                waiting[tag] = refresh
        if event is None:
            self.attend()
        else:
            self._refresh(event, refresh)


def when_gone(owner: object, act: Callable[..., object], *args: object) -> None:
    """Runs act(*args) when nobody holds `owner` any more; not at exit."""
    finalizer: Any = weakref.finalize(owner, act, *args)
    finalizer.atexit = False


def discard(event: _native.Event) -> None:
    """Ends an event that nobody wants: a lease in it goes to the next who waits, a lock is released."""
    if event.host_ref:
        _refs.take(event.host_ref)
    event.free()


def failure_of(event: _native.Event) -> BaseException:
    """The exception of an ERROR event: the leader's very own, if it was raised in this process."""
    if event.host_ref:
        what = _refs.take(event.host_ref)
        if isinstance(what, _refs.Raised) and _native.STATUSES.get(event.status) != "closed":
            return what.again()
    error = event.error()
    return error if error is not None else RuntimeError(f"an event of kind {event.kind} was not expected")


async def done(host: Host, tag: int, op: int) -> _native.Event:
    """Waits for an operation that answers DONE, VALUE or ABSENT; raises what went wrong."""
    event = await host.wait(tag, op)
    if event.kind == _native.ERROR:
        raise failure_of(event)
    return event


def _end(queue: _native.Queue, generation: int) -> None:
    """The owner of a queue has gone: so do its operations, and the references in what was unread."""
    if generation != _fork.generation:
        return
    queue.close()
    while events := queue.drain():
        for event in events:
            discard(event)
