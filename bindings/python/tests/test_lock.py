# SPDX-License-Identifier: MIT
"""Locks, for threads and tasks."""

import asyncio
import select
import threading
import time

import pytest
from conftest import Crowd, until

import stanchion
from stanchion import _loops


def test_with_takes_and_gives_back(client):
    with client.lock("report", ttl="30s") as lock:
        assert lock.held
        assert 0 < lock.remaining <= 30
        assert lock.fence > 0
        assert lock.lost is None
        lock.guard()
        assert client.try_lock("report", ttl=5) is None
        found = client.inspect_lock("report")
        assert (found["ours"], found["token"], found["fence"]) == (True, lock.token, lock.fence)
    assert not lock.held
    assert lock.lost is None
    assert client.inspect_lock("report") is None


def test_the_same_awaited(client):
    async def main():
        aio = client.aio
        async with aio.lock("report", ttl="30s") as lock:
            assert lock.held
            assert await aio.try_lock("report", ttl=5) is None
            assert (await aio.inspect_lock("report"))["token"] == lock.token
        assert not lock.held
        assert await aio.inspect_lock("report") is None

    asyncio.run(main())


def test_not_getting_it_raises_and_the_body_does_not_run(client):
    with client.lock("report", ttl=30):
        with pytest.raises(stanchion.LockTimeout) as caught, client.lock("report", ttl=30, wait=0.05):
            raise AssertionError("the body ran")
        assert isinstance(caught.value, TimeoutError)
        assert (caught.value.code, caught.value.key) == ("busy", b"report")


def test_try_lock_gives_a_lock_that_is_held_already(client):
    lock = client.try_lock("report", ttl=30)
    assert lock is not None
    assert lock.held
    with lock:
        assert client.try_lock("report", ttl=30) is None
    assert not lock.held
    with lock:  # and may be taken again
        assert lock.held


def test_a_lock_is_not_re_entrant(client):
    lock = client.lock("report", ttl=30)
    with lock, pytest.raises(RuntimeError, match="re-entrant"):
        lock.acquire()


def test_one_at_a_time(client):
    inside = []
    most = []

    def work():
        with client.lock("counter", ttl=30, wait=20):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.002)
            inside.pop()

    crowd = Crowd(20, work).join()
    assert not crowd.errors
    assert most == [1] * 20

    async def main():
        async def task():
            async with client.aio.lock("counter", ttl=30, wait=20):
                inside.append(1)
                most.append(len(inside))
                await asyncio.sleep(0.001)
                inside.pop()

        await asyncio.gather(*[task() for _ in range(50)])

    asyncio.run(main())
    assert most == [1] * 70


def test_fences_grow(client):
    fences = []
    for _ in range(5):
        with client.lock("report", ttl=30) as lock:
            fences.append(lock.fence)
    assert fences == sorted(set(fences))


def test_a_lost_lock_tells_so_everywhere(clocked):
    losses = []
    told_by = []

    def on_lost(loss):
        told_by.append(threading.current_thread().name)
        losses.append(loss)

    lock = clocked.lock("report", ttl=30, max_hold=60, on_lost=on_lost)
    with pytest.raises(stanchion.LockLost) as caught, lock:
        clocked.advance(61)
        until(lambda: losses)
        assert not lock.held
        assert lock.lost == stanchion.Loss("max_hold")
        assert lock.wait_lost(0)
        with pytest.raises(stanchion.LockLost):
            lock.guard()
    assert caught.value.reason == "max_hold"
    assert losses == [stanchion.Loss("max_hold")]
    assert told_by == ["stanchion-callbacks-0"]


def test_a_failing_release_never_hides_the_bodys_error(clocked, caplog):
    with pytest.raises(LookupError), clocked.lock("report", ttl=30, max_hold=60):
        clocked.advance(61)
        raise LookupError

    async def main():
        async with clocked.aio.lock("report", ttl=30, max_hold=60):
            clocked.advance(61)
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(main())


def test_wait_lost_waits(clocked):
    lock = clocked.lock("report", ttl=30, max_hold=60)
    lock.acquire()
    assert not lock.wait_lost(0.02)
    waiting = Crowd(1, lambda: lock.wait_lost(10))
    clocked.advance(61)
    assert waiting.join().results == [True]

    async def main():
        lock = clocked.aio.lock("other", ttl=30, max_hold=60)
        await lock.acquire()
        assert not await lock.wait_lost(0.02)
        waiting = asyncio.create_task(lock.wait_lost(10))
        await asyncio.sleep(0.01)
        clocked.advance(61)
        assert await waiting
        await lock.acquire()
        waiting = asyncio.create_task(lock.wait_lost())
        await asyncio.sleep(0.01)
        await lock.release()
        assert await waiting

    asyncio.run(main())


