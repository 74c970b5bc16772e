/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kfuncs: functions of the kernel that programs may call besides helpers. Patchbay has only kfuncs
 * that need no object of the kernel: iterators over numbers. An object file names a kfunc as an
 * extern; the loader finds it here by name. In a call instruction, imm is the kfunc's
 * pb_bpf_kfunc_id; in the kernel, it is a BTF type id.
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

/* The kfunc of a number; NULL: there is none. */
const struct pb_bpf_kfunc *pb_bpf_kfunc_of(int32_t id);
/* The number of a kfunc; 0: there is none of that name. */
int32_t pb_bpf_kfunc_find(const char *name);
#endif
