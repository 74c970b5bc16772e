# SPDX-License-Identifier: LGPL-2.1-or-later
"""Provides the kernel's verifier tests from Debian's package linux-source-6.12: progs/verifier_*.c,
and the tests of numeric iterators, progs/iters*.c. The tests' sources are not in our repository.
This module unpacks and compiles the sources once, under the build directory. It also parses the
output of bpf_annotated."""
import collections
import glob
import hashlib
import os
import re
import shutil
import subprocess

TARBALL = "/usr/src/linux-source-6.12.tar.xz"
TREE = "linux-source-6.12"
TESTS = "tools/testing/selftests/bpf"
WANTED = [TESTS + "/*", "tools/include/*", "tools/lib/bpf/*", "include/linux/*", "scripts/bpf_doc.py"]
VMLINUX = "/sys/kernel/btf/vmlinux"
FLAGS = ["-g", "-O2", "--target=bpf", "-mcpu=v3", "-mlittle-endian", "-std=gnu11", "-D__TARGET_ARCH_x86",
         "-DENABLE_ATOMICS_TESTS", "-Wno-everything"]
TESTED = ["verifier_*", "iters", "iters_looping", "iters_num", "iters_state_safety"]
# files with types; CO-RE relocates some tests for these types
TYPES = ["btf__core_reloc_bitfields"]
HEADERS = ["bpf_helpers.h", "bpf_tracing.h", "bpf_core_read.h", "bpf_endian.h", "usdt.bpf.h"]


def clang():
    """Returns $CLANG, or else Debian's newest clang. An older clang doesn't know all instructions
    of the tests."""
    found = [c for c in ("clang-19", "clang-16", "clang") if shutil.which(c)]
    return os.environ.get("CLANG") or (found[0] if found else None)


def missing():
    for path, what in ((TARBALL, "linux-source-6.12"), (VMLINUX, "the kernel's BTF")):
        if not os.path.exists(path):
            return what
    for tool in ("bpftool", "xz"):
        if not shutil.which(tool):
            return tool
    return None if clang() else "clang"


def stamp():
    st = os.stat(TARBALL)
    version = subprocess.run([clang(), "--version"], capture_output=True).stdout
    with open(VMLINUX, "rb") as f:
        types = f.read()
    said = repr((st.st_size, int(st.st_mtime), FLAGS)).encode()
    return hashlib.sha256(said + version + types).hexdigest()[:16]


def unpack(work):
    """Returns the directory with the sources and the headers that the sources need. Unpacks them at
    the first call."""
    top = os.path.join(work, stamp())
    done = os.path.join(top, "done")
    if os.path.exists(done):
        return top
    inc = os.path.join(top, "inc", "bpf")
    os.makedirs(inc, exist_ok=True)
    os.makedirs(os.path.join(top, "o"), exist_ok=True)
    subprocess.run(["tar", "-C", top, "--wildcards", "-xJf", TARBALL] + [TREE + "/" + w for w in WANTED],
                   check=True)
    tree = os.path.join(top, TREE)
    for name in HEADERS:
        shutil.copy(os.path.join(tree, "tools/lib/bpf", name), inc)
    with open(os.path.join(inc, "bpf_helper_defs.h"), "wb") as f:
        subprocess.run([os.path.join(tree, "scripts/bpf_doc.py"), "--header", "--file",
                        os.path.join(tree, "tools/include/uapi/linux/bpf.h")], stdout=f, check=True)
    with open(os.path.join(top, "inc", "vmlinux.h"), "wb") as f:
        subprocess.run(["bpftool", "btf", "dump", "file", VMLINUX, "format", "c"], stdout=f, check=True)
    open(done, "w").close()
    return top


