/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations on words shared with signal handlers (arch/arch.h has the contracts). Each is one
 * instruction without a lock prefix. */
#ifndef PB_ARCH_X86_64_LOCAL_H
#define PB_ARCH_X86_64_LOCAL_H
#include <stdbool.h>
#include <stdint.h>

static inline bool pb_cmpxchg_local(uint64_t *p, uint64_t old, uint64_t new)
{
	bool done;

	__asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*p), "+a"(old)
			 : "r"(new) : "memory");
	return done;
}

static inline uint64_t pb_xadd_local(uint64_t *p, uint64_t add)
{
	__asm__ volatile("xaddq %0, %1" : "+r"(add), "+m"(*p) : : "memory", "cc");
	return add;
}

static inline void pb_count_local(uint64_t *p)
{
	__asm__ volatile("incq %0" : "+m"(*p) : : "cc");
}
#endif
