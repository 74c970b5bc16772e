/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The injector, the loader and the agent make system calls in the process. A seccomp filter may
 * forbid such a call, and may kill the process for it. So this file reads each filter of each
 * thread (PTRACE_SECCOMP_GET_FILTER), and runs the filter on each of these calls (filter_run.h).
 * All threads count, since the agent's code runs in all of them.
 *
 * The lists must have each SYS_* of src/engine, src/ring, src/base and src/arch, and the calls that
 * glibc's dlopen() and pthread_create() make. tests/attach/run_filter compares them with the
 * sources.
 */
#include "attach/seccomp.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "attach/borrow.h"
#include "attach/filter_run.h"
#include "attach/remote.h"
#include "base/base.h"

#define STOP_NS (1000 * ATTACH_MS)
#define LIBC_THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | \
		     CLONE_THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define OWN_THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
		    CLONE_SYSVSEM)
#define STOP_HELPER (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | CLONE_CHILD_CLEARTID)
#define INSTEAD "start the program with `patchbay record -- PROG' instead"

#define CALL(name) { #name, SYS_##name, 0, { 0 } }

/* Must be allowed: without one of them, nothing is traced, or a detach fails. */
static const struct attach_call needed[] = {
	CALL(read), CALL(pread64), CALL(openat), CALL(close), CALL(fstat), CALL(newfstatat),
	CALL(mmap), CALL(munmap), CALL(mprotect), CALL(madvise), CALL(futex), CALL(nanosleep),
	CALL(getpid), CALL(gettid), CALL(getppid), CALL(tgkill), CALL(rt_sigaction),
	CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(exit), CALL(connect), CALL(sendmsg),
	CALL(recvmsg), CALL(getsockopt), CALL(poll), CALL(ppoll), CALL(close_range),
	CALL(arch_prctl), CALL(sched_yield), CALL(clock_gettime), CALL(getdents64),
	CALL(readlink), CALL(set_robust_list), CALL(rseq), CALL(mremap), CALL(sigaltstack),
	CALL(rt_tgsigqueueinfo), CALL(lseek),
	/* a stop of all threads (arch/x86_64/stop.c), and the check that no other process shares
	 * the memory */
	CALL(ptrace), CALL(wait4), CALL(prctl), CALL(kcmp), CALL(process_vm_readv), CALL(pwrite64),
	{ "socket", SYS_socket, 3, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK } },
	{ "socketpair", SYS_socketpair, 3, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC } },
	{ "fcntl", SYS_fcntl, 2, { 0, F_DUPFD_CLOEXEC } },
	{ "clone", SYS_clone, 1, { LIBC_THREAD } },
	{ "clone", SYS_clone, 1, { OWN_THREAD } },
	{ "clone", SYS_clone, 1, { OWN_THREAD | CLONE_CHILD_CLEARTID } },
	{ "clone", SYS_clone, 1, { STOP_HELPER } },
	{ "clone", SYS_clone, 1, { STOP_HELPER | CLONE_PARENT } },
};

/* May be absent (ENOSYS): libc then uses another call, which is in the list of needed calls. */
static const struct attach_call replaced[] = {
	CALL(clone3),
};

/* May fail, but must not kill: the agent makes these calls only for some programs, or can do
 * without their result. The numbers of the last three entries aren't those of system calls. By the
 * number -1, the injector prevents a call. The other two stand for any result of a function, for
 * example the low half of an address, or -EINVAL: if the injector was killed, the system call at
 * the end of a way back (way_back.h) has such a result as its number. */
static const struct attach_call optional[] = {
	CALL(write), CALL(prlimit64), CALL(mlock), CALL(mlock2), CALL(mlockall), CALL(munlock),
	CALL(munlockall), CALL(seccomp), CALL(setuid), CALL(setgid), CALL(setgroups),
	CALL(setresuid), CALL(setresgid), CALL(capget), CALL(capset), CALL(setitimer),
	{ "an unknown system call", -1, 0, { 0 } },
	{ "an unknown system call", 0x3fff0123, 0, { 0 } },
	{ "an unknown system call", -22, 0, { 0 } },
};

