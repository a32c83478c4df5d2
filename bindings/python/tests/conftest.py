# SPDX-License-Identifier: MIT
"""Stores for the tests: the embedded one, with a clock that the tests turn, and a redis-server of their own."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

import stanchion

_numbers = itertools.count()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """What a shell runs with & ignores SIGINT; programs that tests interrupt must not inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    binary = os.environ.get("STN_REDIS_SERVER") or shutil.which("redis-server")
    if not binary:
        pytest.skip("no redis-server here (STN_REDIS_SERVER names one)")
    folder: Path = tmp_path_factory.mktemp("redis")
    port = free_port()
    server = subprocess.Popen(
        [binary, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder), "--daemonize", "no"],
        stdout=subprocess.DEVNULL,
    )
    try:
        with stanchion.connect(f"redis://127.0.0.1:{port}") as client:
            for _ in range(200):
                try:
                    client.ready(1)
                    break
                except stanchion.Unavailable:
                    time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


Connect = Callable[..., stanchion.Client]


@pytest.fixture(params=["memory", "redis"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Opens clients of one store that no other test uses: embedded, then real. Closed at the end."""
    number = next(_numbers)
    clients = []
    if request.param == "redis":
        url, options = request.getfixturevalue("redis_url"), {"prefix": f"t{os.getpid()}-{number}"}
    else:
        url, options = f"memory://store{number}", {}

    def open_client(**more: Any) -> stanchion.Client:
        client = stanchion.connect(url, **{**options, **more})
        clients.append(client)
        return client

    yield open_client
    for client in clients:
        client.close(0.1)


@pytest.fixture
def client(connect: Connect) -> stanchion.Client:
    return connect()


@pytest.fixture
def clocked() -> Iterator[stanchion.Client]:
    """A client of an embedded store whose clock only the test moves."""
    with stanchion.connect(f"memory://clock{next(_numbers)}?clock=manual") as client:
        yield client


class Crowd:
    """Threads that begin together; what each gave or raised."""

    def __init__(self, size: int, call: Callable[[], Any]) -> None:
        self.results: list[Any] = []
        self.errors: list[BaseException] = []
        barrier = threading.Barrier(size)

        def work() -> None:
            barrier.wait()
            try:
                self.results.append(call())
            except BaseException as error:
                self.errors.append(error)

        self.threads = [threading.Thread(target=work) for _ in range(size)]
        for thread in self.threads:
            thread.start()

    def join(self) -> Crowd:
        for thread in self.threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self.threads)
        return self


class Source:
    """A slow database: counts who asks."""

    def __init__(self, value: Any = None, seconds: float = 0.05, error: Optional[BaseException] = None) -> None:
        self.value = value
        self.seconds = seconds
        self.error = error
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return self.value


class AsyncSource(Source):
    """The same for event loops."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.finished = 0
        self.cancelled = 0

    async def __call__(self) -> Any:
        import asyncio

        self.calls += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.finished += 1
        if self.error is not None:
            raise self.error
        return self.value


def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Waits for what another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)
