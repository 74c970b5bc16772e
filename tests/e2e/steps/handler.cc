/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The handler of SIGTRAP. It counts the instructions of the stepped call, and acts at one of them.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "steps.h"

namespace steps {

#define TRAP_FLAG	0x100
#define SIGCANCEL	32

bool raw, both;
enum act act;
volatile long step, step_at;
volatile bool happened, cancel_now, cancel_sent;
char acted_at[32];
sigjmp_buf out, *inside;
pthread_t cancelled;
bool observing, noting, poke_uncounted;
uint64_t *site_word, *ret_word, *jump_word;
unsigned char visited[AGENT_MAX];
unsigned visited_copies;
uint64_t interrupted_pc;
void *noted_goes_on;

const char *const act_names[NR_ACTS] = {
	"nothing", "look", "calls", "fill", "jump", "calls-jump", "jump-inside", "leaf-inside",
	"fork", "fork-calls", "fork-late", "throw", "cancel", "cancelled"
};

static uint64_t last_pc;		/* program counter at the previous step */
static bool can_unwind;

void jump_out(void)
{
	if (act == JUMP_INSIDE || act == LEAF_INSIDE)
		siglongjmp(*inside, 1);
	siglongjmp(out, 1);
}

static void jump_inside(void)
{
	sigjmp_buf here;

	inside = &here;
	if (!sigsetjmp(here, 0)) {
		if (act == LEAF_INSIDE)
			t_out(5);
		else
			t_root(5, t_out);
	}
}

static void act_now(void)
{
	happened = true;
	switch (act) {
	case CALLS:
		t_root(5, t_hand);
		t_root(6, t_leaf);
		break;
	case FILL:
		/* makes more records than a chunk has room for */
		for (int i = 0; i < 2100; i++)
			t_flush(0);
		break;
	case CALLS_JUMP:
		t_root(5, t_out);
		break;
	case JUMP:
		siglongjmp(out, 1);
	case JUMP_INSIDE:
	case LEAF_INSIDE:
		jump_inside();
		break;
	case FORK:
	case FORK_CALLS:
		fork_here();
		break;
	case FORK_LATE:
		fork_late();
		break;
	case THROW:
		if (can_unwind)
			throw thrown { step };
		break;
	case CANCEL:
		pthread_cancel(pthread_self());
		break;
	case CANCELLED:
		/* the signal of the cancellation comes at the instruction to which this handler
		 * returns */
		cancelled = pthread_self();
		cancel_now = true;
		while (!cancel_sent)
			sched_yield();
		break;
	default:
		break;
	}
}

/* If the instruction is a stub's jump to the agent, notes the address of the pointer that the jump
 * reads: jmp *(%r11) at an entry, jmp *DISTANCE(%rip) at an exit. */
static void note_word(const greg_t *g)
{
	const unsigned char *code = (const unsigned char *)g[REG_RIP];
	int32_t distance;

	if (in_agent(original((uint64_t)code)) || in_program((uint64_t)code))
		return;
	if (code[0] == 0x41 && code[1] == 0xff && code[2] == 0x23 && !site_word)
		site_word = (uint64_t *)g[REG_R11];
	if (code[0] != 0xff || code[1] != 0x25)
		return;
	memcpy(&distance, code + 2, 4);
	/* only the stub of a tail jump loads r11 before it jumps: lea 1f(%rip), %r11 */
	(code[-7] == 0x4c && code[-6] == 0x8d && code[-5] == 0x1d ? jump_word : ret_word) =
		(uint64_t *)(code + 6 + distance);
}

/* Returns whether the instruction at pc is a 64-bit xadd, which reserves a record. */
static bool is_reservation(uint64_t pc)
{
	const unsigned char *code = (const unsigned char *)pc;

	return in_agent(original(pc)) && code[0] == 0x48 && code[1] == 0x0f && code[2] == 0xc1;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t pc = raw ? (uint64_t)g[REG_RIP] : interrupted_pc, of = original(pc);
	int error = errno;

	step++;
	if (raw && in_agent(of)) {
		visited_copies += of != pc && !visited[of - agent];
		visited[of - agent] = 1;
	}
	if (noting)
		note_word(g);
	if (poke_uncounted && (uint64_t)g[REG_RIP] == agent + symbol("pb_enter_cramped"))
		((uint64_t *)g[REG_RDI])[T_COUNTS / 8] = 0;
	if (act == FILL && is_reservation(last_pc))
		act_now();
	last_pc = (uint64_t)g[REG_RIP];
	if (observing)
		look(g);
	if (step == step_at) {
		g[REG_EFL] &= ~TRAP_FLAG;
		/* the program's unwinder finds no unwind table for stubs, or for copies of the
		 * agent's code. So C++ can throw only from code of the program or the agent */
		can_unwind = in_program((uint64_t)g[REG_RIP]) || in_agent((uint64_t)g[REG_RIP]);
		put_pc(acted_at, sizeof(acted_at), pc);
		act_now();
	}
	/* SIGUSR1 comes when this handler returns, so it interrupts the same instruction */
	if (both)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	errno = error;
}

static void on_other(int sig)
{
}

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

/* Makes a system call that the agent doesn't notice: its instruction is neither in libc nor in the
 * program's file. */
static long unseen(long nr, long a, const void *b, const void *c, long d)
{
	/* mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi; mov %rcx,%rdx; mov %r8,%r10; syscall; ret */
	static const unsigned char code[] = {
		0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89,
		0xc2, 0x0f, 0x05, 0xc3 };
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long ret;

	if (at == MAP_FAILED)
		die("no memory");
	memcpy(at, code, sizeof(code));
	ret = ((long (*)(long, long, const void *, const void *, long))at)(nr, a, b, c, d);
	munmap(at, 4096);
	return ret;
}

void install(void)
{
	struct sigaction sa = {};
	struct kernel_action ka;

	sa.sa_handler = on_other;
	if (sigaction(SIGUSR1, &sa, NULL))
		die("sigaction");
	sa.sa_sigaction = on_step;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
	if (sigaction(SIGTRAP, &sa, NULL) || syscall(SYS_rt_sigaction, SIGTRAP, NULL, &ka, 8))
		die("sigaction");
	if (!raw) {
		noted_goes_on = ka.handler;
		ka.handler = (void *)note_pc;
		if (unseen(SYS_rt_sigaction, SIGTRAP, &ka, NULL, 8))
			die("rt_sigaction");
		return;
	}
	/* the raw handler keeps libc's restorer, because unwinders recognise it */
	ka.handler = (void *)on_step;
	ka.mask = 1ul << (SIGCANCEL - 1) | 1ul << (SIGUSR1 - 1);
	if (syscall(SYS_rt_sigaction, SIGTRAP, &ka, NULL, 8))
		die("rt_sigaction");
}

}
