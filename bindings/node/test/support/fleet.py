# SPDX-License-Identifier: MIT
"""The Python process of a mixed fleet; see fleet.c, which takes and prints the same."""

import sys
import time

import stanchion

url, what, ms = sys.argv[1], sys.argv[2], int(sys.argv[3])
runs = 0


def load():
    global runs
    runs += 1
    print("loading", flush=True)
    time.sleep(ms / 1000)
    return "from Python"


with stanchion.connect(url) as client:
    if what == "load":
        mixed = client.cache("mixed", ttl="5m", codec="json")
        value = mixed.get_or_load("mixed", load)
        print(runs, f'"{value}"')
    else:
        with client.lock("mixed", ttl=10) as lock:
            print(lock.fence, flush=True)
            time.sleep(ms / 1000)
