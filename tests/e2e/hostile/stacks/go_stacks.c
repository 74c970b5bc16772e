/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Go function may be entered with little more room on the stack than it needs itself, and no
 * guard page lies below the stack. The agent must not write below its frame in the red zone. This
 * program has a section by which it counts as a Go program. It calls functions on a stack with ROOM
 * bytes, and looks whether the bytes below have changed. Signals come at any moment. Their handlers
 * have an alternate stack, as Go's have.
 * @calls probe 40000
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "../hostile.h"

__asm__(".section .gopclntab,\"a\",@progbits\n.byte 0\n.text\n");

#define ROOM	200	/* bytes below the return address of probe() */
#define CALLS	20000
#define BELOW	8192

static volatile long signals;

static KEEP void on_alarm(int sig) { signals++; }

/* int probe(int n) returns 3 * n + 1. As Go's functions, it has no unwind table. */
__asm__(".globl probe\n.type probe,@function\n"
	"probe:\tlea (%rdi,%rdi,2),%eax\n\tadd $1,%eax\n\tret\n"
	".size probe,.-probe\n");

/* Calls probe(n) with the stack pointer at `sp`. */
static inline int probe_at(char *sp, int n)
{
	int ret;

	__asm__ volatile("mov %%rsp,%%rbx; mov %[sp],%%rsp; call probe; mov %%rbx,%%rsp"
			 : "=a"(ret), "+D"(n) : [sp] "r"(sp)
			 : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return ret;
}

static KEEP void *run(void *arg)
{
	char *memory = malloc(BELOW + 4096);
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	char *top = memory + BELOW + ROOM + 8;

	check(memory && ss.ss_sp);
	check(!sigaltstack(&ss, NULL));
	memset(memory, 0x5a, BELOW);
	for (int n = 0; n < CALLS; n++) {
		check_eq(probe_at(top, n), n * 3 + 1);
		for (int i = BELOW - 4096; i < BELOW; i++)
			check(memory[i] == 0x5a);
	}
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { 0 };
	pthread_t t[2];

	check(!sigaction(SIGPROF, &sa, NULL));
	check(!setitimer(ITIMER_PROF, &often, NULL));
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&t[i], NULL, run, NULL));
	for (int i = 0; i < 2; i++)
		check(!pthread_join(t[i], NULL));
	check(!setitimer(ITIMER_PROF, &never, NULL));
	puts("nothing has changed");
	return 0;
}
