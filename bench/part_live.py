# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of `live --top` and of `stack` for a busy process of 16 threads. All threads, the
recorder and the reader share the processors. `stack` is called once a second. The cost of `top` is
measured in two ways:

- the number of calls per second of the process's CPU time, while the process is only recorded and while
  its calls are also read for the table. One process is attached to by `record` and by `top` in turn, so
  that a drift of the machine's speed cancels out. The calls per second of time are shown, too. They are
  noisy, because they also depend on which threads get the processors;
- the CPU time of the thread that reads, divided by the CPU time of the process in the same seconds."""
import glob
import os
import shutil
import subprocess
import time
from harness import BENCH, Unavailable, compile_c, end_group, environment, pb, pb_record, run, start_group

START, LEAST = 1, 2     # in seconds: when look() is called first, and how long the program must still run at that time
PAIRS = 21              # how often the rates with `top` and with `record` are compared; with --quick 2
READER = "patchbay-reader"


def cpu_of(pid, threads=lambda name: True):
    """Returns the CPU time of the process's threads whose names threads() accepts."""
    total = 0
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(task + "/comm") as comm, open(task + "/schedstat") as stat:
                total += int(stat.read().split()[0]) / 1e9 if threads(comm.read().strip()) else 0
        except OSError:
            continue            # the thread has ended
    return total


def child_of(pid):
    """Returns the PID of the process's only child."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()[0]


class Window:
    """Measures the CPU times of a recorder and of its program, from one call of look() to another. `each_second`
    has functions that are called once a second with the program's PID, and return a CPU time."""

    def __init__(self, seconds, **each_second):
        self.seconds, self.each_second = seconds, each_second

    def look(self):
        return {"program": cpu_of(self.pid), "reader": cpu_of(self.recorder, lambda name: name == READER),
                "recorder": cpu_of(self.recorder, lambda name: name != READER)}

    def __call__(self, recorder):
        time.sleep(START)
        self.recorder, self.pid = recorder.pid, child_of(recorder.pid)
        before, end = self.look(), time.monotonic() + self.seconds - LEAST
        extra = dict.fromkeys(self.each_second, 0)
        while (left := end - time.monotonic()) > 0:
            begun = time.monotonic()
            for name, function in self.each_second.items():
                extra[name] += function(self.pid)
            time.sleep(max(0, min(left, 1) - (time.monotonic() - begun)))
        spent = {key: value - before[key] for key, value in self.look().items()} | extra
        self.cost = {key: value / spent["program"] for key, value in spent.items()}


def measure(argv, cpus, window, **more):
    done = run(argv, cpus, meanwhile=window, **more)
    if not hasattr(window, "cost"):
        raise Unavailable("the program ended too early")
    return {**done.json(), **window.cost}


def with_stack(bench, program, seconds):
    sessions = bench.path("sessions")
    os.makedirs(sessions, 0o700, exist_ok=True)
    env = {"XDG_RUNTIME_DIR": sessions}

    def cpu(*argv):
        # not by taskset, whose own CPU time would count, too
        os.sched_setaffinity(0, {int(n) for n in bench.two.split(",")})
        return run(argv, env=env, name="stack").cpu

    window = Window(seconds, stack=lambda pid: cpu(*pb("stack", "-p", pid)), nothing=lambda pid: cpu("/bin/true"))
    return measure(pb_record(bench.path("data"), ["-q", "--serve"], program), bench.two, window, env=env)


class Busy:
    """A running busy.c, which is attached to again and again."""

    def __init__(self, bench, program):
        self.bench = bench
        self.process = start_group(["taskset", "-c", bench.two, program, "16", "0"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=environment())

    def calls(self):
        """Returns the number of calls so far, the CPU time of the process, and the time."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()), cpu_of(self.process.pid), time.monotonic()

    def check_attached(self):
        with open(f"/proc/{self.process.pid}/maps") as maps:
            if "patchbay-ring" not in maps.read():
                raise Unavailable("the process was not attached during the whole second")

    def rate(self, *argv):
        """Returns the calls per second of CPU time and the calls per second, during one second of an attach."""
        shutil.rmtree(self.bench.path("data"), ignore_errors=True)
        recorder = start_group(["taskset", "-c", self.bench.two, *pb(*argv, "-p", str(self.process.pid), "--for", "2500ms")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment())
        try:
            time.sleep(START)
            self.check_attached()
            before = self.calls()
            time.sleep(1)
            calls, cpu, seconds = (b - a for a, b in zip(before, self.calls()))
            self.check_attached()
        finally:
            recorder.wait()
        return calls / cpu, calls / seconds

    def ratio(self):
        """Returns the rates with `top`, divided by the means of the rates with `record` just before and just after."""
        record = ["record", "-q", "-d", self.bench.path("data")]
        before = self.rate(*record)
        top = self.rate("top", "-o", os.devnull)
        after = self.rate(*record)
        return [with_top / ((a + b) / 2) for with_top, a, b in zip(top, before, after)]


def ratios(bench, program):
    busy = Busy(bench, program)
    try:
        return [busy.ratio() for _ in range(2 if bench.quick else max(PAIRS, bench.runs))]
    finally:
        end_group(busy.process)
        busy.process.communicate()


def live(bench):
    seconds = 4 if bench.quick else 10
    program = [compile_c(bench.path("busy"), [os.path.join(BENCH, "busy.c")]), "16", str(seconds)]
    rounds = bench.rounds({
        "bare": lambda: run(program, bench.two).json(),
        "recorded": lambda: measure(pb_record(bench.path("data"), ["-q"], program), bench.two, Window(seconds)),
        "top": lambda: measure(pb("top", "-o", os.devnull, "--", *program), bench.two, Window(seconds)),
        "stack": lambda: with_stack(bench, program, seconds),
    })
    add = lambda name, limit, compute, *names, **more: bench.table.add_rounds(6, "16 busy threads: " + name, limit, rounds, compute,
                                                                              *names, **more)
    rate = lambda a, b: a["rate"] / b["rate"]
    percent = lambda key: lambda got: 100 * got[key]
    add("calls per second, recorded / bare", None, rate, "recorded", "bare", digits=3, unit="×")
    by_cpu, by_clock = zip(*ratios(bench, program[0]))
    bench.table.add(6, "16 busy threads: calls per second of its CPU time, with top / recorded", ">= 0.99", by_cpu, digits=3,
                    unit="×")
    bench.table.add(6, "16 busy threads: calls per second, with top / recorded", ">= 0.99", by_clock, digits=3, unit="×")
    add("CPU time of the reader of top / of the process", "<= 1", percent("reader"), "top", unit="%")
    add("CPU time of the recorder of top / of the process", None, percent("recorder"), "top", unit="%")
    add("CPU time of record / of the process", None, lambda got: 100 * (got["recorder"] + got["reader"]), "recorded",
        unit="%")
    add("CPU time of stack once a second / of the process", "<= 1", percent("stack"), "stack", unit="%")
    add("CPU time of /bin/true once a second / of the process", None, percent("nothing"), "stack", unit="%")
