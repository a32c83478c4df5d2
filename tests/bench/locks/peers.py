# SPDX-License-Identifier: MIT
"""One contestant of `bench_locks`, with a lock from PyPI: see contest.hpp for what it reads and prints.

    peers.py redis-py|python-redis-lock PORT --hold-us N --ms N
"""
import argparse
import time

import redis


def make(which, store):
    if which == "redis-py":
        return redis.lock.Lock(store, "peer:redis-py", timeout=30)
    import redis_lock

    return redis_lock.Lock(store, "peer-blpop", expire=30)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("which", choices=["redis-py", "python-redis-lock"])
    args.add_argument("port", type=int)
    args.add_argument("--hold-us", type=int, required=True)
    args.add_argument("--ms", type=int, required=True)
    args = args.parse_args()
    lock = make(args.which, redis.Redis(port=args.port))
    lock.acquire()  # connects, and loads its scripts
    lock.release()
    print("ready", flush=True)
    input()
    start = time.perf_counter() + args.ms / 10_000
    end = start + args.ms / 1_000
    waits = []
    asked = time.perf_counter()
    while asked < end:
        lock.acquire()
        got = time.perf_counter()
        if got >= start:
            waits.append(round((got - asked) * 1e6))
        if args.hold_us > 0:
            time.sleep(args.hold_us / 1e6)
        lock.release()
        asked = time.perf_counter()
    print(*waits)


if __name__ == "__main__":
    main()
