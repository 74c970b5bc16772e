# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of eBPF programs that are interrupted by signals or left by jumps, that run in forked children
and under seccomp filters, or that read clocks in several threads."""
import errno
import os
import re
import signal
import subprocess

import pbtest
from pbtest import PATCHBAY, Failure, Skip
from attached import maps_of, trace, wait_for


def test_forked(p):
    """If a child dies while it runs an eBPF program, the parent's eBPF programs aren't blocked."""
    r = trace(p, "forked", argv=[p.build("forked", "forked.c")])
    n = len(re.findall(r"^== map: ring ", r.out.decode(errors="replace"), re.M))
    if r.status != 9 or n != 51:
        raise Failure("status %d, %d records, not 51\n%s" % (r.status, n, pbtest.tail(r.err)))
    return "%d records" % n


def test_outlived(p):
    """A child that makes no call lives longer than its parent. If the parent dies while it runs an eBPF
    program, the records after the parent's half-done one aren't held up."""
    needs_system_calls()
    argv = [PATCHBAY, "bpf", "trace", "--hex", p.objects["forked"], "--", p.build("forked", "forked.c"), "outlived",
            str(pbtest.patience(200))]
    command = subprocess.Popen(argv, cwd=p.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        shown = wait_for(command.stdout, rb"(?s)(== map: ring .*){11}")
        os.kill(int(re.search(rb"sleeper (\d+)\n", shown).group(1)), signal.SIGKILL)  # fails if the child is gone
        out, err = command.communicate(timeout=pbtest.patience(60))
    finally:
        pbtest.kill_group(command)
    if command.returncode != 128 + signal.SIGKILL or b"== map: ring" in out:
        raise Failure("status %d, %r\n%s" % (command.returncode, out[-300:], pbtest.tail(err)))
    return "11 records"


def test_let_go(p):
    """A child that isn't traced keeps no map of eBPF programs."""
    needs_system_calls()
    argv = [p.build("forked", "forked.c"), "maps"]
    for options, least in ([], 1), (["--no-fork"], 0):
        r = pbtest.record(os.path.join(p.work, "let_go.data"), argv, "--bpf", p.objects["forked"], *options, cwd=p.work)
        found = re.search(rb"^maps (\d+)$", r.out, re.M)
        if r.status or not found or (int(found.group(1)) > 0) != least:
            raise Failure("%s: status %d, %r\n%s" % (options, r.status, r.out[:300], pbtest.tail(r.err)))
    return ""


def test_filtered(p):
    """A seccomp filter is set before the program begins. The filter forbids system calls that
    helpers could make. The program can still end by a signal."""
    os.makedirs(os.path.join(p.work, "launcher"))
    argv = [p.build("launcher/filtered", "filtered.c", "-pthread", "-DLAUNCHER"),
            p.build("filtered", "filtered.c", "-pthread")]
    r = trace(p, "filtered", argv=argv)
    counts = maps_of(r.out.decode(errors="replace")).get("counts", {})
    if r.status == 77:
        raise Skip("no seccomp")
    if r.status != 3 or counts != {1: 2000, 2: 2000, 3: 1000, 4: 2000, 5: 2000, 6: 2000, 7: 1000}:
        raise Failure("status %d, %s\n%s" % (r.status, counts, pbtest.tail(r.err)))
    for how, sig in ("fault", signal.SIGSEGV), ("raise", signal.SIGBUS):
        r = trace(p, "filtered", argv=[*argv, how])
        if r.status != 128 + sig:
            raise Failure("%s: status %d\n%s" % (how, r.status, pbtest.tail(r.err)))
    return "2000 calls"


def needs_system_calls():
    """Under a seccomp filter, the agent makes no system calls for eBPF programs."""
    with open("/proc/self/status") as f:
        if not re.search(r"^Seccomp:\s+0$", f.read(), re.M):
            raise Skip("there is a seccomp filter")


def test_clocks(p, calls):
    """Each clock has its own time, also if several threads read different clocks at the same time,
    and after the program has forbidden reading the TSC."""
    needs_system_calls()
    r = trace(p, "clocks", argv=[p.build("clocks", "clocks.c", "-pthread"), str(calls)])
    counts = maps_of(r.out.decode(errors="replace")).get("counts")
    if r.status or counts != {0: 2 * calls, 1: 0, 2: 0, 3: 0, 4: 1, 5: 0}:
        raise Failure("status %d, %s\n%s" % (r.status, counts, pbtest.tail(r.err)))
    return "%d calls" % (2 * calls)


