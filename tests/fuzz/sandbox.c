/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run begins in go(), which loads the random state and jumps to the code. The run ends in
 * on_signal(), which copies the registers to results[] and jumps back to sandbox_run(). */
#include "sandbox.h"

#include <cpuid.h>
#include <err.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "driver.h"

#define FLAGS_COMPARED	0xcd5	/* CF PF AF ZF SF DF OF */
#define XFEATURES	0xe7	/* x87, SSE, AVX, AVX-512 */
#define XSTATE_BV	512	/* offset of the XSTATE_BV field in the XSAVE area */
#define FIP		8	/* offset of the address of the last x87 instruction */
#define SW_RESERVED	464	/* offset of the bytes that the kernel uses in signal frames */
#define LEGACY		512

struct start {
	uint64_t reg[16];
	uint64_t flags, features;
	uint8_t fp[XSTATE_MAX] __attribute__((aligned(64)));
};

struct result results[NR_RUNS];
static struct start start;
static uint64_t memory_seed;
static int running;
static sigjmp_buf back;
static uint8_t *sandbox_text;	/* the writable mapping of TEXT's memory */

static const int greg[16] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

/* --- extended state ----------------------------------------------------- */

/* The features of XFEATURES that this machine has. 0: the machine has only FXSAVE, or the features'
 * state is larger than XSTATE_MAX bytes. */
static uint64_t features;
static struct component {
	uint32_t offset, size;
} component[8];
static uint32_t state_size = LEGACY;

/* Called once, because cpuid is slow in a virtual machine. */
static void find_features(void)
{
	unsigned a, b, c, d;
	uint32_t low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	state_size = LEGACY + 64;
	for (unsigned i = 2; i < 8; i++) {
		if (!((low & XFEATURES) >> i & 1) || !__get_cpuid_count(0xd, i, &a, &b, &c, &d))
			continue;
		component[i] = (struct component){ b, a };
		if (a + b > state_size)
			state_size = a + b;
	}
	features = state_size <= XSTATE_MAX ? low & XFEATURES : 0;
}

bool sandbox_has_vectors(void)
{
	return features & 4;
}

/* Clears the bytes that may differ between equal states, and the components that aren't in use. */
static void normalise(uint8_t *fp)
{
	uint64_t used;

	memset(fp + FIP, 0, 8);
	memset(fp + SW_RESERVED, 0, LEGACY - SW_RESERVED);
	if (!features)
		return;
	memcpy(&used, fp + XSTATE_BV, 8);
	memset(fp + XSTATE_BV, 0, 64);
	for (unsigned i = 2; i < 8; i++)
		if (!(used >> i & 1))
			memset(fp + component[i].offset, 0, component[i].size);
}

/* --- running ------------------------------------------------------------ */

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	struct result *r = &results[running];

	r->signal = sig;
	r->fault = sig == SIGSEGV || sig == SIGBUS ? (uint64_t)info->si_addr : 0;
	r->pc = (uint64_t)m->gregs[REG_RIP];
	r->flags = (uint64_t)m->gregs[REG_EFL] & FLAGS_COMPARED;
	for (unsigned i = 0; i < 16; i++)
		r->reg[i] = (uint64_t)m->gregs[greg[i]];
	memcpy(r->fp, m->fpregs, features ? state_size : LEGACY);
	siglongjmp(back, 1);
}

/* Loads `start` and jumps to pc; on_signal() returns to sandbox_run(). */
__attribute__((noreturn, noinline)) static void go(uint64_t pc)
{
	static uint64_t target;

	target = pc;
	__asm__ volatile(
		"mov %%rax, %%rbp\n"
		"mov %c[features](%%rbp), %%rax\n"
		"test %%rax, %%rax\n"
		"jz 1f\n"
		"xor %%edx, %%edx\n"
		"xrstor64 %c[fp](%%rbp)\n"
		"jmp 2f\n"
		"1: fxrstor64 %c[fp](%%rbp)\n"
		"2: mov %c[rsp](%%rbp), %%rsp\n"
		"push %c[flags](%%rbp)\n"
		"mov (%%rbp), %%rax\n	mov 8(%%rbp), %%rcx\n	mov 16(%%rbp), %%rdx\n"
		"mov 24(%%rbp), %%rbx\n	mov 48(%%rbp), %%rsi\n	mov 56(%%rbp), %%rdi\n"
		"mov 64(%%rbp), %%r8\n	mov 72(%%rbp), %%r9\n	mov 80(%%rbp), %%r10\n"
		"mov 88(%%rbp), %%r11\n	mov 96(%%rbp), %%r12\n	mov 104(%%rbp), %%r13\n"
		"mov 112(%%rbp), %%r14\n	mov 120(%%rbp), %%r15\n"
		"mov 40(%%rbp), %%rbp\n"
		"popf\n"
		/* stores r11 in the red zone as the stub does, so that both runs find the
		 * same word there */
		"mov %%r11, -56(%%rsp)\n"
		"jmp *%[target]\n"
		: : "a"(&start), [target] "m"(target), [fp] "i"(offsetof(struct start, fp)),
		    [rsp] "i"(4 * 8), [flags] "i"(offsetof(struct start, flags)),
		    [features] "i"(offsetof(struct start, features)) : "memory");
	__builtin_unreachable();
}

static void fill(void *p, size_t n, uint64_t seed)
{
	uint64_t *v = p;

	for (size_t i = 0; i < n / 8; i++)
		v[i] = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
}

