/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operations of the processor that all parts of Patchbay need. This is the lowest layer;
 * src/base includes it for the other layers. arch/arch.h has the operations that only the agent and
 * the module analysis need.
 *
 * Context of each function: any, also the hit path; nothing here calls a library, sets errno or
 * uses a vector register.
 */
#ifndef PB_ARCH_MACHINE_H
#define PB_ARCH_MACHINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the system call `nr` (SYS_*). Returns the kernel's result: -errno on failure. Not for the
 * hit path. */
static inline long pb_cpu_syscall(long nr, long a, long b, long c, long d, long e, long f);

/* The counter whose values are the times of records. It counts at one rate on all processors, and
 * no thread sees it go backwards. The recorder measures this rate. prctl(PR_SET_TSC) may forbid
 * reading the counter: see engine/clock.h. */
static inline uint64_t pb_cpu_counter(void);

/* To be called in each iteration of a loop that waits for another processor. */
static inline void pb_cpu_pause(void);

/* No later instruction begins, not even speculatively, before all earlier ones are done. */
static inline void pb_cpu_no_speculation(void);

/* The pointer by which libc finds its TCB. No two live threads have the same pointer. */
static inline uint64_t pb_cpu_thread_pointer(void);

/* Changes two words, at an address that is a multiple of 16, from *old0 and *old1 to new0 and new1.
 * The change is atomic for all threads. False: the words had other values, which are stored in
 * *old0 and *old1. */
static inline bool pb_cpu_replace16(uint64_t *p, uint64_t *old0, uint64_t *old1,
				    uint64_t new0, uint64_t new1);

/* These functions are for sizes at which a loop is slow. For other sizes see base/mem.h.
 * pb_cpu_copy() copies from low to high addresses. If dst and src overlap, dst must be the lower
 * address. pb_cpu_zero_words() clears n words of 8 bytes. */
static inline void pb_cpu_copy(void *dst, const void *src, size_t n);
static inline void pb_cpu_fill(void *dst, int byte, size_t n);
static inline void pb_cpu_zero_words(void *dst, size_t n);

#if defined(__x86_64__)
#include "arch/x86_64/cpu.h"
#else
#error "unknown architecture: see doc/design/porting.md"
#endif
#endif
