# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds real programs with patchable entries, so that Patchbay and uftrace see the same functions.
npm and apt-get download the sources, with this machine's configuration of npm and apt. Sources and
programs stay in build/bench.d."""
import glob
import os
import shutil
import tarfile
from harness import BENCH, NOPS, Unavailable, compile_c, run

SQLITE_PACKAGE = "better-sqlite3@12.11.1"      # contains the SQLite amalgamation
REDIS_PACKAGE = "redis"                         # a Debian source package


def sqlite(bench):
    """Builds sqlite_script with SQLite: one executable with about 2,500 functions."""
    place = os.path.join(bench.kept, "sqlite")
    program = os.path.join(place, "sqlite_script")
    driver = os.path.join(BENCH, "sqlite_script.c")
    if os.path.exists(program) and os.path.getmtime(program) > os.path.getmtime(driver):
        return program
    os.makedirs(place, exist_ok=True)
    if not shutil.which("npm"):
        raise Unavailable("npm, for SQLite's source, is not installed")
    run(["npm", "pack", "--silent", SQLITE_PACKAGE], cwd=place)
    with tarfile.open(glob.glob(os.path.join(place, "better-sqlite3-*.tgz"))[0]) as tar:
        for name in ("sqlite3.c", "sqlite3.h"):
            with open(os.path.join(place, name), "wb") as f:
                shutil.copyfileobj(tar.extractfile("package/deps/sqlite3/" + name), f)
    return compile_c(program, [driver, os.path.join(place, "sqlite3.c")], NOPS, "-I", place,
                     "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION")


def apt_source(package, place):
    """Runs `apt-get source` with deb-src lines that are made from this machine's deb lines.
    The deb-src lines are in separate files, so the machine's configuration is not changed."""
    lists, parts = os.path.join(place, "apt", "lists"), os.path.join(place, "apt", "parts")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    os.makedirs(parts, exist_ok=True)
    found = False
    for path in ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"]:
        if not os.path.exists(path):
            continue
        with open(path) as f:
            text = f.read()
        lines = [line.replace("deb ", "deb-src ", 1) if line.startswith("deb ") else
                 "Types: deb-src" if line.startswith("Types:") else line for line in text.splitlines()]
        with open(os.path.join(parts, os.path.basename(path).replace("sources.list", "main.list")), "w") as f:
            f.write("\n".join(lines) + "\n")
        found = True
    if not found:
        raise Unavailable("no Debian package sources are set up")
    apt = ["apt-get", "-q", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=" + parts,
           "-o", "Dir::State::lists=" + lists, "-o", "APT::Sandbox::User=root"]
    run([*apt, "update"])
    run([*apt, "source", "--download-only", package], cwd=place)
    shutil.rmtree(os.path.join(place, "apt"))


def redis(bench):
    """Builds redis. Returns the folder with redis-server (about 3,900 functions) and
    redis-benchmark."""
    place = os.path.join(bench.kept, "redis")
    built = glob.glob(os.path.join(place, "redis-*", "src", "redis-benchmark"))
    if not built:
        os.makedirs(place, exist_ok=True)
        if not glob.glob(os.path.join(place, "*.orig.tar.*")):
            apt_source(REDIS_PACKAGE, place)
        with tarfile.open(glob.glob(os.path.join(place, "*.orig.tar.*"))[0]) as tar:
            tar.extractall(place)
        source = glob.glob(os.path.join(place, "redis-*", "src"))[0]
        # Like Debian's redis, this build uses libc's malloc. Otherwise the functions of jemalloc
        # would be traced, too.
        run(["make", "-C", source, f"-j{bench.nr_cpus}", "MALLOC=libc", "USE_SYSTEMD=no", "OPTIMIZATION=-O2",
             f"REDIS_CFLAGS={NOPS} -g", f"CFLAGS={NOPS} -O2 -g", "redis-server", "redis-benchmark"])
        built = glob.glob(os.path.join(source, "redis-benchmark"))
    return os.path.dirname(built[0])
