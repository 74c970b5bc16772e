/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * At the very end of a thread, libc blocks all signals and calls the program's free(). This
 * program's free() abandons coroutines half-way, and unmaps their stacks.
 * @markers 3 main/one_thread
 * @timeout 30
 */
#include <pthread.h>
#include "coro.h"

#define NR 3
#define STACK (1 << 20)

static char heap[1 << 24] __attribute__((aligned(16)));
static size_t used;
static char task[64];
static char *volatile stacks;

void *malloc(size_t n)
{
	return heap + __atomic_fetch_add(&used, (n + 31) & -16ul, __ATOMIC_RELAXED);
}

void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { return p ? memcpy(malloc(n), p, n) : malloc(n); }

KEEP void free(void *p)
{
	char here;

	if (stacks && &here >= stacks && &here < stacks + NR * STACK)
		coro_churn(600);
}

static KEEP void *thread_main(void *arg)
{
	coro_churn(1000);
	snprintf(task, sizeof(task), "/proc/self/task/%d", (int)gettid());
	return NULL;
}

static KEEP void one_thread(int n)
{
	pthread_attr_t attr;
	pthread_t t;

	task[0] = 0;
	check(!pthread_attr_init(&attr) &&
	      !pthread_attr_setstack(&attr, stacks + n * STACK, STACK));
	check(!pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
	check(!pthread_create(&t, &attr, thread_main, NULL));
	while (!*(volatile char *)task || !access(task, F_OK))
		usleep(1000);
	marker_begin(n);
}

int main(void)
{
	int n;

	stacks = mmap(NULL, NR * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(stacks != MAP_FAILED);
	for (n = 0; n < NR; n++)
		one_thread(n);
	puts("3 threads");
	return 0;
}
