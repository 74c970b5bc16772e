#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the tables of the conformance suite. The tables have every opcode, with edge values as
operands. The expected results come from the model in this file. The model shares no code with the C
code.

  generate.py DIR

The build runs this script. run_conformance reads the files in the build directory.
"""
import os
import sys

M64, M32 = (1 << 64) - 1, (1 << 32) - 1

# --- the model: RFC 9669 ----------------------------------------------------------


def signed(v, bits):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def alu(op, a, b, bits):
    """Returns the register's value after `a op b` with operands of `bits` bits."""
    mask = (1 << bits) - 1
    a, b = a & mask, b & mask
    sa, sb = signed(a, bits), signed(b, bits)
    r = {
        "+=": lambda: a + b, "-=": lambda: a - b, "*=": lambda: a * b,
        "/=": lambda: a // b if b else 0, "%=": lambda: a % b if b else a,
        "s/=": lambda: quotient(sa, sb) if sb else 0,
        "s%=": lambda: sa - quotient(sa, sb) * sb if sb else sa,
        "|=": lambda: a | b, "&=": lambda: a & b, "^=": lambda: a ^ b,
        "<<=": lambda: a << (b % bits), ">>=": lambda: a >> (b % bits), "s>>=": lambda: sa >> (b % bits),
        "=": lambda: b,
    }[op]()
    return r & mask


def holds(op, a, b, bits):
    mask = (1 << bits) - 1
    a, b = a & mask, b & mask
    sa, sb = signed(a, bits), signed(b, bits)
    return {"==": a == b, "!=": a != b, ">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b, "&": bool(a & b),
            "s>": sa > sb, "s>=": sa >= sb, "s<": sa < sb, "s<=": sa <= sb}[op]


def sx(imm):
    """Returns the value of a 32-bit constant in a 64-bit instruction."""
    return signed(imm, 32) & M64


OPS = ["+=", "-=", "*=", "/=", "%=", "s/=", "s%=", "|=", "&=", "^=", "<<=", ">>=", "s>>=", "="]
NAMES = {"+=": "add", "-=": "sub", "*=": "mul", "/=": "div", "%=": "mod", "s/=": "sdiv", "s%=": "smod", "|=": "or",
         "&=": "and", "^=": "xor", "<<=": "lsh", ">>=": "rsh", "s>>=": "arsh", "=": "mov"}
SHIFTS = ("<<=", ">>=", "s>>=")
DIVISIONS = ("/=", "%=", "s/=", "s%=")
EDGES = [0, 1, 2, M64, M64 - 1, 0x7fffffff, 0x80000000, M32, 1 << 32, 1 << 63, (1 << 63) - 1, 0x123456789abcdef0]
PAIRS = [(a, b) for a in EDGES for b in (0, 1, M64, 0x80000000, 1 << 63, M32, 7)] + [
    ((1 << 63) - 1, (1 << 63) - 1), (1 << 63, M64), (0x80000000, M32), (100, M64 - 6), (M64 - 99, 7), (M64 - 99, M64 - 6)]
IMMS = [0, 1, -1, 7, -7, 127, 128, -128, -129, 0x7fffffff, -0x80000000]
COUNTS = [0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 0xff, M64, 1 << 32]


def hexed(v):
    return "0x%x" % (v & M64)


class File:
    def __init__(self, name, what):
        self.name = name
        self.text = ["# Made by generate.py: " + what]

    def block(self, name, asm, rows=None, **options):
        self.text.append("\n-- " + name)
        self.text += [l.strip() for l in asm.replace("; ", "\n").strip().split("\n")]
        for key, value in options.items():
            self.text.append("-- %s" % key if value is True else "-- %s: %s" % (key, value))
        if rows is not None:
            self.text.append("-- rows:")
            self.text += rows


FILES = []


def new(name, what):
    FILES.append(File(name, what))
    return FILES[-1]


# --- arithmetic --------------------------------------------------------------------

