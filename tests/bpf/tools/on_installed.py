# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tools that trace programs of other projects: gzip, sqlite3, redis-server."""
import collections
import os
import socket
import struct
import subprocess
import time

import pbtest
from pbtest import Failure
from found import text_of, unpack
from tool import SLOTS, Tool


def wait_port(port, process):
    for _ in range(pbtest.patience(200)):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
        if process.poll() is not None:
            break
    raise Failure("nobody listens at port %d\n%s" % (port, pbtest.tail(process.communicate()[1])))


class Sniff(Tool):
    """The data of gzip's writes must be gzip's output. A record has at most 8,192 bytes of a
    write."""
    globals = ("only_fd=-1",)

    def command(self):
        path = os.path.join(self.place.fresh_dir(), "text")
        with open(path, "wb") as f:
            state = 1
            for _ in range(150000):
                state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
                f.write(b"%x line %d\n" % (state >> 40, state >> 60))
        self.path = path
        return [self.place.tool("gzip"), "-kf", path]

    def summary(self, found):
        pieces = []
        for _, r in found.records:
            ns, tid, whole, length = struct.unpack_from("<QIII", r)
            pieces.append((whole, r[36:36 + length]))
        return pieces, found.variable("bytes"), found.variable("calls"), found.variable("failed")

    def expected(self, found):
        with open(self.path + ".gz", "rb") as f:
            data = f.read()
        pieces, at = [], 0
        for whole in [struct.unpack_from("<I", r, 12)[0] for _, r in found.records]:
            pieces.append((whole, data[at:at + min(whole, 8192)]))
            at += whole
        return pieces, len(data), len(found.records), 0

    def size(self, found):
        return "%d bytes in %d writes" % (found.variable("bytes"), found.variable("calls"))


class Sql(Tool):
    noise = r"Error: in prepare, no such function: missing\n.*\n.*\n"
    statements = ["CREATE TABLE t(a INTEGER, b TEXT)", "INSERT INTO t VALUES (1, 'one')",
                  "SELECT sum(a) FROM t WHERE b = 'one'", "DELETE FROM t",
                  "SELECT missing(a) FROM t"]

    def command(self):
        return [self.place.tool("sqlite3"), ":memory:", *[s + ";" for s in self.statements]]

    def summary(self, found):
        got = []
        for _, data in found.records:
            result, ns, text = struct.unpack("<qQ128s", data)
            got.append((result, text_of(text)))
        return [g for g in got if g[1].rstrip(";") in self.statements], len(found.elements("calls"))

    def expected(self, found):
        return [(1 if "missing" in s else 0, s + ";") for s in self.statements], 0


class Redislat(Tool):
    requests = 3000

    def run(self):
        place, (port, held) = self.place, pbtest.hold_port()
        server = place.tool("redis-server")
        bench = place.tool("redis-benchmark")
        argv = [*self.trace(), server, "--port", port, "--save", "", "--daemonize", "no"]
        p = subprocess.Popen(argv, cwd=place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=pbtest.clean_env(), start_new_session=True)
        try:
            wait_port(int(port), p)
            for test in ("set", "get", "incr"):
                r = pbtest.run([bench, "-p", port, "-n", str(self.requests), "-c", "10",
                                "-P", "4", "-t", test, "-q"], 120)
                if r.status:
                    raise Failure("redis-benchmark: %s" % pbtest.tail(r.err))
            pbtest.run(["redis-cli", "-p", port, "shutdown", "nosave"], 60)
            out, err = p.communicate(timeout=pbtest.patience(60))
            pbtest.note_late(err)
        finally:
            pbtest.kill_group(p)
        return out, err

    def summary(self, found):
        got = collections.Counter()
        total = collections.Counter()
        for k, values in found.elements("hists"):
            for v in values:
                h = unpack("32IQQ", v)
                got[unpack("I", k)] += h[SLOTS]
                total[unpack("I", k)] += sum(h[:SLOTS])
        return dict(got), dict(total)

    def expected(self, found):
        n = {i: self.requests for i in (1, 2, 3)}
        return n, n


TOOLS = (Sniff, Sql, Redislat)
