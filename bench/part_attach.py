# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures for how long an attach and a detach stop a process. For comparison, the same process is
stopped by plain ptrace. Also measures the time from the command to the first record."""
import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import time
from harness import (BENCH, Unavailable, compile_c, end_group, environment, expect_info, pb, run, start_group)

STOPS = 100         # number of stops of each kind; with --quick 10
WARM = 3            # rounds that are dropped


def attach_once(bench, pid):
    """Attaches to a process for a moment. Returns two times in ms: the longest stop that the injector
    or the agent made, and the time from the start of the command until the recorder reports that all functions
    are patched."""
    data = bench.path("data")
    shutil.rmtree(data, ignore_errors=True)
    begin = time.monotonic()
    recorder = start_group(["taskset", "-c", bench.peer, *pb("record", "-p", str(pid), "-d", data, "--for", "20ms")],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    said = recorder.stderr.readline().decode()
    ready = time.monotonic() - begin
    recorder.communicate()
    if recorder.returncode or "is attached" not in said:
        raise Unavailable("record -p: " + said.strip())
    info = expect_info(data, ["record -p"], {})
    return info["max_stop_ns"] / 1e6, ready * 1000


def plain_stop(bench, tool, pid):
    return int(run(["taskset", "-c", bench.peer, tool, str(pid)]).out.split()[0]) / 1e6


def middle_and_worst(bench, subject, kinds):
    """Adds two rows for each kind: median and maximum. kinds: a list of (name, values in ms)."""
    for name, values in kinds:
        bench.table.add("attach", f"{subject}: {name}, middle", None, [statistics.median(values)], unit="ms")
        bench.table.add("attach", f"{subject}: {name}, worst of {len(values)}", None, [max(values)], unit="ms")


class Gaps:
    """The program gaps.c, which measures its own stops."""

    def __init__(self, bench):
        program = compile_c(bench.path("gaps"), [os.path.join(BENCH, "gaps.c")])
        self.process = start_group(["taskset", "-c", bench.one, program, "1"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=environment())
        self.pid = self.process.pid

    def longest(self):
        """Returns the longest gap since the last call, in ms."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1e6

    def during(self, work):
        self.longest()
        work()
        return self.longest()


def own_gaps(bench, tool, nr):
    """The thread of gaps.c has a processor for itself, so a gap is a time in which the thread was
    stopped."""
    gaps = Gaps(bench)
    attaches, plain, none = [], [], []
    try:
        for i in range(nr + WARM):
            values = (gaps.during(lambda: time.sleep(0.05)), gaps.during(lambda: plain_stop(bench, tool, gaps.pid)),
                      gaps.during(lambda: attach_once(bench, gaps.pid)))
            if i >= WARM:
                for to, value in zip((none, plain, attaches), values):
                    to.append(value)
    finally:
        end_group(gaps.process)
        gaps.process.communicate()
    middle_and_worst(bench, "longest gap that a thread sees", [("without a stop", none), ("plain ptrace stop", plain),
                                                               ("attach and detach", attaches)])


@contextlib.contextmanager
def loaded_redis(*options):
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        raise Unavailable("redis is not installed")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
    server = start_group(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", *options], **quiet)
    load = start_group(["sh", "-c", f"sleep 1; exec redis-benchmark -p {port} -c 50 -n 5000 -l -q -t set,get,incr,lpush,lpop"],
                       **quiet)
    try:
        time.sleep(2)
        yield server.pid
        if load.poll() is not None or server.poll() is not None:
            raise Unavailable("redis-server or redis-benchmark has ended")
    finally:
        for process in (load, server):
            end_group(process)
            process.wait()


def stops(bench):
    tool = compile_c(bench.path("plain_stop"), [os.path.join(BENCH, "..", "tests", "attach", "plain_stop.c")])
    nr = 10 if bench.quick else max(STOPS, bench.runs)
    own_gaps(bench, tool, nr)
    redis_stops(bench, tool, nr, "redis under load")
    redis_stops(bench, tool, nr, "redis with 3 I/O threads under load", "--io-threads", "3")


def redis_stops(bench, tool, nr, subject, *options):
    """redis has one busy thread by default. With I/O threads, it keeps all processors busy."""
    plain, attaches, ready = [], [], []
    with loaded_redis(*options) as pid:
        for i in range(nr + WARM):
            values = (plain_stop(bench, tool, pid), *attach_once(bench, pid))
            if i >= WARM:
                for to, value in zip((plain, attaches, ready), values):
                    to.append(value)
    middle_and_worst(bench, subject, [("plain ptrace stop", plain), ("the longest stop of a thread", attaches)])
    add = bench.table.add
    add("attach", f"{subject}: worst stop of an attach, beyond the worst plain stop", "<= 20",
        [max(attaches) - max(plain)], unit="ms")
    add("attach", f"{subject}: stop of an attach, middle", "<= 5", [statistics.median(attaches)], unit="ms")
    add("attach", f"{subject}: from the command until all functions are patched", "<= 150", ready, unit="ms")
