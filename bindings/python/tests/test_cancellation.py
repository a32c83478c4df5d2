# SPDX-License-Identifier: MIT
"""Every awaitable, cancelled at each place where it can be suspended: nothing stays behind."""

import asyncio
import functools

import pytest

import stanchion


class At:
    """Awaits a coroutine and cancels its task at the n-th suspension."""

    def __init__(self, coroutine, n):
        self.coroutine, self.n, self.cut = coroutine, n, False

    def __await__(self):
        steps, number = self.coroutine.__await__(), 0
        go_on = functools.partial(steps.send, None)
        while True:
            try:
                future = go_on()
            except StopIteration as end:
                return end.value
            if number == self.n:
                self.cut = True
                asyncio.current_task().cancel()
            number += 1
            go_on = functools.partial(steps.send, None)
            try:
                yield future
            except BaseException as error:
                go_on = functools.partial(steps.throw, error)


async def in_body(lock):
    async with lock:
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def in_tick(client):
    async with client.tick("job", every="1h") as run:
        if run:
            await asyncio.sleep(0)


CALLS = {
    "get_or_load": lambda client, cache: cache.get_or_load("cold", lambda: asyncio.sleep(0, "loaded")),
    "get": lambda client, cache: cache.get("hit"),
    "lookup": lambda client, cache: cache.lookup("hit"),
    "set": lambda client, cache: cache.set("set", 1),
    "invalidate": lambda client, cache: cache.invalidate("set"),
    "do": lambda client, cache: client.group().do("key", lambda: asyncio.sleep(0, "done")),
    "try_lock": lambda client, cache: client.try_lock("free", ttl=60),
    "acquire": lambda client, cache: client.lock("free", ttl=60).acquire(),
    "with lock": lambda client, cache: in_body(client.lock("free", ttl=60)),
    "inspect_lock": lambda client, cache: client.inspect_lock("free"),
    "tick": lambda client, cache: in_tick(client),
    "once": lambda client, cache: client.once("id", ttl=60),
    "ready": lambda client, cache: client.ready(5),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_cancelled_at_any_of_its_awaits_leaves_nothing_behind(connect, name):
    complaints = []

    async def attempt(client, n):
        cache = client.cache("c", ttl=60)
        await cache.set("hit", 1)
        await cache.invalidate("cold")
        cut = At(CALLS[name](client, cache), n)

        async def call():
            return await cut

        task = asyncio.ensure_future(call())
        try:
            kept = await asyncio.wait_for(task, 10)
        except asyncio.CancelledError:
            kept = None
        del task
        if isinstance(kept, stanchion.aio.Lock):
            await kept.release()
        # the key can be loaded and the lock can be had, now and not when a lease ends
        assert await asyncio.wait_for(cache.get_or_load("cold", lambda: "anew"), 5) in ("anew", "loaded")
        async with client.lock("free", ttl=60, wait=5):
            pass
        assert await cache.get("hit") == 1
        return cut.cut

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        client = connect().aio
        n = 0
        while await attempt(client, n):
            n += 1
            assert n < 100

    asyncio.run(main())
    assert not complaints
