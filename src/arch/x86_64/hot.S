/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hit path: what runs when a patched function is entered and when it
 * returns. Every register and the flags are preserved, no SSE is touched, and
 * rsp never moves on the fast paths (what they save lies in the red zone,
 * which is dead at an entry and after a return, and safe from signals).
 *
 * What a signal handler, an unwinder, a fork and a collection see at each
 * instruction is argued in doc/design/fgraph.md; keep the order of the stores.
 *
 * Handlers of a site (site->handler) are entered from its stub with r11 = the
 * site, the program's r11 at F_R11, all else the program's.
 */
#include "abi/record.h"
#include "abi/ring.h"
#include "arch/x86_64/layout.h"

/* PB_EXT_PAD and PB_EXT_FUNC: enums, that the assembler does not see */
#define EXT(type, words) ((type) << PB_EXT_TYPE_SHIFT | (words) << PB_EXT_LEN_SHIFT)
#define PAD_1		EXT(9, 1)
#define PAD_2		EXT(9, 2)
#define FUNC_WORD	EXT(3, 2)
/* How far behind the last record's time one may stand, for the fast path. */
#define NEAR_LEAF	((1 << (PB_LEAF_BITS - 1)) - 1)
#define NEAR_FUNC	((1 << (PB_EXT_TIME_BITS - 1)) - 1)
#define NEAR_TIME	0x7fffffff

	.section .rodata.hot_ranges, "a", @progbits
	.balign 4
	.globl	pb_hot_ranges
	.hidden	pb_hot_ranges
pb_hot_ranges:

	.text
	.balign 64
	.globl	pb_hot_start
	.hidden	pb_hot_start
pb_hot_start:

	.macro save_entry
	mov	%rax, F_RAX(%rsp)
	lahf
	seto	%al
	mov	%rcx, F_RCX(%rsp)
	mov	%rdx, F_RDX(%rsp)
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%eax, F_FLAGS(%rsp)
	.endm

	.macro restore_common
	mov	F_FLAGS(%rsp), %eax
	mov	F_RCX(%rsp), %rcx
	mov	F_RDX(%rsp), %rdx
	mov	F_RDI(%rsp), %rdi
	mov	F_RSI(%rsp), %rsi
	add	$0x7f, %al
	sahf
	mov	F_RAX(%rsp), %rax
	.endm

	/* For pb_hot_ranges (arch/x86_64/hot.h): code in which r11 is the site, and
	 * from `saved` on the frame in the red zone is whole. */
	.macro hot_range start, saved, end
	.pushsection .rodata.hot_ranges, "a", @progbits
	.long	\start - pb_hot_start, \saved - pb_hot_start, \end - pb_hot_start
	.popsection
	.endm

	.macro load_thread
	mov	pb_tls@gottpoff(%rip), %rdi
	mov	%fs:(%rdi), %rdi
	.endm

	/* rax = now, rdx gone. Where the clock stands still (--clock=none; reading
	 * the TSC was forbidden), its last value. */
	.macro clock
	mov	pb_frozen_clock(%rip), %rax
	cmpb	$0, pb_no_clock(%rip)
	jne	.Lnoclock\@
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
.Lnoclock\@:
	.endm

	/* With rsp in the gate's frame and the gate's address at -8(%rsp), or
	 * (cfi_ra_in_rdx) once the slot may hold anything. */
	.macro cfi_behind_slot
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
	/* r16 saved at: (*(rsp - 8) & -16) + PB_GATE_DISTANCE */
	.cfi_escape 0x10,0x10,0x0b,0x77,0x78,0x06,0x09,0xf0,0x1a,0x23,0x80,0x80,0x80,0x04
	.endm

/* ---- entry of a call whose return is hooked --------------------------- */

	.macro graph_entry name, mode, nested, lazy
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 64
\name:
	.cfi_startproc
	save_entry
.Lsaved_\name:
	load_thread
	mov	T_CUR(%rdi), %rdx
	test	%rdx, %rdx			/* new thread; after fork */
	jz	.Lslow_\name
	cmp	T_LO(%rdi), %rsp		/* another stack; */
	jb	.Lslow_\name
	cmp	%rsp, B_SLOT(%rdx)		/* or current was skipped, or tail-called us */
	jbe	.Lslow_\name
	mov	E_DEPTH(%rdx), %esi
	cmp	pb_max_depth(%rip), %esi
	jae	pb_graph_reject
	.if \nested
	test	%esi, %esi
	jz	pb_graph_reject
	.endif
	mov	T_HINT(%rdi), %rcx
	xor	%eax, %eax
	cmpxchg	%rsp, B_SLOT(%rcx)		/* claim */
	jne	.Lslow_\name
	mov	%rdx, C_PARENT(%rcx)
	inc	%esi
	mov	%esi, E_DEPTH(%rcx)
	.if \lazy
	movl	$PB_ENTRY_LAZY, C_STATE(%rcx)
	.else
	cmpb	$PB_ENTRY_EMITTED, C_STATE(%rdx)
	jne	.Lemit_\name
