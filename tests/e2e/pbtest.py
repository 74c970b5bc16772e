# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the end-to-end, torture and real-program tests: runs programs bare (untraced)
and under Patchbay, reads recordings, and prints results.

Most tests use the command line and the views' text only through this module. So if their form
changes, these tests need no change."""
import collections
import csv
import glob
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

from checks.replay_text import INDENT_LEVELS, Event, function_name, marker_errors, parse_replay, with_depths

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_patchbay():
    p = os.environ.get("PATCHBAY") or os.path.join(ROOT, "build", "patchbay")
    return os.path.abspath(p)


PATCHBAY = find_patchbay()


def sanitized():
    """Returns whether this is a sanitizer build of Patchbay, which needs more address space, time
    and memory."""
    with open(PATCHBAY, "rb") as f:
        data = f.read()
    return b"__asan_report_load8" in data or b"__tsan_func_entry" in data


# If this test is a shell's background job, the shell has made it ignore SIGINT and SIGQUIT. Its
# children would ignore them, too. So both signals get a handler here.
for _sig in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_sig) is signal.SIG_IGN:
        signal.signal(_sig, signal.default_int_handler)


# If scripts/check is interrupted, it sends SIGTERM. The test then ends what it has started, and removes
# its files.
if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Failure(Exception):
    """A test has failed. The text says what the test found."""


class Skip(Exception):
    """A test can't run on this machine. The text says why."""


def clean_env(**more):
    """Returns a small environment, the same one for bare and traced runs."""
    env = {k: os.environ[k] for k in ("PATH", "HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
           if k in os.environ}
    env.update(LANG="C.UTF-8", LC_ALL="C.UTF-8")
    env.update(more)
    return env


# Time-outs only catch programs that hang. A caller gives a time that is long enough on any idle
# machine. PATIENCE multiplies this time, for busy machines and slow builds.
PATIENCE = 5


def is_pending(pid, sig):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"ShdPnd:\s*([0-9a-f]+)", f.read()).group(1), 16) >> sig - 1 & 1


def patience(seconds):
    return seconds * PATIENCE


