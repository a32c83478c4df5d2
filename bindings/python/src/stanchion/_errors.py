# SPDX-License-Identifier: MIT
"""The tree of exceptions. What they say comes from the library; only the advice about fork is Python's own."""

from __future__ import annotations

from typing import Optional

from . import _native


class Error(Exception):
    """Whatever Stanchion itself reports. What a loader raises is not wrapped: it reaches its callers as it is.

    Since 0.1.
    """

    code: str = "internal"
    """The name of the status, as in stanchion.h: ``"timeout"``."""
    key: Optional[bytes] = None
    """The key or name it is about, or None."""
    server_text: Optional[str] = None
    """The store's own error line, unchanged, or None."""
    retryable: bool = False
    """The same call may well succeed later."""
    may_have_applied: bool = False
    """A command was sent whose reply is unknown."""

    def __init__(self, message: str = "", *, code: Optional[str] = None, key: Optional[bytes] = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        if key is not None:
            self.key = key


class InvalidArgument(Error, ValueError):
    """An argument or an option is not valid; nothing was done."""

    code = "invalid_argument"


class UnknownOption(InvalidArgument):
    """There is no option of that name; the message names the nearest one."""

    code = "unknown_option"


class TooLarge(Error):
    """The key or the value is too large."""

    code = "too_large"


class Collision(Error):
    """The key holds something that is not Stanchion's."""

    code = "collision"


class Undecodable(Error):
    """The stored value cannot be decoded, by any of the loads that were tried."""

    code = "undecodable"


class LoadFailed(Error):
    """The load failed in another process; in this one, callers get the loader's own exception."""

    code = "load_failed"


class WouldDeadlock(Error):
    """A loader, directly or through others, waits for itself."""

    code = "would_deadlock"


class Overloaded(Error):
    """Too many loads are running, or too many callers are waiting, already."""

    code = "overloaded"
    retryable = True


class Busy(Error):
    """Somebody else holds it."""

    code = "busy"
    retryable = True


class Timeout(Error, TimeoutError):
    """The caller's deadline passed."""

    code = "timeout"
    retryable = True


class LockTimeout(Timeout):
    """The lock was not to be had within ``wait``: somebody else holds it."""


class Cancelled(Error):
    """The operation was cancelled, not by the task that awaits it."""

    code = "cancelled"


class Uncertain(Error):
    """The reply was lost: it may have been applied or not."""

    code = "uncertain"
    retryable = True


class LockLost(Error):
    """The lock was held and is held no longer; `reason` says why: expired, deleted, stolen, max_hold, closed."""

    code = "lost"
    reason: Optional[str] = None


class NotMine(LockLost):
    """Somebody else's lock stands in the key."""

    code = "not_mine"


class Refused(Error):
    """The store refused the command, now; see `server_text`."""

    code = "refused"
    retryable = True


class Unavailable(Error, ConnectionError):
    """The store cannot be reached, or serves nobody now."""

    code = "unavailable"
    retryable = True


class Denied(Error, PermissionError):
    """The store's access rules forbid it."""

    code = "denied"


class NotRedis(Error):
    """The server does not speak the Redis protocol."""

    code = "not_redis"


class Unsupported(Error):
    """Not supported, by the library or by the store."""

    code = "unsupported"


class Closed(Error):
    """The client is closed."""

    code = "closed"


class ForkedError(Error):
    """The client was opened before a fork, in the parent process. The child opens its own."""

    code = "forked"


class NoMemory(Error, MemoryError):
    """Out of memory; nothing was changed."""

    code = "no_memory"
    retryable = True


class InternalError(Error):
    """A fault inside the library: please report its message."""

    code = "internal"


_CLASSES: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        UnknownOption,
        TooLarge,
        Collision,
        Undecodable,
        LoadFailed,
        WouldDeadlock,
        Overloaded,
        Busy,
        Timeout,
        Cancelled,
        Uncertain,
        LockLost,
        NotMine,
        Refused,
        Unavailable,
        Denied,
        NotRedis,
        Unsupported,
        Closed,
        ForkedError,
        NoMemory,
        InternalError,
    )
}

FORK_ADVICE = (
    "open the client after the fork, in the process that uses it "
    "(gunicorn: in the post_fork hook; multiprocessing: in the child's function or a pool's initializer)"
)


def build(code: int, message: str, key: Optional[bytes], server_text: Optional[str], flags: int) -> Error:
    """The exception for an error of the library; called by _native."""
    name = _native.STATUSES.get(code, "internal")
    if name == "forked":
        message = f"{message}; {FORK_ADVICE}"
    error = _CLASSES.get(name, InternalError)(message, code=name, key=key)
    error.server_text = server_text
    error.retryable = bool(flags & _native.ERROR_RETRYABLE)
    error.may_have_applied = bool(flags & _native.ERROR_MAY_HAVE_APPLIED)
    return error


def status_of(name: str) -> int:
    """The number of a status."""
    return _NUMBERS[name]


_NUMBERS = {name: number for number, name in _native.STATUSES.items()}


def text_of(error: BaseException) -> str:
    """One line for callers in other processes, whatever an exception says of itself."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        return name
    return f"{name}: {text}".encode("utf-8", "backslashreplace").decode() if text else name
