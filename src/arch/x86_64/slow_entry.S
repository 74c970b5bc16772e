/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Entries that the fast paths don't handle: C code handles them, or the call isn't recorded. */
#include "arch/x86_64/hot.inc"
#include "arch/open_call.h"

/* Handlers that always take the slow path. */
	slow_handler pb_open_call, PB_ENTER_CALL, pb_enter_slow
	slow_handler pb_open_call_nested, PB_ENTER_CALL | PB_ENTER_NESTED, pb_enter_slow
	slow_handler pb_list, PB_ENTER_LIST, pb_enter_slow

/* Calls void pb_enter(site, slot, mode). The array of open calls doesn't have an entry for the new
 * call yet. */
	.balign 16
	.globl	pb_enter_slow
	.hidden	pb_enter_slow
	.type	pb_enter_slow, @function
pb_enter_slow:
	.cfi_startproc
	cmpl	$0, pb_max_depth(%rip)		/* tracing is off */
	je	pb_graph_reject
	load_thread
	testb	$PB_SITE_SMALL, S_SMALL(%r11)
	jnz	enter_on_hit_stack
	unless_room rdi, rax, pb_enter_cramped
	mov	S_BODY(%r11), %rax
	mov	%rax, F_TARGET(%rsp)
	lea	-128(%rsp), %rsp
.Lstepped_over:
	hot_range pb_enter_slow, pb_enter_slow, .Lstepped_over
	.cfi_adjust_cfa_offset 128
	push_reg r8
	push_reg r9
	push_reg r10
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%r11, %rdi
	lea	160(%rsp), %rsi
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	and	$-16, %rsp
	call	pb_enter
	mov	%rbp, %rsp
	.cfi_def_cfa_register rsp
	pop_reg rbp
	.cfi_restore rbp
	pop_reg r10
	pop_reg r9
	pop_reg r8
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	restore
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size pb_enter_slow, . - pb_enter_slow

/* Does the same on a stack of the agent (frame.h). rdi is the thread. */
	.balign 16
	.type	enter_on_hit_stack, @function
enter_on_hit_stack:
	.cfi_startproc
	to_hit_stack pb_enter_cramped
	mov	S_BODY(%r11), %rax
	mov	%rax, F_TARGET(%rbp)
	mov	%r11, %rdi
	mov	%rbp, %rsi
	call	pb_enter
	from_hit_stack
	restore
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size enter_on_hit_stack, . - enter_on_hit_stack

/* The stack has no room for C code. The call is counted as lost if the tests below find that it
 * would have been recorded. rdi is the thread, edx the mode. */
	.balign 16
	.globl	pb_enter_cramped
	.hidden	pb_enter_cramped
	.type	pb_enter_cramped, @function
pb_enter_cramped:
	.cfi_startproc
	stay	rcx
	mov	T_TOP(%rdi), %rcx
	test	%rcx, %rcx
	jz	pb_graph_reject
	test	$(PB_ENTER_SILENT | PB_ENTER_LAZY), %dl
	jnz	pb_graph_reject
	cmpb	$PB_ENTRY_SILENT, O_STATE(%rcx)
	je	pb_graph_reject
	test	$PB_ENTER_NESTED, %dl
	jz	.Lin_tree
	mov	%rcx, %rax
	and	$-PB_OPEN_SEGMENT, %rax
	testb	$1, O_WORD(%rcx)
	jz	.Lin_tree
	cmpq	$0, G_PREV(%rax)
	je	pb_graph_reject
.Lin_tree:
	/* the call's parent isn't a leaf any more */
	cmp	%rsp, O_WORD(%rcx)
	jle	.Lcount
	mov	$PB_ENTRY_LEAF, %eax
	mov	$PB_ENTRY_LATE, %esi
	cmpxchg	%sil, O_STATE(%rcx)
.Lcount_late:
	jne	.Lcount
	mov	T_COUNTS(%rdi), %rax
	test	%rax, %rax
	jz	.Luncounted_late
	incq	H_LATE(%rax)
.Lcount:
	mov	T_LEAF(%rdi), %rax
	movq	$0, (%rax)
	mov	T_COUNTS(%rdi), %rax
	test	%rax, %rax
	jz	.Luncounted
	incq	H_LOST(%rax)
	incq	T_LOST(%rdi)
	jmp	pb_graph_reject
.Luncounted:
	mov	pb_ring_map(%rip), %rax		/* pb_ring_map.ring */
	lock incq R_CALLS_LOST(%rax)
	incq	T_LOST(%rdi)
	jmp	pb_graph_reject
.Luncounted_late:
	mov	pb_ring_map(%rip), %rax
	lock incq R_CALLS_LATE(%rax)
	jmp	.Lcount
	.cfi_endproc
.Lcramped_end:
	/* a forked child counts neither call, because the parent process does */
	forked_to .Lcount_late, .Lcramped_end, pb_graph_reject
	hot_range pb_enter_cramped, pb_enter_cramped, .Lcramped_end
	.size pb_enter_cramped, . - pb_enter_cramped

/* The call isn't traced: jumps to the site's body. */
	.balign 16
	.globl	pb_graph_reject
	.hidden	pb_graph_reject
	.type	pb_graph_reject, @function
pb_graph_reject:
	.cfi_startproc
	restore
.Lend_reject:
	go_on
	.cfi_endproc
	hot_range pb_graph_reject, pb_graph_reject, .Lend_reject
	.size pb_graph_reject, . - pb_graph_reject

/* The function is replaced but not traced: jumps to the site's body, which is the replacement. */
	.balign 16
	.globl	pb_direct
	.hidden	pb_direct
	.type pb_direct, @function
pb_direct:
	.cfi_startproc
	go_on
	.cfi_endproc
	.size pb_direct, . - pb_direct

	.section .note.GNU-stack,"",@progbits
