# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs of language runtimes, for run_real. Each program is run bare, with its executable
traced, and with everything traced. If the runtime has libraries of its own, there is also a run
that traces the executable and these libraries. Output, exit status and files must be the same in
all runs. Most of the entered calls must have a duration. Calls of entry-only functions, calls that
a jump ended, and lost calls count as entered and have no duration."""
import collections
import csv
import hashlib
import io
import os
import re
import shutil

import pbtest
from pbtest import Failure, Skip

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtimes")
OPTIONS = ("-q", "--no-loss", "--max-size=0")
EXECUTABLE, EVERYTHING = (), ("--module=*",)
PYTHON = "/usr/bin/python3"     # the interpreter for which Debian's Python modules are installed

# At least this percentage of the calls must have a duration. ORDINARY: the limit for programs in C
# and C++. RUNTIME: the limit for the C and C++ parts of a runtime.
ORDINARY, RUNTIME = 99.0, 90.0


def source(name):
    return os.path.join(SOURCES, name)


class Part:
    """The calls of a module. Calls of functions that match `but` are left out, because no C
    compiler made these functions. At least `limit` percent of the other calls must have a
    duration."""

    def __init__(self, label, module, limit, but=None):
        self.label, self.module, self.limit = label, re.compile(module), limit
        self.but = re.compile(but) if but else None

    def holds(self, row):
        return self.module.fullmatch(row["module"]) and not (self.but and self.but.search(row["function"]))


class Program:
    """needs: {package: the command, file or Python module that shows that the package is
    installed}. build: commands that are run in the build directory; {} in argv stands for this
    directory. own: the modules of the runtime, besides the executable. quick: the last argument in
    quick runs; None: quick runs leave the program out. seconds: time limit of the bare run."""

    def __init__(self, argv, needs, parts, build=(), own=None, quick=None, seconds=60):
        self.argv, self.needs, self.parts, self.build = argv, needs, parts, build
        self.quick, self.seconds = quick, seconds
        self.ways = {"executable": EXECUTABLE}
        if own:
            self.ways["runtime"] = tuple("--module=" + m for m in own)
        self.ways["everything"] = EVERYTHING

    def missing(self):
        for package, sign in self.needs.items():
            if sign.startswith("import "):
                there = os.path.exists(PYTHON) and pbtest.run([PYTHON, "-c", sign]).status == 0
            else:
                there = os.path.exists(sign) if sign.startswith("/") else shutil.which(sign)
            if not there:
                yield package


# Functions that OCaml's compiler made, and the assembly functions of OCaml's runtime
OCAML = r"^caml([A-Z]|_(apply|curry|tuplify|send|call_gc|c_call|alloc[0-9N]|start_program|callback\w*_asm|raise_exn|" \
        r"raise_exception|hash_mix|system__|startup__|ml_array_bound))"
# Functions that GHC compiled from Haskell and Cmm. GHC gives these endings to the code of closures.
HASKELL = r"_(info|entry|ret|slow|fast|con_info|static_info)$|^stg_|^(base|ghczm|main|text|stm|Main)\w*_z?|^sub_"
# All functions except the C functions of cgo.go, of cgo, and of Go's runtime
GO_C = r"^(?!(one|down|compare|sorted|thread|threads|x_cgo_\w+|_cgo_[0-9a-f]+_C\w+)$)"

PROGRAMS = {
    "frames": Program(["{}/frames", "5000"], {"gcc": "gcc"}, [Part("it", "frames", ORDINARY)],
                      [["gcc", "-O0", "-g", "-rdynamic", "-o", "frames", source("frames.c")]], quick="500"),
    "unwind": Program(["{}/unwind", "200"], {"libunwind-dev": "/usr/include/x86_64-linux-gnu/libunwind.h"},
                      [Part("it", "unwind", ORDINARY)],
                      [["gcc", "-O1", "-g", "-o", "unwind", source("unwind.c"), "-lunwind"]], seconds=120),
    # No share is required: if a coroutine takes another coroutine's place on the stack, the calls
    # of the other coroutine end without a return.
    "shared_stack": Program(["{}/shared_stack", "200"], {"gcc": "gcc"}, [],
                            [["gcc", "-O2", "-o", "shared_stack", source("shared_stack.c")]], quick="20"),
    "node": Program(["node", "--expose-gc", source("gc.js"), "20"], {"nodejs": "node"},
                    [Part("C++", "node", RUNTIME, "^Builtins_")], quick="2"),
    # The text is anonymous memory. So V8 can't map its builtins a second time, and copies them.
    "node_large": Program(["node", "--use-largepages=on", "--expose-gc", source("gc.js"), "5"], {"nodejs": "node"},
                          [Part("C++", "node", RUNTIME)], quick="1"),
    "node_workers": Program(["node", source("workers.js"), "2000"], {"nodejs": "node"},
                            [Part("C++", "node", RUNTIME, "^Builtins_")]),
    "javac": Program(["javac", "-d", ".", source("Threads.java")], {"openjdk-17-jdk-headless": "javac"},
                     [Part("libjvm", r"libjvm\.so", RUNTIME)], own=["*libjvm*"], seconds=120),
    "java": Program(["java", "-Xmx40m", "-Xss512k", "-cp", "{}", "Threads", "100"],
                    {"openjdk-17-jdk-headless": "javac"}, [Part("libjvm", r"libjvm\.so", RUNTIME)],
                    [["javac", "-d", ".", source("Threads.java")]], own=["*libjvm*"], seconds=120),
    "greenlet": Program([PYTHON, source("switches.py"), "100"], {"python3-greenlet": "import greenlet"},
                        [Part("python", r"python3\.\d+", RUNTIME), Part("greenlet", r"_greenlet.*", RUNTIME)],
                        quick="20"),
    "gevent": Program([PYTHON, source("events.py"), "300"], {"python3-gevent": "import gevent"},
                      [Part("python", r"python3\.\d+", RUNTIME)]),
    "numpy": Program([PYTHON, source("arrays.py"), "60"], {"python3-numpy": "import numpy"},
                     [Part("python", r"python3\.\d+", RUNTIME), Part("numpy", r"_multiarray_umath.*", RUNTIME),
                      Part("lapack", r"lib(lapack|blas)\.so.*", RUNTIME)]),
    "ruby": Program(["ruby", "-W0", source("fibers.rb"), "50"], {"ruby": "ruby"},
                    [Part("libruby", r"libruby.*", RUNTIME)], own=["libruby*"]),
    "luajit": Program(["luajit", source("errors.lua"), "5000"], {"luajit": "luajit"},
                      [Part("luajit", "luajit", RUNTIME)], quick="200"),
    "ocaml": Program(["{}/lists", "3000"], {"ocaml-nox": "ocamlopt"}, [Part("C", "lists", RUNTIME, OCAML)],
                     [["cp", source("lists.ml"), "."], ["ocamlopt", "-g", "-o", "lists", "lists.ml"]]),
    # compiles lists.ml a hundred times, as so many modules in one file
    "ocamlopt": Program(["ocamlopt", "-c", "-o", "many.cmx", "{}/many.ml"], {"ocaml-nox": "ocamlopt"},
                        [Part("C", r"ocamlopt\.opt", RUNTIME, OCAML)],
                        [["sh", "-c", 'for i in $(seq 100); do echo "module M$i = struct"; cat "$0"; echo end; done >many.ml',
                          source("lists.ml")]]),
    # external linking makes a dynamic executable; a static one can't be traced
    "go": Program(["{}/goroutines", "300"], {"golang-go": "go"}, [],
                  [["go", "build", "-ldflags=-linkmode=external", "-o", "goroutines", source("goroutines.go")]]),
    # without symbols, Go's table is in a section with other data
    "go_stripped": Program(["{}/goroutines", "300"], {"golang-go": "go"}, [],
                           [["go", "build", "-buildmode=pie", "-ldflags=-s -linkmode=external", "-o", "goroutines",
                             source("goroutines.go")]]),
    "cgo": Program(["{}/cgo", "100"], {"golang-go": "go"}, [Part("C", "cgo", ORDINARY, GO_C)],
                   [["go", "build", "-o", "cgo", source("cgo.go")]]),
    "mono": Program(["mono", "{}/Traces.exe", "500"], {"mono-mcs": "mcs", "mono-runtime": "mono"},
                    [Part("mono", "mono-sgen", RUNTIME)], [["mcs", "-out:Traces.exe", source("Traces.cs")]]),
    "sbcl": Program(["sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load",
                     source("conditions.lisp"), "--quit"], {"sbcl": "sbcl"}, [Part("C", "sbcl", RUNTIME)]),
    "ghc": Program(["{}/sparks", "2000", "+RTS", "-N2"], {"ghc": "ghc"}, [Part("C", "sparks", RUNTIME, HASKELL)],
                   [["ghc", "-O", "-threaded", "-rtsopts", "-outputdir", ".", "-o", "sparks", source("Sparks.hs")]]),
    "erlang": Program(["erl", "-noinput", "-pa", "{}", "-s", "processes", "main", "300"], {"erlang-base": "erl"},
                      [Part("beam", r"beam\.smp", RUNTIME)], [["erlc", "-o", ".", source("processes.erl")]]),
}


def files_in(top):
    """Returns the files that a run left in its directory, as {path: digest}."""
    found = {}
    for where, _, names in os.walk(top):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, top)] = hashlib.sha256(f.read()).hexdigest()
    return found


def run_in(top, argv, seconds):
    """Runs a program in an empty directory. Returns (exit status, output, files), and stderr."""
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    r = pbtest.run(argv, seconds, cwd=top)
    return (r.status, r.out, files_in(top)), r.err


def compare(bare, traced, err):
    if traced[0] not in pbtest.shell_status(bare[0]):
        raise Failure("exit status %d, bare %d\n%s" % (traced[0], bare[0], pbtest.tail(err)))
    if bare[1] != traced[1]:
        raise Failure("output differs:\n  bare\n%s\n  traced\n%s" % (pbtest.tail(bare[1]), pbtest.tail(traced[1])))
    if bare[2] != traced[2]:
        different = {n for n, _ in set(bare[2].items()) ^ set(traced[2].items())}
        raise Failure("files differ: %s" % " ".join(sorted(different)))


def percent(timed, calls):
    return 100.0 * timed / calls if calls else 100.0


def account(data, parts, all_parts):
    """Returns a text with the number of entered calls and the share of them that have a duration.
    The text also counts the calls without a duration, by reason."""
    info = pbtest.info(data)
    calls, timed, inside = 0, 0, collections.defaultdict(lambda: [0, 0])
    for row in pbtest.report(data):
        calls += row["calls"]
        timed += row["timed"]
        for p in parts:
            if p.holds(row):
                inside[p][0] += row["calls"]
                inside[p][1] += row["timed"]
    entered = calls + info["lost"]
    shares = ", ".join("%s %.2f %%" % (p.label, percent(t, n)) for p, (n, t) in inside.items())
    # unmatched: calls that a jump ended, and calls that were still open at the end
    text = "%d entered, %.2f %% with durations%s; %d entry-only, %d unmatched, %d lost" % (
        entered, percent(timed, entered), " (%s)" % shares if shares else "", info["no_return"],
        calls - timed - info["no_return"], info["lost"])
    if all_parts and len(inside) < len(parts):
        raise Failure("%s; no call of %s" % (text, ", ".join(p.label for p in parts if p not in inside)))
    for p, (n, t) in inside.items():
        if percent(t, n) < p.limit:
            raise Failure("%s; the limit of %s is %.0f %%" % (text, p.label, p.limit))
    return text


class Bench:
    """One program. It is built, run bare once, and then traced in each way."""

    def __init__(self, name, work, args):
        self.program, self.quick, self.again = PROGRAMS[name], args.quick, args.bare
        self.dir = os.path.join(work, name)
        self.bare = None

    def argv(self):
        words = [w.replace("{}", self.dir) for w in self.program.argv]
        if self.quick and self.program.quick:
            words[-1] = self.program.quick
        return words

    def prepare(self):
        missing = list(self.program.missing())
        if missing:
            raise Skip("not installed: %s (scripts/setup --real)" % " ".join(missing))
        os.makedirs(self.dir)
        env = pbtest.clean_env(GOCACHE=os.path.join(self.dir, "cache"), GOFLAGS="-mod=mod")
        for command in self.program.build:
            r = pbtest.run(command, 300, cwd=self.dir, env=env)
            if r.status:
                raise Failure("%s: exit status %d\n%s" % (command[0], r.status, pbtest.tail(r.err)))
        self.bare, err = run_in(self.dir + "-bare", self.argv(), self.program.seconds)
        if self.bare[0]:
            raise Failure("bare: exit status %d\n%s" % (self.bare[0], pbtest.tail(err)))

    def run_bare(self):
        self.prepare()
        again, err = run_in(self.dir + "-again", self.argv(), self.program.seconds)
        compare(self.bare, again, err)
        return "%d bytes of output, %d files" % (len(again[1]), len(again[2]))

    def run(self, way):
        if self.bare is None:
            self.prepare()
        data = self.dir + "-%s.data" % way
        argv = pbtest.record_argv(data, self.argv(), *OPTIONS, *self.program.ways[way])
        got, err = run_in(self.dir + "-" + way, argv, self.program.seconds * 8)
        compare(self.bare, got, err)
        text = account(data, self.program.parts, way == "everything")
        if not pbtest.keeps_files():
            shutil.rmtree(data)
        return text


def run_all(names, work, args, tally):
    """Runs a test for each program and each way of tracing."""
    for name in names:
        program = PROGRAMS[name]
        if args.quick and not program.quick:
            continue
        bench = Bench(name, work, args)
        if args.bare:
            tally.test(name, bench.run_bare)
            continue
        for way in list(program.ways)[-1:] if args.quick else program.ways:
            tally.test("%s, %s" % (name, way), bench.run, way)
            if bench.bare is None:
                break           # the program isn't installed, or doesn't run bare
