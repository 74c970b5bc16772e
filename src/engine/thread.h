/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A traced thread's state. It lies in memory that is wiped in a forked child,
 * so that the child's first hit finds zeros and takes the slow way, where it
 * becomes a thread of its own and keeps the calls that were open.
 *
 * The TLS word points to it; before a thread's first hit to a state of zeros
 * that is never written. A thread that ended is noticed when its TCB's address
 * comes again (glibc keeps the stacks): its state and gates are taken over.
 */
#ifndef PB_ENGINE_THREAD_H
#define PB_ENGINE_THREAD_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/x86_64/layout.h"
#include "base/base.h"
#include "engine/stack.h"
#include "ring/writer.h"

/* An entry is known by the address of its first array's part. */
struct pb_entry;
#define PB_ENT(e, off, type)	(*(type *)((char *)(e) + (off)))
#define PB_ENT_RET(e)		PB_ENT(e, A_RET, uint64_t)
#define PB_ENT_BODY(e)		PB_ENT(e, A_BODY, uint64_t)
#define PB_ENT_START(e)		PB_ENT(e, B_START, uint64_t)
#define PB_ENT_SLOT(e)		PB_ENT(e, B_SLOT, uint64_t)
#define PB_ENT_PARENT(e)	PB_ENT(e, C_PARENT, struct pb_entry *)
#define PB_ENT_SITE(e)		PB_ENT(e, C_SITE, uint32_t)
#define PB_ENT_STATE(e)		PB_ENT(e, C_STATE, uint8_t)
#define PB_ENT_OWNER(e)		PB_ENT(e, E_OWNER, struct pb_thread *)
#define PB_ENT_DEPTH(e)		PB_ENT(e, E_DEPTH, uint32_t)
#define PB_ENT_SCRATCH(e)	PB_ENT(e, E_SCRATCH, uint32_t)

#define PB_SLOT_GUARD		(~0ul)
#define PB_SLOT_LIVE		1ul	/* live: slot - 1, so its low bits are ones */
/* An entry of a call that the compiler's own hooks told (engine/cyg.c): no gate
 * is in use, it stands just above the slots of what its frame calls. */
#define PB_SLOT_HOOK		4ul
#define PB_SLOT_IS_HOOK(s)	(((s) & 7) == PB_SLOT_HOOK)
#define PB_SLOT_ADDRESS(s)	(((s) + 7) & ~7ul)

#define PB_READY_BLOCKS	16

struct pb_thread {
	uint64_t lo;		/* of the current stack */
	struct pb_entry *cur;	/* innermost open call on it; NULL: not initialised */
	struct pb_entry *hint;	/* entry to try first */
	struct pb_open_call *top; /* with return sites: the innermost open call, nearly always; NULL: not initialised */
	struct pb_writer w;
	uint64_t tcb;
	uint64_t starting;	/* the slot of the hit that made the state */
	struct pb_stack *stack;
	struct pb_stack own;
	int32_t first_block;	/* of its gates; -1: none */
	uint32_t nr_blocks;
	/* of sweep.c: blocks to look at in this round, those that had free entries,
	 * nr_blocks at which the next one begins, the next block, those to claim from */
	uint32_t round, round_found, round_at;
	int32_t cursor, ready[PB_READY_BLOCKS];
	uint32_t nr_ready;
	uint32_t nr_freed;	/* dead entries, ever */
	struct pb_stack *visiting;	/* pb_stack_visit() */
	uint32_t want;		/* entries that still go the slow way as a sweep is wanted: lo is ~0 */
	uint32_t pause;		/* claims until one may be wanted again */
	uint32_t unknown;	/* claims since the thread was seen to know its mask */
	uint32_t wait;		/* claims to let pass: there was no entry to be had... */
	const struct pb_stack *wait_stack;	/* ... here */
	uint64_t wait_slot;
	void *exec_area;	/* for the environment of an exec */
	uint64_t exec_size;
};

_Static_assert(offsetof(struct pb_thread, lo) == T_LO, "layout.h");
_Static_assert(offsetof(struct pb_thread, cur) == T_CUR, "layout.h");
_Static_assert(offsetof(struct pb_thread, hint) == T_HINT, "layout.h");
_Static_assert(offsetof(struct pb_thread, top) == T_TOP, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.pos) == T_POS, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.base) == T_CHUNK, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.last) == T_LAST, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.leaf) == T_LEAF, "layout.h");

extern __thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec")));
extern char pb_gates[], pb_entries[];
extern char __ehdr_start[] __attribute__((visibility("hidden")));

/* Is it the agent's own code, gates included? */
static inline bool pb_agent_holds(uint64_t pc)
{
	uint64_t end = (uint64_t)pb_gates + PB_NR_GATES * PB_GATE_SIZE;

	return pc - (uint64_t)__ehdr_start < end - (uint64_t)__ehdr_start;
}

