/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers that set program counters, and signal handlers that run for a long time.
 *
 *   stays THREADS
 *
 * It reads one command from each line of its input, and answers each with a line:
 *   run N     the main thread makes N calls of work()
 *   skip N    N calls of reads() fault, and the handler skips the instruction that has faulted
 *   stay 0    a handler begins in each of the other threads, and waits
 *   leave I   the handler in thread I returns
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST	8
#define LOAD_LENGTH	2

long reads(const int *p);
__asm__(".globl reads\n.type reads,@function\nreads:.cfi_startproc\n"
	" movl (%rdi),%eax\n mov $7,%eax\n nop\n ret\n.cfi_endproc\n.size reads,.-reads\n");

static sem_t entered, may_leave[MOST];
static pthread_t threads[MOST];
static int nr_threads;
static __thread int self;

static void await(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop");
}

static void skip(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gregs[REG_RIP] += LOAD_LENGTH;
}

static void stay(int sig)
{
	sem_post(&entered);
	await(&may_leave[self]);
}

static void *waiter(void *arg)
{
	self = (int)(long)arg;
	sem_post(&entered);
	pause();
	work();
	return NULL;
}

/* Returns false if a call went wrong. */
static bool obey(const char *command, long n)
{
	if (!strcmp(command, "run"))
		for (long i = 0; i < n; i++)
			work();
	if (!strcmp(command, "skip"))
		for (long i = 0; i < n; i++)
			if (reads(NULL) != 7)
				return false;
	if (!strcmp(command, "stay"))
		for (int i = 0; i < nr_threads; i++) {
			pthread_kill(threads[i], SIGUSR1);
			await(&entered);
		}
	if (!strcmp(command, "leave")) {
		sem_post(&may_leave[n]);
		pthread_join(threads[n], NULL);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct sigaction on_fault = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };
	struct sigaction on_signal = { .sa_handler = stay };
	char line[32], command[16];
	long n;

	nr_threads = argc > 1 ? atoi(argv[1]) : 0;
	if (nr_threads < 1 || nr_threads > MOST)
		return 2;
	sem_init(&entered, 0, 0);
	sigaction(SIGSEGV, &on_fault, NULL);
	sigaction(SIGUSR1, &on_signal, NULL);
	for (long i = 0; i < nr_threads; i++) {
		sem_init(&may_leave[i], 0, 0);
		pthread_create(&threads[i], NULL, waiter, (void *)i);
		await(&entered);
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%15s %ld", command, &n) == 2) {
		if (!obey(command, n))
			return 3;
		printf("%s %ld\n", command, n);
		fflush(stdout);
	}
	return 0;
}
