# SPDX-License-Identifier: MIT
"""Counters, spans and the log: what an operator sees."""

import asyncio
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import prometheus_client
import pytest
from conftest import Crowd, Source, free_port, until
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import stanchion
import stanchion.opentelemetry
from stanchion import _core, _fetching, _native
from stanchion.prometheus import Collector


def test_the_counters_have_the_names_that_their_types_and_the_library_give_them(client):
    assert list(_native.STATS) == list(client.stats())
    assert set(client.stats()) == set(stanchion.Stats.__annotations__)
    cache = client.cache("users", ttl=60)
    assert set(cache.stats()) == set(stanchion.CacheStats.__annotations__)
    assert client.aio.stats() == client.stats()
    assert cache.aio.stats() == cache.stats()
    cache.get_or_load("key", lambda: 1)
    assert cache.stats()["loads"] == client.stats()["loads"] == 1
    client.cache("others", ttl=60).get_or_load("key", lambda: 1)
    assert (cache.stats()["loads"], client.stats()["loads"]) == (1, 2)


# ---- Prometheus


def test_counters_are_there_for_each_client_and_each_cache():
    registry = prometheus_client.CollectorRegistry()
    with stanchion.connect() as one, stanchion.connect() as other:
        registry.register(Collector({"one": one, "other": other.aio}))
        users = one.cache("users", ttl=60)
        one.cache("users", ttl=60, version=2).set("key", 1)
        users.get_or_load("key", lambda: 1)
        users.get_or_load("key", lambda: 1)
        with other.lock("report", ttl=30):
            pass

        assert registry.get_sample_value("stanchion_loads_total", {"client": "one"}) == 1
        assert registry.get_sample_value("stanchion_loads_total", {"client": "other"}) == 0
        assert registry.get_sample_value("stanchion_locks_total", {"client": "other"}) == 1
        assert registry.get_sample_value("stanchion_cache_hits_total", {"client": "one", "cache": "users"}) == 1
        assert registry.get_sample_value("stanchion_cache_puts_total", {"client": "one", "cache": "users@2"}) == 1
        assert registry.get_sample_value("stanchion_cache_commands_total", {"client": "one", "cache": "users"}) is None

        text = prometheus_client.generate_latest(registry).decode()
        assert "# HELP stanchion_cache_hits_total looks that found a fresh value" in text
        assert "# TYPE stanchion_cache_hits_total counter" in text
        samples = set(re.findall(r"^stanchion_(\w+)_total", text, re.M))
        assert samples == set(one.stats()) | {f"cache_{name}" for name in users.stats()}
    assert registry.get_sample_value("stanchion_loads_total", {"client": "one"}) == 1  # of a closed client, too


def test_to_register_a_collector_reads_no_counter():
    registry = prometheus_client.CollectorRegistry(auto_describe=True)
    with stanchion.connect() as client:
        collector = Collector({"main": client})
        collector.collect = lambda: pytest.fail("it was collected")
        registry.register(collector)
        with pytest.raises(ValueError, match="Duplicated"):
            registry.register(Collector({"other": client}))


@pytest.mark.parametrize("package", ["prometheus", "opentelemetry"])
def test_without_the_package_an_import_says_what_to_install(package):
    blocked = {"prometheus": "prometheus_client", "opentelemetry": "opentelemetry"}[package]
    code = f"import sys; sys.modules[{blocked!r}] = None; import stanchion, stanchion.{package}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install stanchion[{package}]" in ended.stderr


def test_nothing_of_it_is_imported_unless_asked_for():
    code = "import stanchion, sys; print([m for m in sys.modules if 'prometheus' in m or 'opentelemetry' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ---- OpenTelemetry


class Spans:
    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def take(self):
        """Name and attributes of the spans that have ended, and their parents' names, the first to begin first."""
        spans = sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)
        self.exporter.clear()
        names = {span.context.span_id: span.name for span in spans}
        found = []
        for span in spans:
            what = {name.replace("stanchion.", ""): value for name, value in span.attributes.items()}
            found.append((span.name, names.get(span.parent.span_id) if span.parent else None, what))
        return found


@pytest.fixture
def spans():
    recorded = Spans()
    stanchion.opentelemetry.instrument(recorded.provider)
    yield recorded
    stanchion.opentelemetry.uninstrument()


def test_a_load_has_a_span_below_that_of_its_call(client, spans):
    tracer = spans.provider.get_tracer("test")
    cache = client.cache("users", ttl=60)

    def load():
        with tracer.start_as_current_span("query"):
            return 1

    assert cache.get_or_load("42", load) == cache.get_or_load("42", load) == 1
    assert spans.take() == [
        ("stanchion.get_or_load", None, {"cache": "users", "source": "load"}),
        ("stanchion.load", "stanchion.get_or_load", {"cache": "users"}),
        ("query", "stanchion.load", {}),
        ("stanchion.get_or_load", None, {"cache": "users", "source": "store", "stale": False}),
    ]


