/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scans a stack for return addresses (stack_scan.h). A word counts as a return address if it points
 * just after a call instruction in the loader or in the program's own allocator, or just after a
 * direct call in libc, but not into __libc_start_main(). (libc calls main(), start routines and
 * callbacks by indirect calls. These calls do no harm.) Other words that point there don't count.
 * For example, each program has the address of the loader's exit function on its stack.
 */
#include "attach/stack_scan.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>
#include "attach/idle_call.h"

#define SCAN_MAX	(64u << 10)
#define USER_LEVEL	3	/* the privilege level of programs */
#define BEFORE		7	/* size of the longest call instruction without a prefix */

/* The part of a signal frame's context that is looked at. */
#define CONTEXT_SIZE	(offsetof(struct ucontext_t, uc_mcontext) + \
			 sizeof(((struct ucontext_t *)0)->uc_mcontext.gregs))

/* The words of a stack, from the stack pointer up. */
struct stack {
	uint64_t sp;
	const uint64_t *words;
	size_t nr;
};

enum call_kind { CALL_NONE, CALL_DIRECT, CALL_INDIRECT };

/* Returns the length of the instruction with the opcode ff and this second byte. 0: the instruction
 * isn't a call. */
static unsigned indirect_length(uint8_t modrm)
{
	unsigned mod = modrm >> 6, rm = modrm & 7;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	if (mod == 3)
		return 2;
	return 2 + (rm == 4) + (mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0);
}

/* Returns the kind of the call instruction that ends at the address, or CALL_NONE. */
static enum call_kind call_before(const struct attach_subject *s, uint64_t addr)
{
	uint8_t code[BEFORE];

	if (attach_mem_read(s, addr - BEFORE, code, BEFORE))
		return CALL_NONE;
	if (code[BEFORE - 5] == 0xe8)
		return CALL_DIRECT;
	for (unsigned len = 2; len <= BEFORE; len++) {
		const uint8_t *at = code + BEFORE - len;

		if (at[0] == 0xff && indirect_length(at[1]) == len)
			return CALL_INDIRECT;
	}
	return CALL_NONE;
}

static unsigned look_at(const struct attach_subject *s, const struct attach_libc *l, uint64_t word)
{
	if (attach_in(&l->loader, word))
		return call_before(s, word) != CALL_NONE ? ATTACH_IN_LOADER : 0;
	if (attach_in(&l->locks.allocator, word))
		return call_before(s, word) != CALL_NONE ? ATTACH_IN_ALLOCATOR : 0;
	if (!attach_in(&l->text, word) || attach_in(&l->start_main, word) ||
	    call_before(s, word) != CALL_DIRECT)
		return 0;
	switch (attach_locks_kind(&l->locks, word - 1)) {
	case ATTACH_LOCKING:
		return ATTACH_IN_LIBC | ATTACH_IN_LOCKING;
	case ATTACH_UNSURE:
		return ATTACH_IN_LIBC | ATTACH_IN_UNSURE;
	default:
		return ATTACH_IN_LIBC;
	}
}

/* Returns the number of the system call that a signal interrupted, or -1. If the kernel restarts
 * the call after the handler, the program counter is at the syscall instruction, and the number is
 * in rax. Otherwise the program counter is after the instruction, and rax has the result. */
static long interrupted_call(const struct attach_subject *s, const greg_t *r)
{
	uint64_t pc = (uint64_t)r[REG_RIP];

	return attach_call_precedes(s, pc + ATTACH_SYSCALL_SIZE) ? (long)r[REG_RAX] :
	       attach_call_number(s, pc);
}

/* Whether the context is of a signal frame that is still in use. Such a context has the code
 * segment of the interrupted code. The lowest two bits of this selector are the privilege level, 3
 * for each program. With another level, the handler has returned, and other data was written over
 * its frame. */
static bool is_context(const greg_t *r)
{
	return ((uint64_t)r[REG_CSGSFS] & USER_LEVEL) == USER_LEVEL;
}

/* Judges the signal frame whose first word, the restorer's address, has the index `at`. The context
 * of the interrupted code follows this word. The handler does no harm if it interrupted an idle
 * system call. Then only the calls on the interrupted stack matter, and these are scanned if that
 * stack is above the frame. A handler that interrupted anything else may have interrupted
 * malloc. */
static unsigned look_at_frame(const struct attach_subject *s, const struct attach_libc *l,
			      const struct stack *stack, size_t at)
{
	const uint64_t *context = stack->words + at + 1;
	uint64_t end = stack->sp + stack->nr * sizeof(*context);
	struct ucontext_t uc;
	const greg_t *r = uc.uc_mcontext.gregs;

	if ((stack->nr - at - 1) * sizeof(*context) < CONTEXT_SIZE)
		return ATTACH_IN_HANDLER;
	memcpy(&uc, context, CONTEXT_SIZE);
	if (!is_context(r))
		return 0;
	const uint64_t args[6] = { (uint64_t)r[REG_RDI], (uint64_t)r[REG_RSI],
				   (uint64_t)r[REG_RDX], (uint64_t)r[REG_R10],
				   (uint64_t)r[REG_R8], (uint64_t)r[REG_R9] };
	uint64_t sp = (uint64_t)r[REG_RSP];

	if (sp <= stack->sp + at * sizeof(*context) || sp >= end ||
	    attach_in(&l->loader, (uint64_t)r[REG_RIP]))
		return ATTACH_IN_HANDLER;
	return attach_call_is_idle(interrupted_call(s, r), args) ? 0 : ATTACH_IN_HANDLER;
}

unsigned attach_stack_scan(const struct attach_subject *s, const struct attach_libc *l, uint64_t sp)
{
	const struct record_map *m = attach_map_at(s, sp);
	uint64_t size = m && m->end - sp < SCAN_MAX ? m->end - sp : SCAN_MAX;
	uint64_t *words = malloc(SCAN_MAX);
	ssize_t n = words ? pread(s->mem, words, size & ~7ull, (off_t)sp) : -1;
	const struct stack stack = { sp, words, n > 0 ? (size_t)n / sizeof(*words) : 0 };
	unsigned found = n <= 0 ? ATTACH_UNREADABLE : 0;

	for (size_t i = 0; i < stack.nr; i++)
		found |= words[i] == l->restore ? look_at_frame(s, l, &stack, i) :
						  look_at(s, l, words[i]);
	free(words);
	return found;
}

unsigned attach_calls_judge(const struct attach_subject *s, const struct attach_libc *l,
			    const uint64_t *calls, size_t nr)
{
	unsigned found = 0;

	for (size_t i = 0; i < nr; i++)
		found |= look_at(s, l, calls[i]);
	return found;
}
