/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A small program, as a seed for the fuzzers of the module analysis. With some options, for example
 * -fpatchable-function-entry, the compiler writes records that the analysis reads. The program is
 * built once with each of these options. */
#include <stdio.h>

int leaf(int x);
int branches(int x);
int table(int x);
int cleans_up(int x);

__attribute__((noinline)) int leaf(int x)
{
	return x * 3 + 1;
}

static void clean(int *p)
{
	leaf(*p);
}

__attribute__((noinline)) int cleans_up(int x)
{
	__attribute__((cleanup(clean))) int y = x;

	return puts("x") + leaf(y);
}

__attribute__((noinline)) int branches(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += i & 1 ? leaf(i) : cleans_up(i);
	return sum;
}

__attribute__((noinline)) int table(int x)
{
	switch (x) {
	case 0: return leaf(9);
	case 1: return branches(2);
	case 2: return cleans_up(3);
	case 3: return leaf(7) + 4;
	case 4: return branches(1);
	case 5: return 12;
	default: return x;
	}
}

/* A restartable sequence with its descriptor. It is never run. */
__asm__(".text\n.type sequence,@function\nsequence: .cfi_startproc\n"
	" mov %rdx,8(%rsi)\n1: mov (%rdi),%rax\n inc %rax\n mov %rax,(%rdi)\n2: ret\n"
	" nopl 0x53053053(%rip)\n3: ud2\n .cfi_endproc\n.size sequence,.-sequence\n"
	".section __rseq_cs,\"aw\"\n.balign 32\n.long 0,0\n.quad 1b,2b-1b,3b\n.text\n");

int main(int argc, char **argv)
{
	return table(argc) == branches(argc);
}
