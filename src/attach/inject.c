/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sequence of an injection (doc/design/injection.md): check the process, borrow a thread for
 * one pthread_create(), give that thread back, and let the new thread load the agent. If the
 * injector is killed, the process can go on, whichever step was under way. There is one exception,
 * from map_scratch() until create_thread() has written the way back ("The gap" in injection.md).
 */
#include "attach/inject.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <syscall.h>
#include <time.h>
#include "abi/messages.h"
#include "attach/agent_map.h"
#include "attach/borrow.h"
#include "attach/fit.h"
#include "attach/hand_over.h"
#include "attach/libc_map.h"
#include "attach/loading.h"
#include "attach/remote.h"
#include "attach/seccomp.h"
#include "attach/short_slice.h"
#include "attach/subject.h"
#include "attach/way_back.h"

#define SCRATCH_SIZE	(128u << 10)
#define START_NS	(100 * ATTACH_MS)
#define LIBC_NS		(2000 * ATTACH_MS)
#define CREATE_NS	(10000 * ATTACH_MS)
#define LOAD_NS		(20000 * ATTACH_MS)
#define EXEC_NS		(100 * ATTACH_MS)
#define DEATH_NS	(10000 * ATTACH_MS)
#define RELEASE_NS	(5000 * ATTACH_MS)
#define LEAVE_NS	(15000 * ATTACH_MS)
#define PAUSE_NS	(50 * ATTACH_MS)
#define PAUSE_MOST_NS	(800 * ATTACH_MS)
#define NO_LIMIT	UINT64_MAX
#define FLAGS_OFF	0x40500ull	/* direction, single step, alignment check */
/* The only signal that the borrowed thread and the new thread don't block. setuid() and similar
 * functions send it to all threads, and wait until each thread has handled it. Meanwhile they hold
 * a lock that pthread_create() takes. */
#define SIGNAL_OF_SETXID (1ull << (33 - 1))
#define ATTACH_NAME	40	/* room for the name of a descriptor */
#define STRINGS_MAX	(2 * ATTACH_PATH + 32)

struct injection {
	struct attach_subject s;
	bool leave, called;
	bool died;			/* the new thread has died */
	bool again;			/* a former agent is still leaving the process, or the agent
					 * of another injector isn't connected yet */
	struct attach_libc l;
	struct attach_remote borrowed, thread;
	struct attach_state state;	/* of the borrowed thread */
	uint64_t scratch;		/* address of SCRATCH_SIZE bytes in the process, which are
					 * the borrowed thread's stack while it calls
					 * pthread_create() */
	/* of the new thread */
	int begun;			/* 0: it is in its start routine; or -errno */
	struct user_regs_struct start;	/* its registers in the start routine */
	struct attach_way way;
	struct attach_hand hand;
	struct attach_loading loading;
	uint64_t session, agent, name;	/* strings on its stack */
	uint64_t answer;		/* an int on its stack */
	uint64_t deadline;
	uint64_t inherited;		/* if `leave` is set: the address of the agent's function;
					 * 0: the loader must find it */
};

/* --- the borrowed thread -------------------------------------------------- */

static void set_call(struct user_regs_struct *r, uint64_t rip, uint64_t a, uint64_t b, uint64_t c)
{
	r->rip = rip;
	r->rdi = a;
	r->rsi = b;
	r->rdx = c;
	r->orig_rax = UINT64_MAX;
	r->eflags &= ~FLAGS_OFF;
}

/* Makes the borrowed thread call mmap() or munmap() for the scratch memory. before_call: the thread
 * is stopped just before a system call. mmap() or munmap() replaces this call. */
