# SPDX-License-Identifier: MIT
"""What ticks are in both surfaces."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Optional

from . import _native
from ._core import ClientCore
from ._durations import to_seconds
from ._errors import Error
from ._mailbox import Host, done, log
from ._options import to_json
from ._values import Key, key_bytes


class TickRun:
    """What a tick gives: true if the slot is yours. Since 0.1.

    `reason`: why it is not: "taken" (the slot was given out) or "still_running" (the run of an earlier slot goes on).
    `retry_after`: seconds until the next slot, or until the run that goes on counts as dead.
    """

    def __init__(self, tick: Optional[_native.Tick], reason: Optional[str], retry_after: Optional[float]) -> None:
        self._tick = tick
        self.reason = reason
        self.retry_after = retry_after

    def __bool__(self) -> bool:
        return self._tick is not None

    @property
    def slot(self) -> datetime:
        """When the slot began, UTC, by the store's clock."""
        return datetime.fromtimestamp(self._won().slot_ms() / 1000, timezone.utc)

    @property
    def fence(self) -> int:
        """As `Lock.fence`."""
        return self._won().fence()

    def _won(self) -> _native.Tick:
        if self._tick is None:
            raise RuntimeError(f"the slot is not yours: {self.reason}")
        return self._tick


class TickBase:
    """A tick by name."""

    def __init__(self, client: ClientCore, name: Key, options: Mapping[str, object]) -> None:
        self.name = name
        self._client = client
        self._key = key_bytes(name)
        self._options = to_json(options)
        self._tick: Optional[_native.Tick] = None

    async def _ask(self, host: Host) -> TickRun:
        tag = host.begin()
        op = _native.tick_acquire(self._client.native, self._key, self._options, _native.DEFAULT, host.queue, tag)
        event = await done(host, tag, op)
        self._tick = event.take_tick()
        if self._tick is not None:
            return TickRun(self._tick, None, None)
        return TickRun(None, _native.REASONS.get(event.reason), to_seconds(event.ttl_left_ms))

    async def _end(self, host: Host, ok: bool) -> None:
        """Tells that the run has ended. That is bookkeeping: a failure is logged, the run is what it was."""
        tick, self._tick = self._tick, None
        if tick is None:
            return
        tag = host.begin()
        try:
            tick.done(ok, _native.DEFAULT, host.queue, tag)
            await done(host, tag, 0)
        except Error as error:
            log.warning("stanchion: the end of a run of %r could not be told: %s", self.name, error)


async def once(host: Host, client: ClientCore, id: bytes, ttl_ms: int) -> bool:
    """Claims an id."""
    tag = host.begin()
    op = _native.once(client.native, id, ttl_ms, _native.DEFAULT, host.queue, tag)
    return (await done(host, tag, op)).status == _native.OK
