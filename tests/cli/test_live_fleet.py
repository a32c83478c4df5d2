# SPDX-License-Identifier: MIT
"""tick and once: many hosts, one run."""

import collections
import signal
import time
from concurrent.futures import ThreadPoolExecutor

from command import end_of, eventually, folder, run, sh, start, text_of, unique
from promises import equal, everywhere, holds, promise


@promise("five hosts that ask all the time run each slot once")
@everywhere
def _(server):
    name = unique("slots")
    with folder() as here:
        log = here / "log"
        until = time.monotonic() + 15

        def host(_):
            codes = set()
            while len(text_of(log).split()) < 4 and time.monotonic() < until:
                codes.add(run("tick", name, "--every", "500ms", *sh(f"echo $STANCHION_SLOT >> {log}"),
                              store=server.url).code)
            return codes
        with ThreadPoolExecutor(5) as hosts:
            equal(set().union(*hosts.map(host, range(5))), {0})
        slots = text_of(log).split()
        assert len(slots) >= 4, slots
        equal([slot for slot, runs in collections.Counter(slots).items() if runs > 1], [], "ran twice")


@promise("a host whose slot is another's ends with 0 or with --busy-code, says why, and says nothing with --quiet")
@everywhere
def _(server):
    name = unique("taken")
    words = ["tick", name, "--every", "1h"]
    equal(run(*words, *sh("echo ran"), store=server.url).out, "ran\n")
    second = run(*words, *sh("echo ran"), store=server.url)
    equal((second.code, second.out), (0, ""))
    holds("was given out already; the next begins in", second.err)
    equal(run(*words, "--busy-code", "9", *sh("echo ran"), store=server.url).code, 9)
    quiet = run(*words, "--quiet", *sh("echo ran"), store=server.url)
    equal((quiet.code, quiet.out, quiet.err), (0, "", ""))


@promise("a command that fails gives the slot back: the next host runs it")
def _(server):
    name = unique("failed")
    words = ["tick", name, "--every", "1h"]
    equal(run(*words, *sh("exit 3"), store=server.url).code, 3)
    equal(run(*words, *sh("kill -9 $$"), store=server.url).code, 137)
    equal(run(*words, *sh("echo ran"), store=server.url).out, "ran\n")
    equal(run(*words, *sh("echo ran"), store=server.url).out, "")


@promise("a run that goes on makes the next slot be skipped, and the host that asks is told so")
def _(server):
    name = unique("long")
    words = ["tick", name, "--every", "300ms", "--at-most", "30s"]
    process = start(*words, *sh("echo up; exec sleep 60"), store=server.url)
    equal(process.stdout.readline(), "up\n")
    time.sleep(0.4)
    second = run(*words, *sh("echo ran"), store=server.url)
    equal((second.code, second.out), (0, ""))
    holds("the run of an earlier slot goes on", second.err)
    process.send_signal(signal.SIGTERM)
    equal(end_of(process).code, 143)


@promise("a run that took longer than --at-most, and whose next slot another has by then, is told")
def _(server):
    words = ["tick", unique("dead"), "--every", "300ms", "--at-most", "200ms"]
    with folder() as here:
        process = start(*words, *sh(f"echo up; while [ ! -e {here}/go ]; do sleep 0.02; done; exit 4"), store=server.url)
        equal(process.stdout.readline(), "up\n")
        eventually(lambda: run(*words, *sh("echo ran"), store=server.url).out == "ran\n")
        (here / "go").touch()
        ended = end_of(process)
        equal(ended.code, 4)
        holds("the command has ended, but", ended.err)


@promise("of five hosts one runs the command for an id, whatever becomes of it")
@everywhere
def _(server):
    name = unique("id")
    with folder() as here:
        hosts = [start("once", name, "--ttl", "1m", *sh(f"echo ran >> {here}/log; exit 6"), store=server.url)
                 for _ in range(5)]
        ended = [end_of(host) for host in hosts]
        equal(sorted(one.code for one in ended), [0, 0, 0, 0, 6])
        equal(text_of(here / "log"), "ran\n")
        for one in ended:
            assert one.code == 6 or "is taken" in one.err, one
    equal(run("once", name, "--ttl", "1m", "--busy-code", "8", *sh("echo"), store=server.url).code, 8)


@promise("an id is free again when its ttl is over")
def _(server):
    name = unique("again")
    equal(run("once", name, "--ttl", "200ms", *sh("echo ran"), store=server.url).out, "ran\n")
    time.sleep(0.3)
    equal(run("once", name, "--ttl", "200ms", *sh("echo ran"), store=server.url).out, "ran\n")
