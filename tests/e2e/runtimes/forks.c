/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * forks N OWNERS: this program has a section by which it counts as a Go program. So C code of the
 * agent runs on the agent's own stacks. There is a chain of N forks without an exec. In each
 * process but the last, threads call probe() all the time, so that most of them have such a stack
 * when their process forks. The last process calls last() CALLS times. After the first call, it has
 * no such stack, and those of its parent must be free. OWNERS: the address of pb_hit_stack_owners
 * in the agent, in hexadecimal. The exit status of each process is that of its child. 2: stacks are
 * taken.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(".section .gopclntab,\"a\",@progbits\n.byte 0\n.text\n");

#define CALLS	1000	/* also in run_runtimes */
#define THREADS	8
#define STACKS	32	/* PB_NR_HIT_STACKS */
#define ENOUGH	200	/* calls of each thread before the fork */

/* They return 3 * n + 1. As Go's functions, they have no unwind table. The first instruction has
 * room for a jump, since Go's scheduler may stop a function after it. */
#define FUNCTION(name) __asm__(".globl " #name "\n.type " #name ",@function\n" \
			       #name ":\tmov $1,%eax\n\tlea (%rdi,%rdi,2),%ecx\n" \
			       "\tadd %ecx,%eax\n\tret\n" \
			       ".size " #name ",.-" #name "\n"); int name(int n)
FUNCTION(probe);
FUNCTION(last);

static volatile int stop;
static int begun;

static void *run(void *arg)
{
	for (int i = 0; !stop; i++) {
		if (i == ENOUGH)
			__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
		if (probe(i) != 3 * i + 1)
			abort();
	}
	return arg;
}

/* Returns what fork() returns, while other threads run. */
static pid_t fork_among_threads(void)
{
	pthread_t t[THREADS];
	pid_t pid;

	stop = begun = 0;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, run, NULL))
			exit(1);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		sched_yield();
	pid = fork();
	if (!pid)
		return 0;
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return pid;
}

static int find_agent(struct dl_phdr_info *info, size_t size, void *base)
{
	if (!strstr(info->dlpi_name, "libpatchbay.so"))
		return 0;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

static int stacks_taken(const char *owners)
{
	uintptr_t base;
	int nr = 0;

	if (!dl_iterate_phdr(find_agent, &base))
		return -1;
	for (int i = 0; i < STACKS; i++)
		nr += ((const uint64_t *)(base + strtoul(owners, NULL, 16)))[i] != 0;
	return nr;
}

int main(int argc, char **argv)
{
	int forks = atoi(argv[1]), status;
	pid_t pid;

	for (int i = 0; i < forks; i++) {
		probe(i);
		pid = fork_among_threads();
		if (pid)
			return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
			       WEXITSTATUS(status) : 1;
	}
	last(0);
	status = stacks_taken(argv[2]);
	if (status) {
		fprintf(stderr, "%d stacks are taken\n", status);
		return 2;
	}
	for (int i = 1; i < CALLS; i++)
		last(i);
	return 0;
}
