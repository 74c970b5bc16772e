/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of an injection. A new thread of the process, which borrow.c has made, calls dlopen()
 * and the agent's patchbay_attach(). No other thread is stopped meanwhile, so each lock that
 * dlopen() needs becomes free.
 *
 * Each call returns to the instructions "syscall; ret" of getpid(), where the thread is stopped: at
 * the entry of the call, the call's number is the result of the function. If nobody traces the
 * thread any more, the system call with such a number does nothing, or fails, and the thread
 * returns into libc and ends.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/messages.h"
#include "attach/borrow.h"
#include "attach/inject.h"
#include "attach/fitness.h"
#include "base/clean_text.h"

#define CALL_NS		10000000000ull	/* how long a function of the new thread may take */
#define MAX_PATH_LEN	4096
#define AGENT_AT	4096		/* places in the scratch memory */
#define SESSION_AT	8192
#define NAME_AT		12288

struct injection {
	const struct pb_inject *in;
	struct pb_status status;
	struct pb_libc libc;
	struct pb_borrowed b;
	struct pb_remote r;		/* the new thread */
	uint64_t rsp;			/* its stack at its beginning, with the return address into
					 * libc */
	bool at_call;			/* it is stopped at the entry of a system call of ours */
	char why[512];
};

static int fail(struct injection *i, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(i->why, sizeof(i->why), fmt, ap);
	va_end(ap);
	return ret;
}

/* Lets the new thread run until it is about to make a system call with the instruction at
 * libc.call. */
static int to_call(struct injection *i, struct user_regs_struct *regs)
{
	enum pb_remote_event event;
	uint64_t value;
	int ret;

	i->at_call = false;
	do {
		ret = pb_remote_go(&i->r, PTRACE_SYSCALL, 0);
		if (!ret)
			ret = pb_remote_wait(&i->r, CALL_NS, &event, &value);
		if (!ret && event == PB_REMOTE_SIGNAL)
			return fail(i, -EFAULT, "got signal %d while it loaded the agent",
				    (int)value);
		if (!ret)
			ret = pb_remote_get_regs(&i->r, regs);
	} while (!ret && !(event == PB_REMOTE_SYSCALL && regs->rip == i->libc.call + 2 &&
			   (int64_t)regs->rax == -ENOSYS));
	if (ret == -ETIMEDOUT)
		return fail(i, ret, "doesn't load the agent: another thread holds a lock of the "
			    "dynamic loader");
	i->at_call = !ret;
	return ret ? fail(i, -ESRCH, "has ended meanwhile") : 0;
}

/* Calls a function in the new thread, which is about to make a system call. */
static int call(struct injection *i, uint64_t function, const uint64_t args[3], uint64_t *result)
{
	/* call's "syscall; ret" returns to its own ret, which returns into libc */
	const uint64_t returns[2] = { i->libc.call, i->libc.call + 2 };
	struct user_regs_struct regs;
	int ret = pb_remote_get_regs(&i->r, &regs);

	regs.orig_rax = ~0ull;
	regs.rip = function;
	regs.rsp = i->rsp - sizeof(returns);
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.rax = 0;
	regs.eflags &= ~0x400ull;	/* the direction flag */
	if (!ret)
		ret = pb_remote_write(&i->r, regs.rsp, returns, sizeof(returns));
	if (!ret)
		ret = pb_remote_set_regs(&i->r, &regs);
	if (ret)
		return fail(i, -ESRCH, "has ended meanwhile");
	ret = to_call(i, &regs);
	*result = regs.orig_rax;
	return ret;
}

/* Lets go a thread that waits for a lock in dlopen(). When it has the lock, it loads the agent,
 * returns and ends. The scratch memory stays. */
static void let_go(struct injection *i)
{
	enum pb_remote_event event;
	uint64_t value;

	ptrace(PTRACE_INTERRUPT, i->r.tid, NULL, NULL);
	if (!pb_remote_wait(&i->r, CALL_NS, &event, &value))
		pb_remote_release(&i->r);
}

/* Lets the new thread go: it unmaps the scratch memory, returns into libc, and ends. */
static void finish(struct injection *i)
{
	struct user_regs_struct regs;

	if (pb_remote_get_regs(&i->r, &regs) || !i->rsp) {
		let_go(i);
		return;
	}
	/* at the entry of a system call, this is the call; elsewhere, the call is made anew */
	regs.orig_rax = i->at_call ? SYS_munmap : ~0ull;
	regs.rip = i->at_call ? i->libc.call + 2 : i->libc.call;
	regs.rax = SYS_munmap;
	regs.rdi = i->b.scratch;
	regs.rsi = PB_SCRATCH;
	regs.rsp = i->rsp;
	pb_remote_set_regs(&i->r, &regs);
	ptrace(PTRACE_DETACH, i->r.tid, NULL, NULL);
}

static int put_string(struct injection *i, uint64_t at, const char *text)
{
	return pb_remote_write(&i->r, i->b.scratch + at, text, strlen(text) + 1);
}

