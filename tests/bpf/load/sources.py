# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compiles eBPF programs of the Linux kernel: samples/bpf and tools/testing/selftests/bpf/progs of
Debian's linux-source-6.1, with Debian's clang. The sources are not in our repository. They are
unpacked and compiled once, under the build directory."""
import collections
import glob
import hashlib
import os
import subprocess

TARBALL = "/usr/src/linux-source-6.1.tar.xz"
TREE = "linux-source-6.1"
PROGS = "tools/testing/selftests/bpf/progs"
WANTED = ["samples/bpf/*", "tools/testing/selftests/bpf/*", "tools/include/*"]
VMLINUX = "/sys/kernel/btf/vmlinux"
CLANG = ["clang", "-g", "-O2", "-D__TARGET_ARCH_x86", "-DENABLE_ATOMICS_TESTS", "-Wno-everything"]

Source = collections.namedtuple("Source", "name path kind")
Object = collections.namedtuple("Object", "name path error")


def stamp():
    st = os.stat(TARBALL)
    clang = subprocess.run(["clang", "--version"], capture_output=True).stdout
    with open(VMLINUX, "rb") as f:
        vmlinux = f.read()
    return hashlib.sha256(repr((st.st_size, int(st.st_mtime), CLANG)).encode() + clang + vmlinux).hexdigest()[:16]


def missing():
    """Returns the name of a missing part that the compilation needs, or None."""
    for path, what in ((TARBALL, "linux-source-6.1"), (VMLINUX, "the kernel's BTF")):
        if not os.path.exists(path):
            return what
    for tool in ("clang", "bpftool", "llc", "opt", "llvm-strip", "xz"):
        if subprocess.run(["sh", "-c", "command -v " + tool], capture_output=True).returncode:
            return tool
    return None


def unpack(work):
    """Returns the directory with the sources and vmlinux.h. Unpacks the sources at the first
    call."""
    top = os.path.join(work, stamp())
    done = os.path.join(top, "done")
    if not os.path.exists(done):
        os.makedirs(top, exist_ok=True)
        subprocess.run(["tar", "-C", top, "--wildcards", "-xJf", TARBALL] + [TREE + "/" + w for w in WANTED],
                       check=True)
        with open(os.path.join(top, "vmlinux.h"), "wb") as f:
            subprocess.run(["bpftool", "btf", "dump", "file", VMLINUX, "format", "c"], stdout=f, check=True)
        os.makedirs(os.path.join(top, "o"), exist_ok=True)
        open(done, "w").close()
    return top


def listed(top):
    tree = os.path.join(top, TREE)
    found = [Source("progs/" + os.path.basename(p)[:-2], p, "prog")
             for p in sorted(glob.glob(os.path.join(tree, PROGS, "*.c")))]
    for p in sorted(glob.glob(os.path.join(tree, "samples/bpf/*_kern.c"))):
        found.append(Source("samples/" + os.path.basename(p)[:-2], p, "kernel"))
    for p in sorted(glob.glob(os.path.join(tree, "samples/bpf/*.bpf.c"))):
        found.append(Source("samples/" + os.path.basename(p)[:-2], p, "prog"))
    return found


def kernel_headers():
    """Returns -I options for Debian's linux-headers. Samples that use the kernel's internal headers
    need these options."""
    own = sorted(glob.glob("/usr/src/linux-headers-6.1*-amd64"))
    common = sorted(glob.glob("/usr/src/linux-headers-6.1*-common"))
    if not own or not common:
        return None
    h, c = own[-1], common[-1]
    dirs = [c + "/arch/x86/include", h + "/arch/x86/include/generated", c + "/include", h + "/include",
            c + "/arch/x86/include/uapi", h + "/arch/x86/include/generated/uapi", c + "/include/uapi",
            h + "/include/generated/uapi"]
    return ["-I" + d for d in dirs] + ["-include", c + "/include/linux/compiler-version.h",
                                       "-include", c + "/include/linux/kconfig.h"]


def system_includes():
    text = subprocess.run(["clang", "-v", "-E", "-"], stdin=subprocess.DEVNULL, capture_output=True).stderr.decode()
    inside = text.split("search starts here:")[-1].split("End of search")[0]
    return [x for line in inside.splitlines() if line.startswith(" /") for x in ("-idirafter", line.strip())]


def command(top, source, out):
    """Returns the shell command that compiles the object."""
    tree = os.path.join(top, TREE)
    tests = os.path.join(tree, "tools/testing/selftests/bpf")
    if source.kind == "prog":
        return " ".join(CLANG + ["-target", "bpf", "-mcpu=v3", "-mlittle-endian", "-I" + top, "-I" + tests,
                                 "-I" + os.path.join(tree, "tools/include/uapi"),
                                 "-I" + os.path.dirname(source.path)] +
                        system_includes() + ["-c", source.path, "-o", out])
    headers = kernel_headers()
    if headers is None:
        return "echo 'error: linux-headers-amd64 is missing' >&2; false"
    # As in the samples' Makefile, clang compiles the source to LLVM IR for the host, and llc then
    # compiles the LLVM IR to eBPF.
    first = CLANG + ["-nostdinc"] + headers + ["-I" + tests, "-I" + os.path.dirname(source.path), "-I" + tree +
             "/tools/lib", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fcf-protection=none",
             "-D__KERNEL__", "-D__BPF_TRACING__", "-DKBUILD_MODNAME='\"x\"'", "-include",
             os.path.join(os.path.dirname(source.path), "asm_goto_workaround.h")] + system_includes() + \
        ["-emit-llvm", "-Xclang", "-disable-llvm-passes", "-c", source.path, "-o", "-"]
    return "set -o pipefail; %s | opt -O2 -mtriple=bpf-pc-linux | llc -march=bpf -filetype=obj -o %s" % (
        " ".join(first), out)


def compile_one(top, source):
    out = os.path.join(top, "o", source.name.replace("/", "_") + ".o")
    note = out[:-2] + ".err"
    if not os.path.exists(out) and not os.path.exists(note):
        r = subprocess.run(["bash", "-c", command(top, source, out + ".tmp")], capture_output=True,
                           timeout=300)
        if r.returncode:
            errors = [l for l in r.stderr.decode(errors="replace").splitlines() if "error:" in l]
            with open(note, "w") as f:
                f.write(errors[0].split("error:")[-1].strip() if errors else "clang ended with %d" % r.returncode)
        else:
            os.rename(out + ".tmp", out)
    if os.path.exists(note):
        with open(note) as f:
            return Object(source.name, None, f.read())
    return Object(source.name, out, None)


LINKED = [("linked_funcs", ["linked_funcs1", "linked_funcs2"]), ("linked_maps", ["linked_maps1", "linked_maps2"]),
          ("linked_vars", ["linked_vars1", "linked_vars2"]),
          ("test_subskeleton", ["test_subskeleton_lib2", "test_subskeleton_lib", "test_subskeleton"]),
          ("test_usdt", ["test_usdt", "test_usdt_multispec"])] + [
              (name, ["samples/%s.bpf" % name, "samples/xdp_sample.bpf"]) for name in
              ("xdp_redirect", "xdp_redirect_cpu", "xdp_redirect_map", "xdp_redirect_map_multi", "xdp_router_ipv4")]


def link(top, name, parts):
    """Links objects with bpftool. `parts` may also be a single object."""
    out = os.path.join(top, "o", "linked_" + name.replace("/", "_") + ".o")
    if not os.path.exists(out):
        r = subprocess.run(["bpftool", "gen", "object", out + ".tmp"] + parts, capture_output=True)
        if r.returncode:
            return Object("linked/" + name, None, r.stderr.decode(errors="replace").strip()[:200])
        os.rename(out + ".tmp", out)
    return Object("linked/" + name, out, None)


def objects(work, every=1, only=None):
    """Returns every `every`-th object (1: all objects), the objects named in `only`, and objects
    that bpftool links from these objects. Compiles objects that don't exist yet."""
    top = unpack(work)
    sources = [s for i, s in enumerate(listed(top)) if i % every == 0 or (only and s.name in only)]
    made = [compile_one(top, s) for s in sources]
    by_name = {o.name: o.path for o in made if o.path}
    for name, parts in LINKED:
        paths = [by_name.get(p if "/" in p else "progs/" + p) for p in parts]
        if all(paths):
            made.append(link(top, name, paths))
    for o in list(made)[::5]:
        if o.path and not o.name.startswith("linked/"):
            made.append(link(top, o.name, [o.path]))
    return made
