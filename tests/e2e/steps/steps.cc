/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that single-steps its own calls. For each k, its SIGTRAP handler acts at the k-th
 * instruction of a call: it makes calls, jumps, throws, forks, or cancels the thread. The handler
 * finds the instruction by counting, whichever code runs. run_steps reads the program's output:
 *
 *   o FUNCTION STATE K PC RSP REGISTERS | CALLERS    what a handler sees at an instruction
 *   = FUNCTION STATE K REGISTERS                     K: number of steps; REGISTERS: after the call
 *   s TID MARK ACTION FUNCTION STATE K HAPPENED PC CALLS...
 *                                                    calls of each function since the last mark
 *   c TID EXPECTED                                   the number of the thread's marks
 *   x ACTION FUNCTION STATE K STATUS                 a child died
 *   v OFFSET                                         an instruction of the agent that was stepped
 *   n COUNT                                          how many of these instructions first ran in
 *                                                    a copy near the program
 *
 *   steps libc|raw|both POINTS
 *         all|quick|brief|observe|stepped|late|extra|names [FUNCTION,... [ACTION,...]]
 *
 * names: only prints FUNCTION:STATE of each call that "all" would make.
 * POINTS: the number of instructions that are tried in a call on a slow path. On other paths, "all"
 * tries all instructions, and quick and brief runs try 5 * POINTS. FUNCTION may be FUNCTION:STATE.
 * raw: the handler is installed by a raw system call, so that the agent isn't notified of the
 * handler. both: like raw, but at each instruction SIGUSR1 comes right after the step's signal.
 * libc installed the handler of SIGUSR1.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define NR_FUNCTIONS	27
#define TRAP_FLAG	0x100
#define FLAGS		0x8d5
#define MAX_FRAMES	40
#define AGENT_MAX	(4 << 20)
#define HEAD_SIZE	2048	/* the part of a file of stubs that has copies of the agent's code */
#define COPIED		"pb_open_none", "pb_open_none_nested", "pb_open_ret_none", "pb_open_jump_none", \
			"pb_exit_ret_idle", "pb_exit_jump_idle"
#define SIGCANCEL	32
#define NUMBER_USED	77

extern "C" {
long t_leaf(long), t_far(long), t_caller(long), t_cond(long), t_tail(long), t_tree(long), t_mark(long), t_hand(long),
	t_out(long), t_nap(long), t_unseen(long), t_entry(long), call_pops(long), call_framed(long), t_flush(long), t_calls_tail(long), t_away(long),
	t_away_tail(long), t_late(long), t_late_tail(long), call_traps(long), t_hidden(long), call_cramped(long),
	fill_cramped(long), call_entry_cramped(long), gone_or_untraced(long);
uint64_t cramped_at;
long t_root(long, long (*)(long)), t_deep(long calls, long (*)(long), long);
void run_stepped(long (*f)(long), long x, uint64_t registers[16]);
void jump_out(void), nap(void), long_nap(void), note_pc(void);
uint64_t interrupted_pc;
void *noted_goes_on;
uint64_t made[NR_FUNCTIONS];
extern char __executable_start, etext;
}

enum act { NOTHING, LOOK, CALLS, FILL, JUMP, CALLS_JUMP, JUMP_INSIDE, LEAF_INSIDE, FORK, FORK_CALLS, FORK_LATE, THROW, CANCEL, CANCELLED, NR_ACTS };
static const char *const act_names[] = { "nothing", "look", "calls", "fill", "jump", "calls-jump", "jump-inside", "leaf-inside", "fork", "fork-calls",
					 "fork-late", "throw", "cancel", "cancelled" };

struct thrown { long at; };

static bool raw, both, all;
static enum act act;
static volatile long step, step_at;
static uint64_t last_pc;		/* program counter at the previous step */
static char acted_at[32];		/* the real program counter at which the handler acted */
static const char *function, *state;
static sigjmp_buf out, *inside;
static volatile bool happened, cancel_now, cancel_sent;
static bool observing, can_unwind;
static bool is_child, noting, poke_uncounted;
static __thread long marks;
static uint64_t made_at_mark[NR_FUNCTIONS];
static uint64_t agent;
static unsigned char visited[AGENT_MAX];
static unsigned visited_copies;
/* Some of the agent's functions have copies near the program. A copy has `size` bytes from `at` on.
 * `of` is the address of the function itself. */
static struct { uint64_t at, of, size; } copies[16];
static int nr_copies;
static pthread_t cancelled;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "steps: %s %s %s, step %ld: ", act_names[act], function ? function : "", state ? state : "", step);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	_exit(3);
}

/* ---- what is printed --------------------------------------------------------- */

static char text[1 << 20];
static size_t used;

