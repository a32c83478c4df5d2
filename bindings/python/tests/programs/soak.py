# SPDX-License-Identifier: MIT
"""python soak.py SECONDS URL: threads, loops and cancellations at random, against a real server; prints its seed.

Says what it did, and fails if a call gives what it must not give. Made to run under AddressSanitizer.
"""

import asyncio
import collections
import contextlib
import random
import sys
import threading
import time

import stanchion

# Uncertain: a lock was asked for with a wait of 1 ms, the store had not answered by then, and the lock was given up.
EXPECTED = (
    LookupError,
    stanchion.LoadFailed,
    stanchion.Timeout,
    stanchion.Uncertain,
    stanchion.Overloaded,
    stanchion.Busy,
)


class Soak:
    """What threads and tasks do until the time is over."""

    def __init__(self, seconds, url, seed):
        self.end = time.monotonic() + seconds
        self.url = url
        self.seed = seed
        self.client = stanchion.connect(url)
        self.client.ready(20)
        self.done = collections.Counter()
        self.wrong = []
        self.inside = collections.Counter()

    def over(self):
        return time.monotonic() >= self.end

    def check(self, what, good, came):
        self.done[what] += 1
        if not good:
            self.wrong.append(f"{what}: {came!r}")

    def thread(self, number):
        rng = random.Random(f"{self.seed}-{number}")
        cache = self.client.cache("soak", ttl="2s", soft_ttl="1s", lease="2s")
        group = self.client.group()
        while not self.over():
            key = f"k{rng.randrange(20)}"
            kind = rng.randrange(7)
            try:
                if kind < 3:
                    value = cache.get_or_load(
                        key, lambda key=key: self.load(rng, key), wait=rng.choice((0.001, 0.1, 5))
                    )
                    self.check("load", value == key, value)
                elif kind == 3:
                    cache.invalidate(key)
                    self.done["invalidate"] += 1
                elif kind == 4:
                    value = group.do(key, lambda key=key: self.load(rng, key), wait=rng.choice((0.001, 5)))
                    self.check("do", value == key, value)
                elif kind == 5:
                    with self.client.lock("one", ttl=10, wait=rng.choice((0.001, 0.2))):
                        self.inside["one"] += 1
                        self.check("lock", self.inside["one"] == 1, self.inside["one"])
                        self.inside["one"] -= 1
                else:
                    with stanchion.connect(self.url) as other:
                        other.cache("soak", ttl="2s", soft_ttl="1s", lease="2s").get(key)
                    self.done["connect"] += 1
            except EXPECTED as error:
                self.done[type(error).__name__] += 1
            except BaseException as error:
                self.wrong.append(repr(error))

    @staticmethod
    def load(rng, key):
        time.sleep(rng.choice((0, 0.001, 0.02)))
        if rng.random() < 0.1:
            raise LookupError(key)
        return key

    async def tasks(self, number):
        rng = random.Random(f"{self.seed}-loop{number}")
        cache = self.client.aio.cache("soak", ttl="2s", soft_ttl="1s", lease="2s")
        group = self.client.aio.group()

        async def load(key):
            await asyncio.sleep(rng.choice((0, 0.001, 0.02)))
            if rng.random() < 0.1:
                raise LookupError(key)
            return key

        async def locked():
            async with self.client.aio.lock(f"loop{number}", ttl=10, wait=rng.choice((0.001, 0.2))) as lock:
                await asyncio.sleep(0)
                return lock.held

        async def one():
            key = f"k{rng.randrange(20)}"
            kind = rng.randrange(5)
            if kind < 2:
                value = await cache.get_or_load(key, lambda: load(key), wait=rng.choice((0.001, 0.1, 5)))
                self.check("aio load", value == key, value)
            elif kind == 2:
                value = await group.do(key, lambda: load(key))
                self.check("aio do", value == key, value)
            elif kind == 3:
                self.check("aio lock", await locked(), False)
            else:
                await cache.set(key, key)
                self.done["aio set"] += 1

        while not self.over():
            tasks = [asyncio.ensure_future(one()) for _ in range(30)]
            for task in rng.sample(tasks, 10):
                await asyncio.sleep(rng.choice((0, 0, 0.002)))
                task.cancel()
            for came in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(came, (asyncio.CancelledError, *EXPECTED)):
                    self.done["aio " + type(came).__name__] += 1
                elif isinstance(came, BaseException):
                    self.wrong.append(repr(came))

    def loop(self, number):
        while not self.over():
            asyncio.run(asyncio.wait_for(self.tasks(number), 10_000))

    def run(self):
        threads = [threading.Thread(target=self.thread, args=(number,)) for number in range(4)]
        threads += [threading.Thread(target=self.loop, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with contextlib.suppress(stanchion.Error):
            self.client.close(2)


def main():
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    soak = Soak(float(sys.argv[1]), sys.argv[2], seed)
    soak.run()
    for what, count in sorted(soak.done.items()):
        print(f"{count:>9} {what}")
    for wrong in soak.wrong[:20]:
        print("wrong", wrong)
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
