/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a seccomp filter does with a system call. Context: any; no system call is made. */
#ifndef PB_ATTACH_FILTER_RUN_H
#define PB_ATTACH_FILTER_RUN_H
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/* A system call whose arguments may be unknown. */
struct attach_call {
	const char *name;
	int32_t number;
	uint8_t known;		/* bit i: args[i] is known */
	uint64_t args[6];
};

/* The values rise from harmless to fatal, so the worst of several verdicts is the largest. */
enum attach_verdict {
	ATTACH_ALLOWED,
	ATTACH_ABSENT,		/* fails with ENOSYS, as on an older kernel */
	ATTACH_FAILS,		/* fails with another error */
	ATTACH_FATAL,		/* a signal, a decision of another process, or unknown */
};

/* Returns the worst verdict that the filter may have on the call. A hostile filter can't make this
 * take long, because the number of steps is limited. */
enum attach_verdict attach_filter_run(const struct sock_filter *filter, size_t nr,
				      const struct attach_call *call);
#endif
