# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compiles the traced programs and the tools. Runs a tool under `bpf trace` or in the kernel."""
import glob
import os
import shutil
import subprocess

import pbtest
from pbtest import Failure, Skip
from found import Found, parse_oracle, parse_trace

HERE = os.path.dirname(os.path.abspath(__file__))


class Place:
    def __init__(self):
        if not shutil.which("clang") or not os.path.exists("/usr/include/bpf/bpf_helpers.h"):
            raise Skip("needs clang and libbpf's headers")
        self.work = pbtest.scratch("tools")
        self.programs, self.objects, self.dirs, self.oracle, self.cpu = {}, {}, 0, None, "v2"

    def source(self, name):
        """Returns the path of a source file, which may be in any of the folders here."""
        return glob.glob(os.path.join(HERE, "*", name))[0]

    def build(self, name):
        if name not in self.programs:
            out = os.path.join(self.work, name)
            # The tools unwind stacks by frame pointers, so the program has them. The tests read
            # addresses of functions from the file. With -no-pie, the running program has the same
            # addresses.
            subprocess.run(["gcc", "-O2", "-g", "-gbtf", "-no-pie", "-fno-omit-frame-pointer",
                            "-fno-optimize-sibling-calls", "-pthread", "-o", out,
                            self.source(name + ".c")],
                           check=True)
            self.programs[name] = out

    def object(self, name):
        """Returns the object, compiled for self.cpu, which is v2 or v3. For v3, the compiler also
        uses 32-bit arithmetic and 32-bit comparisons."""
        where = os.path.join(self.work, self.cpu)
        if (name, self.cpu) not in self.objects:
            os.makedirs(where, exist_ok=True)
            self.objects[name, self.cpu] = pbtest.bpf_object(self.source(name + ".bpf.c"), where,
                                                             "-mcpu=" + self.cpu)
        return self.objects[name, self.cpu]

    def tool(self, name):
        path = shutil.which(name)
        if not path:
            raise Skip("needs %s" % name)
        return path

    def fresh_dir(self):
        self.dirs += 1
        path = os.path.join(self.work, "dir%d" % self.dirs)
        os.mkdir(path)
        return path

    def make_oracle(self):
        out = os.path.join(self.work, "oracle")
        r = subprocess.run(["gcc", "-O2", "-g", "-o", out, os.path.join(HERE, "oracle.c"), "-lbpf"],
                           stderr=subprocess.PIPE)
        if r.returncode:
            raise Failure("oracle.c: %s" % pbtest.tail(r.stderr))
        self.oracle = out


def symbols_of(path):
    out = subprocess.run(["nm", "-S", "--defined-only", path], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    rows = [l.split() for l in out.decode().splitlines()]
    return [(int(r[0], 16), int(r[1], 16), r[2], r[3]) for r in rows if len(r) == 4]


SECTIONS = {"b": ".bss", "d": ".data", "r": ".rodata"}


def prepare(tool, found):
    found.symbols = [(at, size, name)
                     for at, size, kind, name in symbols_of(tool.place.programs[tool.program])
                     if kind in "tT"]
    found.variables = {name: (SECTIONS[kind.lower()], at) for at, size, kind, name in
                       symbols_of(tool.place.object(tool.name)) if kind.lower() in SECTIONS}


def count(found, path):
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            w = line.rstrip("\n").split(" ", 2)
            if len(w) == 3:
                found.counted[w[0]][w[1]] = w[2]


def run_traced(tool):
    """Runs the tool under `bpf trace`."""
    found, place = Found(), tool.place
    prepare(tool, found)
    output = os.path.join(place.work, tool.name + ".output")
    if hasattr(tool, "run"):
        out, err = tool.run()
    else:
        argv = tool.command()
        r = pbtest.run([*tool.trace(), *argv], 120, cwd=place.work,
                       env=pbtest.clean_env(OUTPUT=output))
        out, err = r.out, r.err
    found.stderr = err.decode(errors="replace")
    if os.path.exists(output):
        count(found, output)
    parse_trace(out.decode(errors="replace"), found)
    return found


def run_kernel(tool):
    """Runs the tool in the kernel: oracle.c loads the object and attaches its programs."""
    found, place = Found(), tool.place
    prepare(tool, found)
    found.by_kernel = True
    output = os.path.join(place.work, tool.name + ".kernel")
    argv = tool.command()
    r = pbtest.run([place.oracle, *tool.options(), place.object(tool.name), "--", *argv], 120,
                   cwd=place.work,
                   env=pbtest.clean_env(OUTPUT=output, PATH=place.work + ":" + os.environ["PATH"]))
    found.stderr = r.err.decode(errors="replace")
    if r.status:
        raise Failure("the kernel's run: status %d\n%s" % (r.status, pbtest.tail(found.stderr)))
    if os.path.exists(output):
        count(found, output)
    parse_oracle(r.out.decode(errors="replace"), found)
    return found
