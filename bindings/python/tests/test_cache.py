# SPDX-License-Identifier: MIT
"""Cache-aside, blocking and awaitable, on the embedded store and on a real one."""

import asyncio
import contextvars
import json
import threading

import pytest
from conftest import AsyncSource, Crowd, Source, until

import stanchion
from stanchion import _refs


def unexpected():
    raise AssertionError("the loader was not expected to run")


def test_a_miss_loads_and_a_hit_does_not(client):
    users = client.cache("users", ttl="5m")
    assert users.get_or_load("42", lambda: {"id": 42}) == {"id": 42}
    assert users.get_or_load("42", unexpected) == {"id": 42}
    assert users.get("42") == {"id": 42}
    assert users.get("43", default="none") == "none"


def test_the_same_awaited(client):
    async def main():
        users = client.aio.cache("users", ttl="5m")

        async def load():
            await asyncio.sleep(0)
            return {"id": 42}

        assert await users.get_or_load("42", load) == {"id": 42}
        assert await users.get_or_load("42", unexpected) == {"id": 42}
        assert await users.get_or_load("43", lambda: "plain") == "plain"
        assert await users.get("42") == {"id": 42}

    asyncio.run(main())


@pytest.mark.parametrize("value", [0, False, "", [], {}, 0.0])
def test_what_is_false_is_a_value(client, value):
    cache = client.cache("c", ttl=60)
    assert cache.get_or_load("key", lambda: value) == value
    assert cache.get_or_load("key", unexpected) == value
    assert cache.lookup("key").hit


@pytest.mark.parametrize("nothing", [None, stanchion.ABSENT, stanchion.Fresh(None, ttl=5)])
def test_absence_is_cached(client, nothing):
    cache = client.cache("c", ttl=60)
    assert cache.get_or_load("key", lambda: nothing) is None
    assert cache.get_or_load("key", unexpected) is None
    found = cache.lookup("key")
    assert (found.hit, found.absent) == (False, True)
    assert cache.get("key", default="default") == "default"


def test_none_can_be_a_value(client):
    cache = client.cache("c", ttl=60, none_is_value=True)
    assert cache.get_or_load("key", lambda: None) is None
    assert cache.lookup("key").hit
    assert cache.get_or_load("other", lambda: stanchion.ABSENT) is stanchion.ABSENT
    assert cache.lookup("other").absent
    cache.set("third", None)
    assert cache.get("third", default="default") is None


def test_a_hundred_threads_on_a_cold_key_make_one_load(client):
    cache = client.cache("c", ttl=60)
    source = Source({"id": 1}, 0.2)
    crowd = Crowd(100, lambda: cache.get_or_load("key", source)).join()
    assert source.calls == 1
    assert crowd.results == [{"id": 1}] * 100


def test_a_thousand_coroutines_on_a_cold_key_make_one_load(client):
    source = AsyncSource({"id": 1}, 0.1)

    async def main():
        cache = client.aio.cache("c", ttl=60)
        return await asyncio.gather(*[cache.get_or_load("key", source) for _ in range(1000)])

    assert asyncio.run(main()) == [{"id": 1}] * 1000
    assert source.calls == 1


def test_threads_loops_and_another_client_make_one_load(connect):
    first, second = connect(), connect()
    source = Source("value", 0.3)
    caches = [first.cache("c", ttl=60), second.cache("c", ttl=60)]

    async def main():
        cache = second.aio.cache("c", ttl=60)
        return await asyncio.gather(*[cache.get_or_load("key", unexpected) for _ in range(20)])

    crowd = Crowd(20, lambda: caches[0].get_or_load("key", source))
    until(lambda: source.calls)
    elsewhere = Crowd(20, lambda: caches[1].get_or_load("key", unexpected))
    assert asyncio.run(main()) == ["value"] * 20
    assert crowd.join().results == elsewhere.join().results == ["value"] * 20
    assert source.calls == 1


