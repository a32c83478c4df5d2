# SPDX-License-Identifier: MIT
"""inspect, invalidate and ping."""

import time

from command import SECRET, run, sh, unique
from promises import equal, everywhere, holds, promise
from server import Cache


@promise("inspect of a lock that nobody holds says so, and ends with 1")
@everywhere
def _(server):
    name = unique("free")
    ended = run("inspect", name, store=server.url)
    equal((ended.code, ended.out), (1, f'lock "{name}" is free\n'))
    equal(run("inspect", name, "--json", store=server.url).json(), {"held": False, "name": name})


@promise("invalidate removes the value from the cache of another process; with --stale it stays, marked")
@everywhere
def _(server):
    name = unique("prices")
    cache = Cache(server, name)
    cache.put("42", "9.99")
    equal(cache.look("42"), "fresh")
    ended = run("invalidate", name, "42", "--stale", store=server.url)
    equal((ended.code, cache.look("42")), (0, "stale"))
    equal(run("invalidate", name, "41", store=server.url).code, 0)
    equal(cache.look("42"), "stale")
    said = run("invalidate", name, "42", "--json", store=server.url)
    equal((said.code, cache.look("42")), (0, "absent"))
    equal(said.json(), {"cache": name, "key": "42", "done": "invalidated"})


@promise("--prefix is part of every key")
def _(server):
    name = unique("prefixed")
    with_it = ["--prefix", "other"]
    equal(run("once", name, "--ttl", "1m", *sh("echo ran"), store=server.url).out, "ran\n")
    equal(run("once", name, "--ttl", "1m", *with_it, *sh("echo ran"), store=server.url).out, "ran\n")
    equal(sorted(key.split(":")[0] for key in server.keys(f"*{name}*")), ["other", "stn"])


@promise("ping tells the address, the server and the time of an answer, and leaves nothing behind")
@everywhere
def _(server):
    ended = run("ping", store=server.url)
    equal((ended.code, ended.err), (0, ""))
    holds(server.url, ended.out)
    holds("caches and locks work", ended.out)
    kind = next(kind for kind in ("valkey", "redis") if kind in server.program.rsplit("/")[-1])
    holds(f": {kind} ", ended.out)
    prefix = unique("own")
    said = run("ping", "--json", "--prefix", prefix, store=server.url).json()
    equal((said["server"], said["role"], said["version"][0].isdigit()), (kind, "master", True))
    equal((said["ok"], said["flaws"], said["store"]), (True, [], server.url))
    assert 0 < said["round_trip_ms"] < said["connected_ms"] + 1_000
    equal(server.keys(f"{prefix}*"), [])


def user(server, *rules):
    name = unique("user")
    server.ask("ACL", "SETUSER", name, "on", ">" + SECRET, "~stn:*", "&*", "+@all", *rules)
    return server.url.replace("redis://", f"redis://{name}:{SECRET}@")


@promise("ping tells which right is missing, each by itself; 77")
@everywhere
def _(server):
    for missing in ("get", "set", "evalsha", "pttl", "publish", "subscribe"):
        ended = run("ping", store=user(server, "-" + missing))
        equal(ended.code, 77, (missing, ended))
        holds("access rules forbid", ended.out)
    equal(run("ping", store=user(server)).code, 0)
    equal(run("ping", "--prefix", "other", store=user(server)).code, 77)


@promise("a user or password that is refused is 77, at once")
def _(server):
    for words in (["ping"], ["inspect", "x"], ["invalidate", "x", "y"], ["lock", "x", "--ttl", "5s", *sh("echo ran")]):
        began = time.monotonic()
        ended = run(*words, store=user(server).replace(SECRET, SECRET + "x"))
        equal((ended.code, ended.out), (77, ""), words)
        holds("refuses the user or password", ended.err)
        assert time.monotonic() - began < 5, "it waited for a better password"


@promise("ping of something that is no Redis says so; 69")
def _(server):
    ended = run("ping", store="redis://127.0.0.1:1")
    equal((ended.code, ended.out), (69, ""))
    holds("127.0.0.1:1", ended.err)
