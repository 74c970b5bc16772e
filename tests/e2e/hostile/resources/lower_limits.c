/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes lower their own limits of memory step by step, while their threads make nested calls.
 * In the end a limit is only somewhat more than what the process needs, and the process maps the
 * memory that it needs.
 * @markers 32 lower/one_limit
 * @calls nested 3200000
 * @buffer 8M
 * @timeout 20
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "../hostile.h"

#define MIB (1ul << 20)

static KEEP int nested(int depth)
{
	return depth > 1 ? opaque(nested(depth - 1)) + 1 : 1;
}

static void *make_calls(void *arg)
{
	for (int i = 0; i < 400; i++)
		check_eq(nested(500), 500);
	return NULL;
}

static KEEP void one_limit(int resource, unsigned long mib)
{
	struct rlimit limit;

	check(!getrlimit(resource, &limit));
	limit.rlim_cur = mib * MIB;
	if (mib % 512)
		check(!prlimit(0, resource, &limit, NULL));
	else
		check(!setrlimit(resource, &limit));
	marker_begin(1);
}

static KEEP void lower(int resource, unsigned long to)
{
	for (unsigned long mib = 8 * to; mib >= to; mib /= 2)
		one_limit(resource, mib);
}

static void child(int resource, unsigned long mib, unsigned long needed)
{
	pthread_t t[2];
	void *p;

	for (int i = 0; i < 2; i++)
		check(!pthread_create(&t[i], NULL, make_calls, NULL));
	lower(resource, mib);
	p = mmap(NULL, needed * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(p != MAP_FAILED);
	memset(p, 1, MIB);
	for (int i = 0; i < 2; i++)
		check(!pthread_join(t[i], NULL));
	exit(0);
}

int main(void)
{
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();
		int status;

		if (!pid && i & 1)
			child(RLIMIT_DATA, 128, 64);
		if (!pid)
			child(RLIMIT_AS, 256, 120);
		check(waitpid(pid, &status, 0) == pid);
		check_eq(status, 0);
	}
	puts("the limits leave room");
	return 0;
}
