# SPDX-License-Identifier: MIT
"""Who can store what was read before an invalidation?

    late_writes.py PORT

The load reads its source, the source changes, the key is invalidated, and only then the load ends. Another client asks
afterwards: does it get what is no longer so? Prints as cycles.py does, 1 for yes.
"""

import argparse
import asyncio
import json
import threading

import peers


def of_threads(make, port):
    first, second = make(port), make(port)
    source = {"id": 1}
    read, go_on = threading.Event(), threading.Event()

    def slow():
        value = dict(source)
        read.set()
        go_on.wait(10)
        return value

    caller = threading.Thread(target=first.get, args=("late", slow))
    caller.start()
    read.wait(10)
    source["id"] = 2
    second.forget("late")
    go_on.set()
    caller.join()
    found = second.get("late", lambda: dict(source))
    first.close()
    second.close()
    return int(found != source)


async def of_tasks(make, port):
    first, second = make(port), make(port)
    source = {"id": 1}
    read, go_on = asyncio.Event(), asyncio.Event()

    async def slow():
        value = dict(source)
        read.set()
        await go_on.wait()
        return value

    async def now():
        return dict(source)

    await second.get("other", now)
    caller = asyncio.ensure_future(first.get("late", slow))
    await read.wait()
    source["id"] = 2
    await second.forget("late")
    go_on.set()
    await caller
    found = await second.get("late", now)
    await first.close()
    await second.close()
    return int(found != source)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("port", type=int)
    port = args.parse_args().port
    values = {name: asyncio.run(of_tasks(make, port)) for name, make in peers.AIO.items()}
    print(json.dumps({"cell": "late write, asyncio", "unit": "seen", "values": values}), flush=True)
    values = {name: of_threads(make, port) for name, make in peers.THREADS.items()}
    print(json.dumps({"cell": "late write, threads", "unit": "seen", "values": values}), flush=True)


if __name__ == "__main__":
    main()
