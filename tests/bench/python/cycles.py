# SPDX-License-Identifier: MIT
"""Cells that are rates: lock cycles, and hits on a Redis.

    cycles.py PORT --seconds S --rounds N

Prints one JSON object a line: {"cell", "unit", "values": {name: number}}.
"""

import argparse
import asyncio
import json

import clock
import peers
import pottery
import redis
import redis.asyncio
import redis_lock
import stanchion

VALUE = {"id": 1, "name": "Ada"}


def tell(cell, unit, values):
    print(json.dumps({"cell": cell, "unit": unit, "values": values}), flush=True)


def lock_makers(port):
    client = stanchion.connect(f"redis://127.0.0.1:{port}")
    client.ready(5)
    store = redis.Redis(port=port)

    def cycle(make):
        def of_thread(i):
            def call():
                with make(i):
                    pass

            return call

        return of_thread

    return {
        "stanchion": cycle(lambda i: client.lock(f"l{i}", ttl=30)),
        "redis-py Lock": cycle(lambda i: store.lock(f"rl{i}", timeout=30)),
        "python-redis-lock": cycle(lambda i: redis_lock.Lock(store, f"pl{i}", expire=30)),
        "pottery Redlock": cycle(lambda i: pottery.Redlock(key=f"po{i}", masters={store}, auto_release_time=30)),
    }


async def lock_cells_aio(port, seconds, rounds):
    client = stanchion.aio.connect(f"redis://127.0.0.1:{port}")
    store = redis.asyncio.Redis(port=port, max_connections=256)

    def cycle(make):
        def of_task(i):
            async def call():
                async with make(i):
                    pass

            return call

        return of_task

    makers = {
        "stanchion": cycle(lambda i: client.lock(f"l{i}", ttl=30)),
        "redis.asyncio Lock": cycle(lambda i: store.lock(f"rl{i}", timeout=30)),
        "pottery AIORedlock": cycle(lambda i: pottery.AIORedlock(key=f"po{i}", masters={store}, auto_release_time=30)),
    }
    for k in (1, 64):
        tell(
            f"lock cycle, asyncio, {k} task{'s' * (k > 1)}",
            "1/s",
            await clock.in_turn_aio(makers, rounds, lambda make, k=k: clock.tasks(make, k, seconds)),
        )
    await store.aclose()
    await client.close()


def hits(peer, load, keys):
    """make(i) for caller i of `keys` keys."""
    return lambda i: lambda key=f"k{i % keys}": peer.get(key, load)


def hit_cells(port, seconds, rounds):
    made = {name: make(port) for name, make in peers.HITS.items()}
    for title, k, keys in (("1 thread", 1, 1), ("16 threads, a key each", 16, 16), ("16 threads, one key", 16, 1)):
        makers = {name: hits(peer, lambda: VALUE, keys) for name, peer in made.items()}
        tell(
            f"cached hit, {title}",
            "1/s",
            clock.in_turn(makers, rounds, lambda make, k=k: clock.threads(make, k, seconds)),
        )


async def hit_cells_aio(port, seconds, rounds):
    async def load():
        return VALUE

    made = {name: make(port) for name, make in peers.HITS_AIO.items()}
    for title, k, keys in (("1 task", 1, 1), ("64 tasks, a key each", 64, 64), ("64 tasks, one key", 64, 1)):
        makers = {name: hits(peer, load, keys) for name, peer in made.items()}
        tell(
            f"cached hit, asyncio, {title}",
            "1/s",
            await clock.in_turn_aio(makers, rounds, lambda make, k=k: clock.tasks(make, k, seconds)),
        )
    for peer in made.values():
        await peer.close()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("port", type=int)
    args.add_argument("--seconds", type=float, default=0.25)
    args.add_argument("--rounds", type=int, default=5)
    args = args.parse_args()
    how = args.port, args.seconds, args.rounds
    makers = lock_makers(args.port)
    for k in (1, 16):
        tell(
            f"lock cycle, {k} thread{'s' * (k > 1)}",
            "1/s",
            clock.in_turn(makers, args.rounds, lambda make, k=k: clock.threads(make, k, args.seconds)),
        )
    asyncio.run(lock_cells_aio(*how))
    hit_cells(*how)
    asyncio.run(hit_cells_aio(*how))


if __name__ == "__main__":
    main()