def test_a_loss_cancels_the_body_and_raises_what_happened(clocked):
    async def main():
        losses = []

        async def on_lost(loss):
            losses.append(loss)

        with pytest.raises(stanchion.LockLost) as caught:
            async with clocked.aio.lock("report", ttl=30, max_hold=60, cancel_on_loss=True, on_lost=on_lost):
                asyncio.get_running_loop().call_later(0.01, clocked.advance, 61)
                await asyncio.sleep(10)
                raise AssertionError("the body went on")
        assert caught.value.reason == "max_hold"
        await asyncio.sleep(0.01)
        assert losses == [stanchion.Loss("max_hold")]
        # and the task is whole again
        await asyncio.sleep(0)
        if hasattr(asyncio.current_task(), "cancelling"):
            assert asyncio.current_task().cancelling() == 0

    asyncio.run(main())


def test_somebody_elses_cancellation_stays_one(clocked):
    async def main():
        async def work():
            async with clocked.aio.lock("report", ttl=30, cancel_on_loss=True):
                await asyncio.sleep(10)

        task = asyncio.create_task(work())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await clocked.aio.inspect_lock("report") is None

    asyncio.run(main())


def test_a_cancelled_acquire_leaves_nothing_behind(client):
    async def main():
        aio = client.aio
        for moment in range(20):
            task = asyncio.create_task(aio.lock("report", ttl=30).acquire())
            await asyncio.sleep(moment * 0.0002)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            del task
            async with aio.lock("report", ttl=30, wait=5):
                pass
        async with aio.lock("report", ttl=30):
            waiting = asyncio.create_task(aio.lock("report", ttl=30).acquire())
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert await aio.try_lock("report", ttl=30) is not None

    asyncio.run(main())


def test_a_lock_that_is_forgotten_is_released(client):
    lock = client.try_lock("report", ttl=30)
    assert lock is not None
    del lock
    with client.lock("report", ttl=30, wait=5):
        pass


def test_renew_and_leave(client):
    lock = client.lock("report", ttl=30)
    lock.acquire()
    lock.renew()
    assert lock.remaining > 29
    lock.leave()
    assert not lock.held
    with pytest.raises(stanchion.LockLost):
        lock.release()
    assert client.inspect_lock("report") is not None


def test_a_lock_needs_a_ttl_and_knows_its_options(client):
    with pytest.raises(TypeError):
        client.lock("report")
    with pytest.raises(stanchion.UnknownOption, match="max_hold"):
        client.lock("report", ttl=30, maxhold=5)
    with pytest.raises(stanchion.InvalidArgument):
        client.lock("report", ttl=-1)


def test_options_that_were_read_before_excuse_no_others(client):
    client.lock("l", ttl=1)
    for wrong in (True, [1]):  # True equals 1
        with pytest.raises(stanchion.InvalidArgument, match="ttl"):
            client.lock("l", ttl=wrong)


def test_a_task_lock_that_is_dropped_while_held_is_heard_of_no_more(client):
    async def main():
        lock = await client.aio.try_lock("l", ttl=30)
        handlers = _loops.here().handlers
        assert len(handlers) == 1
        del lock
        assert not handlers

    asyncio.run(main())


def test_a_cancelled_acquire_is_told_to_the_library_at_once(client):
    async def main():
        async with client.aio.lock("report", ttl=30):
            waiting = asyncio.create_task(client.aio.lock("report", ttl=30).acquire())
            await asyncio.sleep(0.02)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            for _ in range(200):
                if client.stats()["cancelled"]:
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("it was not")

    asyncio.run(main())


def test_a_lock_that_comes_together_with_the_cancellation_is_given_back(client):
    async def main():
        host = _loops.here()
        task = asyncio.create_task(client.aio.lock("report", ttl=30).acquire())
        await asyncio.sleep(0)
        assert select.select([host.queue.fd()], [], [], 5)[0]
        host._ready()  # the answer is the task's,
        task.cancel()  # and the task does not get it any more
        caught = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(caught[0], asyncio.CancelledError)
        async with client.aio.lock("report", ttl=30, wait=5):
            pass

    asyncio.run(main())


def test_a_blocked_loop_keeps_its_lock_and_one_that_is_lost_is_never_said_to_be_held(connect):
    async def main():
        mine, other = connect().aio, connect().aio
        async with mine.lock("report", ttl=0.4) as lock:
            time.sleep(1.2)  # three times the ttl: the library renews without the loop
            if lock.held:  # a machine that stood still for a whole ttl may have lost it
                assert await other.try_lock("report", ttl=0.4) is None
                assert (await mine.inspect_lock("report"))["token"] == lock.token
            else:
                assert lock.lost is not None
            return lock.lost

    lost = [asyncio.run(main()) for _ in range(3)]
    assert None in lost
