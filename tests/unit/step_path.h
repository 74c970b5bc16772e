/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests that run some code again and again, and act at its k-th instruction for each k.
 * Single-stepping up to each k takes k signals. But the code takes the same path each time, and
 * earlier runs know most of it. So the test sets a breakpoint at an instruction of this path, runs
 * to it, and single-steps only from there. The breakpoint is at the last step that came to an
 * instruction for the first time. (At any other instruction, a breakpoint would stop earlier
 * passes, too.)
 *
 * Use one path, zeroed at first, for all runs of the same code with ascending k. Call path_note()
 * at each single step, and path_sees() for the first instruction, if the code comes to it again. In
 * a later run, step path->known is where the program counter first is path->at. path_arm() sets the
 * breakpoint there, if there is one. At each SIGTRAP, path_arrived() tells whether it is due to the
 * breakpoint, and if so, sets the trap flag.
 */
#ifndef PB_TEST_STEP_PATH_H
#define PB_TEST_STEP_PATH_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STEP_PATH_BITS	(1 << 14)
#define STEP_INT3	0xcc
#define TRAP_FLAG	0x100ul

struct step_path {
	long noted, known;		/* numbers of steps; 0: none */
	uint64_t at;
	uint64_t seen[STEP_PATH_BITS / 64];	/* a bit for each program counter, by its hash */
};

/* The breakpoint that is set, if any */
struct step_breakpoint {
	struct step_path *path;
	uint8_t byte;			/* what was there before */
};

/* Begins or ends single-stepping. Must be the same instructions in both cases, without a branch:
 * the code after them may have a breakpoint. */
static inline void set_trap_flag(bool on)
{
	uint64_t flag = (uint64_t)on * TRAP_FLAG, flags;

	__asm__ volatile("pushfq; pop %0; and %2, %0; or %1, %0; push %0; popfq"
			 : "=&r"(flags) : "r"(flag), "i"(~TRAP_FLAG) : "memory", "cc");
}

/* Returns whether the path was here before. (A hash that another program counter has, too, only
 * costs a place for a breakpoint.) */
static inline bool path_sees(struct step_path *path, uint64_t pc)
{
	uint64_t bit = pc * 0x9e3779b97f4a7c15ull >> 50, *word = &path->seen[bit / 64], was = *word;

	*word |= 1ul << bit % 64;
	return was >> bit % 64 & 1;
}

/* After `step` steps, the program counter is `pc`. */
static inline void path_note_pc(struct step_path *path, long step, uint64_t pc)
{
	if (step <= path->noted)
		return;
	path->noted = step;
	if (path_sees(path, pc))
		return;
	path->known = step;
	path->at = pc;
}

/* The same, in the handler of SIGTRAP. No breakpoint may be where single-stepping has just ended:
 * it would begin it again. */
static inline void path_note(struct step_path *path, long step, const ucontext_t *uc)
{
	if (uc->uc_mcontext.gregs[REG_EFL] & (greg_t)TRAP_FLAG)
		path_note_pc(path, step, (uint64_t)uc->uc_mcontext.gregs[REG_RIP]);
}

static inline void path_set(struct step_breakpoint *b, uint8_t byte)
{
	*(volatile uint8_t *)b->path->at = byte;
}

/* Returns false if single-stepping must begin at the first instruction. */
static inline bool path_arm(struct step_breakpoint *b, struct step_path *path)
{
	if (!path || !path->known)
		return false;
	if (mprotect((void *)(path->at & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		abort();
	b->path = path;
	b->byte = *(uint8_t *)path->at;
	path_set(b, STEP_INT3);
	return true;
}

/* Called at a SIGTRAP. If the breakpoint was hit, takes it away, and returns true. */
static inline bool path_arrived(struct step_breakpoint *b, ucontext_t *uc)
{
	greg_t *pc = &uc->uc_mcontext.gregs[REG_RIP];

	if (!b->path || (uint64_t)*pc != b->path->at + 1)
		return false;
	path_set(b, b->byte);
	*pc -= 1;
	uc->uc_mcontext.gregs[REG_EFL] |= (greg_t)TRAP_FLAG;
	b->path = NULL;
	return true;
}

/* Takes away a breakpoint that wasn't hit. Returns whether there was one. */
static inline bool path_disarm(struct step_breakpoint *b)
{
	if (!b->path)
		return false;
	path_set(b, b->byte);
	b->path = NULL;
	return true;
}

#endif
