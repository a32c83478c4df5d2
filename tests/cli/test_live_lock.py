# SPDX-License-Identifier: MIT
"""stanchion lock, between processes."""

import contextlib
import signal
import time

from command import PROGRAM, end_of, eventually, folder, lives, run, sh, start, text_of, unique
from promises import equal, everywhere, holds, promise
from server import Server


def lock_key(server, name):
    return eventually(lambda: server.keys(f"*{name}*"))[0]


def blocks(pid, number):
    """From then on a signal does not just kill it."""
    with open(f"/proc/{pid}/status") as status:
        mask = next(line for line in status if line.startswith("SigBlk:")).split()[1]
    return int(mask, 16) >> (number - 1) & 1


@contextlib.contextmanager
def held(server, name, *options, ttl="5s", script="exec sleep 60"):
    """Somebody holds the lock, until the end of the block."""
    process = start("lock", name, "--ttl", ttl, *options, *sh(f"echo up; {script}"), store=server.url)
    equal(process.stdout.readline(), "up\n")
    try:
        yield process
    finally:
        process.terminate()
        end_of(process)


@promise("who comes second is told busy and by whom it is held, and runs nothing")
@everywhere
def _(server):
    name = unique("busy")
    with held(server, name, "--label", "web-1") as holder:
        ended = run("lock", name, "--ttl", "5s", "--wait", "0s", *sh("echo ran"), store=server.url)
        equal((ended.code, ended.out), (75, ""))
        holds("somebody else holds the lock", ended.err)
        holds('held by "web-1" (fence ', ended.err)
        ended = run("lock", name, "--ttl", "5s", "--wait", "200ms", "--busy-code", "9", *sh("echo ran"), store=server.url)
        equal((ended.code, ended.out), (9, ""))
        ended = run("lock", name, "--ttl", "5s", "--wait", "0s", "--json", *sh("echo ran"), store=server.url)
        import json
        said = json.loads(ended.err)
        equal((said["event"], said["exit"], said["holder"]["label"]), ("busy", 75, "web-1"))
        assert holder.poll() is None


@promise("who waits gets it when the holder has ended, with a larger fence, and nothing is left behind")
@everywhere
def _(server):
    name = unique("wait")
    with held(server, name, script="echo $STANCHION_FENCE; exec sleep 0.3") as holder:
        first = int(holder.stdout.readline())
        ended = run("lock", name, "--ttl", "60s", "--wait", "30s", *sh("echo $STANCHION_FENCE"), store=server.url)
        equal(ended.code, 0, ended)
        assert int(ended.out) > first, (ended.out, first)
    equal(server.keys(f"*{name}*"), [])


@promise("two runs never overlap: a counter that is read, and written later, loses no step")
@everywhere
def _(server):
    name = unique("counter")
    with folder() as here:
        (here / "n").write_text("0\n")
        step = sh(f"read n < {here}/n; sleep 0.02; echo $((n + 1)) > {here}/n")
        crowd = [start("lock", name, "--ttl", "5s", "--wait", "30s", *step, store=server.url) for _ in range(8)]
        equal([end_of(one).code for one in crowd], [0] * 8)
        equal(text_of(here / "n"), "8\n")


@promise("inspect shows the token and the fence that the command has in its environment")
@everywhere
def _(server):
    name = unique("inspect")
    ended = run("lock", name, "--ttl", "30s", *sh(f'{PROGRAM} inspect "$STANCHION_LOCK" --json; echo "$STANCHION_FENCE $STANCHION_TOKEN"'),
                store=server.url)
    import json
    shown, told = ended.out.splitlines()
    shown = json.loads(shown)
    equal([str(shown["fence"]), shown["token"]], told.split())
    equal((shown["held"], shown["ours"], shown["name"]), (True, True, name))
    assert 0 < shown["ttl_ms"] <= 30_000
    host, pid = shown["label"].rsplit(":", 1)
    assert host and pid.isdigit()


@promise("a lock that somebody deletes is lost: the command gets SIGTERM, and SIGKILL when that does not end it; 79")
@everywhere
def _(server):
    name = unique("deleted")
    with folder() as here:
        process = start("lock", name, "--ttl", "1500ms", "--grace", "300ms",
                        *sh(f"trap 'echo term >> {here}/log' TERM; echo $$ > {here}/pid; while :; do sleep 0.02; done"),
                        store=server.url)
        pid = int(eventually(lambda: text_of(here / "pid").strip()))
        equal(server.ask("DEL", lock_key(server, name)), 1)
        eventually(lambda: text_of(here / "log"))
        began = time.monotonic()
        ended = end_of(process)
        equal((ended.code, text_of(here / "log")), (79, "term\n"))
        holds("is lost: somebody deleted it", ended.err)
        assert time.monotonic() - began > 0.2, "no time was given"
        assert not lives(pid)


@promise("a lock that is another's by now is lost, and the other's is left alone")
def _(server):
    name = unique("stolen")
    process = start("lock", name, "--ttl", "1500ms", *sh("exec sleep 60"), store=server.url)
    key = lock_key(server, name)
    server.ask("SET", key, "another", "PX", 60_000)
    ended = end_of(process)
    equal(ended.code, 79)
    holds("somebody else's lock stands in its place", ended.err)
    equal(server.ask("GET", key), "another")


@promise("a lock that was lost before the command had ended is told, though nobody noticed in time; 79")
def _(server):
    name = unique("late")
    with folder() as here:
        process = start("lock", name, "--ttl", "60s", *sh(f"while [ ! -e {here}/go ]; do sleep 0.02; done; echo done"),
                        store=server.url)
        server.ask("DEL", lock_key(server, name))
        (here / "go").touch()
        ended = end_of(process)
        equal((ended.code, ended.out), (79, "done\n"))
        holds("was lost before the command ended with 0", ended.err)


