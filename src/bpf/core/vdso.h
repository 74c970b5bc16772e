/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that the kernel maps into every process, without libc.
 * Context: not in a signal handler; what it returns may be called in any.
 */
#ifndef PB_BPF_CORE_VDSO_H
#define PB_BPF_CORE_VDSO_H

/* "__vdso_clock_gettime"; NULL: there is none. */
void *pb_bpf_vdso(const char *name);
#endif
