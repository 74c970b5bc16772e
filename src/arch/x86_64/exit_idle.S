/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The code that the stubs of exits jump to while neither a tracer nor an eBPF program needs
 * returns. */
#include "arch/x86_64/hot.inc"

	.globl	pb_exit_ret_idle
	.hidden	pb_exit_ret_idle
	.type	pb_exit_ret_idle, @function
	.balign 16
pb_exit_ret_idle:
	.cfi_startproc
	ret
.Lend_ret:
	.cfi_endproc
	hot_range pb_exit_ret_idle, .Lend_ret, .Lend_ret, 0, PB_HOT_RET
	near_range pb_exit_ret_idle, .Lend_ret
	.size pb_exit_ret_idle, . - pb_exit_ret_idle

	.globl	pb_exit_jump_idle
	.hidden	pb_exit_jump_idle
	.type	pb_exit_jump_idle, @function
	.balign 16
pb_exit_jump_idle:
	.cfi_startproc
	jmp	*%r11
.Lend_jump:
	.cfi_endproc
	hot_range pb_exit_jump_idle, .Lend_jump, .Lend_jump, 0, PB_HOT_JUMP
	near_range pb_exit_jump_idle, .Lend_jump
	.size pb_exit_jump_idle, . - pb_exit_jump_idle

	.section .note.GNU-stack,"",@progbits
