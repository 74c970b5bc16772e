# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures two threads, deep recursion, a thousand threads, fifty thousand sites, and the start of
large programs: the rows with 10 in the table's first column."""
import os
import re
import shutil
import subprocess
import time
from harness import ANY, BENCH, NOPS, ROOT, Unavailable, compile_c, environment, pb_control, pb_traced, run
from part_cost import DISABLED, PATTERNS, disabled

GRAPH = ["--tracer=function_graph"]


def threads(bench):
    if bench.nr_cpus < 2:
        raise Unavailable("two processors are needed")
    program = [compile_c(bench.path("cost"), [os.path.join(BENCH, "cost.c")], NOPS), "threads", "7" if bench.quick else "21"]
    rounds = bench.rounds({
        "bare": lambda: run(program, bench.two).json(),
        "overwrite": lambda: pb_traced(bench.path("data"), ["--overwrite", *GRAPH, *PATTERNS], program,
                                       {"calls": ANY}, cpus=bench.two).json(),
    })
    add = lambda *a, **more: bench.table.add_rounds(10, a[0], a[1], rounds, a[2], *a[3:], **more)
    add("two threads / one: calls per second of the limit loop", None, lambda b: b["limit"], "bare", unit="×")
    for f in ("leaf", "fib"):
        add(f"two threads / one: traced {f}", None, lambda p: p[f], "overwrite", unit="×")
        add(f"two threads / one: traced {f}, divided by the limit loop in the same run", ">= 0.95", lambda p: p[f] / p["limit"], "overwrite", digits=3)


def depth(bench):
    """Measures the time of a million calls that nest a million deep, divided by the time of a
    million calls that nest a thousand deep."""
    source = os.path.join(ROOT, "tests", "e2e", "hostile", "stacks", "deep_recursion.c")
    program = [compile_c(bench.path("deep_recursion"), [source], "-w")]
    figures = lambda done: {k: int(v) for k, v in re.findall(r"^figure (\w+) (\d+)$", done.err, re.M)}
    traced = lambda *options: figures(pb_traced(bench.path("data"), ["--all", "--overwrite", "-b", "256M", *options], program,
                                                {"calls": (6_003_003, 6_100_000)}, cpus=bench.one))
    rounds = bench.rounds({
        "bare": lambda: figures(run(program, bench.one)),
        "traced": lambda: traced(),
        "timeless": lambda: traced("--clock=none"),
    })
    for name, what, limit in (("bare", "bare", None), ("traced", "traced", "<= 2.0"), ("timeless", "traced, --clock=none", "<= 2.0")):
        bench.table.add_rounds(10, f"a million frames deep / a thousand: {what}", limit, rounds, lambda f: f["deep"] / f["shallow"], name)


def idle(bench):
    """Measures the memory of an idle thread. 1,000 threads are started. The figure is the
    growth of memory for each thread, minus the growth in the bare program."""
    cost = compile_c(bench.path("cost"), [os.path.join(BENCH, "cost.c")], NOPS)
    for what, calls in (("a thread that made no traced call", "0"), ("a thread that made one", "1"),
                        ("a thread that made 10,000", "10000")):
        argv = [cost, "idle", "1000", calls]
        rounds = bench.rounds({
            "bare": lambda: run(argv).json(),
            "traced": lambda: pb_traced(bench.path("data"), ["--overwrite", *GRAPH, *PATTERNS], argv, {"calls": ANY}).json(),
        })
        grown = lambda r, key: (r["after_" + key] - r["before_" + key]) / r["threads"]
        for text, key in (("private memory", "RssAnon"), ("ring pages", "RssShmem")):
            bench.table.add_rounds(10, f"{what}: {text}", None, rounds,
                                   lambda b, t: grown(t, key) - grown(b, key), "bare", "traced", unit="bytes", digits=0)


def compile_many(bench, sources, program, *options):
    """Compiles C files. Compiling takes long, so one compiler runs on each processor, with -O1 and
    without -g."""
    jobs = [["gcc", "-O1", *options, "-c", s, "-o", s[:-2] + ".o"] for s in sources]
    for i in range(0, len(jobs), bench.nr_cpus):
        for p in [subprocess.Popen(job, env=environment()) for job in jobs[i:i + bench.nr_cpus]]:
            if p.wait():
                raise Unavailable("the generated program does not compile")
    run(["gcc", *[s[:-2] + ".o" for s in sources], "-o", program])
    return program


