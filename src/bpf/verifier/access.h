/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks loads and stores: whether the pointer's type allows the access. */
#ifndef PB_BPF_VERIFIER_ACCESS_H
#define PB_BPF_VERIFIER_ACCESS_H
#include "bpf/verifier/env.h"

struct pb_bpf_helper;

/* Checks an access to `size` bytes at register n + off. `value` is the register into which the
 * value is loaded, or from which it is stored. -1: there is no such register. */
int pbv_check_mem(struct env *env, unsigned n, int off, int size, bool write, int value,
		  bool strict);
/* Checks that the address r + off is a multiple of `size`. If `strict` isn't set, checks the
 * address only if it is on the stack, or if the program is verified with strict alignment. */
int pbv_check_alignment(struct env *env, const struct reg *r, int off, int size, bool strict);
int pbv_check_atomic(struct env *env, const struct bpf_insn *insn);
int pbv_check_region(struct env *env, unsigned n, int off, int size, uint32_t mem_size,
		     bool zero_ok);
int pbv_check_map_access(struct env *env, unsigned n, int off, int size, bool zero_ok, bool helper);
int pbv_check_map_rights(struct env *env, unsigned n, int off, int size, bool write);
int pbv_check_packet(struct env *env, unsigned n, int off, int size, bool zero_ok);
int pbv_check_buffer(struct env *env, const struct reg *r, unsigned n, int off, int size,
		 const char *what);
int pbv_check_unmodified(struct env *env, const struct reg *r, unsigned n, bool fixed_ok);
bool pbv_may_access_packet(struct env *env, const struct pb_bpf_helper *helper, bool write);
bool pbv_leaks(const struct env *env, unsigned n);
bool pbv_map_is_constant(const struct pb_bpf_map *m);
#endif
