# SPDX-License-Identifier: MIT
"""Any number of event loops, one after another and at one time; uvloop; loops that end badly."""

import asyncio
import contextvars
import gc
import os
import threading

import pytest
from conftest import AsyncSource, Crowd

import stanchion
from stanchion import _loops


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_asyncio_run_many_times_with_one_client(client):
    cache = client.aio.cache("c", ttl=60)

    async def main():
        return await cache.get_or_load("key", lambda: "value")

    asyncio.run(main())
    gc.collect()
    before = descriptors()
    for _ in range(50):
        assert asyncio.run(main()) == "value"
    gc.collect()
    assert descriptors() <= before + 1


def test_a_loop_for_each_of_many_threads(client):
    cache = client.aio.cache("c", ttl=60)
    source = AsyncSource("value", 0.1)

    async def main():
        return await asyncio.gather(*[cache.get_or_load("key", source) for _ in range(20)])

    crowd = Crowd(8, lambda: asyncio.run(main())).join()
    assert crowd.results == [["value"] * 20] * 8
    assert source.calls == 1


def test_a_loop_that_stops_reading_holds_nobody_up(client):
    cache = client.aio.cache("c", ttl=60)
    stalled, go_on = threading.Event(), threading.Event()

    async def stall():
        task = asyncio.create_task(cache.get_or_load("key", lambda: "stalled"))
        await asyncio.sleep(0)
        stalled.set()
        go_on.wait(10)  # blocks the loop: its lease stays unread
        return await task

    first = Crowd(1, lambda: asyncio.run(stall()))
    assert stalled.wait(5)

    async def main():
        return await asyncio.wait_for(cache.get_or_load("key", lambda: "other"), 8)

    assert asyncio.run(main()) == "other"
    go_on.set()
    assert first.join().results == ["other"]


def test_a_loop_closed_with_calls_in_flight_takes_them_along(client):
    cache = client.aio.cache("c", ttl=60)
    source = AsyncSource("value", 10)
    loop = asyncio.new_event_loop()
    tasks = []

    async def begin():
        tasks.append(asyncio.ensure_future(cache.get_or_load("key", source)))
        while not source.calls:
            await asyncio.sleep(0.001)

    loop.run_until_complete(begin())
    for task in tasks:
        task.cancel()
    tasks.clear()
    del task
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    del loop
    gc.collect()
    assert client.cache("c", ttl=60).get_or_load("key", lambda: "new", wait=5) == "new"


def test_asyncio_run_that_ends_with_calls_in_flight(client):
    cache = client.aio.cache("c", ttl=60)

    async def main():
        tasks = [
            asyncio.ensure_future(cache.get_or_load(f"key{number}", lambda: asyncio.sleep(10))) for number in range(20)
        ]
        await asyncio.sleep(0.01)
        return len(tasks)

    assert asyncio.run(main()) == 20
    gc.collect()
    sync = client.cache("c", ttl=60)
    assert [sync.get_or_load(f"key{number}", lambda: "new", wait=5) for number in range(20)] == ["new"] * 20


def test_uvloop_works_as_well(client):
    uvloop = pytest.importorskip("uvloop")
    source = AsyncSource({"id": 1}, 0.05)

    async def main():
        cache = client.aio.cache("c", ttl=60)
        async with client.aio.lock("report", ttl=30):
            return await asyncio.gather(*[cache.get_or_load("key", source) for _ in range(100)])

    for _ in range(3):
        loop = uvloop.new_event_loop()
        assert loop.run_until_complete(main()) == [{"id": 1}] * 100
        loop.close()
    assert source.calls == 1


def test_closing_a_client_answers_whoever_waits(client):
    async def main():
        cache = client.aio.cache("c", ttl=60)
        source = AsyncSource("value", 10)
        tasks = [asyncio.create_task(cache.get_or_load("key", source)) for _ in range(5)]
        while not source.calls:
            await asyncio.sleep(0.005)
        await client.aio.close(0.1)
        done, _ = await asyncio.wait(tasks[1:], timeout=5)
        assert len(done) == 4
        assert all(isinstance(task.exception(), stanchion.Closed) for task in done)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_what_runs_in_the_background_of_a_loop_has_the_context_it_was_given():
    variable = contextvars.ContextVar("variable", default="none")
    context = contextvars.copy_context()
    context.run(variable.set, "caller")

    async def read():
        await asyncio.sleep(0)
        return variable.get()

    async def main():
        return await _loops.here()._start(read(), context)

    assert asyncio.run(main()) == "caller"
