# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the tests that attach Patchbay to a program: the program (attached/rounds.c), and its
recorder. The program makes calls only when the test asks for them. So the test knows exactly how
many calls each recording must have."""
import argparse
import os
import re
import select
import shutil
import signal
import subprocess
import time

import pbtest
from pbtest import Failure, Skip

HERE = os.path.dirname(os.path.abspath(__file__))
BUILDS = {"O2": ["-O2"], "O0": ["-O0"], "nopie": ["-O2", "-no-pie"], "fentry": ["-O2", "-pg", "-mfentry"]}


class Place:
    """A directory with the programs and a private session directory."""

    def __init__(self, quick):
        self.quick = quick
        self.dir = pbtest.scratch("rounds")
        self.sessions = os.path.join(self.dir, "run")
        os.mkdir(self.sessions, 0o700)
        self.env = pbtest.clean_env(XDG_RUNTIME_DIR=self.sessions, TMPDIR=self.dir)
        for name, flags in BUILDS.items():
            subprocess.run(["gcc", "-g", "-pthread", *flags, "-o", self.path(name),
                            os.path.join(HERE, "attached", "rounds.c")], check=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, *argv, timeout=120, cwd=None):
        return pbtest.run([pbtest.PATCHBAY, *argv], timeout, cwd=cwd or self.dir, env=self.env)


def expect(what, got, want):
    if got != want:
        raise Failure("%s: %r instead of %r" % (what, got, want))


def listed(p, pid):
    """Returns the lines of `ps` about the process. Other tests may run at the same time, so `ps` may
    have more lines, but never none at all, unless a recorder doesn't answer."""
    r = p.run("ps")
    lines = r.out.decode().splitlines()
    if not r.status and lines != ["no process is attached"] and len(lines) < 2:
        raise Failure("ps: %r" % lines)
    return [line for line in lines if re.match(r" *%d " % pid, line)]


def has(what, text, pattern):
    m = re.search(pattern, text, re.M)
    if not m:
        raise Failure("%s: no %r in\n%s" % (what, pattern, pbtest.tail(text)))
    return m


class Program:
    """The program that is attached to."""

    def __init__(self, p, build="O2", threads=2, exe=None, argv0=None, before=()):
        self.p, self.threads = p, threads
        self.exe = exe or p.path(build)
        # without a buffer (bufsize=0), because select() doesn't see lines that are in it
        self.process = subprocess.Popen([*before, argv0 or self.exe, str(threads)], bufsize=0,
                                        executable=None if before else self.exe, cwd=p.dir,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=p.env, start_new_session=True)
        self.pid = int(self.line().split()[1])

    def line(self):
        if not select.select([self.process.stdout], [], [], pbtest.patience(60))[0]:
            raise Failure("the program doesn't answer")
        return self.process.stdout.readline().decode(errors="replace").strip()

    def ask(self, text):
        """Sends a command, and returns the answer."""
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return self.line()

    def rounds(self, n):
        """Lets each thread make n rounds. Returns the number of rounds that all threads have made."""
        self.ask("run %d" % n)
        return n * self.threads

    def twin(self, how=0):
        """Makes the program fork, and returns the child. The child makes rounds when the program
        gets the command `order`."""
        pid = int(self.ask("twin %d" % how).split()[1])
        if pid < 0:
            raise Skip("the process can't make this child")
        return Twin(self, pid)

    def maps(self):
        with open("/proc/%d/maps" % self.pid) as f:
            return f.read().splitlines()

    def text_is_whole(self, patient=False):
        """Checks that the program's text in memory is again the text of its files. If `patient` is
        set, waits for a detach that is still going on."""
        end = time.monotonic() + pbtest.patience(60)
        while True:
            compared, bad = pbtest.text_differences(self.pid)
            if compared and not bad:
                return
            if not patient or time.monotonic() > end:
                raise Failure("%d of %d bytes of text differ" % (len(bad), compared))
            time.sleep(0.1)

    def end(self, status=0):
        self.text_is_whole(patient=True)
        self.process.stdin.close()
        expect("the program's status", self.process.wait(pbtest.patience(60)), status)

    def kill(self):
        if self.process.poll() is None:
            pbtest.kill_group(self.process)
        self.process.wait()


