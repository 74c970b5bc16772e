/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Coroutines that the program switches with its own code. No makecontext() or sigaltstack() reports
 * their stacks, so the agent must guess the stacks' bounds. resume() runs a coroutine until it
 * yields from inside nested calls.
 */
#ifndef CORO_H
#define CORO_H
#include <sys/mman.h>
#include "../hostile.h"

#define CORO_STACK 16384

/* Saves the caller's stack pointer in `from`, and continues on the stack whose pointer is `to`. */
#define coro_switch(from, to) __asm__ volatile( \
	"sub $128, %%rsp; push %%rbp; lea 1f(%%rip), %%rax; push %%rax; " \
	"mov %%rsp, (%0); mov %1, %%rsp; ret\n" \
	"1: pop %%rbp; add $128, %%rsp" \
	: : "D"(from), "S"(to) \
	: "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", \
	"memory", "cc")

struct coro {
	void *sp, *back;	/* stack pointers: the coroutine continues at `sp`, resume()
				 * continues at `back` */
	long sum, want;		/* sum: how many calls of nested() returned; want: how many must
				 * return */
};

/* The first code on a stack. It is not a function. */
extern char coro_enter[];
__asm__(".text; .globl coro_enter; coro_enter: pop %rdi; call body; ud2");

static KEEP void yield(struct coro *c) { coro_switch(&c->sp, c->back); }
static KEEP void resume(struct coro *c) { coro_switch(&c->back, c->sp); }

static KEEP long nested(struct coro *c, int depth)
{
	if (!depth) {
		yield(c);
		return 1;
	}
	return opaque(nested(c, depth - 1)) + 1;
}

KEEP void body(struct coro *c)
{
	c->sum = nested(c, (int)c->want - 1);
	yield(c);
	die("a finished coroutine ran on");
}

static inline void coro_start(struct coro *c, char *stack, int depth)
{
	void **sp = (void **)(stack + CORO_STACK - 64);

	*--sp = c;
	*--sp = (void *)coro_enter;
	*c = (struct coro){ .sp = sp, .want = depth + 1 };
}

/* Maps memory for a stack. Takes a new address for each stack, so the addresses of recent stacks
 * stay unmapped. */
static inline char *coro_map(void)
{
	static __thread char *area;
	static __thread unsigned next;
	size_t size = 4096ul * 2 * CORO_STACK;
	int tries;

	if (!area) {
		area = mmap(NULL, size, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (area == MAP_FAILED || munmap(area, size))
			die("mmap: %m");
	}
	for (tries = 0; tries < 4096; tries++) {
		char *at = area + next++ % 4096 * 2ul * CORO_STACK;
		char *m = mmap(at, CORO_STACK, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (m == at)
			return m;
	}
	die("mmap: %m");
}

/* Abandons nr coroutines half-way, and unmaps their stacks. */
static KEEP void coro_churn(int nr)
{
	struct coro c;

	while (nr--) {
		char *stack = coro_map();

		coro_start(&c, stack, nr % 4);
		resume(&c);
		if (munmap(stack, CORO_STACK))
			die("munmap: %m");
	}
}
#endif