static void print_out(void)
{
	for (size_t n = 0; n < used; ) {
		ssize_t w = write(1, text + n, used - n);

		if (w <= 0)
			_exit(4);
		n += (size_t)w;
	}
	used = 0;
}

static void print(const char *format, ...)
{
	va_list args;

	/* writes only whole lines, since a child may print before the rest is written */
	if (used > sizeof(text) - 65536 && text[used - 1] == '\n')
		print_out();
	va_start(args, format);
	used += (size_t)vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
}

/* Returns the offset of a symbol in the agent. The environment variable STEPS_SYMBOLS has the form
 * NAME=OFFSET,... */
static uint64_t symbol(const char *name)
{
	const char *at = getenv("STEPS_SYMBOLS");
	size_t n = strlen(name);

	for (; at; at = strchr(at, ','), at += at ? 1 : 0)
		if (!strncmp(at, name, n) && at[n] == '=')
			return strtoul(at + n + 1, NULL, 16);
	die("no symbol");
	return 0;
}

/* Returns the size of a symbol: NAME.size=SIZE. */
static uint64_t symbol_size(const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s.size", name);
	return symbol(key);
}

/* ---- what a handler does ----------------------------------------------------- */

struct frames {
	uint64_t pc[MAX_FRAMES];
	int nr, programs;
	bool interrupted;	/* the walk has passed the handler's own frames */
};

static bool in_program(uint64_t pc)
{
	return pc >= (uint64_t)&__executable_start && pc < (uint64_t)&etext;
}

static bool in_agent(uint64_t pc)
{
	return agent && pc - agent < AGENT_MAX;
}

/* If pc is in a copy, returns the same place in the agent, else pc. */
static uint64_t original(uint64_t pc)
{
	for (int i = 0; i < nr_copies; i++)
		if (pc - copies[i].at < copies[i].size)
			return copies[i].of + (pc - copies[i].at);
	return pc;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *arg)
{
	struct frames *f = (struct frames *)arg;
	int exact = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &exact);

	f->interrupted |= exact;
	if (f->interrupted && f->nr < MAX_FRAMES) {
		f->pc[f->nr++] = pc;
		f->programs += !in_agent(pc);
	}
	return f->programs < 8 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Writes a PC. In the program: the PC itself. In the agent: "+" and the offset in the agent. In a
 * stub: "?" and the PC. In a copy of the agent's code: like the agent. */
static void put_pc(char *buffer, size_t size, uint64_t pc)
{
	pc = original(pc);
	snprintf(buffer, size, "%s%lx", in_agent(pc) ? "+" : in_program(pc) ? "" : "?", in_agent(pc) ? pc - agent : pc);
}

static void look(const greg_t *g)
{
	static const int numbers[] = { REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBX, REG_R8, REG_R9, REG_R10,
				       REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RBP };
	static uint64_t first;
	uint64_t pc = (uint64_t)g[REG_RIP];
	struct frames f = {};
	char at[32];

	if (step == 1 || (uint64_t)g[REG_RSP] - first + 65536 > 2 * 65536)
		first = (uint64_t)g[REG_RSP];
	_Unwind_Backtrace(frame, &f);
	if (original(pc) == pc)
		put_pc(at, sizeof(at), pc);
	else
		snprintf(at, sizeof(at), "?%lx", pc);	/* a copy has no unwind table */
	if (cramped_at && (uint64_t)g[REG_RSP] - cramped_at + 1024 < 2048)
		first = cramped_at;
	print("o %s %s %ld %s %ld", function, state, step, at, (long)((uint64_t)g[REG_RSP] - first));
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t value = (uint64_t)g[numbers[i]];
		bool stack = value - first + 65536 < 2 * 65536;

		print(stack ? " s%lx" : " %lx", stack ? value - first : value);
	}
	/* leaves out PF and AF, which depend on the numbers in made[] */
	print(" %llx |", (unsigned long long)(g[REG_EFL] & FLAGS & ~0x14));
	for (int i = 0; i < f.nr; i++) {
		print(" %s%lx", in_agent(f.pc[i]) ? "+" : "", in_agent(f.pc[i]) ? f.pc[i] - agent : f.pc[i]);
		if (!in_agent(f.pc[i]) && !in_program(f.pc[i]))
			break;
	}
	print("\n");
}

void jump_out(void)
{
	if (act == JUMP_INSIDE || act == LEAF_INSIDE)
		siglongjmp(*inside, 1);
	siglongjmp(out, 1);
}

/* Doesn't use libc, because the first call would also step through the loader's resolver. The system
 * call leaves the flags in r11. The cmp sets the flags, so that r11 is the same in each run. */