.Lemitted_\name:
	movl	$PB_ENTRY_LEAF, C_STATE(%rcx)
	.endif
	mov	(%rsp), %rax
	mov	%rax, A_RET(%rcx)
	mov	S_BODY(%r11), %rax
	mov	%rax, A_BODY(%rcx)
	mov	S_ID(%r11), %esi
	mov	%esi, C_SITE(%rcx)
	clock
	.if !\lazy
	mov	T_LEAF(%rdi), %rdx
	mov	%esi, L_SITE(%rdx)
	mov	%rax, L_START(%rdx)
	.endif
	mov	%rax, B_START(%rcx)
	lea	16(%rcx), %rdx
	lea	-PB_GATE_DISTANCE(%rcx), %rax
	mov	%rcx, T_CUR(%rdi)
	mov	%rdx, T_HINT(%rdi)
	mov	%rax, F_TARGET(%rsp)
	add	$PB_GATE_RETURN, %rax
	lea	-1(%rsp), %rdx
	mov	%rax, (%rsp)			/* the slot holds the gate */
	mov	%rdx, B_SLOT(%rcx)		/* live */
	restore_common
.Lend_\name:
	mov	F_R11(%rsp), %r11
	lea	8(%rsp), %rsp			/* drop the slot */
	cfi_behind_slot
	jmp	*F_TARGET - 8(%rsp)
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lend_\name

	.if !\lazy
	/* The parent's ENTRY, which its first traced callee needs. rcx entry
	 * (claimed), rdx parent, rdi thread, r11 site are kept. */
	.cfi_startproc
.Lemit_\name:
	cmpb	$PB_ENTRY_LEAF, C_STATE(%rdx)
	jne	.Lemit_slow_\name
	movb	$PB_ENTRY_EMITTED, C_STATE(%rdx)
	mov	$8, %eax
	xadd	%rax, T_POS(%rdi)
	cmp	T_END(%rdi), %rax
	jae	.Lemit_full_\name
	mov	%r8, F_R8(%rsp)
.Lemit_r8_\name:
	mov	B_START(%rdx), %rsi
	mov	%rsi, %r8
	sub	T_LAST(%rdi), %r8
	cmp	$NEAR_TIME, %r8
	ja	.Lemit_far_\name
	mov	%rsi, T_LAST(%rdi)
	mov	C_SITE(%rdx), %r8d
	shl	$PB_TIME_SHIFT, %rsi
	lea	PB_TAG_ENTRY(, %r8, 4), %r8
	or	%r8, %rsi
	mov	%rsi, (%rax)
	mov	F_R8(%rsp), %r8
	jmp	.Lemitted_\name
.Lemit_far_\name:
	mov	F_R8(%rsp), %r8
	movq	$PAD_1, (%rax)
.Lemit_full_\name:
	movb	$PB_ENTRY_LEAF, C_STATE(%rdx)
.Lemit_slow_\name:
	lea	.Lemitted_\name(%rip), %rax
	jmp	pb_emit_slow
	.cfi_endproc
	hot_range .Lemit_\name, .Lemit_\name, .Lemit_r8_\name
	.endif

	.cfi_startproc
.Lslow_\name:
	mov	$(\mode), %edx
	jmp	pb_enter_slow
	.cfi_endproc
	hot_range .Lslow_\name, .Lslow_\name, .Lslow_end_\name
.Lslow_end_\name:
	.size \name, . - \name
	.endm

	graph_entry pb_graph, 0, 0, 0
	graph_entry pb_graph_nested, PB_ENTER_NESTED, 1, 0
	graph_entry pb_graph_lazy, PB_ENTER_LAZY, 0, 1
	graph_entry pb_graph_lazy_nested, PB_ENTER_LAZY | PB_ENTER_NESTED, 1, 1

/* Not traced: on to the body. */
	.balign 16
	.type pb_graph_reject, @function
pb_graph_reject:
	.cfi_startproc
	mov	S_BODY(%r11), %rax
	mov	%rax, F_TARGET(%rsp)
	restore_common