def test_the_same_awaited(client, spans):
    tracer = spans.provider.get_tracer("test")
    cache = client.cache("users", ttl=60).aio

    async def load():
        with tracer.start_as_current_span("query"):
            await asyncio.sleep(0.05)
            return 1

    async def main():
        return await asyncio.gather(cache.get_or_load("42", load), cache.get_or_load("42", load))

    assert asyncio.run(main()) == [1, 1]
    found = spans.take()
    assert sorted(what.get("source", "") for name, _, what in found if name == "stanchion.get_or_load") == [
        "flight",
        "load",
    ]
    assert ("stanchion.load", "stanchion.get_or_load", {"cache": "users"}) in found
    assert ("query", "stanchion.load", {}) in found


def test_a_loader_that_fails_marks_both_spans(client, spans):
    def load():
        raise LookupError("no")

    with pytest.raises(LookupError):
        client.cache("users", ttl=60).get_or_load("42", load)
    ended = spans.exporter.get_finished_spans()
    assert [span.name for span in ended] == ["stanchion.load", "stanchion.get_or_load"]
    assert {span.status.status_code for span in ended} == {StatusCode.ERROR}
    assert {span.events[0].attributes["exception.type"] for span in ended} == {"LookupError"}


def test_a_refresh_has_a_span_too_and_does_not_change_that_of_its_call(clocked, spans, caplog):
    cache = clocked.cache("c", ttl=60, soft_ttl=30, jitter=0, early=0)
    cache.set("key", "old")
    clocked.advance(40)
    spans.take()
    assert cache.get_or_load("key", lambda: "new") == "old"
    until(lambda: len(spans.exporter.get_finished_spans()) == 2)
    assert spans.take() == [
        ("stanchion.get_or_load", None, {"cache": "c", "source": "store", "stale": True}),
        ("stanchion.load", "stanchion.get_or_load", {"cache": "c"}),
    ]
    assert not caplog.records


def test_every_kind_of_call_has_a_span(client, spans):
    cache = client.cache("users", ttl=60)
    cache.lookup("42")
    cache.get_or_load("42", lambda: None)
    cache.set("42", 1)
    cache.invalidate("42")
    client.group().do("42", lambda: 1)
    with client.lock("report", ttl=30):
        assert client.try_lock("report", ttl=30) is None
    for _ in range(2):
        with client.tick("nightly", every="24h"):
            pass
    client.once("42", ttl=60)
    assert spans.take() == [
        ("stanchion.lookup", None, {"cache": "users", "hit": False}),
        ("stanchion.get_or_load", None, {"cache": "users", "source": "load", "absent": True}),
        ("stanchion.load", "stanchion.get_or_load", {"cache": "users"}),
        ("stanchion.set", None, {"cache": "users"}),
        ("stanchion.invalidate", None, {"cache": "users"}),
        ("stanchion.do", None, {"source": "run", "shared": False}),
        ("stanchion.run", "stanchion.do", {}),
        ("stanchion.acquire", None, {"lock": "report", "held": True}),
        ("stanchion.acquire", None, {"lock": "report", "held": False}),
        ("stanchion.release", None, {}),
        ("stanchion.tick", None, {"tick": "nightly", "won": True}),
        ("stanchion.tick", None, {"tick": "nightly", "won": False, "reason": "taken"}),
        ("stanchion.once", None, {"first": True}),
    ]


def test_a_lock_that_is_busy_is_no_failure_of_its_span(client, spans):
    with client.lock("report", ttl=30), pytest.raises(stanchion.LockTimeout):
        client.lock("report", ttl=30, wait=0).acquire()
    assert {span.status.status_code for span in spans.exporter.get_finished_spans()} == {StatusCode.UNSET}


def test_keys_are_in_spans_only_if_asked_for(client, spans):
    client.cache("users", ttl=60).get("ada@example.org")
    assert "ada" not in str(spans.take())
    stanchion.opentelemetry.instrument(spans.provider, keys=True)
    client.cache("users", ttl=60).get("ada@example.org")
    assert spans.take() == [("stanchion.lookup", None, {"cache": "users", "hit": False, "key": "ada@example.org"})]


def test_without_instrument_nothing_stands_around_a_call(client, spans):
    stanchion.opentelemetry.instrument(spans.provider)  # twice
    stanchion.opentelemetry.uninstrument()
    assert _fetching.get_or_load.__module__ == "stanchion._fetching"
    assert not hasattr(_fetching.get_or_load, "__wrapped__")
    client.cache("users", ttl=60).get_or_load("42", lambda: 1)
    assert spans.take() == []


def test_a_loader_that_a_thread_cannot_await_is_refused_as_ever(client, spans):
    async def load():
        return 1

    with pytest.raises(TypeError, match=r"stanchion\.aio"):
        client.cache("users", ttl=60).get_or_load("42", load)


