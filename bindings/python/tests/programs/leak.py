# SPDX-License-Identifier: MIT
"""python leak.py [OPERATIONS] [URL]: a million operations of every kind, in threads and in tasks; memory stays flat.

Prints the resident memory after each tenth. After the first three (pools and tables fill) it may grow by 2 MiB.
"""

import asyncio
import contextlib
import gc
import sys
import threading

import stanchion
from stanchion import _refs

LIMIT_KIB = 2048


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def boom():
    raise LookupError("not there")


class Work:
    """The operations, counted."""

    def __init__(self, url):
        self.client = stanchion.connect(url)
        self.cache = self.client.cache("leak", ttl="10m", soft_ttl="5m")
        self.group = self.client.group()
        self.count = 0

    def sync(self, number):
        cache, turn = self.cache, number % 50
        cache.get_or_load(f"k{turn}", lambda: {"number": number})
        cache.get(f"k{turn}")
        cache.lookup("nothing")
        self.group.do("flight", lambda: number)
        with contextlib.suppress(LookupError, stanchion.LoadFailed):
            cache.get_or_load(f"bad{turn}", boom)
        cache.set(f"s{turn}", number)
        cache.invalidate(f"k{turn}")
        with self.client.lock(f"l{threading.get_ident()}", ttl=30):
            pass
        self.client.once(f"id{turn}", ttl=1)
        self.count += 9

    async def aio(self, number):
        cache, turn = self.cache.aio, number % 50

        async def load():
            await asyncio.sleep(0)
            return number

        await cache.get_or_load(f"k{turn}", load)
        await self.group.aio.do("flight", load)
        task = asyncio.ensure_future(cache.get_or_load(f"c{turn}", load))
        await asyncio.sleep(0)
        task.cancel()
        await cache.invalidate(f"c{turn}")
        lock = await self.client.aio.try_lock(f"a{turn}", ttl=30)
        if lock is not None:
            await lock.release()
        self.count += 5


def main():
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    work = Work(sys.argv[2] if len(sys.argv) > 2 else "memory://")
    tenth, seen = operations // 10, []

    def some(until):
        number = 0
        while work.count < until:
            number += 1
            work.sync(number)

    async def many(until):
        number = 0
        while work.count < until:
            number += 20
            await asyncio.gather(*[work.aio(number + i) for i in range(20)])

    for part in range(10):
        middle = part * tenth + tenth // 2
        threads = [threading.Thread(target=some, args=(middle,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asyncio.run(many((part + 1) * tenth))
        gc.collect()
        seen.append(resident_kib())
        print(f"{work.count:>9} operations: {seen[-1]} KiB, {_refs.count()} references", flush=True)
    grown = seen[-1] - seen[2]
    print(f"grown by {grown} KiB after the third of ten")
    return 0 if grown <= LIMIT_KIB and _refs.count() == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
