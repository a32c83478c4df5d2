# SPDX-License-Identifier: MIT
"""neighbour.py WHAT PORT KEY TTL_MS: what a program with redis-py's lock does; neighbour.mjs does the same.

    try      asks once: "held" and gives it back, or "busy"
    hold     waits for it up to ten seconds: "held", or "busy"; gives it back when a line comes: "released", or "lost"
    meddle   gives back, and extends, what it does not hold: "refused" or "done", twice
    endless  takes it without an end: "held"
"""

import sys

import redis
from redis.exceptions import LockError


def say(word):
    print(word, flush=True)


def lock_of(client, blocking, ttl_ms):
    return client.lock(key, timeout=ttl_ms / 1000 if ttl_ms else None, blocking=blocking, blocking_timeout=10 if blocking
                       else None, sleep=0.02, thread_local=False)


def give_back(lock):
    try:
        lock.release()
        say("released")
    except LockError:
        say("lost")


def meddle(lock):
    for act in [lock.release, lambda: lock.extend(60)]:
        lock.local.token = b"somebody else's"
        try:
            act()
            say("done")
        except LockError:
            say("refused")


what, port, key, ttl = sys.argv[1:]
client = redis.Redis(host="127.0.0.1", port=int(port))
lock = lock_of(client, what == "hold", 0 if what == "endless" else int(ttl))
if what == "meddle":
    meddle(lock)
elif not lock.acquire():
    say("busy")
else:
    say("held")
    if what == "hold":
        sys.stdin.readline()
    if what != "endless":
        give_back(lock)
