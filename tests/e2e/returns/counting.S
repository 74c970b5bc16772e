/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts exits. Keeps all registers, the flags and the red zone. Overwrites memory below the red
 * zone. */
	.text

	.macro	count name, index
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	lea	-128(%rsp), %rsp
	.cfi_adjust_cfa_offset 128
	push	%rax
	.cfi_adjust_cfa_offset 8
	pushfq
	.cfi_adjust_cfa_offset 8
	mov	test_count(%rip), %rax
	lock incq 8 * \index(%rax)
	popfq
	.cfi_adjust_cfa_offset -8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	.endm

	.macro	end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	count	test_ret, 0
	ret
	end	test_ret

	count	test_jump, 1
	jmp	*%r11
	end	test_jump

	.section .note.GNU-stack,"",@progbits
