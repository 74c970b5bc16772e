/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes the code before a return of its own, then says at each line on stdin what that
 * function returns. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

__asm__(
	".text\n.p2align 4\n"
	".globl changed, leaf\n"
	".type leaf,@function\nleaf: .cfi_startproc\n lea 1(%rdi),%rax\n ret\n.cfi_endproc\n.size leaf,.-leaf\n.p2align 4\n"
	".type changed,@function\nchanged: .cfi_startproc\n push %rbx\n .cfi_adjust_cfa_offset 8\n mov %rdi,%rbx\n"
	" call leaf\n"
	" add $1,%rax\n pop %rbx\n .cfi_adjust_cfa_offset -8\n ret\n.cfi_endproc\n.size changed,.-changed\n");
long changed(long x);
#define CHANGED 9	/* where the window of its return begins; a symbol there would be in the way */

int main(void)
{
	uint8_t *change = (uint8_t *)changed + CHANGED;
	void *page = (void *)((uintptr_t)change & -4096);
	char line[16];

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 2;
	change[3] = 2;
	if (mprotect(page, 8192, PROT_READ | PROT_EXEC))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		printf("%ld\n", changed(5));
		fflush(stdout);
	}
	return 0;
}