static int scratch_call(struct injection *j, long number, bool before_call, int64_t *result)
{
	struct user_regs_struct r = j->state.regs;
	int err;

	set_call(&r, j->l.call, j->scratch, SCRATCH_SIZE, PROT_READ | PROT_WRITE);
	r.rax = (uint64_t)number;
	if (before_call) {
		r.rip += ATTACH_SYSCALL_SIZE;
		r.orig_rax = (uint64_t)number;
	}
	r.r10 = MAP_PRIVATE | MAP_ANONYMOUS;
	r.r8 = UINT64_MAX;
	r.r9 = 0;
	err = attach_remote_set_regs(&j->borrowed, &r);
	return err ? err : attach_remote_finish(&j->borrowed,
					      before_call ? 0 : j->l.call + ATTACH_SYSCALL_SIZE,
					      pb_now_ns() + CREATE_NS, result);
}

/* Lets the borrowed thread go on where it was stopped. If the injector is killed before it has set
 * the registers, the way back does the same (way_back.h), provided that it is written already. A
 * thread that is in a scratch_call() has no way back. So if such a call takes too long, this waits
 * for the thread without a limit. */
static void give_back(struct injection *j)
{
	struct user_regs_struct r;

	if (j->borrowed.running)
		attach_remote_trap(&j->borrowed, NO_LIMIT);
	/* if the thread is stopped just before the system call at the end of its way back, it must
	 * skip this call */
	if (!attach_remote_regs(&j->borrowed, &r)) {
		r.orig_rax = UINT64_MAX;
		attach_remote_set_regs(&j->borrowed, &r);
	}
	attach_way_restart(&j->state.regs, &r);
	if (!attach_remote_trap(&j->borrowed, NO_LIMIT)) {
		attach_remote_restore_mask(&j->borrowed, &j->state);
		attach_remote_set_regs(&j->borrowed, &r);
	}
	attach_remote_release(&j->borrowed, RELEASE_NS);
}

static int map_scratch(struct injection *j)
{
	int64_t result = 0;
	int err = attach_remote_set_mask(&j->borrowed, ~SIGNAL_OF_SETXID);

	if (!err)
		err = scratch_call(j, SYS_mmap, false, &result);
	if (!err && !pb_sys_failed(result)) {
		j->scratch = (uint64_t)result;
		return 0;
	}
	give_back(j);
	if (err == -ETIMEDOUT)
		return attach_say(&j->s, ETIMEDOUT, "took too long to map memory; try again");
	return err == -ESRCH ? attach_say_gone(&j->s) : err ?
	       attach_say(&j->s, -err, "can't be traced: %s", strerror(-err)) :
	       attach_say(&j->s, (int)-result, "has no memory left for the agent (%s); raise its "
			  "limits", strerror((int)-result));
}

static int say_not_created(struct injection *j, int error)
{
	/* the kernel refuses threads that would be in another PID namespace than their process */
	if (error == EINVAL)
		return attach_say(&j->s, error, "can't create a thread: it has chosen another PID "
				  "namespace for its children (unshare, setns); start it with "
				  "`patchbay record -- PROG' instead");
	return attach_say(&j->s, error ? error : EAGAIN, "can't create a thread (%s); raise its "
			  "limit of processes, or stop other processes of its user",
			  strerror(error ? error : EAGAIN));
}

/* Gives the borrowed thread back and writes the user's line, after pthread_create() has failed,
 * took too long, or couldn't be called. */
static int undo_create(struct injection *j, int err, uint64_t number)
{
	int64_t result;

	if (err == -ETIMEDOUT) {
		attach_remote_release(&j->borrowed, RELEASE_NS);
		return attach_say(&j->s, ETIMEDOUT, "took too long to create a thread; try again");
	}
	if (err == -ESRCH)
		return attach_say_gone(&j->s);
	if (err) {
		attach_remote_release(&j->borrowed, RELEASE_NS);
		return attach_say(&j->s, -err, "can't be traced: %s", strerror(-err));
	}
	scratch_call(j, SYS_munmap, true, &result);
	give_back(j);
	return say_not_created(j, (int)number);
}

/* Creates the new thread, and waits until it is in its start routine. Only then is the borrowed
 * thread given back. If it went on earlier, it might fork without libc. The child would have libc's
 * note that the new thread is about to begin, but not the thread. In the child, setuid() and
 * similar functions would then wait for this thread for ever. */
