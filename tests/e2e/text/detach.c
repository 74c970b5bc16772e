/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls of all kinds are open when the recorder ends: deep calls, and calls inside a signal
 * handler, on an alternate stack, on a coroutine's stack, and in a thread that will be cancelled.
 * Meanwhile two threads make calls, and a thread loads and unloads a library. The program prints
 * "ready". At the next line on stdin all calls return, and the program checks their results. It
 * also checks that the agent has left no frame on a stack, no signal handler, and no descriptor. If
 * argv[1] is given, it is the path of a FIFO that replaces stdin.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))
#define opaque(x) ({ __typeof__(x) opaque_ = (x); __asm__ volatile("" : "+r"(opaque_)); opaque_; })
#define die(...) do { printf(__VA_ARGS__); putchar('\n'); fflush(stdout); _exit(99); } while (0)
#define DEEP 150
#define NR_DEEP 3

static sem_t go, arrived;
static volatile int stop;

/* Checks that no frame of the stack, up to the thread's start, is in the agent's code. */
static KEEP void check_stack(int least)
{
	void *pc[512];
	int n = backtrace(pc, 512);
	Dl_info info;

	if (n < least)
		die("only %d frames of %d are seen", n, least);
	for (int i = 0; i < n; i++)
		if (!dladdr(pc[i], &info) || strstr(info.dli_fname, "libpatchbay"))
			die("frame %d of %d is %p of %s", i, n, pc[i],
			    info.dli_fname ? info.dli_fname : "nothing");
}

static KEEP void wait_for_go(int least)
{
	sem_post(&arrived);
	while (sem_wait(&go))
		;
	check_stack(least);
}

static KEEP long leaf(long n) { return opaque(n) * 3; }

static __thread int frames;

static KEEP long deep(long n)
{
	if (!n) {
		wait_for_go(frames);
		return 1;
	}
	return opaque(deep(n - 1)) + leaf(n);
}

static KEEP long deep_want(void)
{
	long s = 1;

	for (long n = 1; n <= DEEP; n++)
		s += 3 * n;
	return s;
}

static KEEP void *deep_thread(void *arg)
{
	frames = DEEP + 3;
	if (deep(DEEP) != deep_want())
		die("deep gives a wrong result");
	return NULL;
}

static KEEP long fib(long n) { return n < 2 ? n : opaque(fib(n - 1)) + opaque(fib(n - 2)); }
static KEEP long tail_b(long n, long s);
static KEEP long tail_a(long n, long s) { return n ? tail_b(n - 1, s + n) : s; }
static KEEP long tail_b(long n, long s) { return n ? tail_a(n - 1, s + n) : s; }

static KEEP void *busy_thread(void *arg)
{
	while (!stop)
		if (fib(10) != 55 || tail_a(100, 0) != 5050 || leaf(5) != 15)
			die("a busy thread gets a wrong result");
	return NULL;
}

static volatile int handled;
static KEEP void on_usr(int sig)
{
	frames = 10 + 5;
	if (deep(10) != 1 + 3 * 55)
		die("a handler gets a wrong result");
	handled++;
}

static KEEP void *handler_thread(void *arg)
{
	stack_t ss = { .ss_sp = malloc(1 << 18), .ss_size = 1 << 18 };

	if (arg)
		sigaltstack(&ss, NULL);
	if (raise(arg ? SIGUSR2 : SIGUSR1) || leaf(7) != 21)
		die("raise");
	return NULL;
}

static ucontext_t main_context, coroutine_context;
static KEEP long in_coroutine(long n)
{
	if (!n) {
		swapcontext(&coroutine_context, &main_context);
		return 1;
	}
	return opaque(in_coroutine(n - 1)) + leaf(n);
}
static long coroutine_result;
static KEEP void coroutine(void)
{
	coroutine_result = in_coroutine(50);
}

static void cleanup(void *arg)
{
	*(volatile int *)arg = 1;
}

static KEEP long until_cancelled(long n)
{
	if (n)
		return opaque(until_cancelled(n - 1)) + 1;
	sem_post(&arrived);
	for (;;)
		pause();
}

static KEEP void *cancelled_thread(void *arg)
{
	pthread_cleanup_push(cleanup, arg);
	until_cancelled(20);
	pthread_cleanup_pop(0);
	return NULL;
}

static KEEP void *loader_thread(void *arg)
{
	while (!stop) {
		void *h = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);

		if (!h || dlclose(h))
			die("dlopen: %s", dlerror());
	}
	return NULL;
}

static void check_handler(int sig, void (*want)(int))
{
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa) || sa.sa_handler != want)
		die("the handler of %d is %p, not %p", sig, sa.sa_handler, want);
	/* the kernel must have the handler that libc reports */
	struct { unsigned long handler, flags, restorer, mask; } k;
	if (syscall(13, sig, NULL, &k, 8) || k.handler != (unsigned long)want)
		die("the kernel's handler of %d is %#lx, not %p", sig, k.handler, want);
}

static void check_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while ((e = readdir(d)))
		if (atoi(e->d_name) >= 100)
			die("descriptor %s is open", e->d_name);
	closedir(d);
}

int main(int argc, char **argv)
{
	pthread_t deeps[NR_DEEP], busy[2], handlers[2], cancelled, loader;
	struct sigaction sa = { .sa_handler = on_usr, .sa_flags = SA_RESTART };
	static char stack[1 << 18];
	volatile int cleaned = 0;
	char line[64];
	long i;

	if (argc > 1)
		dup2(open(argv[1], O_RDONLY), 0);
	sem_init(&go, 0, 0);
	sem_init(&arrived, 0, 0);
	sigaction(SIGUSR1, &sa, NULL);
	sa.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &sa, NULL);
	for (i = 0; i < NR_DEEP; i++)
		pthread_create(&deeps[i], NULL, deep_thread, NULL);
	for (i = 0; i < 2; i++) {
		pthread_create(&busy[i], NULL, busy_thread, NULL);
		pthread_create(&handlers[i], NULL, handler_thread, (void *)i);
	}
	pthread_create(&cancelled, NULL, cancelled_thread, (void *)&cleaned);
	pthread_create(&loader, NULL, loader_thread, NULL);
	for (i = 0; i < NR_DEEP + 3; i++)
		while (sem_wait(&arrived))
			;
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = sizeof(stack);
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, coroutine, 0);
	swapcontext(&main_context, &coroutine_context);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die("no line on stdin");

	check_stack(1);
	check_handler(SIGUSR1, on_usr);
	check_handler(SIGUSR2, on_usr);
	check_descriptors();
	for (i = 0; i < NR_DEEP + 2; i++)
		sem_post(&go);
	for (i = 0; i < NR_DEEP; i++)
		pthread_join(deeps[i], NULL);
	for (i = 0; i < 2; i++)
		pthread_join(handlers[i], NULL);
	swapcontext(&main_context, &coroutine_context);
	pthread_cancel(cancelled);
	pthread_join(cancelled, NULL);
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(busy[i], NULL);
	pthread_join(loader, NULL);
	if (coroutine_result != 1 + 3 * 50 * 51 / 2 || handled != 2 || !cleaned)
		die("coroutine %ld, %d handlers, %d cleaned", coroutine_result, handled, cleaned);
	printf("right\n");
	return 0;
}
