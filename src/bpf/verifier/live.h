/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of what is read, up the tree of states. */
#ifndef PB_BPF_VERIFIER_LIVE_H
#define PB_BPF_VERIFIER_LIVE_H
#include "bpf/verifier/env.h"

enum use { READ, WRITE, WRITE_KEEP };	/* KEEP: the caller says what it becomes */

int pbv_reg_use(struct env *env, unsigned n, enum use use);
/* What came before has to have register n of the present state's frame f; a slot of it. */
void pbv_live_read(struct env *env, const struct frame *f, unsigned n);
void pbv_live_read_slot(struct env *env, const struct frame *f, const struct slot *s);
/* The same because a kept state that the present one is like has to have it; slots from 11 on. */
void pbv_live_take_over(struct env *env, const struct frame *f, uint32_t n);
/* A register becomes another frame's, as it is. */
void pbv_reg_hand_over(struct frame *to, unsigned n, const struct frame *from, unsigned m);
/* r0 ... r5 after a call */
void pbv_regs_clobber(struct env *env, struct reg *regs);
/* What it pointed to is gone; its address may be known still. */
void pbv_reg_lost(struct env *env, struct reg *r);
#endif
