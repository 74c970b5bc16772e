/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds functions of the vDSO, which the kernel maps into every process. Uses no libc. Context:
 * pb_bpf_vdso() must not be called in a signal handler. The functions that pb_bpf_vdso() finds may
 * be called in any context.
 */
#ifndef PB_BPF_CORE_VDSO_H
#define PB_BPF_CORE_VDSO_H
#include <stdint.h>

/* Stores the vDSO's first address and its size. If there is no vDSO, both are 0. Context: as for
 * pb_bpf_vdso(). */
void pb_bpf_vdso_range(uint64_t *start, uint64_t *size);
/* Returns the address of a function. name: for example "__vdso_clock_gettime". NULL: there is no
 * such function. */
void *pb_bpf_vdso(const char *name);
#endif
