/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts real-time signals. A child sends them to the process and to single threads. Meanwhile the
 * threads wait in system calls, which they repeat after EINTR. No signal may be lost. The signals
 * to one thread carry the values 0, 1, 2 and so on, and must come in this order. Ends when its
 * input ends.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3

static struct shared {
	atomic_int tid[THREADS];
	atomic_int sent, sent_to[THREADS], done;
} *shared;
static atomic_int got, got_by[THREADS], in_order = 1;
static __thread int me = -1;

static void on_process(int sig, siginfo_t *info, void *context)
{
	atomic_fetch_add(&got, 1);
}

static void on_thread(int sig, siginfo_t *info, void *context)
{
	if (me < 0 || info->si_value.sival_int != atomic_fetch_add(&got_by[me], 1))
		in_order = 0;
}

static void *wait_for_signals(void *arg)
{
	me = (int)(long)arg;
	shared->tid[me] = (int)syscall(SYS_gettid);
	while (!shared->done)
		if (poll(NULL, 0, 20) < 0 && errno != EINTR)
			abort();
	return NULL;
}

static void send_all(pid_t pid)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	siginfo_t info;

	while (poll(&input, 1, 1) == 0)
		for (int i = 0; i < THREADS; i++) {
			memset(&info, 0, sizeof(info));
			info.si_code = SI_QUEUE;
			info.si_value.sival_int = shared->sent_to[i];
			info.si_pid = getpid();
			if (!syscall(SYS_rt_tgsigqueueinfo, pid, shared->tid[i], SIGRTMIN + 1,
				     &info))
				shared->sent_to[i]++;
			if (!sigqueue(pid, SIGRTMIN, info.si_value))
				shared->sent++;
		}
	shared->done = 1;
	_exit(0);
}

int main(void)
{
	struct sigaction a = { .sa_flags = SA_SIGINFO, .sa_sigaction = on_process };
	pthread_t t[THREADS];
	int sum = 0, sum_got = 0;
	pid_t child;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	sigaction(SIGRTMIN, &a, NULL);
	a.sa_sigaction = on_thread;
	sigaction(SIGRTMIN + 1, &a, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, wait_for_signals, (void *)(long)i);
	while (!shared->tid[0] || !shared->tid[1] || !shared->tid[2])
		usleep(100);
	child = getpid();
	if (!fork())
		send_all(child);
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	while (wait(NULL) < 0 && errno == EINTR)
		;
	for (int i = 0; i < THREADS; i++) {
		sum += shared->sent_to[i];
		sum_got += got_by[i];
	}
	printf("%d of %d, %d of %d, order %d\n", got, shared->sent, sum_got, sum, in_order);
	return !(got == shared->sent && sum_got == sum && in_order);
}
