/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program's traced functions, with exits of all kinds, and functions that call them. Each
 * traced function counts its own calls with one instruction.
 */
#ifdef SMALL_STACKS
	/* by this section the agent takes the program for a Go program */
	.section .gopclntab, "a", @progbits
	.byte	0
#endif
	.text
	.p2align 4

	.macro F name
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm
	.macro E name
	.cfi_endproc
	.size	\name, . - \name
	.p2align 4
	.endm
	.macro T name, number
	F \name
	incq	made + 8 * \number(%rip)
	.endm
	.macro push_reg reg
	push	%\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endm
	/* Has no .cfi_restore, like code that GCC compiles. So after the pop, unwinders still read
	 * the register's value from the stack, from the word that is now below rsp. */
	.macro pop_reg reg
	pop	%\reg
	.cfi_adjust_cfa_offset -8
	.endm
	/* code that is longer than any entry's window, that is, than the bytes that a patch may
	 * overwrite */
	.macro far_away
	.rept	6
	lea	1(%rsi), %rsi
	.endr
	.endm

/* a leaf whose ret is in the entry's window */
T t_leaf, 0
	lea	3(%rdi), %rax
	cmp	$5, %rax
	ret
E t_leaf

T t_far, 1
	far_away
	lea	1(%rdi), %rax
	mov	$0x80000000, %edx
	cmp	$1, %edx			/* sets OF */
	mov	$0x77, %edx
	ret
E t_far

T t_caller, 2
	push_reg rbx
	mov	%rdi, %rbx
	call	t_far
	add	%rbx, %rax
	pop_reg rbx
	ret
E t_caller

/* leaves by a conditional jump if x is odd */
T t_cond, 3
	far_away
	test	$1, %dil
	jne	t_leaf
	lea	9(%rdi), %rax
	inc	%r11
	ret
E t_cond

T t_tail, 4
	push_reg rbp
	far_away
	lea	1(%rdi), %rdi
	inc	%r11
	pop_reg rbp
	jmp	t_leaf
E t_tail

T t_pops, 5
	mov	8(%rsp), %rax
	add	%rdi, %rax
	ret	$8
E t_pops

/* An unwinder finds this frame by rbp, which t_tail saves and restores. */
F call_framed
	push_reg rbp
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	call	t_tail
	pop	%rbp
	.cfi_def_cfa rsp, 8
	ret
E call_framed

/* its callees make calls, too */
T t_tree, 6
	push_reg rbx
	mov	%rdi, %rbx
	call	t_caller
	add	%rax, %rbx
	lea	(%rbx), %rdi
	call	t_tail
	add	%rbx, %rax
	pop_reg rbx
	ret
E t_tree

/* is called between two stepped calls, to separate them in the recording. Takes longer than the
 * threshold of the mode "time", even if the clock advances only every few nanoseconds. */
T t_mark, 7
	lea	1(%rdi), %rax
	mov	$50, %ecx
1:	pause
	dec	%ecx
	jnz	1b
	ret
E t_mark

/* recurses as deep as earlier calls went. When a call of t_flush() begins, the agent closes the
 * earlier calls that a jump has skipped */
T t_flush, 8
	test	%edi, %edi
	jz	1f
	dec	%edi
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	t_flush
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
1:	ret
E t_flush

/* recurses edi calls deep; the innermost call calls rsi(rdx) */
T t_deep, 9
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	dec	%edi
	jz	1f
	call	t_deep
	jmp	2f
1:	mov	%rdx, %rdi
	call	*%rsi
2:	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
E t_deep

/* is called by handlers */
T t_hand, 10
	push_reg rbx
	mov	%rdi, %rbx
	call	t_far
	lea	(%rax, %rbx), %rdi
	call	t_leaf
	pop_reg rbx
	ret
E t_hand

/* is called by handlers, and leaves by a jump */
T t_out, 11
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	jump_out
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
E t_out

/* calls rsi(rdi) */
T t_root, 12
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	*%rsi
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
E t_root

	/* calls `function` with an aligned stack */
	.macro call_aligned function
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	\function
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.endm
	/* sets the registers in which C code may leave a different value each time */
	.macro known_registers
	mov	$0x13, %eax
	mov	$0x14, %ecx
	mov	$0x15, %edx
	mov	$0x16, %esi
	mov	$0x17, %edi
	mov	$0x18, %r8d
	mov	$0x19, %r9d
	mov	$0x1a, %r10d
	mov	$0x1b, %r11d
	cmp	$0x1b, %r11d
	.endm

