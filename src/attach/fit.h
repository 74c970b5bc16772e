/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a process can be attached, as far as it can be told without touching it. Context: the
 * injector's thread. Functions return 0, or -errno with the user's line. */
#ifndef PB_ATTACH_FIT_H
#define PB_ATTACH_FIT_H
#include "attach/subject.h"

/* Checks the process, opens its memory, and reads its mappings. */
int attach_fit(struct attach_subject *s);
/* Checks what threads of a process may have of their own: a tracer. */
int attach_fit_thread(struct attach_subject *s, pid_t tid);
#endif
