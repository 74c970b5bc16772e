/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each reason why a process can't be attached has its own sentence, which says what to do. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/fitness.h"
#include "base/base.h"
#include "base/clean_text.h"

static void say(char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
}

/* Takes one line of a status file. */
static void take_line(struct pb_status *s, const char *line)
{
	unsigned long mask;
	unsigned n;

	if (!strncmp(line, "Name:\t", 6)) {
		snprintf(s->comm, sizeof(s->comm), "%.*s", (int)strcspn(line + 6, "\n"), line + 6);
		pb_text_clean(s->comm, '?', 0);
	}
	if (sscanf(line, "State: %c", &s->state) == 1)
		return;
	if (sscanf(line, "Tgid: %u", &n) == 1)
		s->tgid = (pid_t)n;
	if (sscanf(line, "TracerPid: %u", &n) == 1)
		s->tracer = (pid_t)n;
	if (sscanf(line, "Uid: %*u %u", &n) == 1)
		s->uid = n;
	if (sscanf(line, "Seccomp: %u", &n) == 1)
		s->seccomp = n;
	if (sscanf(line, "SigPnd: %lx", &mask) == 1 || sscanf(line, "ShdPnd: %lx", &mask) == 1)
		s->pending |= mask;
	if (sscanf(line, "SigBlk: %lx", &mask) == 1)
		s->blocked = mask;
}

int pb_status_read(pid_t pid, pid_t tid, struct pb_status *s)
{
	char path[64], *line = NULL;
	size_t cap = 0;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	*s = (struct pb_status){ 0 };
	while (getline(&line, &cap, f) > 0)
		take_line(s, line);
	free(line);
	fclose(f);
	return s->state ? 0 : -ESRCH;
}

static int check_state(pid_t pid, const struct pb_status *s, char *why, size_t size)
{
	struct pb_status tracer;

	if (pid == getpid())
		return say(why, size, "is this command itself"), -ENOTSUP;
	if (s->tgid && s->tgid != pid) {
		snprintf(why, size, "is a thread; give its process, %d", (int)s->tgid);
		return -ENOTSUP;
	}
	if (s->state == 'Z' || s->state == 'X')
		return say(why, size, "has ended"), -ESRCH;
	if (s->tracer && !pb_status_read(s->tracer, 0, &tracer)) {
		snprintf(why, size, "is traced by %s (%d); end that first", tracer.comm,
			 (int)s->tracer);
		return -EBUSY;
	}
	if (s->state == 'T' || s->state == 't')
		return say(why, size, "is stopped; let it continue (kill -CONT) first"), -EAGAIN;
	return 0;
}

/* Reads the head of the executable. A kernel thread has none. */
static int check_program(pid_t pid, char *why, size_t size)
{
	char path[40];
	Elf64_Ehdr eh;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return say(why, size, "is a thread of the kernel"), -ENOTSUP;
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? -EPERM : -errno;
	ssize_t n = pread(fd, &eh, sizeof(eh), 0);
	close(fd);
	if (n != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return say(why, size, "has no ELF executable"), -ENOTSUP;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != EM_X86_64)
		return say(why, size, "is a 32-bit program, or for another machine; only x86-64 "
			   "can be traced"), -ENOTSUP;
	return 0;
}

/* The process opens the agent and the recorder's socket by their names. So it must have the same
 * root directory and mounts, as far as these names go. */
static int check_file(pid_t pid, const char *agent, char *why, size_t size)
{
	char path[PATH_MAX];
	struct stat here, there;

	if ((size_t)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, agent) >=
	    sizeof(path) || stat(agent, &here))
		return -ENAMETOOLONG;
	if (!stat(path, &there) && here.st_dev == there.st_dev && here.st_ino == there.st_ino)
		return 0;
	snprintf(why, size, "doesn't see %s: it has another root directory or other mounts (a "
		 "container?); run patchbay inside", agent);
	return -ENOTSUP;
}

static bool same_namespace(pid_t pid, const char *which)
{
	char path[48], here[64] = "", there[64] = "";

	snprintf(path, sizeof(path), "/proc/self/ns/%s", which);
	bool known = readlink(path, here, sizeof(here) - 1) > 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
	known &= readlink(path, there, sizeof(there) - 1) > 0;
	return !known || !strcmp(here, there);
}

void pb_target_forbidden(pid_t pid, char *why, size_t size)
{
	struct pb_status s;
	char scope = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &scope, 1) != 1)
			scope = '0';
		close(fd);
	}
	if (!pb_status_read(pid, 0, &s) && geteuid() && s.uid != geteuid())
		snprintf(why, size, "belongs to user %u; become that user, or root", s.uid);
	else if (scope == '3')
		say(why, size, "can't be attached: kernel.yama.ptrace_scope is 3, which no user "
		    "can change until the next boot");
	else if (scope != '0' && geteuid())
		say(why, size, "may be attached only by root: kernel.yama.ptrace_scope isn't 0; "
		    "set it to 0 (sysctl), or become root");
	else
		say(why, size, geteuid() ? "isn't dumpable (a setuid program?); become root" :
		    "can't be traced (a container without CAP_SYS_PTRACE, or a security module?)");
}

int pb_target_check(pid_t pid, const char *agent, struct pb_status *s, char *why, size_t size)
{
	*why = 0;
	int ret = pb_status_read(pid, 0, s);
	if (ret)
		return say(why, size, "no such process"), -ESRCH;
	ret = check_state(pid, s, why, size);
	if (!ret)
		ret = check_program(pid, why, size);
	if (ret == -EPERM && !*why)
		pb_target_forbidden(pid, why, size);
	if (ret)
		return ret;
	if (s->seccomp)
		return say(why, size, "has a seccomp filter, which may kill it for a system call "
			   "of the agent; use `patchbay record' to start the program"), -ENOTSUP;
	if (!same_namespace(pid, "pid") || !same_namespace(pid, "user"))
		return say(why, size, "is in another pid or user namespace (a container?); run "
			   "patchbay inside"), -ENOTSUP;
	return check_file(pid, agent, why, size);
}
