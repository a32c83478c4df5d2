# SPDX-License-Identifier: MIT
"""What needs no other process, and so no server: the command, its environment, its terminal and its signals."""

import os
import pty
import re
import select
import signal
import sys
import time

from command import PROGRAM, SESSIONS, end_of, environment, eventually, folder, lives, run, sh, start, text_of
from promises import equal, holds, promise

TTL = ["--ttl", "5s"]


@promise("the command's exit code is ours; 128 and its signal if it was killed by one")
def _():
    for words in (["lock", "x", *TTL], ["tick", "x", "--every", "1m"], ["once", "x", *TTL]):
        equal(run(*words, *sh("exit 3")).code, 3)
        equal(run(*words, *sh("kill -9 $$")).code, 137)
        equal(run(*words, *sh("exit 0")).code, 0)


@promise("a command that is not there ends with 127, one that cannot be executed with 126, as in a shell")
def _():
    with folder() as here:
        (here / "plain").write_text("echo never")
        for words in (["lock", "x", *TTL], ["tick", "x", "--every", "1m"], ["once", "x", *TTL]):
            for program, code in (("no-such-command", 127), (here / "none", 127), (here / "plain", 126), (here, 126)):
                ended = run(*words, "--", program)
                equal(ended.code, code, ended)
                holds("cannot be run", ended.err)


@promise("the command gets its words, its input and its output as they are")
def _():
    with folder() as here:
        (here / "in").write_text("read me")
        with open(here / "in") as given:
            ended = run("lock", "x", *TTL, "--", "sh", "-c", 'cat; printf "<%s>" "$@"; echo no >&2', "sh", "--help", "a b",
                        "", "--", stdin=given)
        equal((ended.out, ended.err, ended.code), ("read me<--help><a b><><-->", "no\n", 0))


@promise("a script without #! runs by sh, as in a shell")
def _():
    with folder() as here:
        (here / "script").write_text("exit 7\n")
        (here / "script").chmod(0o755)
        equal(run("lock", "x", *TTL, "--", here / "script").code, 7)


@promise("the environment tells the name, the fence and the token, and not those of another lock")
def _():
    show = sh('echo "$STANCHION_LOCK $STANCHION_TICK $STANCHION_ONCE $STANCHION_FENCE $STANCHION_TOKEN $STANCHION_SLOT"')
    name, fence, token = run("lock", "a b", *TTL, *show).out.replace("a b", "a_b").split()
    equal((name, len(token)), ("a_b", 32))
    assert int(fence) > 0
    name, fence, token, slot = run("tick", "job", "--every", "1m", *show).out.split()
    equal((name, len(token), int(slot) % 60_000), ("job", 32, 0))
    equal(run("once", "id", *TTL, *show).out.split(), ["id"])
    outer = run("lock", "outer", *TTL, "--", PROGRAM, "lock", "inner", *TTL, "--", "env").out
    equal([line for line in outer.splitlines() if line.startswith("STANCHION_LOCK=")], ["STANCHION_LOCK=inner"])


@promise("signals are passed on to the command and to what it has started")
def _():
    with folder() as here:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            log = here / str(number)
            inner = f"trap 'echo inner >> {log}; exit' {number.value}; echo up >> {log}; while :; do sleep 0.02; done"
            script = f"trap 'echo outer >> {log}' {number.value}; sh -c \"{inner}\" | cat; exit 9"
            process = start("lock", "x", *TTL, *sh(script))
            eventually(lambda: "up" in text_of(log))
            process.send_signal(number)
            equal(end_of(process).code, 9, number)
            equal(sorted(text_of(log).split()), ["inner", "outer", "up"], number)


