# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the time of one traced call: the rows with 7 in the table's first column."""
import os
import shutil
import time
from harness import (ANY, BENCH, NONE, NOPS, Unavailable, compile_c, lossless, pb_attach,
                     pb_attached_end, pb_control, pb_traced, run,
                     uftrace_calls, uftrace_record)

# In each build of cost.c, only these functions are traced. They are compared with limit() and
# entry_limit(), which are never patched.
PATTERNS = [word for name in ("leaf", "leaf_loop", "fib", "fib_loop", "other") for word in ("-P", name)]
GRAPH = ["--tracer=function_graph"]

# name: options of `patchbay record`, and the values that `info` must report after the run
VARIANTS = {
    "graph": (GRAPH, {"calls": ANY, "patched": ANY}),
    "function": (["--tracer=function"], {"records": ANY, "patched": ANY}),
    "no clock": ([*GRAPH, "--clock=none"], {"calls": ANY, "patched": ANY}),
    "idle agent": (["--tracer=nop"], {"records": NONE, "patched": NONE}),
    "depth": ([*GRAPH, "-D", "1"], {"calls": (1, 1000), "patched": ANY}),   # calls of leaf_loop and fib_loop have depth 1
    "filter -F": ([*GRAPH, "-F", "other"], {"calls": NONE, "patched": ANY}),    # other is never called
    "filter -N": ([*GRAPH, "-N", "leaf_loop", "-N", "fib_loop"], {"calls": NONE, "patched": ANY}),
}

# name: (control file, value) pairs that are written before the first slice. After that, the
# program records nothing. With keep-patched, its sites stay patched.
DISABLED = {
    "disabled": (("trace_options", "keep-patched"), ("current_tracer", "nop")),
    "tracing_on=0": (("tracing_on", "0"),),
}


def nops_build(bench):
    return compile_c(bench.path("cost-nops"), [os.path.join(BENCH, "cost.c")], NOPS)


def cost(bench):
    slices = "11" if bench.quick else "41"
    nops = nops_build(bench)
    plain = compile_c(bench.path("cost-plain"), [os.path.join(BENCH, "cost.c")])
    for build, program in (("compiler's nops", nops), ("plain build", plain)):
        sliced(bench, build, [program, "slices", slices])
    cpu_time(bench, nops)


class Place:
    """A directory in which a program waits until it may begin."""

    def __init__(self, bench):
        self.dir = bench.path("wait")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)

    def pid(self, process):
        """Returns the program's PID once it waits."""
        deadline = time.monotonic() + 20
        while not os.path.exists(os.path.join(self.dir, "pid")):
            if process.returncode is not None or time.monotonic() > deadline:
                raise Unavailable("the program did not write its PID file in time")
            time.sleep(0.01)
        with open(os.path.join(self.dir, "pid")) as f:
            return f.read().strip()

    def go(self):
        open(os.path.join(self.dir, "go"), "w").close()


def disabled(bench, options, program, write, patched=ANY):
    """Runs a program whose sites are patched at its start. The program waits while the pairs
    `write` (control file, value) are written. After that, it makes its calls."""
    place = Place(bench)

    def turn_off(process):
        pid = place.pid(process)
        for file, value in write:
            pb_control(pid, file, value)
        place.go()

    return pb_traced(bench.path("data"), ["--overwrite", "--serve", *options, *GRAPH], [*program, place.dir],
                     {"records": NONE, "patched": patched}, cpus=bench.one, meanwhile=turn_off).json()


def attached(bench, program):
    """Runs a program that waits at its start, and attaches to it while it waits. After that, the
    program runs its slices."""
    place, data, recorders = Place(bench), bench.path("data"), []

    def attach(process):
        recorders.append(pb_attach(data, place.pid(process), ["--overwrite", *PATTERNS, *GRAPH], cpus=bench.one))
        place.go()

    done = run([*program, place.dir], bench.one, meanwhile=attach)
    for recorder in recorders:
        pb_attached_end(recorder, data, {"calls": ANY, "patched": ANY})
    return done.json()


