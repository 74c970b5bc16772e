# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the calls that are open only for an eBPF program at their return. The eBPF program of
watched.bpf.c counts the returns of each function."""
import collections
import os
import re
import pbtest

UNWATCHED = "t_entry"       # its return can't be hooked
JUMPS = ("jump", "calls-jump", "throw", "jump-inside", "leaf-inside")


def trace(exe, work, args, flags, *argv):
    program = pbtest.bpf_object(os.path.join(os.path.dirname(__file__), "watched.bpf.c"), work, *flags)
    if not program:
        raise pbtest.Skip("no compiler for eBPF")
    return pbtest.run([pbtest.PATCHBAY, "bpf", "trace", "--hex", program, "--", exe, *argv], args.timeout, env=args.env)


def returns_by_address(text):
    """Parses the map that `bpf trace` prints at its end."""
    number = lambda text: int.from_bytes(bytes.fromhex(text), "little")
    found = re.findall(r"^key: ([0-9a-f ]+?)  value: ([0-9a-f ]+)$", text, re.M)
    return collections.Counter({number(key): number(value) for key, value in found})


def check(segments, r, exe, functions, acts):
    """Compares the calls that the program made with the returns that the eBPF program counted, and
    with the calls that the agent counts as missed."""
    returns, made = returns_by_address(r.out.decode()), collections.Counter()
    for s in segments:
        made.update(dict(zip(functions, s.made)))
    # A forked child also counts the returns of calls that its parent made. A thread that is
    # cancelled leaves calls open that nobody closes.
    if "fork" in acts or "cancel" in acts:
        return "%d calls" % sum(made.values())
    del made[UNWATCHED]
    n = re.search(rb"programs missed (\d+) call", r.err)
    missed = int(n.group(1)) if n else 0
    symbols = map(str.split, pbtest.run(["nm", exe], 60).out.decode().splitlines())
    address = {w[2]: int(w[0], 16) for w in symbols if w[-1] in functions}
    differ = {f: (nr, returns[address[f]]) for f, nr in made.items() if nr != returns[address[f]]}
    less = sum(max(0, nr - seen) for nr, seen in differ.values())
    # If a handler jumps before the function's body runs, or when the eBPF program has already
    # counted the return, one call too many is counted as missed.
    jumps = sum(s.happened and s.act in JUMPS for s in segments)
    if any(seen > nr for nr, seen in differ.values()) or not less <= missed <= less + jumps:
        raise pbtest.Failure("%d calls without a return, %d counted as missed, %d jumps; {function: (calls made, returns)} %s" %
                             (less, missed, jumps, differ))
    return "%d calls, %d without a return, %d counted as missed" % (sum(made.values()), less, missed)
