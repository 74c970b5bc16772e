# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tools that trace the requests of requests/requests.c, and read its structures."""
import collections

from pbtest import Failure
from found import text_of, unpack
from tool import SLOTS, Tool, log2, nonzero, numbers


class Iolat(Tool):
    program, argv, btf = "requests", ("25",), True

    def hists(self, found):
        return {unpack("II", k): unpack("32IQ", v) for k, v in found.values("hists")}

    def summary(self, found):
        hists = self.hists(found)
        byte = collections.Counter()
        for (op, _), h in hists.items():
            byte[op] += h[SLOTS]
        return ({k: sum(h[:SLOTS]) for k, h in hists.items()}, dict(byte), found.variable("errors"),
                len(found.elements("starts")))

    def expected(self, found):
        n = {(op, urgent): int(v) for op in range(3) for urgent in range(2)
             for v in [found.counted["io%d" % op][str(urgent)]] if int(v)}
        return n, numbers(found.counted["bytes"]), int(found.counted["errors"]["all"]), 0

    def check(self, found):
        for kind, h in self.hists(found).items():
            if sum(h[:log2(300)]):
                raise Failure("%s: there are requests of less than 300 us: %s" % (kind, h))


class Fields(Tool):
    program, argv, btf = "requests", ("25",), True

    def summary(self, found):
        names = ("requests", "ids", "chained", "sectors", "bytes_of_previous", "size", "named")
        return [found.variable(v) for v in names] + [text_of(found.variable("last_name", "16s"))]

    def expected(self, found):
        rounds, n = 25, 200
        return [n, n * (n - 1) // 2, 7 * rounds, 0, rounds * sum(512 << k for k in range(7)),
                int(found.counted["size"]["of"]), n, "r7"]


class Slowquery(Tool):
    program, argv = "requests", ("10",)

    def summary(self, found):
        texts = collections.Counter(text_of(d[12:60]) for _, d in found.records)
        queries = found.variable("slow") + found.variable("quick")
        return texts["SELECT SLEEP()"], queries, len(found.elements("starts"))

    def expected(self, found):
        return 10, 40, 0

    def check(self, found):
        if any(unpack("Q", d[:8]) < 10000000 for _, d in found.records):
            raise Failure("a query below the threshold")
        if len(found.records) != found.variable("slow"):
            raise Failure("%d records, but %d slow queries were counted" %
                          (len(found.records), found.variable("slow")))


class Gcpause(Tool):
    program, argv = "requests", ("12",)

    def summary(self, found):
        slow = collections.Counter(unpack("QIIII", d[:24])[2] for _, d in found.records)
        return found.u64("generations"), slow[2], len(found.elements("begins"))

    def expected(self, found):
        return numbers(found.counted["gc"]), int(found.counted["gc"]["2"]), 0

    def check(self, found):
        if any(unpack("Q", d[:8]) < 2000 for _, d in found.records):
            raise Failure("a pause below the threshold")


class States(Tool):
    program, argv = "requests", ("15",)

    def summary(self, found):
        return nonzero(found.u64("counts"))

    def expected(self, found):
        n = [int(found.counted["state"][str(i)]) for i in range(4)]
        return nonzero({1: n[1] + n[3], 2: n[2], 3: n[3], 5: n[0] + 1})


class Numbers(Tool):
    program, argv = "requests", ("6",)

    def summary(self, found):
        hists = [nonzero(found.u64(m)) for m in ("small", "large")]
        return [found.variable(v) for v in ("taken", "given", "none", "pushed")], hists

    def expected(self, found):
        return [48, 48, 0, 48], [{9: 6, 10: 6, 11: 6, 12: 6}, {13: 6, 14: 6, 15: 6, 16: 6}]


TOOLS = (Iolat, Fields, Slowquery, Gcpause, States, Numbers)
