/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads call thousands of functions and check their results. At times another process shares the
 * memory, so that text can't be changed. The program reads commands from stdin, and answers each
 * command with a line on stdout:
 *
 *   vfork	a thread makes a vfork child. The child waits for "release"
 *   clone	like "vfork", but the child is made by clone(CLONE_VM)
 *   release	the child ends
 *   storm MS	makes vfork children again and again, with short pauses. Each child lives for up to
 *		MS ms
 *   calm	ends the storm, and waits until its last child has ended
 *   end	ends the program
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR 15000
#define STR2(x) #x
#define STR(x) STR2(x)

__asm__(".text\n.altmacro\n"
	".macro one n\n"
	".p2align 4; .globl bulk_\\n; .type bulk_\\n, @function\n"
	"bulk_\\n: .cfi_startproc; push %rbx; .cfi_adjust_cfa_offset 8; mov %edi, %ebx;"
	"lea \\n(%rbx), %eax; pop %rbx; .cfi_adjust_cfa_offset -8; ret; .cfi_endproc\n"
	".size bulk_\\n, . - bulk_\\n\n"
	".pushsection .data.rel.ro.bulk, \"aw\"; .quad bulk_\\n; .popsection\n"
	".endm\n"
	".pushsection .data.rel.ro.bulk, \"aw\"; .globl bulk; bulk:; .popsection\n"
	".set i, 0\n.rept " STR(NR) "\none %i\n.set i, i + 1\n.endr\n.noaltmacro\n");
extern int (*const bulk[NR])(int);

static volatile int stop, storming, raging, storm_ms;
static int begun[2], go[2];	/* pipes. A byte in `begun`: the child has begun. In `go`: the child
				 * must end */
static pthread_t v;
static pid_t cloned_pid;

static void *caller(void *arg)
{
	unsigned i = (unsigned)(long)arg;

	while (!stop) {
		i = (i + 7919) % NR;
		if (bulk[i](5) != (int)i + 5) {
			printf("bulk_%u is wrong\n", i);
			_exit(99);
		}
	}
	return NULL;
}

static inline __attribute__((always_inline)) long call(long nr, long a, const void *b, long c)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Runs in a child that shares the memory, so it only makes system calls. */
static inline __attribute__((always_inline)) void child_waits(void)
{
	char c = 0;

	call(SYS_write, begun[1], &c, 1);
	call(SYS_read, go[0], &c, 1);
	call(SYS_exit_group, 0, NULL, 0);
}

static inline __attribute__((always_inline)) void child_sleeps(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000l };

	call(SYS_nanosleep, (long)&ts, NULL, 0);
	call(SYS_exit_group, 0, NULL, 0);
}

static void *vforker(void *arg)
{
	pid_t pid = vfork();

	if (!pid)
		child_waits();
	waitpid(pid, NULL, 0);
	return NULL;
}

static int cloned(void *arg)
{
	child_waits();
	return 0;
}

static void vfork_once(int ms)
{
	pid_t pid = vfork();

	if (!pid)
		child_sleeps(ms);
	waitpid(pid, NULL, 0);
}

/* Makes a child, and waits until it has begun. */
static void begin(const char *what)
{
	static char stack[65536] __attribute__((aligned(16)));
	char c;

	if (!strcmp(what, "vfork"))
		pthread_create(&v, NULL, vforker, NULL);
	else if ((cloned_pid = clone(cloned, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL)) < 0)
		perror("clone");
	if (read(begun[0], &c, 1) != 1)
		_exit(98);
}

static void release(void)
{
	if (write(go[1], "", 1) != 1)
		_exit(98);
	if (cloned_pid)
		waitpid(cloned_pid, NULL, 0);
	else
		pthread_join(v, NULL);
	cloned_pid = 0;
}

static void *stormer(void *arg)
{
	unsigned seed = 1;

	while (!stop) {
		__atomic_store_n(&raging, 1, __ATOMIC_SEQ_CST);
		if (storming)
			vfork_once((int)(rand_r(&seed) % storm_ms));
		__atomic_store_n(&raging, 0, __ATOMIC_SEQ_CST);
		usleep(storming ? rand_r(&seed) % 12000 : 1000);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[3];
	char line[64], what[16];
	int ms;

	setlinebuf(stdout);
	if (pipe(begun) || pipe(go))
		return 98;
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, i == 2 ? stormer : caller, (void *)i);
	while (fgets(line, sizeof(line), stdin)) {
		ms = 0;
		__atomic_store_n(&storming, 0, __ATOMIC_SEQ_CST);
		sscanf(line, "%15s %d", what, &ms);
		if (!strcmp(what, "vfork") || !strcmp(what, "clone")) {
			begin(what);
		} else if (!strcmp(what, "release")) {
			release();
		} else if (!strcmp(what, "calm")) {
			while (__atomic_load_n(&raging, __ATOMIC_SEQ_CST))
				usleep(1000);
		} else if (!strcmp(what, "storm")) {
			storm_ms = ms;
			storming = 1;
		} else {
			break;
		}
		puts(what);
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	puts("right");
	return 0;
}