.Lend_reject:
	mov	F_R11(%rsp), %r11
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	hot_range pb_graph_reject, pb_graph_reject, .Lend_reject
	.size pb_graph_reject, . - pb_graph_reject

/* Not traced, but replaced: on to the body that stands in for the function. */
	.balign 16
	.globl	pb_direct
	.hidden	pb_direct
	.type pb_direct, @function
pb_direct:
	.cfi_startproc
	mov	%rax, F_RAX(%rsp)
	mov	S_BODY(%r11), %rax
	mov	F_R11(%rsp), %r11
	mov	%rax, F_TARGET(%rsp)
	mov	F_RAX(%rsp), %rax
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size pb_direct, . - pb_direct

/* Sites that always take the long way: entry only, silent, several ops. */
	.macro slow_handler name, mode
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 16
\name:
	.cfi_startproc
	save_entry
	mov	$(\mode), %edx
	jmp	pb_enter_slow
	.cfi_endproc
	.size \name, . - \name
	.endm

	slow_handler pb_graph_call, PB_ENTER_CALL
	slow_handler pb_graph_call_nested, PB_ENTER_CALL | PB_ENTER_NESTED
	slow_handler pb_graph_silent, PB_ENTER_SILENT
	slow_handler pb_list, PB_ENTER_LIST

	.macro call_c fn
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	and	$-16, %rsp
	call	\fn
	mov	%rbp, %rsp
	.cfi_def_cfa_register rsp
	.endm

	.macro push_reg reg
	push	%\reg
	.cfi_adjust_cfa_offset 8
	.endm
	.macro pop_reg reg
	pop	%\reg
	.cfi_adjust_cfa_offset -8
	.endm

/* struct pb_target pb_enter(site, slot, mode): rax = where to go on, rdx =
 * whether the slot is to be dropped. Nothing was done yet. */
	.balign 16
	.type pb_enter_slow, @function
pb_enter_slow:
	.cfi_startproc
	lea	-128(%rsp), %rsp
	.cfi_adjust_cfa_offset 128
	push_reg r8
	push_reg r9
	push_reg r10
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%r11, %rdi
	lea	160(%rsp), %rsi
	call_c	pb_enter
	pop_reg rbp
	.cfi_restore rbp
	pop_reg r10
	pop_reg r9
	pop_reg r8
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	mov	%rax, F_TARGET(%rsp)
	mov	F_R11(%rsp), %r11
	test	%edx, %edx
	jz	1f
	restore_common
	lea	8(%rsp), %rsp
	.cfi_remember_state
	cfi_behind_slot
	jmp	*F_TARGET - 8(%rsp)
1:
	.cfi_restore_state
	restore_common
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size pb_enter_slow, . - pb_enter_slow

/* void pb_emit(entry *parent): its ENTRY and those above. rax = where to go
 * on; rcx, rdx, rdi, r11 are kept. */
	.balign 16
	.type pb_emit_slow, @function
pb_emit_slow:
	.cfi_startproc
	mov	%rax, F_TARGET(%rsp)
	lea	-128(%rsp), %rsp
	.cfi_adjust_cfa_offset 128
	push_reg rcx
	push_reg rdx
	push_reg rdi
	push_reg r11
	push_reg r8
	push_reg r9
	push_reg r10
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%rdx, %rsi
	call_c	pb_emit
	pop_reg rbp
	.cfi_restore rbp
	pop_reg r10
	pop_reg r9
	pop_reg r8
	pop_reg r11
	pop_reg rdi
	pop_reg rdx
	pop_reg rcx
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size pb_emit_slow, . - pb_emit_slow

/* ---- a hooked call returns -------------------------------------------- */

	.globl	pb_gate_exit
	.hidden	pb_gate_exit
	.type	pb_gate_exit, @function
	.balign 64