def arithmetic(bits):
    f = new("alu%d.cases" % bits, "arithmetic of %d bits by constants and by registers" % bits)
    r = "r" if bits == 64 else "w"
    for op in OPS:
        name = NAMES[op] + str(bits)
        pairs = [(a, b) for a in EDGES[3:] for b in COUNTS] if op in SHIFTS else PAIRS
        f.block(name + " by a register", "r1 = $1 ll; r2 = $2 ll; %s1 %s %s2; r0 = r1; exit" % (r, op, r),
                ["%s %s -> %s" % (hexed(a), hexed(b), hexed(alu(op, a, b, bits))) for a, b in pairs])
        f.block(name + " by itself", "r4 = $1 ll; %s4 %s %s4; r0 = r4; exit" % (r, op, r),
                ["%s -> %s" % (hexed(a), hexed(alu(op, a, a, bits))) for a in EDGES])
        refused, fine = [], []
        for imm in ([0, 1, 7, 8, 31, 32, 63, 64, -1] if op in SHIFTS else IMMS):
            for a in (0, 1, M64, 0x80000000, 1 << 63, 0x123456789abcdef0):
                row = "%s %d -> %s" % (hexed(a), imm, hexed(alu(op, a, sx(imm), bits)))
                bad = (op in SHIFTS and not 0 <= imm < bits) or (op in DIVISIONS and imm == 0)
                (refused if bad else fine).append(row)
        text = "r1 = $1 ll; %s1 %s $2; r0 = r1; exit" % (r, op)
        f.block(name + " by a constant", text, fine)
        if refused:
            f.block(name + " by an invalid constant", text, refused, kernel="refuses")


