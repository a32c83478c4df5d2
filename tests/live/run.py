#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py BUILD: our locks beside those of other libraries on the same key, on Redis and on Valkey.

The others are redis-py's Lock and node-redlock, as programs (programs/neighbour.*) with the packages from their
registries, which are put into build/deps/neighbours once. Ours is programs/locker.c. All on servers of its own, which end
with it. The last line is `N passed, M failed`.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "programs"
DEPS = ROOT / "build/deps/neighbours"
PYTHON_PACKAGES = ["redis==8.1.0"]
NODE_PACKAGES = ["redlock@5.0.0-beta.2", "ioredis@5.11.1"]
PATIENCE_S = 20

passed = failed = 0
counting = threading.Lock()


def promise(kept, what, detail=""):
    global passed, failed
    with counting:
        passed += bool(kept)
        failed += not kept
        print("ok     " if kept else "FAILED ", what, flush=True)
        if not kept:
            print("\n".join("    | " + line for line in str(detail).strip().splitlines()[-20:]), flush=True)


# ---- Servers


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program_of(kind):
    named = os.environ.get(f"STN_{kind.upper()}_SERVER") or shutil.which(f"{kind}-server")
    here = {"redis": "build/deps/redis/redis-server", "valkey": "build/deps/valkey/usr/bin/valkey-server"}
    return named or str(ROOT / here[kind])


class Server:
    def __init__(self, kind, folder):
        self.port = free_port()
        words = [program_of(kind), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                if self.ask("PING") == "+PONG":
                    return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError(f"no {kind}-server")

    def ask(self, *words):
        said = b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in (word.encode() for word in words))
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.sendall(b"*%d\r\n" % len(words) + said)
            return s.makefile("rb").readline().decode().strip()

    def end(self):
        self.process.kill()
        self.process.wait()


# ---- Programs that tell a line at a time


class Program:
    def __init__(self, *words):
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.all = []

    def line(self):
        patience = threading.Timer(PATIENCE_S, self.process.kill)
        patience.start()
        said = self.process.stdout.readline().strip()
        patience.cancel()
        self.all.append(said)
        return said

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait()


class Stage:
    """A server, our program and a neighbour; what was expected and what came."""

    def __init__(self, server, locker, neighbour, key):
        self.server, self.locker, self.words, self.key = server, locker, neighbour, key
        self.programs, self.wrong = [], []

    def started(self, *words):
        self.programs.append(Program(*words))
        return self.programs[-1]

    def ours(self, ms, ttl="30s", wait="10s"):
        how = f'{{"ttl": "{ttl}", "wait": "{wait}", "key": "{self.key}"}}'
        url = f"redis://127.0.0.1:{self.server.port}"
        return self.started(self.locker, "hold", url, '{"command_timeout": "1s"}', how, "nightly", ms)

    def theirs(self, what, ttl_ms=30000):
        return self.started(*self.words[:2], what, self.server.port, self.key, ttl_ms, *self.words[2:])

    def expect(self, program, *words):
        for word in words:
            said = program.line()
            while said == "woke 1":  # the machine was busy elsewhere
                said = program.line()
            if word != said.split(" ")[0] and word != said:
                self.wrong.append(f"{word!r} was expected, {said!r} came after {program.all[:-1]}")


# ---- The promises


def theirs_is_respected(s):
    held = s.theirs("hold")
    s.expect(held, "held")
    s.expect(s.ours(0, wait="0s"), "none busy none")
    waits = s.ours(10)
    time.sleep(0.2)
    held.go()
    s.expect(held, "released")
    s.expect(waits, "held", "released ok")


def ours_is_respected(s):
    held = s.ours(-1)
    s.expect(held, "held")
    s.expect(s.theirs("try"), "busy")
    s.expect(s.theirs("meddle"), "refused", "refused")
    waits = s.theirs("hold")
    time.sleep(0.2)
    held.go()
    s.expect(held, "released ok")
    s.expect(waits, "held")
    waits.go()
    s.expect(waits, "released")


def their_late_release_leaves_ours(s):
    late = s.theirs("hold", 300)
    s.expect(late, "held")
    held = s.ours(-1)
    s.expect(held, "held")
    late.go()
    s.expect(late, "lost")
    held.go()
    s.expect(held, "released ok")


def our_late_release_leaves_theirs(s):
    late = s.ours(-1, ttl="800ms")
    s.expect(late, "held")
    late.pause()
    held = s.theirs("hold")
    s.expect(held, "held")
    late.go_on()
    s.expect(late, "woke 0", "lost expired", "released lost")
    held.go()
    s.expect(held, "released")


def an_endless_one_is_told(s):
    s.expect(s.theirs("endless"), "held")
    s.expect(s.ours(0, wait="0s"), "none busy no_ttl")
    if s.server.ask("PTTL", s.key) != ":-1":
        s.wrong.append("it is there no longer")
    s.server.ask("DEL", s.key)
    s.expect(s.ours(0, wait="0s"), "held", "released ok")


PROMISES = [
    ("{0}'s lock is respected, and had when it is given back", theirs_is_respected),
    ("ours is respected by {0}, whose scripts change nothing, and had when it is given back", ours_is_respected),
    ("a late release by {0} leaves ours alone", their_late_release_leaves_ours),
    ("a late release of ours leaves that of {0} alone", our_late_release_leaves_theirs),
    ("a lock of {0} that has no end is busy, told as such, and not deleted", an_endless_one_is_told),
]


def judge(text, play, stage):
    try:
        play(stage)
    except (OSError, RuntimeError) as fault:
        stage.wrong.append(repr(fault))
    for program in stage.programs:
        program.end()
    promise(not stage.wrong, text, "\n".join(stage.wrong))


# ---- Neighbours


def install(what, command, there):
    if not there.exists():
        DEPS.mkdir(parents=True, exist_ok=True)
        got = subprocess.run([str(w) for w in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if got.returncode != 0:
            promise(False, f"{what} is there", got.stdout)
            return False
    return True


def neighbours():
    """(name, words): the program, what it runs, and what it wants to hear last."""
    out = []
    python = DEPS / "python"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", python, *PYTHON_PACKAGES]
    if install("redis-py", command, python / "redis"):
        os.environ["PYTHONPATH"] = str(python)
        out.append(("redis-py", [sys.executable, HERE / "neighbour.py"]))
    if not shutil.which("npm"):
        print("        Node.js is not installed: node-redlock is left out")
        return out
    node = DEPS / "node"
    command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", node, *NODE_PACKAGES]
    if install("node-redlock", command, node / "node_modules/redlock"):
        out.append(("node-redlock", ["node", HERE / "neighbour.mjs", node]))
    return out


def main():
    locker = Path(sys.argv[1]).resolve() / "tests/live/locker"
    all_of_them = neighbours()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=8) as pool:
        servers, judged = {}, []
        try:
            for kind in ["redis", "valkey"]:
                servers[kind] = Server(kind, folder)
                for name, words in all_of_them:
                    for text, play in PROMISES:
                        if play is an_endless_one_is_told and name != "redis-py":
                            continue  # the other has none
                        stage = Stage(servers[kind], locker, words, f"jobs:{{nightly}}:{len(judged)}")
                        judged.append(pool.submit(judge, f"{kind}: {text.format(name)}", play, stage))
            for one in judged:
                one.result()
        finally:
            for server in servers.values():
                server.end()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