/* Explains a failed dlopen() with the loader's own words. */
static int explain(struct injection *i)
{
	char text[300] = "";
	uint64_t at = 0;

	if (!call(i, i->libc.dlerror, (const uint64_t[3]){ 0 }, &at) && at)
		pb_remote_read_string(&i->r, at, text, sizeof(text));
	pb_text_clean(text, '?', 0);
	if (strstr(text, "static TLS"))
		return fail(i, -ENOMEM, "has no room for the agent's thread-local variables; start "
			    "it with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2048");
	return fail(i, -ELIBACC, "can't load the agent: %s", *text ? text : "no reason was given");
}

static int start_agent(struct injection *i, uint64_t handle)
{
	uint64_t base = i->b.scratch, function, result;
	int ret = call(i, i->libc.dlsym, (const uint64_t[3]){ handle, base + NAME_AT }, &function);

	if (ret)
		return ret;
	if (!function)
		return fail(i, -EPROTO, "has an agent of another version of Patchbay");
	ret = call(i, function, (const uint64_t[3]){ base + SESSION_AT, base + AGENT_AT,
						     PB_PROTOCOL }, &result);
	if (ret)
		return ret;
	switch ((int)result) {
	case 0:
		return 0;
	case -EBUSY:
		return fail(i, -EBUSY, "is traced by Patchbay already; see `patchbay ps'");
	case -EALREADY:
		return fail(i, -EBUSY, "was started by `patchbay record'; its agent can't be "
			    "attached again");
	case -EPROTO:
		return fail(i, -EPROTO, "has an agent of another version of Patchbay");
	}
	return fail(i, (int)result, "can't start the agent: %s", strerror(-(int)result));
}

static int load_agent(struct injection *i)
{
	uint64_t base = i->b.scratch, handle, ignored;
	struct user_regs_struct regs;
	int ret = to_call(i, &regs);

	if (ret)
		return ret;
	i->rsp = regs.rsp;
	if (put_string(i, AGENT_AT, i->in->agent) || put_string(i, SESSION_AT, i->in->session) ||
	    put_string(i, NAME_AT, "patchbay_attach"))
		return fail(i, -ESRCH, "has ended meanwhile");
	ret = call(i, i->libc.pthread_detach, (const uint64_t[3]){ i->b.id }, &ignored);
	if (!ret)
		ret = call(i, i->libc.dlopen,
			   (const uint64_t[3]){ base + AGENT_AT, RTLD_NOW | RTLD_LOCAL }, &handle);
	if (!ret)
		ret = handle ? start_agent(i, handle) : explain(i);
	return ret;
}

/* The new thread is stopped before its first instruction. */
static int wait_for_thread(struct injection *i)
{
	enum pb_remote_event event;
	uint64_t value;

	i->r.tid = i->b.tid;
	if (pb_remote_wait(&i->r, CALL_NS, &event, &value))
		return fail(i, -ESRCH, "has ended meanwhile");
	/* the agent's own thread isn't traced */
	ptrace(PTRACE_SETOPTIONS, i->r.tid, NULL, (void *)PTRACE_O_TRACESYSGOOD);
	return 0;
}

static int inject(struct injection *i)
{
	const char *why = NULL;
	int ret = pb_libc_find(&i->libc, i->in->pid, i->r.mem, &why);

	if (!ret)
		ret = pb_borrow(i->in->pid, i->r.mem, &i->libc, &i->b, &why);
	if (ret == -EPERM)
		pb_target_forbidden(i->in->pid, i->why, sizeof(i->why));
	else if (ret)
		fail(i, ret, "%s", why ? why : strerror(-ret));
	if (ret)
		return ret;
	ret = wait_for_thread(i);
	if (!ret)
		ret = load_agent(i);
	if (ret != -ESRCH)
		finish(i);
	return ret;
}

static int open_memory(struct injection *i)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)i->in->pid);
	i->r.mem = open(path, O_RDWR | O_CLOEXEC);
	if (i->r.mem >= 0)
		return 0;
	int ret = errno == EACCES ? -EPERM : -errno;
	if (ret == -EPERM)
		pb_target_forbidden(i->in->pid, i->why, sizeof(i->why));
	else
		fail(i, ret, "%s", strerror(-ret));
	return ret;
}

int pb_inject(const struct pb_inject *in, struct pb_injected *out, char *err, size_t size)
{
	struct injection *i = calloc(1, sizeof(*i));
	uint64_t begun = pb_remote_now();

	if (!i)
		return -ENOMEM;
	*i = (struct injection){ .in = in, .r = { .pid = in->pid, .mem = -1 } };
	int ret = strlen(in->agent) >= MAX_PATH_LEN || strlen(in->session) >= MAX_PATH_LEN ?
		  fail(i, -ENAMETOOLONG, "the agent's path is too long") :
		  pb_target_check(in->pid, in->agent, &i->status, i->why, sizeof(i->why));
	if (!ret)
		ret = open_memory(i);
	if (!ret)
		ret = inject(i);
	if (i->r.mem >= 0)
		close(i->r.mem);
	*out = (struct pb_injected){ .borrowed = i->b.from, .stop_ns = i->b.stop_ns,
				     .total_ns = pb_remote_now() - begun };
	if (ret && *i->status.comm)
		snprintf(err, size, "%s (%d) %s", i->status.comm, (int)in->pid, i->why);
	else if (ret)
		snprintf(err, size, "%d: %s", (int)in->pid, i->why);
	free(i);
	return ret;
}
