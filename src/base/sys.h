/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System calls without libc. So there is no errno, no cancellation point, and no function that
 * another tool in the process could hook. pb_sys() returns the kernel's result, which is -errno
 * after an error. Context: any. On a hit, only in the rare cases that HACKING.md lists, and only if
 * pb_calls_are_safe().
 */
#ifndef PB_SYS_H
#define PB_SYS_H
#include <stdint.h>
#include <sys/syscall.h>
#include "arch/machine.h"

#define PB_SYS_SEL(a, b, c, d, e, f, g, ...) g
#define pb_sys(...) PB_SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define PB_SYS_ARGS(nr, a, b, c, d, e, f, ...) \
	pb_cpu_syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* CLOCK_MONOTONIC. */
static inline uint64_t pb_now_ns(void)
{
	struct { long sec, nsec; } ts;

	pb_sys(SYS_clock_gettime, 1, &ts);
	return (uint64_t)ts.sec * 1000000000 + (uint64_t)ts.nsec;
}

static inline int pb_sys_failed(long ret)
{
	return (unsigned long)ret > -4096ul;
}
#endif
