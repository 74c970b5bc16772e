# SPDX-License-Identifier: LGPL-2.1-or-later
"""Takes the processor from a process for some seconds. The process stays runnable, but shares one
processor with spinners, which get nearly all of the processor's time. A thread that only sends
heartbeats needs less than a thousandth of this time. So there are several spinners. The kernel may
schedule each session as a group, so each spinner has a session of its own."""
import contextlib
import multiprocessing
import os
import time

NR_SPINNERS = 4
WAIT_S = 60     # a spinner whose test was killed ends after this time


def schedule(pid, policy, nice, cpus):
    """Changes how the threads of a process are scheduled. The nice value is that of the process's
    session, and has no effect if sessions aren't scheduled as groups."""
    for tid in map(int, os.listdir("/proc/%d/task" % pid)):
        with contextlib.suppress(ProcessLookupError):   # the thread has ended
            os.sched_setaffinity(tid, cpus)
            os.sched_setscheduler(tid, policy, os.sched_param(0))
    with contextlib.suppress(OSError):      # a kernel without such groups, or the process has ended
        with open("/proc/%d/autogroup" % pid, "w") as f:
            f.write(str(nice))


def spin(cpu, seconds, go):
    os.setsid()
    schedule(os.getpid(), os.SCHED_OTHER, -20, {cpu})
    if not go.wait(WAIT_S):
        return
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


class Spinners:
    """Processes that keep a processor busy for some seconds, once. The constructor raises
    PermissionError if the caller may not raise priorities."""

    def __init__(self, cpu, seconds):
        fork = multiprocessing.get_context("fork")
        self.cpu, self.go = cpu, fork.Event()
        self.processes = [fork.Process(target=spin, args=(cpu, seconds, self.go)) for _ in range(NR_SPINNERS)]
        try:
            for s in self.processes:
                s.start()
                os.setpriority(os.PRIO_PROCESS, s.pid, -20)
        except PermissionError:
            self.end()
            raise

    def starve(self, pid, is_late):
        """Takes the processor from a process until the spinners end. If is_late() returns true,
        gives it back at once, and returns 0. Otherwise returns for how many seconds the process was
        starved."""
        begin = time.monotonic()
        schedule(pid, os.SCHED_IDLE, 19, {self.cpu})
        self.go.set()
        late = is_late()
        if late:
            self.end()
        for s in self.processes:
            s.join()
        schedule(pid, os.SCHED_OTHER, 0, os.sched_getaffinity(0))
        return 0 if late else time.monotonic() - begin

    def end(self):
        for s in self.processes:
            if s.pid:
                s.kill()
                s.join()
