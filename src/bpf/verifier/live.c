/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Liveness. Who reads a register marks it as read in the state that the path comes
 * from, and further up until a state in which it was written behind its beginning:
 * what came earlier can't be seen here. A write marks the present state only.
 */
#include "bpf/verifier/env.h"

void live_read(struct env *env, const struct reg *r, struct reg *parent)
{
	/* a state that was found to be like another one hands over its reads, written or not */
	bool screens = parent == r->parent;
	uint32_t steps = 0;

	while (parent && !(screens && r->live & LIVE_WRITTEN) && !(parent->live & LIVE_READ)) {
		parent->live |= LIVE_READ;
		r = parent;
		parent = r->parent;
		screens = true;
		steps++;
	}
	if (env->v->stats.mark_read < steps)
		env->v->stats.mark_read = steps;
}

int reg_use(struct env *env, unsigned n, enum use use)
{
	struct reg *r = &cur_regs(env)[n];

	if (n > FP)
		return refuse(env, EINVAL, "R%d is invalid\n", n);
	env->touched_regs |= 1u << n;
	if (use == READ) {
		if (r->type == NOT_INIT)
			return refuse(env, EACCES, "R%d !read_ok\n", n);
		if (n != FP)
			live_read(env, r, r->parent);
		return 0;
	}
	if (n == FP)
		return refuse(env, EACCES, "frame pointer is read only\n");
	r->live |= LIVE_WRITTEN;
	if (use == WRITE)
		reg_make_scalar(r, !env->capable);
	return 0;
}

void regs_clobber(struct env *env, struct reg *regs)
{
	for (unsigned i = 0; i < 6; i++) {
		reg_make_none(&regs[i], !env->capable);
		regs[i].live |= LIVE_WRITTEN;
		env->touched_regs |= 1u << i;
	}
}
