# SPDX-License-Identifier: MIT
"""Tests as promises: functions marked with @promise("..."), which fail by an exception."""

import io
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

ALL = []  # (sentence, function)
EVERYWHERE = set()  # functions: on every kind of server


def promise(sentence):
    def mark(function):
        ALL.append((sentence, function))
        return function
    return mark


def everywhere(function):
    EVERYWHERE.add(function)
    return function


def equal(got, wanted, of=""):
    assert got == wanted, f"{got!r} and not {wanted!r}: {of}"


def holds(part, whole):
    assert part in whole, f"{part!r} is not in {whole!r}"


def keep(threads, *arguments):
    """Runs them, so many at one time, and prints what became of each. How many were kept, and how many were not."""
    lock = threading.Lock()
    kept = []

    def one(row):
        sentence, function = row
        why = io.StringIO()
        try:
            function(*arguments)
        except Exception:
            traceback.print_exc(file=why)
        with lock:
            kept.append(not why.getvalue())
            print("FAILED " if why.getvalue() else "ok     ", sentence, flush=True)
            for line in why.getvalue().splitlines()[-12:]:
                print("    |", line, flush=True)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, ALL))
    return sum(kept), len(kept) - sum(kept)
