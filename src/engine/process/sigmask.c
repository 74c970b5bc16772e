/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tracks each thread's signal mask, for reads that may fault. Such a read is only tried if SIGSEGV
 * and SIGBUS are known to be unblocked. This file replaces the functions of libc that change a
 * mask, start a thread, or may change a mask unseen. The knowledge of a mask is cleared before the
 * mask changes, and set afterwards. So if a change is interrupted, the agent knows too little of
 * the mask, but nothing false. pb_note_setcontext() is an exception.
 */
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include "engine/process/sigmask.h"
#include "abi/analysis_access.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "engine/text/ftrace.h"
#include "engine/process/creds.h"
#include "engine/process/prctl.h"
#include "engine/process/replace.h"
#include "engine/process/sigaction.h"
#include "engine/uaccess.h"

#define NR_BOXES 1024	/* if more threads than this are being made at the same time, the further
			 * ones get no box (see below), and their masks stay unknown */

typedef int pthread_sigmask_fn(int how, const sigset_t *set, sigset_t *old);
typedef int pthread_create_fn(pthread_t *thread, const pthread_attr_t *attr,
			      void *(*start)(void *), void *arg);

static pthread_sigmask_fn *original_sigmask;
static pthread_create_fn *original_create;
void *pb_original_setcontext, *pb_original_swapcontext, *pb_original_syscall,
     *pb_original_pthread_exit, *pb_original_pthread_cancel, *pb_original_vfork;

/* The assembly of pb_our_*() and pb_thread_entry() (arch/arch.h) calls these functions. */
void pb_note_setcontext(const ucontext_t *to);
void pb_note_swapcontext(ucontext_t *from, const ucontext_t *to);
void pb_note_syscall(long nr, long a, long b, long c);
void pb_note_pthread_exit(void);
void pb_note_pthread_cancel(void);
struct pb_routine pb_thread_begins(void *box, const uint64_t *slot);

struct pb_routine {
	void *(*start)(void *);
	void *arg;
};

/* A box has the routine of a thread that is being made, until the thread begins. */
static PB_LASTING struct box {
	struct pb_routine routine;
	bool taken;
} boxes[NR_BOXES];

static uint64_t first_word(const sigset_t *set)
{
	uint64_t word;

	memcpy(&word, set, sizeof(word));
	return word;
}

static bool is_open(uint64_t mask)
{
	return !(mask & PB_FAULT_SIGNALS);
}

void pb_sigmask_ask(void)
{
	uint64_t mask = ~0ul;

	pb_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	pb_unblocked_set(is_open(mask), (uint64_t)__builtin_frame_address(0));
}

static uint64_t new_mask(int how, uint64_t old, const sigset_t *set, uint64_t arg)
{
	if (!set)
		return old;
	return how == SIG_SETMASK ? arg : how == SIG_BLOCK ? old | arg : old & ~arg;
}

static int our_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	uint64_t before = pb_unblocked.known, arg = set ? first_word(set) : 0;
	uint64_t frame = (uint64_t)__builtin_frame_address(0);
	sigset_t mine;
	int ret;

	pb_unblocked.known = 0;
	ret = original_sigmask(how, set, old ? old : &mine);
	if (ret)
		return ret;
	/* A child of posix_spawn comes here on a stack of its own, but with the TLS of its
	 * parent. The parent may have other signals blocked than the child. So on another stack
	 * than the thread's own, the child must not set `known` if it wasn't set before. */
	if (!is_open(new_mask(how, first_word(old ? old : &mine), set, arg)))
		return ret;
	if (before)
		pb_unblocked.known = before;
	else if (pb_on_own_stack(frame))
		pb_unblocked_set(true, frame);
	return ret;
}

/* setcontext() is about to set the thread's mask from the context. So `known` may be set here
 * before both signals are unblocked. That does no harm. Hits in libc make no reads that may fault,
 * and a handler that comes in between begins with `known` cleared.
 *
 * A handler may call this function, and the program may go back into the handler later. The agent
 * doesn't see this. So if the handler's return may block the signals, nothing is known of the mask
 * from now on. */
void pb_note_setcontext(const ucontext_t *to)
{
	if (to && !pb_unblocked_set(is_open(first_word(&to->uc_sigmask)),
				    (uint64_t)__builtin_frame_address(0)) &&
	    pb_unblocked.handler & PB_BLOCKS)
		pb_unblocked = (struct pb_unblocked){ 0 };
}

void pb_note_swapcontext(ucontext_t *from, const ucontext_t *to)
{
	pb_note_setcontext(to);
}

