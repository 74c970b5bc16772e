/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verifier's internal data structures, which its files share.
 *
 * A state is everything that the verifier knows before an instruction on one path: a frame for each
 * active call, and a few more facts. `cur` is the state of the path that is being followed. At a
 * branch, a copy of the state is pushed on a stack (struct waiting), for the side that isn't
 * followed yet. At prune points, which are instructions where paths may meet, a copy of the state
 * is kept (struct explored). A kept state *covers* a later state if everything that is safe after
 * the kept state is safe after the later state. If a path arrives at a prune point with a state
 * that a kept state covers, the path need not be followed. Kept states form a tree by `parent`. The
 * ancestors of the path's state are the kept states that lie on the path. If a path reads a
 * register or slot, or the program's safety depends on the exact value of a register or slot, this
 * register or slot is marked in these ancestors. The marked values of a kept state are its *needs*:
 * the values that a later state must match.
 *
 * The current state and the newest waiting branch are unpacked: their registers and slots can be
 * changed in place. All other states are at rest (kept.c), to save memory: their frames point to
 * values, and states share these values.
 *
 * Errors are negative. Usually the function that finds an error also logs the reason. It doesn't
 * log -ENOMEM.
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
#define ENOTSUPP 524		/* the kernel's internal error number, which bpf(2) returns */
#endif
#ifndef BPF_F_TEST_REG_INVARIANTS
#define BPF_F_TEST_REG_INVARIANTS (1u << 7)	/* in headers since Linux 6.8 */
#endif

#define MAX_VAR_OFF	(1 << 29)
#define MAX_VAR_SIZE	(1 << 29)
#define MAX_PACKET_OFF	0xffff
#define MAX_SUBPROGS	256
#define MAX_WAITING	8192	/* largest number of waiting branches */
#define MAX_STATES	64	/* without CAP_BPF: if a list has more kept states, no state is
				 * added to it */
#define MAX_LISTS	65536	/* largest number of lists of kept states */
#define SLOT		8	/* bytes of stack that one struct slot describes */
#define MAX_SLOTS	(PB_BPF_STACK / SLOT)
#define FP		10	/* number of the frame pointer's register */
#define MAX_STEPS	40	/* if a path has more steps since its last kept state, a state is
				 * kept at the next prune point */
#define LONG_PATH	1000	/* after this many instructions without a kept state, a state is
				 * kept at the next instruction. Prune points are excepted: there
				 * MAX_STEPS decides (prune.c) */
#define KEEP_AGAIN	2000	/* after a shortage of memory, no state is kept for this many
				 * instructions */
#define MAX_LINKED	6	/* number of linked scalars (struct reg: `id`) that a step can
				 * record */

/* What a byte of the stack holds. S_INVALID: nothing; the byte was never written, or the dynptr or
 * iterator there has ended. S_SPILL: a byte of a spilled register. S_MISC: any data. S_ZERO: 0.
 * S_DYNPTR, S_ITER: a byte of a dynptr or an iterator; slot_has_object() needs them to be last. */
enum slot_type { S_INVALID, S_SPILL, S_MISC, S_ZERO, S_DYNPTR, S_ITER };

struct slot {
	struct reg reg;		/* the register that was spilled into this slot */
	uint8_t type[SLOT];	/* type[0] is the byte at the highest address, type[7] the byte at
				 * the lowest address */
};

struct ref {
	uint32_t id, insn;	/* insn: the instruction that acquired the reference */
	uint32_t callback;	/* number of the frame of the callback that acquired the reference,
				 * or called the function that did; 0: no callback has acquired
				 * it */
};

#define PIECE	19		/* number of values in a values_piece; frames share whole pieces */
#define PIECES	((11 + MAX_SLOTS + PIECE - 1) / PIECE)

