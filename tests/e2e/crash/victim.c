/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two threads make calls inside a chain of open calls. After each call, the thread counts the call
 * in the shared file argv[1]. The threads continue until they are killed or each of them has made
 * argv[2] calls. If argv[2] is "segv", the first thread makes 50,001 calls, waits until the other
 * thread has counted a call, and then faults. run_crash compares the counts with the recording.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))
#define opaque(x) ({ __typeof__(x) opaque_ = (x); __asm__ volatile("" : "+r"(opaque_)); opaque_; })

static volatile unsigned long *counts;
static int segv;
static long limit;

static KEEP long step0(long x) { return opaque(x) + 1; }
static KEEP long step1(long x) { return opaque(x) + 1; }
static KEEP int faulty(int *p) { return *(volatile int *)p; }

static KEEP long inner0(void)
{
	long x;

	for (x = 0; !limit || x < limit; x++) {
		step0(x);
		counts[0]++;
		if (segv && x == 50000) {
			while (!counts[8])
				;
			faulty(opaque((int *)0));
		}
	}
	return x;
}
static KEEP long inner1(void)
{
	long x;

	for (x = 0; !limit || x < limit; x++) {
		step1(x);
		counts[8]++;
	}
	return x;
}
static KEEP long middle0(void) { return opaque(inner0()) + 1; }
static KEEP long middle1(void) { return opaque(inner1()) + 1; }
static KEEP void *outer0(void *arg) { return (void *)(opaque(middle0()) + 1); }
static KEEP void *outer1(void *arg) { return (void *)(opaque(middle1()) + 1); }

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };
	int fd = open(argv[1], O_RDWR);
	pthread_t t[2];

	if (fd < 0)
		return 1;
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED)
		return 1;
	segv = argc > 2 && !strcmp(argv[2], "segv");
	limit = argc > 2 && !segv ? atol(argv[2]) : 0;
	setrlimit(RLIMIT_CORE, &none);
	counts[16] = (unsigned long)getpid();
	pthread_create(&t[0], NULL, outer0, NULL);
	pthread_create(&t[1], NULL, outer1, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	/* run_crash usually sets counts[24] before the program starts. The test recorder_killed
	 * sets it only after killing the recorder, which may take any time */
	while (!counts[24])
		usleep(1000);
	puts("done");
	return 3;
}
