/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thousands of functions that threads call and check, while at times another
 * process shares the memory, so that text can't be changed. Commands on stdin,
 * each answered by a line on stdout:
 *
 *   vfork MS	a thread waits for its vfork child, which sleeps MS
 *   clone MS	a process of clone(CLONE_VM) sleeps MS
 *   storm MS	until the next command: vfork children of up to MS, and short pauses
 *   end
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

static volatile int stop, storming, storm_ms;

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

/* In a process that shares the memory: nothing but system calls. */
static inline __attribute__((always_inline)) void child(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000l };
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_nanosleep), "D"(&ts), "S"(0)
			 : "rcx", "r11", "memory");
	__asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_exit_group), "D"(0) : "rcx", "r11");
}

static void *vforker(void *arg)
{
	pid_t pid = vfork();

	if (!pid)
		child((int)(long)arg);
	waitpid(pid, NULL, 0);
	return NULL;
}

static int cloned(void *arg)
{
	child((int)(long)arg);
	return 0;
}

static void *stormer(void *arg)
{
	unsigned seed = 1;

	while (!stop) {
		if (storming) {
			vforker((void *)(long)(rand_r(&seed) % storm_ms));
			usleep(rand_r(&seed) % 12000);
		} else {
			usleep(1000);
		}
	}
	return NULL;
}

int main(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pthread_t t[3], v;
	char line[64], what[16];
	int ms;

	setlinebuf(stdout);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, i == 2 ? stormer : caller, (void *)i);
	while (fgets(line, sizeof(line), stdin)) {
		ms = 0;
		storming = 0;
		sscanf(line, "%15s %d", what, &ms);
		if (!strcmp(what, "vfork")) {
			pthread_create(&v, NULL, vforker, (void *)(long)ms);
			pthread_detach(v);
			usleep(50000);
		} else if (!strcmp(what, "clone")) {
			if (clone(cloned, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)(long)ms) < 0)
				perror("clone");
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
