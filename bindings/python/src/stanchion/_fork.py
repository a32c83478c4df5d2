# SPDX-License-Identifier: MIT
"""A child of fork owns nothing: what it inherited is forgotten here, once, and everything is made anew on demand."""

from __future__ import annotations

import os
from typing import Callable

generation = 0
"""How many forks lie between this process and the one that imported the package."""

_resets: list[Callable[[], None]] = []


def in_child(reset: Callable[[], None]) -> Callable[[], None]:
    """Registers what a module has to forget in a child. It may not take a lock: the owner may not exist any more."""
    _resets.append(reset)
    return reset


def _after_in_child() -> None:
    global generation
    generation += 1
    for reset in _resets:
        reset()


os.register_at_fork(after_in_child=_after_in_child)
