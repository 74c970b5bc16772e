# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tools that trace the functions of calls/calls.c."""
import collections
import os
import struct

from pbtest import Failure
from found import entry_chain, text_of
from place import run_traced
from tool import Refused, Tool, log2, nonzero, numbers, same


class Funclatency(Tool):
    def summary(self, found):
        hist = found.variable("hist", "32I")
        return sum(hist), found.variable("calls"), len(found.elements("starts"))

    def expected(self, found):
        naps = sum(int(n) for n in found.counted["nap"].values())
        return naps, naps, 0

    def check(self, found):
        hist = found.variable("hist", "32I")
        naps = {int(k): int(n) for k, n in found.counted["nap"].items()}
        for us in naps:
            least = sum(n for u, n in naps.items() if u >= us)
            if sum(hist[log2(us):]) < least:
                raise Failure("%d calls take %d us or more, in the histogram %s" %
                              (least, us, hist))
        if found.variable("total") < sum(u * n for u, n in naps.items()):
            raise Failure("the total of %d us is less than the time of all naps" % found.variable("total"))


class Argdist(Tool):
    argv = ("6", "20000")

    def summary(self, found):
        return nonzero(found.u64("sizes")), found.u64("kinds", "II")

    def expected(self, found):
        kinds = {(k, s): n for k in range(3)
                 for s, n in numbers(found.counted["kind%d" % k]).items()}
        return numbers(found.counted["size"]), kinds


class Lineardist(Tool):
    argv = ("4", "5000")
    maps = ("steps:max_entries=16",)

    def summary(self, found):
        return nonzero(found.u64("steps")), found.variable("below"), found.variable("above")

    def expected(self, found):
        steps, below, above = collections.Counter(), 0, 0
        for rest, n in numbers(found.counted["rest"]).items():
            if rest < 7:
                below += n
            elif (rest - 7) // 5 < 16:
                steps[(rest - 7) // 5] += n
            else:
                above += n
        return dict(steps), below, above


class Stackcount(Tool):
    """If two stacks hash to the same slot of the map, the second stack is lost. So the map has many
    slots. A value of 32 bytes holds only the four innermost addresses of a stack. These are
    addresses in the program itself, which are the same in each run. So each run uses the same
    slots."""
    maps = ("stacks:max_entries=16384,value_size=32",)

    def summary(self, found):
        chains = collections.Counter()
        for (_, _, number), n in found.u64("counts", "IIq").items():
            chains[found.chain("stacks", number)] += n
        return dict(chains), found.variable("lost"), found.variable("returns")

    def expected(self, found):
        chains = collections.Counter()
        for n, *chain in ((30, "leaf", "left", "walks", "main"),
                          (12, "leaf", "right", "walks", "main"),
                          (5, "leaf", "left", "both", "walks", "main"),
                          (5, "leaf", "right", "both", "walks", "main")):
            chains[entry_chain(found, *chain)[:4]] += n
        return dict(chains), 0, 40


class Callers(Tool):
    def summary(self, found):
        callers = collections.Counter()
        for address, n in found.u64("callers", "Q").items():
            callers[found.symbol(address - 1)] += n
        return dict(callers), [found.variable(v) for v in ("refused", "hits", "copied")]

    def expected(self, found):
        return {"left": 35, "right": 17}, [0, 52, 52]

    def check(self, found):
        same("last stack", found.names(found.variable("last_stack", "8Q")),
             entry_chain(found, "leaf", "right", "both", "walks", "main"))
        if not 1 <= len(found.elements("arguments")) <= 16:
            raise Failure("%d elements in an LRU map of 16" % len(found.elements("arguments")))


class Filters(Tool):
    globals = ("only_uid=%d" % os.getuid(), "filter_cgroup=false")
    out = ("only_comm=call", "only_tgid=7", "only_uid=%d" % (os.getuid() + 1))

    def summary(self, found):
        return [found.variable(v) for v in ("calls", "passed", "mains", "boots")]

    def expected(self, found):
        return [52, 52, 52, 52]

    def check(self, found):
        """Sets one constant after the other. Each setting in `out` must filter out all calls.
        only_comm=calls must let all calls pass."""
        if found.by_kernel:
            return
        # Patchbay has no struct task_struct, so a read of its fields fails and gives 0
        same("parent", found.variable("parent", "q"), 0)
        for setting in self.out + ("only_comm=calls",):
            self.globals = (setting,)
            passed = run_traced(self).variable("passed")
            same("passed with " + setting, passed, 52 if setting == "only_comm=calls" else 0)


class Strings(Tool):
    def summary(self, found):
        got = []
        for _, data in found.records:
            tid, number, length, comm, text, *stack = struct.unpack("<IIq16s64s4Q", data)
            got.append((number, length, text_of(comm), text_of(text), found.names(stack)))
        return got

    def expected(self, found):
        want = []
        for number, text in found.counted["say"].items():
            copied = text.encode()[:63]
            if text:
                want.append((int(number), len(copied) + 1, "calls", copied.decode(errors="replace"),
                             entry_chain(found, "say", "talkers", "main")))
        return want

    def check(self, found):
        if found.maps:
            same("dropped, skipped", [found.variable(v) for v in ("dropped", "skipped")], [0, 1])


class Loops(Tool):
    def texts(self, found):
        return [t.encode()[:95] for t in found.counted["say"].values()]

    def summary(self, found):
        return found.u64("letters"), [found.variable(v) for v in
                                      ("texts", "all_letters", "different", "most", "sums",
                                       "by_hand")]

    def expected(self, found):
        texts = self.texts(found)
        letters = collections.Counter(c for t in texts for c in t)
        return dict(letters), [len(texts), sum(letters.values()), len(letters),
                               max(letters.values()), sum(map(sum, texts)), sum(map(sum, texts))]


class Prints(Tool):
    kernel = False          # the kernel prints all programs' lines to one trace_pipe

    def summary(self, found):
        last = found.variable("last_line", "64s")
        return found.lines, text_of(last), found.variable("length", "q")

    def expected(self, found):
        lines = []
        for n, text in found.counted["say"].items():
            i, t = int(n), text.encode()[:23].decode(errors="replace")
            lines += ["say %d %s" % (i, t),
                      "%d %d %d %d %d %d %d %s" % (i, i + 1, i + 2, i + 3, i * 10, i << 8, -i, t),
                      "%d/%x/%s/%d" % (i, i + 250, t, 1 << 40)]
        return lines, lines[-1], len(lines[-1]) + 1


class Timers(Refused):
    thing = "bpf_timer"


class Locked(Refused):
    thing = "bpf_spin_lock"


TOOLS = (Funclatency, Argdist, Lineardist, Stackcount, Callers, Filters, Strings, Loops, Prints,
         Timers, Locked)
