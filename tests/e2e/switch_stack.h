/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SWITCH() saves the current stack pointer in *from, and changes to the stack whose pointer is
 * `to`. There, execution continues after the SWITCH() that left the stack `to`. On a new stack,
 * execution begins in a function that has no caller. Nothing tells the tracer of the switch: it
 * must find out by itself. A function that contains SWITCH() is recorded without its return. */
#ifndef SWITCH_STACK_H
#define SWITCH_STACK_H

#define SWITCH(from, to) __asm__ volatile( \
	"sub $128, %%rsp; push %%rbp; lea 1f(%%rip), %%rax; push %%rax; " \
	"mov %%rsp, (%0); mov %1, %%rsp; ret\n" \
	"1: pop %%rbp; add $128, %%rsp" \
	: : "D"(from), "S"(to) \
	: "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", \
	"memory", "cc")

/* Prepares a stack whose upper end is `end`. The first SWITCH() to the result runs begin(). */
static inline void *stack_begin(char *end, void (*begin)(void))
{
	void **sp = (void **)(end - 64);

	*--sp = (void *)0;
	*--sp = (void *)begin;
	return sp;
}
#endif