def test_a_meter_reads_the_counters():
    reader = InMemoryMetricReader()
    with stanchion.connect() as client:
        stanchion.opentelemetry.observe({"main": client}, MeterProvider([reader]))
        cache = client.cache("users", ttl=60)
        cache.get_or_load("42", lambda: 1)
        cache.get_or_load("42", lambda: 1)
        metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        points = {metric.name: [(dict(p.attributes), p.value) for p in metric.data.data_points] for metric in metrics}
        assert points["stanchion.loads"] == [({"stanchion.client": "main"}, 1)]
        assert points["stanchion.cache.hits"] == [({"stanchion.client": "main", "stanchion.cache": "users"}, 1)]
        assert {metric.description for metric in metrics} == set(_native.STATS.values())
        assert all(metric.data.is_monotonic for metric in metrics)


# ---- The log


class Redis:
    """A server that a test may end, stop and start."""

    def __init__(self, folder):
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self.start()

    def start(self):
        binary = os.environ.get("STN_REDIS_SERVER") or shutil.which("redis-server")
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(self._folder)]
        self.process = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL)

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(10)

    def command(self, *words):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall("".join(f"*{len(words)}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in words)).encode())
            return connection.recv(1000)


@pytest.fixture
def redis(tmp_path):
    if not os.environ.get("STN_REDIS_SERVER") and not shutil.which("redis-server"):
        pytest.skip("no redis-server here")
    server = Redis(tmp_path)
    yield server
    server.end()


def connected(client):
    for _ in range(200):
        try:
            return client.ready(1)
        except stanchion.Unavailable:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


@pytest.fixture
def told(caplog):
    """What the log has, as (level, text)."""
    caplog.set_level(logging.INFO, "stanchion")
    return lambda word="": [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "stanchion" and word in record.getMessage()
    ]


def test_a_connection_that_is_lost_and_comes_back_is_told_once_each(redis, told, caplog):
    good = ("INFO", f"{redis.url}: connected")
    with stanchion.connect(redis.url) as client:
        connected(client)
        until(lambda: good in told())
        caplog.clear()
        redis.end()
        until(lambda: told("not connected"))
        time.sleep(0.5)  # it tries again and again
        redis.start()
        until(lambda: good in told(), 10)
    lost, back = told("connected")
    assert lost[0] == "WARNING"
    assert lost[1].startswith(f"{redis.url}: not connected, and trying again")
    assert back == good


def test_a_breaker_that_opens_and_closes_is_told_once_each_time(redis, told):
    with stanchion.connect(redis.url, command_timeout=0.1) as client:
        connected(client)
        cache = client.cache("c", ttl=60)
        redis.process.send_signal(signal.SIGSTOP)
        until(lambda: cache.get_or_load("key", lambda: 1) and told("the store fails"), 20)
        for _ in range(5):
            assert cache.get_or_load("key", lambda: 1) == 1
        redis.process.send_signal(signal.SIGCONT)
        until(lambda: cache.get_or_load("key", lambda: 1) and told("the store answers"), 20)
    opened = ("WARNING", f"{redis.url}: the store fails again and again: loads go on without it")
    closed = ("INFO", f"{redis.url}: the store answers again")
    # on a busy machine more than once
    until(lambda: told("the store").count(opened) == client.stats()["breaker_opened"])
    assert told("the store")[::2] == [opened] * len(told("the store")[::2])
    assert told("the store")[1::2] == [closed] * len(told("the store")[1::2])


def test_a_lock_without_an_end_is_told_once(redis, told):
    with stanchion.connect(redis.url) as client:
        connected(client)
        assert redis.command("SET", "foreign", "theirs") == b"+OK\r\n"
        crowd = Crowd(5, lambda: client.try_lock("x", ttl=60, key="foreign")).join()
        assert crowd.results == [None] * 5
        until(lambda: told("no TTL"))
        assert client.try_lock("x", ttl=60, key="foreign") is None
    assert [level for level, _ in told("no TTL")] == ["WARNING"]


def test_a_refresh_that_may_come_too_late_is_a_warning(caplog):
    with stanchion.connect() as client:
        cache = client.cache("slow", ttl=0.2, soft_ttl=0.15, jitter=0)
        for key in "12":
            cache.get_or_load(key, Source(1, 0.1))
        until(lambda: caplog.records)
    assert [(record.name, record.levelname) for record in caplog.records] == [("stanchion", "WARNING")]
    assert caplog.records[0].getMessage().startswith('memory://: cache "slow": ttl - soft_ttl')


def test_who_has_no_logging_hears_nothing():
    code = f"""
        import stanchion
        with stanchion.connect("redis://127.0.0.1:{free_port()}") as client:
            try:
                client.ready(2)
            except stanchion.Unavailable:
                pass
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("memory://", "memory://"),
        ("memory://name?clock=manual", "memory://name"),
        ("redis://user:secret@host:6379/2", "redis://host:6379/2"),
        ("rediss://:se?c#r/e@t@host", "rediss://host"),
        ("unix://:secret@/run/redis.sock?db=2", "unix:///run/redis.sock"),
    ],
)
def test_the_log_names_the_store_and_no_secret(url, place):
    assert _core.place_of(url) == place


def test_the_readme_tells_what_each_counter_counts():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| ([^|`]+) \|$", text, re.M))
    assert {name: table.get(name) for name in _native.STATS} == {
        name: doc.replace("`", "") for name, doc in _native.STATS.items()
    }
