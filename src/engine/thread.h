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

/* A stack: the thread's own, or one that a program switched to. */
struct pb_stack {
	uint64_t lo, hi;	/* [lo, hi) */
	struct pb_entry *root;	/* below all its calls; its slot is hi, its depth 0 */
	struct pb_entry *cur;	/* innermost open call, while no thread runs on it */
	struct pb_thread *thread; /* that runs on it, or ran last */
	uint64_t id;		/* in the records; 0: nobody's, 1: being filled */
	bool exact;		/* bounds were told, not guessed */
	/* It lies in a frame on a thread's own stack: of this call, that began then,
	 * or of one below. When that is over the stack is gone. */
	struct pb_entry *within;
	uint64_t within_start;
};

struct pb_thread {
	uint64_t lo;		/* of the current stack */
	struct pb_entry *cur;	/* innermost open call on it; NULL: not initialised */
	struct pb_entry *hint;	/* entry to try first */
	struct pb_writer w;
	uint64_t tcb;
	struct pb_stack *stack;
	struct pb_stack own;
	int32_t first_block;	/* of its gates; -1: none */
	uint32_t nr_blocks;
	uint32_t collect_wait;	/* slow entries to let pass before collecting again */
	void *exec_area;	/* for the environment of an exec */
	uint64_t exec_size;
};

_Static_assert(offsetof(struct pb_thread, lo) == T_LO, "layout.h");
_Static_assert(offsetof(struct pb_thread, cur) == T_CUR, "layout.h");
_Static_assert(offsetof(struct pb_thread, hint) == T_HINT, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.pos) == T_POS, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.end) == T_END, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.last) == T_LAST, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.leaf) == T_LEAF, "layout.h");

extern __thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec")));
extern char pb_gates[], pb_entries[];

/* What is true of this process; pid is 0 in a child until its first hit. */
struct pb_process {
	uint32_t pid;
	uint32_t nr_threads;	/* states handed out, ever */
	uint32_t nr_stacks;
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

/* The stack that holds `slot`, if it is another one than t's present one; and t
 * goes on there. */
struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot);
void pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s);

/* The program told the bounds of a stack (makecontext, sigaltstack). Calls
 * that are still open there belong to a use of it that is over. */
void pb_stack_told(uint64_t lo, uint64_t size);

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

void pb_gates_start(void);
/* How many entries may be in use: all others never were. */
uint32_t pb_gates_used(void);
/* A root for a stack that ends at hi; its own parent. One that stacks share when
 * no entry is left: then calls are recorded without their returns. */
struct pb_entry *pb_gate_root(struct pb_thread *t, uint64_t hi);
/* A free entry, claimed for `slot`; NULL: none. */
struct pb_entry *pb_gate_claim(struct pb_thread *t, uint64_t slot);
/* Frees a live entry if its slot no longer holds its gate (never while it
 * does). readable: *slot may be read. */
bool pb_gate_free_if_dead(struct pb_entry *e, bool readable);
/* t's thread is gone, or t is reused: free what lies on its own stack. */
void pb_gates_abandon(struct pb_thread *t);
/* In a forked child: keep only t's gates. Its innermost open call, or NULL. */
struct pb_entry *pb_gates_after_fork(struct pb_thread *t, uint64_t slot);
bool pb_stack_holds(const struct pb_stack *s, uint64_t address);
#endif
