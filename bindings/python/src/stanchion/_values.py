# SPDX-License-Identifier: MIT
"""The small values of the public interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar, Union

from ._durations import Duration

T = TypeVar("T")
Key = Union[str, bytes]
"""1 to 1,024 bytes; text is UTF-8."""


class Absent:
    """The type of ABSENT: "there is no such thing". It is false."""

    _only: Optional[Absent] = None

    def __new__(cls) -> Absent:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "stanchion.ABSENT"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""What a loader returns, as well as None, for "there is no such thing": cached for ``absent_ttl``."""


@dataclass(frozen=True)
class Fresh(Generic[T]):
    """A loader's answer with an expiry of its own: ``return Fresh(value, ttl="1h")``. Of ABSENT, `ttl` alone counts.

    Since 0.1.
    """

    value: T
    ttl: Optional[Duration] = None
    soft_ttl: Optional[Duration] = None


@dataclass(frozen=True)
class Result(Generic[T]):
    """What `Group.call` gives: `shared` is true if another caller's run made the value."""

    value: T
    shared: bool


@dataclass(frozen=True)
class Lookup:
    """What `Cache.lookup` gives. Ages are seconds, None if unknown.

    `hit`: a value was found. `absent`: a cached absence was found. Neither: a miss. `source`: "store" or "memory".
    """

    hit: bool
    absent: bool = False
    value: Any = None
    stale: bool = False
    age: Optional[float] = None
    soft_ttl_left: Optional[float] = None
    source: Optional[str] = None

    def __bool__(self) -> bool:
        return self.hit


@dataclass(frozen=True)
class Loss:
    """Why a lock was lost: expired, deleted, stolen, max_hold or closed."""

    reason: str


def key_bytes(key: Key) -> bytes:
    """The bytes of a key or name."""
    if isinstance(key, str):
        return key.encode("utf-8")
    if isinstance(key, bytes):
        return key
    raise TypeError(f"a key is str or bytes, not {type(key).__name__}")
