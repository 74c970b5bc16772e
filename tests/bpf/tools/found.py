# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a tool found: the maps, records and lines of its report, and the counts of the program that
it traced."""
import collections
import os
import re
import struct

import pbtest
from pbtest import Failure


class Found:
    """A tool's report: maps by name (each a list of (key, [values])), records, lines."""

    def __init__(self):
        self.maps, self.records, self.lines = {}, [], []
        self.counted = collections.defaultdict(dict)
        self.said = []          # the program's lines
        self.symbols, self.variables, self.stderr = [], {}, ""
        self.by_kernel = False      # the kernel ran the tool (oracle.c)

    def elements(self, name):
        for known, elements in self.maps.items():
            if known == name or (name[0] == "." and known.endswith(name)):
                return elements
        raise Failure("no map %s among %s\n%s" % (name, sorted(self.maps),
                                                  pbtest.tail(self.stderr)))

    def u64(self, name, key="I"):
        """Returns the counters of a map: {key: sum over the CPUs}."""
        return {unpack(key, k): sum(unpack("Q", v) for v in values)
                for k, values in self.elements(name)}

    def values(self, name):
        return [(k, values[0]) for k, values in self.elements(name)]

    def variable(self, name, form="Q"):
        """Returns the value of a variable. For an array, returns the list of its values."""
        where, at = self.variables[name]
        got = struct.unpack_from("<" + form, self.elements(where)[0][1][0], at)
        return got[0] if len(got) == 1 else list(got)

    def symbol(self, address):
        best = None
        for start, size, name in self.symbols:
            if start <= address < start + size:
                best = name
        return best or "?"

    def names(self, addresses):
        """Returns the names of a stack's functions, without _start and without functions outside of
        the program."""
        names = [self.symbol(a - (i > 0)) for i, a in enumerate(addresses) if a]
        return tuple(n for n in names if n not in ("?", "_start"))

    def chain(self, stack_map, number):
        for k, v in self.values(stack_map):
            if unpack("I", k) == number & 0xffffffff:
                return self.names(struct.unpack("<%dQ" % (len(v) // 8), v))
        raise Failure("stack %d isn't in %s" % (number, stack_map))


def entry_chain(found, *names):
    """Returns the function names that a tool must find on the stack at the entry of names[0].
    `names` is the complete stack. At a function's entry, the frame pointer is still the caller's.
    Kernels before 6.11 unwind from this frame pointer, so their stack lacks the caller,
    names[1]."""
    release = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])
    return names[:1] + names[2:] if found.by_kernel and release < (6, 11) else names


def unpack(form, data):
    got = struct.unpack("<" + form, data)
    return got[0] if len(got) == 1 else got


def text_of(data):
    return data.split(b"\0")[0].decode(errors="replace")


ELEMENT = re.compile(r"^(key|value(?: \(CPU \d+\))?):(.*)$")


def parse_trace(text, found):
    """Parses the output of `bpf trace`. The output has the records first, and the maps at the
    end."""
    lines, i = text.splitlines(), 0
    elements = part = None
    while i < len(lines):
        line = lines[i]
        i += 1
        m = re.match(r"== (?:@\S+ CPU: \d+ )?map: (\S+) .*=====$", line)
        if m:
            data = b""
            while i < len(lines) and re.fullmatch(r"[0-9a-f]{2}(?: [0-9a-f]{2})* ?", lines[i]) and \
                    (not data or len(data) % 16 == 0):
                data += bytes.fromhex(lines[i])
                i += 1
            found.records.append((m.group(1), data))
            continue
        m = re.match(r" *\S.*-\d+ +\[\d{3}\] \.{5} +\d+\.\d{6}: bpf_trace_printk: (.*)$", line)
        if m:
            found.lines.append(m.group(1))
            continue
        m = re.match(r"(\S+) \((\w+)\)$", line)
        if m:
            elements = found.maps.setdefault(m.group(1), [])
            continue
        if elements is None:
            continue
        for piece in re.split(r"  (?=value)", line):
            m = ELEMENT.match(piece)
            if m and m.group(1) == "key":
                elements.append([bytearray(), []])
                part = elements[-1][0]
            elif m:
                if not elements:
                    elements.append([bytearray(), []])
                elements[-1][1].append(bytearray())
                part = elements[-1][1][-1]
            data = m.group(2) if m else piece
            if part is not None and re.fullmatch(r"(?: ?[0-9a-f]{2})+ ?", data):
                part += bytes.fromhex(data)
            elif not m:
                part = None
    for name, elements in found.maps.items():
        found.maps[name] = [(bytes(k), [bytes(v) for v in values]) for k, values in elements]


def parse_oracle(text, found):
    elements = None
    for line in text.splitlines():
        w = line.split(" ")
        if w[0] == "map":
            elements = found.maps.setdefault(w[1], [])
        elif w[0] == "element":
            elements.append((bytes.fromhex(w[1]), [bytes.fromhex(v) for v in w[2:]]))
        elif w[0] == "record":
            found.records.append((w[1], bytes.fromhex(w[2])))