def generate(bench, functions, files=10):
    """Makes a program with `functions` functions. Each function may call the function before it."""
    sources = []
    for k in range(files):
        sources.append(bench.path(f"many{k}.c"))
        first, last = functions * k // files, functions * (k + 1) // files
        with open(sources[-1], "w") as f:
            for i in range(first, last):
                down = f"x > 0 ? f{i - 1}(x - 1) + {i} : x" if i > first else f"x ^ {i}"
                f.write(f"__attribute__((noipa)) int f{i}(int x) {{ return {down}; }}\n")
    main = bench.path("many.c")
    lasts = [functions * (k + 1) // files - 1 for k in range(files)]
    with open(main, "w") as f:
        f.writelines(f"int f{i}(int);\n" for i in lasts)
        # If the program has arguments, they name two files. The program writes its PID to the first
        # file, and waits until the second file exists.
        f.write("#include <stdio.h>\n#include <unistd.h>\n"
                "int main(int argc, char **argv) { char c; int r = (" + " ^ ".join(f"f{i}(3)" for i in lasts) + ") == 1;\n"
                "if (argc > 1) { FILE *f = fopen(argv[1], \"w\"); fprintf(f, \"%d\", getpid()); fclose(f); "
                "while (access(argv[2], F_OK)) usleep(1000); } return r; }\n")
    return compile_many(bench, [*sources, main], bench.path("many"), NOPS)


def generate_at_random(bench, functions, files=10):
    """Makes a program from random_order.h and `functions` small functions."""
    sources = []
    for k in range(files):
        sources.append(bench.path(f"random{k}.c"))
        with open(sources[-1], "w") as f:
            f.writelines(f"__attribute__((noipa)) unsigned r{i}(unsigned x) {{ return x * {2 * i + 3}u ^ {i + 1}u; }}\n"
                         for i in range(functions * k // files, functions * (k + 1) // files))
    main = bench.path("random.c")
    with open(main, "w") as f:
        f.writelines(f"unsigned r{i}(unsigned);\n" for i in range(functions))
        f.write("static unsigned (*functions[])(unsigned) = {\n" + "".join(f"r{i},\n" for i in range(functions)) + "};\n")
        f.write(f'#include "{BENCH}/random_order.h"\n')
    return compile_many(bench, [*sources, main], bench.path("random"))


def at_random(bench):
    """Measures calls of many functions in random order. Neither the functions nor their stubs stay
    in the processor's first caches."""
    functions = 2_000 if bench.quick else 20_000
    program = [generate_at_random(bench, functions)]
    data, select, patched = bench.path("data"), ["-F", "r[0-9]*"], (functions, functions + 100)
    off = lambda name: disabled(bench, select, program, DISABLED[name], patched)

    def traced(*options):
        return pb_traced(data, ["--overwrite", *select, *options], program, {"calls": ANY, "patched": patched}, cpus=bench.one).json()

    rounds = bench.rounds({
        "bare": lambda: run(program, bench.one).json(),
        "graph": lambda: traced(*GRAPH),
        "timeless": lambda: traced(*GRAPH, "--clock=none"),
        "function": lambda: traced("--tracer=function"),
        "patched": lambda: off("disabled"),
        "off": lambda: off("tracing_on=0"),
    })
    add = lambda what, compute, *names: bench.table.add_rounds(10, f"{functions:,} functions in random order, {what}", None, rounds, compute, *names, unit="ns")
    add("a call, bare", lambda b: b["ns"], "bare")
    for what, name in (("traced", "graph"), ("traced, --clock=none", "timeless"), ("function tracer", "function"),
                       ("patched, disabled", "patched"), ("tracing_on=0", "off")):
        add(f"{what}, over bare", lambda b, t: t["ns"] - b["ns"], "bare", name)


def sites(bench):
    functions = 5_000 if bench.quick else 50_000
    program = generate(bench, functions)
    data = bench.path("data")

    def traced():
        expect = {"calls": ANY, "patched": (functions, functions + 100)}
        return pb_traced(data, ["--overwrite", *GRAPH], [program], expect, cpus=bench.two).info

    def live():
        """Records the program. While it runs, the original text of all sites is restored twice.
        Each time, the sites are patched again."""
        pid, go = bench.path("pid"), bench.path("go")
        for path in (pid, go):
            if os.path.exists(path):
                os.remove(path)

        def change(process):
            deadline = time.monotonic() + 30
            while not os.path.exists(pid) or not open(pid).read():
                if process.returncode is not None or time.monotonic() > deadline:
                    raise Unavailable("the program did not start")
                time.sleep(0.01)
            target = open(pid).read()
            for tracer in ("nop", "function_graph", "nop", "function"):
                pb_control(target, "current_tracer", tracer)
            open(go, "w").close()

        return pb_traced(data, ["--overwrite", "--serve", *GRAPH], [program, pid, go],
                         {"patched": (functions, functions + 100), "max_stop_ns": (1, 10**12)},
                         cpus=bench.two, meanwhile=change).info

    rounds = bench.rounds({"traced": traced, "live": live})
    add = lambda what, limit, compute, name="traced", **more: bench.table.add_rounds(10, what, limit, rounds, compute, name, **more)
    add(f"sites patched of {functions:,} functions", None, lambda i: i["patched"], digits=0)
    add(f"{functions:,} sites patched", "<= 50", lambda i: i["patch_ns"] / 1e6, unit="ms")
    add("the longest stop", "<= 5", lambda i: i["max_stop_ns"] / 1e6, "live", unit="ms")
    add("from the agent's first message to its last", None, lambda i: i["start_ns"] / 1e6, unit="ms")


def cc1(bench):
    """Measures the start of gcc's cc1, which is stripped. cc1 compiles an empty file. About 39,000
    functions of cc1 are patched. The variant `recorded` records all calls. The other traced
    variants record only the outermost call."""
    compiler = run(["gcc", "-print-prog-name=cc1"]).out.strip()
    if not os.path.isfile(compiler):
        raise Unavailable("gcc's cc1 is not here")
    empty = bench.path("empty.i")
    open(empty, "w").close()
    argv = [compiler, "-quiet", "-fpreprocessed", empty, "-o", bench.path("empty.s")]
    data, cache = bench.path("data"), bench.path("cc1-cache")

    def traced(cold, *options):
        if cold:
            shutil.rmtree(cache, ignore_errors=True)
        done = pb_traced(data, ["--overwrite", *options], argv, {"calls": ANY, "patched": (10_000, 10**6)},
                         cpus=bench.two, env={"XDG_CACHE_HOME": cache})
        return {"wall": done.wall, **done.info}

    quiet = [*GRAPH, "-D", "1"]
    rounds = bench.rounds({
        "bare": lambda: {"wall": run(argv, bench.two).wall},
        "first": lambda: traced(True, *quiet),
        "cached": lambda: traced(False, *quiet),
        "recorded": lambda: traced(False, *GRAPH),
    })
    add = lambda what, limit, compute, *names, **more: bench.table.add_rounds(10, what, limit, rounds, compute, *names, unit="ms", digits=0, **more)
    above = lambda b, t: (t["wall"] - b["wall"]) * 1e3
    add("cc1 bare, an empty file", None, lambda b: b["wall"] * 1e3, "bare")
    add("cc1, first time, over bare", "<= 1000", above, "bare", "first")
    add("cc1, analysis cached, over bare", "<= 150", above, "bare", "cached")
    add("cc1, cached, everything recorded, over bare", None, above, "bare", "recorded")
    add("cc1, first time: agent's start", None, lambda t: t["start_ns"] / 1e6, "first")
    add("cc1, cached: agent's start", None, lambda t: t["start_ns"] / 1e6, "cached")
    add("cc1, cached: patching", None, lambda t: t["patch_ns"] / 1e6, "cached")
    bench.table.add_rounds(10, "cc1: sites patched", None, rounds, lambda t: t["patched"], "cached", digits=0)


def large_start(bench, name, argv, first, cached):
    """Measures the start of one program. All functions of all its libraries are patched. Only the
    outermost call is recorded."""
    data, cache = bench.path("data"), bench.path("large-cache")

    def traced(cold):
        if cold:
            shutil.rmtree(cache, ignore_errors=True)
        done = pb_traced(data, ["--all", "--overwrite", *GRAPH, "-D", "1"], argv,
                         {"calls": ANY, "patched": (100_000, 10**7)}, cpus=bench.two, env={"XDG_CACHE_HOME": cache})
        return {"wall": done.wall, "cpu": done.cpu, **done.info}

    rounds = bench.rounds({
        "bare": lambda: {"wall": run(argv, bench.two).wall},
        "first": lambda: traced(True),
        "cached": lambda: traced(False),
    })
    add = lambda what, limit, compute, *names, **more: bench.table.add_rounds(10, f"{name}, all libraries: {what}", limit, rounds, compute, *names, **more)
    above = lambda b, t: t["wall"] - b["wall"]
    add("first start over bare", f"<= {first}", above, "bare", "first", unit="s")
    add("cached start over bare", f"<= {cached}", above, "bare", "cached", unit="s")
    add("CPU time of the first start", None, lambda t: t["cpu"], "first", unit="s")
    add("CPU time of a cached start", None, lambda t: t["cpu"], "cached", unit="s")
    add("patching", None, lambda t: t["patch_ns"] / 1e6, "cached", unit="ms")
    add("sites patched", None, lambda t: t["patched"], "cached", digits=0)


def large(bench):
    """Measures the start of two programs with very many functions: the first start, and a later
    start with a filled cache."""
    empty = bench.path("empty.c")
    open(empty, "w").close()
    found = False
    for name, argv, *limits in (("ffmpeg", ["-version"], 10, 1.5),
                                ("clang", ["-c", empty, "-o", bench.path("empty.o")], 3, 0.8)):
        program = shutil.which(name)
        if program:
            found = True
            large_start(bench, name, [program, *argv], *limits)
    if not found:
        raise Unavailable("neither ffmpeg nor clang is here")
