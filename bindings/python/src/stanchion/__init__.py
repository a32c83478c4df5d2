# SPDX-License-Identifier: MIT
"""Stanchion: one load for a whole fleet, when a hot key expires; and honest locks.

    import stanchion

    client = stanchion.connect("redis://localhost")
    users = client.cache("users", ttl="5m", soft_ttl="4m")

    user = users.get_or_load("42", lambda: read_user_from_database(42))
    users.invalidate("42")

    with client.lock("report", ttl="30s") as lock:
        write_report(fence=lock.fence)

Calls block and are for threads; ``stanchion.aio`` has the same names for asyncio. Numbers are seconds everywhere; "5m"
and timedelta do, too.
"""

import logging as _logging

from . import _interpreter, aio  # noqa: F401
from ._cached import CachedCoroutine, CachedFunction
from ._codecs import Codec
from ._durations import Duration
from ._errors import (
    Busy,
    Cancelled,
    Closed,
    Collision,
    Denied,
    Error,
    ForkedError,
    InternalError,
    InvalidArgument,
    LoadFailed,
    LockLost,
    LockTimeout,
    NoMemory,
    NotMine,
    NotRedis,
    Overloaded,
    Refused,
    Timeout,
    TooLarge,
    Unavailable,
    Uncertain,
    Undecodable,
    UnknownOption,
    Unsupported,
    WouldDeadlock,
)
from ._native import version as _version
from ._stats import CacheStats, Stats
from ._sync import Cache, Client, Group, Lock, Tick, connect
from ._ticks import TickRun
from ._values import ABSENT, Absent, Fresh, Key, Lookup, Loss, Result

__version__ = _version()
_logging.getLogger("stanchion").addHandler(_logging.NullHandler())

__all__ = [
    "connect",
    "aio",
    "Client",
    "Cache",
    "Group",
    "Lock",
    "Tick",
    "TickRun",
    "CachedFunction",
    "CachedCoroutine",
    "ABSENT",
    "Absent",
    "Fresh",
    "Result",
    "Lookup",
    "Loss",
    "Stats",
    "CacheStats",
    "Codec",
    "Duration",
    "Key",
    "Error",
    "InvalidArgument",
    "UnknownOption",
    "TooLarge",
    "Collision",
    "Undecodable",
    "LoadFailed",
    "WouldDeadlock",
    "Overloaded",
    "Busy",
    "Timeout",
    "LockTimeout",
    "LockLost",
    "NotMine",
    "Cancelled",
    "Uncertain",
    "Refused",
    "Unavailable",
    "Denied",
    "NotRedis",
    "Unsupported",
    "Closed",
    "ForkedError",
    "NoMemory",
    "InternalError",
    "__version__",
]