def compile_one(top, source):
    """Returns (path of the object, None), or (None, first error)."""
    out = os.path.join(top, "o", os.path.basename(source)[:-2] + ".o")
    note = out[:-2] + ".err"
    tree = os.path.join(top, TREE)
    if not os.path.exists(out) and not os.path.exists(note):
        r = subprocess.run([clang()] + FLAGS +
                           ["-I" + os.path.join(top, "inc"), "-I" + os.path.join(tree, TESTS),
                            "-I" + os.path.join(tree, "tools/include/uapi"), "-I" + os.path.join(tree, "tools/include"),
                            "-idirafter", "/usr/include/x86_64-linux-gnu", "-c", source, "-o", out + ".tmp"],
                           capture_output=True, timeout=300)
        if r.returncode:
            errors = [x for x in r.stderr.decode(errors="replace").splitlines() if "error:" in x]
            with open(note, "w") as f:
                f.write(errors[0].split("error:")[-1].strip() if errors else "clang ended with %d" % r.returncode)
        else:
            os.rename(out + ".tmp", out)
    if os.path.exists(note):
        with open(note) as f:
            return None, f.read()
    return out, None


def objects(work):
    """Returns the paths of the objects, and {name: error} for sources that can't be compiled."""
    top, made, errors = unpack(work), [], {}
    progs = os.path.join(top, TREE, TESTS, "progs")
    tested = sorted(p for t in TESTED for p in glob.glob(os.path.join(progs, t + ".c")))
    for source in tested + [os.path.join(progs, t + ".c") for t in TYPES]:
        out, error = compile_one(top, source)
        if out:
            made += [out] if source in tested else []
        else:
            errors[os.path.basename(source)[:-2]] = error
    return made, errors


# --- expectations --------------------------------------------------------------------------

class Wish:
    """What a program's annotations expect in one mode. The mode is with or without privileges."""

    def __init__(self):
        self.fails = False
        self.messages, self.xlated = [], []
        self.retval = None


def numbered(text):
    """Returns MESSAGE of "123=MESSAGE". The number makes tags with equal messages different."""
    return text.split("=", 1)[1]


VALUES = {"INT_MIN": -2 ** 31, "POINTER_VALUE": None, "TEST_DATA_LEN": 64}


def value_of(text):
    if text in VALUES:
        return VALUES[text]
    if text == "0xcafe4all":
        return None
    v = int(text, 0) & 0xffffffff
    return v - 2 ** 32 if v >= 2 ** 31 else v


def wishes(tags):
    """Returns {"": Wish, "@unpriv": Wish}, but only for modes that are tested. Returns None if the
    program isn't a test, or is a test for another processor."""
    priv, unpriv, seen = Wish(), Wish(), set()
    arches = [t.split("=", 1)[1] for t in tags if t.startswith("arch=")]
    if arches and "X86_64" not in arches or any(t.startswith("auxiliary") for t in tags):
        return None
    result = retval = False
    for t in tags:
        key, _, rest = t.partition("=")
        w, mode = (unpriv, "@unpriv") if key.endswith("_unpriv") else (priv, "")
        key = key.replace("_unpriv", "")
        if key in ("expect_success", "expect_failure"):
            w.fails = key == "expect_failure"
            result |= mode != ""
        elif key == "expect_msg":
            w.messages.append(numbered(rest))
        elif key == "expect_xlated":
            w.xlated.append(numbered(rest))
        elif key == "retval":
            w.retval = (value_of(rest),)
            retval |= mode != ""
        else:
            continue
        seen.add(mode)
    if not result:
        unpriv.fails = priv.fails
    if not retval:
        unpriv.retval = priv.retval
    unpriv.messages = unpriv.messages or priv.messages
    unpriv.xlated = unpriv.xlated or priv.xlated
    return {m: w for m, w in (("", priv), ("@unpriv", unpriv)) if m in seen or (not seen and not m)}


def pattern(message):
    """Compiles a message to a pattern. {{...}} in the message is an extended regular expression."""
    out = ""
    for part in re.split(r"(\{\{.*?\}\})", message):
        out += part[2:-2] if part.startswith("{{") else re.escape(part)
    return re.compile(out, re.M)


