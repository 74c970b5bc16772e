/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gives back the agent's unused address space when the program lowers its limits. */
#ifndef PB_ENGINE_PROCESS_LIMITS_H
#define PB_ENGINE_PROCESS_LIMITS_H

struct pb_module;

/* In the open batch, replaces setrlimit() and prlimit() if m has them. */
void pb_limits_hook(struct pb_module *m);
#endif
