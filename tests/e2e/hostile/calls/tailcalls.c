/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A state machine makes a million tail calls, directly and through pointers. Another function jumps
 * to its own first instruction. The stack must not grow.
 * @flags -fno-inline -foptimize-sibling-calls
 * @markers 30 main/one_machine
 * @calls self_jump 30000
 */
#include "../hostile.h"

struct machine {
	long steps, left;
	uintptr_t low, high;
	uint32_t hash;
};
typedef long state_fn(struct machine *m);
static state_fn state_a, state_b, state_c, state_d;
static state_fn *const next_state[4] = { state_a, state_b, state_c, state_d };

static inline __attribute__((always_inline)) void step(struct machine *m, int which)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

	m->low = sp < m->low ? sp : m->low;
	m->high = sp > m->high ? sp : m->high;
	m->hash = m->hash * 31 + which;
	m->steps++;
	m->left--;
}

static KEEP long state_a(struct machine *m)
{
	step(m, 0);
	return m->left > 0 ? state_b(m) : m->steps;
}
static KEEP long state_b(struct machine *m)
{
	step(m, 1);
	return m->left > 0 ? next_state[m->hash & 3](m) : m->steps;
}
static KEEP long state_c(struct machine *m)
{
	step(m, 2);
	return m->left > 0 ? state_d(m) : m->steps;
}
static KEEP long state_d(struct machine *m)
{
	step(m, 3);
	return m->left > 0 ? state_a(m) : m->steps;
}

/* Jumps to its own entry until the count is 0. */
long self_jump(long count, long sum);
__asm__(".text; .p2align 4; .globl self_jump; .type self_jump,@function\n"
	"self_jump: .cfi_startproc\n"
	"	lea (%rsi,%rdi), %rsi\n"
	"	sub $1, %rdi\n"
	"	jz 1f\n"
	"	jmp self_jump\n"
	"1:	mov %rsi, %rax\n"
	"	ret\n"
	"	.cfi_endproc; .size self_jump, . - self_jump\n");

static KEEP void one_machine(int n)
{
	struct machine m = { .left = n == 0 ? 1000000 : 1000, .low = -1ul };
	long want = m.left;

	check_eq(state_a(&m), want);
	check_eq(m.steps, want);
	check(m.high - m.low < 256);
	printf("%d %ld %u\n", n, m.steps, m.hash);
	check_eq(self_jump(1000, 0), 500500);
	marker_begin(n);
}

int main(void)
{
	int n;

	for (n = 0; n < 30; n++)
		one_machine(n);
	return 0;
}
