# SPDX-License-Identifier: MIT
"""What a running script has named, what its queues gave, and how a step fails."""

from __future__ import annotations

import time
from typing import Any, Callable, NoReturn, Optional

from script import BadScript, Step, Word

import stanchion
from stanchion import _native

EXPECT_S, NOTHING_S = 2.0, 0.05

# Numbers of stanchion.h that the package itself has no use for.
LEASE_STATES = {"live": 1, "revoked": 2, "ended": 3}
LOCK_STATES = {"held": 1, "released": 2, "lost": 3, "left": 4}
NOTICES = {"log": 1, "breaker": 2, "connection": 4, "version": 8, "margin": 16, "all": 0x7FFFFFFF}
CODECS = {"raw": 0, "json": 1, "private": 2}
SOURCES = {
    "none": 0,
    "store": _native.SOURCE_STORE,
    "flight": _native.SOURCE_FLIGHT,
    "near": _native.SOURCE_NEAR,
    "memory": _native.SOURCE_MEMORY,
}
EVENTS = {
    "value": _native.VALUE,
    "absent": _native.ABSENT,
    "lease": _native.LEASE,
    "refresh": _native.REFRESH,
    "flight": _native.FLIGHT,
    "lock": _native.LOCK,
    "tick": _native.TICK,
    "lock_lost": _native.LOCK_LOST,
    "done": _native.DONE,
    "filled": _native.FILLED,
    "revoked": _native.REVOKED,
    "notice": _native.NOTICE,
    "error": _native.ERROR,
}
STATUSES = {name: number for number, name in _native.STATUSES.items()}
REASONS = {name: number for number, name in _native.REASONS.items()}
_NOT_TERMINAL = {EVENTS[name] for name in ("refresh", "revoked", "lock_lost", "notice")}


class Failed(Exception):
    """What the step promised did not come."""


def number_in(table: dict[str, int], name: str) -> int:
    """The number of a name."""
    if name not in table:
        raise BadScript(f"unknown name {name}")
    return table[name]


def name_in(table: dict[str, int], number: int) -> str:
    """The name of a number."""
    return next((name for name, known in table.items() if known == number), f"({number})")


def milliseconds(text: str) -> int:
    """A duration of a script."""
    try:
        return int(text)
    except ValueError:
        return _native.NO_LIMIT if text == "none" else _native.duration_parse(text)