class Twin(Program):
    """The child that the command `twin` has made."""

    def __init__(self, parent, pid):
        self.p, self.exe, self.parent, self.pid = parent.p, parent.exe, parent, pid

    def rounds(self, n):
        self.parent.ask("order %d" % n)
        return n

    def end(self):
        self.text_is_whole(patient=True)
        self.parent.ask("order 0")


class Recorder:
    """`record -p`, or another command, in the background, with all output on a pipe."""

    def __init__(self, p, program, *options, data="data", ready=True, command="record", before=()):
        self.p, self.data = p, p.path(data)
        shutil.rmtree(self.data, ignore_errors=True)
        self.process = subprocess.Popen([*before, pbtest.PATCHBAY, command, "-d", self.data, "-p", str(program.pid),
                                         *options], cwd=p.dir, env=p.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.said = b""
        if ready:
            self.wait_for(b"is attached")

    def wait_for(self, text):
        """Waits until the recorder has printed the text."""
        end = time.monotonic() + pbtest.patience(60)
        while text not in self.said:
            if not select.select([self.process.stderr], [], [], 1)[0]:
                if time.monotonic() > end:
                    raise Failure("the recorder doesn't say %r\n%s" % (text, pbtest.tail(self.said)))
                continue
            more = os.read(self.process.stderr.fileno(), 65536)
            self.said += more
            if not more:
                self.process.wait()
                pbtest.note_late(self.said)
                if b"can't be traced (a container" in self.said or b"ptrace_scope" in self.said:
                    raise Skip(self.said.decode(errors="replace").strip())
                raise Failure("the recorder ended with %d\n%s" % (self.process.returncode, pbtest.tail(self.said)))

    def end(self, sig=signal.SIGINT):
        """Returns the exit status and all that the recorder printed."""
        if sig:
            self.process.send_signal(sig)
        try:
            _, err = self.process.communicate(timeout=pbtest.patience(60))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("the recorder doesn't end\n%s" % pbtest.tail(self.said))
        self.said += err
        pbtest.note_late(self.said)
        return self.process.returncode, self.said.decode(errors="replace")

    def kill(self):
        if self.process.poll() is None:
            pbtest.kill_group(self.process)
        self.process.wait()


def attach(p, a, *options):
    """Attaches to the program by the command `attach`."""
    r = p.run("attach", "-p", str(a.pid), *options)
    if r.status and (b"can't be traced (a container" in r.err or b"ptrace_scope" in r.err):
        raise Skip(r.err.decode().strip())
    expect("attach's status", (r.status, r.err), (0, b""))
    return has("attach", r.out.decode(), r"^O2 \(%d\) is attached: (\d+) functions can be traced, after \d+ ms; " % a.pid)


def control(p, a, *argv):
    """Returns the output of `control` for the program."""
    r = p.run("control", "-p", str(a.pid), *argv)
    expect("control's status", (r.status, r.err), (0, b""))
    return r.out.decode()


def counts(data, rounds, what="calls"):
    """Checks that the recording has exactly the calls of this number of rounds."""
    got = pbtest.calls_by_function(data)
    got = {f: got[f] for f in ("outer", "inner", "leaf")}
    expect(what, got, {"outer": rounds, "inner": rounds, "leaf": 3 * rounds})


def closes(program, recorder, sig=signal.SIGINT, how="runs on", status=0):
    """Ends the recording, and checks what it reports."""
    got, said = recorder.end(sig)
    expect("exit status", got, status)
    has("closing line", said, r"^patchbay: .* \(%d\) %s; [\d,]+ calls?, 0 lost" % (program.pid, how))
    return said


def main(doc, tests):
    """Runs the tests. tests: {name: (function, arguments after the Place...)}."""
    ap = argparse.ArgumentParser(description=doc)
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("names", nargs="*")
    args = ap.parse_args()
    place, tally = Place(args.quick), pbtest.Tally()
    for name, (fn, *more) in tests.items():
        if not args.names or name in args.names or name.split("-")[0] in args.names:
            tally.test(name, fn, place, *more)
    return tally.close()
