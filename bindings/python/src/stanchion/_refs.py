# SPDX-License-Identifier: MIT
"""Objects that a leader shares with the callers who joined it: the very exception, or with ``share=True`` the value.

The library carries a number in their events and tells the leader how many will carry it, perhaps after the first of
them was read; so an entry counts in both directions and goes when they meet.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from . import _fork

_numbers = itertools.count(1)


class _Entry:
    __slots__ = ("left", "told", "what")

    def __init__(self, what: object) -> None:
        self.what = what
        self.left = 0  # events to come, once told; before, minus those that came
        self.told = False


class Raised:
    """An exception to be raised by many: each begins with the traceback that its load left, so it does not grow."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._traceback = error.__traceback__

    def again(self) -> BaseException:
        """The exception, to be raised once more."""
        return self._error.with_traceback(self._traceback)


class _Table:
    def __init__(self) -> None:
        self.entries: dict[int, _Entry] = {}
        self.mutex = threading.RLock()  # a finalizer may come here in the middle


_table = _Table()


@_fork.in_child
def _forget() -> None:
    global _table
    _table = _Table()


SCOPE = id(_numbers)
"""The host scope of all queues: the address of an object of this interpreter."""


def share(what: object, answer: Callable[[int], int]) -> None:
    """Runs `answer(ref)`, which tells how many events will carry `what`."""
    table = _table
    ref = next(_numbers)
    entry = _Entry(what)
    with table.mutex:
        table.entries[ref] = entry
    count = 0
    try:
        count = answer(ref)
    finally:
        with table.mutex:
            entry.left += count
            entry.told = True
            if entry.left <= 0:
                table.entries.pop(ref, None)


def take(ref: int) -> Any:
    """What an event carries; one event fewer is to come."""
    table = _table
    with table.mutex:
        entry = table.entries[ref]
        entry.left -= 1
        if entry.told and entry.left <= 0:
            del table.entries[ref]
    return entry.what


def count() -> int:
    """How many objects are kept now; for tests."""
    return len(_table.entries)