class Tag:
    """The operations of one tag."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.op = 0
        self.begun = 0
        self.ended = 0


class Thing:
    """What a script has named: a handle; of a lease or flight its scope, of a queue what was read and not expected."""

    def __init__(self, name: str, handle: Any, scope: Any = None) -> None:
        self.name = name
        self.handle = handle
        self.scope = scope  # to the end of the script: naming an ended load is legal
        self.hand: list[_native.Event] = []

    def free(self) -> None:
        """Frees what is named."""
        if hasattr(self.handle, "free"):
            self.handle.free()
        self.handle = None


class World:
    """One script's."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.tags: dict[str, Tag] = {}
        self.step = Step(0, b"")

    # ---- Failing

    def stop(self, came: str, expected: Optional[str] = None) -> NoReturn:
        raise Failed(f"expected `{expected or self.step.source}`, came {came}")

    def check(self, fits: object, event: _native.Event) -> None:
        if not fits:
            self.stop(self.describe(event))

    # ---- Names

    def name(self, name: str, handle: Any, scope: Any = None) -> Thing:
        if name in self.things:
            raise BadScript(f"named twice: {name}")
        thing = self.things[name] = Thing(name, handle, scope)
        return thing

    def find(self, name: str, kinds: Any, what: str) -> Thing:
        thing = self.things.get(name)
        if thing is not None and thing.handle is None:
            raise BadScript(f"freed already: {name}")
        if thing is None or (kinds is not None and not isinstance(thing.handle, kinds)):
            raise BadScript(f"{what}, not {name}")
        return thing

    def use(self, kinds: Any, what: str) -> Any:
        """The handle that the next word names."""
        return self.find(str(self.step.operand(what)), kinds, what).handle

    def use_queue(self) -> Thing:
        return self.find(str(self.step.operand("a queue")), _native.Queue, "a queue")

    def use_tag(self, make: bool) -> Tag:
        name = str(self.step.operand("a tag"))
        if name not in self.tags:
            if not make:
                raise BadScript(f"no such tag: {name}")
            self.tags[name] = Tag(name, len(self.tags) + 1)
        return self.tags[name]

    def option_ms(self, name: str) -> int:
        text = self.step.option(name)
        return _native.DEFAULT if text is None else milliseconds(text)

    def option_number(self, name: str) -> int:
        return int(self.step.option(name) or 0)

    def option_handle(self, name: str, kind: type) -> Any:
        text = self.step.option(name)
        return None if text is None else self.find(text, kind, name).handle

    def option_within(self) -> Optional[_native.Scope]:
        name = self.step.option("within")
        if name is None:
            return None
        thing = self.things.get(name)
        if thing is None or thing.scope is None:
            raise BadScript(f"no load called {name}")
        return thing.scope

    # ---- What a call gave

    def judge(self, call: Callable[[], Any]) -> tuple[bool, Any]:
        """(accepted, what the call gave); whether it was to be refused follows the arrow."""
        fails = bool(self.step.promises) and self.step.promises[0].plain() == "fails"
        wanted = "ok"
        if fails:
            self.step.promise()
            wanted = str(self.needed(self.step.promise(), "a code"))
            number_in(STATUSES, wanted)
        try:
            gave, code, message = call(), "ok", ""
        except stanchion.Error as error:
            gave, code, message = None, error.code, str(error)
        if code != wanted:
            self.stop(f'{code} "{message}"')
        if fails:
            self.judge_texts(message, self.step.promise)
        return not fails, gave

    def needed(self, word: Optional[Word], what: str) -> Word:
        if word is None:
            raise BadScript(f"missing {what}")
        return word

    def judge_texts(self, message: str, following: Callable[[], Optional[Word]]) -> None:
        while True:
            word = following()
            if word is None:
                return
            lacks = word.plain() == "lacks"
            if lacks:
                word = self.needed(following(), "a text after `lacks`")
            if not word.quoted:
                raise BadScript(f"unknown word {word}")
            if (word.text.decode() in message) == lacks:
                self.stop(f'the text "{message}"')

    def judge_number(self, call: Callable[[], int], name: str) -> bool:
        accepted, came = self.judge(call)
        if accepted and self.step.promises:
            if self.needed(self.step.promise(), name).plain() != name:
                raise BadScript(f"after -> wanted {name}")
            if int(str(self.needed(self.step.promise(), "a number"))) != came:
                self.stop(str(came))
        return accepted

    # ---- Events

    def keep(self, queue: Thing, event: _native.Event) -> None:
        """An event was read; it waits for its `expect`."""
        for tag in self.tags.values():
            if tag.number == event.tag and event.kind not in _NOT_TERMINAL:
                tag.ended += 1
        queue.hand.append(event)

    def read_one(self, queue: Thing, seconds: float) -> str:
        try:
            event = queue.handle.next(max(0, round(seconds * 1000)))
        except stanchion.Closed:
            return "closed"
        if event is None:
            return "timeout"
        self.keep(queue, event)
        return "ok"

    def awaited(self, queue: Thing, tag: Tag, seconds: float) -> Optional[_native.Event]:
        """The oldest event of a tag."""
        end = time.monotonic() + seconds
        while True:
            for i, event in enumerate(queue.hand):
                if event.tag == tag.number:
                    return queue.hand.pop(i)
            left = end - time.monotonic()
            status = self.read_one(queue, left)
            if status == "closed" or (status == "timeout" and left <= 0):
                return None

    def describe(self, event: _native.Event) -> str:
        flags, error = event.flags, event.error()
        parts = [
            f"{name_in(EVENTS, event.kind)} for {self._tag_name(event.tag)}: status {_native.STATUSES[event.status]}",
            f"{event.data[:80]!r}" if event.data is not None else "",
            f"text {error}" if error is not None else "",
            "stale" if flags & _native.STALE else "",
            "shared" if flags & _native.SHARED else "",
            f"source {name_in(SOURCES, flags & _native.SOURCE_MASK)}",
            f"reason {_native.REASONS.get(event.reason, event.reason)}, codec {event.codec}, ref {event.host_ref}",
        ]
        return ", ".join(part for part in parts if part)

    def _tag_name(self, number: int) -> str:
        return next((tag.name for tag in self.tags.values() if tag.number == number), "(a tag nobody gave)")

    # ---- The end of a script

    def end(self) -> None:
        """Nothing is left over; after the close of everything each operation has had exactly one terminal event."""
        queues = [thing for thing in self.things.values() if isinstance(thing.handle, _native.Queue)]
        for queue in queues:
            while self.read_one(queue, 0) == "ok":
                pass
            for event in queue.hand:
                if event.kind not in _NOT_TERMINAL:
                    self.stop(self.describe(event), "no event left over")
                event.free()
            queue.hand.clear()
        for thing in self.things.values():
            if isinstance(thing.handle, _native.Client):
                thing.handle.close(0)
        for queue in queues:
            queue.handle.close()
            status = "ok"
            while status == "ok":
                status = self.read_one(queue, 0)
            for event in queue.hand:
                event.free()
            if status != "closed":
                self.stop(status, "a closed queue to end with closed")
        for tag in self.tags.values():
            if tag.begun != tag.ended:
                self.stop(f"{tag.ended} for the {tag.begun} of {tag.name}", "one terminal event for each operation")
        for thing in self.things.values():
            thing.free()
            thing.scope = None
