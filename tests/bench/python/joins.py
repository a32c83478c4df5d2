# SPDX-License-Identifier: MIT
"""What it costs to join a load that is running: N callers ask for one key while it loads.

    joins.py PORT --rounds N

The number is processor time of this process for each caller (a wait hides in the load, work does not); `loads` is how
often the loader ran, at worst. Prints as cycles.py does.
"""

import argparse
import asyncio
import json
import threading
import time

import clock
import peers

LOAD_S = 0.2
VALUE = {"id": 1, "name": "Ada"}


def tell(cell, values, loads):
    print(json.dumps({"cell": cell, "unit": "us", "values": values, "loads": loads}), flush=True)


class Round:
    """A new key for each round, and the loads of it."""

    prefix = "join"

    def __init__(self):
        self.n = 0
        self.loads = 0
        self.worst = 0

    def begin(self):
        self.n += 1
        self.loads = 0
        return f"{self.prefix}{self.n}"

    def end(self):
        self.worst = max(self.worst, self.loads)


def of_threads(peer, n, state):
    def load():
        state.loads += 1
        time.sleep(LOAD_S)
        return VALUE

    key = state.begin()
    ready = threading.Barrier(n + 1)

    def body():
        ready.wait()
        peer.get(key, load)

    callers = [threading.Thread(target=body) for _ in range(n)]
    for caller in callers:
        caller.start()
    used = time.process_time()
    ready.wait()
    for caller in callers:
        caller.join()
    used = time.process_time() - used
    state.end()
    return used / n * 1e6


async def of_tasks(peer, n, state):
    load = state.load
    key = state.begin()
    used = time.process_time()
    await asyncio.gather(*[peer.get(key, load) for _ in range(n)])
    used = time.process_time() - used
    state.end()
    return used / n * 1e6


class AioRound(Round):
    """Its loader is one object, for decorators are kept by it."""

    prefix = "join-aio"

    async def load(self):
        self.loads += 1
        await asyncio.sleep(LOAD_S)
        return VALUE

    def __init__(self):
        super().__init__()
        self.load = self.load  # bound once


def thread_cell(port, n, rounds):
    subjects = {name: (make(port), Round()) for name, make in peers.THREADS.items()}
    values = clock.in_turn(subjects, rounds, lambda s: of_threads(s[0], n, s[1]))
    tell(f"join, {n} threads", values, {name: state.worst for name, (_, state) in subjects.items()})
    for peer, _ in subjects.values():
        peer.close()


async def aio_cell(port, n, rounds):
    subjects = {name: (make(port), AioRound()) for name, make in peers.AIO.items()}
    for peer, state in subjects.values():
        await peer.get("warm", state.load)
    values = await clock.in_turn_aio(subjects, rounds, lambda s: of_tasks(s[0], n, s[1]))
    tell(f"join, asyncio, {n} tasks", values, {name: state.worst for name, (_, state) in subjects.items()})
    for peer, _ in subjects.values():
        await peer.close()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("port", type=int)
    args.add_argument("--rounds", type=int, default=5)
    args = args.parse_args()
    thread_cell(args.port, 64, args.rounds)
    asyncio.run(aio_cell(args.port, 200, args.rounds))


if __name__ == "__main__":
    main()
