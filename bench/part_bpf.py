# SPDX-License-Identifier: LGPL-2.1-or-later
"""eBPF programs attached to a function: what a hit costs, beside the kernel's uprobes."""
import os
import shutil
from harness import BENCH, NOPS, Unavailable, compile_c, pb, run

CALLS = 3_000_000
SLOW_CALLS = 30_000         # for uprobes
PROGRAMS = {"nothing": ["-DNOTHING"], "update": [], "count": ["-DCOUNT"], "return": ["-DCOUNT", "-DRETURN"]}


def objects(bench):
    if not shutil.which("clang"):
        raise Unavailable("clang is not installed")
    made = {}
    for name, flags in PROGRAMS.items():
        made[name] = bench.path(name + ".bpf.o")
        run(["clang", "-g", "-O2", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", *flags, "-c",
             os.path.join(BENCH, "attached.bpf.c"), "-o", made[name]])
    return made


def bpftrace(bench, program):
    if not shutil.which("bpftrace") or os.geteuid():
        raise Unavailable("needs bpftrace and root")
    script = "uprobe:%s:leaf { @ = count(); }" % program
    done = run(["bpftrace", "-e", script, "-c", "%s %d" % (program, SLOW_CALLS)], bench.one, check=False)
    if "@: %d" % (5 * SLOW_CALLS) not in done.out:
        raise Unavailable("bpftrace: " + (done.err or done.out)[-200:].strip())
    return done.json()


def attached(bench):
    made = objects(bench)
    source = [os.path.join(BENCH, "attached.c")]
    plain, nops = compile_c(bench.path("plain"), source), compile_c(bench.path("nops"), source, NOPS)

    def ours(name):
        return run(pb("bpf", "trace", "-q", made[name], "--", plain, str(CALLS)), bench.one).json()

    rounds = bench.rounds({
        "bare": lambda: run([plain, str(CALLS)], bench.one).json(),
        **{name: lambda name=name: ours(name) for name in made},
        "uprobe": lambda: bpftrace(bench, plain),
        "uprobe-nop": lambda: bpftrace(bench, nops),
    })
    add = lambda what, limit, *names: bench.table.add_rounds("bpf", what, limit, rounds,
                                                             lambda b, t: t["call"] - b["call"], "bare", *names, unit="ns")
    add("a hit: a program that returns at once", None, "nothing")
    add("a hit: one hash update", "<= 60", "update")
    add("a hit: counted in a hash (lookup, atomic add)", None, "count")
    add("a return, counted in a hash", None, "return")
    add("bpftrace's count() on a uprobe", None, "uprobe")
    add("bpftrace's count() on a uprobe at a 5-byte nop", None, "uprobe-nop")