@promise("a signal that was ignored when it began stays ignored, by the command too")
def _():
    with folder() as here:
        process = start("lock", "x", *TTL, *sh(f"kill -HUP $$; echo up > {here}/up; sleep 0.3; echo alive"),
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        eventually(lambda: text_of(here / "up"))
        process.send_signal(signal.SIGHUP)
        ended = end_of(process)
        equal((ended.out, ended.code), ("alive\n", 0))


@promise("the command begins with no signal blocked and none ignored")
def _():
    status = run("lock", "x", *TTL, "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status").out
    equal(status.split(), ["SigBlk:", "0000000000000000", "SigIgn:", "0000000000000000"])


@promise("the command inherits no descriptor of ours")
def _():
    equal(run("lock", "x", *TTL, *sh("ls /proc/self/fd | wc -l")).out.strip(), "4")  # ls reads the folder itself


@promise("kill -9 of stanchion ends the command by SIGTERM")
def _():
    with folder() as here:
        process = start("lock", "x", *TTL, *sh(f'trap "echo term > {here}/end; exit" TERM; echo $$ > {here}/pid; '
                                               'while :; do sleep 0.02; done'))
        pid = int(eventually(lambda: text_of(here / "pid").strip()))
        process.kill()
        eventually(lambda: text_of(here / "end") == "term\n")
        eventually(lambda: not lives(pid))
        end_of(process)


@promise("a command that ignores SIGTERM is killed after --grace, with all that it has started")
def _():
    with folder() as here:
        script = f'trap "" TERM; sh -c "echo \\$\\$ > {here}/inner; while :; do sleep 0.02; done" & ' \
                 f"echo $$ > {here}/outer; while :; do sleep 0.02; done"
        began = time.monotonic()
        ended = run("lock", "x", "--ttl", "300ms", "--no-renew", "--grace", "200ms", *sh(script))
        equal(ended.code, 79)
        assert time.monotonic() - began >= 0.45
        holds("ttl was over", ended.err)
        for who in ("inner", "outer"):
            pid = int(text_of(here / who))
            eventually(lambda: not lives(pid))


@promise("what outlives the command in its group is killed after --grace, too, when the lock is lost")
def _():
    with folder() as here:
        script = f'sh -c "trap \'\' TERM; echo \\$\\$ > {here}/pid; while :; do sleep 0.02; done" & wait'
        ended = run("lock", "x", *TTL, "--max-hold", "300ms", "--grace", "200ms", *sh(script))
        equal(ended.code, 79)
        pid = int(text_of(here / "pid"))
        eventually(lambda: not lives(pid))


@promise("what the command leaves in the background goes on when it has ended well")
def _():
    with folder() as here:
        equal(run("lock", "x", *TTL, *sh(f"(sleep 0.2; echo done > {here}/late) >/dev/null 2>&1 &")).code, 0)
        eventually(lambda: text_of(here / "late"))


class Terminal:
    """stanchion in the foreground of a terminal of its own."""

    def __init__(self, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [PROGRAM, *words], environment("memory://"))
        self.said = b""
        SESSIONS.append(self.pid)

    def until(self, text, times=1):  # a pattern
        while len(re.findall(text.encode(), self.said)) < times:
            self.said += self.read()

    def read(self):
        ready, _, _ = select.select([self.fd], [], [], 20)
        assert ready, f"nothing more than {self.said!r}"
        return os.read(self.fd, 4096)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        try:
            while got := self.read():
                self.said += got
        except OSError:
            pass
        _, how = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return how


@promise("at a terminal Ctrl-C reaches the command once, and a command that dies of it takes us with it")
def _():
    sent_by = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nprint('up', flush=True)\n" \
              "while True: print('by', signal.sigwaitinfo([signal.SIGINT]).si_pid, flush=True)"
    terminal = Terminal("lock", "x", *TTL, "--", sys.executable, "-c", sent_by)
    terminal.until("up")
    for times in range(1, 6):
        terminal.type("\x03")
        terminal.until(r"by \d+\r\n", times)  # all of it: Ctrl-C throws away what was not read
    time.sleep(0.2)
    os.kill(terminal.pid, signal.SIGTERM)
    equal(os.waitstatus_to_exitcode(terminal.end()), 128 + signal.SIGTERM)
    equal(re.findall(rb"by (\d+)", terminal.said), [b"0"] * 5, "0 is the kernel")
    terminal = Terminal("lock", "x", *TTL, *sh("echo up; exec sleep 60"))
    terminal.until("up")
    terminal.type("\x03")
    equal(os.waitstatus_to_exitcode(terminal.end()), -signal.SIGINT)


@promise("a terminal that is gone ends the command by SIGHUP")
def _():
    with folder() as here:
        terminal = Terminal("lock", "x", *TTL, *sh(f"trap 'echo hup > {here}/end; exit' HUP; echo up; "
                                                   "while :; do sleep 0.05; done"))
        terminal.until("up")
        os.close(terminal.fd)
        eventually(lambda: text_of(here / "end") == "hup\n")
        os.waitpid(terminal.pid, 0)


@promise("at a terminal the command may read it")
def _():
    terminal = Terminal("lock", "x", *TTL, *sh('echo up; read word; echo "<$word>"'))
    terminal.until("up")
    terminal.type("hello\n")
    equal(os.waitstatus_to_exitcode(terminal.end()), 0)
    holds(b"<hello>", terminal.said)


@promise("SIGTSTP stops the command and us, SIGCONT lets both go on")
def _():
    def state(pid):
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    with folder() as here:
        os.mkfifo(here / "go")  # nothing that the shell has to fork for: half a vfork cannot be stopped
        process = start("lock", "x", *TTL, *sh(f"echo $$ > {here}/pid; read word < {here}/go; exit $word"))
        pid = int(eventually(lambda: text_of(here / "pid").strip()))
        process.send_signal(signal.SIGTSTP)
        eventually(lambda: state(pid) == "T" and state(process.pid) == "T")
        process.send_signal(signal.SIGCONT)
        (here / "go").write_text("5\n")
        equal(end_of(process).code, 5)


@promise("nobody who reads its messages is no reason to end a command")
def _():
    read, write = os.pipe()
    process = start("lock", "x", "--ttl", "300ms", "--no-renew", "--grace", "100ms", *sh("exec 2>&-; sleep 9"), stderr=write)
    os.close(read)
    os.close(write)
    equal(end_of(process).code, 79)
