# SPDX-License-Identifier: LGPL-2.1-or-later
"""The code that all parts of the bench share: running pinned processes, alternating between
variants, the rows of the table, and the command lines of the two tracers.

This process measures the times of its children. Wall time is the time of the monotonic clock.
CPU time is the user + sys time that wait4 reports. This time includes the children that a child
has waited for. So the CPU time of a recording includes the recorder and the program.
"""
import contextlib
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import threading
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
BUILD = os.path.dirname(os.path.abspath(os.environ.get("PATCHBAY") or os.path.join(ROOT, "build", "patchbay")))


class Unavailable(Exception):
    """A variant or a part can't be measured on this machine. The text gives the reason."""


# ---- the tracers' command lines ----

def pb(*args):
    """Returns a command line of patchbay, as a list. No other code of the bench names the binary."""
    binary = os.path.join(BUILD, "patchbay")
    if not os.access(binary, os.X_OK):
        raise Unavailable("%s is not built" % binary)
    return [binary, *args]


def pb_record(data, options, program):
    shutil.rmtree(data, ignore_errors=True)
    return pb("record", "-d", data, *options, "--", *program)


def pb_control(pid, path, value):
    """Writes a control file of a running program that is recorded with --serve."""
    run(pb("control", "-p", str(pid), path, value), name="control")


def pb_info(data):
    done = run(pb("info", "-d", data, "--format=json"))
    try:
        return json.loads(done.out)
    except ValueError:
        raise Unavailable("patchbay info: not JSON: " + done.out[:80]) from None


ANY, NONE = (1, float("inf")), (0, 0)


def expect_info(data, options, expect):
    """Raises Unavailable if a value that `info` reports isn't within (least, most)."""
    info = pb_info(data)
    for key, (least, most) in expect.items():
        if not least <= info.get(key, -1) <= most:
            raise Unavailable(f"{' '.join(options)}: {key} is {info.get(key)}, not {least} to {most}")
    return info


