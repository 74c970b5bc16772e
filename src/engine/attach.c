/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts the agent in a program that runs already. The injector (src/attach, in the recorder) makes
 * the program create a thread by libc's pthread_create(). In this thread the program loads the
 * agent by dlopen(), and calls patchbay_attach(). The thread only starts the agent's own thread,
 * reports the result to the injector, and ends. The agent's thread does everything else, and stays
 * until it has detached.
 *
 * The agent's thread begins with the TCB of the thread that started it, and this TCB may be freed
 * or reused when that thread ends. So the agent's thread gets a TLS block of its own, for the
 * agent's few variables in TLS.
 */
#include <asm/errno.h>
#include <elf.h>
#include <sys/mman.h>
#include "engine/attach.h"
#include "arch/arch.h"
#include "engine/process/aside.h"
#include "engine/process/creds.h"
#include "engine/detach.h"
#include "engine/files.h"
#include "engine/latched.h"
#include "engine/renew.h"
#include "engine/start.h"
#include "engine/uaccess.h"
#include "abi/messages.h"
#include "base/auxv.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"
#include "base/task.h"

#define PAGE	4096ul
#define OWN_PLACE (1ul << 40)
#define NAP_NS	1000000
/* How long the next attach waits until the former agent's thread has left. That thread can't stop
 * the program's threads meanwhile, because the injector traces one of them. So the wait is short,
 * and the injector tries again later. */
#define LEAVE_NS 100000000ull
/* How long the next attach waits until the former agent's thread has ended, after it has left. */
#define END_NS	2000000000ull
#define CREATOR_NS 30000000000ull	/* how long the agent waits for its creator to end */
#define ANSWER_NS 4000000000ull		/* how long the creator waits until the injector has seen
					 * its answer. After this time, it goes on waiting only
					 * while the injector traces it */

static PB_LASTING bool claimed;
static PB_LASTING uint32_t thread;	/* TID of the agent's thread; 0: it couldn't be made */
static uint32_t creator;	/* TID of the thread that called patchbay_attach() */
static PB_LASTING bool left;		/* the agent's thread has detached, or tracing couldn't be
					 * started; no thread is in the agent's code */
static bool connected;			/* the agent's thread has got the ring from its recorder.
					 * From now on, only pb_detach() unmaps the ring */
static struct pb_start start = { .live = true };
static int handed = -1;			/* a descriptor of the socket's file; -1: the socket has a
					 * path that the agent can open */
static uint64_t own_tp;			/* the thread pointer of the agent's thread */

/* Notes that hold only in the process that has made them. A forked child may have its parent's PID,
 * in another PID namespace. So this memory is wiped in a forked child. */
struct here {
	uint32_t process;	/* PID of the process in which the agent's thread runs; 0: none was
				 * noted in this process */
	uint32_t changing;	/* PID of this process if a thread is in claim(), begin() or
				 * patchbay_leave() */
};

static struct here *here(void)
{
	return pb_renew_spared();
}

static void note_process(void)
{
	if (here())
		here()->process = (uint32_t)pb_sys(SYS_getpid);
}

bool pb_attach_claim(void)
{
	if (__atomic_exchange_n(&claimed, true, __ATOMIC_ACQUIRE))
		return false;
	note_process();
	return true;
}

/* The kernel puts the program's file name, to which AT_EXECFN points, just below the upper end of
 * the main thread's stack. */
static uint64_t stack_top(void)
{
	uint64_t name = pb_auxv(AT_EXECFN, 0);

	return name ? (name + PAGE) & ~(PAGE - 1) : 0;
}

/* Makes a TLS block in which the agent's variables have the same offsets from the thread pointer as
 * in the calling thread. */
static int make_tls(void)
{
	uint64_t tp = pb_cpu_thread_pointer(), tls = (uint64_t)&pb_tls;
	uint64_t unblocked = (uint64_t)&pb_unblocked;
	uint64_t size = pb_align_up(tp - (tls < unblocked ? tls : unblocked), PAGE);
	long block = pb_pages_map(0, size + PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pb_sys_failed(block))
		return (int)block;
	own_tp = (uint64_t)block + size;
	memcpy((void *)(own_tp - (tp - tls)), &pb_tls, sizeof(pb_tls));
	return 0;
}

/* If the process was given a descriptor of the socket's file (PB_HANDED), returns it. Otherwise
 * returns -1. */
static int handed_descriptor(const char *session)
{
	int fd = 0;

	if (!pb_has_prefix(session, PB_HANDED))
		return -1;
	for (const char *p = session + sizeof(PB_HANDED) - 1; *p >= '0' && *p <= '9'; p++)
		fd = fd * 10 + (*p - '0');
	return fd;
}

