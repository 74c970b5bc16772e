/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs of programs that may be wrong: a fault ends the run, not the test. */
#ifndef PB_TEST_GUARDED_H
#define PB_TEST_GUARDED_H
#include <stdbool.h>
#include <stdint.h>
#include "bpf/core/program.h"

/* Once in each process. */
void guarded_begin(void);
/* On the JIT or the interpreter: 0 and its result, or -EFAULT. */
int guarded_run(struct pb_bpf_run *run, bool jit, uint64_t *r0);
#endif