/* takes some time to return */
T t_nap, 13
	call_aligned nap
	known_registers
	ret
E t_nap

/* the calls that t_unseen makes aren't recorded: they are too deep for -D, or excluded by -N */
T t_unseen, 14
	push_reg rbx
	mov	%rdi, %rbx
	call	t_hidden
	add	%rbx, %rax
	pop_reg rbx
	ret
E t_unseen

T t_hidden, 15
	call_aligned t_below
	lea	5(%rax), %rax
	ret
E t_hidden

/* is entry-only: its return can't be hooked */
T t_entry, 16
	lea	7(%rdi), %rax
	lea	(%rsp), %rcx
	mov	(%rcx), %rcx
	mov	%rcx, (%rsp)
	cmp	$8, %rax
	ret
E t_entry

/* makes a call before it leaves by a tail jump */
T t_calls_tail, 17
	call_aligned t_far
	lea	(%rax), %rdi
	inc	%r11
	jmp	t_leaf
E t_calls_tail

/* calls a function on another stack. When t_away returns, the tracer still takes the other stack
 * for the current one */
T t_away, 18
	call_aligned on_other_stack
	ret
E t_away

T t_away_tail, 19
	call_aligned on_other_stack
	jmp	t_leaf
E t_away_tail

/* returns a long time after its entry */
T t_late, 20
	call_aligned t_far
	call_aligned long_nap
	known_registers
	ret
E t_late

T t_late_tail, 21
	call_aligned t_far
	call_aligned long_nap
	known_registers
	jmp	t_leaf
E t_late_tail

/* sets the trap flag itself, so that only its exit is stepped. If the whole call was stepped, its
 * duration wouldn't fit into a LEAF record */
T t_traps, 22
	pushf
	.cfi_adjust_cfa_offset 8
	orl	$0x100, (%rsp)
	popf
	.cfi_adjust_cfa_offset -8
	cmp	$4, %rdi
	ret
E t_traps

/* is called by t_hidden, which -N excludes */
T t_below, 23
	lea	1(%rdi), %rax
	ret
E t_below

/* is called near the end of the stack. Its first callee can't be recorded, and its own end can't be
 * recorded in the usual way */
T t_cramped, 24
	push_reg rbx
	mov	%rdi, %rbx
	call	t_entry
	call	t_far
	add	%rbx, %rax
	pop_reg rbx
	ret
E t_cramped

T t_cramped_tail, 25
	call_aligned t_entry
	lea	1(%rdi), %rdi
	inc	%r11
	jmp	t_leaf
E t_cramped_tail

	/* Saves the old stack pointer on the new stack. If it were saved in a register, handlers
	 * would see another value in the register each time. CFA = *rsp + 8 */
	.macro to_cramped
	mov	cramped_at(%rip), %rax
	mov	%rsp, (%rax)
	mov	%rax, %rsp
	.cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 8
	mov	$0, %eax
	.endm

