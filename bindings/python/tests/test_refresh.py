# SPDX-License-Identifier: MIT
"""Stale values: answered at once, refreshed in the background."""

import asyncio
import contextvars
import logging
import select
import threading

from conftest import AsyncSource, Crowd, Source, until

from stanchion import _mailbox, _threads


def test_a_thread_gets_the_stale_value_at_once_and_a_refresher_loads(clocked):
    cache = clocked.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
    cache.set("key", "old")
    clocked.advance(40)
    names = []

    def load():
        names.append(threading.current_thread().name)
        return "new"

    assert cache.get_or_load("key", load) == "old"
    until(lambda: cache.get("key") == "new")
    assert names == ["stanchion-refresh-0"]
    assert cache.stats()["refreshes"] == 1


def test_one_refresh_for_any_number_of_calls(clocked):
    cache = clocked.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
    cache.set("key", "old")
    clocked.advance(40)
    source = Source("new", 0.1)
    assert {cache.get_or_load("key", source) for _ in range(50)} <= {"old", "new"}
    until(lambda: cache.get("key") == "new")
    assert source.calls == 1


def test_a_value_marked_stale_is_refreshed_without_a_soft_ttl(client):
    cache = client.cache("c", ttl=60)
    cache.set("key", "old")
    cache.invalidate("key", stale=True)
    assert cache.get_or_load("key", lambda: "new") == "old"
    until(lambda: cache.get("key") == "new")


def test_a_task_gets_the_stale_value_at_once_and_another_task_loads(clocked):
    variable = contextvars.ContextVar("variable", default="none")

    async def main():
        cache = clocked.aio.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
        await cache.set("key", "old")
        clocked.advance(40)
        variable.set("caller")

        async def load():
            await asyncio.sleep(0)
            return variable.get()

        assert await cache.get_or_load("key", load) == "old"
        for _ in range(500):
            if await cache.get("key") == "caller":
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it was not refreshed")

    asyncio.run(main())


def test_a_refresh_runs_in_the_context_of_the_call_that_asked_for_it(client):
    variable = contextvars.ContextVar("variable", default="none")
    cache = client.cache("c", ttl=60)

    def stale(key):
        cache.set(key, "old")
        cache.invalidate(key, stale=True)

    stale("sync")
    contextvars.copy_context().run(lambda: (variable.set("caller"), cache.get_or_load("sync", variable.get)))
    until(lambda: cache.get("sync") == "caller")

    async def call(value):
        variable.set(value)
        return await cache.aio.get_or_load("aio", variable.get)

    async def main():
        await cache.aio.get("aio")
        stale("aio")
        assert await asyncio.create_task(call("caller")) == "old"
        for _ in range(500):
            if await cache.aio.get("aio") == "caller":
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it was not refreshed there")

    asyncio.run(main())


def test_a_failed_refresh_is_logged_once_and_the_value_stays(clocked, caplog):
    cache = clocked.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
    cache.set("key", "old")
    clocked.advance(40)
    source = Source(error=LookupError("boom"), seconds=0)
    with caplog.at_level(logging.WARNING, "stanchion"):
        assert cache.get_or_load("key", source) == "old"
        until(lambda: caplog.records)
    assert [record.exc_info[1] for record in caplog.records] == [source.error]
    assert cache.get("key") == "old"


def test_a_failed_refresh_of_a_task_is_logged_once(clocked, caplog):
    source = AsyncSource(error=LookupError("boom"), seconds=0)

    async def main():
        cache = clocked.aio.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
        await cache.set("key", "old")
        clocked.advance(40)
        assert await cache.get_or_load("key", source) == "old"
        for _ in range(200):
            if caplog.records:
                break
            await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [record.exc_info[1] for record in caplog.records] == [source.error]


def test_a_refresher_may_call_the_library_itself(clocked):
    cache = clocked.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
    cache.set("key", "old")
    cache.set("other", "part")
    clocked.advance(40)
    assert cache.get_or_load("key", lambda: "new " + cache.get("other")) == "old"
    until(lambda: cache.get("key") == "new part")


def test_who_reads_for_a_thread_never_takes_an_answer_away_from_a_call_that_has_just_begun(client):
    cache = client.cache("c", ttl=60)
    cache.set("key", "value")
    host = _threads.here()
    tag = host.begin()
    op, now = cache._core.native.get(b"key", -1, host.queue, tag)
    if now is None:
        assert select.select([host.queue.fd()], [], [], 5)[0]
        host.attended()  # the attendant, awake since before the call
        now = _mailbox.run(host.wait(tag, op))
    assert now.data == b'"value"'


def test_threads_that_are_read_for_all_the_time_get_their_own_answers(client):
    cache = client.cache("c", ttl=60, soft_ttl=30)
    cache.set("key", "value")

    def many():
        return [cache.get_or_load("key", lambda: "value") for _ in range(500)]

    crowd = Crowd(4, many).join()
    assert crowd.results == [["value"] * 500] * 4
