/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stack: bounds, reads and writes. In all functions, register n holds a pointer to the stack.
 * `off` is the access's offset from the frame pointer, without the pointer's variable part. `value`
 * is a register, or -1, as in pbv_check_mem() (access.h). */
#ifndef PB_BPF_VERIFIER_STACK_SLOTS_H
#define PB_BPF_VERIFIER_STACK_SLOTS_H
#include "bpf/verifier/env.h"

/* Checks that the access is inside the stack. Lets the frame describe all bytes of the access. */
int pbv_stack_bounds(struct env *env, unsigned n, int off, int size, bool helper, bool write);
int pbv_stack_read(struct env *env, unsigned n, int off, int size, int value);
int pbv_stack_write(struct env *env, unsigned n, int off, int size, int value);
struct helper_call;
/* Checks the bytes that a helper accesses, or that an instruction reads at a variable offset. */
int pbv_stack_initialized(struct env *env, unsigned n, int off, int size, bool zero_ok, bool helper,
		      struct helper_call *call);
#endif