void nap(void)
{
	struct timespec t = { 0, 500000 };
	long ret = SYS_nanosleep;

	__asm__ volatile("cmp %%rax, %%rax; syscall" : "+a"(ret) : "D"(&t), "S"(0) : "rcx", "r11", "memory");
}

/* Sleeps so long that the time field of a LEAF can't express the time since the last record. */
void long_nap(void)
{
	struct timespec t = { 1, 0 };

	nanosleep(&t, NULL);
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

/* If two threads had the same tid, the tid would name two parts of the recording. So each tid is
 * used only once. */
static unsigned char used_tids[1 << 22];

static bool is_new(long tid)
{
	return tid >= (long)sizeof(used_tids) || !used_tids[tid];
}

static void use(long tid)
{
	if (tid < (long)sizeof(used_tids))
		used_tids[tid] = 1;
}

/* This process's mapping of the ring (src/abi/ring.h). */
static char *ring;

struct chunk {
	uint32_t state, serial, buffer, image, pid, tid;
};

/* Is called in a child while the parent waits for the child. The child must not write into the
 * chunks of the thread that forked, so the function makes these chunks read-only. The thread's
 * chunks are the OPEN, HELD and TAKEN chunks with its serial. They stay the thread's chunks
 * meanwhile, because only the thread itself could hand them over, and it waits. */
static void protect_parents(pid_t pid, pid_t tid)
{
	enum { CHUNK_SIZE = 16384, CHUNK_OPEN = 1, CHUNK_HELD = 4, CHUNK_TAKEN = 5, THREAD_WORDS = 16 };
	const uint32_t *head = (const uint32_t *)ring, *thread;
	uint32_t serial = 0, nr_threads = ring ? head[4] : 0, nr_chunks = ring ? head[5] : 0;
	uint64_t threads, chunks;
	const uint64_t *taken;

	if (!ring)
		return;
	memcpy(&threads, ring + 24, 8);
	memcpy(&chunks, ring + 32, 8);
	thread = (const uint32_t *)(ring + threads);
	/* tids are used again, so the last row with this pid and tid is the valid one */
	taken = (const uint64_t *)(ring + threads + nr_threads * 64ul);
	for (uint32_t i = 0; i < nr_threads && thread[i * THREAD_WORDS]; i++)
		if (thread[i * THREAD_WORDS + 1] == (uint32_t)pid && thread[i * THREAD_WORDS + 2] == (uint32_t)tid)
			serial = thread[i * THREAD_WORDS];
	for (uint32_t i = 0; serial && i < nr_chunks; i++) {
		char *at = ring + chunks + i * (uint64_t)CHUNK_SIZE;
		const struct chunk *c = (const struct chunk *)at;

		if (taken[i / 64] >> i % 64 & 1 && c->serial == serial && (c->state == CHUNK_OPEN || c->state == CHUNK_HELD || c->state == CHUNK_TAKEN) &&
		    mprotect(at, CHUNK_SIZE, PROT_READ))
			_exit(6);
	}
}

/* The child of FORK_LATE. It goes on when the call is over in the parent. */
static pid_t late_child;
static int late_fd;

static void child_ends(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		die("no child");
	if (status)
		print("x %s %s %s %ld %d\n", act_names[act], function, state, step, status);
}

static void fork_late(void)
{
	int fd[2];
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		die("socketpair");
	pid = fork();
	if (!pid) {
		if (!is_new(getpid()))
			_exit(NUMBER_USED);
		close(fd[0]);
		if (write(fd[1], &c, 1) != 1 || read(fd[1], &c, 1))
			_exit(5);
		is_child = true;
		alarm(20);
		used = 0;
		marks = 0;
		memcpy(made_at_mark, made, sizeof(made));
		return;
	}
	close(fd[1]);
	if (read(fd[0], &c, 1) == 1) {
		use(pid);
		late_child = pid;
		late_fd = fd[0];
		return;
	}
	close(fd[0]);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("no child");
	fork_late();
}

static void release_late_child(void)
{
	if (!late_child)
		return;
	close(late_fd);
	child_ends(late_child);
	late_child = 0;
}

static void fork_here(void)
{
	pid_t pid, parent = getpid(), thread = (pid_t)syscall(SYS_gettid);
	int status = 0;

	pid = fork();
	if (!pid) {
		if (!is_new(getpid()))
			_exit(NUMBER_USED);
		protect_parents(parent, thread);
		is_child = true;
		alarm(20);	/* a child that hangs is reported like one that dies */
		used = 0;
		marks = 0;
		memcpy(made_at_mark, made, sizeof(made));
		if (act == FORK_CALLS)
			t_root(5, t_hand);
		return;		/* the child continues with the stepped call */
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("no child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == NUMBER_USED)
		return fork_here();
	use(pid);
	if (status)
		print("x %s %s %s %ld %d\n", act_names[act], function, state, step, status);
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

/* Addresses of the pointers through which stubs jump to the agent. site_word: the pointer of the
 * first site that a call hits. ret_word: the pointer for returns. jump_word: the pointer for tail
 * jumps. */
static uint64_t *site_word, *ret_word, *jump_word;

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
	(code[-7] == 0x4c && code[-6] == 0x8d && code[-5] == 0x1d ? jump_word : ret_word) = (uint64_t *)(code + 6 + distance);
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
		((uint64_t *)g[REG_RDI])[56 / 8] = 0;
	if (act == FILL && is_reservation(last_pc))
		act_now();
	last_pc = (uint64_t)g[REG_RIP];
	if (observing)
		look(g);
	if (step == step_at) {
		g[REG_EFL] &= ~TRAP_FLAG;
		/* the program's unwinder finds no table of stubs and copies. So C++ can throw only
		 * from code of the program or the agent */
		can_unwind = in_program((uint64_t)g[REG_RIP]) || in_agent((uint64_t)g[REG_RIP]);
		put_pc(acted_at, sizeof(acted_at), pc);
		act_now();
	}
	/* the signal comes when this handler returns, so it interrupts the same instruction */
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

/* Makes a system call by an instruction that neither libc nor the program's file has. */
static long unseen(long nr, long a, const void *b, const void *c, long d)
{
	/* mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi; mov %rcx,%rdx; mov %r8,%r10; syscall; ret */
	static const unsigned char code[] = { 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89,
					      0xc2, 0x0f, 0x05, 0xc3 };
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long ret;

	if (at == MAP_FAILED)
		die("no memory");
	memcpy(at, code, sizeof(code));
	ret = ((long (*)(long, long, const void *, const void *, long))at)(nr, a, b, c, d);
	munmap(at, 4096);
	return ret;
}

static void install(void)
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

/* ---- one call ---------------------------------------------------------------- */

static uint64_t wanted[16];
static bool known;		/* wanted[] has the values that registers have after the call */

/* Calls f. At the k-th instruction of the call, the handler performs the action `a`. */
__attribute__((noinline)) static void attempt(long (*f)(long), long x, enum act a, long k)
{
	volatile char deeper[8192];	/* later calls have return slots above this array, so they
					 * find that the calls below it are gone */
	uint64_t registers[16];

	deeper[0] = 0;
	(void)deeper[0];
	act = a;
	step = 0;
	step_at = k;
	happened = false;
	if (sigsetjmp(out, 1))
		return;
	try {
		run_stepped(f, x, registers);
	} catch (const thrown &t) {
		if (t.at != k)
			die("another exception");
		return;
	}
	if (!known)
		memcpy(wanted, registers, sizeof(wanted));
	known = true;
	if (memcmp(wanted, registers, sizeof(wanted)))
		for (int i = 0; i < 16; i++)
			if (wanted[i] != registers[i])
				die("register %d is %lx after the call, not %lx (%ld)", i, registers[i], wanted[i], k);
}

static void mark_at(long tid, const char *what, long k)
{
	print("s %ld %ld %s %s %s %ld %d %s", tid, marks++, what, function ? function : "-", state ? state : "-", k, happened,
	      happened ? acted_at : "-");
	for (int i = 0; i < NR_FUNCTIONS; i++)
		print(" %lu", made[i] - made_at_mark[i]);
	print("\n");
	memcpy(made_at_mark, made, sizeof(made));
}

/* Ends the part of the recording that belongs to one step. */
__attribute__((noinline)) static void mark(const char *what, long k, int depth)
{
	if (depth)
		t_flush(depth);
	t_mark(1);
	mark_at(syscall(SYS_gettid), what, k);
	if (is_child) {
		print_out();
		_exit(0);
	}
	release_late_child();
}

/* States of the agent that usually exist only for an instant, while the tracer changes. The program
 * makes these states by writing to the agent's memory. */
enum poke { NO_POKE, NO_DEPTH, DEPTH, LIST, IDLE_RET, IDLE_JUMP, UNCOUNTED };

struct scenario {
	const char *function, *state;
	long (*f)(long);
	long x;
	long depth;		/* number of calls that are open around the stepped call */
	bool fresh;		/* the call is made in a new thread */
	long filled;		/* calls that are made first. 0: none; -N: calls_to_fill - N calls;
				 * 1: the calls of fill_cramped() */
	void (*before)(void);
	long room;		/* free bytes of the thread's stack; 0: the whole stack */
	enum poke poke;
};

static long calls_to_fill;

static void set(const struct scenario *s)
{
	if (function != s->function || state != s->state)
		known = false;
	function = s->function;
	state = s->state;
}

struct task {
	const struct scenario *s;
	enum act a;
	long k, tid;
	volatile bool over, again;
};

static bool begins_with_mark(const struct scenario *s)
{
	return !s->fresh || s->filled || s->room;
}

/* A stack whose end the agent knows. There is more memory below the stack. */
#define STACK_SIZE	(256 << 10)
#define BELOW		(64 << 10)
#define STACKS		((void *)0x3e0000000000)	/* a fixed address, since registers hold
							 * addresses in the stacks */
static char *small_stack, *handlers_stack;

static void make_stacks(void)
{
	small_stack = (char *)mmap(STACKS, BELOW + 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (small_stack == MAP_FAILED)
		die("no memory");
	small_stack += BELOW;
	handlers_stack = small_stack + STACK_SIZE;
}

static void begin_cramped(const struct scenario *s)
{
	stack_t ss = {};

	ss.ss_sp = handlers_stack;
	ss.ss_size = STACK_SIZE;
	if (sigaltstack(&ss, NULL))
		die("sigaltstack");
	cramped_at = ((uint64_t)small_stack + s->room) & ~15ul;
}

static void begin_thread(struct task *t)
{
	int old;

	t->tid = syscall(SYS_gettid);
	use(t->tid);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	if (begins_with_mark(t->s))
		mark("begin", 0, 0);
}

static void *in_thread(void *arg)
{
	struct task *t = (struct task *)arg;
	int old;

	if (!is_new(syscall(SYS_gettid))) {
		t->again = t->over = true;
		return NULL;
	}
	if (t->s->room)
		begin_cramped(t->s);
	begin_thread(t);
	if (t->s->room && t->s->filled)
		fill_cramped(2500);
	for (long n = t->s->filled < 0 ? calls_to_fill + t->s->filled : 0; n > 0; n--)
		t_flush(0);
	attempt(t->s->f, t->s->x, t->a, t->k);
	/* setting the alternate stack again closes the handlers' calls that are still open on it */
	if (t->s->room)
		begin_cramped(t->s);
	mark(act_names[t->a], t->k, 6);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	t->over = true;
	return NULL;
}

/* calls_to_fill is the number of calls of t_flush(0) that fill a chunk. The next call takes more
 * steps. LEAST_TO_FILL and MOST_TO_FILL are the bounds of the search for this number. Each number
 * is tried in a new thread, because a stepped call may take more words than other calls. */
#define LEAST_TO_FILL	1900
#define MOST_TO_FILL	2000
#define STEPS_TO_FILL	500
static long usual_steps;
static bool is_full;

static void *in_filled_thread(void *arg)
{
	begin_thread((struct task *)arg);
	for (long i = 0; i < calls_to_fill; i++)
		t_flush(0);
	known = false;
	attempt(t_flush, 0, NOTHING, 0);
	is_full = usual_steps && step > usual_steps + STEPS_TO_FILL;
	if (!usual_steps || step < usual_steps)
		usual_steps = step;
	known = false;
	mark("fill", 0, 1);
	return NULL;
}

static void run_thread(const struct scenario *s, enum act a, long k, void *(*body)(void *))
{
	struct task t = { s, a, k, 0, false, false };
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	cancel_now = cancel_sent = false;
	pthread_attr_init(&attr);
	if ((s->room && pthread_attr_setstack(&attr, small_stack, STACK_SIZE)) || pthread_create(&thread, &attr, body, &t))
		die("no thread");
	while (a == CANCELLED && !t.over && !cancel_sent)
		if (cancel_now) {
			pthread_cancel(cancelled);
			cancel_sent = true;
		} else {
			sched_yield();
		}
	pthread_join(thread, &result);
	if (t.again)
		return run_thread(s, a, k, body);
	if (result == PTHREAD_CANCELED) {
		long main_marks = marks;

		marks = begins_with_mark(s);
		mark_at(t.tid, act_names[a], k);
		marks = main_marks;
	}
}

static void find_calls_to_fill(const struct scenario *s)
{
	calls_to_fill = agent ? LEAST_TO_FILL : MOST_TO_FILL;
	for (is_full = false; calls_to_fill < MOST_TO_FILL; calls_to_fill++) {
		run_thread(s, NOTHING, 0, in_filled_thread);
		if (is_full)
			return;
	}
}

static long attempt_now(long task)
{
	const struct task *t = (const struct task *)task;

	attempt(t->s->f, t->s->x, t->a, t->k);
	return 0;
}

/* Runs a scenario. Returns true if the call took at least k steps, so that the handler acted. */
static bool run(const struct scenario *s, enum act a, long k)
{
	set(s);
	happened = false;
	if (s->fresh || a == CANCEL || a == CANCELLED) {
		run_thread(s, a, k, in_thread);
	} else {
		if (s->before)
			s->before();
		struct task t = { s, a, k, 0, false, false };

		if (s->depth)
			t_deep(s->depth, attempt_now, (long)&t);
		else
			attempt(s->f, s->x, a, k);
		mark(act_names[a], k, 6 + (int)s->depth);
	}
	return happened;
}

static long steps_of_last;

static void observe(const struct scenario *s)
{
	set(s);
	observing = true;
	run(s, LOOK, 0);
	observing = false;
	steps_of_last = step;
	print("= %s %s %ld", function, state, step);
	for (int i = 0; i < 16; i++)
		print(" %lx", wanted[i]);
	print("\n");
}

static void each_step(const struct scenario *s, enum act a, long stride)
{
	for (long k = 1 + a % stride; k < 100000 && run(s, a, k); k += stride)
		;
}

static void pause_1ms(void)
{
	struct timespec t = { 0, 1500000 };

	nanosleep(&t, NULL);
}

static void pause_100ms(void)
{
	struct timespec t = { 0, 100000000 };

	nanosleep(&t, NULL);
}

/* Makes a traced call and leaves it by siglongjmp(). Then makes an untraced call, which has the
 * same return slot and returns through the first call's exit. */
static long leave_and_return(long x)
{
	sigjmp_buf here;

	act = JUMP_INSIDE;
	inside = &here;
	if (!sigsetjmp(here, 0))
		gone_or_untraced(x);
	act = NOTHING;
	return gone_or_untraced(0);
}

static long call_sigaction(long)
{
	return sigaction(SIGUSR2, NULL, NULL);
}

/*
 * Flags of a call. QUICK: quick runs make it. BRIEF: even shorter runs make it, too. SLOW: it takes
 * a slow path.
 * Stepping runs ("stepped", "late" and "extra") only find out which instructions calls reach.
 * STEPPED: only stepping runs make the call. FILLED: stepping runs make the call once more, and
 * fill the chunk in which a record was just reserved. EXTRA: of the stepping runs, only "extra"
 * makes the call. LATE: the call may take seconds, so only "late" makes it. RUN: the call is made
 * once, without stepping.
 */
enum { QUICK = 1, BRIEF = 2, SLOW = 4, STEPPED = 8, FILLED = 16, LATE = 32, RUN = 64, EXTRA = 128 };
static const struct choice {
	struct scenario s;
	int flags;
} choices[] = {
	{ { "t_leaf", "warm", t_leaf, 4 }, 0 },
	{ { "t_far", "warm", t_far, 4 }, 0 },
	{ { "t_caller", "warm", t_caller, 4 }, QUICK | BRIEF | FILLED },
	{ { "t_cond", "odd", t_cond, 5 }, QUICK | FILLED },
	{ { "t_calls_tail", "warm", t_calls_tail, 4 }, QUICK | FILLED },
	{ { "t_cond", "even", t_cond, 4 }, QUICK },
	{ { "t_tail", "warm", t_tail, 4 }, 0 },
	{ { "t_tail", "framed", call_framed, 4 }, QUICK },
	{ { "t_pops", "warm", call_pops, 4 }, QUICK },
	{ { "t_tree", "warm", t_tree, 4 }, 0 },
	{ { "t_entry", "warm", t_entry, 4 }, SLOW },
	{ { "t_unseen", "warm", t_unseen, 4 }, QUICK },
	{ { "t_caller", "first", t_caller, 4, 0, true }, QUICK | SLOW },
	{ { "t_caller", "full", t_caller, 4, 0, true, -1 }, QUICK | SLOW },
	{ { "t_caller", "full-1", t_caller, 4, 0, true, -2 }, SLOW },
	{ { "t_caller", "full-2", t_caller, 4, 0, true, -3 }, SLOW },
	{ { "t_leaf", "full", t_leaf, 4, 0, true, -1 }, SLOW },
	{ { "t_cond", "full", t_cond, 4, 0, true, -1 }, SLOW },
	{ { "t_tree", "full-8", t_tree, 4, 0, true, -8 }, SLOW },
	{ { "t_tree", "full", t_tree, 4, 0, true, -1 }, SLOW },
	{ { "t_caller", "deep123", t_caller, 4, 123 }, SLOW },
	{ { "t_caller", "deep124", t_caller, 4, 124 }, QUICK | SLOW },
	{ { "t_caller", "deep125", t_caller, 4, 125 }, SLOW },
	{ { "t_tail", "deep124", t_tail, 4, 124 }, SLOW },
	{ { "t_tail", "deep125", t_tail, 4, 125 }, SLOW },
	{ { "t_leaf", "late", t_leaf, 4, 0, false, 0, pause_1ms }, 0 },
	{ { "t_nap", "warm", t_nap, 4 }, SLOW },
	{ { "t_cond", "late", t_cond, 5, 0, false, 0, pause_100ms }, LATE },
	{ { "t_caller", "late", t_caller, 4, 0, false, 0, long_nap }, LATE },
	{ { "t_away", "warm", t_away, 4 }, STEPPED },
	{ { "t_away_tail", "warm", t_away_tail, 4 }, STEPPED },
	{ { "t_late", "warm", t_late, 4 }, LATE },
	{ { "t_late_tail", "warm", t_late_tail, 4 }, LATE },
	{ { "t_traps", "warm", call_traps, 4 }, STEPPED | FILLED },
	{ { "sigaction", "direct", call_sigaction, 4 }, STEPPED },
	{ { "t_cramped", "cramped", call_cramped, 4, 0, true, 0, NULL, 1000 }, EXTRA },
	{ { "t_cramped", "cramped-full", call_cramped, 4, 0, true, 1, NULL, 1000 }, EXTRA },
	{ { "t_cramped_tail", "cramped-more", call_cramped, 4, 0, true, 0, NULL, 320 }, STEPPED | EXTRA },
	{ { "t_cramped_tail", "uncounted", call_cramped, 4, 0, true, 0, NULL, 1000, UNCOUNTED }, STEPPED | EXTRA },
	{ { "t_entry", "cramped", call_entry_cramped, 4, 0, true, 0, NULL, 1000 }, STEPPED | EXTRA },
	{ { "t_gone", "skipped", leave_and_return, 1 }, RUN | QUICK | BRIEF },
	{ { "t_hidden", "first", t_hidden, 4, 0, true }, STEPPED | EXTRA },
	{ { "t_tree", "deep123", t_tree, 4, 123 }, STEPPED | EXTRA },
	{ { "t_tree", "deep124", t_tree, 4, 124 }, STEPPED | EXTRA },
	{ { "t_far", "off", t_far, 4, 0, false, 0, NULL, 0, NO_DEPTH }, STEPPED | EXTRA },
	{ { "t_far", "depth", t_far, 4, 0, false, 0, NULL, 0, DEPTH }, STEPPED | EXTRA },
	{ { "t_far", "list", t_far, 4, 0, false, 0, NULL, 0, LIST }, STEPPED | EXTRA },
	{ { "t_far", "idle", t_far, 4, 0, false, 0, NULL, 0, IDLE_RET }, STEPPED | EXTRA },
	{ { "t_tail", "idle", t_tail, 4, 0, false, 0, NULL, 0, IDLE_JUMP }, STEPPED | EXTRA },
};

static bool is_listed(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = names; at; at = strchr(at, ','), at += at ? 1 : 0)
		if (!strncmp(at, name, n) && (at[n] == ',' || !at[n]))
			return true;
	return false;
}

static bool is_chosen(const char *names, const struct scenario *s)
{
	char with_state[64];

	snprintf(with_state, sizeof(with_state), "%s:%s", s->function, s->state);
	return is_listed(names, s->function) || is_listed(names, with_state);
}

static void each_choice(const struct choice *c, long steps, long points, const char *acts)
{
	for (int a = CALLS; a < NR_ACTS; a++) {
		if (a == FILL || (*acts && !is_listed(acts, act_names[a])))
			continue;
		bool in_a_thread = a == CANCEL || a == CANCELLED;
		long most = c->flags & SLOW ? points : all ? steps : 5 * points;

		/* A call that is to be cancelled is made in a thread of its own, so it can't also
		 * be made at a depth or in a fresh thread. The agent doesn't know of a raw handler.
		 * So it notices the handler's fork only at the child's next call, and the child's
		 * account isn't exact. */
		if ((in_a_thread && (c->s.depth || (c->s.fresh && !c->s.room))) || (raw && (a == FORK || a == FORK_CALLS || a == FORK_LATE)))
			continue;
		each_step(&c->s, (enum act)a, steps > most ? steps / most : 1);
	}
}

/* Makes the scenario's call, without an action, while *word has the given value. */
static void run_with(const struct scenario *s, uint64_t *word, uint64_t value)
{
	uint64_t was = *word;

	*word = value;
	run(s, NOTHING, 0);
	*word = was;
}

static void run_poked(const struct scenario *s)
{
	uint32_t *max_depth = (uint32_t *)(agent + symbol("pb_max_depth")), depth = *max_depth;
	site_word = NULL;
	ret_word = jump_word = NULL;
	noting = true;
	run(s, NOTHING, 0);
	noting = false;
	if (s->poke == UNCOUNTED) {
		poke_uncounted = true;
		run(s, NOTHING, 0);
		poke_uncounted = false;
	} else if (s->poke == NO_DEPTH || s->poke == DEPTH) {
		*max_depth = s->poke == DEPTH ? 1000 : 0;
		run(s, NOTHING, 0);
		*max_depth = depth;
	} else if (s->poke == LIST) {
		if (site_word)
			run_with(s, site_word, agent + symbol("pb_list"));
	} else if (s->poke == IDLE_RET && ret_word) {
		run_with(s, ret_word, agent + symbol("pb_exit_ret_idle"));
	} else if (s->poke == IDLE_JUMP && jump_word) {
		run_with(s, jump_word, agent + symbol("pb_exit_jump_idle"));
	}
}

/* Steps a call to see which instructions it reaches. A FILLED call is also stepped with a handler
 * that fills the chunk in which a record was just reserved. */
static void step_only(const struct choice *c)
{
	if (c->flags & RUN) {
		happened = false;
		c->s.f(c->s.x);
		mark(act_names[act], 0, 6);
		return;
	}
	if (c->s.poke) {
		run_poked(&c->s);
		return;
	}
	/* two times, since on a busy machine one call may take long */
	for (int i = 0; i < (c->flags & LATE ? 1 : 2); i++)
		run(&c->s, NOTHING, 0);
	if (c->flags & FILLED)
		run(&c->s, FILL, 0);
}

/* A copy begins with the same bytes as the original, at a multiple of 64. After the last copy
 * comes a filler. The end of an original need not be copied, so a copy may be shorter. */
static void find_copies(const unsigned char *head)
{
	static const char *const names[] = { COPIED };
	const unsigned char filler = head[HEAD_SIZE - 1];

	for (uint64_t off = 0; off < HEAD_SIZE; off += 64) {
		for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
			uint64_t of = agent + symbol(names[i]), size = symbol_size(names[i]);

			if (memcmp(head + off, (void *)of, size < 48 ? size : 48) || (size < 48 && head[off + size] != filler))
				continue;
			if (nr_copies && copies[nr_copies - 1].size > (uint64_t)head + off - copies[nr_copies - 1].at)
				copies[nr_copies - 1].size = (uint64_t)head + off - copies[nr_copies - 1].at;
			copies[nr_copies].at = (uint64_t)head + off;
			copies[nr_copies].of = of;
			copies[nr_copies++].size = size;
		}
	}
}

static void find_agent(void)
{
	uint64_t start, end, here = (uint64_t)find_agent;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "/libpatchbay.so") && !agent)
			agent = strtoul(line, NULL, 16);
		if (strstr(line, "/memfd:patchbay-ring") && !ring)
			ring = (char *)strtoul(line, NULL, 16);
	}
	if (f && agent) {
		rewind(f);
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "%lx-%lx r-xp", &start, &end) == 2 && strstr(line, "r-xp") && here - start >= end - start &&
			    here - start + (1u << 31) < 1ul << 32 && end - start >= HEAD_SIZE)
				find_copies((unsigned char *)start);
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	long points = argc > 2 ? atol(argv[2]) : 1;
	const char *what = argc > 3 ? argv[3] : "all";
	int flags = !strcmp(what, "quick") ? QUICK : !strcmp(what, "brief") ? BRIEF : 0;
	const char *functions = argc > 4 ? argv[4] : "", *acts = argc > 5 ? argv[5] : "";
	bool only = !strcmp(what, "observe"), late = !strcmp(what, "late"), extra = !strcmp(what, "extra");
	bool names, stepped = late || extra || !strcmp(what, "stepped");

	both = argc > 1 && !strcmp(argv[1], "both");
	raw = both || (argc > 1 && !strcmp(argv[1], "raw"));
	all = !strcmp(what, "all");
	names = !strcmp(what, "names");
	find_agent();
	make_stacks();
	install();
	mark("begin", 0, 200);
	for (const struct choice &c : choices) {
		if ((stepped && !(c.flags & EXTRA) == extra) || (*functions && !is_chosen(functions, &c.s)) || (flags && !(c.flags & flags)) || (c.flags & STEPPED && !stepped) || (c.flags & LATE && !late) ||
		    (c.s.filled < 0 && stepped))
			continue;
		if (c.s.filled < 0 && !calls_to_fill) {
			set(&c.s);
			find_calls_to_fill(&c.s);
		}
		if (names) {
			print("%s:%s\n", c.s.function, c.s.state);
			continue;
		}
		if (stepped || c.flags & RUN) {
			set(&c.s);
			step_only(&c);
			continue;
		}
		observe(&c.s);
		if (!only)
			each_choice(&c, steps_of_last, points, acts);
	}
	for (unsigned i = 0; i < AGENT_MAX; i++)
		if (visited[i])
			print("v %x\n", i);
	print("n %u\n", visited_copies);
	print("c %ld %ld\n", (long)getpid(), marks);
	print_out();
	return 0;
}
