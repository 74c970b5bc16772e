/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Registers that are saved around fast calls. */
#ifndef PB_BPF_VERIFIER_FASTCALL_H
#define PB_BPF_VERIFIER_FASTCALL_H
#include "bpf/verifier/env.h"

int pbv_find_fast_calls(struct env *env);
/* The frame's stack is accessed from fp + off on. */
void pbv_touch_saved(struct env *env, const struct frame *f, int64_t off);
/* Bytes of a frame, as the kernel counts them. */
uint32_t pbv_counted_stack(const struct subprog *s);
#endif
