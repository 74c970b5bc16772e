/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stack's depth in assembly that has no CFI. A stage of the analysis (module_priv.h). */
#ifndef PB_MODULE_DEPTH_H
#define PB_MODULE_DEPTH_H
#include "module/module_priv.h"

/* Adds an FDE for each function that has a symbol but none, from what its code does with
 * rsp. 0 or -errno. */
int pb_depths_find(struct pb_an *an, const char **why);
#endif
