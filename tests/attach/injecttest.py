# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the tests of the injection (doc/design/injection.md). A test starts a target program, and
injects a test agent (test_agent.c) into it with the program inject_one. Then the test checks that
the target is unharmed: it answers, it has no tracer, and none of its threads is stopped."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import pbtest
from pbtest import Failure, Skip

BUILT = os.path.join(os.path.dirname(pbtest.PATCHBAY), "tests", "attach")
NOBODY = 65534
COMPILERS = {".c": "gcc", ".cc": "g++"}


class Place:
    """A directory that all users can read, with the injector, the agent and compiled targets."""

    def __init__(self):
        self.dir = pbtest.scratch("inject")
        os.chmod(self.dir, 0o755)
        for name in ("inject_one", "libtest_agent.so"):
            built = os.path.join(BUILT, name)
            if not os.path.exists(built):
                raise Skip("%s is not built" % built)
            shutil.copy(built, self.dir)
        self.injector, self.agent = self.path("inject_one"), self.path("libtest_agent.so")
        self.quick = False
        self.notes = 0

    def path(self, name):
        return os.path.join(self.dir, name)

    def compile(self, source, name=None, *flags):
        """Compiles a file of `targets`, once for each name. Returns the program's path."""
        stem, suffix = os.path.splitext(source)
        out = self.path(name or stem)
        if not os.path.exists(out):
            r = pbtest.run([COMPILERS[suffix], "-O2", "-g", "-pthread", "-w", "-D_GNU_SOURCE", "-o",
                            out, os.path.join(HERE, "targets", source), *flags], 120)
            if r.status:
                raise Skip("%s does not compile: %s" % (source, pbtest.tail(r.err, 1).strip()))
        return out

    def note(self):
        """Returns a new path for the agent's note, in a directory that all users can write."""
        self.notes += 1
        directory = self.path("note%d" % self.notes)
        os.mkdir(directory)
        os.chmod(directory, 0o777)
        return os.path.join(directory, "note")


