# SPDX-License-Identifier: MIT
"""The promises that need a server: all of them on a Redis, those of `everywhere` on a Valkey too."""

import promises
from server import Server


def keep():
    import test_live_fleet, test_live_lock, test_live_store  # noqa: E401, F401
    passed = failed = 0
    for kind in ("redis", "valkey"):
        print(f"        on {kind}:", flush=True)
        if kind == "valkey":
            promises.ALL[:] = [row for row in promises.ALL if row[1] in promises.EVERYWHERE]
        server = Server(kind)
        try:
            p, f = promises.keep(4, server)
        finally:
            server.stop()
        passed, failed = passed + p, failed + f
    return passed, failed
