/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declares the helpers' functions: one function pb_bpf_do_NAME for each row of helper_table.h that
 * has DO. Context: each context in which programs run (program.h).
 */
#ifndef PB_BPF_HELPER_HELPER_FNS_H
#define PB_BPF_HELPER_HELPER_FNS_H
#include "bpf/core/program.h"
#include "bpf/helper/helper_table.h"

#define PB_BPF_DECLARE_DO(name)	pb_bpf_fn pb_bpf_do_##name;
#define PB_BPF_DECLARE_NO(name)
#define PB_BPF_DECLARE(name, fn, ...)	PB_BPF_DECLARE_##fn(name)
PB_BPF_HELPERS(PB_BPF_DECLARE)
#endif