static int create_thread(struct injection *j)
{
	struct user_regs_struct r = j->state.regs;
	struct attach_way way;
	uint64_t number = 0;
	int64_t result;
	int err = attach_way_of_borrowed(&j->s, &j->l, &j->state, j->scratch + SCRATCH_SIZE, &way);

	if (err) {
		scratch_call(j, SYS_munmap, false, &result);
		give_back(j);
		return attach_say(&j->s, -err, "has memory that can't be written; start it with "
				  "`patchbay record -- PROG' instead");
	}
	/* pthread_create(scratch, NULL, start, NULL) */
	set_call(&r, j->l.pthread_create, j->scratch, 0, j->l.start);
	r.rcx = 0;
	r.rax = 0;
	r.rsp = way.sp;
	err = attach_remote_follow(&j->borrowed);
	if (!err)
		err = attach_remote_set_regs(&j->borrowed, &r);
	if (!err)
		err = attach_remote_run_both(&j->borrowed, way.arrival_sp, &j->thread,
					     j->l.call + ATTACH_SYSCALL_SIZE,
					     pb_now_ns() + CREATE_NS, &number, &j->begun);
	if (err || !j->borrowed.child)
		return undo_create(j, err, number);
	if (!j->begun)
		j->begun = attach_remote_regs(&j->thread, &j->start);
	give_back(j);
	return 0;
}

/* --- the new thread ------------------------------------------------------- */

/* Lets the new thread, which is stopped in its start routine, make a system call. before_call: the
 * thread is stopped just before a system call, which this call replaces. */
static int thread_call(struct injection *j, bool before_call, long number, uint64_t a, uint64_t b,
		       uint64_t c)
{
	struct user_regs_struct r = j->start;
	int64_t result;
	int err;

	set_call(&r, j->l.call, a, b, c);
	r.rax = (uint64_t)number;
	if (before_call) {
		r.rip += ATTACH_SYSCALL_SIZE;
		r.orig_rax = (uint64_t)number;
	}
	err = attach_remote_set_regs(&j->thread, &r);
	return err ? err : attach_remote_finish(&j->thread,
						before_call ? 0 : j->l.call + ATTACH_SYSCALL_SIZE,
						j->deadline, &result);
}

/* Lets the new thread unmap the scratch memory. The thread opens files when it loads the agent, and
 * the program may rely on the numbers of the descriptors that it opens meanwhile. So the thread
 * gets its own descriptor table, which is empty. There are two exceptions, in which the program may
 * see the thread's files for a moment. An old kernel refuses the call. And if descriptors are
 * handed over, the thread keeps the process's table, because the injector can reach only that
 * table. */
