/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* If forked children aren't traced, the agent's jumps are removed from their text: all its bytes
 * are again those of the ELF files. */
#ifndef PB_ENGINE_FORK_H
#define PB_ENGINE_FORK_H
#include "engine/text/text.h"

/* Does nothing if children are traced. Otherwise replaces the fork function of m, if m has one, as
 * a part of the open batch (text.h). Context: start. */
void pb_fork_hook(struct pb_module *m);
#endif