/* Sets start.session to a path that names the socket's file by its descriptor in the table of the
 * agent's thread. The program can't close this descriptor. Other threads, which open later
 * connections, can use this path, too. */
static void name_session(void)
{
	static char path[64];
	size_t at = 0;

	pb_put_str(path, sizeof(path), &at, "/proc/self/task/");
	pb_put_u64(path, sizeof(path), &at, pb_agent_tid);
	pb_put_str(path, sizeof(path), &at, "/fd/");
	pb_put_u64(path, sizeof(path), &at, (uint64_t)handed);
	start.session = path;
}

static bool is_gone(uint32_t tid)
{
	return pb_sys(SYS_tgkill, pb_sys(SYS_getpid), tid, 0) == -ESRCH;
}

static bool wait_for_end(uint32_t tid, uint64_t ns)
{
	const struct { long sec, nsec; } nap = { 0, NAP_NS };
	uint64_t end = pb_now_ns() + ns;

	while (!is_gone(tid)) {
		if (pb_now_ns() > end)
			return false;
		pb_sys(SYS_nanosleep, &nap, NULL);
	}
	return true;
}

static int attached_thread(void *arg)
{
	int err;

	if (pb_thread_pointer_set(own_tp)) {
		left = true;
		return 0;
	}
	pb_agent_tid = (uint32_t)pb_sys(SYS_gettid);
	pb_stop_keep_dirs();
	if (handed >= 0)
		name_session();
	err = pb_start_connect(&start);
	if (err) {
		pb_start_missed(&start, err);
		left = true;
		return 0;
	}
	__atomic_store_n(&connected, true, __ATOMIC_RELEASE);
	pb_creds_start();
	/* The injector traces the thread that called patchbay_attach(), until that thread ends. The
	 * agent can't stop the threads while the injector traces one of them. */
	wait_for_end(creator, CREATOR_NS);
	left = pb_start_trace(&start) ? pb_detach(NULL) : pb_start_serve();
	return 0;
}

/* Whether this process was forked by the one to which the agent was attached. Such a child doesn't
 * have the agent's thread, but has everything that this thread has changed. */
static bool is_inherited(void)
{
	return here()->process != (uint32_t)pb_sys(SYS_getpid);
}

/* Whether the agent is recording. It isn't if it is leaving, or will leave as soon as its thread
 * gets a processor, because its recorder is gone. If the thread isn't connected yet, its recorder
 * may be gone, too. pb_detach() sets pb_detached, and then stops the threads. It unmaps the ring
 * only after a stop that found no thread in the agent's code. So if pb_detached isn't set, the ring
 * is there until this function returns. */
static bool is_recording(void)
{
	const struct pb_ring *ring;

	if (__atomic_load_n(&pb_detached, __ATOMIC_ACQUIRE) ||
	    !__atomic_load_n(&connected, __ATOMIC_ACQUIRE))
		return false;
	ring = pb_ring_map.ring;
	return !(__atomic_load_n(&ring->owner, __ATOMIC_RELAXED) & PB_OWNER_DIED) &&
	       !__atomic_load_n(&ring->closing, __ATOMIC_RELAXED);
}

static bool has_left(void)
{
	return __atomic_load_n(&left, __ATOMIC_ACQUIRE);
}

/* If the agent is leaving a former recording, for example because the recorder was killed, waits
 * until it has left. Returns 0 when it has left. -EBUSY: it isn't leaving, but recording. -EAGAIN:
 * it takes too long. -ENOTRECOVERABLE: its thread has ended, but text or threads still need the
 * agent. */
static int wait_for_leave(void)
{
	const struct { long sec, nsec; } nap = { 0, NAP_NS };
	uint64_t end = pb_now_ns() + LEAVE_NS;

	while (!has_left()) {
		if (is_recording())
			return -EBUSY;
		if (thread && is_gone(thread) && !has_left())
			return -ENOTRECOVERABLE;
		if (pb_now_ns() > end)
			return -EAGAIN;
		pb_sys(SYS_nanosleep, &nap, NULL);
	}
	return thread && !wait_for_end(thread, END_NS) ? -EAGAIN : 0;
}

/* Two injectors may call the agent's functions at the same time, each in a thread of its own.
 * Returns 0, -EBUSY or -ENOMEM. */
