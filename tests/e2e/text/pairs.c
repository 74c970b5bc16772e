/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads call thousands of functions that have two exits, and check their results. The first exit
 * is a `ret` of one byte. The second exit's window begins right after this byte. So the two exits
 * have shared jumps. The program reads commands from stdin, and answers each with a line on stdout:
 *
 *   lock	all memory that is mapped later is locked, without libc
 *   drop	the program may not lock more memory than its limit allows
 *   end	ends the program
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR 2000
#define STR2(x) #x
#define STR(x) STR2(x)

__asm__(".text\n.altmacro\n"
	".macro one n\n"
	".p2align 4; .globl pair_\\n; .type pair_\\n, @function\n"
	"pair_\\n: .cfi_startproc; lea \\n(%rdi), %eax; test %edi, %edi; js 1f; jz 2f; inc %eax;"
	"2: ret;"
	"1: neg %eax; sub $1, %eax; ret; .cfi_endproc\n"
	".size pair_\\n, . - pair_\\n\n"
	".pushsection .data.rel.ro.pairs, \"aw\"; .quad pair_\\n; .popsection\n"
	".endm\n"
	".pushsection .data.rel.ro.pairs, \"aw\"; .globl pairs; pairs:; .popsection\n"
	".set i, 0\n.rept " STR(NR) "\none %i\n.set i, i + 1\n.endr\n.noaltmacro\n");
extern int (*const pairs[NR])(int);

static volatile int stop;

static int expected(int n, int x)
{
	return x < 0 ? -(n + x) - 1 : n + x + (x > 0);
}

static void *caller(void *arg)
{
	int i = (int)(long)arg, x = 0;

	while (!stop) {
		i = (i + 791) % NR;
		x = (x + 2) % 3 - 1;
		if (pairs[i](x) != expected(i, x)) {
			printf("pair_%d(%d) is wrong\n", i, x);
			_exit(99);
		}
	}
	return NULL;
}

/* The agent replaces libc's mlockall() and syscall(). */
static long lock(void)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_mlockall), "D"((long)MCL_FUTURE)
			 : "rcx", "r11", "memory");
	return ret;
}

/* libc has this function, but no header of libc declares it. */
int capset(struct __user_cap_header_struct *h, const struct __user_cap_data_struct *d);

static int drop(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &h, d))
		return -1;
	d[0].effective &= ~(1u << CAP_IPC_LOCK);
	d[0].permitted &= ~(1u << CAP_IPC_LOCK);
	d[0].inheritable &= ~(1u << CAP_IPC_LOCK);
	return capset(&h, d);
}

int main(void)
{
	pthread_t t[2];
	char line[64];

	setlinebuf(stdout);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, caller, (void *)i);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		if ((!strcmp(line, "lock\n") && lock()) || (!strcmp(line, "drop\n") && drop()))
			return 97;
		fputs(line, stdout);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	puts("right");
	return 0;
}
