# SPDX-License-Identifier: MIT
"""The decorator, and its key templates."""

import asyncio
import datetime
import enum
import uuid

import pytest

import stanchion


class Colour(enum.Enum):
    RED = "red/ish"


class Size(enum.IntEnum):
    LARGE = 3


class User:
    def __init__(self, id):
        self.id = id


def key_of(client, template, function, *args, **kwargs):
    return client.cache("c", ttl=60).cached(template)(function).key(*args, **kwargs)


def test_a_function_is_cached_invalidated_and_refreshed(client):
    calls = []

    @client.cache("c", ttl=60).cached("user:{id}")
    def user(id: int, verbose: bool = False):
        """Reads a user."""
        calls.append(id)
        return {"id": id, "call": len(calls)}

    assert user(1)["call"] == user(id=1)["call"] == user(1, verbose=True)["call"] == 1
    assert user(2)["call"] == 2
    user.invalidate(1)
    assert user(1)["call"] == 3
    assert user.refresh(1)["call"] == 4
    assert user(1)["call"] == 4
    assert (user.__name__, user.__doc__) == ("user", "Reads a user.")
    assert user.__wrapped__(5)["id"] == 5


def test_a_coroutine_function_is_cached_by_either_surface(client):
    calls = []

    async def user(id: int):
        await asyncio.sleep(0)
        calls.append(id)
        return {"id": id}

    async def main():
        for name, cache in (("a", client.cache("a", ttl=60)), ("b", client.aio.cache("b", ttl=60))):
            cached = cache.cached("user:{id}")(user)
            assert asyncio.iscoroutinefunction(cached)
            assert await cached(1) == await cached(id=1) == {"id": 1}
            assert len(calls) == 1
            await cached.invalidate(1)
            await cached(1)
            await cached.refresh(1)
            assert calls == [1, 1, 1], name
            calls.clear()

    asyncio.run(main())


def test_a_method_binds_like_a_function(client):
    cache = client.cache("c", ttl=60)

    class Shop:
        def __init__(self, id):
            self.id = id
            self.calls = 0

        @cache.cached("shop:{self.id}:{what}")
        def price(self, what):
            self.calls += 1
            return [self.id, what]

    one, two = Shop(1), Shop(2)
    assert one.price("a") == one.price(what="a") == [1, "a"]
    assert two.price("a") == [2, "a"]
    assert one.calls == 1
    one.price.invalidate("a")
    one.price("a")
    assert one.calls == 2


@pytest.mark.parametrize(
    ("template", "advice"),
    [
        ("user:{nmae}", "no parameter 'nmae'"),
        ("user:{}", "name the parameters"),
        ("user:{0}", "no parameter '0'"),
        ("user:{id!r}", "nothing more"),
        ("user:{id:>5}", "nothing more"),
        ("user:{id[0]}", "nothing more"),
        ("user:{self}", "name what tells objects apart"),
        ("user:{args}", "any number"),
        ("user:{id", "expected '}'"),
        ("", "empty"),
    ],
)
def test_a_template_is_checked_when_the_function_is_decorated(client, template, advice):
    with pytest.raises(ValueError, match=advice):
        key_of(client, template, lambda self, id, *args: None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a:b/c {}%", "a%3Ab%2Fc%20%7B%7D%25"),
        ("\u00e4", "%C3%A4"),
        (-5, "-5"),
        (True, "true"),
        (b"\x00a", "%00a"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime.date(2026, 11, 29), "2026-11-29"),
        (datetime.datetime(2026, 11, 29, 1, 2), "2026-11-29T01%3A02%3A00"),
        (Colour.RED, "red%2Fish"),
        (Size.LARGE, "3"),
    ],
)
def test_values_stay_inside_their_field(client, value, text):
    assert key_of(client, "k:{id}", lambda id: None, value) == "k:" + text


@pytest.mark.parametrize("value", [None, 1.5, [1], User(1)])
def test_what_has_no_text_that_all_processes_share_is_refused(client, value):
    with pytest.raises(TypeError, match=r"\{id\.id\}"):
        key_of(client, "k:{id}", lambda id: None, value)


def test_attributes_defaults_keyword_only_and_literal_braces(client):
    assert key_of(client, "u:{user.id}", lambda user: None, User(7)) == "u:7"
    assert key_of(client, "u:{page}", lambda id, page=1: None, 5) == "u:1"
    assert key_of(client, "u:{page}", lambda id, *, page=1: None, 5, page=2) == "u:2"
    assert key_of(client, "{{u}}:{id}", lambda id: None, 5) == "{u}:5"
    with pytest.raises(TypeError, match="missing"):
        key_of(client, "u:{id}", lambda id: None)


def test_a_key_may_be_made_by_a_function(client):
    assert key_of(client, lambda a, b: f"{a}-{b}", lambda a, b: None, 1, b=2) == "1-2"


def test_absence_and_fresh_mean_the_same_as_in_a_loader(client):
    cache = client.cache("c", ttl=60)

    @cache.cached("k:{id}")
    def find(id):
        return stanchion.Fresh({"id": id}, ttl="1h") if id else None

    assert find(1) == {"id": 1}
    assert find(0) is None
    assert cache.lookup("k:0").absent
