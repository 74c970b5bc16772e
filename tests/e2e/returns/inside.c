/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The windows of exits (the bytes that a patch may overwrite) contain slow divisions. So threads
 * are nearly always inside a window. Meanwhile run_returns patches and restores the windows. The
 * program ends when it reads a line from stdin.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NR_THREADS 3

static volatile int stop;
static volatile long calls[NR_THREADS];

__asm__(
	".text\n.p2align 4\n"
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	/* A trampoline slot is a long jump to which a short jump in place of the ret leads. "far"
	 * is code without padding, and without instructions that can be displaced for a slot. It
	 * keeps places for slots in other functions out of reach of the short jump */
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\n"
	/* "three" is so long that the entry's window doesn't reach the exit */
	".macro three\n mov %rdi,%rax\n .rept 4\n imul $1,%rax,%rax\n .endr\n mov $3,%ecx\n.endm\n"
	".macro divide\n cqto\n idiv %rcx\n.endm\n"
	"F own\n three\n divide\n ret\nE own\n.p2align 4\n"
	"F plus_one\n lea 1(%rax),%rax\n ret\nE plus_one\n.p2align 4\n"
	"F tail\n three\n divide\n jmp plus_one\nE tail\n.p2align 4\n"
	"F cond\n three\n divide\n test $1,%dil\n jne plus_one\n divide\n ret\nE cond\n.p2align 4\n"
	"far\n"
	/* code_slot: the ret needs a code slot, which is a trampoline slot that displaces other
	 * code. Here it displaces the division */
	"F code_slot\n three\n jmp 1f\n2: rep ret\n1: imul $10,%rax,%rax\n divide\n"
	" imul $1,%rax,%rax\n add $0x12345,%rax\n jmp 2b\nE code_slot\nfar\n"
	/* shared: two jumps share bytes. The first jump replaces the ret. The second jump, right
	 * after it, displaces the division */
	"F shared\n three\n test $1,%dil\n jne 2f\n1: ret\n"
	"2: divide\n add $5,%rax\n jmp 1b\nE shared\nfar\n"
	/* by_exit: the ret shares a jump with another exit, whose window contains the division */
	"F by_exit\n three\n test $1,%dil\n jne 2f\n1: ret\n"
	"2: divide\n ret\n jmp 1b\nE by_exit\nfar\n");
long own(long x), tail(long x), cond(long x), code_slot(long x), shared(long x), by_exit(long x);

static void *run(void *arg)
{
	long me = (long)arg, x = me + 1;

	for (; !stop; x = x % 1000 + 1) {
		if (own(x) != x / 3 || tail(x) != x / 3 + 1 ||
		    cond(x) != (x & 1 ? x / 3 + 1 : x / 3 / 3) ||
		    code_slot(x) != 10 * x / 3 + 0x12345 || shared(x) != (x & 1 ? x / 3 + 5 : x) ||
		    by_exit(x) != (x & 1 ? x / 3 : x)) {
			printf("wrong with %ld\n", x);
			exit(1);
		}
		calls[me]++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[NR_THREADS];

	for (long i = 0; i < NR_THREADS; i++)
		if (pthread_create(&t[i], NULL, run, (void *)i))
			return 2;
	getchar();
	stop = 1;
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(t[i], NULL);
		if (!calls[i])
			return 3;
	}
	printf("right\n");
	return 0;
}
