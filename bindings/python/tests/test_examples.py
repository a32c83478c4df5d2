# SPDX-License-Identifier: MIT
"""examples/python, as their users run them: servers in processes of their own, asked by many at once, on one Redis."""

import asyncio
import contextlib
import importlib
import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import free_port

for package in ("httpx", "fastapi", "uvicorn", "flask", "django"):
    if not os.environ.get("STN_EXAMPLES"):  # packaging/python.sh sets it where they have to be here
        pytest.importorskip(package)
httpx = importlib.import_module("httpx")

FOLDER = Path(__file__).parents[3] / "examples" / "python"
FASTAPI = ["-m", "uvicorn", "fastapi_app:app", "--log-level", "warning", "--port"]
FLASK = ["-m", "flask", "--app", "flask_app", "run", "--port"]
DJANGO = ["django_page.py", "runserver", "--noreload"]

_numbers = itertools.count(1)  # of databases; the other tests use 0


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """The database of a test, and the module that opens it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("SHOP", str(tmp_path / "shop.db"))
    return importlib.import_module("shop").Shop(str(tmp_path / "shop.db"))


@pytest.fixture
def serve(redis_url, shop, monkeypatch):
    """Starts servers on one store that no other test uses; gives their addresses when all of them answer."""
    monkeypatch.setenv("STORE", f"{redis_url}/{next(_numbers)}")
    with contextlib.ExitStack() as stack:

        def start(*commands):
            urls = []
            for command in commands:
                port = str(free_port())
                servers = subprocess.Popen([sys.executable, *command, port], cwd=FOLDER)
                stack.callback(stop, servers)
                urls.append(f"http://127.0.0.1:{port}")
            for url in urls:
                wait_for(url)
            return urls

        yield start


def stop(server):
    server.send_signal(signal.SIGINT)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        raise


def wait_for(url):
    end = time.monotonic() + 60
    while True:
        try:
            return httpx.get(f"{url}/nothing")
        except httpx.TransportError:
            assert time.monotonic() < end, f"{url} does not answer"
            time.sleep(0.1)


def crowd(urls):
    """The answers to requests at one time."""
    with ThreadPoolExecutor(len(urls)) as pool:
        return list(pool.map(lambda url: httpx.get(url, timeout=30), urls))


def test_sixty_at_once_on_three_servers_of_two_frameworks_are_one_query(serve, shop):
    servers = serve(FASTAPI, FASTAPI, FLASK)
    answers = crowd([f"{server}/products/42" for server in servers] * 20)
    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json() for answer in answers] == [{"id": 42, "name": "umbrella"}] * 60
    assert shop.queries() == 1

    fastapi_server, other, flask_server = servers
    httpx.put(f"{fastapi_server}/products/42?name=parasol").raise_for_status()
    assert {answer.json()["name"] for answer in crowd([f"{server}/products/42" for server in servers])} == {"parasol"}
    httpx.put(f"{flask_server}/products/42?name=tent").raise_for_status()
    assert {answer.json()["name"] for answer in crowd([f"{server}/products/42" for server in servers])} == {"tent"}
    assert shop.queries() == 3

    assert {answer.status_code for answer in crowd([f"{server}/products/1" for server in servers] * 5)} == {404}
    assert shop.queries() == 4

    counters = httpx.get(f"{other}/metrics", follow_redirects=True).text
    assert 'stanchion_cache_flights_total{cache="products",client="shop"}' in counters


def test_one_process_of_the_fleet_writes_the_report(serve, shop):
    serve(FASTAPI, FASTAPI)
    end = time.monotonic() + 20
    while not shop.reports():
        assert time.monotonic() < end
        time.sleep(0.1)
    nightly = [sys.executable, "-m", "flask", "--app", "flask_app", "nightly"]
    ended = subprocess.run(nightly, cwd=FOLDER, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "not now: taken\n"
    (slot,) = shop.reports()
    assert slot.endswith("T02:00:00+00:00")


def test_the_command_for_a_crontab_does_the_job_once(redis_url, shop, monkeypatch):
    monkeypatch.setenv("STORE", f"{redis_url}/{next(_numbers)}")
    nightly = [sys.executable, "-m", "flask", "--app", "flask_app", "nightly"]
    hosts = [subprocess.Popen(nightly, cwd=FOLDER, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = sorted(host.communicate(timeout=60)[0] for host in hosts)
    assert said[0] == "done\n"
    assert all(line.startswith("not now: ") for line in said[1:])
    assert len(shop.reports()) == 1


def test_a_page_of_django_is_rendered_once_for_two_servers(serve, shop):
    servers = serve(DJANGO, DJANGO)
    answers = crowd([f"{server}/products/42" for server in servers] * 20)
    assert {answer.text for answer in answers} == {"<h1>umbrella</h1>"}
    assert shop.queries() == 1
    assert httpx.get(f"{servers[0]}/products/1").status_code == 404


def test_the_fastapi_application_runs_within_a_test(shop, monkeypatch):
    monkeypatch.setenv("STORE", "memory://")
    application = importlib.import_module("fastapi_app")

    async def main():
        transport = httpx.ASGITransport(application.app)
        async with (
            application.app.router.lifespan_context(application.app),
            httpx.AsyncClient(transport=transport, base_url="http://test") as client,
        ):
            answers = await asyncio.gather(*(client.get("/products/42") for _ in range(50)))
            assert {answer.json()["name"] for answer in answers} == {"umbrella"}
            assert shop.queries() == 1
            for _ in range(200):
                if shop.reports():
                    return
                await asyncio.sleep(0.05)
            raise AssertionError("nobody wrote the report")

    asyncio.run(main())
