/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks while calls are open on coroutines. The child ends these calls.
 *   coro_fork reported   the main thread forks on its own stack. makecontext() reported the stacks
 *                        of its coroutines. The child first makes another coroutine
 *   coro_fork guessed    the same, but nothing reports the stacks. The calls of a coroutine are
 *                        farther apart than the agent guesses at the first hit
 *   coro_fork inside     a thread forks on a coroutine. The child continues there, and then on the
 *                        thread's own stack
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP	__attribute__((noipa))
#define NR	3
#define STACK	(256ul << 10)
#define APART	(1ul << 20)	/* the distance of two stacks: neighbours aren't tested here */
#define DEEP	(100ul << 10)

static struct coroutine {
	ucontext_t here, back;
} coroutines[NR + 1];
static struct coroutine *current;
static bool reported, inside;
static pid_t child = -1;

KEEP void leaf(void)
{
	__asm__ volatile("");
}

KEEP void leave(struct coroutine *c)
{
	leaf();
	if (inside)
		child = fork();
	else
		swapcontext(&c->here, &c->back);
	leaf();
	__asm__ volatile("");
}

KEEP void enter(struct coroutine *c)
{
	char deep[DEEP];

	__asm__ volatile("" : : "r"(deep) : "memory");
	leave(c);
	leaf();
	__asm__ volatile("" : : "r"(deep) : "memory");
}

static void body(void)
{
	struct coroutine *c = current;

	enter(c);
	setcontext(&c->back);
}

static void resume(struct coroutine *c)
{
	current = c;
	swapcontext(&c->back, &c->here);
}

static void start(struct coroutine *c)
{
	char *stack = mmap(NULL, APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		exit(1);
	getcontext(&c->here);
	if (reported) {
		c->here.uc_stack.ss_sp = stack;
		c->here.uc_stack.ss_size = STACK;
		makecontext(&c->here, body, 0);
	} else {
		c->here.uc_mcontext.gregs[REG_RSP] = (greg_t)(stack + STACK - 72);
		c->here.uc_mcontext.gregs[REG_RIP] = (greg_t)body;
	}
	resume(c);
}

KEEP void after(void)
{
	leaf();
	__asm__ volatile("");
}

KEEP void *work(void *arg)
{
	leaf();
	start(&coroutines[0]);
	after();
	__asm__ volatile("");
	return NULL;
}

static int fork_on_own_stack(void)
{
	int i, status;

	for (i = 0; i < NR; i++)
		start(&coroutines[i]);
	child = fork();
	if (!child) {
		leaf();
		start(&coroutines[NR]);
		while (i--)
			resume(&coroutines[i]);
		resume(&coroutines[NR]);
		after();
		return 0;
	}
	return waitpid(child, &status, 0) == child ? status : 1;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 0;

	reported = strcmp(argv[1], "guessed");
	inside = !strcmp(argv[1], "inside");
	if (!inside)
		return fork_on_own_stack();
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	pthread_join(thread, NULL);
	return child && waitpid(child, &status, 0) != child ? 1 : status;
}
