/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes the helper call that the verifier is checking. */
#ifndef PB_BPF_VERIFIER_HELPER_CALL_H
#define PB_BPF_VERIFIER_HELPER_CALL_H
#include "bpf/verifier/env.h"

struct helper_call {
	const struct pb_bpf_helper *proto;
	int32_t id;
	const struct pb_bpf_map *map;
	uint32_t map_uid;
	bool raw;			/* the helper only writes to the memory argument */
	int raw_reg, raw_size;		/* if raw is set: the register of the memory argument, and
					 * the size of its memory in bytes */
	uint64_t most_size;		/* the largest possible value of the last size argument */
	/* mem_size: the size of the returned memory. slice_of: the dynptr of which the returned
	 * memory is a part. ref: the reference that an argument holds. subprog: the callback */
	uint32_t mem_size, slice_of, ref, subprog;
	/* release_reg: the register of the argument that the call releases. dynptr_reg: the
	 * register with the address of the dynptr that the call makes. 0: the call releases, or
	 * makes, nothing */
	unsigned release_reg, dynptr_reg;
	const char *btf;
	const struct pb_bpf_kptr *kptr;
};


int pbv_check_helper(struct env *env, const struct bpf_insn *insn);
/* Checks argument i, counted from 0. It is in register i + 1. */
int pbv_check_arg(struct env *env, unsigned i, struct helper_call *call);
/* Checks whether the helper may take the map, by the map's type. map NULL: returns 0. */
int pbv_check_map_helper(struct env *env, const struct pb_bpf_map *map, int32_t id);
/* Checks whether a helper may read (write: also write) `size` bytes at the address in register n.
 * zero_ok: `size` may be 0. If `call` isn't NULL, and call->raw is set, the bytes may be
 * uninitialised stack at a known offset. */
int pbv_helper_memory(struct env *env, unsigned n, int size, bool write, bool zero_ok,
		      struct helper_call *call);
/* Checks that register n points to a dynptr that a function may read and write, but not release. */
int pbv_check_dynptr(struct env *env, unsigned n);
/* Returns whether the helper takes a callback. */
bool pbv_helper_calls_back(int32_t id);
#endif
