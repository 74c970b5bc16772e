/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request asks the agent's thread to make a system call that changes credentials (creds.h). The
 * agent has memory for one request, which has these states:
 *
 *   FREE --(asking thread)--> FILLED --> ASKED --(agent's thread)--> DONE --(asking thread)--> FREE
 *
 * The asking thread waits for DONE, but not forever, because the agent's thread may be in the
 * middle of a batch. If the asking thread gives up, the agent's thread makes the requested system
 * call later, but before it acts on the recorder's next message. Under a seccomp filter the asking
 * thread makes no system call to wait: it spins. The agent's thread looks at the request every
 * 20 ms while it has no other work.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include "engine/process/creds.h"
#include "engine/process/replace.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"

#define WAIT_MS		2000
#define DISMISS_NS	10000000000ull
#define WAIT_PAUSES	(1u << 22)	/* these pauses take 0.1 to 0.2 seconds */
#define MAX_GROUPS	65536

enum { FREE, FILLED, ASKED, DONE };

static struct {
	uint32_t state;
	long nr, args[5];
} request;
/* A copy of the data that arguments point to. It is needed because the asking thread may give up
 * waiting. */
static uint8_t payload[MAX_GROUPS * sizeof(gid_t)] __attribute__((aligned(16)));
static uint32_t served_pid;	/* the process whose requests are served; 0: none */
static uint32_t served_epoch;	/* its epoch: a child in a PID namespace of its own may have the
				 * same PID */
static bool dismissed;		/* the agent's thread must end */
bool pb_creds_wanted;

void pb_creds_start(void)
{
	served_epoch = pb_process->epoch;
	served_pid = (uint32_t)pb_sys(SYS_getpid);
}

/* Returns the process whose requests are served if it is this one. Otherwise returns 0, for example
 * in a forked child, which has no thread of the agent. */
static uint32_t served(void)
{
	return *(volatile uint32_t *)&pb_process->epoch == served_epoch ? served_pid : 0;
}

void pb_creds_end(void)
{
	served_pid = 0;
	pb_creds_serve();
}

void pb_creds_forget(void)
{
	served_pid = 0;
	dismissed = false;
	request.state = FREE;
}

bool pb_creds_serve(void)
{
	const long *a = request.args;
	bool stays = !__atomic_load_n(&dismissed, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&request.state, __ATOMIC_ACQUIRE) != ASKED)
		return stays;
	pb_sys(request.nr, a[0], a[1], a[2], a[3], a[4]);
	__atomic_store_n(&request.state, DONE, __ATOMIC_RELEASE);
	pb_sys(SYS_futex, &request.state, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
	return stays;
}

/* The section for the code of wait_for_end(). A detach waits until no thread is in the agent's
 * code. It doesn't wait for a thread in this section, which itself waits for the detach. */
#define WAITING __attribute__((section("pb_waiting"), noinline))
extern const uint8_t __start_pb_waiting[] __attribute__((visibility("hidden")));
extern const uint8_t __stop_pb_waiting[] __attribute__((visibility("hidden")));

static WAITING void wait_for_end(uint32_t pid, uint32_t tid)
{
	struct { long sec, nsec; } ms = { 0, 1000000 };
	uint64_t start = pb_now_ns();

	while (pb_now_ns() - start < DISMISS_NS && pb_sys(SYS_tgkill, pid, tid, 0) != -ESRCH)
		pb_sys(SYS_nanosleep, &ms, NULL);
}

bool pb_creds_waits(uint64_t pc)
{
	return pc >= (uint64_t)__start_pb_waiting && pc < (uint64_t)__stop_pb_waiting;
}

void pb_creds_dismiss(void)
{
	uint32_t pid = served();

	/* a child has no thread of the agent that could be dismissed */
	if (!pid || !pb_calls_are_safe() || (uint32_t)pb_sys(SYS_getpid) != pid)
		return;
	__atomic_store_n(&dismissed, true, __ATOMIC_RELEASE);
	wait_for_end(pid, pb_agent_tid);
}

/* Measures how long one request has waited. */
struct patience {
	uint64_t start;
	uint32_t pauses;
	bool spin;
};

static struct patience begin(void)
{
	return (struct patience){ .start = pb_sandboxed ? 0 : pb_now_ns(), .spin = pb_sandboxed };
}

/* Waits a moment while the request has this state. False: the request has waited for long
 * enough. */
static bool wait_while(uint32_t state, struct patience *p)
{
	struct { long sec, nsec; } ms = { 0, 1000000 };

	if (p->spin) {
		pb_cpu_pause();
		return ++p->pauses < WAIT_PAUSES;
	}
	if (pb_now_ns() - p->start > WAIT_MS * 1000000ull)
		return false;
	pb_sys(SYS_futex, &request.state, FUTEX_WAIT, state, &ms, NULL, 0);
	return true;
}

/* Waits until the request is FREE or DONE, and takes its memory. The request stays DONE if the
 * thread that asked has given up waiting. */
static bool take_slot(struct patience *p)
{
	uint32_t state = FREE, pid = p->spin ? pb_process->pid : (uint32_t)pb_sys(SYS_getpid);

	/* a child, also of vfork, has credentials of its own, so the agent's thread stays as it
	 * is */
	if (!served() || pid != served())
		return false;
	while (!__atomic_compare_exchange_n(&request.state, &state, FILLED, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (state == DONE)
			continue;
		if (!wait_while(state, p))
			return false;
		state = FREE;
	}
	return true;
}

static void ask(struct patience *p, long nr, const long *args)
{
	uint32_t state = DONE;

	request.nr = nr;
	memcpy(request.args, args, sizeof(request.args));
	__atomic_store_n(&request.state, ASKED, __ATOMIC_RELEASE);
	while (__atomic_load_n(&request.state, __ATOMIC_ACQUIRE) == ASKED && wait_while(ASKED, p))
		;
	__atomic_compare_exchange_n(&request.state, &state, FREE, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

static void follow(long nr, long a, long b, long c, long d, long e)
{
	struct patience p = begin();

	if (take_slot(&p))
		ask(&p, nr, (long[]){ a, b, c, d, e });
}

/* ---- credentials that libc changes in all threads ------------------------- */

#define ONE_ID(name, type, nr, a, b, c) \
static int (*original_##name)(type id); \
static int our_##name(type id) \
{ \
	int ret = original_##name(id); \
\
	if (!ret) \
		follow(nr, (int)a, (int)b, (int)c, 0, 0); \
	return ret; \
}
#define TWO_IDS(name, type) \
static int (*original_##name)(type r, type e); \
static int our_##name(type r, type e) \
{ \
	int ret = original_##name(r, e); \
\
	if (!ret) \
		follow(SYS_##name, (int)r, (int)e, 0, 0, 0); \
	return ret; \
}
#define THREE_IDS(name, type) \
static int (*original_##name)(type r, type e, type s); \
static int our_##name(type r, type e, type s) \
{ \
	int ret = original_##name(r, e, s); \
\
	if (!ret) \
		follow(SYS_##name, (int)r, (int)e, (int)s, 0, 0); \
	return ret; \
}
ONE_ID(setuid, uid_t, SYS_setuid, id, 0, 0)
ONE_ID(setgid, gid_t, SYS_setgid, id, 0, 0)
ONE_ID(seteuid, uid_t, SYS_setresuid, -1, id, -1)
ONE_ID(setegid, gid_t, SYS_setresgid, -1, id, -1)
TWO_IDS(setreuid, uid_t)
TWO_IDS(setregid, gid_t)
THREE_IDS(setresuid, uid_t)
THREE_IDS(setresgid, gid_t)

static int (*original_setgroups)(size_t n, const gid_t *groups);
static int our_setgroups(size_t n, const gid_t *groups)
{
	int ret = original_setgroups(n, groups);
	struct patience p = begin();

	if (ret || n > MAX_GROUPS || !take_slot(&p))
		return ret;
	memcpy(payload, groups, n * sizeof(*groups));
	ask(&p, SYS_setgroups, (long[5]){ (long)n, (long)payload });
	return ret;
}

/* ---- credentials of one thread: the agent's thread follows the main thread --- */

/* If the program has asked for seccomp, returns false: the system calls that would answer the
 * question may end the program. */
static bool is_main_thread(void)
{
	return !pb_sandboxed && pb_sys(SYS_gettid) == pb_sys(SYS_getpid);
}

static int (*original_capset)(struct __user_cap_header_struct *h,
			      const struct __user_cap_data_struct *d);
static int our_capset(struct __user_cap_header_struct *h, const struct __user_cap_data_struct *d)
{
	size_t size = _LINUX_CAPABILITY_U32S_3 * sizeof(*d);
	int ret = original_capset(h, d);
	struct __user_cap_header_struct own;
	struct patience p = begin();

	/* after a failure, h may be invalid. pid: 0, or the number of the calling thread */
	if (ret || pb_sandboxed || (h->pid && h->pid != pb_sys(SYS_gettid)) || !is_main_thread() ||
	    h->version == _LINUX_CAPABILITY_VERSION_1 || !take_slot(&p))
		return ret;
	own = (struct __user_cap_header_struct){ .version = h->version };
	memcpy(payload, &own, sizeof(own));
	memcpy(payload + sizeof(*h), d, size);
	ask(&p, SYS_capset, (long[5]){ (long)payload, (long)(payload + sizeof(*h)) });
	return ret;
}

void pb_creds_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	switch (op) {
	case PR_SET_KEEPCAPS:
	case PR_SET_SECUREBITS:
	case PR_SET_NO_NEW_PRIVS:
	case PR_CAPBSET_DROP:
	case PR_CAP_AMBIENT:
		if (is_main_thread())
			follow(SYS_prctl, op, (long)a, (long)b, (long)c, (long)d);
	}
}

/* ---- the user that the agent's thread has got from the thread that made it --- */

bool pb_creds_are_those_of_main(void)
{
	static const char *const keys[] = { "Uid:", "Gid:", "Groups:", "CapPrm:" };
	static struct pb_task_status ours, mains;

	if (!pb_task_read_status(&ours, pb_agent_tid) ||
	    !pb_task_read_status(&mains, (uint32_t)pb_sys(SYS_getpid)))
		return false;
	for (size_t i = 0; i < pb_array_size(keys); i++) {
		size_t n = 0, m = 0;
		const char *a = pb_task_status_line(&ours, keys[i], &n);
		const char *b = pb_task_status_line(&mains, keys[i], &m);

		if (!a || !b || n != m || memcmp(a, b, n))
			return false;
	}
	return true;
}

void pb_creds_hook(struct pb_module *m)
{
	if (!pb_creds_wanted || original_setuid)
		return;
	pb_replace(m, "setuid", our_setuid, &original_setuid);
	if (!original_setuid)
		return;
	pb_replace(m, "setgid", our_setgid, &original_setgid);
	pb_replace(m, "seteuid", our_seteuid, &original_seteuid);
	pb_replace(m, "setegid", our_setegid, &original_setegid);
	pb_replace(m, "setreuid", our_setreuid, &original_setreuid);
	pb_replace(m, "setregid", our_setregid, &original_setregid);
	pb_replace(m, "setresuid", our_setresuid, &original_setresuid);
	pb_replace(m, "setresgid", our_setresgid, &original_setresgid);
	pb_replace(m, "setgroups", our_setgroups, &original_setgroups);
	pb_replace(m, "capset", our_capset, &original_capset);
}
