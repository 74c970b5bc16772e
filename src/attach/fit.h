/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether Patchbay can attach to a process, as far as this is known before the process is
 * disturbed. Context: the injector's thread. Functions return 0, or -errno with the user's line. */
#ifndef PB_ATTACH_FIT_H
#define PB_ATTACH_FIT_H
#include "attach/subject.h"

/* Checks the process, opens its memory, and reads its mappings. */
int attach_fit(struct attach_subject *s);
/* Checks that the agent will be able to stop the process's threads. (The agent of a forked child
 * that only has to leave stops none.) */
int attach_fit_rights(struct attach_subject *s);
/* Checks that this thread has no tracer. (Each thread of a process may have its own.) -EAGAIN: the
 * tracer is the helper of an agent, and s->by_helper is set. */
int attach_fit_thread(struct attach_subject *s, pid_t tid);
#endif
