# SPDX-License-Identifier: MIT
"""The verbs of the script language over _native, and the judgement of what came. `call` is the package's own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Optional

import world as w
from script import BadScript, Step, Word

import stanchion
from stanchion import _codecs, _core, _errors, _fetching, _mailbox, _native, _scope, _threads


class Steps(w.World):
    """A running script."""

    def run(self, step: Step) -> None:
        self.step = step
        verb = str(step.operand("a verb"))
        method = getattr(self, f"do_{verb}", None)
        if method is None:
            raise BadScript(f"unknown verb {verb}")
        method()
        left = step.unused()
        if left is not None:
            raise BadScript(f"a word too many: {left}")

    # ---- What an answer holds

    def check_ms(self, name: str, came: int, event: _native.Event) -> None:
        text = self.step.option(name)
        if text is not None and came != (-1 if text == "unknown" else w.milliseconds(text)):
            self.stop(f"{self.describe(event)}, with {name} {came} ms")

    def check_answer(self, event: _native.Event, following: Callable[[], Optional[Word]]) -> None:
        flags = event.flags
        if event.kind == _native.VALUE:
            value = self.needed(following(), "the value")
            self.check(value.plain() == "any" or value.text == event.data, event)
        self.check(self.step.flag("stale") == bool(flags & _native.STALE), event)
        if self.step.flag("shared"):
            self.check(flags & _native.SHARED, event)
        if self.step.flag("alone"):
            self.check(not flags & _native.SHARED, event)
        source = self.step.option("source")
        if source is not None:
            self.check(flags & _native.SOURCE_MASK == w.number_in(w.SOURCES, source), event)
        reason = self.step.option("reason")
        if reason is not None:
            self.check(event.reason == w.number_in(w.REASONS, reason), event)
        codec = self.step.option("codec")
        if codec is not None:
            self.check(event.codec == w.number_in(w.CODECS, codec), event)
        self.check_ms("age", event.age_ms, event)
        self.check_ms("ttl_left", event.ttl_left_ms, event)
        self.check_ms("load", event.load_ms, event)

    # ---- Things

    def _made(self, name: str, make: Callable[[], Any]) -> None:
        accepted, handle = self.judge(make)
        if accepted:
            self.name(name, handle)

    def do_client(self) -> None:
        name, url, options = self._name(), self.step.operand("a URL").text, self._json()
        self._made(name, lambda: _native.Client(url, options))

    def do_cache(self) -> None:
        name, client = self._name(), self.use(_native.Client, "a client")
        cache, options = self.step.operand("the cache's name").text, self._json()
        self._made(name, lambda: _native.Cache(client, cache, options))

    def do_policy(self) -> None:
        name, cache, options = self._name(), self.use(_native.Cache, "a cache"), self.step.operand("the changes").text
        self._made(name, lambda: _native.Policy(cache, options))

    def do_queue(self) -> None:
        name, scope = self._name(), self.option_number("scope")
        self._made(name, lambda: _native.Queue(scope))

    def do_group(self) -> None:
        name, owner, options = self._name(), self.step.optional(), self.step.optional()
        client = self.find(str(owner), _native.Client, "a client").handle if owner else None
        self._made(name, lambda: _native.Group(client, options.text if options else None))

    def _name(self) -> str:
        return str(self.step.operand("a name"))

    def _json(self) -> bytes:
        word = self.step.optional()
        return word.text if word else b"{}"

    def do_free(self) -> None:
        thing = self.find(self._name(), None, "something to free")
        if isinstance(thing.handle, _native.Queue):
            raise BadScript("close queues, do not free them")
        thing.free()

    def do_close(self) -> None:
        handle = self.use((_native.Client, _native.Queue), "a client or queue")
        if isinstance(handle, _native.Queue):
            self.judge(handle.close)
            return
        to, deadline = self.step.optional(), self.option_ms("deadline")
        if to is None:
            self.judge(lambda: handle.close(deadline))
            return
        queue, tag = self.find(str(to), _native.Queue, "a queue").handle, self.use_tag(True)
        self._begun(tag, lambda: handle.close_begin(deadline, queue, tag.number))

    # ---- Operations

    def _begun(self, tag: w.Tag, call: Callable[[], Any]) -> None:
        """An operation that ends with one event; the call gives its op, or None."""
        accepted, op = self.judge(call)
        if accepted:
            tag.begun += 1
            tag.op = op or 0

    def _asked(self, queue: w.Thing, tag: w.Tag, call: Callable[[], tuple[int, Optional[_native.Event]]]) -> None:
        """One whose answer may come at once."""
        self.step.flag("now")
        accepted, gave = self.judge(call)
        if accepted:
            op, now = gave
            tag.begun += 1
            tag.op = op
            if (op == 0) != (now is not None):
                self.stop(f"op {op}")
            if now is not None:
                self.keep(queue, now)

    def _flags(self) -> int:
        return (
            (_native.FORCE if self.step.flag("force") else 0)
            | (_native.NO_STORE if self.step.flag("no_store") else 0)
            | (_native.WANT_REFRESH if self.step.flag("refresh") else 0)
        )

    def do_fetch(self) -> None:
        cache, key = self.use(_native.Cache, "a cache"), self.step.operand("a key").text
        queue, tag, flags = self.use_queue(), self.use_tag(True), self._flags()
        policy, deadline = self.option_handle("policy", _native.Policy), self.option_ms("deadline")
        within = self.option_within()
        self._asked(queue, tag, lambda: cache.fetch(policy, key, deadline, flags, within, queue.handle, tag.number))

    def do_refetch(self) -> None:
        cache, rejected = self.use(_native.Cache, "a cache"), self.use(_native.Event, "an event kept by `as`")
        queue, tag = self.use_queue(), self.use_tag(True)
        policy, deadline = self.option_handle("policy", _native.Policy), self.option_ms("deadline")
        within = self.option_within()
        self._asked(queue, tag, lambda: cache.refetch(policy, rejected, deadline, within, queue.handle, tag.number))

    def do_get(self) -> None:
        cache, key = self.use(_native.Cache, "a cache"), self.step.operand("a key").text
        queue, tag, deadline = self.use_queue(), self.use_tag(True), self.option_ms("deadline")
        self._asked(queue, tag, lambda: cache.get(key, deadline, queue.handle, tag.number))

    def do_put(self) -> None:
        cache, key = self.use(_native.Cache, "a cache"), self.step.operand("a key").text
        value = self.step.operand("a value").text
        queue, tag, policy = self.use_queue().handle, self.use_tag(True), self.option_handle("policy", _native.Policy)
        ttl, soft_ttl, deadline = self.option_ms("ttl"), self.option_ms("soft_ttl"), self.option_ms("deadline")
        codec = self._codec()
        self._begun(tag, lambda: cache.put(policy, key, value, ttl, soft_ttl, deadline, queue, tag.number, codec=codec))

    def _codec(self) -> int:
        name = self.step.option("codec")
        return _native.DEFAULT if name is None else w.number_in(w.CODECS, name)

    def do_invalidate(self) -> None:
        cache, key = self.use(_native.Cache, "a cache"), self.step.operand("a key").text
        queue, tag = self.use_queue().handle, self.use_tag(True)
        flags = _native.INVALIDATE_STALE if self.step.flag("stale") else 0
        deadline = self.option_ms("deadline")
        self._begun(tag, lambda: cache.invalidate(key, flags, deadline, queue, tag.number))

    def do_cancel(self) -> None:
        queue, tag = self.use(_native.Queue, "a queue"), self.use_tag(False)
        self.judge(lambda: queue.cancel(tag.op))

    def do_ready(self) -> None:
        client, queue, tag = self.use(_native.Client, "a client"), self.use_queue().handle, self.use_tag(True)
        deadline = self.option_ms("deadline")
        self._begun(tag, lambda: client.ready(deadline, queue, tag.number))

    def do_watch(self) -> None:
        client, queue, tag = self.use(_native.Client, "a client"), self.use_queue().handle, self.use_tag(True)
        mask = w.number_in(w.NOTICES, str(self.step.operand("a notice")))
        self.judge(lambda: client.watch(mask, queue, tag.number))

    # ---- Leases and flights

    def do_fulfil(self) -> None:
        lease, value, to = self.use(_native.Lease, "a lease"), self.step.operand("a value"), self.step.optional()
        queue = self.find(str(to), _native.Queue, "a queue").handle if to else None
        tag = self.use_tag(True) if to else None
        number = tag.number if tag else 0
        ttl, ref = self.option_ms("ttl"), self.option_number("ref")
        if value.plain() == "absent":
            accepted = self.judge_number(lambda: lease.fulfil_absent(ttl, ref, queue, number), "shared")
        else:
            codec, soft_ttl = self._codec(), self.option_ms("soft_ttl")
            accepted = self.judge_number(
                lambda: lease.fulfil(value.text, ttl, soft_ttl, ref, codec=codec, queue=queue, tag=number), "shared"
            )
        if accepted and tag:
            tag.begun += 1

    def do_fail(self) -> None:
        lease, code = self.use(_native.Lease, "a lease"), w.number_in(w.STATUSES, str(self.step.operand("a code")))
        text, ref = self.step.optional(), self.option_number("ref")
        self.judge_number(lambda: lease.fail(code, text.text if text else "", ref), "shared")

    def do_detach(self) -> None:
        load = self.use((_native.Lease, _native.Flight), "a lease or flight")

        def detach() -> int:
            waiters: int = load.detach()
            if waiters < 0:
                raise stanchion.InvalidArgument("it was answered already")
            return waiters

        self.judge_number(detach, "waiters")

    def do_state(self) -> None:
        lease, wanted = self.use(_native.Lease, "a lease"), str(self.step.operand("a state"))
        if lease.state() != w.number_in(w.LEASE_STATES, wanted):
            self.stop(w.name_in(w.LEASE_STATES, lease.state()))

    def do_join(self) -> None:
        group, key = self.use(_native.Group, "a group"), self.step.operand("a key").text
        queue, tag = self.use_queue().handle, self.use_tag(True)
        deadline, within = self.option_ms("deadline"), self.option_within()
        accepted, gave = self.judge(lambda: group.join(key, deadline, within, queue, tag.number))
        if not accepted:
            return
        op, lead = gave
        word = self.needed(self.step.promise(), "`lead NAME` or `waits`")
        if (word.plain() == "lead") != (lead is not None):
            self.stop("the lead" if lead is not None else "a wait")
        if (op == 0) != (lead is not None):
            self.stop(f"op {op}")
        if lead is not None:
            self.name(str(self.needed(self.step.promise(), "a name")), lead, lead.scope())
        else:
            tag.op = op
            tag.begun += 1

    def _outcome(self) -> tuple[int, Optional[bytes]]:
        word = self.step.operand("an outcome")
        if word.plain() == "absent":
            return w.STATUSES["absent"], None
        if word.plain() != "error":
            return w.STATUSES["ok"], word.text
        code, text = w.number_in(w.STATUSES, str(self.step.operand("a code"))), self.step.optional()
        return code, text.text if text else None

    def do_finish(self) -> None:
        flight, (code, text), ref = self.use(_native.Flight, "a flight"), self._outcome(), self.option_number("ref")
        self.judge_number(lambda: flight.finish(code, text or b"", ref), "shared")

    def do_forget(self) -> None:
        group, key = self.use(_native.Group, "a group"), self.step.operand("a key").text
        self.judge(lambda: group.forget(key))

    # ---- The blocking form

    def do_call(self) -> None:
        native, key = self.use(_native.Cache, "a cache"), self.step.operand("a key").text
        code, data = self._outcome()
        ttl, deadline, flags = self.option_ms("ttl"), self.option_ms("deadline"), self._flags()
        policy, within = self.option_handle("policy", _native.Policy), self.option_within()
        loading, runs = self.step.flag("loading"), 0
        watched = _Watched(native)
        cache: Any = object.__new__(_core.CacheCore)
        cache.__dict__.update(
            name="script", native=watched, codec=_codecs.codec_of("bytes"), none_is_value=False, nothing=None
        )
        cache.policy, cache.soft = policy, False
        host = _Host(watched)

        def load() -> Any:
            nonlocal runs
            runs += 1
            if code == w.STATUSES["absent"]:
                return None
            if code != w.STATUSES["ok"]:
                raise _errors.build(code, (data or b"").decode(), None, None, 0)
            return data if ttl < 0 else stanchion.Fresh(data, ttl=ttl / 1000)

        def call() -> Any:
            if (
                flags & _native.WANT_REFRESH
            ):  # the package has no way to say it: threads are refreshed for by themselves
                raise stanchion.InvalidArgument("get_or_load has no such flag")
            _scope.enter(within)
            missing = _fetching.MISSING
            return _mailbox.run(_fetching.get_or_load(host, cache, key, load, missing, deadline, flags, share=False))

        accepted, value = self.judge(lambda: copy_context().run(call))
        if accepted:
            kind = str(self.needed(self.step.promise(), "value or absent"))
            if (kind == "absent") != (value is None):
                self.stop(repr(value))
            if runs:
                wanted = self.step.promise() if kind == "value" else None
                if wanted is not None and wanted.text != value:
                    self.stop(repr(value))
                if self.step.option("source") not in (None, "flight"):
                    self.stop("a value that was loaded now")
            else:
                self.check_answer(watched.answer, self.step.promise)
        if runs != loading:
            self.stop(f"{runs} runs of the loader")

    # ---- Locks, ticks, ids

    def do_acquire(self) -> None:
        client, name = self.use(_native.Client, "a client"), self.step.operand("a name").text
        options, queue = self.step.operand("the options").text, self.use_queue().handle
        tag, lost = self.use_tag(True), self.option_handle("lost", _native.Queue)
        deadline, within = self.option_ms("deadline"), self.option_within()
        self._begun(
            tag,
            lambda: _native.LockPolicy(options).acquire(
                client, name, deadline, within, queue, tag.number, lost, tag.number
            ),
        )

    def do_held(self) -> None:
        lock, wanted = self.use(_native.Lock, "a lock"), str(self.step.operand("a state"))
        if lock.state() != w.number_in(w.LOCK_STATES, wanted) or lock.held() != (wanted == "held"):
            self.stop(w.name_in(w.LOCK_STATES, lock.state()))
        left = self.step.option("remaining")
        if left is not None and lock.remaining_ms() != w.milliseconds(left):
            self.stop(f"remaining {lock.remaining_ms()} ms")

    def do_later(self) -> None:
        first, second = self.use(_native.Lock, "a lock"), self.use(_native.Lock, "a lock")
        if first.fence() >= second.fence() or first.token() == second.token():
            self.stop(f"fences {first.fence()} and {second.fence()}")

    def do_renew(self) -> None:
        lock, queue, tag = self.use(_native.Lock, "a lock"), self.use_queue().handle, self.use_tag(True)
        deadline = self.option_ms("deadline")
        self._begun(tag, lambda: lock.renew(deadline, queue, tag.number))

    def do_release(self) -> None:
        lock, queue, tag = self.use(_native.Lock, "a lock"), self.use_queue().handle, self.use_tag(True)
        deadline = self.option_ms("deadline")
        self._begun(tag, lambda: lock.release(deadline, queue, tag.number))

    def do_leave(self) -> None:
        self.judge(self.use(_native.Lock, "a lock").leave)

    def do_inspect(self) -> None:
        client, name = self.use(_native.Client, "a client"), self.step.operand("a name").text
        queue, tag, deadline = self.use_queue().handle, self.use_tag(True), self.option_ms("deadline")
        self._begun(tag, lambda: _native.lock_inspect(client, name, b"", deadline, queue, tag.number))

    def do_tick(self) -> None:
        client, name = self.use(_native.Client, "a client"), self.step.operand("a name").text
        options, queue = self.step.operand("the options").text, self.use_queue().handle
        tag, deadline = self.use_tag(True), self.option_ms("deadline")
        self._begun(tag, lambda: _native.tick_acquire(client, name, options, deadline, queue, tag.number))

    def do_tick_done(self) -> None:
        tick, queue, tag = self.use(_native.Tick, "a tick"), self.use_queue().handle, self.use_tag(True)
        ok, deadline = not self.step.flag("failed"), self.option_ms("deadline")
        self._begun(tag, lambda: tick.done(ok, deadline, queue, tag.number))

    def do_once(self) -> None:
        client, id_ = self.use(_native.Client, "a client"), self.step.operand("an id").text
        ttl = w.milliseconds(str(self.step.operand("a ttl")))
        queue, tag, deadline = self.use_queue().handle, self.use_tag(True), self.option_ms("deadline")
        self._begun(tag, lambda: _native.once(client, id_, ttl, deadline, queue, tag.number))

    # ---- Time and judgement

    def do_advance(self) -> None:
        client, ms = self.use(_native.Client, "a client"), w.milliseconds(str(self.step.operand("a duration")))
        self.judge(lambda: client.advance(ms))

    def do_duration(self) -> None:
        text = self.step.operand("a text").text
        self.judge_number(lambda: _native.duration_parse(text), "ms")

    def do_expect(self) -> None:
        queue, tag = self.use_queue(), self.use_tag(False)
        kind, name = str(self.step.operand("a kind of event")), self.step.named()
        event = self.awaited(queue, tag, w.EXPECT_S)
        if event is None:
            self.stop("nothing" + (f" but, for others, {self.describe(queue.hand[0])}" if queue.hand else ""))
        self.check(event.kind == w.number_in(w.EVENTS, kind), event)
        if kind in ("value", "absent"):
            self.check_answer(event, self.step.texts)
        elif kind in ("lease", "refresh", "flight", "lock", "tick"):
            self.check_ms("load", event.load_ms, event)
            if name:
                self._take(event, kind, name)
                name = None
        elif kind == "done":
            self.check(_native.STATUSES[event.status] == ("busy" if self.step.flag("busy") else "ok"), event)
        elif kind == "filled":
            self.check(_native.STATUSES[event.status] == str(self.step.operand("a code")), event)
        elif kind in ("lock_lost", "revoked"):
            self.check(event.reason == w.number_in(w.REASONS, str(self.step.operand("a reason"))), event)
        elif kind == "notice":
            self.check(event.reason == w.number_in(w.NOTICES, str(self.step.operand("a notice"))), event)
        if kind in ("done", "error"):
            reason = self.step.option("reason")
            self.check(reason is None or event.reason == w.number_in(w.REASONS, reason), event)
        if kind == "done":
            self.check_ms("ttl_left", event.ttl_left_ms, event)
        ref = self.step.option("ref")
        self.check(ref is None or event.host_ref == int(ref), event)
        if kind == "error":
            self.check(event.status == w.number_in(w.STATUSES, str(self.step.operand("a code"))), event)
            self.judge_texts(str(event.error()), self.step.texts)
        if name:
            self.name(name, event)
        else:
            event.free()

    def _take(self, event: _native.Event, kind: str, name: str) -> None:
        take = {"flight": event.take_flight, "lock": event.take_lock, "tick": event.take_tick}
        handle: Any = take.get(kind, event.take_lease)()
        self.check(handle is not None, event)
        self.name(name, handle, handle.scope() if kind in ("lease", "refresh", "flight") else None)

    def do_nothing(self) -> None:
        queue = self.use_queue()
        if self.step.unused() is None:
            if queue.hand or self.read_one(queue, w.NOTHING_S) == "ok":
                self.stop(self.describe(queue.hand[0]))
            return
        event = self.awaited(queue, self.use_tag(False), w.NOTHING_S)
        if event is not None:
            self.stop(self.describe(event))

    def do_ended(self) -> None:
        queue, status = self.use_queue(), "ok"
        if not queue.hand:
            status = self.read_one(queue, w.NOTHING_S)
        if queue.hand:
            self.stop(self.describe(queue.hand[0]))
        if status != "closed":
            self.stop(status)

    def do_stats(self) -> None:
        client, name = self.use(_native.Client, "a client"), str(self.step.operand("a counter"))
        relation, wanted = str(self.step.operand("==, <= or >=")), int(str(self.step.operand("a number")))
        cache = self.option_handle("cache", _native.Cache)
        end = time.monotonic() + w.EXPECT_S
        while True:
            counters = json.loads(client.stats(cache))
            if name not in counters:
                raise BadScript(f"no counter {name}")
            came = counters[name]
            if {"==": came == wanted, ">=": came >= wanted, "<=": came <= wanted}[relation]:
                return
            if time.monotonic() >= end:
                self.stop(str(came))
            time.sleep(0.002)


class _Watched:
    """A cache whose answers are looked at by the script, too."""

    def __init__(self, cache: _native.Cache) -> None:
        self.cache = cache
        self.answer: Any = None

    def fetch(self, *args: Any) -> tuple[int, Optional[_native.Event]]:
        op, self.answer = self.cache.fetch(*args)
        return op, self.answer

    def refetch(self, *args: Any) -> tuple[int, Optional[_native.Event]]:
        op, self.answer = self.cache.refetch(*args)
        return op, self.answer


class _Host(_threads.ThreadHost):
    def __init__(self, watched: _Watched) -> None:
        super().__init__()
        self.watched = watched

    async def wait(self, tag: int, op: int) -> _native.Event:
        self.watched.answer = await super().wait(tag, op)
        return self.watched.answer
