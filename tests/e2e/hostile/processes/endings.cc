/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * At the end of a process, atexit and on_exit handlers must run in order, and so must the
 * destructors of statics. Meanwhile other threads run and make calls. A thread that ends earlier
 * must destroy its thread_local object. Children end by quick_exit and _exit.
 * @status 7
 * @markers 15
 */
#include <pthread.h>
#include <sys/wait.h>
#include "../hostile.h"

static volatile long spins;
static volatile int ready;

struct announcer {
	const char *name;
	KEEP explicit announcer(const char *n) : name(n) { marker_begin(1); }
	KEEP ~announcer() { marker_begin(2); printf("destroyed %s\n", name); fflush(stdout); }
};
static announcer a("first static"), b("second static");
static thread_local announcer *t_local;

__attribute__((constructor)) static void constructed() { marker_begin(3); puts("constructor"); }
__attribute__((destructor)) static void destructed()
{
	marker_begin(4);
	puts("destructor");
	fflush(stdout);
}

static KEEP long leaf(long x) { return opaque(x) + 1; }
static KEEP void *runs_on(void *)
{
	for (;;) {
		spins = leaf(spins);
		ready = 1;
	}
}
static KEEP void *ends_before(void *)
{
	static thread_local announcer mine("thread_local");

	t_local = &mine;
	return nullptr;
}
static void at_exit1() { marker_begin(5); puts("atexit 1"); }
static void at_exit2() { marker_begin(6); puts("atexit 2"); }
static void on_exit3(int status, void *arg) { marker_begin(7); printf("on_exit %d\n", status); }
static void at_quick() { marker_begin(8); puts("at_quick_exit"); fflush(stdout); }

static KEEP int child(int how)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		marker_begin(9);
		if (how)
			quick_exit(9);
		_exit(8);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

int main()
{
	pthread_t t[3];

	atexit(at_exit1);
	on_exit(on_exit3, nullptr);
	atexit(at_exit2);
	at_quick_exit(at_quick);
	check(!pthread_create(&t[2], nullptr, ends_before, nullptr));
	check(!pthread_join(t[2], nullptr));
	check_eq(child(0), 8);
	check_eq(child(1), 9);
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&t[i], nullptr, runs_on, nullptr));
	while (!ready)
		sched_yield();
	marker_begin(10);
	return 7;
}