static int begin_change(void)
{
	uint32_t pid = (uint32_t)pb_sys(SYS_getpid);

	if (!here())
		return -ENOMEM;
	return __atomic_exchange_n(&here()->changing, pid, __ATOMIC_ACQ_REL) == pid ? -EBUSY : 0;
}

static void end_change(void)
{
	__atomic_store_n(&here()->changing, 0, __ATOMIC_RELEASE);
}

/* Leaves the recording of the process that has forked this one. Nothing is to be done if that
 * process's agent hadn't got as far as to connect. */
static bool leave_inherited(void)
{
	return !pb_text_lock_word || pb_detach_inherited();
}

/* Returns 0 if the agent may start: for the first time, or again after a detach, or again after
 * begin() has failed. */
static int claim(void)
{
	int err;

	if (pb_attach_claim()) {
		err = pb_renew_keep();
		if (err)
			__atomic_store_n(&claimed, false, __ATOMIC_RELEASE);
		return err;
	}
	if (!pb_renew_possible())
		return -EALREADY;
	if (is_inherited())
		err = leave_inherited() ? 0 : -ENOTRECOVERABLE;
	else
		err = wait_for_leave();
	if (err)
		return err;
	left = false;
	pb_renew();
	return 0;
}

/* Returns an address far below the agent, where hardly any program maps memory. */
static uint64_t own_place(void)
{
	return ((uint64_t)__ehdr_start - OWN_PLACE) & ~(PAGE - 1);
}

static int begin(const char *session, const char *agent)
{
	struct pb_known_thread self = {
		.stack_top = stack_top(), .tcb = pb_cpu_thread_pointer(),
		.tid = (uint32_t)pb_sys(SYS_gettid),
	};
	long tid;
	int err;

	pb_pages_next = own_place();
	err = pb_start_memory(&self);
	if (!err)
		err = make_tls();
	if (err)
		return err;
	start.session = pb_arena_copy(session, strlen(session));
	start.preload = pb_arena_copy(agent, strlen(agent));
	if (!start.session || !start.preload)
		return -ENOMEM;
	handed = handed_descriptor(session);
	creator = self.tid;
	tid = pb_aside_stay(attached_thread, NULL, handed);
	note_process();
	if (!pb_sys_failed(tid))
		thread = (uint32_t)tid;
	return pb_sys_failed(tid) ? (int)tid : 0;
}

/* Whether the injector still traces this thread. If the injector is killed, the kernel ends the
 * trace. */
static bool is_traced(void)
{
	static const char nobody[] = "TracerPid:\t0";
	struct pb_task_status s;
	size_t len;
	const char *line = pb_task_read_status(&s, (uint32_t)pb_sys(SYS_gettid)) ?
			   pb_task_status_line(&s, "TracerPid:", &len) : NULL;

	return line && (len != sizeof(nobody) - 1 || memcmp(line, nobody, len));
}

/* The last step of a function that the injector calls. Stores the result in *answer, and waits
 * until the injector has read it and stores PB_ANSWER_SEEN there (attach/inject.h), or until the
 * injector is gone: ANSWER_NS have passed, and it no longer traces this thread. (The time alone
 * doesn't show that it is gone. On a busy machine, it may get no processor for seconds.) */
static int give_answer(int result, int *answer)
{
	const struct { long sec, nsec; } nap = { 0, NAP_NS };
	uint64_t end = pb_now_ns() + ANSWER_NS;

	__atomic_store_n(answer, result, __ATOMIC_RELEASE);
	while (__atomic_load_n(answer, __ATOMIC_ACQUIRE) == result &&
	       (pb_now_ns() < end || is_traced()))
		pb_sys(SYS_nanosleep, &nap, NULL);
	return result;
}

static int attach(const char *session, const char *agent)
{
	int err = begin_change();

	if (err)
		return err;
	err = claim();
	if (!err) {
		err = begin(session, agent);
		if (err) {
			note_process();
			thread = 0;
			left = true;
		}
	}
	end_change();
	return err;
}

__attribute__((visibility("default")))
int patchbay_attach(const char *session, const char *agent, uint32_t protocol, int *answer)
{
	return give_answer(protocol == PB_PROTOCOL ? attach(session, agent) : -EPROTO, answer);
}

__attribute__((visibility("default")))
int patchbay_leave(const char *session, const char *agent, uint32_t protocol, int *answer)
{
	int err = protocol == PB_PROTOCOL ? begin_change() : -EPROTO;

	if (err)
		return give_answer(err, answer);
	if (is_inherited() && pb_ring_map.ring && !pb_detach_inherited())
		err = -EBUSY;
	end_change();
	return give_answer(err, answer);
}
