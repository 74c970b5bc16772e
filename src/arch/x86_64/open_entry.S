/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entry of a call whose return is hooked at the function's exits. The steps are
 * those of doc/design/open-calls.md, "The entry stub". The clock is read in step 7.
 */
#include "arch/x86_64/hot.inc"
#include "arch/x86_64/open_call.inc"

	.if O_STATE != O_SITE + 4 || PB_ENTRY_LEAF != 0 || PB_ENTRY_EMITTED != 1
	.error "O_STATE must be O_SITE + 4, LEAF 0 (one store sets both), EMITTED 1 (for bts)"
	.endif

	/* Jumps to `ok` if the array has fewer open calls than the limit of depth, counted up to
	 * the call at rcx. Otherwise a callee of this call is too deep: jumps to `reject`. But if
	 * some of the calls may not be in the tree, C code must count: jumps to `slow`. rax and rdx
	 * are lost. rdi is the thread. */
	.macro open_depth ok, reject, slow
	mov	%rcx, %rax
	and	$-PB_OPEN_SEGMENT, %rax
	mov	G_DEPTH(%rax), %edx
	sub	%rcx, %rax
	neg	%rax
	shr	$PB_OPEN_SHIFT, %eax
	lea	-1(%rax, %rdx), %eax
	cmp	T_MAX_DEPTH(%rdi), %eax
	jb	\ok
	cmpb	$0, T_WATCHING(%rdi)
	jne	\slow
	jmp	\reject
	.endm

	/* lazy: the call's exit decides whether the call is recorded. So the entry doesn't write
	 * the parent's ENTRY yet. */
	.macro open_entry name, mode, nested, lazy
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 64
\name:
	.cfi_startproc
	save
.Lsaved_\name:
	load_thread
	mov	T_TOP(%rdi), %rcx
	test	%rcx, %rcx			/* 0 in a new thread and after a fork */
	jz	.Lslow_\name
	cmp	T_LO(%rdi), %rsp		/* another stack */
	jb	.Lslow_\name
	open_check rcx, .Lslow_\name
	cmpb	$PB_DEPTH_MAX >> 24, 3 + T_MAX_DEPTH(%rdi)
	jne	.Llimited_\name
.Lunlimited_\name:
	.if \nested
	testb	$1, O_WORD(%rcx)		/* a foot's word is odd (arch/open_call.h).
						 * Then the caller is in another segment, or
						 * no traced call is open */
	jnz	.Lfoot_\name
	.endif
	.if \lazy
	cmpb	$PB_ENTRY_LAZY, O_STATE(%rcx)
	ja	.Lbelow_\name
	.else
	cmpb	$PB_ENTRY_EMITTED, O_STATE(%rcx)
	jne	.Lemit_\name
	.endif
.Lemitted_\name:
	open_claim rcx, rax, .Lslow_\name, T_TOP(%rdi)
	mov	S_ID(%r11), %esi
	mov	(%rsp), %rax
	mov	%rsi, O_SITE(%rcx)		/* also O_STATE, with LEAF, which is 0 */
	mov	%rax, O_RET(%rcx)
	.if \lazy
	movb	$PB_ENTRY_LAZY, O_STATE(%rcx)
	.endif
	clock
	.if !\lazy
	mov	T_LEAF(%rdi), %rdx
.Lopen_leaf_\name:
	mov	%esi, L_SITE(%rdx)
	mov	%rax, L_START(%rdx)
.Lopen_leaf_end_\name:
	forked_words rdx, .Lopen_leaf_\name, .Lopen_leaf_end_\name
	.endif
	mov	%rax, O_START(%rcx)
	open_live rcx
	restore
.Lend_\name:
	go_on
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lemitted_\name, 3
	hot_range .Lemitted_\name, .Lemitted_\name, .Lend_\name

	/* Writes the parent's ENTRY, which the parent's first traced callee needs. rcx (the
	 * parent), rdi (the thread) and r11 (the site) are preserved. */
	.cfi_startproc
.Lemit_\name:
	.if !\lazy
	cmpb	$PB_ENTRY_LEAF, O_STATE(%rcx)
	jne	.Lbelow_\name
	btsl	$0, O_STATE(%rcx)		/* sets EMITTED; carry: a handler has just set it */
	jc	.Lemitted_\name
	mov	$8, %eax
	xadd	%rax, T_POS(%rdi)
.Lentry_\name:
	unless_in_chunk rax, rdi, rsi, .Lemit_full_\name
	mov	O_START(%rcx), %rsi
	mov	%rsi, %rdx
	sub	T_LAST(%rdi), %rdx
	cmp	$NEAR_TIME, %rdx
	ja	.Lemit_far_\name
	mov	%rsi, T_LAST(%rdi)
	mov	O_SITE(%rcx), %edx
	shl	$PB_TIME_SHIFT, %rsi
	lea	PB_TAG_ENTRY(, %rdx, 4), %rdx
	or	%rdx, %rsi
	mov	%rsi, (%rax)
