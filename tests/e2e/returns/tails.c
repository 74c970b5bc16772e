/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Executes exits of each kind, argv[1] times. Prints how many of the exits were returns, and how
 * many were tail jumps. */
#include <stdio.h>
#include <stdlib.h>

#define N 1000
unsigned long returns, jumps;
#define NOINLINE __attribute__((noinline, noipa))

NOINLINE int leaf(int x)
{
	returns++;
	return x * 3 + 1;
}

NOINLINE int tail(int x)
{
	jumps++;
	return leaf(x + 1);
}

NOINLINE int maybe_tail(int x)
{
	if (x & 1) {
		jumps++;
		return leaf(x);
	}
	returns++;
	return x;
}

int (*volatile pointer)(int) = leaf;

NOINLINE int tail_pointer(int x)
{
	jumps++;
	return pointer(x);
}

/* a function with a jcc that leaves it, and one with a prefixed ret */
__asm__(
	".text\n.globl cond, prefixed\n"
	".type cond,@function\ncond: .cfi_startproc\n test $1,%edi\n jne leaf\n"
	" incq returns(%rip)\n mov %edi,%eax\n ret\n"
	".cfi_endproc\n.size cond,.-cond\n"
	".type prefixed,@function\nprefixed: .cfi_startproc\n"
	" incq returns(%rip)\n mov %edi,%eax\n rep ret\n"
	".cfi_endproc\n.size prefixed,.-prefixed\n"
	/* A trampoline slot is a long jump; a short jump that replaces the ret would jump to this
	 * slot. "far" has no room for a slot. So the ret's jump shares bytes with a second jump */
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\nfar\n"
	".globl shared\n.type shared,@function\nshared: .cfi_startproc\n"
	" incq returns(%rip)\n mov %edi,%eax\n test $3,%edi\n je 1f\n call leaf\n1: ret\n"
	"2: mov $1,%eax\n add $2,%edi\n jmp 1b\n jne 2b\n .cfi_endproc\n"
	".size shared,.-shared\nfar\n");
int cond(int x), prefixed(int x), shared(int x);
/* the exit is in the window of the entry (the bytes that a patch of the entry may overwrite) */
NOINLINE int small(int x)
{
	return x;
}

int main(int argc, char **argv)
{
	long sum = 0, small_calls = 0;
	int n = argc > 1 ? atoi(argv[1]) : N;

	for (int i = 0; i < n; i++) {
		sum += tail(i) + maybe_tail(i) + tail_pointer(i) + prefixed(i) + shared(i);
		if (i & 1)
			jumps++;
		sum += cond(i) + small(i);
		small_calls++;
	}
	if (argc > 1)
		printf("%ld %lu %lu\n", sum, returns + (unsigned long)small_calls + 1, jumps);
	else
		printf("%ld\n", sum);
	return 0;
}
