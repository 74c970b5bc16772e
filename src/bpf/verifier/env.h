/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verifier's inside: states, and what its parts do for each other.
 *
 * A state is what is known before an instruction on one path: a frame for each call
 * under way, and a few things besides. The path under way has one, `cur`. A branch
 * leaves a copy for the other way on a stack (struct waiting). At instructions where
 * paths may meet (prune points) a copy is kept (struct explored): a path that comes
 * there with a state that is no weaker needs no second look. Kept states form a tree
 * by `parent`; marks of what is read, and of whose precise value matters, go up
 * there, so that a kept state says what has to be as strong, and nothing more.
 *
 * The present state, and the branch that was left last, are taken apart: registers and
 * slots can be changed in place. All others are at rest (kept.c): their frames hold
 * numbers of values, and states share them.
 *
 * Errors are negative; the function that finds one writes to the log.
 */
#ifndef PB_BPF_ENV_H
#define PB_BPF_ENV_H
#include <errno.h>
#include "base/base.h"
#include "base/mem.h"
#include "bpf/core/opcodes.h"
#include "bpf/helper/helper.h"
#include "bpf/verifier/pool.h"
#include "bpf/verifier/reg.h"
#include "bpf/verifier/verify.h"

#ifndef ENOTSUPP
#define ENOTSUPP 524		/* the kernel's, which its callers see */
#endif
#ifndef BPF_F_TEST_REG_INVARIANTS
#define BPF_F_TEST_REG_INVARIANTS (1u << 7)	/* since Linux 6.8 */
#endif

#define MAX_VAR_OFF	(1 << 29)
#define MAX_VAR_SIZE	(1 << 29)
#define MAX_PACKET_OFF	0xffff
#define MAX_SUBPROGS	256
#define MAX_WAITING	8192	/* branches */
#define MAX_STATES	64	/* kept at an instruction, without privilege */
#define MAX_LISTS	65536	/* of kept states */
#define SLOT		8	/* bytes of stack that are described together */
#define MAX_SLOTS	(PB_BPF_STACK / SLOT)
#define FP		10
#define MAX_STEPS	40	/* of a path without a state, at a prune point */
#define LONG_WAY	1000	/* instructions of one, anywhere */
#define KEEP_AGAIN	2000	/* instructions after memory was short */
#define MAX_LINKED	6	/* copies of a scalar that learn the same bounds */

/* What a byte of stack is. */
enum slot_type { S_INVALID, S_SPILL, S_MISC, S_ZERO, S_DYNPTR, S_ITER };

struct slot {
	struct reg reg;		/* of what was spilled here */
	uint8_t type[SLOT];	/* type[7] is the byte at the lowest address's end, fp - 8n + ... */
};

struct ref {
	uint32_t id, insn;	/* where it was acquired */
	uint32_t callback;	/* frame of the callback that did it */
};

#define PIECE	19		/* values that are shared together */
#define PIECES	((11 + MAX_SLOTS + PIECE - 1) / PIECE)

struct frame {
	struct reg *regs;	/* 11; NULL at rest */
	int32_t callsite;	/* MAIN: none */
	uint32_t number, subprog;
	uint32_t async_entries;
	/* budgets of iterations: iterations.c */
	uint32_t budget;	/* of its may_gotos */
	uint32_t passed;	/* iterations that these allow */
	uint32_t series;	/* of the callback of a helper that it calls: a new one when
				 * it comes to the call another way */
	uint32_t iterations;		/* of that, in a row */
	uint32_t most_iterations;	/* of it, while it runs; else 0 */
	bool in_callback, in_async;
	uint32_t most_ret;	/* of a callback: it returns a number from 0 to this */
	uint32_t nr_refs, room_refs, nr_slots, room_slots;
	struct ref *refs;
	struct slot *slots;	/* slots[0] is fp - 8; NULL at rest */
	uint32_t users;		/* at rest: */
	struct values_piece *pieces[PIECES];	/* of values: 11 registers, then slots */
};
#define MAIN (-1)

/* An instruction on the path: one that didn't come from the one above it, or that knows
 * what its bits don't say. */
struct step {
	uint32_t insn, from;
	bool stack;		/* it filled, or spilled to, a slot of stack */
	bool dst_stack, src_stack;	/* it compares a pointer to the stack */
	uint8_t frame, slot;	/* which */
	uint8_t nr_linked;	/* scalars that learned the same bounds, at the same time */
	uint16_t linked[MAX_LINKED];
};

/* Of a frame at rest, what differs between the states that share it. Bits by register, or slot. */
struct marks {
	uint64_t read_slots, written_slots;	/* enum liveness */
	uint64_t precise_slots, scalar_slots;	/* scalar: a spilled number is there */
	uint64_t linked_slots;			/* those that the state before has, too */
	uint16_t read, written, precise, scalar;
	uint16_t parent[11];
	uint8_t nr_slots;
};

