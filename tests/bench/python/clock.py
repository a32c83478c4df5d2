# SPDX-License-Identifier: MIT
"""How often a second: closed loops of threads or tasks for a moment, peers in turn, the median of the rounds."""

import asyncio
import gc
import statistics
import threading
import time

clock = time.perf_counter


def _until(end, call):
    n = 0
    while clock() < end:
        call()
        n += 1
    return n


def threads(make, k, seconds):
    """Operations a second of k threads; make(i) gives the call that thread i repeats."""
    if k == 1:
        call = make(0)
        call()
        began = clock()
        n = _until(began + seconds, call)
        return n / (clock() - began)
    counts = [0] * k
    times = [0.0]
    ready = threading.Barrier(k, lambda: times.__setitem__(0, clock()))

    def body(i):
        call = make(i)
        call()  # connects
        ready.wait()
        counts[i] = _until(times[0] + seconds, call)

    workers = [threading.Thread(target=body, args=(i,)) for i in range(k)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (clock() - times[0])


async def tasks(make, k, seconds):
    """The same of k tasks."""
    calls = [make(i) for i in range(k)]
    await asyncio.gather(*[call() for call in calls])

    async def body(call, end):
        n = 0
        while clock() < end:
            await call()
            n += 1
        return n

    began = clock()
    counts = await asyncio.gather(*[body(call, began + seconds) for call in calls])
    return sum(counts) / (clock() - began)


def in_turn(subjects, rounds, once):
    """{name: median of the rounds}; once(subject) gives one number."""
    seen = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            gc.collect()
            seen[name].append(once(subject))
    return {name: statistics.median(values) for name, values in seen.items()}


async def in_turn_aio(subjects, rounds, once):
    """The same, awaited."""
    seen = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            gc.collect()
            seen[name].append(await once(subject))
    return {name: statistics.median(values) for name, values in seen.items()}
