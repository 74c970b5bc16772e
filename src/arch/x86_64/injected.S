/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instructions that the injector needs in a process (doc/design/injection.md). Usually it finds
 * them in libc. But libc's text may be patched. This text is never patched. The injector searches
 * for exactly these bytes (attach/libc_map.c).
 */
#include "arch/x86_64/function.inc"

	.text

	function pb_injected_start
	mov	$110, %eax			/* getppid */
	syscall
	ret
	end pb_injected_start
	/* no padding comes before these */
	pop	%rdi
	ret
	pop	%rsp
	ret

	.section .note.GNU-stack, "",@progbits
