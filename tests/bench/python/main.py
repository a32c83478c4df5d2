# SPDX-License-Identifier: MIT
"""Runs the cells on a redis-server of its own, in both placements, and prints one table.

    main.py [--quick] [--only WORD] [--placements SU]

S: server and clients on one CPU. U: placed by the kernel. --quick: one short round of each, to see that it runs.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = {
    "cycles": ("cycles.py", ["--seconds", "0.25", "--rounds", "5"], ["--seconds", "0.02", "--rounds", "1"]),
    "joins": ("joins.py", ["--rounds", "5"], ["--rounds", "1"]),
    "stampede": (
        "stampede.py",
        ["--rounds", "3"],
        ["--rounds", "1", "--processes", "2", "--callers", "20"],
    ),
    "late": ("late_writes.py", [], []),
}


def pinned(placement):
    """What stands before a command: a CPU for S, and before others who share the machine if that is allowed."""
    words = []
    if shutil.which("chrt") and subprocess.run(["chrt", "-r", "10", "true"], capture_output=True).returncode == 0:
        words += ["chrt", "-r", "10"]
    if placement == "S":
        words += ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    return words


class Server:
    def __init__(self, before):
        binary = os.environ.get("STN_REDIS_SERVER") or shutil.which("redis-server") or sys.exit("no redis-server here")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory()
        where = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", self._folder.name]
        self._process = subprocess.Popen(
            [*before, binary, *where, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.02)
        sys.exit("the redis-server does not answer")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def run(placement, script, arguments):
    """The rows of a script. Each has a server of its own, so that no key is left of the one before."""
    before = pinned(placement)
    with Server(before) as server:
        got = subprocess.run(
            [*before, sys.executable, str(HERE / script), str(server.port), *arguments],
            capture_output=True,
            text=True,
            timeout=600,
        )
    if got.returncode != 0:
        sys.exit(f"{script} failed:\n{got.stderr[-4_000:]}")
    for line in got.stdout.splitlines():
        yield {"placement": placement, **json.loads(line)}


def number(value):
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def verdict(row):
    """How many times better than the best of the others; the bare GET is a floor and none of them."""
    if row["unit"] == "seen":
        return ""
    rate = row["unit"] == "1/s"
    ours = row["values"]["stanchion"]
    factors = {}
    for name, value in row["values"].items():
        if name != "stanchion":
            factors[name] = ours / value if rate else value / ours
    peers = {name: factor for name, factor in factors.items() if not name.endswith(" GET")}
    best = min(peers, key=peers.get)
    text = f"**{peers[best]:.1f}** x {best}" if len(peers) > 1 else f"**{peers[best]:.1f}** x"
    return ", ".join([text, *(f"{factor:.1f} x GET" for name, factor in factors.items() if name not in peers)])


def told(row, name):
    """One cell of the table."""
    text = number(row["values"][name])
    extra = [f"{word} {number(row[word][name])}" for word in ("loads", "commands") if word in row]
    if row.get("unanswered", {}).get(name):
        extra.append(f"unanswered {row['unanswered'][name]}")
    return f"{text} ({', '.join(extra)})" if extra else text


def show(rows):
    print("| | | stanchion | others | ratio |\n|---|---|---|---|---|")
    for row in rows:
        others = ", ".join(f"{name} {told(row, name)}" for name in row["values"] if name != "stanchion")
        unit = f"{row['cell']}, {row['unit']}"
        print(f"| {unit} | {row['placement']} | {told(row, 'stanchion')} | {others} | {verdict(row)} |")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--quick", action="store_true")
    args.add_argument("--only", default="")
    args.add_argument("--placements", default="SU")
    args = args.parse_args()
    rows = []
    for name, (script, full, quick) in SCRIPTS.items():
        if args.only and args.only not in name:
            continue
        # A late write is no matter of time. And a quick run is none of placement.
        placements = args.placements[:1] if args.quick or name == "late" else args.placements
        for placement in placements:
            print(f"== {name} {placement}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            rows += run(placement, script, quick if args.quick else full)
    order = [row["cell"] for row in rows]
    rows.sort(key=lambda row: order.index(row["cell"]))
    show(rows)


if __name__ == "__main__":
    main()