/* What is true of this process; pid is 0 in a child until its first hit. */
struct pb_process {
	uint32_t pid;
	uint32_t epoch;		/* 0: in a child before its first hit; differs from its parents' */
	bool forker_came;	/* the thread that forked has its state again */
	uint32_t nr_threads;	/* states at or above it are free */
	uint32_t refuse;	/* so many hits of threads without a state are lost unasked */
	uint32_t nr_live, look_at;	/* threads with a state; at the last look for dead ones */
	uint32_t nr_stacks;
	uint32_t readers;	/* loads that may fault, under way (uaccess.c) */
	bool holes;		/* a stack was told that lies inside a thread's own */
};
extern struct pb_process *pb_process;	/* in wiped memory */
extern bool pb_follow_fork;
extern uint32_t pb_image;

/* Maps the wiped memory, finds where glibc keeps a thread's TID and stack.
 * Context: start, one thread. -errno. */
int pb_threads_start(uint64_t stack_top);

/* The calling thread's state, made if need be; NULL: this thread can't be
 * traced. slot: any address on its stack. Context: hit path. */
struct pb_thread *pb_thread_get(uint64_t slot);

/* It had no hit yet, nor had the thread that forked it. */
bool pb_thread_is_new(void);

#define PB_MAX_THREADS	16384
/* Of a state that pb_thread_get() gave: below PB_MAX_THREADS. */
uint32_t pb_thread_number(const struct pb_thread *t);

/* Whether the address is known to lie on the calling thread's own stack. */
bool pb_on_own_stack(uint64_t address);

/* The gates: gate.c. */
static inline uint64_t pb_gate_of(const struct pb_entry *e)
{
	return (uint64_t)e - PB_GATE_DISTANCE;
}
static inline bool pb_is_gate(uint64_t address)
{
	return address - (uint64_t)pb_gates < (uint64_t)PB_NR_GATES * PB_GATE_SIZE;
}
static inline struct pb_entry *pb_entry_of(uint64_t gate)
{
	return (struct pb_entry *)((gate & -16ul) + PB_GATE_DISTANCE);
}

/* Each stack has an entry of its own below its calls. */
static inline bool pb_is_root(const struct pb_entry *e)
{
	return PB_ENT_DEPTH(e) == 0;
}

static inline uint32_t pb_depth(const struct pb_entry *e)
{
	uint32_t n = 0;

	for (; (int32_t)PB_ENT_DEPTH(e) < 0 && n < PB_NR_GATES; n++)
		e = PB_ENT_PARENT(e);
	return (int32_t)PB_ENT_DEPTH(e) < 0 ? n : PB_ENT_DEPTH(e) + n;
}

#define PB_NO_BLOCK	(-1)

void pb_gates_start(void);
/* How many entries may be in use: all others never were. */
uint32_t pb_gates_used(void);
/* A root for a stack that ends at hi; its own parent. One that stacks share when
 * no entry is left: then calls are recorded without their returns. */
struct pb_entry *pb_gate_root(struct pb_thread *t, uint64_t hi);
/* An entry claimed for `slot`, of the blocks that are at hand; NULL: none is
 * free. */
struct pb_entry *pb_gate_claim(struct pb_thread *t, uint64_t slot);
struct pb_entry *pb_gate_claim_in(int32_t block, uint64_t slot);
/* The same, of a block that wasn't t's; NULL: all are taken. */
struct pb_entry *pb_gate_claim_new(struct pb_thread *t, uint64_t slot);
/* t's blocks: the first is t->first_block, behind the last is PB_NO_BLOCK. */
int32_t pb_gate_next_block(int32_t block);
struct pb_entry *pb_gate_in_block(int32_t block, uint32_t i);
/* Whether a return to `value`, which stands in the slot, may come through e's gate: it is
 * the gate, or another one whose call returns to it (a jump between functions that was taken
 * for a call), or one whose call is just returning. */
bool pb_gate_leads(uint64_t value, uint64_t slot, const struct pb_entry *e);
/* Frees an entry, unless its slot word isn't that any more. Its owner's thread
 * only, but for calls that are known to be over. */
bool pb_gate_free(struct pb_entry *e, uint64_t word);
/* t's thread is gone, or t is reused: free what lies on its own stack. */
void pb_gates_abandon(struct pb_thread *t);
/* After that: blocks without an open call are nobody's. */
void pb_gates_give_back(struct pb_thread *t);
/* The slot holds its return address again: the program may look at it. Entries of eBPF
 * programs that wait for the return are freed, which counts as missed. */
void pb_gates_forget_progs(uint64_t *slot);
/* Runs of programs that were left out; never NULL. */
extern uint64_t *pb_prog_missed;
/* In a forked child: all gates are t's. Its innermost open call, or NULL. */
struct pb_entry *pb_gates_after_fork(struct pb_thread *t, uint64_t slot);
/* Where the own stack of a thread is, or was before a fork; false: not known. */
bool pb_thread_own_bounds(const struct pb_thread *t, struct pb_stack *s);
#endif