def test_a_broken_value_is_loaded_once_for_a_hundred_threads(client):
    client.cache("c", ttl=60, codec="str").set("key", "{broken")
    cache = client.cache("c", ttl=60)
    source = Source({"id": 1}, 0.2)
    crowd = Crowd(100, lambda: cache.get_or_load("key", source)).join()
    assert crowd.results == [{"id": 1}] * 100
    assert source.calls == 1
    assert cache.get_or_load("key", unexpected) == {"id": 1}


def test_a_value_that_its_own_codec_cannot_read_is_loaded_once_and_overwritten(client):
    broken = stanchion.Codec(lambda value: b"{broken", lambda data: None, wire="json")
    client.cache("c", ttl=60, codec=broken).set("key", "whatever")
    cache = client.cache("c", ttl=60)
    assert not cache.lookup("key").hit
    source = Source({"id": 1}, 0.2)
    crowd = Crowd(100, lambda: cache.get_or_load("key", source)).join()
    assert crowd.results == [{"id": 1}] * 100
    assert source.calls == 1
    assert cache.get_or_load("key", unexpected) == {"id": 1}


def test_two_formats_under_one_name_end_in_a_load_not_in_a_loop(client):
    mine = client.cache("c", ttl=60)
    bad = stanchion.Codec(lambda value: b"{broken", lambda data: None, wire="json")
    theirs = client.cache("c", ttl=60, codec=bad)
    theirs.set("key", 1)

    def load():
        theirs.set("key", 2)  # somebody else is faster, and wrong again
        return "mine"

    assert mine.get_or_load("key", load) == "mine"


def test_what_the_loader_raises_reaches_everybody_here_as_it_is(client):
    cache = client.cache("c", ttl=60)
    source = Source(error=LookupError("no such user"), seconds=0.2)
    crowd = Crowd(50, lambda: cache.get_or_load("key", source)).join()
    assert source.calls == 1
    assert len(crowd.errors) == 50
    assert all(error is source.error for error in crowd.errors)
    assert _refs.count() == 0


def test_what_the_loader_raises_is_load_failed_elsewhere(connect):
    here, elsewhere = connect().cache("c", ttl=60), connect().cache("c", ttl=60)
    source = Source(error=LookupError("no such user"), seconds=0.3)
    crowd = Crowd(1, lambda: here.get_or_load("key", source))
    until(lambda: source.calls)
    with pytest.raises(stanchion.LoadFailed) as caught:
        elsewhere.get_or_load("key", unexpected)
    crowd.join()
    assert caught.value.code == "load_failed"
    assert caught.value.key == b"key"


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "error", [ValueError("\ud800"), ValueError("a\0b"), Speechless()], ids=["surrogate", "nul", "none"]
)
def test_a_failure_that_has_no_text_for_others_is_a_failure_all_the_same(connect, error):
    first, second = connect().cache("c", ttl=60), connect().cache("c", ttl=60)
    source = Source(error=error, seconds=0.3)
    crowd = Crowd(5, lambda: first.get_or_load("key", source))
    until(lambda: source.calls)
    with pytest.raises(stanchion.LoadFailed, match=type(error).__name__):
        second.get_or_load("key", unexpected)
    crowd.join()
    assert crowd.errors == [error] * 5
    assert source.calls == 1


def test_a_value_that_cannot_be_encoded_fails_the_load_and_stores_nothing(client):
    cache = client.cache("c", ttl=60, error_ttl=0)
    with pytest.raises(TypeError):
        cache.get_or_load("key", lambda: object())
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            cache.get_or_load("key", lambda value=value: value)
    with pytest.raises(UnicodeEncodeError):
        cache.get_or_load("key", lambda: "\ud800")
    assert cache.get_or_load("key", lambda: 1) == 1


def test_each_caller_gets_a_value_of_its_own_unless_it_shares(client):
    cache = client.cache("c", ttl=60)
    source = Source({"list": [1]}, 0.2)
    crowd = Crowd(10, lambda: cache.get_or_load("own", source)).join()
    assert len({id(result) for result in crowd.results}) == 10
    crowd = Crowd(10, lambda: cache.get_or_load("shared", source, share=True)).join()
    assert all(result is source.value for result in crowd.results)
    assert _refs.count() == 0


