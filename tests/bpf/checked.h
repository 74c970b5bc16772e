/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What interp_checked.c asks: whether an access is one of what the run was given. */
#ifndef TESTS_BPF_CHECKED_H
#define TESTS_BPF_CHECKED_H
#include "bpf/prog.h"

/* The address, or that of memory that does no harm. */
uint64_t checked_access(struct pb_bpf_run *run, uint64_t addr, uint64_t size);
void checked_call(struct pb_bpf_run *run, pb_bpf_fn *fn, const uint64_t *r);
void checked_stack_begins(uint64_t stack);
void checked_stack_ends(void);
#endif
