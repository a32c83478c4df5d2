# SPDX-License-Identifier: MIT
"""Which load this code runs for, carried in the context: so that a loader that waits for itself is told at once."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Optional

from . import _fork, _native

_within: ContextVar[Optional[tuple[int, _native.Scope]]] = ContextVar("stanchion_within", default=None)


def within() -> Optional[_native.Scope]:
    """The scope of the load that makes this call, or None. One from before a fork is none."""
    current = _within.get()
    if current is None or current[0] != _fork.generation:
        return None
    return current[1]


def enter(scope: Optional[_native.Scope]) -> None:
    """From here on, in this context, calls are made by that load."""
    if scope is not None:
        _within.set((_fork.generation, scope))
