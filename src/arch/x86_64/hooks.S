/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replacements of functions of libc (engine/process/sigmask.c, clone.c). A replacement reports the
 * arguments to C code, restores all registers that may hold arguments, and jumps to the original.
 * (Only pb_our_vfork() and pb_our_clone() call no C code.) The file also has the agent's first code
 * in a signal handler and in a new thread.
 */
#include "arch/x86_64/function.inc"

	.set	CLONE_SETTLS, 0x80000

	.text

	.macro	pass_through name, note, original
	function \name
	.irp reg, rdi, rsi, rdx, rcx, r8, r9, rax
	push	%\reg
	.cfi_adjust_cfa_offset 8
	.endr
	call	\note
	.irp reg, rax, r9, r8, rcx, rdx, rsi, rdi
	pop	%\reg
	.cfi_adjust_cfa_offset -8
	.endr
	jmp	*\original(%rip)
	end \name
	.endm

	pass_through pb_our_setcontext, pb_note_setcontext, pb_original_setcontext
	pass_through pb_our_swapcontext, pb_note_swapcontext, pb_original_swapcontext
	pass_through pb_our_syscall, pb_note_syscall, pb_original_syscall
	pass_through pb_our_pthread_exit, pb_note_pthread_exit, pb_original_pthread_exit
	pass_through pb_our_pthread_cancel, pb_note_pthread_cancel, pb_original_pthread_cancel

/* libc's vfork() takes its return address off the stack before it forks. So this code reaches
 * vfork() by a jump, with rsp at the program's return address. rax is free, because vfork() sets
 * it. The code sets the members `slot` and `known` of pb_unblocked to 0. From then on, the agent
 * assumes nothing about the thread's signal mask (uaccess.h). */
	function pb_our_vfork
	mov	pb_unblocked@gottpoff(%rip), %rax
	movq	$0, %fs:(%rax)
	movq	$0, %fs:8(%rax)
	jmp	*pb_original_vfork(%rip)
	end pb_our_vfork

/* clone(fn = rdi, stack = rsi, flags = rdx, arg = rcx, parent_tid = r8, tls = r9, ...). In libc's
 * own threads, the first word at `tls` is its own address. If it isn't, the agent's variables
 * in this TLS have no values yet. Then pb_clone_entry() runs in the child before fn. It finds fn
 * and arg at the top of the child's stack. */
	function pb_our_clone
	test	$CLONE_SETTLS, %edx
	jz	1f
	test	%r9, %r9
	jz	1f
	cmp	%r9, (%r9)
	je	1f
	test	%rdi, %rdi
	jz	1f
	test	$-16, %rsi
	jz	1f
	and	$-16, %rsi
	sub	$16, %rsi
	mov	%rdi, (%rsi)
	mov	%rcx, 8(%rsi)
	mov	%rsi, %rcx
	lea	pb_clone_entry(%rip), %rdi
1:	jmp	*pb_original_clone(%rip)
	end pb_our_clone

/* The first code of a child of clone() whose TLS isn't libc's. It gives the agent's variables
 * values, and jumps to the program's function. The child gets no state: its calls are lost. */
	function pb_clone_entry
	mov	(%rdi), %rdx
	mov	8(%rdi), %rdi
	mov	pb_tls@gottpoff(%rip), %rax
	lea	pb_foreign_thread(%rip), %rcx
	mov	%rcx, %fs:(%rax)
	mov	pb_unblocked@gottpoff(%rip), %rax
	.irp offset, 0, 8, 16, 24
	movq	$0, %fs:\offset(%rax)
	.endr
	jmp	*%rdx
	end pb_clone_entry

/* The kernel calls this in place of the program's handlers, with rsp at the return address.
 * pb_signal_begin(sig, info, context, slot) returns the address of the next code in rax. If rdx is
 * 0, this function jumps there. Otherwise it calls that code, and then pb_signal_end(context, rdx).
 * The call has the same stack pointer as the call of pb_signal_begin(). So while the handler runs,
 * the address pb_signal_called isn't on the stack, and a detach doesn't wait for the handler. */
	function pb_signal_entry
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	lea	24(%rsp), %rcx
	call	pb_signal_begin
	.globl	pb_signal_called
	.hidden	pb_signal_called
pb_signal_called:	/* signal_frames.c searches the stacks for this return address */
	test	%rdx, %rdx
	jnz	1f
	.cfi_remember_state
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_restore_state
1:	mov	16(%rsp), %rdi
	mov	8(%rsp), %rsi
	mov	%rdx, 8(%rsp)
	mov	(%rsp), %rdx
	call	*%rax
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	pb_signal_end
	end pb_signal_entry

/* A handler that does nothing. */
	function pb_signal_done
	ret
	end pb_signal_done

/* The first code of a thread that pthread_create() makes. rdi points to a struct box
 * (engine/process/sigmask.c), which holds the program's routine and the routine's argument. This
 * code ends with a jump, so no frame of the agent is on the stack while the routine runs. */
	function pb_thread_entry
	mov	%rsp, %rsi
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	pb_thread_begins
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	mov	%rdx, %rdi
	jmp	*%rax
	end pb_thread_entry

	.section .note.GNU-stack,"",@progbits
