# SPDX-License-Identifier: MIT
"""Our caches and those of PyPI, each with a loader behind a key, set up as its documentation says for our case.

A peer is made in the process, and for aio in the loop, that uses it. `get(key, load)` is what an application calls;
`forget(key)` is its invalidation.
"""

import functools

import redis
import redis.asyncio
import stanchion

TTL_S = 600


class Ours:
    def __init__(self, port):
        self.client = stanchion.connect(f"redis://127.0.0.1:{port}")
        self.client.ready(5)
        self.cache = self.client.cache("ours", ttl=TTL_S)
        self.get = self.cache.get_or_load
        self.forget = self.cache.invalidate

    def close(self):
        self.client.close()


class Dogpile:
    """One load across processes by its lock in Redis, as across threads."""

    def __init__(self, port):
        from dogpile.cache import make_region

        self.region = make_region(key_mangler="dogpile:".__add__).configure(
            "dogpile.cache.redis",
            expiration_time=TTL_S,
            arguments={
                "host": "127.0.0.1",
                "port": port,
                "redis_expiration_time": 2 * TTL_S,
                "distributed_lock": True,
                "thread_local_lock": False,
                "lock_timeout": 30,
                "connection_kwargs": {"max_connections": 1_000},
            },
        )
        self.get = self.region.get_or_create
        self.forget = self.region.delete

    def close(self):
        pass


class RawGet:
    """The floor: no loader, nothing decoded."""

    def __init__(self, port):
        self.store = redis.Redis(port=port)
        self.store.set("raw", b'{"id": 1, "name": "Ada"}')

    def get(self, key, load):
        return self.store.get("raw")

    def close(self):
        self.store.close()


class OursAio:
    def __init__(self, port):
        self.client = stanchion.aio.connect(f"redis://127.0.0.1:{port}")
        self.cache = self.client.cache("ours", ttl=TTL_S)
        self.get = self.cache.get_or_load
        self.forget = self.cache.invalidate

    async def close(self):
        await self.client.close()


class Cashews:
    """Its decorator with `lock`: one load across processes, and `protected` within one."""

    lock = True

    def __init__(self, port):
        import cashews

        self.cache = cashews.Cache()
        self.cache.setup(f"redis://127.0.0.1:{port}", max_connections=256)
        self._functions = {}

    def get(self, key, load):
        """One function for each loader, kept: as an application has them."""
        function = self._functions.get(load)
        if function is None:

            async def call(key):
                return await load()

            function = self.cache(ttl=TTL_S, key="cashews:{key}", lock=self.lock)(call)
            self._functions[load] = function
        return function(key)

    async def forget(self, key):
        await self.cache.delete(f"cashews:{key}")

    async def close(self):
        await self.cache.close()


class CashewsPlain(Cashews):
    """For hits, the least that it can do: get_or_set."""

    def get(self, key, load):
        return self.cache.get_or_set(f"cashews:{key}", load, expire=TTL_S)


class Aiocache:
    """Its decorator against stampedes, with the lease in Redis."""

    decorator = "cached_stampede"

    def __init__(self, port):
        import aiocache
        from aiocache.serializers import JsonSerializer

        self._how = {
            "cache": aiocache.RedisCache,
            "endpoint": "127.0.0.1",
            "port": port,
            "serializer": JsonSerializer(),
            "ttl": TTL_S,
            "key_builder": lambda function, key: f"aiocache:{key}",
            "pool_max_size": 256,
        }
        if self.decorator == "cached_stampede":
            self._how["lease"] = 30
        self._decorate = functools.partial(getattr(aiocache, self.decorator), **self._how)
        self._functions = {}

    def get(self, key, load):
        function = self._functions.get(load)
        if function is None:

            async def call(key):
                return await load()

            function = self._functions[load] = self._decorate()(call)
        return function(key)

    async def forget(self, key):
        function = next(iter(self._functions.values()))
        await function.cache.delete(f"aiocache:{key}")

    async def close(self):
        for function in self._functions.values():
            await function.cache.close()


class AiocachePlain(Aiocache):
    decorator = "cached"


class RawGetAio:
    def __init__(self, port):
        self.store = redis.asyncio.Redis(port=port, max_connections=256)

    async def get(self, key, load):
        return await self.store.get("raw")

    async def close(self):
        await self.store.aclose()


THREADS = {"stanchion": Ours, "dogpile.cache": Dogpile}
AIO = {"stanchion": OursAio, "cashews": Cashews, "aiocache": Aiocache}
HITS = {"stanchion": Ours, "dogpile.cache": Dogpile, "redis-py GET": RawGet}
HITS_AIO = {"stanchion": OursAio, "cashews": CashewsPlain, "aiocache": AiocachePlain, "redis.asyncio GET": RawGetAio}