def test_what_is_returned_is_what_the_codec_gives_back_for_the_loading_caller_too(client):
    cache = client.cache("c", ttl=60)
    assert cache.get_or_load("key", lambda: (1, 2)) == [1, 2]
    assert cache.get_or_load("key", unexpected) == [1, 2]


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        ("bytes", b"\x00\xff"),
        ("bytes", b""),
        ("str", "text \u00e4"),
        ("json", {"a": [1, 2.5, None, True, "\u00e4"]}),
        ("pickle", {1, 2, 3}),
        ((lambda value: json.dumps(value).encode(), json.loads), [1, 2]),
        (stanchion.Codec(lambda value: b"%d" % value, int, name="number"), 42),
    ],
)
def test_codecs_give_back_what_they_were_given(client, codec, value):
    cache = client.cache("c", ttl=60, codec=codec)
    assert cache.get_or_load("key", lambda: value) == value
    assert cache.get_or_load("key", unexpected) == value


def test_pickle_is_never_read_by_a_cache_that_did_not_ask_for_it(client):
    client.cache("c", ttl=60, codec="pickle").set("key", {1, 2})
    cache = client.cache("c", ttl=60)
    assert cache.get("key") is None
    assert cache.get_or_load("key", lambda: "new") == "new"


def test_a_version_keeps_deploys_apart(client):
    client.cache("c", ttl=60, version=1).set("key", "old")
    new = client.cache("c", ttl=60, version=2)
    assert new.get("key") is None
    assert client.cache("c", ttl=60, version=1).get("key") == "old"


def test_set_get_invalidate(client):
    cache = client.cache("c", ttl=60)
    cache.set("key", [1])
    assert cache.get("key") == [1]
    cache.invalidate("key")
    assert cache.get("key") is None
    with pytest.raises(stanchion.InvalidArgument):
        cache.set("key", None)


def test_a_load_that_an_invalidation_overtook_is_not_stored(client):
    cache = client.cache("c", ttl=60)

    def load():
        cache.invalidate("key")
        return "old"

    assert cache.get_or_load("key", load) == "old"
    assert cache.get("key") is None


def test_an_expiry_of_its_own(clocked):
    cache = clocked.cache("c", ttl="1h", jitter=0)
    assert cache.get_or_load("short", lambda: stanchion.Fresh("value", ttl=5)) == "value"
    cache.get_or_load("long", lambda: "value")
    clocked.advance(6)
    assert cache.get("short") is None
    assert cache.get("long") == "value"


def test_lookup_tells_what_is_there(clocked):
    cache = clocked.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
    assert cache.lookup("key") == stanchion.Lookup(hit=False)
    cache.set("key", "value")
    clocked.advance(10)
    found = cache.lookup("key")
    assert (found.hit, found.value, found.stale, found.source) == (True, "value", False, "store")
    assert found.age == pytest.approx(10, abs=1)
    assert found.soft_ttl_left == pytest.approx(20, abs=1)
    clocked.advance(25)
    assert cache.lookup("key").stale


def test_waiting_has_an_end_and_a_fallback(connect):
    here, elsewhere = connect().cache("c", ttl=60), connect().cache("c", ttl=60)
    go_on = threading.Event()
    crowd = Crowd(1, lambda: here.get_or_load("key", lambda: go_on.wait(10)))
    until(lambda: here.stats()["loads"])
    for cache in (here, elsewhere):
        with pytest.raises(stanchion.Timeout):
            cache.get_or_load("key", unexpected, wait=0.05)
        assert cache.get_or_load("key", unexpected, wait=0.05, fallback="fallback") == "fallback"
    go_on.set()
    assert crowd.join().results == [True]


def test_a_fallback_never_hides_a_loaders_failure(client):
    cache = client.cache("c", ttl=60, error_ttl=0)
    for error in (LookupError("boom"), stanchion.Timeout("of the loader itself")):
        with pytest.raises(type(error)):
            cache.get_or_load("key", Source(error=error, seconds=0), fallback="fallback")