def sliced(bench, build, program):
    """Measures traced calls in short slices, which the program times. Slices that call traced
    functions alternate with slices that do the least work of a traced call (limit() and
    entry_limit() in cost.c). A round runs the program bare and under each variant."""
    variants = {"bare": lambda: run(program, bench.one).json()}
    for name, (options, expect) in VARIANTS.items():
        variants[name] = lambda options=options, expect=expect: pb_traced(
            bench.path("data"), ["--overwrite", *PATTERNS, *options], program, expect, cpus=bench.one).json()
    variants["attached"] = lambda: attached(bench, program)
    for name, write in DISABLED.items():
        variants[name] = lambda write=write: disabled(bench, PATTERNS, program, write)
    rounds = bench.rounds(variants, yardsticks=("limit", "entry_limit", "empty"))
    table = bench.table

    def row(what, limit, compute, *names, **more):
        table.add_rounds(7, f"{what}, {build}", limit, rounds, compute, *names, **more)

    if "nops" in build:
        row("one clock read (rdtsc)", None, lambda b: b["rdtsc"] - b["empty"], "bare", unit="ns")
        row("clock_gettime", None, lambda b: b["clock_gettime"] - b["empty"], "bare", unit="ns")
        row("the limit: two rdtsc, 8-byte record", None, lambda b: b["limit"], "bare", unit="ns")
        row("the limit, entry only: rdtsc, 16 bytes", None, lambda b: b["entry_limit"], "bare", unit="ns")
    for f in ("leaf", "fib"):
        row(f"{f}, bare", None, lambda b: b[f], "bare", unit="ns")
        row(f"{f}, traced", None, lambda g: g[f], "graph", unit="ns")
        row(f"{f}, traced / limit", "<= 1.05", lambda g: g[f] / g["limit"], "graph")
        row(f"{f}, traced, attached with record -p", None, lambda g: g[f], "attached", unit="ns")
        row(f"{f}, traced, attached / preloaded", "<= 1.02", lambda g, a: a[f] / g[f], "graph", "attached", digits=3)
        row(f"{f}, entry only / its limit", "<= 1.2", lambda e: e[f] / e["entry_limit"], "function")
        if f == "leaf":
            row("leaf, --clock=none, over bare, in the first pass through the buffer", None, lambda b, v: v["first_pass"] - b["first_pass"],
                "bare", "no clock", unit="ns")
        for what, limit, name in (("--clock=none", {"leaf": 3.5, "fib": 4}[f], "no clock"), ("patched, disabled", 1.2, "disabled"), ("tracing_on=0", None, "tracing_on=0"),
                                  ("rejected by -D", 3, "depth"), ("rejected by -F", 3, "filter -F"),
                                  ("rejected by -N", 3, "filter -N")):
            row(f"{f}, {what}, over bare", limit and f"<= {limit}", lambda b, v: v[f] - b[f], "bare", name, unit="ns")
        row(f"{f}, agent loaded, nothing enabled / bare", "<= 1.02", lambda b, v: v[f] / b[f], "bare", "idle agent", digits=3)


def first_pass(bench):
    """Compares the CPU time of the program's first calls with the CPU time of its later calls. The
    first calls matter because a short program makes no later calls. The recorder's CPU time isn't
    included. The recorder can use another processor, so it can allocate the buffer's memory before
    the program needs it."""
    program = nops_build(bench)
    modes = {"--overwrite": ["--overwrite"], "to a file": []}
    rounds = bench.rounds({name: lambda options=options: pb_traced(
        bench.path("data"), [*PATTERNS, *GRAPH, *options], [program, "slices", "1"], VARIANTS["graph"][1],
        cpus=bench.two).json() for name, options in modes.items()})
    for name in modes:
        for what, limit, key in (("the first 8 MB of records", "<= 1.1", "first_8mb"), ("the first pass through the buffer", None, "first_pass")):
            bench.table.add_rounds(7, f"leaf, traced, {name}: {what} / later ones", limit, rounds,
                                   lambda g, key=key: g[key] / g["later_passes"], name, digits=3)


def cpu_time(bench, program):
    """Measures the CPU time per call: the time of recorder and program together, minus the time
    of the bare program."""
    leaf, fib = (2_000_000, 30) if bench.quick else (10_000_000, 34)
    for what, argv in (("leaf", [program, "leaf", str(leaf)]), ("fib", [program, "fib", str(fib)])):
        data, udata = bench.path("data"), bench.path("udata")
        bare = run(argv)
        calls = bare.json()["calls"]

        def recorded(expect, *options):
            return pb_traced(data, [*GRAPH, *options], argv, expect, same=bare.out, cpus=bench.two)

        def uftrace(*options):
            done = run(uftrace_record(udata, argv, *options), bench.two)
            if done.out != bare.out:
                raise Unavailable("under uftrace the program's output differs")
            return done

        rounds = bench.rounds({
            "bare": lambda: run(argv, bench.two),
            "file": lambda: recorded(lossless(calls), "--no-loss"),
            "overwrite": lambda: recorded({"calls": ANY}, "--overwrite"),
            "uftrace -D 1": lambda: uftrace("-D", "1"),
            "uftrace": uftrace,
        })
        above = lambda bare, traced: (traced.cpu - bare.cpu) / calls * 1e9
        row = lambda text, limit, compute, *names, **more: bench.table.add_rounds(
            7, f"{what}: {text}", limit, rounds, compute, *names, **more)
        row("uftrace, CPU time per call over bare", None, above, "bare", "uftrace", unit="ns")
        row("uftrace, wall time per call over bare", None, lambda b, u: (u.wall - b.wall) / calls * 1e9, "bare", "uftrace", unit="ns")
        row("uftrace -D 1, CPU time per rejected call over bare", None, above, "bare", "uftrace -D 1", unit="ns")
        row("to a file, CPU time per call over bare", None, above, "bare", "file", unit="ns")
        row("to a file, CPU time / uftrace", "<= 0.3", lambda b, p, u: above(b, p) / above(b, u), "bare", "file", "uftrace")
        row("--overwrite, CPU time / uftrace", "<= 0.3", lambda b, p, u: above(b, p) / above(b, u), "bare", "overwrite", "uftrace")
        seen = sum(uftrace_calls(udata).values()) if "uftrace" not in rounds.why else 0
        bench.table.add(7, f"{what}: calls that uftrace recorded / made", None, [seen / calls] if seen else [], digits=4)
