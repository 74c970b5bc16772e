/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a process can be attached, as far as it can be told without touching it. Context: the
 * injector's thread. */
#ifndef PB_ATTACH_FIT_H
#define PB_ATTACH_FIT_H
#include "attach/subject.h"

/* Checks the process, opens its memory, and reads its mappings. Returns 0, or -errno with the
 * user's line. */
int attach_fit(struct attach_subject *s);
#endif
