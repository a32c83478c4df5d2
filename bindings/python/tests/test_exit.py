# SPDX-License-Identifier: MIT
"""How a process may end, and what it leaves behind: nothing said on stderr, no lock, nobody waiting."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import stanchion

_numbers = itertools.count()

PREAMBLE = """
import asyncio, os, signal, stanchion, sys, threading, time
client = stanchion.connect({url!r}, **{options!r})
client.ready(10)
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what a shell runs with &
"""


def ended(process):
    """(stdout, stderr) of a process, which has to end."""
    try:
        return process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


class Store:
    """A store of its own for one test, and for the program that it runs."""

    def __init__(self, url, options):
        self.url, self.options = url, options

    def program(self, code):
        text = PREAMBLE.format(url=self.url, options=self.options) + textwrap.dedent(code)
        return subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "ignore", "-W", "error::RuntimeWarning", "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code, interrupt_after=None):
        """(exit code, stdout, stderr)."""
        with self.program(code) as process:
            if interrupt_after is not None:
                assert process.stdout.readline() == "waiting\n"
                time.sleep(interrupt_after)
                process.send_signal(signal.SIGINT)
            out, err = ended(process)
        return process.returncode, out, err

    def clean(self, code):
        status, out, err = self.run(code)
        assert (status, err) == (0, "")
        return out


@pytest.fixture
def store(redis_url):
    return Store(redis_url, {"prefix": f"exit{os.getpid()}-{next(_numbers)}"})


def is_free(store, name):
    """A lock is given back at exit, not when its ttl ends."""
    with stanchion.connect(store.url, **store.options) as client:
        lock = client.try_lock(name, ttl=5)
        return lock is not None


WAYS_OUT = {
    "the end of the program": "pass",
    "sys.exit": "sys.exit(0)",
    "sys.exit in a function of atexit": "import atexit; atexit.register(lambda: None); sys.exit(0)",
    "sys.exit in a thread": "thread = threading.Thread(target=sys.exit); thread.start(); thread.join()",
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_locks_are_given_back_at(store, way):
    store.clean(f"""
        lock = client.try_lock("report", ttl=60)
        assert lock.held
        {WAYS_OUT[way]}
    """)
    assert is_free(store, "report")


def test_locks_are_given_back_when_an_exception_ends_the_program(store):
    status, _, err = store.run("""
        lock = client.try_lock("report", ttl=60)
        raise ValueError("mine")
    """)
    assert status == 1
    assert err.strip().endswith("ValueError: mine")
    assert err.count("Traceback") == 1
    assert is_free(store, "report")


def test_os_exit_ends_at_once_and_the_ttl_frees_the_lock(store):
    started = time.monotonic()
    status, _, err = store.run("""
        lock = client.try_lock("report", ttl=2)
        threading.Thread(target=lambda: client.group().do("key", lambda: time.sleep(60)), daemon=True).start()
        time.sleep(0.1)
        os._exit(7)
    """)
    assert (status, err) == (7, "")
    assert time.monotonic() - started < 20
    with stanchion.connect(store.url, **store.options) as client, client.lock("report", ttl=5, wait=10) as lock:
        assert lock.held


def test_threads_in_the_middle_of_everything_do_not_disturb_the_exit(store):
    store.clean("""
        cache, group = client.cache("c", ttl=60, soft_ttl=0.01), client.group()
        held = client.try_lock("held", ttl=60, on_lost=lambda loss: print("lost"))

        def again(call):
            try:
                while True:
                    call()
            except stanchion.Closed:
                pass

        calls = (
            lambda: cache.get_or_load("hit", lambda: 1),
            lambda: cache.set("set", 1),
            lambda: cache.invalidate("set"),
            lambda: group.do("key", lambda: time.sleep(0.001)),
            lambda: client.try_lock("free", ttl=60),
            lambda: client.once("id", 60),
        )
        for call in calls * 3:
            threading.Thread(target=again, args=(call,), daemon=True).start()
        time.sleep(0.4)
    """)
    assert is_free(store, "held")


def test_other_threads_may_still_work_while_the_main_thread_is_over(store):
    out = store.clean("""
        cache = client.cache("c", ttl=60)

        def work():
            time.sleep(0.2)
            print(cache.get_or_load("key", lambda: "loaded"))

        threading.Thread(target=work).start()
    """)
    assert out == "loaded\n"


@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_tasks_in_flight_do_not_disturb_the_exit(store, loops):
    if loops == "uvloop":
        pytest.importorskip("uvloop")
    store.clean(f"""
        if {loops!r} == "uvloop":
            import uvloop
            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

        async def main():
            cache, group = client.aio.cache("c", ttl=60), client.aio.group()
            lock = await client.aio.try_lock("report", ttl=60)
            calls = [cache.get_or_load("key", lambda: asyncio.sleep(60)) for _ in range(10)]
            calls += [group.do("key", lambda: asyncio.sleep(60)) for _ in range(10)]
            calls += [client.aio.lock("report", ttl=60).acquire() for _ in range(10)]
            calls += [lock.wait_lost(60)]
            main.tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0.1)

        asyncio.run(main())
    """)
    assert is_free(store, "report")


def test_a_loop_that_is_never_closed_does_not_disturb_the_exit(store):
    status, _, err = store.run("""
        loop = asyncio.new_event_loop()

        async def main():
            cache = client.aio.cache("c", ttl=60)
            main.lock = await client.aio.try_lock("report", ttl=60)
            main.task = asyncio.ensure_future(cache.get_or_load("key", lambda: asyncio.sleep(60)))
            await asyncio.sleep(0.1)

        loop.run_until_complete(main())
    """)
    assert status == 0
    # what asyncio itself says of a pending task is the program's own doing
    assert "stanchion" not in err.replace("stanchion/_loops.py", "").replace("stanchion/aio.py", "") or "pending" in err
    assert "Exception ignored" not in err and "Fatal" not in err
    assert is_free(store, "report")


BLOCKING = {
    "a lock": "client.lock('taken', ttl=60).acquire()",
    "a load of another thread": "cache.get_or_load('key', lambda: 1)",
    "a run of another thread": "group.do('key', lambda: 1)",
    "the loss of a lock": "taken.wait_lost(60)",
    "a load of its own": "cache.get_or_load('own', lambda: time.sleep(60))",
    "an event loop": "asyncio.run(client.aio.lock('taken', ttl=60).acquire())",
}


@pytest.mark.parametrize("where", BLOCKING)
def test_ctrl_c_ends_a_program_that_waits_for(store, where):
    started = time.monotonic()
    status, _, err = store.run(
        f"""
        cache, group = client.cache("c", ttl=60), client.group()
        taken = client.try_lock("taken", ttl=60)
        slow = threading.Event()
        for call in (lambda: cache.get_or_load("key", slow.wait), lambda: group.do("key", slow.wait)):
            threading.Thread(target=call, daemon=True).start()
        time.sleep(0.2)
        print("waiting", flush=True)
        {BLOCKING[where]}
        """,
        interrupt_after=0.3,
    )
    assert time.monotonic() - started < 25
    assert status in (-signal.SIGINT, 130)
    assert err.strip().endswith("KeyboardInterrupt")
    for noise in ("Exception ignored", "never retrieved", "never awaited", "Fatal", "stanchion:"):
        assert noise not in err
    assert is_free(store, "taken")


def test_a_load_that_ctrl_c_ended_is_taken_over_by_who_waits(store):
    with store.program("""
        print("waiting", flush=True)
        client.cache("c", ttl=60, lease=30).get_or_load("key", lambda: time.sleep(60))
    """) as process:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        with stanchion.connect(store.url, **store.options) as client:
            assert client.cache("c", ttl=60, lease=30).get_or_load("key", lambda: "mine", wait=20) == "mine"
        ended(process)


def test_asyncio_run_many_times_in_one_program(store):
    out = store.clean("""
        cache = client.aio.cache("c", ttl=60)

        async def main(number):
            async with client.aio.lock("report", ttl=60):
                return await cache.get_or_load(str(number), lambda: number)

        print(sum(asyncio.run(main(number)) for number in range(20)))
    """)
    assert out == "190\n"


def test_a_subinterpreter_is_refused_with_advice(store):
    code = """
        try:
            import stanchion
            refused = "it was let in"
        except ImportError as error:
            refused = str(error)
        assert "WSGIApplicationGroup" in refused, refused
    """
    out = store.clean(f"""
        import textwrap
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        for own in ((), ("legacy",)) if sys.version_info >= (3, 13) else ((),):
            other = interpreters.create(*own)
            failed = interpreters.run_string(other, textwrap.dedent({code!r}))
            assert failed is None, failed
            interpreters.destroy(other)
        print(client.cache("c", ttl=60).get_or_load("key", lambda: "still here"))
    """)
    assert out == "still here\n"