def unary():
    f = new("unary.cases", "negation, moves with sign, byte order")
    for r, bits in (("r", 64), ("w", 32)):
        f.block("neg%d" % bits, "r3 = $1 ll; %s3 = -%s3; r0 = r3; exit" % (r, r),
                ["%s -> %s" % (hexed(a), hexed(-a & ((1 << bits) - 1))) for a in EDGES])
        for width in (8, 16, 32)[:3 if bits == 64 else 2]:
            values = EDGES + [0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0xdeadbeefcafe80f0]
            rows = ["%s -> %s" % (hexed(a), hexed(signed(a, width) & ((1 << bits) - 1))) for a in values]
            f.block("movsx%d from %d bits" % (bits, width), "r2 = $1 ll; r0 = -1; %s0 = (s%d)%s2; exit" % (r, width, r), rows)
            f.block("movsx%d from %d bits, in place" % (bits, width),
                    "r8 = $1 ll; %s8 = (s%d)%s8; r0 = r8; exit" % (r, width, r), rows)
    values = [0, 1, 0x80, 0xff, 0x100, 0x1122334455667788, M64, 0x8000000000000000, 0x00ff00ff00ff00ff]
    for width in (16, 32, 64):
        low = (1 << width) - 1
        for word, swap in (("le", False), ("be", True), ("bswap", True)):
            rows = []
            for v in values:
                r = int.from_bytes((v & low).to_bytes(width // 8, "little"), "big") if swap else v & low
                rows.append("%s -> %s" % (hexed(v), hexed(r)))
            for reg in (0, 1, 6, 9):
                f.block("%s%d of r%d" % (word, width, reg),
                        "r%d = $1 ll; r%d = %s%d r%d; r0 = r%d; exit" % (reg, reg, word, width, reg, reg), rows)
    f.block("64-bit constants", "r7 = $1 ll; r0 = r7; exit",
            ["%s -> %s" % (hexed(v), hexed(v)) for v in EDGES + [0xffffffff80000000, 0xffffffff7fffffff]])


# Each register holds a different number. After the operation, a hash of all registers is compared.
def registers():
    f = new("registers.cases", "each operation with all pairs of registers, the others unchanged")
    start = [0x0123456789abcdef, 0x1111111111111111, 0x2222222222222200, 5, 3, 0x5555555555555555, 0x66, 0x7777, 13, 0x99999999]
    set_up = "\n".join("r%d = %s ll" % (i, hexed(v)) for i, v in enumerate(start))
    # the hash needs registers, so the program saves all registers on the stack first
    fold = "\n".join("*(u64 *)(r10 -%d) = r%d" % (8 * i + 8, i) for i in range(10)) + "\nr0 = 0\n" + "\n".join(
        "r0 *= 31\nr1 = *(u64 *)(r10 -%d)\nr0 += r1" % (8 * i + 8) for i in range(10)) + "\nexit"

    def folded(regs):
        r = 0
        for v in regs:
            r = (r * 31 + v) & M64
        return r

    for op in OPS:
        for letter, bits in (("r", 64), ("w", 32)):
            rows = []
            for d in range(10):
                for s in range(10):
                    regs = list(start)
                    regs[d] = alu(op, start[d], start[s], bits)
                    rows.append("%d %d -> %s" % (d, s, hexed(folded(regs))))
            f.block("%s%d of all registers" % (NAMES[op], bits),
                    "%s\n%s$1 %s %s$2\n%s" % (set_up, letter, op, letter, fold), rows)
    for op in OPS:
        for letter, bits in (("r", 64), ("w", 32)):
            rows = []
            for d in range(10):
                regs = list(start)
                regs[d] = alu(op, start[d], 11, bits)
                rows.append("%d -> %s" % (d, hexed(folded(regs))))
            f.block("%s%d of all registers by a constant" % (NAMES[op], bits),
                    "%s\n%s$1 %s 11\n%s" % (set_up, letter, op, fold), rows)


# --- memory ---------------------------------------------------------------------------

def pattern(n):
    return bytes((i * 37 + 0x81) & 0xff for i in range(n))


def memory():
    f = new("memory.cases", "loads and stores of each width at all distances, aligned or not")
    n = 400
    data = pattern(n)
    for width in (1, 2, 4, 8):
        offs = sorted({0, 1, 2, 3, 5, 7, 8, 13, 126, 127, 128, 129, 255, 256, n - width})
        rows = ["%d -> %s" % (o, hexed(int.from_bytes(data[o:o + width], "little"))) for o in offs]
        for dst, base in ((0, 1), (1, 1), (6, 1), (5, 7)):
            f.block("load of %d bytes to r%d from r%d" % (width, dst, base),
                    ("" if base == 1 else "r%d = r1\n" % base) + "r%d = *(u%d *)(r%d +$1)\nr0 = r%d\nexit"
                    % (dst, width * 8, base, dst), rows, mem=data.hex())
        neg = [o for o in offs if o + width <= 200]
        f.block("load of %d bytes at negative offsets" % width,
                "r8 = r1\nr8 += 200\nr0 = *(u%d *)(r8 -$1)\nexit" % (width * 8),
                ["%d -> %s" % (200 - o, hexed(int.from_bytes(data[o:o + width], "little"))) for o in neg], mem=data.hex())
        if width < 8:
            rows = ["%d -> %s" % (o, hexed(signed(int.from_bytes(data[o:o + width], "little"), width * 8))) for o in offs]
            for dst, base in ((0, 1), (1, 1), (9, 1), (4, 6)):
                f.block("signed load of %d bytes to r%d from r%d" % (width, dst, base),
                        ("" if base == 1 else "r%d = r1\n" % base) + "r%d = *(s%d *)(r%d +$1)\nr0 = r%d\nexit"
                        % (dst, width * 8, base, dst), rows, mem=data.hex())
        short = pattern(24)
        value = 0xf1e2d3c4b5a69788
        after = short[:5] + (value & ((1 << 8 * width) - 1)).to_bytes(width, "little") + short[5 + width:]
        f.block("store of %d bytes" % width,
                "r$2 = r1\nr$1 = %s ll\n*(u%d *)(r$2 +5) = r$1\nr0 = 0\nexit" % (hexed(value), width * 8),
                ["%d %d -> 0" % (src, base) for src in range(10) for base in (1, 6, 4, 0, 9) if src != base],
                mem=short.hex(), after=after.hex())
        f.block("store of %d bytes, a constant" % width,
                "r6 = r1\n*(u%d *)(r6 +3) = $1\nr0 = 1\nexit" % (width * 8),
                ["%d %s -> 1" % (imm, (sx(imm) & ((1 << 8 * width) - 1)).to_bytes(width, "little").hex())
                 for imm in (0, 1, -1, 127, 128, 0x7fffffff, -0x80000000, 0x12345678)],
                mem=short.hex(), after=short[:3].hex() + "$2" + short[3 + width:].hex())
        f.block("stack, %d bytes" % width, "*(u64 *)(r10 -$1) = 0\nr2 = %s ll\n*(u%d *)(r10 -$1) = r2\nr0 = *(u64 *)(r10 -$1)\nexit"
                % (hexed(value), width * 8),
                ["%d -> %s" % (o, hexed(value & ((1 << 8 * width) - 1))) for o in (8, 16, 120, 128, 136, 256, 472, 480)])
        f.block("all of the stack, %d bytes" % width,
                "*(u64 *)(r10 -512) = 0\nr2 = %s ll\n*(u%d *)(r10 -512) = r2\nr0 = *(u64 *)(r10 -512)\nexit"
                % (hexed(value), width * 8), result=hexed(value & ((1 << 8 * width) - 1)),
                verifier="no, with the caller's frame, which counts as at least 32 bytes, the stack is too large")


ATOMICS = {"+=": ("fetch_add", lambda a, b: a + b), "|=": ("fetch_or", lambda a, b: a | b),
           "&=": ("fetch_and", lambda a, b: a & b), "^=": ("fetch_xor", lambda a, b: a ^ b)}


def atomics():
    f = new("atomics.cases", "atomics on the stack, each width, with all registers")
    values = [(0, 0), (1, M64), (M64, 1), (0x7fffffff, 1), (0xffffffff, 1), (0x123456789abcdef0, 0x0fedcba987654321),
              (1 << 63, 1 << 63), (0xffffffff00000000, 0xffffffff)]
    for width in (4, 8):
        low = (1 << 8 * width) - 1
        wide = "64" if width == 8 else ""

        def kept(old, new):
            return (old & ~low & M64) | (new & low)

        for op, (word, fn) in ATOMICS.items():
            rows, fetched = [], []
            for a, b in values:
                new_value = kept(a, fn(a & low, b & low))
                rows.append("%s %s -> %s" % (hexed(a), hexed(b), hexed(new_value)))
                fetched.append("%s %s -> %s" % (hexed(a), hexed(b), hexed((new_value * 3 + (a & low)) & M64)))
            f.block("atomic %s of %d bytes" % (op, width), "r1 = $1 ll\n*(u64 *)(r10 -8) = r1\nr2 = $2 ll\n"
                    "lock *(u%d *)(r10 -8) %s r2\nr0 = *(u64 *)(r10 -8)\nexit" % (8 * width, op), rows)
            for src in (0, 1, 4, 5, 6, 9):
                f.block("atomic%s_%s with r%d" % (wide, word, src), "r1 = $1 ll\n*(u64 *)(r10 -16) = r1\nr%d = $2 ll\n"
                        "r%d = atomic%s_%s((u%d *)(r10 -16), r%d)\nr2 = *(u64 *)(r10 -16)\nr2 *= 3\nr2 += r%d\nr0 = r2\nexit"
                        % (src, src, wide, word, 8 * width, src, src), fetched)
            # accesses the stack through a copy of the frame pointer; each register in turn holds
            # the copy
            a, b = values[5]
            result = hexed(kept(a, fn(a & low, b & low)) * 3 + (a & low))
            f.block("atomic%s_%s with each register as the address" % (wide, word),
                    "r$1 = r10\nr$1 += -40\nr$3 = %s ll\n*(u64 *)(r$1 +8) = r$3\nr$2 = %s ll\n"
                    "r$2 = atomic%s_%s((u%d *)(r$1 +8), r$2)\nr$3 = *(u64 *)(r$1 +8)\nr$3 *= 3\nr$3 += r$2\nr0 = r$3\nexit"
                    % (hexed(a), hexed(b), wide, word, 8 * width),
                    ["%d %d %d -> %s" % (base, src, next(r for r in range(1, 10) if r not in (base, src)), result)
                     for base in range(10) for src in range(10) if base != src])
        rows = ["%s %s -> %s" % (hexed(a), hexed(b), hexed((kept(a, b) * 3 + (a & low)) & M64)) for a, b in values]
        for src in (0, 1, 3, 7, 8):
            f.block("atomic%s_xchg with r%d" % (wide, src), "r1 = $1 ll\n*(u64 *)(r10 -8) = r1\nr%d = $2 ll\n"
                    "r%d = atomic%s_xchg((u%d *)(r10 -8), r%d)\nr2 = *(u64 *)(r10 -8)\nr2 *= 3\nr2 += r%d\nr0 = r2\nexit"
                    % (src, src, wide, 8 * width, src, src), rows)
        rows = []
        for a, b in values:
            for expect in sorted({a, b, a & low, a ^ (1 << 40)}):
                same = expect & low == a & low
                new_value = kept(a, b) if same else a
                rows.append("%s %s %s -> %s" % (hexed(a), hexed(b), hexed(expect), hexed((new_value * 3 + (a & low)) & M64)))
        for src in (1, 2, 4, 6, 9):
            f.block("atomic%s_cmpxchg with r%d" % (wide, src), "r1 = $1 ll\n*(u64 *)(r10 -8) = r1\nr%d = $2 ll\nr0 = $3 ll\n"
                    "r0 = atomic%s_cmpxchg((u%d *)(r10 -8), r0, r%d)\nr3 = *(u64 *)(r10 -8)\nr3 *= 3\nr3 += r0\nr0 = r3\nexit"
                    % (src, wide, 8 * width, src), rows)


# --- jumps -----------------------------------------------------------------------------

CONDITIONS = ["==", "!=", ">", ">=", "<", "<=", "&", "s>", "s>=", "s<", "s<="]


def jumps():
    f = new("jumps.cases", "conditions of both widths at the edges, forward and backward, near and far")
    pairs = [(a, b) for a in EDGES for b in (0, 1, M64, 0x80000000, 1 << 63, (1 << 63) - 1)] + [(v, v) for v in EDGES]
    far = "\n".join(["r3 += 1"] * 60)
    for op in CONDITIONS:
        for r, bits in (("r", 64), ("w", 32)):
            name = "if %s, %d bits" % (op, bits)
            f.block(name, "r1 = $1 ll\nr2 = $2 ll\nr0 = 1\nif %s1 %s %s2 goto end\nr0 = 2\nend: exit" % (r, op, r),
                    ["%s %s -> %d" % (hexed(a), hexed(b), 1 if holds(op, a, b, bits) else 2) for a, b in pairs])
            f.block(name + ", constant", "r6 = $1 ll\nr0 = 1\nif %s6 %s $2 goto end\nr0 = 2\nend: exit" % (r, op),
                    ["%s %d -> %d" % (hexed(a), i, 1 if holds(op, a, sx(i), bits) else 2)
                     for a in EDGES for i in (0, 1, -1, 127, 128, -128, -129, 0x7fffffff, -0x80000000)])
            # r1 counts up from a; the result is the number of iterations, at most 5
            rows = []
            for a, b in ((0, 3), (M64 - 1, 1), ((1 << 63) - 2, 1 << 63), (0x7ffffffe, 0x80000000), (5, 5), (6, 5)):
                x, n = a, 0
                while True:
                    x, n = (x + 1) & M64, n + 1
                    if n == 5 or not holds(op, x, b, bits):
                        break
                rows.append("%s %s -> %d" % (hexed(a), hexed(b), n))
            f.block(name + ", backward", "r1 = $1 ll\nr2 = $2 ll\nr0 = 0\nagain: r1 += 1\nr0 += 1\nif r0 == 5 goto end\n"
                    "if %s1 %s %s2 goto again\nend: exit" % (r, op, r), rows)
            f.block(name + ", far", "r1 = $1 ll\nr2 = $2 ll\nr3 = 0\nif %s1 %s %s2 goto end\n%s\nend: r0 = r3\nexit" % (r, op, r, far),
                    ["%s %s -> %d" % (hexed(a), hexed(b), 0 if holds(op, a, b, bits) else 60)
                     for a, b in ((1, 2), (2, 1), (1, 1), (M64, 1))])
    for op in CONDITIONS:
        for r, bits in (("r", 64), ("w", 32)):
            rows = ["%d %d -> %d" % (d, s, holds(op, 9, 9 if s == d else M64 - 8, bits))
                    for d in range(10) for s in range(10) if s != d]
            f.block("if %s of all registers, %d bits" % (op, bits),
                    "r$1 = 9\nr$2 = -9 ll\nif %s$1 %s %s$2 goto yes\nr0 = 0\nexit\nyes: r0 = 1\nexit" % (r, op, r), rows)
            f.block("if %s of all registers and a constant, %d bits" % (op, bits),
                    "r$1 = -9\nif %s$1 %s 9 goto yes\nr0 = 0\nexit\nyes: r0 = 1\nexit" % (r, op),
                    ["%d -> %d" % (d, holds(op, M64 - 8, 9, bits)) for d in range(10)])
    for word in ("goto", "gotol"):
        f.block(word + " forward and backward", "r0 = 1\n%s b\na: r0 += 2\n%s c\nb: r0 += 4\n%s a\nc: r0 += 8\nexit"
                % (word, word, word), result="15")
        f.block(word + " +0", "r0 = 7\n%s pc+0\nexit" % word, result="7")
        f.block(word + " over much code", "r0 = 1\nr3 = 0\nif r2 == 0 goto a\n%s b\na: r0 += 2\nr0 += r3\nexit\n"
                "c: .times $1 r3 += 1\n%s a\nb: r0 += 4\nif r0 == 5 goto d\nd: %s c" % (word, word, word),
                ["%d -> %d" % (n, n + 7) for n in (1, 30, 31, 32, 33, 40, 41, 42, 43, 44, 1000)], mem="00000000")
    f.block("gotol over more than 32767 instructions", "r0 = 1\nr3 = 0\nif r2 == 4 goto a\nexit\na: gotol b\n"
            "c: .times 40000 r3 += 1\nr0 += r3\nexit\nb: r0 += 4\ngotol c", mem="00000000", result="40005")


# --- invalid instructions -----------------------------------------------------------------

def invalid():
    f = new("invalid.cases", "opcodes that don't exist, and fields that an instruction doesn't have")
    alu_class = {4: 32, 7: 64}
    known = set()
    for cls in alu_class:
        for op in range(0, 0xd0, 0x10):
            known |= {cls | op | 0, cls | op | 8}
    known -= {cls | 0x80 | 8 for cls in alu_class}           # neg by register
    known |= {0x04 | 0xd0, 0x04 | 0xd8, 0x07 | 0xd0}
    for cls in (5, 6):
        for op in range(0x10, 0xe0, 0x10):
            if op in (0x80, 0x90):
                continue
            known |= {cls | op, cls | op | 8}
    known |= {0x05, 0x06, 0x85, 0x95, 0xe5, 0x18, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50}
    for size in (0, 8, 0x10, 0x18):
        known |= {0x61 & 7 | 0x60 | size, 0x62 & 7 | 0x60 | size, 0x63 & 7 | 0x60 | size}
    known |= {0x81, 0x89, 0x91, 0xc3, 0xdb}
    for code in range(256):
        options = {"kernel": "no, newer kernels have may_goto"} if code == 0xe5 else {}
        if code not in known:
            f.block("opcode %#04x" % code, "r0 = 0\nr2 = 0\n.raw %#04x 0 0 0 0\nexit" % code, invalid=True, **options)
    fields = [
        ("neg with a constant", "0x87 0 0 0 1"), ("neg with a source", "0x87 0 1 0 0"), ("neg with an offset", "0x87 0 0 1 0"),
        ("neg32 with a constant", "0x84 0 0 0 1"),
        ("add by a register with a constant", "0x0f 0 2 0 1"), ("add by a register with an offset", "0x0f 0 2 1 0"),
        ("add by a constant with a source", "0x07 0 2 0 1"), ("add by a constant with an offset", "0x07 0 0 1 1"),
        ("sub with an offset", "0x1f 0 2 1 0"), ("xor with an offset", "0xaf 0 2 1 0"), ("div with offset 2", "0x3f 0 2 2 0"),
        ("mod with offset -1", "0x97 0 0 -1 3"), ("mov with offset 7", "0xbf 0 2 7 0"), ("mov with offset 64", "0xbf 0 2 64 0"),
        ("mov32 with offset 32", "0xbc 0 2 32 0"), ("mov by a constant with offset 8", "0xb7 0 0 8 1"),
        ("mov by a register with a constant", "0xbf 0 2 0 1"), ("byte order of 8 bits", "0xd4 0 0 0 8"),
        ("byte order of 0 bits", "0xdc 0 0 0 0"), ("byte order of 128 bits", "0xdc 0 0 0 128"), ("bswap of 24 bits", "0xd7 0 0 0 24"),
        ("byte order with a source", "0xdc 0 2 0 16"), ("byte order with an offset", "0xdc 0 0 1 16"),
        ("exit with a constant", "0x95 0 0 0 1"), ("exit with a source", "0x95 0 1 0 0"),
        ("exit with a destination", "0x95 1 0 0 0"), ("goto with a constant", "0x05 0 0 0 1"), ("goto with a destination", "0x05 1 0 0 0"),
        ("goto with a source", "0x05 0 1 0 0"), ("gotol with an offset", "0x06 0 0 1 0"),
        ("if by a register with a constant", "0x1d 0 2 0 1"), ("if by a constant with a source", "0x15 0 2 0 1"),
        ("if32 by a register with a constant", "0x1e 0 2 0 1"), ("if32 by a constant with a source", "0x16 0 2 0 1"),
        ("call with a destination", "0x85 1 0 0 5"), ("call with an offset", "0x85 0 0 1 5"), ("call with source 3", "0x85 0 3 0 5"),
        ("load with a constant", "0x79 0 10 -8 1"), ("store with a constant", "0x7b 10 2 -8 1"),
        ("store of a constant with a source", "0x7a 10 2 -8 1"), ("signed load of 8 bytes", "0x99 0 10 -8 0"),
        ("atomic with operation 0x20", "0xdb 10 2 -8 0x20"), ("atomic with operation 0x02", "0xdb 10 2 -8 0x02"),
        ("atomic sub", "0xdb 10 2 -8 0x10"), ("atomic xchg without fetch", "0xdb 10 2 -8 0xe0"),
        ("atomic cmpxchg without fetch", "0xdb 10 2 -8 0xf0"), ("atomic of 2 bytes", "0xcb 10 2 -8 0"),
        ("atomic of 1 byte", "0xd3 10 2 -8 0"),
        ("register 11 as destination", "0xb7 11 0 0 1"), ("register 11 as source", "0xbf 0 11 0 0"),
        ("register 15 as destination", "0xb7 15 0 0 1"), ("register 12 in a load", "0x79 0 12 -8 0"),
    ]
    for name, raw in fields:
        # if the invalid instruction is itself an exit, no "exit" follows it: the added "exit" would be
        # unreachable, which is another reason to refuse the program
        f.block(name, "r0 = 0\nr2 = 0\n*(u64 *)(r10 -8) = r2\n.raw %s" % raw + ("" if "exit" in name else "\nexit"), invalid=True)
    for name, second in (("opcode", "1 0 0 0 0"), ("destination", "0 1 0 0 0"), ("source", "0 0 1 0 0"), ("offset", "0 0 0 1 0")):
        f.block("64-bit constant whose second part has a %s" % name, "r0 = 0\n.raw 0x18 1 0 0 5\n.raw %s\nexit" % second, invalid=True)
    f.block("64-bit constant cut off", "r0 = 0\n.raw 0x18 0 0 0 5", invalid=True)


def main():
    for bits in (64, 32):
        arithmetic(bits)
    for make in (unary, registers, memory, atomics, jumps, invalid):
        make()
    for f in FILES:
        with open(os.path.join(sys.argv[1], f.name), "w") as out:
            out.write("\n".join(f.text) + "\n")


if __name__ == "__main__":
    main()
