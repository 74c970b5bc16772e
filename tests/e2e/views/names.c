/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions whose names have characters with a special meaning in the output formats, or a
 * character that isn't ASCII. */
#define FUNCTION(name, label) \
	__asm__(".text\n.globl \"" label "\"\n.type \"" label "\", @function\n\"" label "\":\n" \
		".cfi_startproc\nnopl 8(%rax)\nlea 1(%rdi),%eax\nret\n.cfi_endproc\n" \
		".size \"" label "\", .-\"" label "\"\n"); \
	static int name(int x) \
	{ \
		__asm__ volatile("call \"" label "\"" : "+D"(x) \
				 : : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", \
				 "memory", "cc"); \
		return x; \
	}

FUNCTION(separators, "semi;colon,comma<b>")
FUNCTION(accents, "f\303\274nf")

int main(void)
{
	return separators(1) + accents(1) - 2;
}
