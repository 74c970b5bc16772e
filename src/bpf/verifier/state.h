/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes, copies and frees unpacked states and frames. Also handles the current state's references,
 * its recorded steps, and the branches that wait.
 *
 * Circle: state.c, prune.c and the files that check instructions call each other
 * (scripts/check-layers requires a reason for each such circle). If memory is short, a function of
 * state.c that makes a state calls prune.c to drop kept states. prune.c compares, logs and marks
 * states, and calls state.c to record a step or to clear a state. The files that check instructions
 * make states, and precise.c calls a function of call.c to recognise helpers with callbacks.
 */
#ifndef PB_BPF_VERIFIER_STATE_H
#define PB_BPF_VERIFIER_STATE_H
#include "bpf/verifier/env.h"

static inline struct frame *cur_frame(const struct env *env)
{
	return env->cur->frames[env->cur->cur];
}

static inline struct reg *cur_regs(const struct env *env)
{
	return cur_frame(env)->regs;
}

/*
 * Called before a scalar is copied. Gives the scalar an id, so that bounds that a branch finds for
 * one copy hold for all copies. A constant needs no id, since its value is known. If the scalar
 * differs from its linked scalars by a constant (`moved`), its link to them ends, and it gets a new
 * id.
 */
static inline void reg_name(struct env *env, struct reg *src)
{
	if (src->moved)
		reg_unlink(src);
	if (!src->id && !tnum_is_const(src->var))
		src->id = ++env->ids;
}

/* Returns the frame that a pointer to the stack points into. */
static inline struct frame *frame_of(const struct env *env, const struct reg *r)
{
	return env->cur->frames[r->frame];
}

/* The functions below this line take unpacked states, unless their comments say otherwise. */
int pbv_state_copy(struct env *env, struct state *dst, const struct state *src);
/* Frees the state's frames and steps. */
void pbv_state_clear(struct env *env, struct state *st);
/* Makes the frame of a call. Only r10 has a value. */
struct frame *pbv_frame_new(struct env *env, int32_t callsite, uint32_t number, uint32_t subprog);
/* Makes a frame in which all bytes but the address of its registers are zero. */
struct frame *pbv_frame_blank(struct env *env);
void pbv_frame_free(struct env *env, struct frame *f);
/* Makes room for `slots` slots. The contents of the frame's slots may be lost. */
int pbv_frame_room(struct env *env, struct frame *f, uint32_t slots);
/* pbv_state_copy_facts() and pbv_state_copy_steps() take states at rest, too. */
void pbv_state_copy_facts(struct state *dst, const struct state *src);
int pbv_state_copy_steps(struct env *env, struct state *dst, const struct state *src);
/* Lets the frame describe at least `slots` slots of stack. */
int pbv_frame_grow(struct env *env, struct frame *f, uint32_t slots);
int pbv_frame_copy_refs(struct env *env, struct frame *dst, const struct frame *src);
/* Returns the new reference's id, or a negative error. */
int pbv_ref_acquire(struct env *env);
/* Removes the reference from the frame. Returns 0, or -EINVAL: the frame doesn't have the
 * reference, or the frame belongs to a callback that must not release it. */
int pbv_ref_release_id(struct frame *f, uint32_t id);
/* Releases the reference, and invalidates all copies of the pointer. */
int pbv_ref_release(struct env *env, uint32_t ref);
/* Called at an exit. Logs the references that should have been released before it. Returns 0, or
 * -EINVAL if there are any. */
int pbv_ref_check_leak(struct env *env);
/* Invalidates all pointers to the packet and to its end. */
void pbv_forget_packets(struct env *env);
/* Each of the next three functions records a step for the current instruction. pbv_step_jump() does
 * so only at a jump point. pbv_step_stack() also records a slot of the stack. They return 0 or
 * -ENOMEM. */
int pbv_step_push(struct env *env);
int pbv_step_jump(struct env *env);
int pbv_step_stack(struct env *env, uint32_t frame, uint32_t slot);
/* Pushes a copy of the current state, to continue at insn. Returns NULL if there is no memory, or
 * if too many branches wait. The function logs the second error, but not the first. */
struct state *pbv_branch_push(struct env *env, uint32_t insn, uint32_t from, bool speculative);
/* Makes the newest waiting branch the current path. Returns 0, -ENOENT if no branch waits, or
 * -ENOMEM. */
int pbv_branch_pop(struct env *env, bool shorten_log);
/* Called when the current path has ended. Goes back along the path's kept states, and finishes each
 * state that has no other path left to follow. Stops at the first state that has one. */
void pbv_branches_end(struct env *env);

/* Loops over all registers and spilled registers of a frame, or of a state. */
#define for_each_reg_of(f, r) \
	for (uint32_t r##_n = 0; r##_n < 11 + f->nr_slots; r##_n++) \
		for (struct reg *r = r##_n < 11 ? &f->regs[r##_n] : \
		     slot_spilled(&f->slots[r##_n - 11]) ? &f->slots[r##_n - 11].reg : NULL; \
		     r; r = NULL)
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

/* Whether the slot holds a dynptr or an iterator. If it does, `reg` describes this object. */
static inline bool slot_has_object(const struct slot *s)
{
	return s->type[SLOT - 1] >= S_DYNPTR;
}

static inline void slot_scrub(uint8_t *type)
{
	if (*type != S_INVALID)
		*type = S_MISC;
}
#endif
