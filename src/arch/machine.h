/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all of Patchbay needs of the processor, below everything else: src/base passes it on.
 * What the agent and the module analysis need besides is in arch/arch.h.
 *
 * Context of each function: any, also the hit path; nothing here calls a library, sets errno or
 * uses a vector register.
 */
#ifndef PB_ARCH_MACHINE_H
#define PB_ARCH_MACHINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The system call `nr` (SYS_*). Returns what the kernel does: -errno on failure. Never on a hit. */
static inline long pb_cpu_syscall(long nr, long a, long b, long c, long d, long e, long f);

/* The counter that times records: it counts at one rate on all processors, never backwards as a
 * thread sees it. Units: its own ticks; the recorder measures their rate. Reading it may be
 * forbidden (prctl(PR_SET_TSC)): engine/clock.h. */
static inline uint64_t pb_cpu_counter(void);

/* One turn of a loop that waits for another processor. */
static inline void pb_cpu_pause(void);

/* No later instruction runs ahead, even by speculation, before all earlier ones are done. */
static inline void pb_cpu_no_speculation(void);

/* The word that libc's TCB is found by: another one for each thread that is alive. */
static inline uint64_t pb_cpu_thread_pointer(void);

/* Two words at a multiple of 16, against all threads: from *old0, *old1 to the new ones. False:
 * they are others, which *old0 and *old1 become. */
static inline bool pb_cpu_replace16(uint64_t *p, uint64_t *old0, uint64_t *old1,
				    uint64_t new0, uint64_t new1);

/* Copies n bytes upwards: of what overlaps, dst may be the lower one. Sets n bytes; clears n
 * words of 8. For sizes for which a loop would be slow; base/mem.h has what to call. */
static inline void pb_cpu_copy(void *dst, const void *src, size_t n);
static inline void pb_cpu_fill(void *dst, int byte, size_t n);
static inline void pb_cpu_zero_words(void *dst, size_t n);

#if defined(__x86_64__)
#include "arch/x86_64/cpu.h"
#else
#error "no architecture that Patchbay knows: doc/design/porting.md"
#endif
#endif
