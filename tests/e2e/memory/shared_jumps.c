/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has 500 functions of one byte. Right after each of them another function begins. So the jumps
 * with which the tracer patches the two functions share bytes. Calls all functions, and prints the
 * number of calls. Then prints the number of the process's mappings.
 */
#include <stdio.h>

#define PAIRS	500

__asm__(".text\n"
	".macro pair n\n"
	".balign 16, 0xcc\n"
	".type	one_\\n, @function\n"
	"one_\\n: ret\n"
	".size	one_\\n, 1\n"
	".type	two_\\n, @function\n"
	"two_\\n: mov (%rdi), %rax\n"
	"	lea 1(%rax), %rax\n"
	"	mov %rax, (%rdi)\n"
	"	ret\n"
	".size	two_\\n, . - two_\\n\n"
	".pushsection .data.rel.local, \"aw\"\n"
	".quad	one_\\n, two_\\n\n"
	".popsection\n"
	".endm\n"
	".pushsection .data.rel.local, \"aw\"\n"
	".balign 8\n"
	"table:\n"
	".popsection\n"
	".altmacro\n"
	".set	i, 0\n"
	".rept	500\n"
	"	pair %i\n"
	".set	i, i + 1\n"
	".endr\n"
	".noaltmacro\n");

extern void (*const table[2 * PAIRS])(long *calls);

int main(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	long calls = 0;
	int c, nr = 0;

	for (int i = 0; i < 2 * PAIRS; i++)
		table[i](&calls);
	printf("%ld calls\n", calls);
	while (maps && (c = getc(maps)) != EOF)
		nr += c == '\n';
	fprintf(stderr, "%d mappings\n", nr);
	return 0;
}
