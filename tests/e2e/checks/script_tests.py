# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the scripts that run the tests: scripts/check with runners made here, scripts/setup with a
package manager made here, and checks that must not pass when they have checked nothing."""
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import pbtest

E2E = os.path.join(pbtest.ROOT, "tests", "e2e")
# This runner starts a process that never ends.
HANGS = """#!%s
import os, sys
sys.path.insert(0, %r)
import pbtest
work = pbtest.scratch("hangs")
pbtest.run(["sh", "-c", "echo $$ %%s >started.new; mv started.new started; exec sleep 1000" %% work], cwd=%r)
"""
# The packages meson, zsh and strace aren't installed, and no package is called zsh.
DPKG_QUERY = """#!/bin/sh
shift 3
for p; do
	case $p in meson | zsh | strace) ;; *) echo "ii  $p" ;; esac
done
"""
HELD = """#!/bin/sh
shift 3
for p; do echo "hi  $p"; done
"""
APT_CACHE = """#!/bin/sh
case ${2:-} in
'') printf 'Package files:\\n 100 /var/lib/dpkg/status\\n 500 http://debian\\n' ;;
zsh) printf 'zsh:\\n  Installed: (none)\\n  Candidate: (none)\\n' ;;
*) printf '%s:\\n  Installed: (none)\\n  Candidate: 1.0\\n' "$2" ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/log"
case "$*" in *strace*) exit 100 ;; esac
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="patchbay-scripts-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def script(self, name):
        os.makedirs(os.path.join(self.dir, "scripts"), exist_ok=True)
        return shutil.copy(os.path.join(pbtest.ROOT, "scripts", name), os.path.join(self.dir, "scripts"))

    def runner(self, name, *lines):
        return self.file("tests/e2e/run_" + name, "#!/bin/sh\n" + "".join("echo '%s'\n" % l for l in lines))

    # --- scripts/check

    def check(self, *names):
        r = pbtest.run([self.script("check"), "quick", *names])
        return r.status, r.out.decode()

    def test_name_of_no_runner(self):
        self.runner("good", "1 passed, 0 failed")
        self.assertEqual(self.check("good")[0], 0)
        status, out = self.check("good", "nonesuch")
        self.assertEqual(status, 1)
        self.assertIn("FAIL nonesuch", out)
        self.assertTrue(out.endswith("1 passed, 1 failed\n"))

    def test_skips_are_shown(self):
        self.runner("skips", "skip one  needs zsh", "1 passed, 0 failed, 1 skipped")
        status, out = self.check("skips")
        self.assertEqual(status, 0)
        self.assertIn("skip one  needs zsh", out)

    def test_interrupt(self):
        self.file("tests/e2e/run_hangs", HANGS % (sys.executable, E2E, self.dir))
        started = os.path.join(self.dir, "started")
        for sig in signal.SIGINT, signal.SIGTERM:
            p = subprocess.Popen([self.script("check"), "quick", "hangs"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.assertTrue(pbtest.wait_until(lambda: os.path.exists(started), 60))
            with open(started) as f:
                pid, work = f.read().split()
            os.unlink(started)
            p.send_signal(sig)
            self.assertEqual(p.wait(pbtest.patience(60)), 128 + sig)
            # `check` doesn't wait for what its runners have started
            self.assertTrue(pbtest.wait_until(lambda: not os.path.exists("/proc/%s/exe" % pid), 60))
            self.assertFalse(os.path.exists(work))

    # --- scripts/setup

    def run_setup(self, *args, **programs):
        """Runs scripts/setup with these programs. Returns the result and apt-get's command lines."""
        programs = {"dpkg-query": DPKG_QUERY, "apt-cache": APT_CACHE, "apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n",
                    **programs}
        for name, text in programs.items():
            self.file("bin/" + name, text)
        path = os.path.join(self.dir, "bin") + ":" + os.environ["PATH"]
        r = pbtest.run([os.path.join(pbtest.ROOT, "scripts", "setup"), *args], env=pbtest.clean_env(PATH=path))
        log = os.path.join(self.dir, "bin", "log")
        if not os.path.exists(log):
            return r, []
        with open(log) as f:
            return r, f.read().splitlines()

    def test_setup_of_an_unknown_kind(self):
        r, calls = self.run_setup("--biuld")
        self.assertEqual((r.status, calls), (2, []))

    def test_held_packages_are_installed(self):
        r, calls = self.run_setup(**{"dpkg-query": HELD})
        self.assertEqual((r.status, r.err, calls), (0, b"", []))

    def test_one_package_keeps_no_others_away(self):
        r, calls = self.run_setup()
        self.assertEqual(r.status, 0)
        self.assertIn(b"no package zsh", r.err)
        installed = [c.split("--no-install-recommends")[1].split() for c in calls if c.startswith("install")]
        self.assertEqual(installed[0], ["meson"])
        self.assertEqual(installed[1], ["strace"])      # this one fails
        self.assertNotIn("zsh", " ".join(calls))

    def test_a_package_for_the_build_is_missing(self):
        r, calls = self.run_setup("--build", **{"apt-cache": APT_CACHE.replace("zsh)", "meson)")})
        self.assertEqual((r.status, calls), (1, []))
        self.assertIn(b"no package meson", r.err)

    # --- the Makefile

    def test_bench_measures_the_build(self):
        for build, path in ("other", pbtest.ROOT + "/other"), ("/far/build", "/far/build"):
            r = pbtest.run(["make", "-n", "-C", pbtest.ROOT, "bench", "BUILD=" + build])
            self.assertIn('PATCHBAY="%s/patchbay" bench/run' % path, r.out.decode())
            r = pbtest.run([sys.executable, "-Bc", "import harness; print(harness.BUILD)"],
                           cwd=os.path.join(pbtest.ROOT, "bench"), env=pbtest.clean_env(PATCHBAY=path + "/patchbay"))
            self.assertEqual(r.out.decode().strip(), path)

    # --- checks that have checked nothing

    def test_style_without_repository(self):
        argv, env = [self.script("check-style")], pbtest.clean_env(GIT_CEILING_DIRECTORIES=os.path.dirname(self.dir))
        r = pbtest.run(argv, env=env)
        self.assertEqual((r.status, r.out[:11]), (0, b"skip style:"))
        pbtest.run(["git", "init", "-q", self.dir], env=env)
        self.assertEqual(pbtest.run(argv, env=env).status, 1)

    def test_names_of_no_functions(self):
        loader = importlib.machinery.SourceFileLoader("stack", os.path.join(pbtest.ROOT, "scripts", "check-stack"))
        stack = importlib.util.module_from_spec(importlib.util.spec_from_loader("stack", loader))
        writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        loader.exec_module(stack)
        sys.dont_write_bytecode = writes
        stack.check_names()
        for table in {"no_such_caller": []}, {"close_call": ["on_skipped"]}:
            stack.POINTERS = table
            self.assertRaises(SystemExit, stack.check_names)
