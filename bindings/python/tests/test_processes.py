# SPDX-License-Identifier: MIT
"""Forks, exits and Ctrl-C, each in a process of its own."""

import ctypes.util
import os
import subprocess
import sys
import textwrap
import time

import pytest


def python(code, timeout=20):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def clean(code):
    ended = python(code)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


def test_an_idle_client_holds_no_process_up():
    started = time.monotonic()
    clean("import stanchion; client = stanchion.connect(); client.cache('c', ttl=60).set('key', 1)")
    assert time.monotonic() - started < 5


def test_daemon_threads_in_blocking_calls_do_not_disturb_the_exit():
    clean("""
        import stanchion, threading, time
        client = stanchion.connect()
        group, alone = client.group(), stanchion.Group()
        cache = client.cache("c", ttl=60)
        lock = client.try_lock("l", ttl=5)

        def quiet(call):
            try:
                call()
            except stanchion.Closed:
                pass

        def load():
            time.sleep(60)

        for call in (
            lambda: group.do("key", load),
            lambda: alone.do("key", load),
            lambda: cache.get_or_load("key", load),
            lambda: client.lock("l", ttl=5).acquire(),
        ) * 4:
            threading.Thread(target=quiet, args=(call,), daemon=True).start()
        time.sleep(0.3)
    """)


def test_a_client_inherited_by_a_fork_says_so_and_a_new_one_works():
    out = clean("""
        import os, stanchion
        client = stanchion.connect()
        cache = client.cache("c", ttl=60)
        cache.set("key", 1)
        lock = client.try_lock("l", ttl=30)
        child = os.fork()
        if child == 0:
            for call in (lambda: cache.get("key"), lambda: client.lock("l", ttl=5).acquire(), lambda: client.cache("d"),
                         lambda: cache.get_or_load("key", lambda: 2), lambda: client.once("x", 5)):
                try:
                    call()
                    print("no error", flush=True)
                except stanchion.ForkedError as error:
                    assert "after the fork" in str(error)
            assert not lock.held
            with stanchion.connect() as own:
                assert own.cache("c", ttl=60).get_or_load("key", lambda: 3) == 3
            print("child", flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert cache.get("key") == 1 and lock.held
        print("parent")
    """)
    assert out.split() == ["child", "parent"]


def test_ctrl_c_ends_a_blocking_wait_at_once():
    code = """
        import os, signal, stanchion, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what a shell runs with &
        client = stanchion.connect()
        lock = client.try_lock("l", ttl=60)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        try:
            client.lock("l", ttl=60, wait=30).acquire()
        except KeyboardInterrupt:
            assert time.monotonic() - started < 3
            lock.release()
            assert client.try_lock("l", ttl=60) is not None
            print("interrupted")
    """
    assert clean(code) == "interrupted\n"


def test_a_second_signal_handler_may_use_the_library():
    out = clean("""
        import os, signal, stanchion, threading
        client = stanchion.connect()
        cache = client.cache("c", ttl=60)
        cache.set("key", "value")
        signal.signal(signal.SIGUSR1, lambda *_: print(cache.get("key"), flush=True))
        lock = client.try_lock("l", ttl=60)
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        threading.Timer(0.5, lock.release).start()
        client.lock("l", ttl=60, wait=10).acquire()
        print("locked")
    """)
    assert out.split() == ["value", "locked"]


def test_multiprocessing_by_fork_with_clients_opened_in_the_children(redis_url):
    out = clean(f"""
        import multiprocessing, stanchion, time
        parent = stanchion.connect({redis_url!r}, prefix="fork{os.getpid()}")
        parent.ready(5)

        def work(barrier, calls, answers):
            with stanchion.connect({redis_url!r}, prefix="fork{os.getpid()}") as client:
                client.ready(5)
                barrier.wait()
                def load():
                    with calls.get_lock():
                        calls.value += 1
                    time.sleep(0.3)
                    return "value"
                answers.put(client.cache("c", ttl=60).get_or_load("key", load))

        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            barrier, calls, answers = context.Barrier(8), context.Value("i", 0), context.Queue()
            processes = [context.Process(target=work, args=(barrier, calls, answers)) for _ in range(8)]
            for process in processes:
                process.start()
            assert [answers.get(timeout=10) for _ in processes] == ["value"] * 8
            for process in processes:
                process.join()
                assert process.exitcode == 0
            print(calls.value)
    """)
    assert out == "1\n"


def test_another_hiredis_in_the_process_is_another_one(redis_url):
    other = ctypes.util.find_library("hiredis")
    if not other:
        pytest.skip("there is no other hiredis here")
    out = clean(f"""
        import ctypes
        other = ctypes.CDLL({other!r}, mode=ctypes.RTLD_GLOBAL)  # its names come first from here on
        import stanchion
        with stanchion.connect({redis_url!r}, prefix="two{os.getpid()}") as client:
            client.ready(5)
            cache = client.cache("c", ttl=60)
            assert [cache.get_or_load(str(n), lambda n=n: n) for n in range(100)] == list(range(100))
            with client.lock("report", ttl=5):
                print("fine")
        assert other.redisFree
    """)
    assert out == "fine\n"