struct frame {
	struct reg *regs;	/* 11 registers; NULL at rest */
	int32_t callsite;	/* the instruction that made the call; MAIN: the frame has no
				 * caller */
	uint32_t number, subprog;
	uint32_t async_entries;	/* for an asynchronous callback: one more than in the frame that set
				 * the callback. So prune.c can tell that the callback was entered
				 * again, which is no loop */
	/* budgets of iterations (iterations.c): */
	uint32_t budget;	/* the number that identifies the budget of the frame's
				 * may_gotos */
	uint32_t passed;	/* iterations of the frame's may_gotos on the path so far */
	uint32_t series;	/* the number that identifies the budget for callbacks from the
				 * frame's helper call. A new budget begins when the path reaches
				 * the call, but not when the callback returns to the call */
	uint32_t iterations;		/* number of calls of the callback that have consumed a part
					 * of the budget `series` so far */
	uint32_t most_iterations;	/* while the callback runs: the limit on its calls;
					 * otherwise 0 */
	bool in_callback, in_async;
	uint8_t callback;	/* number of the innermost callback's frame, which is this frame or
				 * one of its callers; 0: no callback runs */
	uint32_t most_ret;	/* for a callback: the return value must be in 0 ... most_ret */
	uint32_t nr_refs, room_refs, nr_slots, room_slots;
	struct ref *refs;
	struct slot *slots;	/* slots[0] is fp - 8; NULL at rest */
	uint32_t users;		/* at rest: number of states that share the frame */
	struct values_piece *pieces[PIECES];	/* the values of 11 registers, then of slots */
};
#define MAIN (-1)

/* A record of an instruction of the path, for a backward walk (precise.c). The walk needs a record
 * in two cases: the path reached the instruction from another instruction than the previous one (by
 * a jump, for example), or the instruction's encoding doesn't show all of its effects. */
struct step {
	uint32_t insn, from;
	bool stack;		/* the instruction filled a register from a stack slot, or stored to
				 * a stack slot through a register other than r10 */
	bool dst_stack, src_stack;	/* in a comparison: this operand is a pointer to the
					 * stack */
	uint8_t frame, slot;	/* if stack is set: the slot and its frame */
	uint8_t nr_linked;	/* number of linked scalars whose bounds this instruction changed */
	/* the linked scalars: frame << 8 | register, or frame << 8 | 0x80 | slot */
	uint16_t linked[MAX_LINKED];
};

/* The parts of a frame at rest that states don't share: each state has its own marks. In the masks,
 * bit i is for register i or slot i. */
struct marks {
	uint64_t read_slots, written_slots;	/* enum liveness */
	uint64_t precise_slots, scalar_slots;	/* scalar: the register is a number, or a number is
						 * spilled into the slot */
	uint64_t linked_slots;			/* slots whose parent is the slot with the same
						 * number in the parent state */
	uint16_t read, written, precise, scalar;
	uint16_t parent[11];	/* each register's place in the parent state (enum place) */
	uint8_t nr_slots;
};

