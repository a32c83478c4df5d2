#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py BUILD [--live]: the promises of the command `stanchion`.

Without --live those that need no server, with it the others. The last line is `N passed, M failed`.
"""

import signal
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import promises  # noqa: E402
from command import PROGRAM, sweep  # noqa: E402


def main():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a shell that runs us in the background has two of them ignored
    if not Path(PROGRAM).exists():
        print("FAILED  stanchion was built: is CLI11 (libcli11-dev) installed?\n0 passed, 1 failed")
        return 1
    if "--live" in sys.argv[2:]:
        import live
        passed, failed = live.keep()
    else:
        import test_alone, test_paper, test_words  # noqa: E401, F401
        passed, failed = promises.keep(3)
    sweep()
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
