/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes the length of the calling thread's slices (short_slice.h). */
#include "attach/short_slice.h"
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_NS 100000		/* the shortest slice that the kernel accepts */

/* Kernels before 6.12 report no length, and ignore a new one. */
static bool read_attr(struct sched_attr *a)
{
	return !syscall(SYS_sched_getattr, 0, a, sizeof(*a), 0) &&
	       a->sched_policy == SCHED_NORMAL && a->sched_runtime;
}

static bool set_slice(uint64_t ns)
{
	struct sched_attr a = { 0 };

	if (!read_attr(&a))
		return false;
	a.size = sizeof(a);
	a.sched_flags &= SCHED_FLAG_RESET_ON_FORK;
	a.sched_runtime = ns;
	return !syscall(SYS_sched_setattr, 0, &a, 0);
}

uint64_t attach_slice_shorten(void)
{
	struct sched_attr a = { 0 };

	return read_attr(&a) && a.sched_runtime > SHORT_NS && set_slice(SHORT_NS) ?
	       a.sched_runtime : 0;
}

void attach_slice_restore(uint64_t former)
{
	if (former)
		set_slice(former);
}
