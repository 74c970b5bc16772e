/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program single-steps its own calls, so that a SIGTRAP handler interrupts each instruction of
 * an entry, an exit and a tail call. In the first ALL rounds, the handler makes a call at every one
 * of these instructions. So a chunk (the part of the buffer that one thread fills) may become full
 * at any of them. In each later round, the handler makes a call at one instruction. No call may be
 * lost or counted twice.
 *
 * @flags -fno-omit-frame-pointer
 * @calls middle 320
 * @calls leaf 320
 * @calls tail 320
 * @calls last 320
 * @calls mark 400000
 * @markers 1 main
 * @slow all none bpf bpf-own
 */
#include <signal.h>
#include "../hostile.h"

#define ALL 20
#define STRIDE 4		/* in each later round, the handler makes its call this many
				 * instructions later than in the round before. The pid selects the
				 * first instruction, so that several runs try all instructions */
#define ROUNDS 320
#define MARKS 400000

long marks;
int step, act;

KEEP int leaf(int x) { return opaque(x) + 1; }
KEEP int middle(int x) { return opaque(leaf(x)) + 1; }
KEEP int last(int x) { return opaque(x) + 1; }
KEEP __attribute__((optimize("optimize-sibling-calls"))) int tail(int x) { return last(x + 1); }
KEEP int mark(int x) { return opaque(x) + 2; }

KEEP __attribute__((used)) void on_trap(int sig)
{
	marks += mark(sig) - sig - 1;
}

/* The handler. It has no symbol, so it isn't traced. */
__asm__("	.text\n"
	".Lstepped:\n"
	"	incl	step(%rip)\n"
	"	movl	step(%rip), %eax\n"
	"	cmpl	$0, act(%rip)\n"
	"	je	on_trap\n"
	"	cmpl	act(%rip), %eax\n"
	"	je	on_trap\n"
	"	ret\n");

static void trap_flag(int set)
{
	if (set)
		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" : : : "memory", "cc");
	else
		__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" : : : "memory", "cc");
}

int main(void)
{
	struct sigaction sa = { .sa_flags = 0 };
	int most = 0;

	__asm__("lea .Lstepped(%%rip), %0" : "=r"(sa.sa_handler));
	check_eq(sigaction(SIGTRAP, &sa, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		int m, t;

		act = i < ALL ? 0 : (i - ALL) * STRIDE + getpid() % STRIDE + 1;
		step = 0;
		trap_flag(1);
		m = middle(i);
		t = tail(i);
		trap_flag(0);
		check_eq(m, i + 2);
		check_eq(t, i + 2);
		most = step > most ? step : most;
	}
	fprintf(stderr, "figure steps %d\nfigure pid %d\n", most, getpid());
	check(marks >= ALL && marks < MARKS);
	while (marks < MARKS)
		marks += mark(0) - 1;
	marker_begin(1);
	puts("every step calls");
	return 0;
}
