# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures `report` on 100 million calls: the rows with 11 in the table's first column."""
import os
from harness import BENCH, NOPS, Unavailable, compile_c, lossless, pb, pb_traced, run, uftrace_record


def reading(bench):
    """Records a loop of leaf calls and one run of fib: 100 million calls, 78 million of them in
    fib. After that, `report` reads the recording, alone on one processor. uftrace gets
    the same program with a tenth of the calls, because it writes 32 bytes for each call.
    The two tracers' times per call are compared."""
    cost = compile_c(bench.path("cost"), [os.path.join(BENCH, "cost.c")], NOPS)
    large, small = ("22000000", "37"), ("2200000", "32")
    if bench.quick:
        large = small
    data, udata = bench.path("data"), bench.path("udata")
    calls, variants = {}, {}
    info = {}

    def recorded_uftrace():
        calls["uftrace"] = run(uftrace_record(udata, [cost, "mix", *small])).json()["calls"]
        return lambda: run(["uftrace", "report", "-d", udata, "--no-pager"], bench.one)

    def recorded_patchbay():
        argv = [cost, "mix", *large]
        bare = run(argv)
        calls["patchbay"] = bare.json()["calls"]
        options = ["--tracer=function_graph", "--no-loss"]
        info.update(pb_traced(data, options, argv, lossless(calls["patchbay"]), same=bare.out).info)
        return lambda: run(pb("report", "-d", data, "--format=csv"), bench.one)

    def refuse(error):
        raise error

    for name, record in (("uftrace", recorded_uftrace), ("patchbay", recorded_patchbay)):
        try:
            variants[name] = record()
        except Unavailable as e:
            variants[name] = lambda e=e: refuse(e)
    rounds = bench.rounds(variants, tidy=False)
    add = lambda what, limit, compute, *names, **more: bench.table.add_rounds(11, what, limit, rounds, compute, *names, **more)
    note = f"{calls['patchbay']:,} calls, {info['records']:,} records" if info else None
    add("report: seconds", None, lambda p: p.wall, "patchbay", unit="s", note=note)
    add("report: million records a second", ">= 20", lambda p: info["records"] / p.wall / 1e6, "patchbay", digits=1)
    add("report: largest resident size", "<= 256", lambda p: p.rss / 2**20, "patchbay", unit="MiB", digits=0)
    add("uftrace report: million calls a second", None, lambda u: calls["uftrace"] / u.wall / 1e6, "uftrace", digits=1)
    add("uftrace report: largest resident size", None, lambda u: u.rss / 2**20, "uftrace", unit="MiB", digits=0,
        note=f"{calls.get('uftrace', 0):,} calls")
    add("report, uftrace's time per call / patchbay's", ">= 5",
        lambda p, u: (u.wall / calls["uftrace"]) / (p.wall / calls["patchbay"]), "patchbay", "uftrace", unit="×")