struct state {
	struct frame *frames[PB_BPF_MAX_FRAMES];
	struct marks *marks;	/* for a state at rest: one element for each frame */
	/* the members from here to `outer_head` are facts: pbv_state_copy_facts() copies them with
	 * the state */
	struct state *parent;
	uint32_t lock;		/* id of the value whose spin lock is held; 0: none */
	uint32_t branches;	/* number of paths from this state that haven't ended */
	uint32_t insn;		/* for an explored state: the instruction at which the state was
				 * kept */
	uint32_t first;		/* the first instruction of the path from the parent state */
	int32_t last;		/* the last instruction of the path from the parent state;
				 * negative: none */
	uint32_t iterations;		/* number of iterations of all loops with a budget, on the
					 * whole path */
	uint32_t number;	/* for an explored state: its number; older states have smaller
				 * numbers */
	uint32_t budgets;	/* for an explored state: env->budgets at the time when it was
				 * kept */
	uint32_t until;		/* if `whole` is set: the number of this state or of an older one.
				 * When the needs of the state with this number are known, this
				 * state's needs are known, too. 0: they never become known
				 * (pending.c) */
	uint8_t cur;		/* index of the frame that runs */
	bool speculative : 1;	/* only a mispredicted branch leads to this state */
	bool head : 1;		/* for an explored state: an iteration of a loop with a budget
				 * begins at this state */
	bool whole : 1;		/* for an explored state: all its parts are compared, also those
				 * that aren't marked as needed */
	bool awaited : 1;	/* for an explored state: other states wait until its needs are
				 * known (pending.c) */
	bool all_precise : 1;	/* for an explored state: all its scalars, and all scalars of its
				 * ancestors, are marked as precise */
	uint16_t path_len;	/* number of instructions since `first`; saturates */
	struct state *outer_head;	/* for an explored state: the nearest ancestor that has
					 * `head`; valid while the state has branches */
	/* the end of facts */
	struct step *steps;	/* steps of the path since `first`, in order */
	uint32_t nr_steps, room_steps;
};

struct waiting {
	struct state st;	/* at rest, except in the newest waiting branch */
	uint32_t insn;		/* the instruction at which the branch continues */
	int32_t from;		/* the instruction that pushed the branch */
	uint64_t log_at;	/* when the branch begins, the log is cut back to this position,
				 * except at level 2 */
	struct waiting *next;
};

struct explored {
	struct state st;	/* must be first; at rest */
	struct explored *next;
	uint16_t hits, misses;	/* counts of comparisons that pruned a path, or did not
				 * (prune.c); they saturate */
	bool unlisted;		/* this state is no longer compared with other states, but is still
				 * part of the tree */
};

/* The verifier's notes on an instruction. */
struct aux {
	struct pb_bpf_fact fact;
	/* jump_point: a path may reach the instruction from another instruction than the previous
	 * one. calls_back: the instruction calls a helper that runs a callback before it returns */
	bool prune_point : 1, jump_point : 1, calls_back : 1;
	bool head : 1;			/* an iteration of a loop with a budget begins at this
					 * instruction */
	bool saves : 1;			/* saves or restores a register around a fast call */
	/* ptr_known: a path has set ptr_type and ptr_flags. loop_known: a path has set
	 * fact.loop_fits. map_known: a path has set func_map */
	bool ptr_known : 1, loop_known : 1, map_known : 1;
	uint8_t ptr_type, ptr_flags;	/* type and flags of the pointer through which the
					 * instruction accesses memory */
	uint8_t alu_state;		/* enum alu_state */
	const struct pb_bpf_map *func_map;
};
_Static_assert(sizeof(struct aux) == 32, "there may be a million of these");

struct subprog {
	uint32_t start, stack;
	bool has_tail_call, has_ld_abs, is_async, is_callback;
	bool called, verified;		/* for a global function. called: a path calls the function;
					 * verified: the function has been verified */
	bool moves_packet;		/* the subprogram, or a function that it calls or passes to
					 * a helper, invalidates packet pointers */
	bool fast, saves_stay;		/* fast: the subprogram has fast calls (fastcall.c);
					 * saves_stay: the save slots count as stack, because other
					 * instructions use them or one of the calls isn't fast */
	int32_t saved_below;		/* all slots below fp + saved_below are save slots of fast
					 * calls */
	bool depth_known;		/* depth and frames are known */
	uint32_t depth, frames;		/* bytes and frames of the deepest call chain that begins
					 * with this subprogram */
	uint32_t tail_depth;		/* bytes of the deepest call chain from this subprogram to a
					 * callee with a tail call. The frame of this callee isn't
					 * counted. 0: there is no such chain */
};

