# SPDX-License-Identifier: MIT
"""The command line: what is wrong with it is said, with the nearest right word."""

from command import SECRET, run, sh
from promises import equal, holds, promise


def wrong(*words, says, store="memory://"):
    ended = run(*words, store=store)
    equal(ended.code, 64, ended)
    equal(ended.out, "")
    for part in [says] if isinstance(says, str) else says:
        holds(part, ended.err)
    assert ended.err.startswith("stanchion: "), ended.err
    equal(ended.err.count("\n"), 1, ended.err)


@promise("an unknown option is named, with the nearest one and where to look")
def _():
    wrong("lock", "x", "--tll", "3s", *sh("true"), says=["--tll", "Did you mean --ttl?", "stanchion lock --help"])
    wrong("tick", "x", "--at-mots=3s", *sh("true"), says=["no option --at-mots.", "Did you mean --at-most?"])
    wrong("ping", "--stor", "x", says="Did you mean --store?")


@promise("an unknown command is named, with the nearest one")
def _():
    wrong("lok", says=['no command "lok"', "Did you mean lock?"])
    wrong(says="stanchion --help")


@promise("a command that does not stand after -- is told to")
def _():
    wrong("lock", "x", "--ttl", "3s", "true", says=['"true" is a word too many', "after --"])
    wrong("lock", "x", "--ttl", "3s", says="there is no command to run")
    wrong("once", "x", "--ttl", "3s", "--", says="there is no command to run")
    wrong("ping", "--", "true", says="ping runs no command")


@promise("what is missing is named")
def _():
    wrong("lock", "x", *sh("true"), says="--ttl is required")
    wrong("lock", "--ttl", "3s", *sh("true"), says="NAME is required")
    wrong("tick", "x", *sh("true"), says="--every is required")
    wrong("inspect", says="takes the name of a lock")
    wrong("invalidate", "prices", says="KEY is required")
    wrong("ping", store=None, says=["--store", "STANCHION_URL"])


@promise("what the library refuses is told in its words, with the option and its range")
def _():
    wrong("lock", "x", "--ttl", "3", *sh("true"), says=['"ttl"', "lacks a unit"])
    wrong("lock", "x", "--ttl", "1ms", *sh("true"), says=['"ttl"', "10 ms"])
    wrong("lock", "x", "--ttl", "3s", "--grace", "soon", *sh("true"), says=["--grace", "number"])
    wrong("lock", "x", "--ttl", "3s", "--wait", "never", *sh("true"), says='"wait"')
    wrong("lock", "x", "--ttl", "3s", "--label", "x" * 65, *sh("true"), says=['"label"', "64"])
    wrong("lock", "", "--ttl", "3s", *sh("true"), says="empty")
    wrong("tick", "x", "--every", "1m", "--offset", "2m", *sh("true"), says='"offset"')
    wrong("once", "x", "--ttl", "0s", *sh("true"), says="ttl")
    wrong("invalidate", "pri ces", "42", says='"pri ces"')
    wrong("invalidate", "prices@two", "42", says="version")
    wrong("ping", "--prefix", "a b", says='"prefix"')
    wrong("ping", "--store", "redsi://localhost", says='did you mean "redis://"?')
    wrong("lock", "x", "--ttl", "3s", "--busy-code", "256", *sh("true"), says="--busy-code")


@promise("with --json what is wrong is an object, too")
def _():
    import json
    ended = run("lock", "x", "--json", "--tll", "3s", *sh("true"))
    said = json.loads(ended.err)
    equal((said["event"], said["exit"], ended.code), ("usage", 64, 64))
    holds("--ttl", said["message"])


@promise("a password in a URL is not printed, wherever it stands")
def _():
    url = f"redis://user:{SECRET}@127.0.0.1:1"
    for words in (["ping", url], [url], ["ping", "--stroe=" + url], ["ping", "--store", url, "--prefix", "a b"],
                  ["ping", "--store", "x" + url], ["ping", "--store", url + "/x"], ["inspect", "x", "--store", url],
                  ["ping", "--store", url], ["ping", "--json", "--store", url],
                  ["lock", "x", "--ttl", "3s", "--wait", "0s", "--store", url, "--", "true"]):
        assert run(*words).code in (64, 69)  # `run` looks for it
