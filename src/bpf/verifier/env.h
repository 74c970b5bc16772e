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
#define MOST_LISTS	65536	/* of kept states */
#define SLOT		8	/* bytes of stack that are described together */
#define MAX_SLOTS	(PB_BPF_STACK / SLOT)
#define FP		10
#define MOST_STEPS	40	/* of a path without a state, at a prune point */
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
	uint32_t series;	/* of the callback of a helper that it calls: a new one when it comes to the
				 * call another way */
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
	uint32_t until;		/* of a whole one: what it needs is known when that state is done; 0: never */
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
	bool aside;		/* not looked at any more, but part of the tree; only marks are left */
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
	bool fast, saves_stay;		/* fast calls are in it (fastcall.c); registers are saved for others, too */
	int32_t saved_below;		/* slots below fp + this are only of registers that such calls save */
	bool depth_known;		/* of the deepest chain that begins with it: */
	uint32_t depth, frames;		/* bytes, frames */
	uint32_t tail_depth;		/* most bytes before a subprogram that calls tails; 0: none does */
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
	bool step_here;			/* the last of cur's steps is of the instruction under way */
	/* the others */
	struct waiting *waiting;
	uint32_t nr_waiting;
	struct explored **explored;	/* lists, by instruction and call */
	uint32_t nr_lists;
	struct values values;
	uint32_t ctx_needed;
	bool whole, exact;		/* states are compared in all; and are the same only if they are equal */
	bool returned;			/* a callback, just now */
	uint32_t budgets;		/* that there were */
	struct jump *jumps;		/* back to states whose needs aren't known yet (pending.c) */
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

/* ---- log.c ------------------------------------------------------------------------ */

