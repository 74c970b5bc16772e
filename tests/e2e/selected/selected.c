/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For run_selected: makes a known number of calls of each function. The argument says which.
 *
 *   plain   main calls bar twice and foo once. Each bar calls foo.
 *   deep    main calls pair twice. Each of these calls has two more calls of pair inside it, and
 *           the innermost one calls leaf.
 *   jumps   main calls jumps, which calls short_jump and long_jump. Both end by longjmp; long_jump
 *           takes at least 50 ms.
 *   entry   main calls quick, which calls entry_only. The return of entry_only can't be hooked.
 *   exit    main calls leaves, which calls ends, which exits with status 3.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTION __attribute__((noinline, noclone, noipa))

static volatile int v;
static jmp_buf back;
void entry_only(void);

/* The function computes the address of its ret, and jumps to it. */
__asm__(".text\n"
	".globl entry_only\n"
	".type entry_only, @function\n"
	"entry_only:\n"
	"	nop\n"
	"	nop\n"
	"	nop\n"
	"	nop\n"
	"	nop\n"
	"	mov	$0, %eax\n"
	"	call	1f\n"
	"1:	pop	%rax\n"
	"	add	$(2f - 1b), %rax\n"
	"	jmp	*%rax\n"
	"2:	ret\n"
	".size entry_only, . - entry_only\n");

FUNCTION void foo(void)
{
	v++;
}

FUNCTION void bar(void)
{
	foo();
	v++;
}

FUNCTION void leaf(void)
{
	v++;
}

FUNCTION void pair(int deeper)
{
	if (deeper)
		pair(deeper - 1);
	else
		leaf();
	v++;
}

FUNCTION void short_jump(void)
{
	v++;
	longjmp(back, 1);
}

FUNCTION void long_jump(void)
{
	nanosleep(&(struct timespec){ 0, 50 * 1000 * 1000 }, NULL);
	longjmp(back, 1);
}

FUNCTION void jumps(void)
{
	if (!setjmp(back))
		short_jump();
	if (!setjmp(back))
		long_jump();
	v++;
}

FUNCTION void quick(void)
{
	entry_only();
	v++;
}

FUNCTION void ends(void)
{
	v++;
	exit(3);
}

FUNCTION void leaves(void)
{
	ends();
	v++;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "plain")) {
		bar();
		bar();
		foo();
	} else if (!strcmp(what, "deep")) {
		pair(2);
		pair(2);
	} else if (!strcmp(what, "jumps")) {
		jumps();
	} else if (!strcmp(what, "entry")) {
		quick();
	} else if (!strcmp(what, "exit")) {
		leaves();
	}
	return 0;
}
