/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers run in the middle of many short calls. Their own signal may interrupt them
 * (SA_NODEFER). One handler gets siginfo. Some runs attach eBPF programs to the functions. If a
 * signal arrives while an eBPF program runs, it is delivered after the eBPF program has ended.
 * @buffer 256M
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "../hostile.h"

static volatile unsigned long handled, depth, deepest;

static KEEP int in_handler(int n) { return opaque(n) + 1; }

static void on_plain(int sig)
{
	if (++depth > deepest)
		deepest = depth;
	in_handler(sig);
	handled++;
	depth--;
}

static void on_info(int sig, siginfo_t *info, void *context) { on_plain(sig); }

static pthread_t self;
static volatile int over;

static void *kick(void *arg)
{
	for (int i = 0; !over; i++) {
		usleep(100);
		pthread_kill(self, i % 2 ? SIGUSR1 : SIGUSR2);
	}
	return NULL;
}

int main(void)
{
	struct sigaction plain = { .sa_handler = on_plain, .sa_flags = SA_NODEFER };
	struct sigaction info = { .sa_sigaction = on_info, .sa_flags = SA_NODEFER | SA_SIGINFO };
	pthread_t kicker;

	check(!sigaction(SIGUSR1, &plain, NULL) && !sigaction(SIGUSR2, &info, NULL));
	self = pthread_self();
	check(!pthread_create(&kicker, NULL, kick, NULL));
	for (int i = 0; handled < 150; i++)
		marker_begin(i);
	over = 1;
	check(!pthread_join(kicker, NULL));
	check(deepest < 50);
	puts("150 signals");
	return 0;
}
