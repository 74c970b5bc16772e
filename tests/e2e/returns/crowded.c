/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that end in a call and a ret. The next function, or another exit, follows right after
 * the ret. So only the ret's own byte can be replaced. A thread calls these functions all the time.
 * Built with -O1.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LEVEL(n, callee) \
	__attribute__((noipa)) static long f##n(long x) \
	{ \
		__asm__ volatile("nopl 8(%%rax)" : "+r"(x)); \
		return callee; \
	}

__attribute__((noipa)) static long bottom(long x)
{
	__asm__ volatile("nopl 8(%%rax)\nnopl 8(%%rax)" : "+r"(x));
	return x + 1;
}
LEVEL(9, bottom(x))
LEVEL(8, f9(x))
LEVEL(7, f8(x))
LEVEL(6, f7(x))
LEVEL(5, f6(x))
LEVEL(4, f5(x))
LEVEL(3, f4(x))
LEVEL(2, f3(x))
LEVEL(1, f2(x))

/* In by_exit(), a jump leads to the first ret. The window of another exit (the bytes that a patch
 * of that exit may overwrite) begins right after this ret. A trampoline slot is a long jump to
 * which a short jump in place of the ret would lead. "far" is code without room for a slot, and
 * keeps the room in other functions out of reach. So the ret shares a jump with the other exit. */
__asm__(
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\n"
	".text\nfar\n.globl by_exit\n.type by_exit,@function\n"
	"by_exit: .cfi_startproc\n mov %rdi,%rax\n add $1,%rax\n"
	" imul $3,%rax,%rax\n test $1,%dil\n je 2f\n1: ret\n"
	"2: neg %rax\n add $7,%rax\n ret\n jmp 1b\n.cfi_endproc\n"
	".size by_exit,.-by_exit\nfar\n");
long by_exit(long x);

static volatile int over;

static void *run(void *arg)
{
	long n = 0, sum = 0;

	while (!over || n < *(long *)arg)
		sum += f1(n) + by_exit(n), n++;
	return (void *)sum;
}

int main(int argc, char **argv)
{
	long calls = atol(argv[1]), sum = 0;
	void *other;
	pthread_t t;

	pthread_create(&t, NULL, run, &calls);
	for (long i = 0; i < calls; i++)
		sum += f1(i) + by_exit(i);
	over = 1;
	pthread_join(t, &other);
	printf("%ld\n", sum);
	return 0;
}
