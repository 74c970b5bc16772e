# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the time of a hit with an eBPF program, compared with the kernel's uprobes. Also
measures the eBPF machine."""
import glob
import os
import re
import shutil
from harness import BENCH, BUILD, NOPS, Unavailable, compile_c, pb, run

CALLS = 3_000_000
SLOW_CALLS = 30_000         # for uprobes
PROGRAMS = {"nothing": ["-DNOTHING"], "update": [], "count": ["-DCOUNT"], "return": ["-DCOUNT", "-DRETURN"]}


def objects(bench):
    if not shutil.which("clang"):
        raise Unavailable("clang is not installed")
    made = {}
    for name, flags in PROGRAMS.items():
        made[name] = bench.path(name + ".bpf.o")
        run(["clang", "-g", "-O2", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", *flags, "-c",
             os.path.join(BENCH, "attached.bpf.c"), "-o", made[name]])
    return made


def bpftrace(bench, program):
    if not shutil.which("bpftrace") or os.geteuid():
        raise Unavailable("needs bpftrace and root")
    script = "uprobe:%s:leaf { @ = count(); }" % program
    done = run(["bpftrace", "-e", script, "-c", "%s %d" % (program, SLOW_CALLS)], bench.one, check=False)
    if "@: %d" % (5 * SLOW_CALLS) not in done.out:
        raise Unavailable("bpftrace: " + (done.err or done.out)[-200:].strip())
    return done.json()


def attached(bench):
    made = objects(bench)
    source = [os.path.join(BENCH, "attached.c")]
    plain, nops = compile_c(bench.path("plain"), source), compile_c(bench.path("nops"), source, NOPS)

    def ours(name):
        return run(pb("bpf", "trace", "-q", made[name], "--", plain, str(CALLS)), bench.one).json()

    rounds = bench.rounds({
        "bare": lambda: run([plain, str(CALLS)], bench.one).json(),
        **{name: lambda name=name: ours(name) for name in made},
        "uprobe": lambda: bpftrace(bench, plain),
        "uprobe-nop": lambda: bpftrace(bench, nops),
    })
    add = lambda what, limit, *names: bench.table.add_rounds("bpf", what, limit, rounds,
                                                             lambda b, t: t["call"] - b["call"], "bare", *names, unit="ns")
    add("a hit: a program that returns at once", None, "nothing")
    add("a hit: one hash update", "<= 60", "update")
    add("a hit: counted in a hash (lookup, atomic add)", None, "count")
    add("a return, counted in a hash", "<= 80", "return")
    add("bpftrace's count() on a uprobe", None, "uprobe")
    add("bpftrace's count() on a uprobe at a 5-byte nop", None, "uprobe-nop")


def tool(name):
    """Builds a bench program of the eBPF machine. The bench program needs root, because it also
    loads eBPF programs into the kernel."""
    if os.geteuid():
        raise Unavailable("needs root")
    run(["ninja", "-C", BUILD, "bench/" + name])
    return os.path.join(BUILD, "bench", name)


def of_machine(bench):
    """Compares the JIT with the kernel's JIT, and the interpreter with the JIT."""
    done = run([tool("bench_bpf"), "7" if bench.quick else "21"], bench.one)
    rows = {m[1]: [float(x) for x in m[2].split()] for m in
            re.finditer(r"^(\S.{23})((?: +-?[0-9.]+){6})$", done.out, re.M)}
    for name, (kernel, jit, interpreter, ratio, slower, entering) in rows.items():
        name = name.strip()
        bench.table.add("bpf", name + ": JIT / the kernel's", "<= 1.0", [ratio], note="%.2f and %.2f ns" % (jit, kernel))
        bench.table.add("bpf", name + ": interpreter / JIT", "<= 12", [slower])
    if not rows:
        raise Unavailable(done.out[-200:])


def of_maps(bench):
    """Compares Patchbay's maps with the kernel's maps. Also measures how operations scale to two threads or
    processes."""
    if bench.nr_cpus < 2:
        raise Unavailable("needs two processors")
    done = run([tool("bench_bpf_maps"), "3" if bench.quick else "7"], bench.two)
    rows = re.findall(r"^(\S.{13}) (\S.{17})((?: +-?[0-9.]+){10})$", done.out, re.M)
    for kind, work, figures in rows:
        kernel, ours, ratio, _, _, _, scale, threads, processes, _ = map(float, figures.split())
        what = "%s, %s" % (kind.strip(), work.strip())
        bench.table.add("bpf", what + ": ours / the kernel's", "<= 1.0", [ratio], note="%.1f and %.1f ns" % (ours, kernel))
        if kind.startswith("hash") and "same" not in kind:
            bench.table.add("bpf", what + ": two threads / one", ">= 1.8", [threads], note="the kernel %.2f" % scale)
            bench.table.add("bpf", what + ": two processes / one", ">= 1.8", [processes])
    if not rows:
        raise Unavailable(done.out[-200:])


def of_verifier(bench):
    """Measures the verification of the kernel's ten largest test programs. tests/bpf/load compiles
    them."""
    objects = glob.glob(os.path.join(BUILD, "bpf-objects", "**", "*.o"), recursive=True)
    if not objects:
        raise Unavailable("tests/bpf/load/run_objects makes the objects")
    done = run([tool("bench_bpf_verify"), *objects], bench.one)
    rows = re.findall(r"^(\S+) +(\S+) +(\d+) +\d+ +([0-9.]+) +([0-9.]+) +([0-9.]+)$", done.out, re.M)
    for path, program, insns, ours, kernel, ratio in rows:
        bench.table.add("bpf", "verifying %s of %s: ours / the kernel's" % (program, os.path.basename(path)), "<= 1.0", [float(ratio)],
                        note="%s instructions; %s and %s ms" % (insns, ours, kernel))
    if not rows:
        raise Unavailable(done.out[-200:])
