# SPDX-License-Identifier: MIT
"""The program, and what a run of it gave."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1]).resolve()
PROGRAM = str(BUILD / "bindings/cli/stanchion")
SECRET = "hunter2"  # every password in these tests

_numbers = itertools.count()
SESSIONS = []  # of every process that was started


def unique(word):
    return f"{word}-{next(_numbers)}"


@dataclass
class Ended:
    code: int
    out: str
    err: str

    def json(self):
        return json.loads(self.out)


def environment(store=None, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("STANCHION_")}
    if store:
        env["STANCHION_URL"] = store
    return {**env, **more}


def start(*words, store="memory://", env=None, **how):
    """A process of it, in no terminal and in a session of its own, as cron would have it."""
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    process = subprocess.Popen([PROGRAM, *map(str, words)], env=environment(store, **(env or {})), text=True,
                               start_new_session=True, **how)
    SESSIONS.append(process.pid)
    return process


def sweep():
    """What a test that failed has left running: all of its sessions."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[3]) in SESSIONS:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def end_of(process, timeout=20):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert SECRET not in (out or "") + (err or ""), "a password was printed"
    return Ended(process.returncode, out or "", err or "")


def run(*words, store="memory://", **how):
    return end_of(start(*words, store=store, **how))


def sh(script):
    return ["--", "sh", "-c", script]


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="stn-cli-") as path:
        yield Path(path)


def eventually(what, patience=10.0):
    until = time.monotonic() + patience
    while time.monotonic() < until:
        got = what()
        if got:
            return got
        time.sleep(0.01)
    raise AssertionError("not even after a while")


def text_of(path):
    return path.read_text() if path.exists() else ""


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
