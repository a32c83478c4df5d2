# SPDX-License-Identifier: MIT
"""A Redis or Valkey of the tests' own, and what a cache has in it."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

from command import BUILD, ROOT, eventually


def program_of(kind):
    said = os.environ.get(f"STN_{kind.upper()}_SERVER") or shutil.which(f"{kind}-server")
    places = [said, ROOT / "build/deps/redis/redis-server", ROOT / "build/deps/valkey/usr/bin/valkey-server"]
    for place in places if kind == "valkey" else places[:2]:
        if place and os.access(place, os.X_OK):
            return str(place)
    raise RuntimeError(f"there is no {kind}-server: packaging/bootstrap_{kind}.sh brings one")


class Server:
    """On a free port of 127.0.0.1, in a temporary folder; it dies with this process."""

    def __init__(self, kind="redis"):
        self.program = program_of(kind)
        self.folder = tempfile.TemporaryDirectory(prefix="stn-cli-")
        self.lock = threading.Lock()
        for _ in range(20):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            if self.start():
                return
        raise RuntimeError(f"{self.program} does not start")

    def start(self):
        die_with_us = ctypes.CDLL(None).prctl
        self.process = subprocess.Popen(
            [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: die_with_us(1, signal.SIGKILL))
        def up():
            if self.process.poll() is not None:
                return "ended"
            with contextlib.suppress(OSError):
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                self.reader = self.connection.makefile("rb")
                return self.ask("PING") == "PONG"
        return eventually(up) is True

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def ask(self, *words):
        with self.lock:
            raw = [word if isinstance(word, bytes) else str(word).encode() for word in words]
            self.connection.sendall(b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in raw))
            return self.reply()

    def reply(self):
        line = self.reader.readline()[:-2]
        kind, text = line[:1], line[1:].decode()
        if kind == b"-":
            raise RuntimeError(text)
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if text == "-1" else self.reader.read(int(text) + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return text

    def keys(self, pattern="*"):
        return self.ask("KEYS", pattern)


class Cache:
    """A cache as another program has it: over the shared library."""

    def __init__(self, server, name):
        self.c = ctypes.CDLL(str(BUILD / "capi/libstanchion.so"))
        for function in ("stn_event_kind", "stn_event_flags"):
            getattr(self.c, function).argtypes = [ctypes.c_void_p]
        self.c.stn_event_free.argtypes = [ctypes.c_void_p]
        self.client, self.cache, self.queue = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        setting = json.dumps({"ttl": "1m"}).encode()
        must(self.c.stn_client_open(server.url.encode(), None, ctypes.byref(self.client), None))
        must(self.c.stn_cache_open(self.client, name.encode(), ctypes.c_size_t(len(name)), setting,
                                   ctypes.byref(self.cache), None))
        must(self.c.stn_queue_new(ctypes.c_uint64(0), ctypes.byref(self.queue), None))

    def event(self):
        event = ctypes.c_void_p()
        must(self.c.stn_queue_next(self.queue, ctypes.c_int64(10_000), ctypes.byref(event), None))
        kind, flags = self.c.stn_event_kind(event), self.c.stn_event_flags(event)
        self.c.stn_event_free(event)
        return kind, flags

    def put(self, key, value):
        key, value, default = key.encode(), value.encode(), ctypes.c_int64(-1)
        must(self.c.stn_cache_put(self.cache, None, key, ctypes.c_size_t(len(key)), value, ctypes.c_size_t(len(value)),
                                  ctypes.c_int32(-1), default, default, default, self.queue, ctypes.c_uint64(0), None,
                                  None))
        assert self.event()[0] == 8, "not DONE"

    def look(self, key):
        """"absent", "fresh" or "stale"."""
        key = key.encode()
        must(self.c.stn_cache_get(self.cache, key, ctypes.c_size_t(len(key)), ctypes.c_int64(-1), self.queue,
                                  ctypes.c_uint64(0), None, None, None))
        kind, flags = self.event()
        return {1: "stale" if flags & 1 else "fresh", 2: "absent"}[kind]


def must(status):
    assert status == 0, status
