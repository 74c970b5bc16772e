/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory of a process that has malloc, for verifying. Context: libc, any thread. */
#ifndef PB_BPF_RUN_HEAP_H
#define PB_BPF_RUN_HEAP_H
#include "bpf/verifier/verify.h"

extern struct pb_bpf_mem pb_bpf_heap;
#endif
