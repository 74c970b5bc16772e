/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fast calls (fastcall.c) are calls of helpers that newer kernels inline. Finds the stores and
 * loads by which compilers save and restore registers around such calls. */
#ifndef PB_BPF_VERIFIER_FASTCALL_H
#define PB_BPF_VERIFIER_FASTCALL_H
#include "bpf/verifier/env.h"

int pbv_find_fast_calls(struct env *env);
/* Must be called for each access to a frame's stack, whose lowest byte is at fp + off. If such a
 * store or load isn't the one that accesses a slot for saved registers, the slot counts as part of
 * the frame. */
void pbv_touch_saved(struct env *env, const struct frame *f, int64_t off);
/* Returns the size of a frame in bytes, counted as in the kernel. */
uint32_t pbv_counted_stack(const struct subprog *s);
#endif
