# SPDX-License-Identifier: MIT
"""Help, completion and the manual page know what the program knows."""

import os
import re
import shutil
import subprocess

from command import PROGRAM, ROOT, folder, run
from promises import equal, holds, promise

COMMANDS = "lock tick once inspect invalidate ping completion".split()


def help_of(command):
    ended = run(*command.split(), "--help", store=None)
    equal((ended.code, ended.err), (0, ""))
    return ended.out


def options_in(text):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M))


@promise("every command has help with its options and an example that names it")
def _():
    listed = help_of("")
    for command in COMMANDS:
        holds(f"\n  {command} ", listed)
        text = help_of(command)
        holds("Example", text)
        assert len(re.findall(rf"stanchion {command} ", text)) >= 2, text
        holds("--help", options_in(text))
        assert max(map(len, text.splitlines())) <= 120, "a line of help is too long"


@promise("the example of each command is a command line that it takes")
def _():
    for command in "lock tick once invalidate inspect".split():
        example = re.search(rf"^.*(stanchion {command} [^>\n]*)$", help_of(command).split("Example")[1], re.M).group(1)
        words = example.split()[1:]
        if "--" in words:
            words = words[:words.index("--")] + ["--", "true"]
        ended = run(*words)
        assert ended.code == (1 if command == "inspect" else 0), (example, ended)


@promise("every option of the help is in the manual page, and none else")
def _():
    page = (ROOT / "bindings/cli/stanchion.1").read_text().replace("\\-", "-")
    known = set().union(*(options_in(help_of(command)) for command in ["", *COMMANDS]))
    documented = set(re.findall(r"^\.B[IR]? (?:-\w \", \" )?(--[a-z-]+)", page, re.M))
    equal(documented - known, set(), "told by the page only")
    equal(known - documented, set(), "told by the help only")
    for command in COMMANDS:
        holds(f".SS {command}\n", page)


@promise("every exit code of the help is in the manual page and in the README")
def _():
    codes = re.findall(r"\b(\d+)  [a-z]", help_of("lock").split("Exit code:")[1])
    assert len(codes) == 10, codes
    page = (ROOT / "bindings/cli/stanchion.1").read_text()
    readme = (ROOT / "bindings/cli/README.md").read_text()
    for code in codes:
        holds(f".B {code}\n", page)
        assert re.search(rf"\b{code}\b", readme), code


@promise("the manual page has no fault that man would report")
def _():
    if not shutil.which("man"):
        print("        man is not installed: left out")
        return
    done = subprocess.run(["man", "--warnings", "-l", str(ROOT / "bindings/cli/stanchion.1")], text=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
    equal((done.returncode, done.stderr), (0, ""))
    holds("STANCHION_FENCE", done.stdout)


def bash_completes(*words):
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stanchion; printf "%s\\n" "${COMPREPLY[@]}"'
    with folder() as here:
        (here / "stanchion").write_text(run("completion", "bash").out)
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", str(here / "stanchion"), "stanchion", *words],
                              text=True, capture_output=True)
    equal((done.returncode, done.stderr), (0, ""))
    return set(done.stdout.split())


@promise("bash completes every command, every option of each, and the command after --")
def _():
    equal(set(COMMANDS) - bash_completes(""), set())
    for command in COMMANDS:
        equal(options_in(help_of(command)) - bash_completes(command, "--"), set(), command)
    equal(bash_completes("lock", "x", "--tt"), {"--ttl"})
    equal(bash_completes("completion", "f"), {"fish"})
    holds("printf", bash_completes("lock", "x", "--ttl", "3s", "--", "print"))


@promise("zsh and fish are told every option, in a script that they can read")
def _():
    for shell, mark in (("zsh", "'{}["), ("fish", "-l {} ")):
        script = run("completion", shell).out
        for command in COMMANDS:
            holds(command, script)
            for option in options_in(help_of(command)):
                holds(mark.format(option if shell == "zsh" else option[2:]), script)
        if shutil.which(shell):
            done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
            equal((done.returncode, done.stderr), (0, ""))


@promise("it tells the version of the library")
def _():
    header = (ROOT / "capi/include/stanchion/stanchion.h").read_text()
    version = re.search(r'STN_VERSION_STRING "(.*)"', header).group(1)
    equal(run("--version", store=None).out, f"stanchion {version}\n")
    holds(f'"stanchion {version}"', (ROOT / "bindings/cli/stanchion.1").read_text())


@promise("an answer that nobody reads is no crash")
def _():
    done = subprocess.run(f"{PROGRAM} lock --help | head -n 1", shell=True, text=True, capture_output=True)
    equal(done.stderr, "")
