#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests short jumps in a traced program (src/module/analysis/padding_slots.c, code_slots.c). Each
function of test_module_short.c must be recorded with its exact number of calls. A second test
changes the program's text while the program runs. At the end, the text must be that of the file.

  test_module_short.py PROGRAM [SECONDS]
"""
import collections
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "e2e"))
import pbtest
from pbtest import Failure

SHORT = ["s_call", "s_jump", "s_loop", "s_pushed", "s_return", "s_system"]
CODE_SLOT = ["d_loop", "d_tiny", "d_calls", "d_fault"]
SHARED = ["r_ret", "r_other"]
SECOND = ["c_next", "c_other"]
# the calls that each thread makes in a round; d_calls calls d_beside three times
CALLS = collections.Counter(SHORT + CODE_SLOT + SHARED + SECOND + ["s_ends", "s_far", "d_beside"] +
                            3 * ["d_beside"])


def recorded(exe, work):
    refused = pbtest.view("list", "--refused", exe).decode()
    if any(line.startswith(("s_", "d_", "r_", "c_")) for line in refused.splitlines()):
        raise Failure("refused: %s" % refused)
    data = os.path.join(work, "data")
    r = pbtest.run(pbtest.record_argv(data, [exe, "1000"]), 60)
    if r.status or r.out != b"all results right\n":
        raise Failure("exit status %d\n%s" % (r.status, pbtest.tail(r.out + r.err)))
    calls = collections.Counter()
    for name, n in pbtest.calls_by_function(data).items():
        calls[name.split("@")[0]] += n
    for name, n in CALLS.items():
        if calls[name] != 2000 * n:
            raise Failure("%s: %d calls, not %d: %s" % (name, calls[name], 2000 * n, dict(calls)))
    return "%d functions, 2000 calls each" % len(SHORT + CODE_SLOT + SHARED)


def text(pid, exe):
    with open("/proc/%d/maps" % pid) as maps, \
            open("/proc/%d/mem" % pid, "rb", 0) as mem, open(exe, "rb") as f:
        for line in maps:
            w = line.split()
            if w[-1] == exe and "x" in w[1]:
                start, end = (int(x, 16) for x in w[0].split("-"))
                f.seek(int(w[2], 16))
                mem.seek(start)
                want = f.read(end - start)
                return mem.read(len(want)), want
    raise Failure("no text of %s" % exe)


def changed(exe, work, seconds):
    s = pbtest.Session(os.path.join(work, "live"), [exe], "--overwrite", "-b", "4M", "--tracer=nop")
    changes, names = 0, SHORT + CODE_SLOT + SHARED + SECOND
    try:
        s.wait_ready()
        end = time.monotonic() + seconds
        while time.monotonic() < end and s.alive():
            name = names[changes % len(names)]
            for file, value in (("set_ftrace_filter", "s_* d_* r_*"),
                                ("current_tracer", "function_graph"),
                                ("set_ftrace_filter", name), ("current_tracer", "nop"),
                                ("set_ftrace_filter", ""), ("current_tracer", "function"),
                                ("current_tracer", "nop")):
                s.write(file, value)
                changes += 1
        if not s.alive():
            raise Failure("the program died after %d changes\n%s" % (changes, pbtest.tail(s.end().err)))
        got, want = text(s.pid, exe)
        if got != want:
            raise Failure("%d bytes of text differ" % sum(a != b for a, b in zip(got, want)))
        r = s.end(b"x")
    finally:
        s.kill()
    if r.status or not r.out.endswith(b"all results right\n"):
        raise Failure("after %d changes: exit status %d\n%s" %
                      (changes, r.status, pbtest.tail(r.out + r.err)))
    return "%d changes of text" % changes


def main():
    exe, work, tally = os.path.realpath(sys.argv[1]), pbtest.scratch("short"), pbtest.Tally()
    tally.test("recorded", recorded, exe, work)
    tally.test("changed", changed, exe, work, float(sys.argv[2]) if len(sys.argv) > 2 else 3)
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