def unmatched(messages, log):
    """Looks for the messages in the log, in their order. Returns the first message that isn't
    found, or None."""
    at = 0
    for m in messages:
        if "{{" in m:
            found = pattern(m).search(log, at)
            end = found.end() if found else -1
        else:
            begin = log.find(m, at)
            end = begin + len(m) if begin >= 0 else -1
        if end < 0:
            return m
        at = end
    return None


# The kernel replaces the call CALL with the instructions PROCESSOR, which read a per-CPU variable.
PROCESSOR = ["w0 =", "r0 = &(void __percpu *)(r0)", "r0 = *(u32 *)(r0 +0)"]
CALL = "call bpf_get_smp_processor_id"


def our_form(file, patterns):
    """Returns the patterns in the form of our rewritten programs. In this form, instructions have
    no numbers, CALL replaces PROCESSOR, and calls have names. Returns None for the tests of
    divisions by -1: our engines handle these divisions, so our programs have no rewritten
    instructions to compare."""
    out = []
    if file == "verifier_sdiv" and patterns:
        return None
    for p in patterns:
        p = re.sub(r"^\d+: ", "", p).strip().replace("call unknown", "call bpf_")
        if p == PROCESSOR[1]:
            if out and out[-1] == PROCESSOR[0]:
                out.pop()
            out.append(CALL)
        elif p != PROCESSOR[2] or not out or out[-1] != CALL:
            out.append(p)
    return out


def unmatched_lines(patterns, text):
    """Returns the first pattern that isn't in the disassembly, or None. The first pattern, and a
    pattern after "...", may match any later line. Any other pattern must match the line after the
    last match."""
    lines = [re.sub(r"^\d+: \(..\) ", "", x) for x in text.splitlines()]
    at, next_line = 0, False
    for p in patterns:
        if p == "...":
            next_line = False
            continue
        found = [i for i in range(at, len(lines)) if pattern(p).search(lines[i])]
        if not found or (next_line and found[0] != at):
            return p
        at, next_line = found[0] + 1, True
    return None


# --- the output of bpf_annotated --------------------------------------------------------------

Program = collections.namedtuple("Program", "file name section tags why verdicts runs xlated")


def fields(data):
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        key, size = data[at:end].split()
        begin, at = end + 1, end + 2 + int(size)
        yield key.decode(), data[begin:begin + int(size)].decode(errors="replace")


def programs(data):
    """Returns the programs in their order. An object that can't be opened gives a tuple (path,
    reason) instead."""
    out, path = [], None
    for key, text in fields(data):
        if key == "object":
            path = os.path.basename(text)[:-2]
        elif key == "broken":
            out.append((path, text))
        elif key == "prog":
            out.append(Program(path, text, [], [], [], {}, {}, {}))
        elif key in ("section", "tag", "why"):
            getattr(out[-1], {"section": "section", "tag": "tags", "why": "why"}[key]).append(text)
        elif key == "run":
            who, err, value = text.split()
            out[-1].runs[who] = (int(err), int(value))
        elif key.startswith("xlated"):
            out[-1].xlated[key] = text
        else:
            err, _, log = text.partition(" ")
            out[-1].verdicts[key] = (int(err), log)
    return out


def run(tool, paths, options=()):
    r = subprocess.run([tool] + list(options) + list(paths), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=1800)
    if r.returncode:
        raise RuntimeError("%s ended with %d: %s" % (tool, r.returncode, r.stderr.decode(errors="replace")[-2000:]))
    return programs(r.stdout)


SKIPPED = ("processed ", "max_states_per_insn", "verification time", "stack depth", "mark_precise", "total_states")


def last_line(log):
    lines = [x for x in log.splitlines() if x.strip() and not x.startswith(SKIPPED)]
    return lines[-1].strip() if lines else "(nothing)"
