/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Liveness: records which registers and slots a path reads and writes. */
#ifndef PB_BPF_VERIFIER_LIVE_H
#define PB_BPF_VERIFIER_LIVE_H
#include "bpf/verifier/env.h"

/* WRITE makes the register's value unknown. WRITE_KEEP leaves the value: the caller must set it. */
enum use { READ, WRITE, WRITE_KEEP };

int pbv_reg_use(struct env *env, unsigned n, enum use use);
/* Called when the path reads register n (pbv_live_read) or slot s (pbv_live_read_slot) of frame f
 * of the current state. Marks the register or slot as read in the state's ancestors. */
void pbv_live_read(struct env *env, const struct frame *f, unsigned n);
void pbv_live_read_slot(struct env *env, const struct frame *f, const struct slot *s);
/* Like pbv_live_read(), but the read was seen on a path from a kept state that covers the current
 * state. `n` is the number of a register, or 11 + the number of a slot. */
void pbv_live_take_over(struct env *env, const struct frame *f, uint32_t n);
/* Copies register m of one frame to register n of another frame. If the copy is read, the read is
 * marked in the parent state at the place of register m (enum place). */
void pbv_reg_hand_over(struct frame *to, unsigned n, const struct frame *from, unsigned m);
/* Invalidates r0 ... r5, as a call does. */
void pbv_regs_clobber(struct env *env, struct reg *regs);
/* Called for a pointer to an object that is gone. With CAP_PERFMON the register becomes an unknown
 * scalar. Otherwise the program can't read the register any more. */
void pbv_reg_lost(struct env *env, struct reg *r);
#endif