/* calls t_cramped(rdi) and other functions with the stack pointer at cramped_at */
F call_cramped
	to_cramped
	call	t_cramped
	call	t_cramped_tail
	call	call_pops
	call	t_leaf
	call	t_entry
	mov	(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	ret
E call_cramped

/* calls t_entry with the stack pointer at cramped_at, directly and through t_root */
F call_entry_cramped
	to_cramped
	call	t_entry
	lea	t_entry(%rip), %rsi
	call	t_root
	mov	(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	ret
E call_entry_cramped

/* makes rdi calls of t_flush with the stack pointer at cramped_at */
F fill_cramped
	push_reg rbp
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	push	%rbx
	push	%r12
	mov	%rdi, %r12
	mov	%rsp, %rbx
	mov	cramped_at(%rip), %rsp
1:	xor	%edi, %edi
	call	t_flush
	dec	%r12
	jnz	1b
	mov	%rbx, %rsp
	pop	%r12
	pop	%rbx
	.cfi_def_cfa_register rsp
	pop_reg rbp
	ret
E fill_cramped

/* leaves by a jump if rdi isn't 0 */
T t_gone, 26
	far_away
	test	%edi, %edi
	jz	.Lgone
	call_aligned jump_out
.Lgone:
	lea	1(%rdi), %rax
	lea	1(%rax), %rax
	ret
E t_gone

/* isn't traced, and jumps to the end of t_gone, so that it returns through t_gone's ret */
F untraced
	far_away
	jmp	.Lgone
E untraced

/* if rdi isn't 0, calls t_gone(rdi); otherwise calls untraced(0). The two calls have the same
 * return slot but different call sites */
F gone_or_untraced
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	test	%edi, %edi
	jz	1f
	call	t_gone
	jmp	2f
1:	call	untraced
2:	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
E gone_or_untraced

F call_traps
	pushf
	.cfi_adjust_cfa_offset 8
	andl	$~0x100, (%rsp)
	popf
	.cfi_adjust_cfa_offset -8
	call	t_traps
	ret
E call_traps

F on_other_stack
	push_reg rbp
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	lea	other_stack + 16384 - 64(%rip), %rsp
	call	t_leaf
	mov	%rbp, %rsp
	.cfi_def_cfa_register rsp
	pop_reg rbp
	ret
E on_other_stack

	.lcomm	other_stack, 16384

F call_pops
	push	$0x21
	.cfi_adjust_cfa_offset 8
	call	t_pops
	.cfi_adjust_cfa_offset -8
	ret
E call_pops

/* If the handler is installed through libc, the kernel calls note_pc() at a step. note_pc() notes
 * the real interrupted PC, since the tracer shows handlers another PC. Then it jumps to the handler
 * that the kernel would have called. */
F note_pc
	mov	40 + 16 * 8(%rdx), %rax		/* uc_mcontext.gregs[REG_RIP] */
	mov	%rax, interrupted_pc(%rip)
	jmp	*noted_goes_on(%rip)
E note_pc

/* void run_stepped(long (*f)(long), long x, uint64_t registers[16]): sets all registers to known
 * values, calls f(x) with the trap flag set, and stores all registers after f's return. */
F run_stepped
	push_reg rbx
	push_reg rbp
	push_reg r12
	push_reg r13
	push_reg r14
	push_reg r15
	sub	$(8 + 16 * 8 + 16), %rsp
	.cfi_adjust_cfa_offset (8 + 16 * 8 + 16)
	mov	%rdx, 128(%rsp)
	mov	%rdi, 136(%rsp)
	mov	%rsi, %rdi
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	mov	$0x5000 + \n, %r\n
	.endr
	mov	$0x6001, %ebx
	mov	$0x6002, %ebp
	mov	$0x6003, %ecx
	mov	$0x6004, %edx
	mov	$0x6005, %esi
	mov	$0x80000000, %eax
	cmp	$1, %eax			/* sets OF */
	mov	$0, %eax
	pushf
	.cfi_adjust_cfa_offset 8
	orl	$0x100, (%rsp)
	popf
	.cfi_adjust_cfa_offset -8
	call	*136(%rsp)
	pushf
	.cfi_adjust_cfa_offset 8
	andl	$~0x100, (%rsp)
	popf
	.cfi_adjust_cfa_offset -8
	pushf
	.cfi_adjust_cfa_offset 8
	andl	$0x8d5, (%rsp)
	popq	120(%rsp)
	.cfi_adjust_cfa_offset -8
	mov	%rax, 0(%rsp)
	mov	%rcx, 8(%rsp)
	mov	%rdx, 16(%rsp)
	mov	%rsi, 24(%rsp)
	mov	%rdi, 32(%rsp)
	mov	%rbx, 40(%rsp)
	mov	%rbp, 48(%rsp)
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	mov	%r\n, 56 + 8 * (\n - 8)(%rsp)
	.endr
	mov	128(%rsp), %rdi
	mov	%rsp, %rsi
	mov	$16, %ecx
	cld
	rep movsq
	add	$(8 + 16 * 8 + 16), %rsp
	.cfi_adjust_cfa_offset -(8 + 16 * 8 + 16)
	pop_reg r15
	pop_reg r14
	pop_reg r13
	pop_reg r12
	pop_reg rbp
	pop_reg rbx
	ret
E run_stepped

	.section .note.GNU-stack,"",@progbits
