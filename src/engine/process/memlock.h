/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes mlockall() lock all memory of the program, but none of the agent's. */
#ifndef PB_ENGINE_PROCESS_MEMLOCK_H
#define PB_ENGINE_PROCESS_MEMLOCK_H

struct pb_module;

/* Replaces mlockall(), if m has it (in the open batch). */
void pb_memlock_hook(struct pb_module *m);
#endif
