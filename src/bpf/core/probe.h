/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads from memory that may not be mapped, for the interpreter. If the host's handler of SIGSEGV
 * and SIGBUS calls pb_bpf_fault() (program.h), a load that faults returns 0. Context: any.
 */
#ifndef PB_BPF_CORE_PROBE_H
#define PB_BPF_CORE_PROBE_H
#include <stdint.h>

uint64_t pb_bpf_probe_B(uint64_t addr);
uint64_t pb_bpf_probe_H(uint64_t addr);
uint64_t pb_bpf_probe_W(uint64_t addr);
uint64_t pb_bpf_probe_DW(uint64_t addr);

/* If ip is in one of these loads, returns the address at which to continue after a fault at ip,
 * else 0. */
uint64_t pb_bpf_probe_fault(uint64_t ip);
#endif
