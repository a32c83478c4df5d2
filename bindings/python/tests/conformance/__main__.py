# SPDX-License-Identifier: MIT
"""python conformance FOLDER | SCRIPT...: runs the scripts of tests/conformance; their README.md describes the language.

Each script runs in a child process of its own, under a watchdog, so that a crash or a hang fails one script only.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from script import BadScript, Step
from steps import Steps
from world import Failed

WATCHDOG_S = 10


def run(path: Path, progress: int) -> None:
    """Runs one script; raises what is wrong."""
    lines = path.read_bytes().split(b"\n")
    if not lines[0].startswith(b"#"):
        raise BadScript("a script begins with a comment that names its promise")
    steps = Steps()
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            os.write(progress, number.to_bytes(4, "little"))
            steps.run(Step(number, line))
    steps.end()


def child(path: Path, progress: int) -> None:
    """One FAILED line if it fails; the child ends like any program, so what happens at exit is tested, too."""
    at = 0

    try:
        run(path, progress)
    except (Failed, BadScript) as error:
        at = 1
        what = f"not a step: {error}" if isinstance(error, BadScript) else error
        print(what)
    sys.exit(at)


def passes(path: Path) -> bool:
    """Runs a script in a child."""
    sys.stdout.flush()
    said_out, said_in = os.pipe()
    progress_out, progress_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(said_out)
        os.close(progress_out)
        os.dup2(said_in, 1)
        signal.alarm(WATCHDOG_S)
        child(path, progress_in)
    os.close(said_in)
    os.close(progress_in)
    with open(progress_out, "rb") as progress, open(said_out) as saying:
        said, lines = saying.read().strip(), progress.read()
    _, how = os.waitpid(pid, 0)
    if how == 0:
        return True
    line = int.from_bytes(lines[-4:], "little")
    if os.WIFSIGNALED(how):
        number = os.WTERMSIG(how)
        came = f"none in {WATCHDOG_S} s" if number == signal.SIGALRM else f"signal {number}"
        said = f"expected an end, came {came}"
    print(f"FAILED {path}:{line}: {said or f'expected exit code 0, came {os.WEXITSTATUS(how)}'}")
    return False


def main() -> int:
    paths: list[Path] = []
    for argument in map(Path, sys.argv[1:]):
        if argument.is_dir():
            paths += sorted(path for path in argument.glob("*.txt") if path.name != "CMakeLists.txt")
        else:
            paths.append(argument)
    passed = 0
    for path in paths:
        if passes(path):
            passed += 1
            print(f"ok {path}")
    print(f"{passed} passed, {len(paths) - passed} failed")
    return 0 if passed and passed == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
