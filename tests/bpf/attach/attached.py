# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of attached eBPF programs share: building programs and objects, running `bpf trace`,
and reading the maps that it prints."""
import os
import re
import select
import subprocess
import time

import pbtest
from pbtest import PATCHBAY, Failure, Skip

HERE = os.path.dirname(os.path.abspath(__file__))


class Place:
    def __init__(self):
        self.work = pbtest.scratch("attach")
        self.left_before = maps_of_dead()       # of earlier runs that were killed
        self.target = self.build("target", "target.c", "-pthread")
        self.objects = {}
        for name in ("count", "print", "redis", "throwing", "loaded", "forked", "signals/jumping", "signals/leaving",
                     "signals/jump_mask", "signals/deferred", "signals/masks", "signals/pushing", "clocks", "filtered",
                     "names", "sized", "tails", "sections"):
            o = pbtest.bpf_object(os.path.join(HERE, name + ".bpf.c"), self.work)
            if not o:
                raise Skip("needs clang and libbpf's headers")
            self.objects[os.path.basename(name)] = o

    def build(self, name, source, *flags):
        out = os.path.join(self.work, name)
        compiler = "g++" if source.endswith(".cc") else "gcc"
        subprocess.run([compiler, "-O2", "-g", "-o", out, os.path.join(HERE, source), *flags], check=True)
        return out


def maps_of(text):
    """Parses the maps that `bpf trace` prints at its end. Returns a dictionary of elements for each
    map."""
    maps, name = {}, None
    for line in text.splitlines():
        m = re.match(r"(\S+) \(\w+\)$", line)
        if m:
            name = m.group(1)
            maps[name] = {}
        m = re.match(r"key: ([0-9a-f ]+?)  value: ([0-9a-f ]+)$", line)
        if m and name:
            maps[name][int.from_bytes(bytes.fromhex(m.group(1)), "little")] = \
                int.from_bytes(bytes.fromhex(m.group(2)), "little")
        m = re.match(r"value \(CPU \d+\): ([0-9a-f ]+)$", line)
        if m and name:
            maps[name]["cpu_slots"] = maps[name].get("cpu_slots", 0) + int.from_bytes(bytes.fromhex(m.group(1)), "little")
    return maps


def trace(p, name, *options, argv):
    r = pbtest.run([PATCHBAY, "bpf", "trace", "--hex", *options, p.objects[name], "--", *argv], 120, cwd=p.work)
    return r


def wait_for(pipe, pattern):
    """Waits until a command has printed the pattern. Returns what the command has printed."""
    said, end = b"", time.monotonic() + pbtest.patience(60)
    while not re.search(pattern, said):
        if time.monotonic() > end:
            raise Failure("the command doesn't print %r, but %r" % (pattern, said))
        if select.select([pipe], [], [], 1)[0]:
            said += (more := os.read(pipe.fileno(), 4096))
            if not more:
                raise Failure("the command has ended: %r" % said)
    return said


def runtime():
    """Returns the directory of pinned maps, or None if no process has made it yet."""
    run = os.environ.get("XDG_RUNTIME_DIR")
    for base in ([os.path.join(run, "patchbay")] if run else []) + ["/tmp/patchbay-%d" % os.geteuid()]:
        if os.path.isdir(os.path.join(base, "bpf")):
            return os.path.join(base, "bpf")
    return None


def maps_of_dead():
    """Returns the directories of maps whose process has ended."""
    found = os.listdir(runtime()) if runtime() else []
    return {d for d in found if re.match(r"(count|redis|print)-\d+$", d) and not alive(int(d.rsplit("-", 1)[1]))}


def alive(pid):
    return os.path.exists("/proc/%d" % pid)