def pb_attach(data, pid, options, cpus):
    """Attaches to a process. Waits until the process is traced, and returns the recorder."""
    shutil.rmtree(data, ignore_errors=True)
    recorder = start_group(["taskset", "-c", cpus, *pb("record", "-p", pid, "-d", data, *options)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    said = recorder.stderr.readline().decode()
    if "is attached" not in said:
        end_group(recorder)
        recorder.communicate()
        raise Unavailable("record -p: " + said.strip())
    return recorder


def pb_attached_end(recorder, data, expect):
    """Waits for the recorder of a process that has ended."""
    try:
        recorder.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        end_group(recorder)
        raise Unavailable("record -p doesn't end")
    expect_info(data, ["record -p"], expect)


def pb_traced(data, options, program, expect, same=None, **more):
    """Records a run. Raises Unavailable if the run is no valid measurement. For each key of `expect`,
    the value that `info` reports must be within (least, most). If `same` is given, the program's
    output must be equal to `same`."""
    done = run(pb_record(data, options, program), **more)
    if same is not None and done.out != same:
        raise Unavailable("the traced program's output differs from the bare one's")
    done.info = expect_info(data, options, expect)
    return done


def lossless(calls):
    return {"calls": (calls, calls), "lost": NONE}


def pb_calls(data):
    """Returns the number of calls of each function, {name: calls}, from `report`."""
    calls = {}
    lines = run(pb("report", "-d", data, "--format=csv")).out.splitlines()
    if not lines:
        raise Unavailable("patchbay report: no output")
    columns = lines[0].split(",")
    name, count = columns.index("function"), columns.index("calls")
    for line in lines[1:]:
        # A C++ name may have commas inside quotes. But all names that are traced here are C names.
        field = line.split(",")
        calls[field[name].strip('"')] = calls.get(field[name].strip('"'), 0) + int(field[count])
    return calls


def uftrace_record(data, program, *options):
    """Returns a command line with which uftrace records neither calls through the PLT nor the
    scheduler's events. Both tracers must do the same work, and patchbay traces only the
    executable's functions."""
    if not shutil.which("uftrace"):
        raise Unavailable("uftrace is not installed")
    shutil.rmtree(data, ignore_errors=True)
    return ["uftrace", "record", "-P", ".", "--no-libcall", "--no-event", "-d", data, *options, *program]


def uftrace_calls(data):
    calls = {}
    for line in run(["uftrace", "report", "-d", data, "-f", "call", "--no-pager"]).out.splitlines():
        field = line.split()
        if len(field) == 2 and field[0].isdigit():
            calls[field[1]] = calls.get(field[1], 0) + int(field[0])
    return calls


# ---- processes ----

class Done:
    def __init__(self, wall, usage, status, out, err):
        self.wall, self.status, self.out, self.err = wall, status, out, err
        self.cpu = usage.ru_utime + usage.ru_stime
        self.rss = usage.ru_maxrss * 1024

    def json(self):
        """Returns the JSON object that a bench program printed last."""
        for line in reversed(self.out.splitlines()):
            if line.startswith("{"):
                return json.loads(line)
        raise Unavailable("no result from the program: " + (self.err or self.out)[-200:].strip())


def environment(extra=None):
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC", "XDG_CACHE_HOME": run.cache}
    env.update(extra or {})
    return env


class Aside(threading.Thread):
    """A thread that calls work(process) while the process runs. If `work` fails, the process is
    killed."""

    def __init__(self, work, process):
        super().__init__()
        self.work, self.process, self.error = work, process, None
        if work:
            self.start()

    def run(self):
        try:
            self.work(self.process)
        except Exception as e:      # finish() raises it
            self.error = e
            end_group(self.process)

    def finish(self):
        if self.work:
            self.join()
        if self.error:
            raise self.error


TIMEOUT = 600       # limit for each process, in seconds


def start_group(argv, **more):
    """Starts a process in its own session, so that end_group() also kills the processes that a
    recorder started."""
    return subprocess.Popen(argv, start_new_session=True, **more)


def end_group(process):
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def run(argv, cpus=None, env=None, cwd=None, stdin=None, check=True, name="run", meanwhile=None):
    """Runs a process and waits for its end. Once the process has started, a thread calls
    meanwhile(process), unless `meanwhile` is None."""
    if cpus:
        argv = ["taskset", "-c", cpus, *argv]
    # Output goes to files, because a child of a tracer may keep a pipe open.
    with open(os.path.join(run.temp, name + ".out"), "w+") as out, open(os.path.join(run.temp, name + ".err"), "w+") as err, \
            open(stdin or os.devnull) as feed:
        start = time.monotonic()
        process = start_group(argv, stdin=feed, stdout=out, stderr=err, env=environment(env), cwd=cwd or run.temp)
        late = threading.Timer(TIMEOUT, end_group, [process])
        late.start()
        aside = Aside(meanwhile, process)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            end_group(process)
            raise
        finally:
            late.cancel()
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        done = Done(wall, usage, process.returncode, out.read(), err.read())
    aside.finish()
    if check and done.status:
        said = (done.err or done.out).strip().splitlines()
        how = f"not done in {TIMEOUT} s" if done.wall > TIMEOUT else f"exit {done.status}"
        raise Unavailable(f"{shlex.join(argv[:12])}: {how}: {said[-1] if said else ''}"[:300])
    return done


run.temp = run.cache = None     # set by bench/run


def compile_c(out, sources, *flags):
    run(["gcc", "-O2", "-g", "-D_GNU_SOURCE", "-fno-optimize-sibling-calls", *flags, *sources, "-o", out, "-pthread", "-lm"])
    return out


NOPS = "-fpatchable-function-entry=5"


# ---- interleaved rounds ----

# A yardstick is a measurement that depends only on how busy the machine is (Rounds). A round is busy if one of its
# yardsticks took more than BUSY times the fastest time of this yardstick in all rounds.
BUSY = 1.03
PATIENCE = 4    # at most PATIENCE times the wanted number of rounds are run


class Rounds:
    """Runs the rounds of a measurement. A round measures each variant once (A B C A B C ...). The
    first round warms up and is dropped. A variant that fails is left out, and the reason is kept.
    A recording that is still being written to the disk would disturb the next variant. So tidy(),
    which removes the recording, is called after each measurement. Without yardsticks, the number
    of rounds is fixed. In this case tidy() isn't called in the last round, so that the caller can
    read the last recordings.

    `yardsticks` is a list of keys. Each measurement has a value for each of these keys. The
    value shows only how busy the machine was, and doesn't depend on the variant. If a yardstick
    took more than BUSY times its fastest time of all rounds, the round is set aside, and another
    round is run. If too many rounds were busy, the least busy rounds are used."""

    def __init__(self, variants, runs, log, tidy, yardsticks=()):
        self.why, rounds = {}, []
        most = runs * (PATIENCE if yardsticks else 1)
        for turn in range(most + 1):
            rounds.append(self.one_round(variants, log, lambda last=turn == runs == most: last or tidy()))
            if turn == 0:
                rounds.clear()
            elif sum(b <= BUSY for b in self.busy(rounds, yardsticks)) >= runs:
                break
        quietest = sorted(range(len(rounds)), key=self.busy(rounds, yardsticks).__getitem__)[:runs]
        if len(rounds) > runs:
            log(f"    {len(rounds) - runs} rounds on a busy machine set aside")
        chosen = [rounds[i] for i in sorted(quietest)]
        self.got = {name: [r[name] for r in chosen if name in r] for name in variants}

    def one_round(self, variants, log, tidy):
        values = {}
        for name, measure in variants.items():
            if name in self.why:
                continue
            try:
                values[name] = measure()
            except Unavailable as e:
                self.why[name] = str(e)
                log(f"    {name}: {e}")
            tidy()
        return values

    @staticmethod
    def busy(rounds, yardsticks):
        """Returns one number for each round: the largest ratio of a yardstick's time in this round
        to the same yardstick's fastest time."""
        least = {y: min(v[y] for r in rounds for v in r.values()) for y in yardsticks if any(rounds)}
        return [max((v[y] / least[y] for v in r.values() for y in yardsticks), default=1) for r in rounds]

    def each(self, compute, *names):
        """Calls `compute` for each round, with the round's values of the variants `names`. Returns
        the list of results. If a variant has no value, returns [] and sets self.missing to the
        reason."""
        self.missing = next((f"{n}: {self.why[n]}" for n in names if n in self.why), None)
        if self.missing:
            return []
        try:
            return [compute(*values) for values in zip(*(self.got[n] for n in names))]
        except KeyError as e:
            self.missing = f"{names[-1]}: info has no {e.args[0]}"
            return []


# ---- results ----

class Table:
    def __init__(self, log):
        self.rows, self.log = [], log

    def add(self, criterion, what, limit, values, unit="", missing=None, note=None, digits=2):
        """Adds a row. criterion: the number or word in the row's first column. It is the same in
        all rows of one subject. limit: None, or for example "<= 1.15" or ">= 3". values: one value
        for each round."""
        row = {"criterion": criterion, "what": what, "limit": limit, "unit": unit, "note": note,
               "missing": None if values else (missing or "not measured"), "digits": digits}
        if values:
            row.update(figure=statistics.median(values), low=min(values), high=max(values), runs=len(values))
            if limit:
                op, bound = limit.split()
                row["met"] = row["figure"] <= float(bound) if op == "<=" else row["figure"] >= float(bound)
        self.rows.append(row)
        self.log("  " + " | ".join(self.cells(row)))

    def add_rounds(self, criterion, what, limit, rounds, compute, *names, **more):
        self.add(criterion, what, limit, rounds.each(compute, *names), missing=rounds.missing, **more)

    @staticmethod
    def cells(row):
        number = lambda v: f"{v:,.{row['digits']}f}"
        unit = f" {row['unit']}" if row["unit"] else ""
        limit = (row["limit"] or "").replace("<=", "≤").replace(">=", "≥") + (unit if row["limit"] else "")
        what = row["what"] + (f" ({row['note']})" if row["note"] else "")
        if row["missing"]:
            return [str(row["criterion"]), what, limit, "not measured", "", ""]
        spread = f"{number(row['low'])} – {number(row['high'])}" if row["runs"] > 1 else ""
        met = {True: "yes", False: "**no**", None: ""}[row.get("met")]
        return [str(row["criterion"]), what, limit, number(row["figure"]) + unit, spread, met]

    def markdown(self):
        head = ["", "what", "limit", "figure", "spread", "met"]
        lines = [head, ["---"] * len(head)] + [self.cells(row) for row in self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
