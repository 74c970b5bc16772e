#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that gdb unwinds through the native code of eBPF programs, and that gdb names this code.

  test_gdb.py TEST_BPF_EXEC
"""
import re
import shutil
import subprocess
import sys

WANTED = ["walk", "bpf_prog_chain", "bpf_prog_chain", "bpf_prog_chain", "loop", "bpf_prog_chain", "frames_are_a_chain",
          "main"]


def main():
    if not shutil.which("gdb"):
        print("there is no gdb")
        return 77
    r = subprocess.run(["gdb", "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "handle SIGSEGV nostop noprint",
                        "-ex", "handle SIGALRM nostop noprint", "-ex", "break walk", "-ex", "run", "-ex", "bt", "-ex", "kill",
                        sys.argv[1]], capture_output=True, text=True, timeout=500, stdin=subprocess.DEVNULL)
    frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+|\?\?)", r.stdout, re.M)
    rest = iter(frames)
    if all(f in rest for f in WANTED) and "??" not in frames[:frames.index("loop")]:
        return 0
    print("gdb sees %s\n%s\n%s" % (" ".join(frames), r.stdout[-3000:], r.stderr[-1000:]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
