# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of `live --top` and of `stack` for a busy process of 16 threads. All threads, the
recorder and the reader share the processors. `stack` is called once a second. The cost of `top` is
measured in two ways:

- the number of calls per second, in a run that is only recorded and in a run whose calls are also read
  for the table. The user notices this difference, but the figure is noisy;
- the CPU time of the thread that reads, divided by the CPU time of the process in the same seconds."""
import glob
import os
import time
from harness import BENCH, Unavailable, compile_c, pb, pb_record, run

START, LEAST = 1, 2     # in seconds: when look() is called first, and how long the program must still run at that time
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
    add("calls per second, with top / recorded", ">= 0.99", rate, "top", "recorded", digits=3, unit="×")
    add("CPU time of the reader of top / of the process", "<= 1", percent("reader"), "top", unit="%")
    add("CPU time of the recorder of top / of the process", None, percent("recorder"), "top", unit="%")
    add("CPU time of record / of the process", None, lambda got: 100 * (got["recorder"] + got["reader"]), "recorded",
        unit="%")
    add("CPU time of stack once a second / of the process", "<= 1", percent("stack"), "stack", unit="%")
    add("CPU time of /bin/true once a second / of the process", None, percent("nothing"), "stack", unit="%")
