# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures bytes per call, and lossless recording to a file: the rows with 8 in the table's first
column."""
import os
import shutil
import harness
from harness import ANY, BENCH, NONE, NOPS, Unavailable, compile_c, pb_traced, run, uftrace_record

GRAPH = ["--tracer=function_graph", "--no-loss"]


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


def program(name):
    found = shutil.which(name)
    if not found:
        raise Unavailable(f"{name} is not installed")
    return found


def repository(bench):
    """Makes a small repository of 40 commits and 20 files. Returns the arguments with
    which git prints its log."""
    place = bench.path("repo")
    git = ["git", "-C", place, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]
    os.makedirs(place)
    run(["git", "init", "-q", place])
    for commit in range(40):
        with open(os.path.join(place, f"file{commit % 20}"), "a") as f:
            f.writelines(f"line {i * commit % 97}\n" for i in range(200))
        run([*git, "add", "."])
        run([*git, "commit", "-q", "-m", f"change {commit}"])
    return ["-C", place, "log", "--stat", "-p", "--no-color"]


def programs(bench):
    """Yields (name, function) for each real program, in Debian's build. The function returns the
    record options, the command line, and the file for standard input or None."""
    script = lambda name: os.path.join(BENCH, "workload." + name)
    yield "sqlite3", lambda: (["--module", "*sqlite3*"], [program("sqlite3"), ":memory:"], script("sql"))
    yield "lua", lambda: (["--module", "*lua*"], [program("lua5.4"), script("lua")], None)
    yield "python3", lambda: ([], [program("/usr/bin/python3"), "-S", script("py")], None)
    yield "git log", lambda: ([], [program("git"), *repository(bench)], None)


def volume(bench):
    """Measures bytes per call. They don't depend on time, so there is one run of each program."""
    data = bench.path("data")
    cost = compile_c(bench.path("cost"), [os.path.join(BENCH, "cost.c")], NOPS)
    calls = 1_000_000

    def measure(what, limit, make):
        try:
            options, argv, stdin = make()
            bare = run(argv, stdin=stdin).out
            info = pb_traced(data, [*GRAPH, *options], argv, {"calls": ANY, "lost": NONE}, same=bare, stdin=stdin).info
        except Unavailable as e:
            bench.table.add(8, what, limit, [], missing=str(e))
            return None
        bench.table.add(8, what, limit, [info["bytes"] / info["calls"]], unit="bytes", note=f"{info['calls']:,} calls")
        return info

    measure("bytes per call, leaf", "<= 8.5", lambda: ([], [cost, "leaf", str(calls)], None))
    measure("bytes per call, fib", None, lambda: ([], [cost, "fib", "29"], None))
    infos = [measure(f"bytes per call, {name}", None, make) for name, make in programs(bench)]
    infos = [info for info in infos if info]
    bench.table.add(8, "bytes per call, average over the real programs", "<= 16",
                    [sum(i["bytes"] / i["calls"] for i in infos) / len(infos)] if infos else [], unit="bytes",
                    missing="no program was recorded")
    try:
        done = run(uftrace_record(bench.path("udata"), [cost, "leaf", str(calls)]))
        bench.table.add(8, "uftrace: bytes per call, leaf", None,
                        [folder_bytes(bench.path("udata")) / done.json()["calls"]], unit="bytes")
    except Unavailable as e:
        bench.table.add(8, "uftrace: bytes per call, leaf", None, [], missing=str(e))


def lossless(bench):
    """Measures the wall time of a whole recording of fib to a file. The recording loses
    nothing."""
    cost = compile_c(bench.path("cost"), [os.path.join(BENCH, "cost.c")], NOPS)
    argv = [cost, "fib", "30" if bench.quick else "34"]
    data, udata = bench.path("data"), bench.path("udata")

    bare = run(argv)
    expect = harness.lossless(bare.json()["calls"])

    rounds = bench.rounds({
        "bare": lambda: run(argv, bench.two).wall,
        "uftrace": lambda: run(uftrace_record(udata, argv), bench.two).wall,
        "patchbay": lambda: pb_traced(data, GRAPH, argv, expect, same=bare.out, cpus=bench.two).wall,
    })
    add = lambda what, limit, compute, *names, **more: bench.table.add_rounds(8, what, limit, rounds, compute, *names, **more)
    add(f"fib({argv[2]}) bare", None, lambda b: b, "bare", unit="s")
    add(f"fib({argv[2]}) recorded by uftrace", None, lambda u: u, "uftrace", unit="s")
    add(f"fib({argv[2]}) recorded by patchbay --no-loss", None, lambda p: p, "patchbay", unit="s")
    add("lossless recording, uftrace's time / patchbay's", ">= 3", lambda p, u: u / p, "patchbay", "uftrace", unit="×")
