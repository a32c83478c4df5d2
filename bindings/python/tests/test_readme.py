# SPDX-License-Identifier: MIT
"""What the READMEs say: the quick start runs as it stands, and the table has every name once."""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest

import stanchion

PACKAGE = Path(__file__).parents[1]
QUICK_START = re.compile(r"```python\n(import stanchion\n.*?)```", re.S)


def quick_start():
    return QUICK_START.search((PACKAGE.parents[1] / "README.md").read_text()).group(1)


def test_the_quick_start_runs_as_it_stands():
    text = quick_start()
    assert sum(bool(line) for line in text.splitlines()) == 5
    names = {}
    exec(text, names)
    assert names["user"] == {"name": "Ada"}
    assert not names["users"].lookup("42")
    names["client"].close()


def test_the_package_shows_the_same_quick_start():
    assert quick_start() in (PACKAGE / "README.md").read_text()


def test_the_quick_start_runs_on_redis(redis_url):
    text = quick_start()
    assert text.count('"memory://"') == 1
    names = {}
    exec(text.replace('"memory://"', repr(redis_url)), names)
    assert names["user"] == {"name": "Ada"}
    assert names["client"].stats()["commands"] > 0
    names["client"].close()


# ---- The table


def rows():
    """Of each row: the names in it, as (owner, name); the rest."""
    section = (PACKAGE / "README.md").read_text().split("## Every name")[1].split("\n## ")[0]
    for line in section.splitlines():
        if not line.startswith("| `"):
            continue
        first, aio, gives = line.strip("|").split("|")
        owner = None
        names = []
        for code in re.findall(r"`([^`]+)`", first):
            dotted = code.lstrip("@").partition("(")[0].split(".")
            owner = dotted[0] if len(dotted) == 2 else owner
            names.append((owner, dotted[-1]))
        yield names, aio.strip("` "), gives


def things(surface):
    """One object for each owner in the table."""
    client = stanchion.connect()
    client = client.aio if surface == "aio" else client
    cache = client.cache("c", ttl=60)
    if surface == "aio":

        @cache.cached("{id}")
        async def function(id):
            pass
    else:

        @cache.cached("{id}")
        def function(id):
            pass

    return {
        "client": client,
        "cache": cache,
        "group": client.group(),
        "lock": client.lock("l", ttl=5),
        "tick": client.tick("t", every=60),
        "run": stanchion.TickRun(None, "taken", 1.0),
        "function": function,
    }


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_name_stands_in_the_table_once():
    names = [name for row, _, _ in rows() for name in row]
    assert len(set(names)) == len(names)
    expected = {(owner, name) for owner, thing in things("threads").items() for name in public(thing)}
    for module in ("prometheus", "opentelemetry"):
        expected |= {(module, name) for name in importlib.import_module(f"stanchion.{module}").__all__}
    assert {name for name in names if name[0] is not None} == expected

    told = {name for owner, name in names if owner is None}
    told |= {name for _, _, gives in rows() for name in re.findall(r"`(\w+)`", gives)}
    assert set(stanchion.__all__) - told == {"aio", "__version__"}
    assert {name for owner, name in names if owner is None} <= set(stanchion.__all__)


def test_both_surfaces_have_the_same_names():
    aio = things("aio")
    for owner, thing in things("threads").items():
        assert public(thing) ^ public(aio[owner]) <= {"aio", "sync"}, owner
    assert set(stanchion.aio.__all__) <= set(stanchion.__all__)


def test_the_table_tells_what_is_awaited():
    aio = things("aio")
    for names, how, _ in rows():
        for owner, name in names:
            if owner in aio and name != "aio":
                attribute = inspect.getattr_static(aio[owner], name, None)
                assert inspect.iscoroutinefunction(attribute) == (how == "await"), (owner, name)


@pytest.mark.parametrize("kind", [stanchion.Lookup, stanchion.Result, stanchion.Loss])
def test_the_table_tells_what_a_value_has(kind):
    gives = next(gives for names, _, gives in rows() if (None, kind.__name__) in names)
    assert {field.name for field in dataclasses.fields(kind)} <= set(re.findall(r"`(\w+)`", gives))