def test_a_fallback_never_hides_the_failure_of_a_load_that_was_joined(client):
    cache = client.cache("c", ttl=60, error_ttl=0)
    source = Source(error=stanchion.Timeout("of the loader itself"), seconds=0.2)
    crowd = Crowd(5, lambda: cache.get_or_load("key", source, fallback="fallback")).join()
    assert crowd.errors == [source.error] * 5


def test_a_policy_can_be_another_for_some_calls(clocked):
    cache = clocked.cache("c", ttl=60, jitter=0)
    cache.with_policy(ttl="1h").set("key", "value")
    clocked.advance(120)
    assert cache.get("key") == "value"


def test_force_loads_and_store_false_stores_nothing(client):
    cache = client.cache("c", ttl=60)
    assert cache.get_or_load("key", lambda: 1, store=False) == 1
    assert cache.get("key") is None
    cache.set("key", 1)
    assert cache.get_or_load("key", lambda: 2, force=True) == 2
    assert cache.get("key") == 2


def test_a_loader_that_waits_for_itself_is_told(client):
    cache = client.cache("c", ttl=60, error_ttl=0)
    with pytest.raises(stanchion.WouldDeadlock):
        cache.get_or_load("a", lambda: cache.get_or_load("b", lambda: cache.get_or_load("a", unexpected)))

    async def main():
        shared = cache.aio

        async def load():
            return await asyncio.gather(shared.get_or_load("a", load))

        with pytest.raises(stanchion.WouldDeadlock):
            await shared.get_or_load("a", load)

    asyncio.run(main())


def test_the_loader_sees_the_context_of_its_caller(client):
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("caller")
    cache = client.cache("c", ttl=60)
    assert cache.get_or_load("sync", variable.get) == "caller"

    async def main():
        async def load():
            await asyncio.sleep(0)
            return variable.get()

        assert await cache.aio.get_or_load("aio", load) == "caller"

    asyncio.run(main())


@pytest.mark.parametrize("moment", range(10))
def test_a_cancelled_leader_costs_nobody_else_the_load(client, moment):
    source = AsyncSource("value", 0.3)

    async def main():
        cache = client.aio.cache("c", ttl=60)
        tasks = [asyncio.create_task(cache.get_or_load("key", source)) for _ in range(50)]
        await asyncio.sleep(0.005 + 0.03 * moment)
        tasks[0].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert results[1:] == ["value"] * 49

    asyncio.run(main())
    assert (source.calls, source.cancelled) == (1, 0)


def test_a_cancelled_leader_stops_a_load_that_nobody_waits_for(client):
    async def main():
        cache = client.aio.cache("c", ttl=60)
        source = AsyncSource("value", 10)
        task = asyncio.create_task(cache.get_or_load("key", source))
        while not source.calls:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.02)
        assert source.cancelled == 1
        # at once, not when a lease ends
        assert await asyncio.wait_for(cache.get_or_load("key", lambda: "new"), 2) == "new"

    asyncio.run(main())


def test_a_load_that_goes_on_for_others_is_stopped_when_they_go_too(client):
    async def main():
        cache = client.aio.cache("c", ttl=60)
        source = AsyncSource("value", 10)
        tasks = [asyncio.create_task(cache.get_or_load("key", source)) for _ in range(3)]
        while not source.calls:
            await asyncio.sleep(0.005)
        for task in tasks:
            task.cancel()
            await asyncio.sleep(0.01)
        for _ in range(200):
            if source.cancelled:
                break
            await asyncio.sleep(0.01)
        assert source.cancelled == 1

    asyncio.run(main())


def test_an_option_that_does_not_exist_is_refused_and_the_nearest_named(client):
    with pytest.raises(stanchion.UnknownOption, match="soft_ttl"):
        client.cache("c", ttl=60, sof_ttl=30)
    with pytest.raises(stanchion.InvalidArgument):
        client.cache("c", ttl=60, codec="yaml")
    with pytest.raises(stanchion.InvalidArgument):
        client.cache("c").get_or_load("key", lambda: 1)
    with pytest.raises(TypeError):
        client.cache("c", ttl=60).get(42)
