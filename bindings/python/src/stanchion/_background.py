# SPDX-License-Identifier: MIT
"""The daemon threads of the package, each made when it is first needed.

The *attendant* reads what comes while no call waits: losses of locks, notices, a refresh for a thread that has gone on.
The *refreshers* run loaders in the background. One more runs callbacks. None survives a fork; at exit refreshers and
callbacks have a second to end.
"""

from __future__ import annotations

import atexit
import os
import queue
import select
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Optional, TypeVar

from . import _fork
from ._mailbox import Duty, Mailbox, Refresh, log

if TYPE_CHECKING:
    from ._threads import ThreadHost

T = TypeVar("T")

_EXIT_S = 1.0


class Workers:
    """A few daemon threads with a bounded line of work."""

    def __init__(self, name: str, threads: int, bound: int) -> None:
        self._name = name
        self._most = threads
        self._line: queue.Queue[Optional[Callable[[], None]]] = queue.Queue(bound)
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)
        self._mutex = threading.RLock()

    def submit(self, work: Callable[[], None]) -> bool:
        """False if the line is full."""
        try:
            self._line.put_nowait(work)
        except queue.Full:
            return False
        if not self._idle.acquire(blocking=False):
            with self._mutex:
                if len(self._threads) < self._most:
                    name = f"stanchion-{self._name}-{len(self._threads)}"
                    thread = threading.Thread(target=self._work, name=name, daemon=True)
                    self._threads.append(thread)
                    thread.start()
        return True

    def _work(self) -> None:
        while True:
            work = self._line.get()
            if work is None:
                return
            try:
                work()
            except Exception:
                log.exception("stanchion: %s failed", self._name)
            del work
            self._idle.release()

    def end(self, until: float) -> None:
        """Lets the threads end what they are at, until that moment of time.monotonic()."""
        try:
            while True:
                self._line.get_nowait()
        except queue.Empty:
            pass
        for _ in self._threads:
            self._line.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))


class Attendant(Mailbox):
    """Reads the queues that nobody waits on. Of its own queue it reads everything; of a thread's only what comes
    between two calls, when the thread says so (one event for each `watch`)."""

    def __init__(self) -> None:
        super().__init__()
        self._epoll = select.epoll()
        self._own = self.queue.fd()
        self._hosts: dict[int, weakref.ref[ThreadHost]] = {}
        self._epoll.register(self._own, select.EPOLLIN)
        threading.Thread(target=self._attend, name="stanchion-attendant", daemon=True).start()

    def watch(self, host: ThreadHost) -> None:
        """The thread of this host goes on: read for it."""
        fd = host.queue.fd()
        known = self._hosts.get(fd)
        if known is None or known() is not host:  # a descriptor of a thread that ended was closed with its queue
            self._hosts[fd] = weakref.ref(host)
            self._epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        else:
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)

    def unwatch(self, host: ThreadHost) -> None:
        """The thread of this host reads for itself again."""
        self._epoll.modify(host.queue.fd(), 0)

    def _attend(self) -> None:
        while True:
            for fd, _ in self._epoll.poll():
                try:
                    if fd == self._own:
                        for event in self.queue.drain():
                            self.dispatch(event)
                        continue
                    known = self._hosts.get(fd)
                    host = known() if known is not None else None
                    if host is not None:
                        host.attended()
                    del host
                except Exception:
                    log.exception("stanchion: an event could not be handled")

    def background(self, duty: Duty, refresh: Refresh) -> None:
        duty.give_up()


class _Made(Generic[T]):
    """Made at its first use, and anew in a fork child."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._mutex = threading.RLock()
        self.one: Optional[T] = None
        _fork.in_child(self._forget)

    def __call__(self) -> T:
        one = self.one
        if one is None:
            with self._mutex:
                one = self.one
                if one is None:
                    one = self.one = self._make()
        return one

    def _forget(self) -> None:
        self._mutex = threading.RLock()
        self.one = None


attendant = _Made(Attendant)
"""The thread that reads what comes between calls."""

refreshers = _Made(lambda: Workers("refresh", min(4, os.cpu_count() or 1), 256))
"""The threads that refresh stale values for blocking callers."""

callbacks = _Made(lambda: Workers("callbacks", 1, 10_000))
"""The thread that runs callbacks."""


@atexit.register
def _at_exit() -> None:
    until = time.monotonic() + _EXIT_S
    for made in (refreshers, callbacks):
        if made.one is not None:
            made.one.end(until)
