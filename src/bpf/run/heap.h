/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory for the verifier in a process that has malloc(). Context: any thread; uses libc. */
#ifndef PB_BPF_RUN_HEAP_H
#define PB_BPF_RUN_HEAP_H
#include "bpf/verifier/verify.h"

extern struct pb_bpf_mem pb_bpf_heap;
#endif
