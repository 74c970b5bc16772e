# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base of the tests of tools. A test is one object, the program that the object traces, and the
expected results."""
import pbtest
from pbtest import Failure, PATCHBAY

SLOTS = 32


def log2(v):
    return min(v.bit_length() - 1 if v > 0 else 0, SLOTS - 1)


def same(what, got, want):
    if got != want:
        raise Failure("%s: %s, not %s" % (what, str(got)[:600], str(want)[:600]))


class Tool:
    """One object, the program that the object traces, and the expected results. summary() returns
    the object's results that don't depend on times and addresses. expected() returns the same
    results, computed from the program's counts."""
    program = "calls"
    argv = ("2", "1000")
    globals = ()            # constants that user space sets: NAME=VALUE
    noise = None            # a pattern for the text that the program itself writes to stderr
    maps = ()               # sizes that user space sets: NAME:max_entries=N,...
    btf = False             # whether CO-RE relocates the object for the program's types
    kernel = True           # whether the tool also works with the kernel's uprobes

    def __init__(self, place, name):
        self.place, self.name = place, name

    def command(self):
        return [self.place.programs[self.program], *self.argv]

    def options(self):
        options = ["--map=" + m for m in self.maps] + ["--global=" + g for g in self.globals]
        return options + (["--btf=" + self.place.programs[self.program]] if self.btf else [])

    def trace(self):
        """Returns the command line up to the traced program. Objects for v2 run on the interpreter.
        Objects for v3, which have 32-bit instructions, run on the JIT."""
        return [PATCHBAY, "bpf", "trace", "--hex",
                "--set=bpf_jit_enable=%d" % (self.place.cpu == "v3"), *self.options(),
                self.place.object(self.name), "--"]

    def summary(self, found):
        raise NotImplementedError

    def expected(self, found):
        raise NotImplementedError

    def check(self, found):
        """Further checks, for example of times."""

    def judge(self, found):
        same("found", self.summary(found), self.expected(found))
        self.check(found)

    def size(self, found):
        return "%d maps, %d records" % (len(found.maps), len(found.records))


class Refused(Tool):
    """The object has a feature that isn't available to programs that are attached to functions.
    Patchbay must refuse the object before the traced program starts. The message must name the
    feature."""
    kernel = False

    def judge(self, found):
        last = (found.stderr.strip().splitlines() or [""])[-1]
        if self.thing not in last or found.counted["say"]:
            raise Failure("not refused, or the message doesn't name %s:\n%s" % (self.thing, pbtest.tail(found.stderr)))

    def size(self, found):
        return found.stderr.strip().splitlines()[-1][:100]


def nonzero(d):
    return {k: v for k, v in d.items() if v}


def numbers(counted):
    return nonzero({int(k): int(v) for k, v in counted.items()})
