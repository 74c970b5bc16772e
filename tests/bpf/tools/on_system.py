# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tools that trace how a program uses the system: memory, locks, files, connections. The test
of payments is different: several processes run a pinned eBPF program."""
import collections
import os
import shutil
import struct
import subprocess

import pbtest
from pbtest import Failure, PATCHBAY
from found import text_of, unpack
from tool import SLOTS, Tool, nonzero


class Memleak(Tool):
    program, argv = "heap", ("40",)
    maps = ("blocks:max_entries=8192", "stacks:max_entries=16384,value_size=16")
    globals = ("min_size=1000",)
    sizes = (1234, 7770, 4321, 8765)

    def summary(self, found):
        left, chains, totals = collections.Counter(), collections.Counter(), collections.Counter()
        for _, v in found.values("blocks"):
            size, _, stack = unpack("QQi4x", v)
            if size in self.sizes:
                left[size] += 1
                chains[size, found.chain("stacks", stack)[0]] += 1
        for k, v in found.values("by_stack"):
            word = unpack("Q", v)
            name = (found.chain("stacks", unpack("Q", k)) + ("",))[0]
            if name.startswith(("keep", "drop")):
                totals[name] += word & (1 << 40) - 1
        return dict(left), dict(chains), nonzero(totals)

    def expected(self, found):
        kept = {int(k): int(v) for k, v in found.counted["kept"].items()}
        return kept, {(1234, "keep_small"): kept[1234], (7770, "keep_large"): kept[7770]}, \
            {"keep_small": 1234 * kept[1234], "keep_large": 7770 * kept[7770]}


class Mutexes(Tool):
    program, argv = "locks", ("4", "400")

    def summary(self, found):
        locks = [int(a, 16) for a in found.counted["locked"]]
        return {a: unpack("QQQQ16s", v)[0]
                for a, v in ((unpack("Q", k), v) for k, v in found.values("stats")) if a in locks}

    def expected(self, found):
        return {int(a, 16): int(n) for a, n in found.counted["locked"].items()}

    def check(self, found):
        for k, v in found.values("stats"):
            taken, waited, held, longest, comm = unpack("QQQQ16s", v)
            if longest > held or not taken or (longest and text_of(comm) != "locks"):
                raise Failure("%d times, held for %d ns, at most %d, by %s" %
                              (taken, held, longest, text_of(comm)))


class Poollat(Tool):
    program, argv = "locks", ("4", "300")

    def summary(self, found):
        hists = [unpack("32I16s", v) for _, v in found.values("hists")]
        return (sum(sum(h[:SLOTS]) for h in hists), {text_of(h[SLOTS]) for h in hists},
                found.variable("unknown"), found.variable("depth"), len(found.elements("queued")))

    def expected(self, found):
        return int(found.counted["jobs"]["all"]), {"locks"}, 0, 0, 0


class Waits(Tool):
    program, argv = "locks", ("4", "300")
    maps = ("stacks:max_entries=1024,value_size=16",)

    def summary(self, found):
        chains = collections.Counter()
        for k, v in found.values("blocked"):
            _, number = unpack("Ii", k)
            chains[found.chain("stacks", number)] += unpack("QQ16s", v)[0]
        return dict(chains), len(found.elements("starts"))

    def expected(self, found):
        return {("next_job", "worker"): int(found.counted["waited"]["all"])}, 0


class Payments(Tool):
    """Several processes run a pinned program at the same time."""
    kernel = False
    processes, runs = 4, 3000

    def run(self):
        where = "payments-%d" % os.getpid()
        r = pbtest.run([PATCHBAY, "bpf", "load", "-q", self.place.object(self.name), where], 60)
        try:
            if r.status:
                raise Failure("load: %s" % pbtest.tail(r.err))
            argv = [PATCHBAY, "bpf", "run", "-q", "-d", "00" * 100, "-r", str(self.runs), "pinned",
                    where + "/pay"]
            running = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                       for _ in range(self.processes)]
            for p in running:
                out = p.communicate(timeout=pbtest.patience(60))[0]
                if p.returncode:
                    raise Failure("run: %s" % pbtest.tail(out))
            r = pbtest.run([PATCHBAY, "bpf", "map", "dump", where + "/maps/accounts"], 60)
        finally:
            users = os.environ.get("XDG_RUNTIME_DIR")
            runtime = os.path.join(users or "/tmp",
                                   "patchbay" if users else "patchbay-%d" % os.geteuid())
            shutil.rmtree(os.path.join(runtime, "bpf", where), True)
        return b"accounts (array)\n" + r.out, r.err

    def summary(self, found):
        accounts = [unpack("4xIQQQ", v) for _, v in found.values("accounts")]
        rest = [a[3] - 2 * a[2] for a in accounts]
        return sum(a[1] for a in accounts), sum(a[0] for a in accounts), rest

    def expected(self, found):
        return self.processes * self.runs, 0, [0] * 4

    def check(self, found):
        if not all(unpack("4xIQQQ", v)[1] for _, v in found.values("accounts")):
            raise Failure("an account without payments")


class OnFiles(Tool):
    program = "files"

    def command(self):
        return [self.place.programs["files"], self.place.fresh_dir(), "6"]


class Opens(OnFiles):
    def summary(self, found):
        got = []
        for _, data in found.records:
            ns, tgid, uid, result, flags, comm, path = struct.unpack("<QIIii16s200s", data[:240])
            if "/dir" in text_of(path):
                got.append((text_of(path), result < 0, uid, text_of(comm)))
        return sorted(got)

    def expected(self, found):
        return sorted((path, int(n) < 0, os.getuid(), "files")
                      for path, n in found.counted["open"].items())


class Filedist(OnFiles):
    def summary(self, found):
        hists, n = found.variable("hists", "128I"), found.variable("bytes", "4Q")
        return [sum(hists[i * SLOTS:(i + 1) * SLOTS]) for i in (0, 1, 3)] + n[:2]

    def expected(self, found):
        return [int(found.counted[w]["all"]) for w in ("reads", "writes", "syncs")] + \
            [int(found.counted[w]["bytes"]) for w in ("read", "written")]


class Libcalls(OnFiles):
    kernel = False          # to libbpf, these sections name functions of the kernel, not of libc

    def summary(self, found):
        numbers = {unpack("I", k): unpack("QQ", v)[0] for k, v in found.values("by_number")}
        write = int(found.counted["address"]["write"], 16)
        return numbers, found.u64("by_address", "Q").get(write)

    def expected(self, found):
        syncs, writes = (int(found.counted[w]["all"]) for w in ("syncs", "writes"))
        return {0: 7, 1: 6, 2: 6, 3: syncs, 4: 3}, writes + 1


class Hostlat(OnFiles):
    def summary(self, found):
        got = []
        for _, data in found.records:
            ns, error, comm, host = struct.unpack("<Qi16s80s", data[:108])
            got.append((text_of(host), error, text_of(comm)))
        return got, len(found.elements("under_way"))

    def expected(self, found):
        return [(h, int(e), "files") for h, e in found.counted["host"].items()], 0


class Connlife(OnFiles):
    def summary(self, found):
        got = []
        for _, data in found.records:
            ns, sent, received, address, port, fd = struct.unpack("<QQQI2sxxi4x", data)
            got.append((sent, received, address, struct.unpack(">H", port)[0]))
        return got, len(found.elements("calls")), len(found.elements("conns"))

    def expected(self, found):
        port = int(found.counted["port"]["of"])
        return [(int(t), int(b), 0x100007f, port)
                for t, b in found.counted["connection"].items()], 0, 0

    def check(self, found):
        if any(not 0 < unpack("Q", d[:8]) < 10 ** 12 for _, d in found.records):
            raise Failure("a connection with an impossible duration")


TOOLS = (Memleak, Mutexes, Poollat, Waits, Payments, Opens, Filedist, Libcalls, Hostlat, Connlife)
