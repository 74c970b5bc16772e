/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls a callback in native code with the run in r12. In the agent, unwinders find the caller of
 * native code by r12 (prog_call.S). A helper calls this function. The helper is C code, which may
 * have changed r12. So this function sets r12 again before the callback's first instruction.
 *
 * u64 pb_bpf_call_native(r1, r2, r3, r4, r5, run, fn)
 */
	.text
	.globl	pb_bpf_call_native
	.hidden	pb_bpf_call_native
	.type	pb_bpf_call_native, @function
pb_bpf_call_native:
	.cfi_startproc
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	mov	%r9, %r12
	call	*16(%rsp)
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	ret
	.cfi_endproc
	.size pb_bpf_call_native, . - pb_bpf_call_native
	.section .note.GNU-stack,"",@progbits
