/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out whether a process reaches the agent's file and the recorder's socket under the
 * recorder's paths, or must get descriptors of both (s->handed). Context: the injector's thread. */
#ifndef PB_ATTACH_SIGHT_H
#define PB_ATTACH_SIGHT_H
#include "attach/subject.h"

/* `status` is the text of the process's status file. Sets s->uid and s->handed. Returns 0, or
 * -errno with the user's line. */
int attach_sight_check(struct attach_subject *s, const char *status);
#endif