.Lentry_written_\name:
	forked_words rax, .Lentry_\name, .Lentry_written_\name
	jmp	.Lemitted_\name
.Lemit_far_\name:
	pad_own	rax, si, .Lslow_\name
	jmp	.Lemit_back_\name
.Lemit_full_\name:
	pad_unless_full rax, si, .Lslow_\name
.Lemit_back_\name:
	movb	$PB_ENTRY_LEAF, O_STATE(%rcx)
	jmp	.Lslow_\name
	.endif

	/* Nothing below a call of a function in set_graph_notrace is recorded. */
.Lbelow_\name:
	cmpb	$PB_ENTRY_SILENT, O_STATE(%rcx)
	je	.Lreject_\name
.Lslow_\name:
	mov	$(\mode), %edx
	leave	pb_enter_slow

	/* max_graph_depth limits the depth of calls. (If the limit has the highest byte of
	 * PB_DEPTH_MAX, there is no limit.) If the limit is 0, tracing is off, but the handlers
	 * aren't changed yet. */
.Llimited_\name:
	open_depth .Lunlimited_\name, .Lreject_\name, .Lslow_\name

	.if \nested
.Lfoot_\name:
	mov	%rcx, %rax
	and	$-PB_OPEN_SEGMENT, %rax
	cmpq	$0, G_PREV(%rax)
	jne	.Lslow_\name
	.endif
	/* The call isn't traced. rsi still has the program's value. */
.Lreject_\name:
	restore	rsi=0
.Lreject_end_\name:
	go_on
	.cfi_endproc
.Lcode_end_\name:
	.if !\lazy
	hot_range .Lemit_\name, .Lemit_\name, .Lentry_\name, 3
	hot_range .Lentry_\name, .Lentry_\name, .Lbelow_\name
	.endif
	hot_range .Lbelow_\name, .Lbelow_\name, .Lslow_\name, 3
	hot_range .Lslow_\name, .Lslow_\name, .Llimited_\name
	hot_range .Llimited_\name, .Llimited_\name, .Lreject_end_\name, 3
	near_range \name, .Lcode_end_\name
	.size \name, . - \name
	.endm

	open_entry pb_open_graph, 0, 0, 0
	open_entry pb_open_graph_nested, PB_ENTER_NESTED, 1, 0
	open_entry pb_open_lazy, PB_ENTER_LAZY, 0, 1
	open_entry pb_open_lazy_nested, PB_ENTER_LAZY | PB_ENTER_NESTED, 1, 1

/* set_graph_notrace: neither the call nor any call below it is recorded. So the call needs no time,
 * and its parent needs no ENTRY. */
	.globl	pb_open_silent
	.hidden	pb_open_silent
	.type	pb_open_silent, @function
	.balign 64
pb_open_silent:
	.cfi_startproc
	save
.Lsaved_silent:
	load_thread
	mov	T_TOP(%rdi), %rcx
	test	%rcx, %rcx
	jz	.Lslow_silent
	cmp	T_LO(%rdi), %rsp
	jb	.Lslow_silent
	open_check rcx, .Lslow_silent
	cmpb	$PB_DEPTH_MAX >> 24, 3 + T_MAX_DEPTH(%rdi)
	jne	.Llimited_silent
.Lunlimited_silent:
	cmpb	$PB_ENTRY_SILENT, O_STATE(%rcx)
	je	pb_graph_reject
	ja	.Lslow_silent			/* a call for eBPF programs, or a foot */
	open_claim rcx, rax, .Lslow_silent, T_TOP(%rdi)
	mov	S_ID(%r11), %esi
	mov	(%rsp), %rax
	mov	%rsi, O_SITE(%rcx)		/* also O_RECORD and `watch`, with 0 */
	movb	$PB_ENTRY_SILENT, O_STATE(%rcx)
	mov	%rax, O_RET(%rcx)
	movq	$0, O_START(%rcx)
	open_live rcx
	restore
.Lend_silent:
	go_on
.Llimited_silent:
	open_depth .Lunlimited_silent, pb_graph_reject, .Lslow_silent
.Lslow_silent:
	mov	$PB_ENTER_SILENT, %edx
	jmp	pb_enter_slow
.Lslow_end_silent:
	.cfi_endproc
	hot_range pb_open_silent, .Lsaved_silent, .Lend_silent
	hot_range .Llimited_silent, .Llimited_silent, .Lslow_end_silent
	.size pb_open_silent, . - pb_open_silent

	.section .note.GNU-stack,"",@progbits