void log_text(struct env *env, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log(env, ...) log_text(env, __VA_ARGS__)
/* "-EACCES, and why": */
#define refuse(env, err, ...) (log_text(env, __VA_ARGS__), -(err))

static inline bool log_none(const struct env *env)
{
	return !env->v->log || !env->v->log->buf;
}

static inline bool log_on(const struct env *env)
{
	return env->v->log_level & 3 && !log_none(env);
}

struct type_text { char s[64]; };
struct type_text log_type_name(unsigned type, unsigned flags);
#define type_name(r) (log_type_name((r)->type, (r)->flags).s)
struct tnum_text { char s[48]; };
struct tnum_text log_tnum_text(struct tnum t);
#define tnum_text(t) (log_tnum_text(t).s)

void log_state(struct env *env, const struct frame *f, bool all);
void log_disasm(struct env *env, uint32_t insn);
void log_insn(struct env *env);
void log_insn_state(struct env *env);
void log_line(struct env *env, uint32_t insn, const char *prefix, ...);
/* R0 isn't in the range, where it is needed: "At program exit". */
void log_scalar(struct env *env, const struct reg *r, int min, int max, const char *where);
void log_stats(struct env *env);
const char *helper_name(int32_t id);

static inline void touch_all(struct env *env)
{
	env->touched_regs = ~0u;
	env->touched_slots = ~0ull;
}

static inline void touch_slot(struct env *env, int slot)
{
	env->touched_slots |= 1ull << slot;
}

/* ---- state.c ---------------------------------------------------------------------- */

static inline struct frame *cur_frame(const struct env *env)
{
	return env->cur->frames[env->cur->cur];
}

static inline struct reg *cur_regs(const struct env *env)
{
	return cur_frame(env)->regs;
}

/*
 * The scalar is about to be copied: from now on what is learned of one is known of the
 * other. One that is known has nothing to learn.
 */
static inline void reg_name(struct env *env, struct reg *src)
{
	if (src->moved)
		reg_unlink(src);
	if (!src->id && !tnum_is_const(src->var))
		src->id = ++env->ids;
}

/* The frame that a pointer to the stack points into. */
static inline struct frame *frame_of(const struct env *env, const struct reg *r)
{
	return env->cur->frames[r->frame];
}

/* These are for states that are taken apart. */
int state_copy(struct env *env, struct state *dst, const struct state *src);
void state_clear(struct env *env, struct state *st);
struct frame *frame_new(struct env *env, int32_t callsite, uint32_t number, uint32_t subprog);
struct frame *frame_blank(struct env *env);
void frame_free(struct env *env, struct frame *f);
/* Room for as many slots; what was in them is lost. */
int frame_room(struct env *env, struct frame *f, uint32_t slots);
/* And these for all. */
void state_copy_facts(struct state *dst, const struct state *src);
int state_copy_steps(struct env *env, struct state *dst, const struct state *src);
/* At least as many slots of stack are described. */
int frame_grow(struct env *env, struct frame *f, uint32_t slots);
int frame_copy_refs(struct env *env, struct frame *dst, const struct frame *src);
/* A new reference's id, or negative. */
int ref_acquire(struct env *env);
int ref_release_id(struct frame *f, uint32_t id);
/* It and all copies of it are gone. */
int ref_release(struct env *env, uint32_t ref);
int ref_check_leak(struct env *env);
void forget_packets(struct env *env);
/* The instruction under way has an entry; 0 or -ENOMEM. */
int step_push(struct env *env);
int step_jump(struct env *env);
int step_stack(struct env *env, uint32_t frame, uint32_t slot);
/* The path also goes on at insn; NULL: not, and the log says why. */
struct state *branch_push(struct env *env, uint32_t insn, uint32_t from, bool speculative);
/* The next waiting path becomes the present one; -ENOENT: none. */
int branch_pop(struct env *env, bool shorten_log);
void branches_end(struct env *env);

/* Every register and spilled register of a frame; of a state. */
#define for_each_reg_of(f, r) \
	for (uint32_t r##_n = 0; r##_n < 11 + f->nr_slots; r##_n++) \
		for (struct reg *r = r##_n < 11 ? &f->regs[r##_n] : \
		     slot_spilled(&f->slots[r##_n - 11]) ? &f->slots[r##_n - 11].reg : NULL; r; r = NULL)
#define for_each_reg(st, f, r) \
	for (uint32_t f##_n = 0; f##_n <= (st)->cur; f##_n++) \
		for (struct frame *f = (st)->frames[f##_n]; f; f = NULL) \
			for_each_reg_of(f, r)

static inline bool slot_spilled(const struct slot *s)
{
	return s->type[SLOT - 1] == S_SPILL;
}

static inline bool slot_iterates(const struct slot *s)
{
	return s->type[SLOT - 1] == S_ITER;
}

/* A dynptr, or an iterator: what it is stands in the register. */
static inline bool slot_has_object(const struct slot *s)
{
	return s->type[SLOT - 1] >= S_DYNPTR;
}

static inline void slot_scrub(uint8_t *type)
{
	if (*type != S_INVALID)
		*type = S_MISC;
}

/* ---- kept.c: states at rest ---------------------------------------------------------- */

/* rest becomes what st is, at rest; kept: it won't be woken up to go on. 0 or -ENOMEM. */
int state_rest(struct env *env, struct state *rest, const struct state *st, bool kept);
/* st, which may be any that is taken apart, becomes what rest is. */
int state_wake(struct env *env, struct state *st, const struct state *rest);
/* All of it is given back. */
void state_forget(struct env *env, struct state *rest);
/* It won't be compared any more. */
void state_only_marks(struct env *env, struct state *rest);
/* No path from it is under way any more: what isn't needed for comparing is given back. */
void state_trim(struct env *env, struct state *rest);
/* What a register, or slot n - 11, is: without marks. */
const struct slot *rest_value(const struct frame *f, uint32_t n);

static inline const struct slot *rest_slot(const struct frame *f, uint32_t n)
{
	return rest_value(f, 11 + n);
}

static inline const struct reg *rest_reg(const struct frame *f, uint32_t n)
{
	return &rest_value(f, n)->reg;
}

/* ---- live.c: marks up the tree ---------------------------------------------------- */

enum use { READ, WRITE, WRITE_KEEP };	/* KEEP: the caller says what it becomes */

int reg_use(struct env *env, unsigned n, enum use use);
/* What came before has to have register n of the present state's frame f; a slot of it. */
void live_read(struct env *env, const struct frame *f, unsigned n);
void live_read_slot(struct env *env, const struct frame *f, const struct slot *s);
/* The same because a kept state that the present one is like has to have it; slots from 11 on. */
void live_take_over(struct env *env, const struct frame *f, uint32_t n);
/* A register becomes another frame's, as it is. */
void reg_hand_over(struct frame *to, unsigned n, const struct frame *from, unsigned m);
/* r0 ... r5 after a call */
void regs_clobber(struct env *env, struct reg *regs);
/* What it pointed to is gone; its address may be known still. */
void reg_lost(struct env *env, struct reg *r);

/* ---- precise.c -------------------------------------------------------------------- */

/* Registers and slots whose values matter, in the frames of the call chain up to the one
 * that runs. */
struct wanted {
	uint32_t frame;
	uint32_t regs[PB_BPF_MAX_FRAMES];
	uint64_t slots[PB_BPF_MAX_FRAMES];
};

/* The value of a register has decided something; those of all that are wanted have (they
 * are scalars in the present state). */
int precise_reg(struct env *env, unsigned n);
int precise_wanted(struct env *env, struct wanted *w);
void precise_forget(struct state *st);
/* Of all states before it. false: it had been before. */
bool precise_all(struct state *st);

/* ---- alike.c: the present state and a kept one --------------------------------------- */

/* What is safe after `old` is safe after `cur`. whole: all of it counts, needed or not. */
bool state_safe(struct env *env, const struct state *old, const struct state *cur, bool whole);
/* They are equal, but for the names of what is the same. */
bool state_same(struct env *env, const struct state *old, const struct state *cur);
/* Registers of the frame that runs are equal: a quick look before state_same. */
bool maybe_looping(const struct state *old, const struct state *cur);

/* ---- prune.c ---------------------------------------------------------------------- */

/* 1: what comes from here is known to be safe. */
int prune_visit(struct env *env);
/* An iteration begins in st: what differs from the iteration before, and decides nothing, is anything,
 * so that iterations become alike. That one's beginning is sought from `past` on towards the root. */
void prune_widen(struct env *env, const struct state *past, struct state *st);
/* Memory is short: kept states are given up. false: there are none to give up. */
bool prune_make_room(struct env *env);
/* No path from a kept state is under way any more. */
void prune_done(struct env *env, struct state *st);
/* The present path needs what the kept state needs. */
int prune_take_over(struct env *env, const struct state *old);
void prune_free(struct env *env);

/* ---- alu.c, pointer.c, speculate.c, scalar.c --------------------------------------- */

int check_alu(struct env *env, const struct bpf_insn *insn);
int pointer_alu(struct env *env, const struct bpf_insn *insn, const struct reg *ptr, const struct reg *off);
int scalar_alu(struct env *env, const struct bpf_insn *insn, struct reg *dst, const struct reg *src);
void scalar_negate(struct reg *d, int bits);
/* d += s, in 64 bits */
void scalar_add(struct reg *d, const struct reg *s);

enum alu_state { ALU_MASK_SRC = 1, ALU_MASK_DST = 2, ALU_NEGATIVE = 4, ALU_SCALARS = 8, ALU_IMMEDIATE = 16 };
struct mask_window {
	uint8_t state;
	uint32_t limit;
	bool left, off_in_dst;
};
/* What must be masked of `ptr += off`; before the operation, and once more with its result. */
int mask_pointer(struct env *env, const struct bpf_insn *insn, const struct reg *ptr, const struct reg *off,
		 struct reg *dst, struct mask_window *w, bool commit);
int mask_scalar(struct env *env, const struct bpf_insn *insn);
/* The path that a processor may guess. false: no room */
bool speculate(struct env *env, const struct bpf_insn *insn, uint32_t to);

/* ---- branch.c, compare.c ------------------------------------------------------------ */

int check_branch(struct env *env, const struct bpf_insn *insn);

#define COMPARE_UNKNOWN (-1)
/* The comparison with both sides changed: `a op b` is `b flip(op) a`. */
unsigned compare_flip(unsigned op);
/* Of all values that both scalars may have, does it hold? 1, 0, COMPARE_UNKNOWN. */
int compare_decide(const struct reg *a, const struct reg *b, unsigned op, int bits);
/* It holds (taken), or it doesn't. a may be b. */
void compare_learn(struct reg *a, struct reg *b, unsigned op, bool taken, int bits);
/*
 * If bounds and bits of a scalar contradict each other, its path can't be taken. Its
 * ranges are then reset to unbounded, so that later code never sees a contradiction.
 * With BPF_F_TEST_REG_INVARIANTS the contradiction is -EFAULT.
 */
int check_consistent(struct env *env, struct reg *r, const char *where);

/* ---- mem.c, stack.c ------------------------------------------------------------------ */

/* Bytes at register n + off are accessed; the value goes to, or comes from, register
 * `value` (-1: none, or something unknown). */
int check_mem(struct env *env, unsigned n, int off, int size, bool write, int value, bool strict);
int check_atomic(struct env *env, const struct bpf_insn *insn);
int check_region(struct env *env, unsigned n, int off, int size, uint32_t mem_size, bool zero_ok);
int check_map_access(struct env *env, unsigned n, int off, int size, bool zero_ok, bool helper);
int check_map_rights(struct env *env, unsigned n, int off, int size, bool write);
int check_packet(struct env *env, unsigned n, int off, int size, bool zero_ok);
int check_buffer(struct env *env, const struct reg *r, unsigned n, int off, int size,
		 const char *what);
int check_unmodified(struct env *env, const struct reg *r, unsigned n, bool fixed_ok);
bool may_access_packet(struct env *env, const struct pb_bpf_helper *helper, bool write);
bool leaks(const struct env *env, unsigned n);
bool map_is_constant(const struct pb_bpf_map *m);

int stack_bounds(struct env *env, unsigned n, int off, int size, bool helper, bool write);
int stack_read(struct env *env, unsigned n, int off, int size, int value);
int stack_write(struct env *env, unsigned n, int off, int size, int value);
struct helper_call;
/* A helper, or an instruction with a variable offset, reads these bytes. */
int stack_initialized(struct env *env, unsigned n, int off, int size, bool zero_ok, bool helper,
		      struct helper_call *call);

/* ---- call.c, arg.c --------------------------------------------------------------------- */

struct helper_call {
	const struct pb_bpf_helper *proto;
	int32_t id;
	const struct pb_bpf_map *map;
	uint32_t map_uid;
	bool raw;			/* the memory argument is only written */
	int raw_reg, raw_size;
	uint64_t most_size;
	uint32_t mem_size, slice_of, ref, subprog;
	unsigned release_reg, dynptr_reg;
	const char *btf;
	const struct pb_bpf_kptr *kptr;
};

int check_helper(struct env *env, const struct bpf_insn *insn);
int check_arg(struct env *env, unsigned i, struct helper_call *call);
int check_map_helper(struct env *env, const struct pb_bpf_map *map, int32_t id);
int helper_memory(struct env *env, unsigned n, int size, bool write, bool zero_ok, struct helper_call *call);
bool helper_calls_back(int32_t id);

/* ---- iter.c -------------------------------------------------------------------------------- */

int check_kfunc(struct env *env, const struct bpf_insn *insn);
/* May be called while a spin lock is held. */
bool kfunc_fits_lock(const struct bpf_insn *insn);
/* Gives the next element of an iterator. */
bool kfunc_iterates(const struct bpf_insn *insn);

/* ---- func.c -------------------------------------------------------------------------------- */

int check_subprog_call(struct env *env, const struct bpf_insn *insn);
int check_callback(struct env *env, const struct bpf_insn *insn, const struct helper_call *call);
int leave_frame(struct env *env);
int find_subprog(const struct env *env, uint32_t insn);

/* ---- pending.c ----------------------------------------------------------------------------- */

/* The present path ends in a state whose needs aren't known yet. */
int pending_jump(struct env *env, struct state *to);
/* All that is pending matters, for good: nothing is noted any more. */
void pending_give_up(struct env *env);
/* A state that is pending is done: all paths from it have ended. */
int pending_done(struct env *env, struct state *st);

/* ---- iterations.c ------------------------------------------------------------------------------ */

/* On the path from an explored state to the present one, with the same calls, an iteration was taken
 * of a loop that takes only so many. */
bool iteration_taken(const struct env *env, const struct state *old);
/* Going on in `old`, which is done, in place of the present one makes no loop that has no end. */
bool iterations_no_fewer(const struct env *env, const struct state *old);
int check_may_goto(struct env *env, const struct bpf_insn *insn);
bool has_may_goto(const struct env *env, uint32_t sub);

/* ---- fastcall.c --------------------------------------------------------------------------- */

int find_fast_calls(struct env *env);
/* The frame's stack is accessed from fp + off on. */
void touch_saved(struct env *env, const struct frame *f, int64_t off);
/* Bytes of a frame, as the kernel counts them. */
uint32_t counted_stack(const struct subprog *s);

/* ---- cfg.c, pseudo.c ---------------------------------------------------------------------- */

int find_subprogs(struct env *env);
int check_subprogs(struct env *env);
int check_funcs(struct env *env);
int check_cfg(struct env *env);
int check_stack_depth(struct env *env);
int check_constants(struct env *env);
int check_ld64(struct env *env, const struct bpf_insn *insn);
/* What the maps in a map of maps are like. */
const struct pb_bpf_map *inner_map(struct env *env, const struct pb_bpf_map *outer);

/* ---- check.c -------------------------------------------------------------------------------- */

int check_packet_load(struct env *env, const struct bpf_insn *insn);
int check_return(struct env *env);
int check_paths(struct env *env);
#endif