@promise("a command that takes longer than the ttl keeps the lock: it is renewed")
def _(server):
    name = unique("renewed")
    with held(server, name, ttl="600ms") as holder:
        key = lock_key(server, name)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert 0 < server.ask("PTTL", key) <= 600, "it ran out"
            time.sleep(0.01)
        assert holder.poll() is None


@promise("SIGTERM while it runs is passed on, and the lock is released when the command has ended")
@everywhere
def _(server):
    name = unique("term")
    with folder() as here:
        process = start("lock", name, "--ttl", "60s",
                        *sh(f"trap 'echo > {here}/term; while [ ! -e {here}/go ]; do sleep 0.02; done; exit 5' TERM; "
                            f"echo > {here}/up; while :; do sleep 0.02; done"),
                        store=server.url)
        eventually((here / "up").exists)
        process.send_signal(signal.SIGTERM)
        eventually((here / "term").exists)
        equal(len(server.keys(f"*{name}*")), 1, "released while the command runs")
        (here / "go").touch()
        equal(end_of(process).code, 5)
        equal(server.keys(f"*{name}*"), [])


@promise("a signal while it waits ends it by 128 and its number: nothing has run, and it takes no lock later")
def _(server):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        name = unique("waiting")
        with held(server, name):
            waiting = start("lock", name, "--ttl", "5s", "--wait", "forever", *sh("echo ran"), store=server.url)
            eventually(lambda: blocks(waiting.pid, signal.SIGTERM))
            time.sleep(0.2)
            waiting.send_signal(number)
            ended = end_of(waiting)
            equal((ended.code, ended.out), (128 + number, ""))
        equal(server.keys(f"*{name}*"), [])


@promise("kill -9 of stanchion ends the command, and leaves the lock for at most its ttl")
@everywhere
def _(server):
    name = unique("killed")
    with folder() as here:
        process = start("lock", name, "--ttl", "1s", *sh(f"echo $$ > {here}/pid; exec sleep 60"), store=server.url)
        pid = int(eventually(lambda: text_of(here / "pid").strip()))
        key = lock_key(server, name)
        process.kill()
        assert 0 < server.ask("PTTL", key) <= 1_000
        began = time.monotonic()
        eventually(lambda: not lives(pid))
        equal(run("lock", name, "--ttl", "5s", "--wait", "10s", *sh("exit 4"), store=server.url).code, 4)
        assert time.monotonic() - began < 6, "it was held for longer"
        end_of(process)


@promise("for a command that is not there no lock is asked for, no slot is used and no id taken")
def _(server):
    for words in (["lock", "--ttl", "5s"], ["tick", "--every", "1m"], ["once", "--ttl", "1m"]):
        name = unique("none")
        equal(run(words[0], name, *words[1:], "--", "no-such-command", store=server.url).code, 127)
        equal(server.keys(f"*{name}*"), [])


@promise("a store that cannot be reached is 69 and nothing runs; the address is told, the password is not")
def _(server):
    for words in (["lock", "x", "--ttl", "5s", "--wait", "300ms"], ["tick", "x", "--every", "1m"], ["once", "x", "--ttl", "1m"]):
        for quiet in ([], ["--quiet"]):
            ended = run(*words, *quiet, *sh("echo ran"), store="redis://user:hunter2@127.0.0.1:1")
            equal((ended.code, ended.out), (69, ""))
            holds("127.0.0.1:1", ended.err)
            holds("refused", ended.err)


@promise("a server that dies under a lock ends the command when the ttl is over; 79")
def _(server):
    own = Server()
    process = start("lock", "x", "--ttl", "700ms", "--grace", "2s", *sh("exec sleep 60"), store=own.url)
    lock_key(own, "x")
    own.stop()
    ended = end_of(process)
    equal(ended.code, 79)
    holds("no renewal was answered before its ttl was over", ended.err)


@promise("--key names the store's key itself, and who holds it by SET NX PX is respected")
@everywhere
def _(server):
    key = unique("literal")
    words = ["lock", "a name", "--key", key, "--ttl", "5s", "--wait", "0s"]
    with held(server, "a name", "--key", key):
        equal(server.keys(f"*{key}*"), [key])
        equal(server.ask("SET", key, "me", "NX", "PX", 5_000), None)
        equal(run("inspect", "--key", key, store=server.url).code, 0)
    equal(server.ask("SET", key, "me", "NX", "PX", 60_000), "OK")
    ended = run(*words, *sh("echo ran"), store=server.url)
    equal((ended.code, ended.out), (75, ""))
    holds("held by another program", ended.err)
    equal(server.ask("GET", key), "me")
    server.ask("PERSIST", key)
    holds("does not end by itself", run("inspect", "--key", key, store=server.url).out)


@promise("a key that holds a list is a collision; 65")
def _(server):
    key = unique("list")
    server.ask("RPUSH", key, "x")
    equal(run("lock", "x", "--key", key, "--ttl", "5s", *sh("echo ran"), store=server.url).code, 65)


@promise("--max-hold ends a command that hangs; the lock is free at once")
def _(server):
    name = unique("hangs")
    ended = run("lock", name, "--ttl", "60s", "--max-hold", "300ms", *sh("exec sleep 60"), store=server.url)
    equal(ended.code, 79)
    holds("--max-hold", ended.err)
    equal(server.keys(f"*{name}*"), [])


@promise("--no-renew ends a command when the ttl is over")
def _(server):
    ended = run("lock", unique("once"), "--ttl", "300ms", "--no-renew", *sh("exec sleep 60"), store=server.url)
    equal(ended.code, 79)
