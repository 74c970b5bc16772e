/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program with Go's table of functions (version 1.20), as a seed for the fuzzers of the module
 * analysis. */
	.text
	.globl	main
	.p2align 5
main:
.Ltext:
	xor	%eax, %eax
	ret
	.p2align 5, 0xcc
.Lwork:	cmp	16(%r14), %rsp
	jbe	1f
	push	%rbp
	mov	%rsp, %rbp
	call	.Lleaf
	pop	%rbp
	ret
1:	call	.Lmore
	jmp	.Lwork
	.p2align 5, 0xcc
.Lleaf:	lea	1(%rax,%rax,2), %rax
	ret
	.p2align 5, 0xcc
.Lmore:	ret
	.p2align 5, 0xcc
.Lexit:	nop
	call	.Lexit1
	nop
	.p2align 5, 0xcc
.Lexit1:
	ud2
	.p2align 5, 0xcc
.Lend:

	.macro	start code
	.long	\code - .Ltext, .Li\code - .Lfuncs
	.endm
	.macro	info code, name, list=.Llists
.Li\code: .long	\code - .Ltext, .L\name - .Lnames, 0, 0, \list - .Llists
	.endm

	.section .gopclntab, "aw"
	.p2align 5
.Ltable:
	.long	0xfffffff1
	.byte	0, 0, 1, 8
	.quad	6, 1, .Ltext, .Lnames - .Ltable, .Lnames - .Ltable, .Lnames - .Ltable
	.quad	.Llists - .Ltable, .Lfuncs - .Ltable
.Lnames: .byte	0
.Lnmain: .asciz	"main.main"
.Lnwork: .asciz	"main.work[...]"
.Lnleaf: .asciz	"main.\033[31mleaf"
.Lnmore: .asciz	"runtime.morestack"
.Lnexit: .asciz	"runtime.goexit"
.Lnexit1: .asciz "runtime.goexit1"
.Llists: .byte	0
.Llist:	.byte	2, 6, 0
	.p2align 3
.Lfuncs:
	start	.Ltext
	start	.Lwork
	start	.Lleaf
	start	.Lmore
	start	.Lexit
	start	.Lexit1
	.long	.Lend - .Ltext
	info	.Ltext, nmain
	info	.Lwork, nwork
	info	.Lleaf, nleaf, .Llist
	info	.Lmore, nmore
	info	.Lexit, nexit
	info	.Lexit1, nexit1
	.section .note.GNU-stack, "", @progbits
