/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Liveness. If a path reads a register, the register is marked as read in the parent state and in
 * earlier ancestors. The marking stops where the path wrote the register, since older values don't
 * matter. It also stops at a state in which the register was marked before, since the ancestors of
 * that state were marked at the same time. A write marks the register only in the current state.
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/state.h"

/* Marks register n of the frame as read, in the ancestors of the current state. If is_slot is set,
 * marks slot n instead. `steps` is the number of states that the walk has passed so far. */
static void read_up(struct env *env, const struct reg *r, uint32_t frame, uint32_t n, bool is_slot,
		    uint32_t steps)
{
	bool written = r->live & LIVE_WRITTEN;
	uint32_t parent = r->parent;

	for (struct state *st = env->cur->parent; st && parent != PLACE_NONE &&
	     !written; st = st->parent, steps++) {
		struct marks *m;

		if (parent >= PLACE_OF) {
			frame = (parent - PLACE_OF) / 16;
			n = (parent - PLACE_OF) % 16;
		}
		if (frame > st->cur)
			break;
		m = &st->marks[frame];
		if (is_slot ? m->read_slots >> n & 1 : m->read >> n & 1)
			break;
		env->marks_made++;
		if (is_slot) {
			m->read_slots |= 1ull << n;
			written = m->written_slots >> n & 1;
			parent = m->linked_slots >> n & 1 ? PLACE_SAME : PLACE_NONE;
		} else {
			m->read |= (uint16_t)(1u << n);
			written = m->written >> n & 1;
			parent = m->parent[n];
		}
	}
	if (env->v->stats.mark_read < steps)
		env->v->stats.mark_read = steps;
}

void pbv_live_read(struct env *env, const struct frame *f, unsigned n)
{
	read_up(env, &f->regs[n], f->number, n, false, 0);
}

void pbv_live_read_slot(struct env *env, const struct frame *f, const struct slot *s)
{
	read_up(env, &s->reg, f->number, (uint32_t)(s - f->slots), true, 0);
}

void pbv_live_take_over(struct env *env, const struct frame *f, uint32_t n)
{
	if (n < 11)
		read_up(env, &f->regs[n], f->number, n, false, 1);
	else
		read_up(env, &f->slots[n - 11].reg, f->number, n - 11, true, 1);
}

void pbv_reg_hand_over(struct frame *to, unsigned n, const struct frame *from, unsigned m)
{
	to->regs[n] = from->regs[m];
	if (to->regs[n].parent == PLACE_SAME)
		to->regs[n].parent = PLACE(from->number, m);
}

int pbv_reg_use(struct env *env, unsigned n, enum use use)
{
	struct reg *r = &cur_regs(env)[n];

	if (n > FP)
		return refuse(env, EINVAL, "R%d is invalid\n", n);
	env->touched_regs |= 1u << n;
	if (use == READ) {
		if (r->type == NOT_INIT)
			return refuse(env, EACCES, "R%d !read_ok\n", n);
		if (n != FP)
			pbv_live_read(env, cur_frame(env), n);
		return 0;
	}
	if (n == FP)
		return refuse(env, EACCES, "frame pointer is read only\n");
	r->live |= LIVE_WRITTEN;
	if (use == WRITE)
		pbv_reg_make_scalar(r, !env->capable);
	return 0;
}

void pbv_regs_clobber(struct env *env, struct reg *regs)
{
	for (unsigned i = 0; i < 6; i++) {
		pbv_reg_make_none(&regs[i], !env->capable);
		regs[i].live |= LIVE_WRITTEN;
		env->touched_regs |= 1u << i;
	}
}