pb_gate_exit:
	.cfi_startproc
	cfi_behind_slot
	mov	%rax, F_RAX(%rsp)
	lahf
	seto	%al
	mov	%rcx, F_RCX(%rsp)
	mov	%rdx, F_RDX(%rsp)
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%r11, F_EXIT_R11(%rsp)
	mov	%eax, F_FLAGS(%rsp)
	mov	-8(%rsp), %rcx			/* the gate, from the slot */
	load_thread
	clock
	add	$(PB_GATE_DISTANCE - PB_GATE_RETURN), %rcx
	cmp	%rcx, T_CUR(%rdi)		/* some above were skipped; another stack */
	jne	.Lexit_slow
	cmp	%rdi, E_OWNER(%rcx)		/* claimed by another thread */
	jne	.Lexit_slow
	mov	C_PARENT(%rcx), %rsi
	mov	C_SITE(%rcx), %r11d
	mov	%rsi, T_CUR(%rdi)		/* from here on a handler's calls are not */
	movzbl	C_STATE(%rcx), %edx		/* below this one: its state is final */
	cmp	$PB_ENTRY_EMITTED, %edx
	je	.Lexit_emitted
	ja	.Lexit_other
	/* LEAF */
	lea	PB_TAG_LEAF(, %r11, 4), %r11
	mov	%rax, %rdx
	sub	B_START(%rcx), %rdx
	cmp	$((1 << PB_DUR_BITS) - 1), %rdx
	ja	.Lexit_popped
	shl	$PB_DUR_SHIFT, %rdx
	or	%rdx, %r11
	mov	$8, %edx
	xadd	%rdx, T_POS(%rdi)
	cmp	T_END(%rdi), %rdx
	jae	.Lexit_popped
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_LEAF, %rsi
	ja	.Lexit_far
	mov	%rax, T_LAST(%rdi)
	shl	$PB_LEAF_SHIFT, %rax
