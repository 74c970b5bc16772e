# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how much `live --top` slows down a busy process of 16 threads. The figure is the number
of calls per second. It is compared in two runs: one that is only recorded, and one whose calls are
also read and summed up for the table. All threads, the recorder and the reader share the
processors."""
import os
from harness import BENCH, compile_c, pb, pb_record, run


def live(bench):
    program = [compile_c(bench.path("busy"), [os.path.join(BENCH, "busy.c")]), "16", "1" if bench.quick else "4"]
    rounds = bench.rounds({
        "bare": lambda: run(program, bench.two).json(),
        "recorded": lambda: run(pb_record(bench.path("data"), ["-q"], program), bench.two).json(),
        "top": lambda: run(pb("top", "-o", os.devnull, "--", *program), bench.two).json(),
    })
    add = lambda name, limit, variant, base: bench.table.add_rounds(6, name, limit, rounds, lambda a, b: a["rate"] / b["rate"], variant, base,
                                                                    digits=3, unit="×")
    add("16 busy threads: calls per second, recorded / bare", None, "recorded", "bare")
    add("16 busy threads: calls per second, with top / recorded", ">= 0.99", "top", "recorded")