def test_masks(p, how, calls):
    """A handler changes its mask or stack in a sigsuspend. All reads fail, and none ends the program."""
    r = trace(p, "masks", argv=[p.build("masks", "signals/masks.c"), how])
    got = maps_of(r.out.decode(errors="replace")).get("errors", {})
    if r.status or got != {errno.EFAULT: calls}:
        raise Failure("status %d, %s, not %d calls\n%s" % (r.status, got, calls, pbtest.tail(r.err)))
    return "%d calls" % calls


def test_jumping(p, *how):
    """If a handler jumps out of an eBPF program, later signals come. No per-CPU slot stays taken, and
    no record stays reserved, if the agent knows of the handler."""
    r = trace(p, "jumping", argv=[p.build("jumping", "signals/jumping.c"), *how])
    text = r.out.decode(errors="replace")
    last = re.findall(r"bpf_trace_printk: last (\d+)$", text, re.M)
    ring = re.findall(r"^(\w\w) 01 00 00 00 00 00 00$", text, re.M)
    cpu_slots = [int.from_bytes(bytes.fromhex(v), "little")
             for v in re.findall(r"^value \(CPU \d+\): ([0-9a-f ]+)$", text, re.M)]
    given_back = ring == ["%02x" % i for i in range(20)] and not cpu_slots[-1]
    if r.status or last != [str(i) for i in range(20)] or not (given_back or how):
        raise Failure("status %d, %d lines, %d records of the last calls, cpu_slots %s\n%s" %
                      (r.status, len(last), len(ring), cpu_slots, pbtest.tail(r.err)))
    return "%d calls" % sum(cpu_slots)


def test_deferred(p):
    """A signal that interrupts an eBPF program is delivered after the program, also if the program is
    in the vDSO, where it reads a clock or the processor's number."""
    needs_system_calls()
    r = trace(p, "deferred", argv=[p.build("deferred", "signals/deferred.c")])
    out = r.out.decode(errors="replace")
    came = re.search(r"^(\d+) signals$", out, re.M)
    counts = maps_of(out).get("counts")
    if r.status or not came or counts != {0: int(came.group(1)), 1: 0}:
        raise Failure("status %d, %s, %s\n%s" % (r.status, counts, came and came.group(), pbtest.tail(r.err)))
    return came.group()


def test_leaving(p, how):
    """If a handler jumps out of an eBPF program, the thread's next run at the same place of the stack
    gives back the record that the program has reserved."""
    needs_system_calls()
    r = trace(p, "leaving", argv=[p.build("leaving", "signals/leaving.c"), how, str(1000 * pbtest.patience(20))])
    if r.status:
        raise Failure("status %d\n%s" % (r.status, pbtest.tail(r.err)))
    return ""


def test_pushing(p, rounds):
    """If a handler jumps out of a change of a map, the thread's next run at the same place of the stack
    releases the lock of writers or the bucket."""
    needs_system_calls()
    r = trace(p, "pushing", "-q", argv=[p.build("pushing", "signals/pushing.c", "-pthread"), str(rounds)])
    if r.status or b"failed: 0 0\n" not in r.out:
        raise Failure("status %d, %r\n%s" % (r.status, r.out[-300:], pbtest.tail(r.err)))
    return "%d jumps" % rounds


def test_mask(p, how):
    """A handler jumps out of an eBPF program in which another signal was deferred. The mask that the
    agent has set for the eBPF program doesn't stay, but a mask that the jump or the target sets does."""
    needs_system_calls()
    r = trace(p, "jump_mask", argv=[p.build("jump_mask", "signals/jump_mask.c"), how])
    want = "came 1, USR1 0, USR2 %d, FPE %d\n" % (how == "restoring", how == "plain")
    if how == "raw":
        want = "came 200, USR1 0, USR2 0, FPE 0\n"
    if r.status or not r.out.decode(errors="replace").startswith(want):
        raise Failure("status %d, %r, not %r\n%s" % (r.status, r.out[:100], want, pbtest.tail(r.err)))
    return ""
