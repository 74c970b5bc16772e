/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walks the stack with libunwind: by unw_backtrace(), by a cursor with names, and in the handler of
 * a profiling timer. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define KEEP __attribute__((noinline, noclone))

static volatile sig_atomic_t ticks, bad_ticks;

static KEEP int walk(char *out, size_t room)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t off;
	char name[100];
	int n = 0, ended = 0;

	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	do {
		if (unw_get_proc_name(&cursor, name, sizeof(name), &off))
			continue;
		n++;
		ended |= !strcmp(name, "main");
		if (out && !ended)
			n += 0 * snprintf(out + strlen(out), room - strlen(out), "%s ", name);
	} while (unw_step(&cursor) > 0);
	return ended ? n : -n;
}

static KEEP int whole(void)
{
	void *at[100];

	return unw_backtrace(at, 100);
}

KEEP int down(int n, int how, char *out, size_t room)
{
	int r = n ? down(n - 1, how, out, room) : how ? walk(out, room) : whole();

	__asm__ volatile("" ::: "memory");
	return r;
}

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
	bad_ticks += walk(NULL, 0) <= 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, first;
	struct sigaction sa = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	struct itimerval once = { { 0, 0 }, { 0, 1000 } };
	char out[1000] = "";

	first = down(0, 0, NULL, 0);
	for (int n = 1; n < 30; n++)
		if (down(n, 0, NULL, 0) != first + n)
			printf("unw_backtrace: depth %d\n", n);
	first = down(4, 1, out, sizeof(out));
	printf("%s%s\n", out, first > 6 ? "main" : "no main");
	sigaction(SIGPROF, &sa, NULL);
	/* The timer is started again in each round. A periodic timer could expire again before its
	 * handler has ended, and then the program would be in the handler all the time. */
	for (int i = 0; i < rounds || ticks < 20; i++) {
		setitimer(ITIMER_PROF, &once, NULL);
		if (down(i % 9, 1, NULL, 0) != first - 4 + i % 9)
			printf("depth %d\n", i % 9);
	}
	once.it_value.tv_usec = 0;
	setitimer(ITIMER_PROF, &once, NULL);
	printf("bad ticks: %d\n", bad_ticks);
	return 0;
}
