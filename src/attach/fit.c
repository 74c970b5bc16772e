/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds out whether Patchbay can attach to the process. Each reason against it has its own line for
 * the user (fit.h). All answers come from /proc, and may be out of date when the injection begins.
 * So the later steps must handle the same failures. The checks here only explain them better.
 */
#include "attach/fit.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "attach/sight.h"
#include "recorder/held.h"

#define PASSING_MS	2000
#define START_INSTEAD	"start the program with `patchbay record -- PROG' instead"

static long number_of(const char *status, const char *key)
{
	const char *value = record_proc_value(status, key);

	return value ? atol(value) : 0;
}

/* --- threads -------------------------------------------------------------- */

static bool has_ended(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return access(path, F_OK) && errno == ENOENT;
}

/* The tracer may have ended after the thread's status was read. For example, the helper of an agent
 * lives only for a moment. */
static int check_tracer(struct attach_subject *s, pid_t tracer)
{
	struct attach_subject other;

	s->by_helper = tracer && record_proc_is_helper(tracer);
	if (s->by_helper)
		return attach_say(s, EAGAIN, "is stopped by Patchbay for a moment; attach again");
	if (!tracer || has_ended(tracer))
		return 0;
	attach_subject_init(&other, tracer, NULL, 0);
	return attach_say(s, EBUSY, "is already traced by %s (%d); detach or end that tracer first",
			  other.name[0] ? other.name : "a process", (int)tracer);
}

int attach_fit_thread(struct attach_subject *s, pid_t tid)
{
	char name[64], status[RECORD_STATUS_MAX];

	s->by_helper = false;
	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (attach_proc_read(s, name, status, sizeof(status)) <= 0)
		return 0;	/* the thread has ended, but not the process */
	return check_tracer(s, (pid_t)number_of(status, "TracerPid"));
}

/* --- kind and state ------------------------------------------------------- */

static bool is_kernel_thread(const struct attach_subject *s)
{
	char dir[RECORD_PROC_PATH];
	struct record_stat stat;

	snprintf(dir, sizeof(dir), "/proc/%d", (int)s->pid);
	return !record_proc_stat(dir, &stat) && stat.kernel;
}

/* True if the state ends in a moment:
 *
 *   - A thread other than the main thread executes a program. Until the exec is complete, the main
 *     thread is dead. Towards the end of this time, the main thread's status has no line with the
 *     number of threads. So the process counts as executing a program if its main thread is dead
 *     and the number isn't 1.
 *   - The helper of an agent stops the threads. For example, the agent of a former recording
 *     detaches, and the recorder didn't wait for the detach. */
static bool is_passing(const char *status)
{
	return (record_proc_is_dead(status) && number_of(status, "Threads") != 1) ||
	       record_proc_is_helper((pid_t)number_of(status, "TracerPid"));
}

/* Reads the process's status. Waits until its state isn't a passing one, for at most PASSING_MS. */
static bool read_status(const struct attach_subject *s, char status[RECORD_STATUS_MAX])
{
	for (unsigned ms = 0; ; ms++) {
		if (attach_proc_read(s, "status", status, RECORD_STATUS_MAX) <= 0)
			return false;
		if (!is_passing(status) || ms >= PASSING_MS)
			return true;
		nanosleep(&(struct timespec) { .tv_nsec = 1000 * 1000 }, NULL);
	}
}

static int check_state(struct attach_subject *s, const char *status)
{
	pid_t tgid = (pid_t)number_of(status, "Tgid");

	if (tgid != s->pid)
		return attach_say(s, EINVAL, "is a thread of process %d; attach to that process",
				  (int)tgid);
	if (is_kernel_thread(s))
		return attach_say(s, EINVAL, "is a thread of the kernel; only programs can be "
				  "traced");
	if (record_proc_is_dead(status) && number_of(status, "Threads") > 1)
		return attach_say(s, ENOTSUP, "has ended its main thread, and can't be attached "
				  "to without it; " START_INSTEAD);
	if (record_proc_is_dead(status))
		return attach_say(s, ESRCH, "has already ended; its parent has not waited for it "
				  "yet");
	return 0;
}

/* Refuses a vfork child, and the process that stops a program's threads for the agent
 * (arch/x86_64/stop.c). Both share their memory with another process, so each change that the agent
 * makes would appear in that process, too. */
static int check_shared(struct attach_subject *s, const char *status)
{
	pid_t parent = (pid_t)number_of(status, "PPid");

	if (record_proc_is_helper(s->pid))
		return attach_say(s, EAGAIN, "is a process of Patchbay's own, which ends in a "
				  "moment");
	if (!record_proc_shares(s->pid, parent))
		return 0;
	return attach_say(s, EAGAIN, "shares its memory with its parent, process %d; attach again "
			  "when it has executed a program", (int)parent);
}

static int check_stopped(struct attach_subject *s, const char *status)
{
	const char *state = record_proc_value(status, "State");

	if (state && (*state == 'T' || *state == 't'))
		return attach_say(s, EAGAIN, "is stopped; let it continue with `kill -CONT %d', "
				  "and attach again", (int)s->pid);
	return 0;
}

