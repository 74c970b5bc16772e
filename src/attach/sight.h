/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a process sees the agent's file and the recorder's socket under the same paths as the
 * recorder, and may open the agent. Context: the injector's thread. */
#ifndef PB_ATTACH_SIGHT_H
#define PB_ATTACH_SIGHT_H
#include "attach/subject.h"

/* `status` is the text of the process's status file. Returns 0, or -errno with the user's line. */
int attach_sight_check(struct attach_subject *s, const char *status);
#endif
