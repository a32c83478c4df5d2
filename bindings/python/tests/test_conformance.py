# SPDX-License-Identifier: MIT
"""The shared scripts of tests/conformance, run by Python: one test for each."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted(p for p in (HERE.parents[2] / "tests/conformance").glob("*.txt") if p.name != "CMakeLists.txt")


@pytest.fixture(scope="session")
def outcomes():
    ended = subprocess.run(
        [sys.executable, str(HERE / "conformance"), *map(str, SCRIPTS)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_holds(outcomes, script):
    assert f"ok {script}" in outcomes, [line for line in outcomes if line.startswith(f"FAILED {script}:")]


def test_there_are_scripts():
    assert len(SCRIPTS) > 100
