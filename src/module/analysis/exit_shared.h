/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes windows of one byte, for exits that have no room for a longer window. Context: any thread;
 * part of one analysis (stages.h). */
#ifndef PB_MODULE_EXIT_SHARED_H
#define PB_MODULE_EXIT_SHARED_H
#include "module/analysis/exit_placer.h"

/* Finds a window for a `ret` of one byte. False: there is none. */
bool pb_exit_share(struct pb_placer *p, struct pb_fn_exit *e);
#endif
