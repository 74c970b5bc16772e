/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kfuncs: functions of the kernel that programs may call besides helpers. Patchbay has only the
 * kfuncs of iterators over numbers (bpf_iter_num_*), because these kfuncs need no object of the
 * kernel. An object file names a kfunc as an extern. The loader looks the name up in Patchbay's
 * table, and sets imm of the call instruction to the kfunc's pb_bpf_kfunc_id. (In the kernel, imm
 * is a BTF type id.)
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

/* Returns the kfunc with this number (pb_bpf_kfunc_id). NULL: there is no such kfunc. */
const struct pb_bpf_kfunc *pb_bpf_kfunc_of(int32_t id);
/* Returns the number of the kfunc with this name (pb_bpf_kfunc_id). 0: there is no such kfunc. */
int32_t pb_bpf_kfunc_find(const char *name);
#endif
