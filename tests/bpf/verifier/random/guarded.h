/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs programs that may be unsafe. A fault ends the run, but the test continues. */
#ifndef PB_TEST_GUARDED_H
#define PB_TEST_GUARDED_H
#include <stdbool.h>
#include <stdint.h>
#include "bpf/core/program.h"

/* Installs the signal handlers. Must be called once in each process. */
void guarded_begin(void);
/* Runs the program on the JIT or the interpreter. Returns 0 with its result, or -EFAULT. */
int guarded_run(struct pb_bpf_run *run, bool jit, uint64_t *r0);
#endif
