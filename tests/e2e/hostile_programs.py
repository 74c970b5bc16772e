# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compiles hostile programs (hostile/*/*) and runs them bare. Reads the directives in a program's
comments, which hostile.h describes."""
import glob
import os
import re
import subprocess
import time

import pbtest
from pbtest import Failure, Skip

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile")
DEFAULT_BUFFER = "64M"


class Program:
    def __init__(self, path, work, quick):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.folder = os.path.basename(os.path.dirname(path))
        self.dir = os.path.join(work, self.name)
        self.exe = os.path.join(self.dir, self.name)
        self.flags, self.libs, self.args, self.needs, self.quick, self.without = [], [], [], [], [], []
        self.slow = False
        self.plugin = self.stdin = None
        self.status, self.serve, self.timeout, self.buffer = 0, 0, 20, DEFAULT_BUFFER
        self.markers = self.paths = self.no_return = None
        self.lost = 0
        self.calls = []
        self.repeats = False        # whether build() adds a main() that repeats the program's
        self.way = "bare"           # the way in which the program was last run
        with open(path) as f:
            directives = [(m.group(1), m.group(2).split()) for m in re.finditer(r"^ \* @(\w+) ?(.*)$", f.read(), re.M)]
        # the others may have numbers that depend on the flags
        directives.sort(key=lambda d: d[0] not in ("flags", "quick"))
        for key, words in directives:
            self.directive(key, words)
            if key == "quick" and quick:
                self.flags += words

    def number(self, word):
        """Evaluates an expression. In it, a name is that of a macro which a -D among the flags defines."""
        return int(eval(word, {}, {m.group(1): int(m.group(2)) for m in re.finditer(r"-D(\w+)=(\d+)", " ".join(self.flags))}))

    def directive(self, key, words):
        if key in ("flags", "libs", "args", "needs", "quick"):
            getattr(self, key).extend(words)
        elif key == "slow" and words:
            self.without += words
        elif key == "slow":
            self.slow = True
        elif key in ("plugin", "buffer"):
            setattr(self, key, words[0])
        elif key in ("status", "serve", "timeout", "lost"):
            setattr(self, key, int(words[0]))
        elif key == "no_return":    # if eBPF programs run at returns, the last number is the limit
            self.no_return, self.no_return_bpf = self.number(words[0]), self.number(words[-1])
        elif key == "markers":
            self.markers, self.paths = self.number(words[0]), [w.split("/") for w in words[1:]]
        elif key == "calls":
            least = words[1].startswith(">=") and ">=" or ""
            self.calls.append([words[0], least + str(self.number(words[1][len(least):]))])
        elif key == "stdin":
            self.stdin = float(words[1])
        else:
            raise SystemExit("%s: unknown @%s" % (self.path, key))

    def build(self):
        os.makedirs(self.dir, exist_ok=True)
        cxx = self.path.endswith(".cc")
        common = ["-O2", "-g", "-D_GNU_SOURCE", "-pthread", "-w", "-fno-optimize-sibling-calls"]
        compiler = ["g++" if cxx else "gcc", *common, *self.flags]
        if self.repeats:
            made = self.exe + ".o"
            cmds = [[*compiler, "-c", "-o", made, self.path],
                    ["objcopy", "--redefine-sym", "main=program_main", made],
                    ["gcc", *common, "-c", "-o", self.exe + "_again.o", os.path.join(SOURCES, "again.c")],
                    [*compiler, "-o", self.exe, made, self.exe + "_again.o", *self.libs]]
        else:
            cmds = [[*compiler, "-o", self.exe, self.path, *self.libs]]
        if self.plugin:
            cmds.append(["gcc", *common, "-shared", "-fPIC", "-o", os.path.join(self.dir, "plugin.so"),
                         os.path.join(os.path.dirname(self.path), self.plugin)])
        for c in cmds:
            r = pbtest.run(c, 120)
            if r.status:
                raise Failure("does not compile\n%s" % pbtest.tail(r.err))

    def argv(self):
        return [self.exe, *self.args]


def run_bare(p):
    if p.stdin is None:
        r = pbtest.run(p.argv(), p.timeout, cwd=p.dir)
    else:
        r = run_until_byte(p)
    if r.status == 77:
        raise Skip("not here: %s" % r.err.decode(errors="replace").strip())
    if r.status != p.status:
        raise Failure("bare: exit status %d, not %d\n%s" % (r.status, p.status, pbtest.tail(r.err)))
    return r


def run_until_byte(p):
    """Runs a program that ends when it reads a byte. Sends the byte after a while."""
    proc = subprocess.Popen(p.argv(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            cwd=p.dir, env=pbtest.clean_env(), start_new_session=True)
    if not proc.stderr.readline().startswith(b"ready"):
        out, err = proc.communicate()
        raise Failure("bare: not ready\n%s" % pbtest.tail(err))
    time.sleep(p.stdin)
    try:
        out, err = proc.communicate(b"x", timeout=pbtest.patience(p.timeout))
    except subprocess.TimeoutExpired:
        pbtest.kill_group(proc)
        out, err = proc.communicate()
        raise Failure("bare: does not end\n%s" % pbtest.tail(err))
    return pbtest.Result(proc.returncode, out, err, 0)


def named(names, work, quick):
    """Returns the programs with these names, and the programs in folders with these names. Without
    names, returns all programs. Raises LookupError if a name is neither a program nor a folder."""
    files = [f for suffix in ("c", "cc") for f in glob.glob(os.path.join(SOURCES, "*", "*." + suffix))
             if os.path.basename(f) != "plugin.c"]
    programs = [Program(f, work, quick) for f in sorted(files, key=os.path.basename)]
    unknown = set(names) - {p.name for p in programs} - {p.folder for p in programs}
    if unknown:
        raise LookupError("no such program: %s" % ", ".join(sorted(unknown)))
    return [p for p in programs if not names or p.name in names or p.folder in names]