.Lexit_write:
	or	%r11, %rax
	mov	%rax, (%rdx)
	mov	A_RET(%rcx), %rdx
	.cfi_remember_state
	.cfi_register rip, rdx
	mov	%rcx, T_HINT(%rdi)
	movq	$0, B_SLOT(%rcx)		/* free, before the slot is restored */
	mov	%rdx, -8(%rsp)
	mov	F_EXIT_R11(%rsp), %r11
	mov	F_FLAGS(%rsp), %eax
	mov	F_RCX(%rsp), %rcx
	mov	F_RDI(%rsp), %rdi
	mov	F_RSI(%rsp), %rsi
	add	$0x7f, %al
	sahf
	mov	F_RAX(%rsp), %rax
	.cfi_def_cfa rsp, 0
	.cfi_restore rsp
	.cfi_offset rip, -8
	mov	F_RDX(%rsp), %rdx
	lea	-8(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_restore_state

.Lexit_emitted:
	lea	PB_TAG_EXIT(, %r11, 4), %r11
	mov	$8, %edx
	xadd	%rdx, T_POS(%rdi)
	cmp	T_END(%rdi), %rdx
	jae	.Lexit_popped
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_TIME, %rsi
	ja	.Lexit_far
	mov	%rax, T_LAST(%rdi)
	shl	$PB_TIME_SHIFT, %rax
	jmp	.Lexit_write

.Lexit_other:
	/* LAZY: C decides. CLOSED, SILENT: nothing to write. */
	cmp	$PB_ENTRY_LAZY, %edx
	je	.Lexit_popped
	mov	A_RET(%rcx), %rdx
	.cfi_remember_state
	.cfi_register rip, rdx
	mov	%rcx, T_HINT(%rdi)
	movq	$0, B_SLOT(%rcx)
	mov	%rdx, -8(%rsp)
	mov	F_EXIT_R11(%rsp), %r11
	restore_common
	.cfi_def_cfa rsp, 0
	.cfi_restore rsp
	.cfi_offset rip, -8
	lea	-8(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_restore_state

.Lexit_far:
	movq	$PAD_1, (%rdx)
.Lexit_popped:
	mov	$PB_EXIT_POPPED, %edx
	jmp	1f
.Lexit_slow:
	mov	$PB_EXIT_WHOLE, %edx
1:
	/* u64 pb_exit(entry, now, how, slot): the return address. The entry is
	 * freed here, where unwinders find the address in rax: once it is free, a
	 * handler's call may use it. */
	.macro cfi_ra_slot_at breg, lo, hi
	/* r16 saved at: (*(breg + offset) & -16) + PB_GATE_DISTANCE */
	.cfi_escape 0x10,0x10,0x0c,\breg,\lo,\hi,0x06,0x09,0xf0,0x1a,0x23,0x80,0x80,0x80,0x04
	.endm
	/* take the slot back, and step over the frame */
	lea	-136(%rsp), %rsp
	.cfi_def_cfa rsp, 144
	cfi_ra_slot_at 0x77, 0x80, 0x01		/* rsp + 128 */
	push	%rbp
	.cfi_def_cfa rsp, 152
	.cfi_offset rbp, -152
	cfi_ra_slot_at 0x77, 0x88, 0x01		/* rsp + 136 */
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	cfi_ra_slot_at 0x76, 0x88, 0x01		/* rbp + 136 */
	push	%r8
	push	%r9
	push	%r10
	mov	%rcx, %rdi
	mov	%rax, %rsi
	lea	136(%rbp), %rcx
	and	$-16, %rsp
	call	pb_exit
	.cfi_register rip, rax
	mov	136(%rbp), %rcx
	movq	$0, B_SLOT + PB_GATE_DISTANCE - PB_GATE_RETURN(%rcx)
	mov	%rax, 136(%rbp)
	.cfi_offset rip, -16
	lea	-24(%rbp), %rsp
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rbp
	.cfi_def_cfa rsp, 144
	.cfi_restore rbp
	lea	128(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	.cfi_restore rsp
	.cfi_offset rip, -8
	/* at the slot: the frame's offsets count from behind it */
	mov	F_EXIT_R11 + 8(%rsp), %r11
	mov	F_FLAGS + 8(%rsp), %eax
	mov	F_RCX + 8(%rsp), %rcx
	mov	F_RDX + 8(%rsp), %rdx
	mov	F_RDI + 8(%rsp), %rdi
	mov	F_RSI + 8(%rsp), %rsi
	add	$0x7f, %al
	sahf
	mov	F_RAX + 8(%rsp), %rax
	ret
	.cfi_endproc
	.size pb_gate_exit, . - pb_gate_exit
	.globl pb_gate_exit_end
	.hidden pb_gate_exit_end
pb_gate_exit_end:

/* ---- function tracer: entry only, with the caller ---------------------- */

	.globl	pb_function
	.hidden	pb_function
	.type	pb_function, @function
	.balign 64
pb_function:
	.cfi_startproc
	save_entry
.Lsaved_function:
	load_thread
	cmpl	$0, pb_max_depth(%rip)		/* tracing_on */
	je	pb_graph_reject
	clock
	mov	$16, %edx
	xadd	%rdx, T_POS(%rdi)
	cmp	T_END(%rdi), %rdx
	jae	.Lfunction_slow
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_FUNC, %rsi
	ja	.Lfunction_far
	mov	%rax, T_LAST(%rdi)
	mov	S_ID(%r11), %esi
	mov	(%rsp), %rcx
	shl	$PB_EXT_TIME_SHIFT, %rax
	shl	$PB_EXT_SITE_SHIFT, %rsi
	lea	FUNC_WORD(%rax, %rsi), %rax
	mov	%rcx, 8(%rdx)
	mov	%rax, (%rdx)
	jmp	pb_graph_reject
.Lfunction_far:
	movq	$PAD_2, (%rdx)
.Lfunction_slow:
	mov	$PB_ENTER_FUNCTION, %edx
	jmp	pb_enter_slow
	.cfi_endproc
	hot_range pb_function, .Lsaved_function, .Lfunction_slow
	.size pb_function, . - pb_function

	.globl pb_hot_end
	.hidden pb_hot_end
pb_hot_end:

	.section .rodata.hot_ranges, "a", @progbits
	.long	0, 0, 0
	.text

/* makecontext() takes a variable list: only looked at, then passed on. */
	.globl	pb_our_makecontext
	.hidden	pb_our_makecontext
	.type	pb_our_makecontext, @function
	.balign 16
pb_our_makecontext:
	.cfi_startproc
	.irp reg, rdi, rsi, rdx, rcx, r8, r9, rax
	push_reg \reg
	.endr
	call	pb_note_makecontext
	.irp reg, rax, r9, r8, rcx, rdx, rsi, rdi
	pop_reg \reg
	.endr
	jmp	*pb_original_makecontext(%rip)
	.cfi_endproc
	.size pb_our_makecontext, . - pb_our_makecontext

/* First code of the agent's thread and of the stop-the-world helper: they come
 * from a raw clone() with a stack of their own. Top of stack: fn, arg. */
	.globl	pb_clone
	.hidden	pb_clone
	.type	pb_clone, @function
pb_clone:	/* long pb_clone(flags, stack_top, fn, arg, ctid) */
	.cfi_startproc
	sub	$16, %rsi
	mov	%rdx, 0(%rsi)
	mov	%rcx, 8(%rsi)
	xor	%edx, %edx
	mov	%r8, %r10
	xor	%r8d, %r8d
	mov	$56, %eax
	syscall
	test	%rax, %rax
	jz	1f
	ret
1:	.cfi_undefined rip
	xor	%ebp, %ebp
	pop	%rax
	pop	%rdi
	call	*%rax
	mov	%eax, %edi
	mov	$60, %eax
	syscall
	hlt
	.cfi_endproc
	.size pb_clone, . - pb_clone

	.section .note.GNU-stack,"",@progbits