void sandbox_run(uint64_t pc, int which, unsigned ms)
{
	struct itimerval limit = { .it_value.tv_usec = ms * 1000 }, off = { 0 };

	running = which;
	fill((void *)DATA, SANDBOX, memory_seed);
	fill((void *)STACK, SANDBOX, ~memory_seed);
	if (!sigsetjmp(back, 1)) {
		/* from this line on, the signal handler can jump back */
		setitimer(ITIMER_PROF, &limit, NULL);
		go(pc);
	}
	setitimer(ITIMER_PROF, &off, NULL);
	memcpy(results[which].data, (void *)DATA, SANDBOX);
	memcpy(results[which].stack, (void *)STACK, SANDBOX);
}

/* Returns a pointer into the sandbox, a small number, or a non-canonical address. */
static uint64_t random_register(struct fuzz_rng *r)
{
	switch (fuzz_random(r) % 4) {
	case 0:
		return fuzz_random(r) % 256;
	case 1:
		return fuzz_random(r) | 1ull << 62;
	default:
		return DATA + SANDBOX / 2 + fuzz_random(r) % 512 * 8 - 2048;
	}
}

void sandbox_random_start(uint64_t seed)
{
	struct fuzz_rng r;

	fuzz_rng_seed(&r, seed);
	memory_seed = fuzz_random(&r);
	for (unsigned i = 0; i < 16; i++)
		start.reg[i] = random_register(&r);
	start.reg[4] = STACK + SANDBOX / 2 + fuzz_random(&r) % 64 * 8;
	if (fuzz_random(&r) % 3 == 0)
		start.reg[5] = start.reg[4];
	start.flags = 0x202 | (fuzz_random(&r) & FLAGS_COMPARED);
	start.features = features;
	__asm__ volatile("fninit\n	fxsave %0" : "=m"(start.fp));
	start.fp[4] = (uint8_t)fuzz_random(&r);		/* bits of the x87 registers that are in
							 * use */
	for (unsigned i = 32; i < XSTATE_MAX; i++)
		if (i < 416 || i >= LEGACY + 64)
			start.fp[i] = (uint8_t)fuzz_random(&r);
	memset(start.fp + LEGACY, 0, 64);
	memcpy(start.fp + XSTATE_BV, &start.features, 8);
}

/* Maps TEXT like a program's text: the mapping that runs isn't writable. */
static void map_text(void)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, SANDBOX) ||
	    mmap((void *)TEXT, SANDBOX, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
		 0) == MAP_FAILED)
		err(2, "sandbox");
	sandbox_text = mmap(NULL, SANDBOX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sandbox_text == MAP_FAILED)
		err(2, "sandbox");
	close(fd);
}

void sandbox_write_text(uint64_t at, const void *bytes, size_t size)
{
	memcpy(sandbox_text + (at - TEXT), bytes, size);
}

void sandbox_clear_text(void)
{
	memset(sandbox_text, 0xcc, SANDBOX);
}

void sandbox_set_up(void)
{
	static uint8_t alternate[1 << 17];
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGPROF };
	static const uint64_t maps[] = { STUB1, STUB2, DATA, STACK };
	static bool done;

	if (done)
		return;
	done = true;
	find_features();
	for (unsigned i = 0; i < 4; i++)
		if (mmap((void *)maps[i], SANDBOX, PROT_READ | PROT_WRITE | (i < 2 ? PROT_EXEC : 0),
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
			err(2, "sandbox");
	map_text();
	sigaltstack(&ss, NULL);
	sigfillset(&sa.sa_mask);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
}

/* --- comparing ---------------------------------------------------------- */

void result_forget(struct result *r, uint64_t addr)
{
	for (unsigned i = 0; i < 8; i++, addr++) {
		if (addr - STACK < SANDBOX)
			r->stack[addr - STACK] = 0;
		if (addr - DATA < SANDBOX)
			r->data[addr - DATA] = 0;
	}
}

bool result_same(struct result *a, struct result *b)
{
	normalise(a->fp);
	normalise(b->fp);
	return a->signal == b->signal && a->fault == b->fault && a->pc == b->pc &&
	       a->flags == b->flags && !memcmp(a->reg, b->reg, sizeof(a->reg)) &&
	       !memcmp(a->fp, b->fp, sizeof(a->fp)) && !memcmp(a->data, b->data, SANDBOX) &&
	       !memcmp(a->stack, b->stack, SANDBOX);
}

void result_explain(const struct result *a, const struct result *b)
{
	fprintf(stderr, "signal %d %d  fault %llx %llx  pc %llx %llx  flags %llx %llx\n", a->signal,
		b->signal, (unsigned long long)a->fault, (unsigned long long)b->fault,
		(unsigned long long)a->pc, (unsigned long long)b->pc,
		(unsigned long long)a->flags, (unsigned long long)b->flags);
	for (unsigned i = 0; i < 16; i++)
		if (a->reg[i] != b->reg[i])
			fprintf(stderr, "reg %u: %llx %llx\n", i, (unsigned long long)a->reg[i],
				(unsigned long long)b->reg[i]);
	for (unsigned i = 0; i < XSTATE_MAX; i++)
		if (a->fp[i] != b->fp[i])
			fprintf(stderr, "extended state at %u: %x %x\n", i, a->fp[i], b->fp[i]);
	for (unsigned i = 0; i < SANDBOX; i++)
		if (a->data[i] != b->data[i] || a->stack[i] != b->stack[i])
			fprintf(stderr, "memory at %u: data %x %x stack %x %x\n", i, a->data[i],
				b->data[i], a->stack[i], b->stack[i]);
}
