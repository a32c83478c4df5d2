# SPDX-License-Identifier: MIT
"""What locks are in both surfaces: the asking, the giving back, and what a held one tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Optional

from . import _native, _scope
from ._core import ClientCore
from ._errors import LockLost, LockTimeout
from ._mailbox import Host, done, failure_of, log, new_tag
from ._values import Key, Loss, key_bytes


async def acquire(
    host: Host,
    client: ClientCore,
    name: bytes,
    policy: _native.LockPolicy,
    wait_ms: int,
    loss_queue: Optional[_native.Queue],
    loss_tag: int,
) -> _native.Lock:
    """The lock. Raises `LockTimeout` if somebody else holds it."""
    tag = host.begin()
    op = policy.acquire(client.native, name, wait_ms, _scope.within(), host.queue, tag, loss_queue, loss_tag)
    event = await host.wait(tag, op)
    lock = event.take_lock()
    if lock is None:
        error = failure_of(event)
        if event.status == _native.BUSY:
            raise LockTimeout(str(error), code="busy", key=name)
        raise error
    return lock


async def release(host: Host, lock: _native.Lock) -> None:
    """Gives it back, and tells if it was not ours any more."""
    await _say(host, lock, lock.release)


async def renew(host: Host, lock: _native.Lock) -> None:
    """Renews it now."""
    await _say(host, lock, lock.renew)


async def _say(host: Host, lock: _native.Lock, what: Callable[[int, _native.Queue, int], None]) -> None:
    tag = host.begin()
    try:
        what(_native.DEFAULT, host.queue, tag)
        await done(host, tag, 0)
    except LockLost as error:
        error.reason = reason_of(lock)
        raise


async def inspect(host: Host, client: ClientCore, name: bytes, key: bytes) -> Optional[dict[str, Any]]:
    """What stands in a lock's key, or None."""
    tag = host.begin()
    op = _native.lock_inspect(client.native, name, key, _native.DEFAULT, host.queue, tag)
    event = await done(host, tag, op)
    if event.data is None:
        return None
    found: dict[str, Any] = json.loads(event.data)
    ttl_ms = found.pop("ttl_ms")
    found["ttl"] = None if ttl_ms is None else ttl_ms / 1000
    return found


def reason_of(lock: _native.Lock) -> Optional[str]:
    """Why a lock was lost, or None."""
    loss = lock.loss()
    return _native.REASONS.get(loss) if loss > 0 else None


class LockBase:
    """A lock by name: to be taken, or in your hands."""

    def __init__(self, client: ClientCore, name: Key, options: Mapping[str, object]) -> None:
        self.name = name
        self._client = client
        self._key = key_bytes(name)
        self._policy = client.lock_policy(options)
        self._wait_ms = _native.DEFAULT  # as the policy says
        self._native: Optional[_native.Lock] = None
        self._entered = False  # try_lock gives a lock that is held already: `with` then takes it as it is
        self._loss_tag = new_tag()

    @property
    def held(self) -> bool:
        """Surely held at this moment, by the local clock alone. Ask before each effect. Does not block."""
        return self._native is not None and self._native.held()

    @property
    def remaining(self) -> float:
        """For how many seconds it is surely held if nothing more is heard of the store. Does not block."""
        return self._native.remaining_ms() / 1000 if self._native is not None else 0.0

    @property
    def fence(self) -> int:
        """A number that is larger for every later grant of this name: ``UPDATE ... WHERE fence <= :fence``."""
        return self._taken().fence()

    @property
    def token(self) -> str:
        """The token that stands in the store, 32 hexadecimal digits."""
        return self._taken().token()

    @property
    def lost(self) -> Optional[Loss]:
        """Why it was lost, or None if it was not. Final: nothing makes a lost lock held again. Does not block."""
        reason = reason_of(self._native) if self._native is not None else None
        return Loss(reason) if reason is not None else None

    def guard(self) -> None:
        """Raises `LockLost` unless it is surely held: before an effect, in a loop. Does not block."""
        if not self.held:
            raise self._lost_error()

    def leave(self) -> None:
        """Forgets it: the key lives out its ttl, nobody renews or releases it. Does not block."""
        self._taken().leave()

    def _taken(self) -> _native.Lock:
        if self._native is None:
            raise RuntimeError(f"the lock {self.name!r} is not taken: use `with`, or acquire()")
        return self._native

    def _lost_error(self) -> LockLost:
        loss = self.lost
        why = loss.reason if loss is not None else "released" if self._native is not None else "never taken"
        error = LockLost(f"the lock {self.name!r} is not held: {why}", key=self._key)
        error.reason = loss.reason if loss is not None else None
        return error

    def _free_to_take(self) -> None:
        if self._native is not None and self._native.state() == _native.LOCK_HELD:
            raise RuntimeError(f"this lock object holds {self.name!r} already: locks are not re-entrant")

    def _release_failed(self, error: Exception, body: Optional[BaseException]) -> None:
        """After a body: what may be raised of a failed release. Never anything in place of the body's own error."""
        if body is None and isinstance(error, LockLost):
            raise error
        log.warning("stanchion: the lock %r was not released: %s", self.name, error)