void pb_note_pthread_exit(void)
{
	pb_unblocked = (struct pb_unblocked){ 0 };
}

void pb_note_pthread_cancel(void)
{
	pb_reads_off();
}

static void begin_filter(long flags, long filter)
{
	if (flags & SECCOMP_FILTER_FLAG_TSYNC && filter)
		pb_creds_dismiss();
	pb_prctl_begins(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (unsigned long)filter);
}

void pb_note_syscall(long nr, long a, long b, long c)
{
	switch (nr) {
	case SYS_rt_sigprocmask:
		pb_unblocked.known = 0;
		break;
	case SYS_sigaltstack:
		pb_unblocked = (struct pb_unblocked){ 0 };
		break;
	case SYS_rt_sigaction:
		if (b && (a == SIGSEGV || a == SIGBUS))
			pb_sigaction_stand_down();
		break;
	case SYS_prctl:
		pb_prctl_begins((int)a, (unsigned long)b, (unsigned long)c);
		break;
	case SYS_seccomp:
		/* libraries call it with strict mode and arguments to find out whether the call
		 * exists */
		if (a == SECCOMP_SET_MODE_STRICT && !b && !c)
			pb_prctl_begins(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0);
		else if (a == SECCOMP_SET_MODE_FILTER)
			begin_filter(b, c);
		break;
	}
}

static struct box *take_box(void)
{
	for (int i = 0; i < NR_BOXES; i++)
		if (!__atomic_exchange_n(&boxes[i].taken, true, __ATOMIC_ACQUIRE))
			return &boxes[i];
	return NULL;
}

static void put_box(struct box *b)
{
	__atomic_store_n(&b->taken, false, __ATOMIC_RELEASE);
}

/* pthread_create() blocks all signals for a while, and may call the program's calloc(). So nothing
 * is known of the mask while pthread_create() runs. */
static int our_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		      void *arg)
{
	uint64_t known = pb_unblocked.known;
	struct box *b = take_box();
	int ret;

	pb_unblocked.known = 0;
	if (b) {
		b->routine = (struct pb_routine){ start, arg };
		ret = original_create(thread, attr, pb_thread_entry, b);
		if (ret)
			put_box(b);
	} else {
		ret = original_create(thread, attr, start, arg);
	}
	pb_unblocked.known = known;
	return ret;
}

struct pb_routine pb_thread_begins(void *box, const uint64_t *slot)
{
	struct pb_routine r = ((struct box *)box)->routine;

	put_box(box);
	pb_unblocked.slot = (uint64_t)slot;
	pb_unblocked.ret = *slot;
	pb_sigmask_ask();
	return r;
}

/* Returns whether the module has exactly one function of that name. If the symbol has a second
 * version, only one of the two can be replaced, and calls of the other aren't seen. */
static bool is_unique(const struct pb_module *m, const char *name)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);
	uint32_t nr = 0;

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++)
		nr += pb_function_has_name(m, &f[i], name);
	return nr == 1;
}

bool pb_sigmask_hook(struct pb_module *libc)
{
	const struct {
		const char *name;
		void *ours, *original;
		bool (*replace)(struct pb_module *m, const char *name, void *ours, void *original);
	} hooks[] = {
		{ "pthread_sigmask", our_sigmask, &original_sigmask, pb_replace },
		{ "pthread_create", our_create, &original_create, pb_replace },
		{ "pthread_exit", pb_our_pthread_exit, &pb_original_pthread_exit,
		  pb_replace_passing },
		{ "pthread_cancel", pb_our_pthread_cancel, &pb_original_pthread_cancel,
		  pb_replace_passing },
		{ "setcontext", pb_our_setcontext, &pb_original_setcontext, pb_replace_passing },
		{ "swapcontext", pb_our_swapcontext, &pb_original_swapcontext, pb_replace_passing },
		{ "vfork", pb_our_vfork, &pb_original_vfork, pb_replace_passing },
		{ "syscall", pb_our_syscall, &pb_original_syscall, pb_replace_passing },
	};

	if (!pb_function_named(libc, "gnu_get_libc_version"))
		return false;
	for (size_t i = 0; i < pb_array_size(hooks); i++)
		if (!is_unique(libc, hooks[i].name))
			return false;
	for (size_t i = 0; i < pb_array_size(hooks); i++)
		if (!hooks[i].replace(libc, hooks[i].name, hooks[i].ours, hooks[i].original))
			return false;
	return true;
}
