# SPDX-License-Identifier: LGPL-2.1-or-later
"""For run_real. Counts all functions in the programs' modules, including the functions that are
refused for their instructions. Also counts the functions whose exits are all hooked. The share of
these functions among all functions must not be below a limit."""
import csv
import io
import os
import re
import shutil

import pbtest
from pbtest import Failure

# The least share, in percent, of functions whose exits are all hooked. ALL: the share of all
# functions together. MODULE: the share in each module with at least FROM functions.
ALL, MODULE, FROM = 96.0, 90.0, 50

# Modules that programs load by dlopen
LOADED = ["/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", "/usr/lib/jvm/java-17-openjdk-amd64/lib/libjava.so",
          "/usr/lib/python3/dist-packages/greenlet/_greenlet.cpython-311-x86_64-linux-gnu.so",
          "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
          "/usr/lib/x86_64-linux-gnu/ruby/3.1.0/continuation.so"]


def modules_of(program, found):
    path = shutil.which(program) or program
    path = os.path.realpath(path)
    if not os.path.exists(path):
        return
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return
    found.add(path)
    for line in pbtest.run(["ldd", path]).out.decode(errors="replace").splitlines():
        m = re.search(r"(/\S+) \(0x", line)
        if m:
            found.add(os.path.realpath(m.group(1)))


def count(path, not_sites):
    """Returns (number of functions, number of functions whose exits are all hooked)."""
    text = pbtest.view("list", "--total", "--format=csv", path).decode(errors="replace")
    rows = [(r["refused"], r["reason"], int(r["count"])) for r in csv.DictReader(io.StringIO(text))]
    named = {reason: n for name, reason, n in rows if not name}
    left_out = sum(n for name, _, n in rows if name in not_sites)
    return (named["functions"] - left_out,
            named["can be traced"] - named.get("of these, traced by their entries only", 0))


def exits(programs, not_sites):
    """programs: commands and files. not_sites: reasons for refusal. A function that is refused for
    one of these reasons doesn't count."""
    found = set()
    for program in [*programs, *LOADED]:
        modules_of(program, found)
    rows = [(os.path.basename(path), *count(path, not_sites)) for path in sorted(found)]
    functions, complete = sum(r[1] for r in rows), sum(r[2] for r in rows)
    share = 100.0 * complete / functions
    text = "%.2f %% of %d functions in %d modules" % (share, functions, len(rows))
    shares = sorted((100.0 * n / f, f, name) for name, f, n in rows if f >= FROM)
    low = ["%s (%.2f %% of %d)" % (name, s, f) for s, f, name in shares if s < MODULE]
    if low:
        raise Failure("%s; less than %.0f %% in %s" % (text, MODULE, ", ".join(low)))
    if share < ALL:
        raise Failure("%s; the limit is %.0f %%" % (text, ALL))
    return "%s; least in %s, %.2f %%" % (text, shares[0][2], shares[0][0])
