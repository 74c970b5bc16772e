/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stores that a forked child must not repeat (arch.h, "stores that only their owner makes").
 *
 * Each function compares the owner's serial with the present one, and then stores by one
 * instruction. (pb_own_count() has a second store, after the first.) A handler may interrupt the
 * function between the comparison and the store, and may fork. The handler then returns to the
 * function in the child, too. So pb_own_resume() sends the child back to the comparison, which
 * fails in the child. The instructions from the comparison up to the store change nothing that the
 * comparison needs. So the child can be sent back from any of them.
 */
#include "abi/ring.h"
#include "arch/layout.h"
#include "arch/x86_64/forked.inc"
#include "arch/x86_64/function.inc"

	.section pb_own, "ax", @progbits

	.macro own_range again, stored
	forked_to \again, \stored, \again
	.endm

	/* Jumps to `to` if the owner's serial, in esi, differs from the present serial, at `now`.
	 * Also jumps if the chunk with the address in rdx has another serial. rax is lost. */
	.macro unless_own now, to
	cmp	%esi, (%\now)
	jne	\to
	mov	%rdx, %rax
	and	$-PB_CHUNK_SIZE, %rax
	cmp	%esi, L_SERIAL(%rax)
	jne	\to
	.endm

/* bool pb_own_store({const uint32_t *now (rdi), uint32_t serial (esi)}, uint64_t *at, value) */
	function pb_own_store
	unless_own rdi, 1f
	mov	%rcx, (%rdx)
.Lstored:
	mov	$1, %eax
	ret
1:	xor	%eax, %eax
	ret
	own_range pb_own_store, .Lstored
	end pb_own_store

/* void pb_own_zero(owner, uint64_t *at, size_t n) */
	function pb_own_zero
	mov	%rdi, %r8
	mov	%rcx, %r9
.Lzero:
	unless_own r8, 1f
	mov	%rdx, %rdi
	mov	%r9, %rcx
	xor	%eax, %eax
	rep stosq
.Lzeroed:
1:	ret
	own_range .Lzero, .Lzeroed
	end pb_own_zero

/* bool pb_own_change(owner, uint64_t *at, uint64_t old, uint64_t new) */
	function pb_own_change
	cmp	%esi, (%rdi)
	jne	1f
	mov	%rcx, %rax
	lock cmpxchg %r8, (%rdx)
.Lchanged:
	sete	%al
	movzbl	%al, %eax
	ret
1:	xor	%eax, %eax
	ret
	own_range pb_own_change, .Lchanged
	end pb_own_change

/* void pb_own_count(owner, uint64_t *shared, uint64_t *own). If a handler forks between the two
 * additions, the child doesn't make the second addition: in the child, *own counts only the child's
 * own events. */
	function pb_own_count
	cmp	%esi, (%rdi)
	jne	1f
	incq	(%rdx)
.Lcounted:
	incq	(%rcx)
1:	ret
	own_range pb_own_count, .Lcounted
	forked_to .Lcounted, 1b, 1b
	end pb_own_count

	.section .note.GNU-stack,"",@progbits
