# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the slow-down of real programs, compared with uftrace: the rows with 9 in the table's
first column."""
import contextlib
import os
import socket
import subprocess
import time
import sources
from harness import (ANY, BENCH, NONE, Unavailable, end_group, environment, pb_calls, pb_record, pb_traced, run,
                     start_group, uftrace_calls, uftrace_record)

GRAPH = ["--tracer=function_graph"]


def slow_down(bench, what, rounds):
    """Adds rows. Each round has four times in seconds: of a run without a tracer (bare), of runs
    under patchbay (file, overwrite), and of a run under uftrace."""
    def row(text, limit, compute, *names, **more):
        bench.table.add_rounds(9, f"{what}: {text}", limit, rounds, compute, *names, **more)
    row("bare", None, lambda b: b, "bare", unit="s", digits=3)
    row("slow-down under uftrace", None, lambda b, u: u / b, "bare", "uftrace", unit="×")
    for name, mode in (("file", "to a file"), ("overwrite", "--overwrite")):
        row(f"slow-down under patchbay, {mode}", None, lambda b, p: p / b, "bare", name, unit="×")
        row(f"patchbay's slow-down / uftrace's, {mode}", "<= 0.5", lambda p, u: p / u, name, "uftrace")
        row(f"time added, patchbay / uftrace, {mode}", None, lambda b, p, u: (p - b) / (u - b), "bare", name, "uftrace")


def same_calls(bench, what, ours, theirs, exact):
    """Adds a row that compares both tracers' call counts."""
    differ = sum(1 for f in ours.keys() | theirs.keys() if ours.get(f) != theirs.get(f))
    note = f"uftrace {sum(theirs.values()):,} in {len(theirs)} functions; patchbay {sum(ours.values()):,} in {len(ours)}"
    if not exact:
        note += "; timers differ from run to run"
    bench.table.add(9, f"{what}: functions whose call counts differ", None, [differ], note=note, digits=0)


def counts(bench, what, ours, theirs, exact=True):
    try:
        same_calls(bench, what, ours(), theirs(), exact)
    except Unavailable as e:
        bench.table.add(9, f"{what}: functions whose call counts differ", None, [], missing=str(e))


def sqlite(bench):
    argv = [sources.sqlite(bench), os.path.join(BENCH, "workload.sql")]
    data, udata = bench.path("data"), bench.path("udata")
    bare = run(argv).out

    def uftrace():
        done = run(uftrace_record(udata, argv), bench.two)
        if done.out != bare:
            raise Unavailable("under uftrace the program's output differs")
        return done.wall

    def patchbay(data, mode, expect):
        return pb_traced(data, [*GRAPH, mode], argv, expect, same=bare, cpus=bench.two).wall

    slow_down(bench, "SQLite", bench.rounds({
        "bare": lambda: run(argv, bench.two).wall,
        "uftrace": uftrace,
        "file": lambda: patchbay(data, "--no-loss", {"calls": ANY, "lost": NONE}),
        "overwrite": lambda: patchbay(data + "-o", "--overwrite", {"calls": ANY}),
    }))
    counts(bench, "SQLite", lambda: pb_calls(data), lambda: uftrace_calls(udata))


def ask(path, command):
    """Sends one inline command to the server; returns the first line of the answer."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        s.sendall(command + b"\r\n")
        return s.makefile("rb").readline()


@contextlib.contextmanager
def server(bench, folder, wrap):
    """Runs a redis-server, with the recorder that `wrap` may add, on one processor. No client runs
    on that processor."""
    path = bench.path("redis.sock")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    argv = wrap([os.path.join(folder, "redis-server"), "--port", "0", "--unixsocket", path, "--save", "",
                 "--appendonly", "no", "--daemonize", "no", "--dir", bench.temp])
    with open(bench.path("redis.log"), "w") as log:
        process = start_group(["taskset", "-c", bench.one, *argv], stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, env=environment())
    try:
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError):
                if ask(path, b"PING").startswith(b"+PONG"):
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                with open(bench.path("redis.log")) as log:
                    raise Unavailable("redis-server did not start: " + log.read()[-200:].strip())
            time.sleep(0.05)
        yield path
        with contextlib.suppress(OSError):
            ask(path, b"SHUTDOWN NOSAVE")
        process.wait(120)
    except subprocess.TimeoutExpired:
        raise Unavailable("redis-server did not end at SHUTDOWN") from None
    finally:
        if process.poll() is None:
            end_group(process)
            process.wait()


def redis(bench):
    folder = sources.redis(bench)
    requests = 50_000 if bench.quick else 400_000
    data, udata = bench.path("data"), bench.path("udata")

    def seconds(wrap):
        """Returns the seconds for all GETs of one key. The client runs alone on the other
        processor. It has 20 connections and sends 16 GETs in a pipeline."""
        with server(bench, folder, wrap) as path:
            ask(path, b"SET key:__rand_int__ value")
            done = run([os.path.join(folder, "redis-benchmark"), "-s", path, "-t", "get", "-n", str(requests),
                        "-c", "20", "-P", "16", "--csv"], bench.peer)
            rate = done.out.splitlines()[-1].split(",")[1].strip('"')
        return requests / float(rate)

    slow_down(bench, "redis, pipelined GET", bench.rounds({
        "bare": lambda: seconds(lambda argv: argv),
        "uftrace": lambda: seconds(lambda argv: uftrace_record(udata, argv)),
        "file": lambda: seconds(lambda argv: pb_record(data, [*GRAPH, "--no-loss"], argv)),
        "overwrite": lambda: seconds(lambda argv: pb_record(data + "-o", [*GRAPH, "--overwrite"], argv)),
    }))
    served = lambda calls: {f: calls.get(f, 0) for f in ("getCommand", "lookupKeyReadWithFlags", "processCommand", "call")}
    counts(bench, "redis", lambda: pb_calls(data), lambda: uftrace_calls(udata), exact=False)
    try:
        same_calls(bench, "redis, the command path", served(pb_calls(data)), served(uftrace_calls(udata)), True)
    except Unavailable:
        pass
