# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside gdb. For each function that the environment variable FUNCTIONS names, steps through
the function's stub up to the function's own text. If the function's exit has a stub, also steps
through the exit's stub. At each instruction gdb must unwind to main, and must find the right values
of main's registers."""
import os
import gdb

AGENT = ("pb_", "patchbay_handlers")    # the agent's code, and its copies
KEPT = ("rsp", "rbp", "rbx", "r12", "r13", "r14", "r15")


def frames():
    f, n = gdb.newest_frame(), 0
    while f is not None and n < 60:
        yield f
        f, n = f.older(), n + 1


def look():
    """Returns (names of the frames, main's registers)."""
    names, kept = [], None
    for f in frames():
        names.append(f.name())
        if f.name() == "main":
            kept = [int(f.read_register(r)) for r in KEPT]
            break
    return names, kept


def inside(pc, symbol):
    start = int(gdb.parse_and_eval("(unsigned long)&" + symbol))
    return start <= pc < start + 512


def steps(function):
    gdb.Breakpoint("*(char *)&patchbay_stub_" + function, temporary=True)
    gdb.execute("continue", to_string=True)
    stub = int(gdb.parse_and_eval("$pc"))
    want, faults, n, hits, before, returning = None, [], 0, 0, None, False
    while n < 800:
        pc = int(gdb.parse_and_eval("$pc"))
        names, kept = look()
        # hits: how often execution has come to the agent's code. If the stub also contains the
        # function's exit, execution comes to this code a second time at the exit
        hits += (names[0] or "").startswith(AGENT) and not (before or "").startswith(AGENT)
        before = names[0]
        returning |= hits == 2
        if returning and not (names[0] or "").startswith(AGENT):
            break
        want = want or kept
        where = "%s, %s" % (gdb.execute("x/i $pc", to_string=True).strip(), " ".join(str(x) for x in names))
        if kept is None:
            faults.append("main is not reached at " + where)
        elif kept != want:
            faults.append("main's %s differs at %s" % ([r for r, a, b in zip(KEPT, kept, want) if a != b], where))
        elif "middle" not in names:
            faults.append("middle is not there at " + where)
        if names[0] == function or names[0] == "leaf":
            break
        gdb.execute("stepi", to_string=True)
        n += 1
    else:
        faults.append("does not come to the function's text")
    exits = exit_steps(function, want, faults)
    print("EXIT %s %d" % (function, exits), flush=True)
    print("STEPS %s %d %s" % (function, n, "ok" if not faults else "FAULT " + faults[0]), flush=True)


def exit_steps(function, want, faults):
    """Steps through the exit of the same call, until the PC is neither in a stub nor in the agent.
    Returns the number of steps."""
    try:
        gdb.Breakpoint("*(char *)&patchbay_exit_" + function, temporary=True)
    except gdb.error:
        return 0
    gdb.execute("continue", to_string=True)
    for n in range(800):
        names, kept = look()
        if not (names[0] or "").startswith(("patchbay_exit_", *AGENT)):
            return n
        if kept != want or "middle" not in names:
            where = "%s, %s" % (gdb.execute("x/i $pc", to_string=True).strip(), " ".join(str(x) for x in names))
            faults.append("gdb doesn't reach main, or finds wrong registers, at " + where)
        gdb.execute("stepi", to_string=True)
    faults.append("does not leave the exit's stub")
    return n


gdb.execute("set pagination off")
gdb.execute("set confirm off")
for name in os.environ["FUNCTIONS"].split():
    try:
        steps(name)
    except gdb.error as e:
        print("STEPS %s 0 FAULT %s" % (name, e), flush=True)
