/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program makes stacks as Go does. bottom() begins with a nop of one byte. At the bottom of
 * each stack is the return address bottom() + 1, which is the address after this nop. start() jumps
 * to body() on the new stack. body() returns to bottom(), and bottom() calls leave(). leave() goes
 * back to main's stack.
 * @markers 100 body
 * @calls body 100
 * @calls leave 100
 */
#include "../hostile.h"

static char stack[64 << 10] __attribute__((aligned(64)));
static char *old;	/* the stack pointer of main's stack, to which leave() goes back */

void start(void (*fn)(void), char *sp, char **old);
void bottom(void);
__asm__(".text\n"
	".p2align 4\n"
	".type bottom, @function\n"
	".globl bottom\n"
	"bottom:\n"
	"	nop\n"
	"	call leave\n"
	"	nop\n"
	".size bottom, . - bottom\n"
	".p2align 4\n"
	/* saves registers on the current stack, and jumps to fn on the stack `sp` */
	"start:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n"
	"	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdx)\n"
	"	mov %rsi, %rsp\n"
	"	jmp *%rdi\n"
	"back:\n"
	"	mov %rdi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n"
	"	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n");

void back(char *sp);

KEEP void leave(void) { back(old); }

static KEEP void body(void) { marker_begin(1); }

int main(void)
{
	uint64_t *top = (uint64_t *)(stack + sizeof(stack));

	for (int n = 0; n < 100; n++) {
		/* the stack pointer is aligned as after a call */
		top[-2] = 0;
		top[-3] = (uint64_t)bottom + 1;
		start(body, (char *)(top - 3), &old);
	}
	puts("done");
	return 0;
}
