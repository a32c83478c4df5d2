# SPDX-License-Identifier: MIT
"""Ten processes, 200 callers in each, one cold key, a load of 300 ms: how often it loads, and what the callers wait.

    stampede.py PORT --rounds N [--processes P --callers C]

Loads are counted at the source, commands by the server (INFO commandstats; what the set-up sends is not among them).
Prints as cycles.py does.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time

import peers
import redis

LOAD_S = 0.3
VALUE = {"id": 1, "name": "Ada"}
clock = time.perf_counter


def count(source):
    source.write(b"x")


def of_threads(name, port, callers, key, source, start, waits):
    peer = peers.THREADS[name](port)
    peer.get("warm", lambda: VALUE)

    def load():
        count(source)
        time.sleep(LOAD_S)
        return VALUE

    ready = threading.Barrier(callers + 1)

    def body():
        ready.wait()
        began = clock()
        peer.get(key, load)
        waits.append(clock() - began)

    threads = [threading.Thread(target=body) for _ in range(callers)]
    for thread in threads:
        thread.start()
    start()
    ready.wait()
    for thread in threads:
        thread.join()
    peer.close()


async def of_tasks(name, port, callers, key, source, start, waits):
    peer = peers.AIO[name](port)

    async def warm():
        return VALUE

    await peer.get("warm", warm)

    async def load():
        count(source)
        await asyncio.sleep(LOAD_S)
        return VALUE

    async def body():
        began = clock()
        await peer.get(key, load)
        waits.append(clock() - began)

    start()
    await asyncio.gather(*[body() for _ in range(callers)])
    await peer.close()


def process(aio, name, port, callers, key, path, barrier, answers):
    waits = []
    with open(path, "ab", buffering=0) as source:
        how = name, port, callers, key, source, barrier.wait, waits
        if aio:
            asyncio.run(of_tasks(*how))
        else:
            of_threads(*how)
    answers.put(waits)


def stampede(aio, name, port, processes, callers, key):
    """(loads, commands, p99 in seconds, answered)"""
    context = multiprocessing.get_context("spawn")
    store = redis.Redis(port=port)
    barrier = context.Barrier(processes + 1)
    answers = context.Queue()
    with tempfile.NamedTemporaryFile() as source:
        how = aio, name, port, callers, key, source.name, barrier, answers
        workers = [context.Process(target=process, args=how) for _ in range(processes)]
        for worker in workers:
            worker.start()
        while barrier.n_waiting < processes:
            time.sleep(0.005)
        store.config_resetstat()
        barrier.wait()
        waits = [wait for _ in workers for wait in answers.get(timeout=120)]
        for worker in workers:
            worker.join(120)
        loads = os.path.getsize(source.name)
    stats = store.info("commandstats")
    setup = ("cmdstat_config", "cmdstat_info", "cmdstat_hello", "cmdstat_client", "cmdstat_select", "cmdstat_auth")
    commands = sum(row["calls"] for command, row in stats.items() if not command.startswith(setup))
    waits.sort()
    return loads, commands, waits[len(waits) * 99 // 100], len(waits)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("port", type=int)
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--processes", type=int, default=10)
    args.add_argument("--callers", type=int, default=200)
    args = args.parse_args()
    for aio, subjects in ((True, peers.AIO), (False, peers.THREADS)):
        seen = {name: [] for name in subjects}
        for r in range(args.rounds):
            for name in subjects:
                seen[name].append(
                    stampede(
                        aio, name, args.port, args.processes, args.callers, f"cold{'aio' if aio else 'threads'}{r}"
                    )
                )
        columns = {name: list(zip(*rows)) for name, rows in seen.items()}
        print(
            json.dumps(
                {
                    "cell": f"stampede, {args.processes} processes x {args.callers} {'tasks' if aio else 'threads'}",
                    "unit": "ms p99 beyond the load",
                    "values": {name: (statistics.median(c[2]) - LOAD_S) * 1e3 for name, c in columns.items()},
                    "loads": {name: max(c[0]) for name, c in columns.items()},
                    "commands": {name: statistics.median(c[1]) for name, c in columns.items()},
                    "unanswered": {name: args.processes * args.callers - min(c[3]) for name, c in columns.items()},
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