static const struct {
	const struct attach_call *calls;
	size_t nr;
	enum attach_verdict worst;
} lists[] = {
	{ needed, pb_array_size(needed), ATTACH_ALLOWED },
	{ replaced, pb_array_size(replaced), ATTACH_ABSENT },
	{ optional, pb_array_size(optional), ATTACH_FAILS },
};

static int say_forbidden(struct attach_subject *s, const struct attach_call *c,
			 enum attach_verdict v)
{
	const char *does = v == ATTACH_FATAL ? "may kill it for" : "forbids";

	return attach_say(s, EACCES, "has a seccomp filter that %s %s, which the agent needs; "
			  "allow it, or " INSTEAD, does, c->name);
}

static int judge(struct attach_subject *s, const struct sock_filter *filter, size_t nr)
{
	for (size_t i = 0; i < pb_array_size(lists); i++)
		for (size_t k = 0; k < lists[i].nr; k++) {
			const struct attach_call *c = &lists[i].calls[k];
			enum attach_verdict v = attach_filter_run(filter, nr, c);

			if (v > lists[i].worst)
				return say_forbidden(s, c, v);
		}
	return 0;
}

static int say_unreadable(struct attach_subject *s, int error)
{
	if (error == EACCES || error == EPERM)
		return attach_say(s, EACCES, "has a seccomp filter, which may kill it while the "
				  "agent is loaded, and which only root can read; run patchbay as "
				  "root, or " INSTEAD);
	return attach_say(s, EACCES, "has a seccomp filter that can't be read (%s); " INSTEAD,
			  strerror(error));
}

/* Checks all filters of a stopped thread. */
static int check_filters(struct attach_subject *s, const struct attach_remote *t)
{
	struct sock_filter *filter = calloc(BPF_MAXINSNS, sizeof(*filter));
	int err = filter ? 0 : attach_say(s, ENOMEM, "can't be looked at: out of memory");

	for (unsigned i = 0; !err; i++) {
		int nr = attach_remote_filter(t, i, filter);

		if (nr == -ENOENT && i)
			break;
		err = nr < 0 ? say_unreadable(s, -nr) : judge(s, filter, (size_t)nr);
	}
	free(filter);
	return err;
}

static int check_thread(struct attach_subject *s, pid_t tid)
{
	char name[64], status[RECORD_STATUS_MAX];
	struct attach_remote t;
	const char *mode;

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (attach_proc_read(s, name, status, sizeof(status)) <= 0)
		return 0;	/* the thread has ended, but not the process */
	mode = record_proc_value(status, "Seccomp");
	if (!mode || *mode == '0')
		return 0;
	if (*mode == '1')
		return attach_say(s, EACCES, "runs in seccomp's strict mode, in which loading the "
				  "agent would kill it; " INSTEAD);
	int err = attach_remote_stop(&t, s->pid, tid, pb_now_ns() + STOP_NS);

	if (err == -ESRCH)
		return 0;
	if (err)
		return attach_say(s, -err, "has a seccomp filter, and can't be stopped to read it: "
				  "%s; try again", strerror(-err));
	err = check_filters(s, &t);
	return attach_borrow_undo(&t) && !err ?
	       attach_say(s, ETIMEDOUT, "has a thread that can't be released; try again") : err;
}

struct check {
	struct attach_subject *s;
	int err;
};

static bool visit_thread(void *arg, pid_t tid)
{
	struct check *c = arg;

	c->err = check_thread(c->s, tid);
	return !c->err;
}

int attach_seccomp_check(struct attach_subject *s)
{
	struct check c = { s, 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)s->pid);
	return record_proc_each(path, visit_thread, &c) && !c.err ? attach_say_gone(s) : c.err;
}
