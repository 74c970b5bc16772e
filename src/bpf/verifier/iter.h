/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of kfuncs, and iterators. */
#ifndef PB_BPF_VERIFIER_ITER_H
#define PB_BPF_VERIFIER_ITER_H
#include "bpf/verifier/env.h"

int pbv_check_kfunc(struct env *env, const struct bpf_insn *insn);
/* Returns whether a program may call the kfunc while it holds a spin lock. */
bool pbv_kfunc_fits_lock(const struct bpf_insn *insn);
/* Returns whether the kfunc gives the next element of an iterator. */
bool pbv_kfunc_iterates(const struct bpf_insn *insn);
#endif
