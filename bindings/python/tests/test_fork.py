# SPDX-License-Identifier: MIT
"""Processes made by fork and by spawn, by hand, by multiprocessing and by gunicorn."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request

import pytest
from conftest import free_port, until

_numbers = itertools.count()


@pytest.fixture
def prefix():
    return f"fork{os.getpid()}-{next(_numbers)}"


def clean(folder, code):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(code))
    # what Python has to say of any fork with threads is not ours
    command = [sys.executable, "-W", "ignore::DeprecationWarning", path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


POOL = """
    import concurrent.futures, multiprocessing, os, stanchion

    def begin():
        global cache
        cache = stanchion.connect({url!r}, prefix={prefix!r}).cache("c", ttl=60)

    def work(number):
        return cache.get_or_load(str(number % 5), lambda: os.getpid())

    if __name__ == "__main__":
        inherited = stanchion.connect({url!r}, prefix={prefix!r})
        inherited.ready(10)
        lock = inherited.try_lock("report", ttl=60)
        context = multiprocessing.get_context({method!r})
        with concurrent.futures.ProcessPoolExecutor(3, mp_context=context, initializer=begin) as pool:
            answers = list(pool.map(work, range(40)))
        assert answers == answers[:5] * 8, answers
        assert lock.held and inherited.cache("c", ttl=60).get("0") == answers[0]
        print("fine")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_whose_initializer_opens_the_client(tmp_path, redis_url, prefix, method):
    assert clean(tmp_path, POOL.format(url=redis_url, prefix=prefix, method=method)) == "fine\n"


def test_a_fork_among_busy_threads_and_a_child_that_ends_normally(tmp_path, redis_url, prefix):
    out = clean(
        tmp_path,
        f"""
        import os, stanchion, sys, threading, time
        client = stanchion.connect({redis_url!r}, prefix={prefix!r})
        cache = client.cache("c", ttl=60)
        over = False

        def busy():
            while not over:
                cache.set("key", 1)
                cache.get("key")

        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                try:
                    cache.get("key")
                    os._exit(2)
                except stanchion.ForkedError as error:
                    assert "after the fork" in str(error)
                with stanchion.connect({redis_url!r}, prefix={prefix!r}) as own:
                    assert own.cache("c", ttl=60).get_or_load("other", lambda: 2) == 2
                del client, cache  # a finalizer in the child ends nothing of the parent's
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        over = True
        for thread in threads:
            thread.join()
        print(cache.get("key"))
        """,
    )
    assert out == "1\n"


def test_a_loop_that_was_running_before_the_fork(tmp_path, redis_url, prefix):
    out = clean(
        tmp_path,
        f"""
        import asyncio, os, stanchion
        client = stanchion.connect({redis_url!r}, prefix={prefix!r})
        cache = client.aio.cache("c", ttl=60)

        async def main():
            return await cache.get_or_load("key", lambda: "value")

        async def child():
            try:
                await cache.get("key")
            except stanchion.ForkedError:
                async with stanchion.aio.connect({redis_url!r}, prefix={prefix!r}) as own:
                    return await own.cache("c", ttl=60).get("key")

        assert asyncio.run(main()) == "value"
        pid = os.fork()
        if pid == 0:
            print(asyncio.run(child()), flush=True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print(asyncio.run(main()))
        """,
    )
    assert out == "value\nvalue\n"


APPLICATION = """
import os, stanchion

inherited = stanchion.connect({url!r}, prefix={prefix!r})
inherited.ready(10)
inherited.cache("c", ttl=60).set("master", os.getpid())
own = None

def opened():
    global own
    if own is None:
        own = stanchion.connect({url!r}, prefix={prefix!r})
    return own

def application(environ, start_response):
    client = inherited if environ["PATH_INFO"] == "/inherited" else opened()
    try:
        text = str(client.cache("c", ttl=60).get_or_load("user", lambda: "loaded")) + " " + str(os.getpid())
        status = "200 OK"
    except stanchion.ForkedError as error:
        text, status = str(error), "503 Service Unavailable"
    start_response(status, [("Content-Type", "text/plain")])
    return [text.encode()]
"""


def test_gunicorn_with_two_workers_forked_from_a_loaded_application(tmp_path, redis_url, prefix):
    pytest.importorskip("gunicorn")
    (tmp_path / "shop.py").write_text(APPLICATION.format(url=redis_url, prefix=prefix))
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"127.0.0.1:{port}"]
    master = subprocess.Popen([*command, "shop:application"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    def ask(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def listens():
        try:
            return ask("/")
        except OSError:
            return None

    try:
        until(listens, 30)
        answers = [ask("/") for _ in range(20)]
        assert {(status, text.split()[0]) for status, text in answers} == {(200, "loaded")}
        status, text = ask("/inherited")
        assert status == 503
        assert "post_fork" in text and "after the fork" in text
        workers = {int(text.split()[1]) for _, text in answers}
        os.kill(workers.pop(), signal.SIGKILL)  # the master forks another
        time.sleep(0.2)
        assert ask("/")[0] == 200
    finally:
        started = time.monotonic()
        master.terminate()
        _, err = master.communicate(timeout=40)
    assert time.monotonic() - started < 20
    assert master.returncode == 0
    assert "Traceback" not in err
