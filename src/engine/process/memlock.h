/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes mlockall() lock all memory of the program, but no memory of the agent. */
#ifndef PB_ENGINE_PROCESS_MEMLOCK_H
#define PB_ENGINE_PROCESS_MEMLOCK_H

struct pb_module;

/* In the open batch, replaces mlockall() if m has it. */
void pb_memlock_hook(struct pb_module *m);
#endif