def wait_until(condition, seconds):
    """Waits until condition() is true, with patience. Returns its last result."""
    end = time.monotonic() + patience(seconds)
    while not (result := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return result


Result = collections.namedtuple("Result", "status out err seconds")


def run(argv, timeout=60, stdin=None, cwd=None, env=None):
    """Runs a program until the program and all processes that hold its stdout have ended. If that
    takes longer than the time-out, kills the program's process group and raises Failure.

    If the recorder gets no processor for 150 ms, the program may run untraced, or lose calls in
    spite of --no-loss. `record` reports either case. Such a run proves nothing, so it is repeated."""
    def attempt():
        r = run_once(argv, timeout, stdin, cwd, env)
        if runs_patchbay(argv) and is_late(r.err):
            raise Late
        return r
    return repeat_if_late(attempt)


def runs_patchbay(argv):
    """Returns whether Patchbay, or a special build of it, is this program or a part of its command line."""
    return any(re.search(r"(?:^|[\s/])patchbay(?:$|\s)", os.fsdecode(arg)) for arg in argv)


class Late(Exception):
    """The recorder had no processor for 150 ms, so the run proves nothing."""


def repeat_if_late(attempt):
    """Returns what attempt() returns. If it raises Late, calls it again."""
    for _ in range(5):
        try:
            return attempt()
        except Late:
            pass
    raise Skip("the machine is too busy: the recorder had no processor for 150 ms, five times")


def is_late(err):
    return again_if_late and unanswered(err) or again_if_lossy and gave_up(err)


late_seen = False       # a recorder of the current test was late


def note_late(err):
    """If `err` of a recorder says that it was late, the current test proves nothing by failing: Tally
    repeats the test. For recorders that run() didn't start."""
    global late_seen
    late_seen |= bool(is_late(err))


again_if_late = True    # False in tests of a recorder that is late
again_if_lossy = True   # False in tests that count lost calls


def run_once(argv, timeout, stdin, cwd, env):
    start = time.monotonic()
    try:
        p = subprocess.Popen(argv, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                             env=env if env is not None else clean_env(), start_new_session=True)
    except FileNotFoundError as e:
        raise Skip(lacks(e)) if lacks(e) else e
    try:
        out, err = p.communicate(stdin, timeout=patience(timeout))
    except subprocess.TimeoutExpired:
        kill_group(p)
        out, err = p.communicate()
        raise Failure("no end after %d s: %s\n%s" % (patience(timeout), " ".join(argv), tail(err)))
    except BaseException:       # the test is interrupted
        kill_group(p)
        raise
    return Result(p.returncode, out, err, time.monotonic() - start)


def lacks(error):
    """If a FileNotFoundError shows that a command isn't installed, or that a program of our tests isn't
    built, returns a text that says so."""
    name = os.fsdecode(error.filename or "")
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    if last != subprocess.__file__:
        return None             # not from the start of a program
    if name and "/" not in name:
        return "%s is not installed" % name
    if name.startswith(os.path.join(os.path.dirname(PATCHBAY), "tests", "")):
        return "%s is not built" % os.path.basename(name)
    return None


def kill_group(p):
    """Kills a process that leads a process group, with its whole group."""
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_gently(process):
    """Closes the input of a program that `record` or a similar command runs, so that both end, if they
    still run, and the recorder says whether it was late."""
    if process.stdin:
        process.stdin.close()
        process.stdin = None
    try:
        _, err = process.communicate(timeout=patience(2))
    except subprocess.TimeoutExpired:
        kill_group(process)
        _, err = process.communicate()
    note_late(err)


def tail(data, lines=8):
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    return "\n".join("    " + l for l in text.strip().splitlines()[-lines:])


def hold_port():
    """Returns a free TCP port of 127.0.0.1, and a socket. While the socket is open, no other program gets
    the port as a free one. A server that sets SO_REUSEADDR can use the port."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return str(s.getsockname()[1]), s


# --- the tool ---------------------------------------------------------------

def shell_status(status):
    """Returns the exit statuses with which `record` may report how a program ended. For SIGSEGV:
    -11 and 139."""
    return (status, 128 - status) if status < 0 else (status,)


def record_argv(data, program, *options):
    return [PATCHBAY, "record", "-d", data, *options, "--", *program]


def record(data, program, *options, timeout=60, stdin=None, cwd=None, env=None):
    shutil.rmtree(data, ignore_errors=True)
    return run(record_argv(data, program, *options), timeout, stdin, cwd, env)


def agent_symbols(*names):
    """Returns {name: address in hexadecimal} of symbols of the agent."""
    r = run(["nm", os.path.join(os.path.dirname(PATCHBAY), "libpatchbay.so")])
    found = {w[-1]: w[0] for w in map(str.split, r.out.decode().splitlines()) if len(w) == 3}
    return {n: found[n] for n in names}


def bpf_object(source, work, *flags):
    """Compiles the source for eBPF, and returns the object's path. None: there is no compiler for
    eBPF."""
    if not shutil.which("clang") or not os.path.exists("/usr/include/bpf/bpf_helpers.h"):
        return None
    out = os.path.join(work, os.path.basename(source)[:-2] + ".o")
    subprocess.run(["clang", "-g", "-O2", "-target", "bpf", "-D__TARGET_ARCH_x86",
                    "-I/usr/include/x86_64-linux-gnu", *flags, "-c", source, "-o", out], check=True)
    return out


def unanswered(err):
    """Returns whether `record` reports that the recorder answered too late, so that the program was
    traced only partly or not at all."""
    return b"too slow to answer" in err


def gave_up(err):
    """Returns whether `record --no-loss` reports that calls are lost because the recorder was
    stopped or had no processor."""
    return b"calls are lost although --no-loss was given" in err


def closing_line(err):
    """Returns (calls, lost calls, calls without their return) from the closing line of `record`."""
    m = re.search(r"^patchbay: (?:killed by \S+ )?(?:about )?([\d,]+) calls, ([\d,]+) lost(.*?), [\d.]+ \S+ in ",
                  err.decode(errors="replace"), re.M)
    if not m:
        raise Failure("no closing line:\n%s" % tail(err))
    unreturned = re.search(r"([\d,]+) without their return", m.group(3))
    return [int(n.replace(",", "")) for n in (*m.group(1, 2), unreturned.group(1) if unreturned else "0")]


def view(*argv, timeout=300):
    r = run([PATCHBAY, *argv], timeout)
    if r.status:
        raise Failure("patchbay %s: exit status %d\n%s" % (" ".join(argv), r.status, tail(r.err)))
    return r.out


def info(data):
    text = view("info", "-d", data, "--format=json")
    try:
        return json.loads(text)
    except ValueError as e:
        raise Failure("info --format=json is not JSON: %s" % e)


def report(data, *options):
    """Returns the rows of `report --format=csv`, with numbers as int."""
    text = view("report", "-d", data, "--format=csv", *options).decode(errors="replace")
    rows = list(csv.DictReader(io.StringIO(text)))
    for r in rows:
        for k in ("calls", "total_ns", "self_ns", "min_ns", "max_ns", "timed"):
            if k not in r:
                raise Failure("report --format=csv has no column %s" % k)
            r[k] = int(r[k] or 0)
    return rows


def calls_by_function(data):
    calls = collections.Counter()
    for r in report(data):
        calls[r["function"]] += r["calls"]
    return calls


def replay_events(data, *options):
    """Yields the events of a data directory."""
    p = subprocess.Popen([PATCHBAY, "replay", "-d", data, *options], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                         env=clean_env(PAGER="cat"), start_new_session=True)
    try:
        yield from parse_replay(p.stdout)
        err = p.stderr.read()
        if p.wait():
            raise Failure("patchbay replay: exit status %d\n%s" % (p.returncode, tail(err)))
    finally:
        if p.poll() is None:
            kill_group(p)
        p.stdout.close()
        p.stderr.close()
        p.wait()


def chrome_events(data):
    """Like replay_events(), but from `dump --format=chrome` (B and E, or complete X events)."""
    try:
        doc = json.loads(view("dump", "-d", data, "--format=chrome"))
    except ValueError as e:
        raise Failure("dump --format=chrome is not JSON: %s" % e)
    depth = collections.Counter()
    stacks = collections.defaultdict(list)
    for e in doc["traceEvents"] if isinstance(doc, dict) else doc:
        tid, ph = e.get("tid"), e.get("ph")
        if ph == "B":
            yield Event(tid, "open", depth[tid], function_name(e["name"]))
            depth[tid] += 1
        elif ph == "E":
            depth[tid] -= 1
            if depth[tid] < 0:
                raise Failure("dump --format=chrome: thread %s ends a call that it never began" % tid)
            yield Event(tid, "close", depth[tid], "")
        elif ph == "X":
            st, end = stacks[tid], e["ts"] + e["dur"]
            while st and st[-1] <= e["ts"]:
                st.pop()
            yield Event(tid, "open", len(st), function_name(e["name"]))
            st.append(end)


# --- control of a running session -------------------------------------------

def descendant(pid, exe):
    """Returns the pid of a descendant of pid that runs exe. None: there is no such process."""
    exe = os.path.realpath(exe)
    todo = [pid]
    while todo:
        p = todo.pop(0)
        try:
            if os.readlink("/proc/%d/exe" % p) == exe:
                return p
        except OSError:
            continue
        for children in glob.glob("/proc/%d/task/*/children" % p):
            try:
                with open(children) as f:
                    todo.extend(int(c) for c in f.read().split())
            except OSError:     # the thread has just ended
                pass
    return None


def prefer(pid):
    """Gives a session (setsid) nearly all processor time, if the scheduler has groups for sessions and if this test
    is root's. Then only the session's own processes compete with each other."""
    try:
        with open("/proc/%d/autogroup" % pid, "w") as f:
            f.write("-20")
    except OSError:
        pass


class Session:
    """A program that runs under `record --serve`, with its control files."""

    def __init__(self, data, program, *options, cwd=None, stdin=subprocess.PIPE, env=None):
        shutil.rmtree(data, ignore_errors=True)
        self.process = subprocess.Popen(record_argv(data, program, "--serve", *options), stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                                        env=env or clean_env(), start_new_session=True)
        self.exe, self.pid, self.batches = program[0], None, 0

    def control(self, *argv):
        return run([PATCHBAY, "control", "-p", str(self.pid), *argv], 60)

    def wait_ready(self, timeout=60):
        """Waits until the traced program's control files answer."""
        end, why = time.monotonic() + patience(timeout), ""
        while True:
            self.pid = descendant(self.process.pid, self.exe)
            if self.pid:
                r = self.control("read", "current_tracer")
                if r.status == 0:
                    return
                why = tail(r.err)
            if self.process.poll() is not None:
                err = self.process.stderr.read()
                note_late(err)
                raise Failure("record ended with %s\n%s" % (self.process.returncode, tail(err)))
            if time.monotonic() > end:
                raise Failure("no answer from the session after %d s\n%s" % (patience(timeout), why))
            time.sleep(0.02)

    def alive(self):
        return self.process.poll() is None

    def write(self, name, value, may_fail=False):
        # a value with '!' removes names from the present value, so it needs -a
        r = self.control(*(["-a"] if value.startswith("!") else []), "write", name, value)
        if r.status and not may_fail and self.alive():
            raise Failure("control write %s %r: exit status %d\n%s" % (name, value, r.status, tail(r.err)))
        self.batches += r.status == 0
        return r.status == 0

    def read(self, name):
        r = self.control("read", name)
        if r.status:
            raise Failure("control read %s: exit status %d\n%s" % (name, r.status, tail(r.err)))
        return r.out.decode(errors="replace")

    def end(self, stdin=None, timeout=60):
        try:
            out, err = self.process.communicate(stdin, timeout=patience(timeout))
        except subprocess.TimeoutExpired:
            kill_group(self.process)
            out, err = self.process.communicate()
            raise Failure("the traced program does not end\n%s" % tail(err))
        note_late(err)
        return Result(self.process.returncode, out, err, 0)

    def kill(self):
        if sys.exc_info()[0] and self.alive() and self.pid:
            # the test has failed: let the recorder say whether it was late
            try:
                os.kill(self.pid, signal.SIGKILL)
                note_late(self.process.communicate(timeout=patience(10))[1])
            except (OSError, ValueError, subprocess.TimeoutExpired):
                pass
        if self.alive():
            kill_group(self.process)
        self.process.communicate()


def toggles(seed=1):
    """Yields (file, value) pairs without end. If the caller writes each value to its control file,
    the set of patched functions and the tracer change."""
    state = seed
    steps = [("current_tracer", "nop"), ("current_tracer", "function_graph"), ("set_ftrace_filter", "m*"),
             ("current_tracer", "function"), ("set_ftrace_filter", ""), ("current_tracer", "function_graph"),
             ("set_ftrace_filter", "*l*"), ("set_ftrace_notrace", "*a*"), ("set_ftrace_notrace", ""),
             ("set_ftrace_filter", "")]
    i = 0
    while True:
        yield steps[i % len(steps)]
        state = (state * 1103515245 + 12345) & 0x7fffffff
        # mostly goes to the next step, sometimes skips steps or repeats one; a seed always gives
        # the same sequence
        i += 1 if state % 4 else state % len(steps)


# --- program text -----------------------------------------------------------

# The names of files of stubs in the cache (src/abi/stubs.h). Agents map these files privately and
# change them in memory, so memory and file differ.
STUBS = re.compile(r"-v\d+\.\d+\.s\d+$")


def text_differences(pid):
    """Compares the program's executable memory with the mapped files. Returns the number of
    compared bytes, and {(path, offset): (byte in memory, byte in file)} of the differing bytes."""
    compared, bad = 0, {}
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            w = line.split(None, 5)
            if len(w) < 6 or "x" not in w[1] or not w[5].startswith("/") or "libpatchbay" in w[5]:
                continue
            path, offset = w[5].strip(), int(w[2], 16)
            if STUBS.search(path):
                continue
            start, end = (int(x, 16) for x in w[0].split("-"))
            try:
                with open(path, "rb") as f:
                    f.seek(offset)
                    want = f.read(end - start)
            except OSError:
                continue        # a memfd or a deleted file is mapped here
            mem.seek(start)
            got = mem.read(end - start)[:len(want)]
            if len(got) < len(want):
                raise OSError("%s was unmapped meanwhile" % path)
            compared += len(want)
            if got == want:
                continue
            for i in range(len(want)):
                if got[i] != want[i]:
                    bad[path, offset + i] = got[i], want[i]
    return compared, bad


# --- results ----------------------------------------------------------------

class Tally:
    """Prints one line for each test, and the closing line that scripts/check reads."""

    def __init__(self, keep=None):
        self.passed = self.failed = self.skipped = 0

    def test(self, name, fn, *args):
        def attempt():
            global late_seen
            late_seen = False
            try:
                return fn(*args)
            except (Skip, Late):
                raise
            except Exception as e:
                if isinstance(e, FileNotFoundError) and lacks(e):
                    raise Skip(lacks(e))
                if late_seen:
                    raise Late
                raise

        start = time.monotonic()
        try:
            note = repeat_if_late(attempt)
        except Skip as e:
            self.skipped += 1
            self.line("skip", name, str(e), start)
        except Failure as e:
            self.failed += 1
            self.line("FAIL", name, str(e), start)
        except Exception:
            self.failed += 1
            self.line("FAIL", name, "the test itself failed\n" + tail(traceback.format_exc()), start)
        else:
            self.passed += 1
            self.line("ok", name, note or "", start)

    def skip(self, name, why):
        def skipped():
            raise Skip(why)
        self.test(name, skipped)

    @staticmethod
    def line(verdict, name, note, start):
        print("%-4s %-24s %5.1f s  %s" % (verdict, name, time.monotonic() - start, note), flush=True)

    def close(self):
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped), flush=True)
        return 1 if self.failed else 0


def keeps_files():
    return "PATCHBAY_TEST_KEEP" in os.environ


def scratch(prefix):
    """Makes a directory. It is removed at the end unless PATCHBAY_TEST_KEEP is set."""
    path = tempfile.mkdtemp(prefix="patchbay-%s-" % prefix)
    if not keeps_files():
        import atexit
        atexit.register(shutil.rmtree, path, True)
    else:
        print("files are kept in %s" % path, file=sys.stderr)
    return path


def same_end(bare, traced):
    """Returns whether the traced program ended in the same way as the bare program. A signal may be
    reported as a shell reports it."""
    return traced.status in shell_status(bare.status)


def compare(bare, traced, what="stdout"):
    if not same_end(bare, traced):
        raise Failure("exit status %d, bare %d\n%s" % (traced.status, bare.status, tail(traced.err)))
    if bare.out != traced.out:
        raise Failure("%s differs:\n  bare\n%s\n  traced\n%s" % (what, tail(bare.out), tail(traced.out)))
