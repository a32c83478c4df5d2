# SPDX-License-Identifier: MIT
"""Durations: seconds as numbers, text for the library's own parser, timedelta. Rounded up to whole milliseconds."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Optional, Union

from . import _native
from ._errors import InvalidArgument

Duration = Union[int, float, str, timedelta]
"""Seconds (``1.5``), text with units (``"5m"``, ``"1h30m"``, ``"1500ms"``) or a timedelta."""

_MICROSECOND = timedelta(microseconds=1)


def to_ms(value: Duration, name: str) -> int:
    """Whole milliseconds, rounded up: a wait is never cut short, a TTL never falls to nothing."""
    if isinstance(value, str):
        return _native.duration_parse(value)
    if isinstance(value, timedelta):
        ms = -(-(value // _MICROSECOND) // 1000)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(f"{name}: seconds, text like '5m' or a timedelta, not {type(value).__name__}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(f"{name}: {value} is no number of seconds")
        # the nearest microsecond first: 0.29 * 1000 is a little more than 290
        ms = -(-round(value * 1_000_000) // 1000)
    else:
        ms = value * 1000
    if ms < 0:
        raise InvalidArgument(f"{name}: negative")
    if ms > _native.DURATION_MAX:
        raise InvalidArgument(f"{name}: more than 10 years")
    return ms


def deadline_ms(value: Optional[Duration], name: str) -> int:
    """The same for a wait: None is the default, ``math.inf`` (or "forever") has no limit."""
    if value is None:
        return _native.DEFAULT
    if value == "forever" or (isinstance(value, float) and value == math.inf):
        return _native.NO_LIMIT
    return to_ms(value, name)


def slot_ms(value: Optional[Duration], name: str) -> int:
    """The same for a ttl that may be left to the policy."""
    return _native.DEFAULT if value is None else to_ms(value, name)


def to_seconds(ms: int) -> Optional[float]:
    """Seconds of a time the library tells; None if it does not know, or there is none."""
    return None if ms < 0 else ms / 1000
