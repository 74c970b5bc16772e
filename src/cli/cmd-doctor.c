/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay doctor`: prints what this machine allows, and what the results mean for tracing. Some
 * checks try the operation itself, for example ptrace. Other checks read limits and settings. No
 * check guesses from a version.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/analysis.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "base/first_library.h"
#include "cli/cli.h"
#include "module/module.h"
#include "module/elf/runtimes.h"
#include "recorder/session_dir.h"

enum verdict { OK, NOTE, BAD };

static unsigned bad;

static void say(enum verdict v, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(enum verdict v, const char *what, const char *fmt, ...)
{
	static const char *const words[] = { "ok", "note", "BAD" };
	static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m" };
	bool colour = isatty(1);
	char text[PATH_MAX + 300];
	va_list ap;

	bad += v == BAD;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pb_text_clean(text, '?', 0);
	printf("%s%-4s%s  %-12s %s\n", colour ? colours[v] : "", words[v], colour ? "\033[m" : "",
	       what, text);
}

/* Returns the line of a one-line file, without its newline. If the file can't be read, returns
 * "". */
static const char *line_of(const char *path)
{
	static char line[256];
	FILE *f = fopen(path, "re");

	line[0] = 0;
	if (f) {
		if (fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = 0;
		fclose(f);
	}
	return line;
}

static void check_machine(void)
{
	struct utsname u;

	uname(&u);
	if (strcmp(u.machine, "x86_64"))
		say(BAD, "machine", "%s: only x86-64 programs can be traced", u.machine);
	else
		say(OK, "machine", "x86_64, %s %s, %ld processors", u.sysname, u.release,
		    sysconf(_SC_NPROCESSORS_ONLN));
}

static void check_agent(void)
{
	static struct record_session s;

	if (record_session_find_agent(&s))
		bad++;
	else
		say(OK, "agent", "%s", s.agent);
}

static void check_session(void)
{
	char base[RECORD_BASE];
	int ret = record_session_base(base);

	if (ret)
		say(BAD, "session", "%s: %s; record needs it for its socket", base, strerror(-ret));
	else
		say(OK, "session", "%s", base);
}

static void check_memfd(void)
{
	int fd = memfd_create("patchbay-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct rlimit as, files;

	if (fd < 0 || ftruncate(fd, 64 << 20) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		say(BAD, "memfd", "%s: shared memory for the ring cannot be created%s",
		    strerror(errno), errno == EFBIG ? " (see ulimit -f)" : "");
	else
		say(OK, "memfd", "sealed shared memory of 64 MiB");
	if (fd >= 0)
		close(fd);
	getrlimit(RLIMIT_AS, &as);
	getrlimit(RLIMIT_FSIZE, &files);
	if (as.rlim_cur != RLIM_INFINITY)
		say(NOTE, "ulimit -v", "%llu MiB: the program and the recorder map the buffer "
		    "within this limit; see -b", (unsigned long long)as.rlim_cur >> 20);
	if (files.rlim_cur != RLIM_INFINITY)
		say(NOTE, "ulimit -f", "%llu MiB: a recording's file can't grow beyond this",
		    (unsigned long long)files.rlim_cur >> 20);
}

static void check_shm(void)
{
	struct statvfs v;

	if (statvfs("/dev/shm", &v))
		say(NOTE, "/dev/shm", "%s; record does without it", strerror(errno));
	else
		say(OK, "/dev/shm", "%llu MiB free",
		    (unsigned long long)v.f_bavail * v.f_frsize >> 20);
}

static void check_memlock(void)
{
	struct rlimit r;

	getrlimit(RLIMIT_MEMLOCK, &r);
	if (r.rlim_cur == RLIM_INFINITY)
		say(OK, "memlock", "unlimited");
	else
		say(r.rlim_cur < 64 << 10 ? NOTE : OK, "memlock",
		    "%llu KiB; record locks no memory; only perf needs this",
		    (unsigned long long)r.rlim_cur >> 10);
}

/* Returns 1 if a child process can be stopped by ptrace, as the agent's helper stops the program.
 * Returns 0 if it can't, or -errno if no child process can be started. */
static int ptrace_works(void)
{
	int status = 0;
	pid_t victim = fork();

	if (victim < 0)
		return -errno;
	if (!victim) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	bool ok = !ptrace(PTRACE_SEIZE, victim, 0, 0) &&
		  !ptrace(PTRACE_INTERRUPT, victim, 0, 0) &&
		  waitpid(victim, &status, __WALL) == victim && WIFSTOPPED(status);
	kill(victim, SIGKILL);
	while (waitpid(victim, &status, 0) == victim && !WIFSIGNALED(status) && !WIFEXITED(status))
		;
	return ok;
}

static void check_ptrace(void)
{
	const char *scope = line_of("/proc/sys/kernel/yama/ptrace_scope");
	int s = *scope ? atoi(scope) : 0, works = ptrace_works();

	if (works < 0)
		say(BAD, "processes", "%s: no process can be started (see ulimit -u), so neither "
		    "record nor the check of ptrace works", strerror(-works));
	else if (!works)
		say(NOTE, "ptrace",
		    "not allowed (a container's seccomp profile?): what is traced is set "
		    "at start; it can't be changed while several threads run");
	else
		say(OK, "ptrace",
		    "allowed: tracing can be changed while the program runs");
	if (s == 0)
		say(OK, "yama", *scope ? "ptrace_scope 0: any process of yours can be attached to" :
		    "not there: any process of yours can be attached to");
	else
		say(NOTE, "yama", "ptrace_scope %d: %s", s, s == 1 ?
		    "attaching to a running process needs root (or sysctl "
		    "kernel.yama.ptrace_scope=0)" :
		    s == 2 ? "only root may attach" : "attaching is disabled until the next boot");
}

static void check_seccomp(void)
{
	char line[256];
	int mode = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Seccomp: %d", &mode);
	if (f)
		fclose(f);
	if (mode > 0)
		say(NOTE, "seccomp",
		    "mode %d is on here: some system calls may fail; to see whether this matters, "
		    "record a program", mode);
	else
		say(OK, "seccomp", "off");
}

static void check_tsc(void)
{
	bool constant = false, nonstop = false;
	static char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "re");
	const char *source;

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "flags", 5))
			continue;
		constant = strstr(line, " constant_tsc") != NULL;
		nonstop = strstr(line, " nonstop_tsc") != NULL;
		break;
	}
	if (f)
		fclose(f);
	source = line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
	if (constant && nonstop)
		say(OK, "TSC", "constant and nonstop; the kernel's clock source is %s",
		    *source ? source : "?");
	else
		say(NOTE, "TSC", "%s: durations may be off when the processor's frequency changes",
		    constant ? "stops in deep sleep" : "isn't constant");
}

static void check_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0) {
		close((int)fd);
		say(OK, "perf", "perf_event_open works (paranoid %s)",
		    line_of("/proc/sys/kernel/perf_event_paranoid"));
	} else {
		say(NOTE, "perf", "perf_event_open: %s; tracing doesn't need it",
		    strerror(errno));
	}
}

/* Looks at the directory that XDG_CACHE_HOME or HOME selects for the cache (module/cache.c). */
static void check_cache(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *setting = getenv("PATCHBAY_CACHE");
	char dir[PATH_MAX], parent[PATH_MAX];
	struct stat st;

	if (xdg && *xdg == '/')
		snprintf(parent, sizeof(parent), "%s", xdg);
	else if (home && *home == '/')
		snprintf(parent, sizeof(parent), "%.4000s/.cache", home);
	else
		parent[0] = 0;
	snprintf(dir, sizeof(dir), "%.4000s/patchbay", parent);
	if (setting && (!strcmp(setting, "off") || !strcmp(setting, "0")))
		say(NOTE, "cache", "PATCHBAY_CACHE is %s: each run analyses its modules again",
		    setting);
	else if (*parent && !stat(dir, &st) && (st.st_uid != geteuid() || st.st_mode & 022))
		say(NOTE, "cache",
		    "%s: not used, as it isn't yours alone; chmod go-w it, or set XDG_CACHE_HOME",
		    dir);
	else if (!*parent)
		say(NOTE, "cache",
		    "neither HOME nor XDG_CACHE_HOME: each run analyses its modules again");
	else if (!access(dir, W_OK | X_OK) || !access(parent, W_OK | X_OK) ||
		 (access(parent, F_OK) && home && !access(home, W_OK | X_OK)))
		say(OK, "cache", "%s", dir);
	else
		say(NOTE, "cache", "%s: %s; each run analyses its modules again", dir,
		    strerror(errno));
}

static void check_preload(void)
{
	const char *p = getenv("LD_PRELOAD"), *session = getenv("PATCHBAY_SESSION");
	const char *first = NULL;
	size_t n = p ? pb_first_in_list(p, strlen(p), &first) : 0;

	if (session)
		say(NOTE, "session", "this shell is traced itself (PATCHBAY_SESSION=%s)", session);
	if (n)
		say(NOTE, "LD_PRELOAD",
		    "%s: is kept; the agent is loaded after %.*s, before the rest", p, (int)n,
		    first);
	else if (p && *p)
		say(NOTE, "LD_PRELOAD", "%s: is kept; the agent is loaded before it", p);
}

/* Reports whether a program or library can be traced, and how its language runtimes affect
 * tracing. */
static void check_file(const char *path)
{
	struct pb_module_options options = { .flags = PB_MODULE_RETURNS };
	int elf = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), fd;
	char err[256] = "";
	struct pb_analysis a;

	fd = elf < 0 ? -1 : pb_module_open(elf, path, &options, err, sizeof(err));
	if (fd < 0)
		say(BAD, path, "%s", elf < 0 ? strerror(errno) : err);
	if (elf >= 0)
		close(elf);
	if (fd < 0)
		return;
	if (pread(fd, &a, sizeof(a), 0) == sizeof(a)) {
		say(a.flags & PB_AN_STATIC ? BAD : OK, path, "%u function%s, %u can be traced%s",
		    a.nr_funcs, pb_plural(a.nr_funcs), a.nr_sites,
		    a.flags & PB_AN_STATIC ? "; it is static: no agent can be loaded into it" : "");
		for (unsigned i = 0; pb_runtime_name(i); i++)
			if (a.runtimes >> i & 1)
				say(NOTE, pb_runtime_name(i), "%s", pb_runtime_policy(i));
	}
	close(fd);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	check_file(arg);
	return 0;
}

static const struct argp doctor_argp = {
	.parser = parse, .args_doc = "[FILE...]",
	.doc = "Check what this machine allows, and whether each FILE, a program or library, can "
	       "be traced. Exits with 1 if recording can't work.",
};

static int doctor_run(int argc, char **argv)
{
	int rest;

	if (argp_parse(&doctor_argp, argc, argv, 0, &rest, NULL))
		return 2;
	check_machine();
	check_agent();
	check_session();
	check_memfd();
	check_shm();
	check_memlock();
	check_ptrace();
	check_seccomp();
	check_tsc();
	check_perf();
	check_cache();
	check_preload();
	printf("\n%s\n", bad ? "Recording will not work here: see what is BAD." :
	       "Recording works here: patchbay record PROG.");
	return bad ? 1 : 0;
}

const struct pb_command pb_command_doctor = {
	.name = "doctor",
	.summary = "Say what this machine allows, and what will work",
	.argp = &doctor_argp,
	.run = doctor_run,
};
