# SPDX-License-Identifier: MIT
"""This process and a C program (tests/live/programs) on one Redis: one lease, one lock, one value."""

import itertools
import json
import subprocess
import threading
from pathlib import Path

import pytest

import stanchion

PROGRAMS = Path(stanchion.__file__).parents[1] / "programs"
POLICY = {"ttl": "5m", "lease": "30s"}
_numbers = itertools.count()


class Program:
    """A running C program; `line` is the next that it tells."""

    def __init__(self, name, *arguments):
        path = PROGRAMS / name
        if not path.exists():
            pytest.skip(f"{name} is built with the module in the tree only")
        self.process = subprocess.Popen(
            [path, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def end(self):
        rest, _ = self.process.communicate("go on\n", timeout=30)
        assert self.process.returncode == 0
        return rest.split("\n")[:-1]


@pytest.fixture
def shared(redis_url):
    """(client here, what a C program needs to open one of the same fleet)."""
    prefix = f"c{id(object())}-{next(_numbers)}"
    with stanchion.connect(redis_url, prefix=prefix) as client:
        client.ready(5)
        yield client, (redis_url, json.dumps({"prefix": prefix}))


def prices(client):
    return client.cache("prices", codec="bytes", **POLICY)


def never():
    raise AssertionError("loaded twice")


def test_python_waits_for_the_load_of_a_c_program_and_gets_its_value(shared):
    client, there = shared
    loader = Program("caller", "load", *there, json.dumps(POLICY), "apple", 500)
    assert loader.line() == "loading"
    assert prices(client).get_or_load("apple", never) == b"good"
    assert loader.end() == ["value good"]
    assert client.stats()["loads"] == 0


def test_a_c_program_waits_for_the_load_of_python_and_gets_its_value(shared):
    client, there = shared
    entered, go_on = threading.Event(), threading.Event()

    def load():
        entered.set()
        go_on.wait(20)
        return b"from Python"

    thread = threading.Thread(target=lambda: prices(client).get_or_load("apple", load))
    thread.start()
    assert entered.wait(10)
    waiter = Program("caller", "load", *there, json.dumps(POLICY), "apple", 10)
    with stanchion.connect(there[0], **json.loads(there[1])) as other:
        assert not prices(other).lookup("apple").hit
    go_on.set()
    thread.join(20)
    assert waiter.end() == ["value from Python"]  # and no "loading"


def test_a_value_set_here_is_read_by_a_c_program_and_the_other_way_round(shared):
    client, there = shared
    prices(client).set("apple", b"red \xff")
    reader = subprocess.run(
        [PROGRAMS / "caller", "load", *there, json.dumps(POLICY), "apple", "10"], capture_output=True, check=True
    )
    assert reader.stdout == b"value red \xff\n"
    assert Program("caller", "load", *there, json.dumps(POLICY), "pear", 1).end() == ["loading", "value good"]
    assert prices(client).get("pear") == b"good"


def test_one_lock_for_python_and_a_c_program(shared):
    client, there = shared
    how = json.dumps({"ttl": "10s", "wait": "0s"})
    holder = Program("locker", "hold", *there, how, "report", -1)
    held, token = holder.line().split()
    assert held == "held"
    assert client.try_lock("report", ttl=10) is None
    assert client.inspect_lock("report")["token"] == token
    with pytest.raises(stanchion.LockTimeout):
        client.lock("report", ttl=10, wait=0.05).acquire()
    assert holder.end() == ["released ok", "told 0"]
    with client.lock("report", ttl=10, wait=10) as lock:
        assert lock.held
        refused = Program("locker", "hold", *there, how, "report", -1)
        assert refused.line().split()[0] == "none"
        refused.end()


def test_one_slot_and_one_id_for_python_and_a_c_program(shared):
    client, there = shared
    assert client.once("order:7", ttl=60)
    assert Program("locker", "once", *there, "{}", "order:7", 60000).end() == ["second"]
    assert Program("locker", "once", *there, "{}", "order:8", 60000).end() == ["first"]
    assert not client.once("order:8", ttl=60)
