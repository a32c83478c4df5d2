# SPDX-License-Identifier: MIT
"""Single-flight without a cache."""

import asyncio
import contextvars
import threading
import traceback

import pytest
from conftest import AsyncSource, Crowd, Source, until

import stanchion
from stanchion import _refs


def test_threads_that_ask_at_one_time_share_one_run_and_its_very_object():
    group = stanchion.Group()
    source = Source(object(), 0.2)
    crowd = Crowd(50, lambda: group.do("key", source)).join()
    assert source.calls == 1
    assert len(crowd.results) == 50
    assert all(result is source.value for result in crowd.results)
    assert _refs.count() == 0


def test_tasks_that_ask_at_one_time_share_one_run():
    source = AsyncSource(object(), 0.05)

    async def main():
        group = stanchion.aio.Group()
        return await asyncio.gather(*[group.do("key", source) for _ in range(1000)])

    results = asyncio.run(main())
    assert source.calls == 1
    assert all(result is source.value for result in results)
    assert _refs.count() == 0


def test_threads_and_tasks_join_each_other():
    group = stanchion.Group()
    source = Source("value", 0.2)

    async def main():
        return await asyncio.gather(*[group.aio.do("key", source) for _ in range(10)])

    crowd = Crowd(10, lambda: group.do("key", source))
    until(lambda: source.calls)
    assert asyncio.run(main()) == ["value"] * 10
    assert crowd.join().results == ["value"] * 10
    assert source.calls == 1


def test_nothing_is_remembered():
    group = stanchion.Group()
    source = Source(1, 0)
    assert group.do("key", source) == group.do("key", source) == 1
    assert source.calls == 2


def test_call_tells_who_ran_it():
    group = stanchion.Group()
    source = Source("value", 0.2)
    crowd = Crowd(5, lambda: group.call("key", source)).join()
    assert sorted(result.shared for result in crowd.results) == [False, True, True, True, True]


def test_what_it_raises_reaches_everybody_as_it_is():
    group = stanchion.Group()
    source = Source(error=LookupError("boom"), seconds=0.2)
    crowd = Crowd(20, lambda: group.do("key", source)).join()
    assert source.calls == 1
    assert len(crowd.errors) == 20
    assert all(error is source.error for error in crowd.errors)
    assert _refs.count() == 0


def test_an_exception_that_many_raise_keeps_one_traceback():
    source = AsyncSource(error=LookupError("boom"), seconds=0.02)

    async def main():
        group = stanchion.aio.Group()
        await asyncio.gather(*[group.do("key", source) for _ in range(500)], return_exceptions=True)

    asyncio.run(main())
    assert len(traceback.extract_tb(source.error.__traceback__)) < 20


def test_what_is_forgotten_is_run_anew():
    group = stanchion.Group()
    first, second = Source("old", 0.3), Source("new", 0)
    crowd = Crowd(1, lambda: group.do("key", first))
    until(lambda: first.calls)
    group.forget("key")
    assert group.do("key", second) == "new"
    assert crowd.join().results == ["old"]


def test_a_run_that_waits_for_itself_is_told():
    group = stanchion.Group()
    with pytest.raises(stanchion.WouldDeadlock):
        group.do("a", lambda: group.do("b", lambda: group.do("a", lambda: 1)))

    async def main():
        shared = stanchion.aio.Group()

        async def inner():
            return await asyncio.create_task(shared.do("a", inner))

        with pytest.raises(stanchion.WouldDeadlock):
            await shared.do("a", inner)

    asyncio.run(main())


def test_a_deadline_is_its_own():
    group = stanchion.Group()
    source = Source("value", 0.3)
    crowd = Crowd(1, lambda: group.do("key", source))
    until(lambda: source.calls)
    with pytest.raises(stanchion.Timeout):
        group.do("key", source, wait=0.02)
    with pytest.raises(TimeoutError):
        group.do("key", source, wait=0)
    assert crowd.join().results == ["value"]


def test_a_leader_that_is_interrupted_hands_over_to_whoever_waits():
    group = stanchion.Group()
    started, somebody_waits = threading.Event(), threading.Event()

    def interrupted():
        started.set()
        somebody_waits.wait(5)
        raise KeyboardInterrupt

    first = Crowd(1, lambda: group.do("key", interrupted))
    assert started.wait(5)
    source = Source("value", 0)
    second = Crowd(1, lambda: group.do("key", source))
    threading.Timer(0.1, somebody_waits.set).start()
    assert isinstance(first.join().errors[0], KeyboardInterrupt)
    assert second.join().results == ["value"]
    assert source.calls == 1


def test_a_cancelled_leader_stops_the_run_only_if_nobody_waits():
    async def main():
        group = stanchion.aio.Group()
        source = AsyncSource("value", 0.1)
        leader = asyncio.create_task(group.do("key", source))
        await asyncio.sleep(0.02)
        others = [asyncio.create_task(group.do("key", source)) for _ in range(50)]
        await asyncio.sleep(0.02)
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        assert await asyncio.gather(*others) == ["value"] * 50
        assert (source.calls, source.cancelled) == (1, 0)

        alone = AsyncSource("value", 10)
        leader = asyncio.create_task(group.do("key", alone))
        await asyncio.sleep(0.02)
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        await asyncio.sleep(0.02)
        assert alone.cancelled == 1

    asyncio.run(main())
    assert _refs.count() == 0


def test_a_cancelled_waiter_disturbs_nobody():
    async def main():
        group = stanchion.aio.Group()
        source = AsyncSource("value", 0.1)
        tasks = [asyncio.create_task(group.do("key", source)) for _ in range(5)]
        await asyncio.sleep(0.02)
        tasks[3].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if result == "value"] == ["value"] * 4
        assert source.calls == 1

    asyncio.run(main())


def test_the_work_sees_the_context_of_its_caller_and_keeps_its_own():
    variable = contextvars.ContextVar("variable", default="none")
    group = stanchion.Group()

    def work():
        seen = variable.get()
        variable.set("inside")
        return seen

    variable.set("caller")
    assert group.do("key", work) == "caller"
    assert variable.get() == "caller"

    async def main():
        async def coroutine():
            await asyncio.sleep(0)
            return work()

        assert await group.aio.do("key", coroutine) == "caller"
        assert variable.get() == "caller"

    asyncio.run(main())


def test_a_coroutine_given_to_the_blocking_surface_is_refused_with_advice():
    async def coroutine():
        return 1

    with pytest.raises(TypeError, match="stanchion\\.aio"):
        stanchion.Group().do("key", coroutine)