struct state {
	struct frame *frames[PB_BPF_MAX_FRAMES];
	struct marks *marks;	/* of a state at rest, by frame */
	/* facts: copied as they are */
	struct state *parent;
	uint32_t cur;		/* the frame that runs */
	uint32_t lock;		/* id of the value whose spin lock is held */
	uint32_t branches;	/* paths from here that aren't at their end */
	uint32_t insn;		/* of an explored state */
	uint32_t first;		/* instruction at which it began */
	int32_t last;		/* the last one before its child */
	uint32_t iterations;		/* of all loops with a budget, on the whole path */
	uint32_t number;	/* of an explored state: how many there were before it */
	uint32_t budgets;	/* of one: how many there were */
	uint32_t until;		/* of a whole one: what it needs is known when that state is done;
				 * 0: never */
	bool speculative;	/* only a processor may come here, guessing */
	bool head;		/* of an explored state: an iteration of such a loop begins */
	bool whole;		/* of one: all of it may matter, read or not, precise or not */
	bool awaited;		/* of one: others depend on it (pending.c) */
	bool all_precise;	/* of one: its scalars and those of all before it are marked */
	uint16_t way;		/* instructions since `first`, or more */
	/* the end of facts */
	struct step *steps;	/* the way since `first`, where it wasn't straight */
	uint32_t nr_steps, room_steps;
};

struct waiting {
	struct state st;	/* at rest, except the newest's */
	uint32_t insn;
	int32_t from;
	uint64_t log_at;
	struct waiting *next;
};

struct explored {
	struct state st;	/* first; at rest */
	struct explored *next;
	uint16_t hits, misses;	/* or more */
	bool aside;		/* not looked at any more, but part of the tree; only marks are
				 * left */
};

/* Of an instruction. */
struct aux {
	struct pb_bpf_fact fact;
	bool prune_point : 1, jump_point : 1, calls_back : 1;
	bool head : 1;			/* an iteration of a loop with a budget begins here */
	bool saves : 1;			/* or restores a register around a fast call */
	bool ptr_known : 1, loop_known : 1, map_known : 1;
	uint8_t ptr_type, ptr_flags;	/* that it accessed memory through */
	uint8_t alu_state;		/* enum alu_state */
	const struct pb_bpf_map *func_map;
};
_Static_assert(sizeof(struct aux) == 32, "there may be a million of these");

struct subprog {
	uint32_t start, stack;
	bool has_tail_call, has_ld_abs, is_async, is_callback;
	bool called, verified;		/* of a global one */
	bool moves_packet;		/* it, or what it calls, makes packet pointers void */
	bool fast, saves_stay;		/* fast calls are in it (fastcall.c); registers are saved
					 * for others, too */
	int32_t saved_below;		/* slots below fp + this are only of registers that such
					 * calls save */
	bool depth_known;		/* of the deepest chain that begins with it: */
	uint32_t depth, frames;		/* bytes, frames */
	uint32_t tail_depth;		/* most bytes before a subprogram that calls tails; 0: none
					 * does */
};

/* What registers and slots of states at rest are, each value once. */
struct value;
struct values {
	uint32_t nr, nr_buckets;
	struct value **buckets;
};

struct env {
	struct pb_bpf_verify *v;
	const struct bpf_insn *insns;
	uint32_t nr;
	uint8_t *ops;
	struct aux *aux;
	struct subprog subs[MAX_SUBPROGS + 2];	/* and one that begins at the end */
	uint32_t nr_subs;
	const struct pb_bpf_func *funcs[MAX_SUBPROGS + 2];
	struct pb_bpf_map *inner;	/* of each of v->maps, where it has one */
	/* privileges, taken apart */
	bool capable, ptr_leaks, uninit_stack, trust_v1, trust_v4;
	bool strict, state_freq;
	/* the path under way */
	struct state *cur;
	uint32_t insn;
	int32_t prev_insn;
	bool step_here;			/* the last of cur's steps is of the instruction under
					 * way */
	/* the others */
	struct waiting *waiting;
	uint32_t nr_waiting;
	struct explored **explored;	/* lists, by instruction and call */
	uint32_t nr_lists;
	struct values values;
	uint32_t ctx_needed;
	bool whole, exact;		/* states are compared in all; and are the same only if they
					 * are equal */
	bool returned;			/* a callback, just now */
	uint32_t budgets;		/* that there were */
	struct jump *jumps;		/* back to states whose needs aren't known yet
					 * (pending.c) */
	uint32_t nr_jumps;
	struct state **pending;		/* states that wait for them */
	uint32_t nr_pending, room_pending;
	uint32_t marks_made;
	int error;			/* such as -ENOMEM, from a function without a result */
	bool alu_limits;		/* scalars are distinguished, for the masks */
	uint32_t ids;
	uint32_t processed, jumps_processed, prev_processed, prev_jumps;
	struct pool pool;
	struct pool_mark set_up;	/* what came after it are states */
	size_t short_at;		/* used when room couldn't be made; 0: it could */
	uint32_t keep_again;		/* not before that many instructions */
	/* the log */
	uint32_t touched_regs;
	uint64_t touched_slots;
	uint32_t insn_len;
	uint64_t insn_log_at;
	const struct pb_bpf_line *last_line;
	struct {
		uint32_t nr;
		struct ref_pair { uint32_t old, cur; } pair[(11 + MAX_SLOTS) * PB_BPF_MAX_FRAMES];
	} idmap;
};
#endif
