/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small helpers for all parts of Patchbay. Context: any. */
#ifndef PB_BASE_H
#define PB_BASE_H
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include "arch/machine.h"

#define pb_likely(x)	__builtin_expect(!!(x), 1)
#define pb_unlikely(x)	__builtin_expect(!!(x), 0)
#define pb_array_size(a) (sizeof(a) / sizeof((a)[0]))
#define pb_align_up(x, a) (((x) + ((a) - 1)) & ~((__typeof__(x))(a) - 1))
#define pb_container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
/* Finds the first i of [low, high) for which the condition is false. If there is none, the result
 * is high. The range must be sorted: if the condition is false for one i, it is also false for all
 * greater i. */
#define pb_bisect(i, low, high, condition) ({ \
	size_t low_ = (low), high_ = (high); \
	while (low_ < high_) { \
		size_t i = low_ + (high_ - low_) / 2; \
		if (condition) \
			low_ = i + 1; \
		else \
			high_ = i; \
	} \
	low_; \
})
/* Returns the end of a noun after the number n: "1 call", "2 calls". */
static inline const char *pb_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Marks a variable of the agent that keeps its value over a detach and the next attach
 * (engine/renew.h). */
#define PB_LASTING __attribute__((section("pb_lasting")))
#define pb_barrier()	__asm__ volatile("" ::: "memory")
#endif
