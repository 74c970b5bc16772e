# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the tests of `live` and `top`: runs the commands in the background, and reads what they
show."""
import collections
import glob
import os
import re
import signal
import subprocess
import time

import pbtest
from pbtest import Failure
from rounds import Program, expect

BEGIN = re.compile(r"\|\s+(\w+)\(\)( \{|;)", re.M)


class Traced(Program):
    """A program that `live` starts. The calls go to a file, the program's answers to a pipe."""

    def __init__(self, p, *options, command="live", threads=2):
        self.p, self.threads = p, threads
        self.exe, self.output = p.path("O2"), p.path("output")
        if os.path.exists(self.output):
            os.unlink(self.output)
        self.process = subprocess.Popen([pbtest.PATCHBAY, command, "-o", self.output, *options, self.exe, str(threads)],
                                        cwd=p.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=p.env, start_new_session=True)
        self.pid = int(self.line().split()[1])

    def end(self):
        """Ends the program. Returns all that `live` has shown."""
        self.process.stdin.close()
        expect("status", self.process.wait(pbtest.patience(60)), 0)
        err = self.process.stderr.read()
        pbtest.note_late(err)
        expect("messages", err, b"")
        no_data_left(self.p)
        return text_of(self.output)

    def kill(self):
        pbtest.end_gently(self.process)


class Watcher:
    """`live -p` or `top -p` in the background."""

    def __init__(self, p, program, *options, command="live", stdout=None):
        self.p, self.output = p, p.path("watched")
        self.file = open(self.output, "wb") if stdout is None else None
        self.process = subprocess.Popen([pbtest.PATCHBAY, command, "-p", str(program.pid), *options], cwd=p.dir, env=p.env,
                                        stdin=subprocess.DEVNULL, stdout=stdout or self.file, stderr=subprocess.PIPE,
                                        start_new_session=True)

    def wait_for(self, condition, what):
        """Waits until condition(output) is true, and returns the output."""
        return wait_for(lambda: text_of(self.output), condition, what, self.process)

    def ready(self, program):
        """Makes single rounds until the first of them is shown. Returns the number of rounds."""
        made, end = 0, time.monotonic() + pbtest.patience(60)
        while "outer" not in text_of(self.output):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure("nothing is shown: %s" % text_of(self.output))
            made += program.rounds(1)
            time.sleep(0.2)
        return made

    def end(self, sig=signal.SIGINT, status=0):
        if sig:
            self.process.send_signal(sig)
        try:
            _, err = self.process.communicate(timeout=pbtest.patience(60))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("doesn't end")
        pbtest.note_late(err)
        expect("messages", err, b"")
        expect("status", self.process.returncode, status)
        no_data_left(self.p)
        return text_of(self.output)

    def kill(self):
        if self.process.poll() is None:
            pbtest.kill_group(self.process)
        self.process.wait()


def text_of(path):
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as f:
        return f.read()


def wait_for(read, condition, what, process):
    end = time.monotonic() + pbtest.patience(60)
    while True:
        ended = process.poll() is not None
        text = read()
        if condition(text):
            return text
        if ended or time.monotonic() > end:
            raise Failure("%s: not shown in\n%s" % (what, pbtest.tail(text)))
        time.sleep(0.05)


def no_data_left(p):
    left = glob.glob(p.path("patchbay-*"))
    if left:
        raise Failure("data is left: %s" % left)


def shown(text):
    """Returns {function: number of its calls that have a line}."""
    return collections.Counter([m.group(1) for m in BEGIN.finditer(text)])


def all_rounds(text, n):
    got = shown(text)
    got = {f: got[f] for f in ("outer", "inner", "leaf")}
    expect("calls", got, {"outer": n, "inner": n, "leaf": 3 * n})
