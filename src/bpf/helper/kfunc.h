/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's functions that programs may call besides helpers (kfuncs), as far as
 * they need no object of the kernel: iterators of numbers. An object names them as
 * externs, which the loader finds here by name; in an instruction imm is the number
 * here, where the kernel has the number of a type. 0 is no function.
 *
 * Context: any; no state.
 */
#ifndef PB_BPF_HELPER_KFUNC_H
#define PB_BPF_HELPER_KFUNC_H
#include "bpf/core/program.h"

enum pb_bpf_kfunc_id {
	PB_BPF_KFUNC_NONE,
	PB_BPF_KFUNC_ITER_NUM_NEW,
	PB_BPF_KFUNC_ITER_NUM_NEXT,
	PB_BPF_KFUNC_ITER_NUM_DESTROY,
	PB_BPF_NR_KFUNCS
};

struct pb_bpf_kfunc {
	const char *name;
	pb_bpf_fn *fn;
};

/* NULL: there is none of that number. */
const struct pb_bpf_kfunc *pb_bpf_kfunc_of(int32_t id);
/* Its number; 0: none of that name. */
int32_t pb_bpf_kfunc_find(const char *name);
#endif