class Target:
    """A running program that has printed `ready`, and answers each line of its input (pulse.c)."""

    def __init__(self, *argv, ready=True, **more):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True,
                                        env=pbtest.clean_env(), **more)
        self.pid = self.process.pid
        if ready:
            self.expect("ready")

    def expect(self, word):
        line = self.process.stdout.readline().decode()
        if not line.startswith(word):
            raise Failure("the target says %r, not %r; status %s\n%s" % (
                line, word, self.process.poll(),
                pbtest.tail(self.process.stderr.read()) if self.process.poll() is not None else ""))
        return line

    def pulse(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.expect("pulse")

    def end(self):
        """Closes the input, and returns what the program prints at its end."""
        try:
            out, err = self.process.communicate(timeout=pbtest.patience(20))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure("the target does not end")
        if self.process.returncode:
            raise Failure("the target ended with %d\n%s" % (self.process.returncode, pbtest.tail(out + err)))
        return out.decode()

    def kill(self):
        if self.process.poll() is None:
            pbtest.kill_group(self.process)
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.kill()


def status(pid, key, tid=None):
    with open("/proc/%d/task/%d/status" % (pid, tid or pid)) as f:
        return re.search(r"^%s:\s*(.*)$" % key, f.read(), re.M).group(1)


def states(pid):
    """Returns (state, tracer, blocked signals) of each thread."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            found[int(tid)] = [status(pid, k, int(tid)) for k in ("State", "TracerPid", "SigBlk")]
        except (OSError, AttributeError):
            pass
    return found


def mappings(pid):
    with open("/proc/%d/maps" % pid) as f:
        return [line.split(None, 5)[:2] + line.split(None, 5)[5:] for line in f]


def inject(p, pid, session, agent=None, **more):
    """Injects the agent. Returns (None, the figures). On failure, returns (the line for the user,
    None)."""
    r = subprocess.run([p.injector, str(pid), agent or p.agent, session], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=pbtest.patience(120), **more)
    text = r.stdout.decode(errors="replace").strip()
    if r.returncode == 0:
        words = text.split()
        return None, {k: int(v) for k, v in zip(words[::2], words[1::2])}
    if r.returncode != 1 or "\n" in text:
        raise Failure("inject_one: status %d, %r" % (r.returncode, text))
    return text.partition(" ")[2], None


def read_note(path, lines=1):
    """Waits until the agent's threads have written this number of lines to the note. Returns the
    note's text."""
    end = time.monotonic() + pbtest.patience(20)
    while True:
        if os.path.exists(path):
            with open(path) as f:
                text = f.read()
            if text.count("\n") >= lines:
                return text
        if time.monotonic() > end:
            raise Failure("the agent's thread has not begun")
        time.sleep(0.01)


def unharmed(pid, before=None, handled=()):
    """Checks that no thread is traced or stopped. Each thread in `before` must block the same
    signals as then. The signals in `handled` may differ, because a thread blocks them while it runs
    their handlers."""
    ignored = sum(1 << (signal - 1) for signal in handled)
    for tid, (state, tracer, blocked) in states(pid).items():
        if tracer != "0" or state[0] in "tT":
            raise Failure("thread %d is left in state %s, tracer %s" % (tid, state, tracer))
        if before and tid in before and (int(before[tid][2], 16) ^ int(blocked, 16)) & ~ignored:
            raise Failure("thread %d blocks %s, before %s" % (tid, blocked, before[tid][2]))


def attach(p, target, lines=1, note=None, masks=True, handled=(), **more):
    """Injects the agent, and expects success. masks: also checks that no thread's signal mask has
    changed (see unharmed() for `handled`). Returns the figures."""
    note = note or p.note()
    before = states(target.pid)
    error, figures = inject(p, target.pid, note, **more)
    if error:
        raise Failure("not injected: " + error)
    text = read_note(note, lines)
    if "pid %d " % target.pid not in text or "agent %s " % p.agent not in text:
        raise Failure("the agent was given %r" % text)
    if "blocked 29" not in text:
        raise Failure("the new thread does not block all signals: %r" % text)
    if "namespace 0 " not in text:
        raise Failure("the agent was loaded by the libc of another namespace: %r" % text)
    if text.count(" traced 0\n") != text.count("\n"):
        raise Failure("the injector traces other threads, too: %r" % text)
    unharmed(target.pid, before if masks else None, handled)
    return figures


def refused(p, target, word, session=None, maps=True, **more):
    """Injects the agent, and expects an error that contains `word`. The target must be as
    before."""
    before, maps_before = states(target.pid), mappings(target.pid) if maps else None
    note = session or p.note()
    error, _ = inject(p, target.pid, note, **more)
    if error is None:
        raise Failure("injected, but an error was expected")
    if word not in error:
        raise Failure("the error is %r" % error)
    if os.path.exists(note):
        raise Failure("the agent was started, but the error is %r" % error)
    unharmed(target.pid, before)
    if maps and mappings(target.pid) != maps_before:
        raise Failure("the mappings have changed:\n%s" % "\n".join(
            str(m) for m in mappings(target.pid) if m not in maps_before))
    return error


def control_groups():
    """Returns where the control groups of version 2 are mounted."""
    with open("/proc/mounts") as f:
        for line in f:
            _, where, kind, *_ = line.split()
            if kind == "cgroup2":
                return where
    raise Skip("no control groups of version 2")


def need_root():
    if os.geteuid():
        raise Skip("needs root")


def main(doc, tests):
    """Runs the tests that the command line names, or all."""
    a = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--quick", action="store_true")
    a.add_argument("names", nargs="*")
    args = a.parse_args()
    tally = pbtest.Tally()
    try:
        p = Place()
    except Skip as e:
        tally.skip("all", str(e))
        return tally.close()
    p.quick = args.quick
    for test in tests:
        if not args.names or test.__name__ in args.names:
            tally.test(test.__name__, test, p)
    return tally.close()
