# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hit path's instructions, and which of them no stepped call reaches."""
import collections
import os
import re

import pbtest

# {symbol: the number of its instructions that aren't reached}. The reasons are in
# doc/design/interrupted-stubs.md, "Instructions that run_steps doesn't reach".
UNREACHED = {"pb_open_ret": 2, "pb_open_jump": 3, "pb_open_ret_none": 1, "pb_open_jump_none": 2, "pb_enter_cramped": 1,
             "pb_prog_entry": 6, "pb_open_lazy_nested": 1, "pb_function": 10}


def instructions():
    """Returns {address: (symbol, text)} of the hit path's instructions."""
    lib, symbol, out = os.path.join(os.path.dirname(pbtest.PATCHBAY), "libpatchbay.so"), None, {}
    r = pbtest.run(["objdump", "-d", "--no-show-raw-insn", "-j", "pb_hot", lib], 120)
    for line in r.out.decode().splitlines():
        m = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        symbol = m.group(1) if m else symbol
        m = re.match(r" +([0-9a-f]+):\t(.*)", line)
        # In the library's file, two instructions load a TLS word. In the process, one instruction
        # replaces both (hot_tls.c), so the second load isn't listed.
        if m and not re.match(r"(data16|cs|nop|int3|xchg *%ax,%ax|mov *%fs:\(%r..\),)", m.group(2)):
            out[int(m.group(1), 16)] = symbol, m.group(2).split("#")[0].strip()
    return out


def not_stepped(every, visited):
    """Returns the instructions that weren't visited, in symbols where more are missing than UNREACHED
    says."""
    left = [(a, *i) for a, i in sorted(every.items()) if a not in visited]
    nr = collections.Counter(i[1] for i in left)
    return [i for i in left if nr[i[1]] > UNREACHED.get(i[1], 0)]