/* A hash table of the values of registers and slots in states at rest. The table contains each
 * value once. */
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
	struct subprog subs[MAX_SUBPROGS + 2];	/* subs[nr_subs].start is after the last
						 * instruction */
	uint32_t nr_subs;
	/* the callbacks that each subprogram passes to helpers: a bit for each subprogram. passes:
	 * any bit is set */
	uint64_t passed[MAX_SUBPROGS][MAX_SUBPROGS / 64];
	bool passes;
	uint32_t deepest, nested;	/* as in struct pb_bpf_facts */
	const struct pb_bpf_func *funcs[MAX_SUBPROGS + 2];
	struct pb_bpf_map *inner;	/* for each of v->maps: a description of its inner maps */
	/* the caller's privileges. capable: CAP_BPF. The others need CAP_PERFMON. ptr_leaks: the
	 * program may reveal addresses; uninit_stack: it may read stack that it hasn't written;
	 * trust_v1, trust_v4: it gets no protection against Spectre v1 or v4 */
	bool capable, ptr_leaks, uninit_stack, trust_v1, trust_v4;
	bool strict, state_freq;	/* strict: all accesses must be aligned; state_freq:
					 * keep a state at each prune point */
	/* the current path */
	struct state *cur;
	uint32_t insn;
	int32_t prev_insn;
	bool step_here;			/* the last of cur's steps belongs to the current
					 * instruction */
	/* waiting branches and kept states */
	struct waiting *waiting;
	uint32_t nr_waiting;
	struct explored **explored;	/* lists of kept states, hashed by instruction and call
					 * site */
	uint32_t nr_lists;
	struct values values;
	uint32_t ctx_needed;
	bool whole, exact;		/* for the current comparison. whole: compare all parts of a
					 * state, also those that aren't needed; exact: only equal
					 * states match */
	bool returned;			/* the previous instruction returned from a callback */
	uint32_t budgets;		/* the number of the newest budget */
	struct jump *jumps;		/* list of jumps to states whose needs aren't known yet
					 * (pending.c) */
	uint32_t nr_jumps;
	struct state **pending;		/* states that wait for the targets of `jumps` */
	uint32_t nr_pending, room_pending;
	uint32_t marks_made;		/* grows when marks of precise values or of reads are added
					 * to kept states */
	int error;			/* an error from a function that can't return it, for
					 * example -ENOMEM */
	bool alu_limits;		/* pointer arithmetic is masked (speculate.c). The mask
					 * depends on the operands' values, so a scalar covers only
					 * an equal scalar */
	uint32_t ids;			/* the newest id of a register or reference */
	/* For each of v->maps: an id of the map's only value. It is 0, unless the value has a spin
	 * lock and an LD_IMM64 loads the value's address. These ids are 1 ... value_ids_end. In all
	 * states they mean the same values */
	uint32_t *value_ids, value_ids_end;
	/* counts of instructions and jumps on all paths. prev_: when the newest state was kept */
	uint32_t processed, jumps_processed, prev_processed, prev_jumps;
	struct pool pool;
	struct pool_mark set_up;	/* memory that the pool takes after this mark is mostly for
					 * states; report_facts() doesn't need this memory */
	size_t short_at;		/* pool.used after the last attempt to make room, if the
					 * attempt freed too little; otherwise 0 */
	uint32_t keep_again;		/* no state is kept until `processed` reaches this number */
	/* the log */
	uint32_t touched_regs;		/* a bit for each register that must be logged, because an
					 * instruction has accessed it */
	uint64_t touched_slots;		/* the same for slots */
	uint32_t insn_len;		/* length of the logged instruction's text */
	uint64_t insn_log_at;		/* position in the log after this text */
	const struct pb_bpf_line *last_line;	/* the source line that was logged last */
	/* for the current comparison: pairs of corresponding ids of the two states (alike.c) */
	struct {
		uint32_t nr;
		struct ref_pair { uint32_t old, cur; } pair[(11 + MAX_SLOTS) * PB_BPF_MAX_FRAMES];
	} idmap;
};
#endif