static int check_features(struct attach_subject *s, const char *status)
{
	const char *features = record_proc_value(status, "x86_Thread_features");
	const char *end = features ? strchr(features, '\n') : NULL;

	if (end && memmem(features, (size_t)(end - features), "shstk", 5))
		return attach_say(s, ENOTSUP, "uses a shadow stack, with which functions can't be "
				  "patched; start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off");
	return 0;
}

/* --- permissions ---------------------------------------------------------- */

static int yama_scope(void)
{
	char c = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &c, 1) != 1)
			c = '0';
		close(fd);
	}
	return c - '0';
}

/* Reads the real, the effective and the saved ID of the line Uid or Gid. */
static bool read_ids(const char *status, const char *key, unsigned id[3])
{
	const char *value = record_proc_value(status, key);

	return value && sscanf(value, "%u %u %u", &id[0], &id[1], &id[2]) == 3;
}

/* Explains why the process's memory can't be opened. */
static int say_forbidden(struct attach_subject *s, const char *status, int error)
{
	unsigned uid[3];
	int scope = yama_scope();

	if (error != EACCES && error != EPERM)
		return error == ENOENT || error == ESRCH ? attach_say_gone(s) :
		       attach_say(s, error, "can't be read: %s", strerror(error));
	if (scope >= 3)
		return attach_say(s, EPERM, "can't be attached to, because this machine forbids "
				  "it (kernel.yama.ptrace_scope is 3); " START_INSTEAD);
	if (geteuid() == 0)
		return attach_say(s, EPERM, "can't be attached to, because root lacks the "
				  "capability CAP_SYS_PTRACE here; give it to the container");
	if (read_ids(status, "Uid", uid) &&
	    (uid[0] != getuid() || uid[1] != getuid() || uid[2] != getuid())) {
		const struct passwd *user = getpwuid(uid[1]);

		return attach_say(s, EPERM, "belongs to another user (%s); run patchbay as "
				  "that user or as root", user ? user->pw_name : "unknown");
	}
	if (scope)
		return attach_say(s, EPERM, "can't be attached to, because this machine allows "
				  "this only to %s (kernel.yama.ptrace_scope is %d); run patchbay "
				  "as root, or set it to 0",
				  scope == 1 ? "parent processes" : "root", scope);
	return attach_say(s, EPERM, "protects itself from being traced (it isn't dumpable, for "
			  "example because it changed its user); run patchbay as root");
}

/* Whether the line has the same number for the real, the effective and the saved ID. */
static bool same_ids(const char *status, const char *key)
{
	unsigned id[3];

	return !read_ids(status, key, id) || (id[0] == id[1] && id[1] == id[2]);
}

/* Checks that the agent's helper may trace the threads. The helper has the process's credentials.
 * If the real, effective and saved IDs differ, it needs CAP_SYS_PTRACE (base/ptrace_right.h). */
int attach_fit_rights(struct attach_subject *s)
{
	char status[RECORD_STATUS_MAX];
	const char *caps;

	if (!read_status(s, status) || (same_ids(status, "Uid") && same_ids(status, "Gid")))
		return 0;
	caps = record_proc_value(status, "CapPrm");
	if (!caps || strtoull(caps, NULL, 16) & 1ull << CAP_SYS_PTRACE)
		return 0;
	return attach_say(s, EPERM, "has different user or group IDs (see Uid and Gid in "
			  "/proc/%d/status) and lacks CAP_SYS_PTRACE, so the agent can't stop its "
			  "threads; run it with equal IDs, or give it CAP_SYS_PTRACE",
			  (int)s->pid);
}

static int open_memory(struct attach_subject *s, const char *status)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)s->pid);
	s->mem = open(path, O_RDWR | O_CLOEXEC);
	return s->mem < 0 ? say_forbidden(s, status, errno) : 0;
}

/* --- program -------------------------------------------------------------- */

static int check_program(struct attach_subject *s)
{
	char path[64];
	unsigned char ident[EI_NIDENT] = { 0 };

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)s->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ident, sizeof(ident)) : -1;

	if (fd >= 0)
		close(fd);
	if (n == sizeof(ident) && ident[EI_CLASS] == ELFCLASS32)
		return attach_say(s, ENOTSUP, "is a 32-bit program; only 64-bit programs can be "
				  "traced");
	return 0;
}

int attach_fit(struct attach_subject *s)
{
	char status[RECORD_STATUS_MAX];
	int err;

	if (s->pid <= 0 || !read_status(s, status))
		return attach_say(s, ESRCH, "doesn't exist; `ps -e' lists the processes");
	if (s->pid == getpid())
		return attach_say(s, EINVAL, "is Patchbay itself, which can't be traced");
	err = check_state(s, status);
	if (!err)
		err = check_tracer(s, (pid_t)number_of(status, "TracerPid"));
	if (!err)
		err = check_stopped(s, status);
	if (!err)
		err = check_shared(s, status);
	if (!err)
		err = open_memory(s, status);
	if (!err)
		err = check_program(s);
	if (!err)
		err = check_features(s, status);
	if (!err)
		err = attach_sight_check(s, status);
	if (!err && record_held_frozen(s->pid))
		err = attach_say(s, EAGAIN, "is frozen by its control group; thaw it, and attach "
				 "again");
	if (err)
		return err;
	err = attach_maps_read(s);
	return err ? attach_say(s, -err, "can't be read: %s", strerror(-err)) : 0;
}
