/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether the seccomp filters of a process allow what an attach needs. Context: the injector's
 * thread, which traces no thread of the process. */
#ifndef PB_ATTACH_SECCOMP_H
#define PB_ATTACH_SECCOMP_H
#include "attach/subject.h"

/* Stops each thread that has a filter, one after the other, for a moment. Returns 0, or -errno with
 * the user's line. */
int attach_seccomp_check(struct attach_subject *s);
#endif