static int start_thread(struct injection *j)
{
	int err = j->begun ? j->begun :
		  thread_call(j, true, SYS_munmap, j->scratch, SCRATCH_SIZE, 0);

	return err || j->s.handed ? err :
	       thread_call(j, false, SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
}

/* Appends a string to `strings`, which will be written to the new thread's stack at `base`. Returns
 * the address that the string will have there. */
static uint64_t put(char *strings, size_t *at, uint64_t base, const char *text)
{
	size_t len = strlen(text) + 1, begin = *at;

	memcpy(strings + begin, text, len);
	*at += len;
	return base + begin;
}

/* Makes the names of the files that are handed over. The agent's name has a dot ("./N"). The loader
 * looks for loaded libraries by name. So without the dot, a program that loads a library from a
 * descriptor of the same number would get the agent. */
static int name_files(struct injection *j, char agent[ATTACH_NAME], char session[ATTACH_NAME])
{
	int err;

	j->hand = (struct attach_hand) {
		.s = &j->s, .l = &j->l, .thread = &j->thread, .start = &j->start,
		.deadline = j->deadline, .agent = -1, .session = -1,
	};
	if (!j->s.handed)
		return 0;
	err = attach_hand_over(&j->hand);
	snprintf(agent, ATTACH_NAME, PB_HANDED "./%d", j->hand.agent);
	snprintf(session, ATTACH_NAME, PB_HANDED "%d", j->hand.session);
	return err;
}

static int write_stack(struct injection *j, const char *agent, const char *session)
{
	char strings[STRINGS_MAX] = "";
	uint64_t base = (j->start.rsp - sizeof(strings) - 8) & ~15ull;
	size_t at = sizeof(int);

	memcpy(strings, &(int) { PB_ANSWER_NONE }, sizeof(int));
	j->answer = base;
	j->agent = put(strings, &at, base, j->s.handed ? agent : j->s.agent);
	j->session = put(strings, &at, base, j->s.handed ? session : j->s.session);
	j->name = put(strings, &at, base, j->leave ? "patchbay_leave" : "patchbay_attach");
	int err = attach_mem_write(&j->s, base, strings, at);

	return err ? err : attach_way_of_new(&j->s, &j->l, j->start.rsp, base, &j->way);
}

static int set_function(struct injection *j, uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	struct user_regs_struct r = j->start;

	set_call(&r, function, a, b, c);
	r.rax = 0;
	r.rcx = j->answer;
	r.rsp = j->way.sp;
	return attach_remote_set_regs(&j->thread, &r);
}

/* Makes the new thread call a function of libc, and waits until the function has returned. */
static int call_watched(struct injection *j, uint64_t function, uint64_t a, uint64_t b,
			const struct attach_watch *watch, uint64_t *result)
{
	int err = set_function(j, function, a, b, 0);

	return err ? err : attach_remote_run(&j->thread, j->l.call + ATTACH_SYSCALL_SIZE,
					     j->way.arrival_sp, j->deadline, watch, result);
}

static int call(struct injection *j, uint64_t function, uint64_t a, uint64_t b, uint64_t *result)
{
	return call_watched(j, function, a, b, NULL, result);
}

static int call_dlopen(struct injection *j, uint64_t *handle)
{
	const struct attach_watch watch = { attach_loading_called, &j->loading };

	return call_watched(j, j->l.dlopen, j->agent, RTLD_NOW | RTLD_LOCAL, &watch, handle);
}

static bool has_answered(const void *arg)
{
	const struct injection *j = arg;
	int answer;

	return !attach_mem_read(&j->s, j->answer, &answer, sizeof(answer)) && answer <= 0;
}

/* Makes the new thread call the agent's function. The function makes many system calls, and the
 * thread doesn't stop at each of them. When the agent has answered, the thread is stopped wherever
 * it is, perhaps in the handler of SIGSETXID. So its registers must not be changed before the
 * function has returned. */
static int call_agent(struct injection *j, uint64_t function, int *answer)
{
	const int seen = PB_ANSWER_SEEN;
	uint64_t result;
	int err = set_function(j, function, j->session, j->agent, PB_PROTOCOL);

	j->called = !err;
	if (!err)
		err = attach_remote_until(&j->thread, has_answered, j, j->deadline);
	if (!err)
		err = attach_mem_read(&j->s, j->answer, answer, sizeof(*answer));
	if (!err)
		err = attach_mem_write(&j->s, j->answer, &seen, sizeof(seen));
	return err ? err : attach_remote_run(&j->thread, j->l.call + ATTACH_SYSCALL_SIZE,
					     j->way.arrival_sp, j->deadline, NULL, &result);
}

/* Writes the text of dlerror() to the user's line, after dlopen() or dlsym() has failed. */
static int say_dlerror(struct injection *j)
{
	char text[512] = "";
	uint64_t at = 0;
	int err = call(j, j->l.dlerror, 0, 0, &at);

	if (err)
		return err;
	for (size_t i = 0; at && i < sizeof(text) - 1; i++)
		if (attach_mem_read(&j->s, at + i, text + i, 1) || !text[i])
			break;
	text[sizeof(text) - 1] = 0;
	if (strstr(text, "static TLS"))
		return attach_say(&j->s, ENOMEM, "has no static TLS memory left for the agent; "
				  "start it with GLIBC_TUNABLES="
				  "glibc.rtld.optional_static_tls=4096");
	return attach_say(&j->s, ELIBACC, "can't load the agent: %s",
			  text[0] ? text : "no reason is known");
}

/* Writes to the user's line why the agent has returned an error. */
static int say_refused(struct injection *j, int err)
{
	switch (err) {
	case -EBUSY:
		if (j->leave)
			return attach_say(&j->s, EBUSY, "has threads that don't leave traced code");
		return attach_say(&j->s, EBUSY, "is already being recorded; see `patchbay ps'");
	case -EAGAIN:
		j->again = true;
		return attach_say(&j->s, EAGAIN, "still has the agent of an earlier recording, "
				  "which is detaching; attach again");
	case -ENOTRECOVERABLE:
		return attach_say(&j->s, ENOTRECOVERABLE, "was not left completely by the agent of "
				  "an earlier recording, so it can't be attached to; restart it");
	case -EALREADY:
		return attach_say(&j->s, EBUSY, "was started by `patchbay record', so it can't be "
				  "attached to; start it without Patchbay");
	case -EPROTO:
		return attach_say(&j->s, EPROTO, "has an agent of another version of Patchbay; "
				  "restart it");
	}
	return attach_say(&j->s, -err, "has loaded the agent, but the agent can't start: %s",
			  strerror(-err));
}

/* Stores the address of the agent's function, after loading the agent. *said is as in load(). */
static int find_function(struct injection *j, uint64_t *function, bool *said)
{
	uint64_t handle;
	int err = call_dlopen(j, &handle);

	if (!err && handle)
		err = call(j, j->l.dlsym, handle, j->name, function);
	if (err || (handle && *function))
		return err;
	err = say_dlerror(j);
	*said = err != -ESRCH && err != -ETIMEDOUT;
	return err;
}

/* Loads the agent and starts it. Returns 0 or -errno. *said is set if the user's line is written
 * already. */
static int load(struct injection *j, bool *said)
{
	char agent[ATTACH_NAME] = "", session[ATTACH_NAME] = "";
	uint64_t function = j->inherited, result;
	int answer = 0, err = start_thread(j);

	if (!err) {
		err = name_files(j, agent, session);
		*said = err && err != -ESRCH && err != -ETIMEDOUT;
	}
	if (!err)
		err = write_stack(j, agent, session);
	if (!err)
		err = call(j, j->l.pthread_detach, j->start.fs_base, 0, &result);
	if (!err && !function)
		err = find_function(j, &function, said);
	if (err)
		return err;
	err = call_agent(j, function, &answer);
	if (!err && answer < 0) {
		*said = true;
		err = say_refused(j, answer);
	}
	return err;
}

/* Lets the new thread return from its start routine. After a time-out the thread is still running,
 * and returns later by its way back. */
static int end_thread(struct injection *j, int err, bool said)
{
	struct user_regs_struct r = j->start;

	if (!j->thread.running && r.rsp) {
		r.rax = 0;
		r.orig_rax = UINT64_MAX;
		attach_remote_set_regs(&j->thread, &r);
	}
	attach_remote_release(&j->thread, RELEASE_NS);
	j->died = err == -ESRCH;
	if (!err || said)
		return err;
	if (err == -ETIMEDOUT)
		return attach_say(&j->s, ETIMEDOUT, "took longer than 20 s to load the agent, "
				  "perhaps because it is loading another library; try again");
	if (err == -ESRCH && !attach_image_is_gone(&j->s))
		return attach_say(&j->s, EAGAIN, "has ended the thread that loads the agent; try "
				  "again");
	return err == -ESRCH ? attach_say_gone(&j->s) :
	       attach_say(&j->s, -err, "can't be attached to: %s", strerror(-err));
}

/* --- the whole ------------------------------------------------------------ */

/* A process that has just executed a program has no libc yet. So if the search for libc fails, the
 * checks are repeated for START_NS. If libc or the loader isn't mapped (EAGAIN), they are repeated
 * for LIBC_NS, because on a busy machine the loader may wait for a processor. */
static int check(struct injection *j)
{
	uint64_t begin = pb_now_ns();
	int err;

	for (;;) {
		err = attach_fit(&j->s);
		if (!err && !j->leave)
			err = attach_fit_rights(&j->s);
		if (err)
			return err;
		err = attach_libc_find(&j->s, &j->l);
		if (!err || pb_now_ns() - begin > (err == -EAGAIN ? LIBC_NS : START_NS) ||
		    attach_remote_is_late())
			return err;
		attach_libc_free(&j->l);
		attach_subject_free(&j->s);
		nanosleep(&(struct timespec) { .tv_nsec = (long)(20 * ATTACH_MS) }, NULL);
	}
}

static int inject(struct injection *j, struct pb_injected *out)
{
	uint64_t stopped;
	bool said = false;
	int err = check(j);

	if (!err && j->leave)
		j->inherited = attach_agent_function(&j->s, "patchbay_leave");
	if (!err)
		err = attach_loading_begin(&j->loading, &j->s);
	if (!err)
		err = attach_seccomp_check(&j->s);
	if (!err)
		err = attach_borrow(&j->s, &j->l, &j->borrowed, &j->state, &stopped);
	if (err)
		return err;
	out->borrowed = j->borrowed.tid;
	err = map_scratch(j);
	if (!err)
		err = create_thread(j);
	out->stop_ns = pb_now_ns() - stopped;
	if (!j->borrowed.child)
		return err;
	j->deadline = pb_now_ns() + LOAD_NS;
	if (err) {	/* the thread exists, although create_thread() has failed */
		if (!j->thread.tid)
			attach_remote_adopt(&j->thread, j->s.pid, j->borrowed.child, j->deadline);
		return err;
	}
	err = load(j, &said);
	if (!j->thread.running)
		attach_hand_close(&j->hand);
	return end_thread(j, err, said);
}

static int inject_once(const struct pb_inject *in, struct pb_injected *out, bool *again, char *err,
		       size_t size)
{
	struct injection j = { .hand = { .agent = -1, .session = -1 } };

	memset(out, 0, sizeof(*out));
	if (size)
		err[0] = 0;
	attach_subject_init(&j.s, in->pid, err, size);
	j.s.agent = in->agent;
	j.s.session = in->session;
	j.leave = in->leave;
	j.s.children = in->children;
	int ret = inject(&j, out);

	/* after an error one of the threads may still be traced, for example because it was
	 * killed */
	attach_remote_release(&j.borrowed, RELEASE_NS);
	attach_remote_release(&j.thread, RELEASE_NS);
	/* An exec may be the reason for the failure. It first ends all other threads, so any step
	 * may fail, and only then does the process get its new image. If the new thread has died,
	 * an exec or an exit is almost certainly the reason, but it may take long. */
	if (ret && attach_image_goes(&j.s, j.died ? DEATH_NS : EXEC_NS))
		ret = attach_say_gone(&j.s);
	out->called = j.called;
	*again = ret == -EAGAIN && (j.again || j.s.by_helper);
	attach_libc_free(&j.l);
	attach_subject_free(&j.s);
	return ret;
}

/* While the agent is leaving a former recording, it can't stop the threads of the process if one of
 * them is traced. So the new thread doesn't wait for it, and the injection is repeated. It is also
 * repeated if the agent's helper traced a thread that was to be traced. */
int pb_inject(const struct pb_inject *in, struct pb_injected *out, char *err, size_t size)
{
	uint64_t begin = pb_now_ns(), slice = attach_slice_shorten(), pause = PAUSE_NS;
	bool again;
	int ret;

	attach_remote_bound(in->until ? in->until : UINT64_MAX, in->limit);
	for (;;) {
		ret = inject_once(in, out, &again, err, size);
		if (!again || pb_now_ns() - begin > LEAVE_NS || attach_remote_is_late())
			break;
		nanosleep(&(struct timespec) { .tv_nsec = (long)pause }, NULL);
		pause = 2 * pause < PAUSE_MOST_NS ? 2 * pause : PAUSE_MOST_NS;
	}
	attach_remote_bound(UINT64_MAX, NULL);
	attach_slice_restore(slice);
	out->total_ns = pb_now_ns() - begin;
	return ret;
}
