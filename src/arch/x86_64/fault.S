/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads that may fault: fault.h. */
	.section .rodata.fault_table, "a", @progbits
	.balign	4
	.globl	pb_fault_table
	.hidden	pb_fault_table
pb_fault_table:

	.macro	may_fault at, to
	.pushsection .rodata.fault_table, "a", @progbits
	.long	\at - ., \to - .
	.popsection
	.endm

	.text
	.globl	pb_fault_load
	.hidden	pb_fault_load
	.type	pb_fault_load, @function
	.balign	16
/* int pb_fault_load(u64 address, u64 *value). After a fault the signal handler sets eax to -errno,
 * and this function goes on at .Lload_done. */
pb_fault_load:
	.cfi_startproc
.Lload:
	mov	(%rdi), %rdi
	mov	%rdi, (%rsi)
	xor	%eax, %eax
.Lload_done:
	ret
	.cfi_endproc
	.size	pb_fault_load, . - pb_fault_load
	may_fault .Lload, .Lload_done

	.section .rodata.fault_table, "a", @progbits
	.globl	pb_fault_table_end
	.hidden	pb_fault_table_end
pb_fault_table_end:
	.section .note.GNU-stack,"",@progbits
