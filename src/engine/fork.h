/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* If forked children aren't traced, the agent's jumps are removed from their text: all its bytes
 * are again those of the ELF files. If they are traced, they let go of what must not be the
 * parent's. */
#ifndef PB_ENGINE_FORK_H
#define PB_ENGINE_FORK_H
#include "engine/text/text.h"

/* Replaces the fork function of m, if m has one, as a part of the open batch (text.h). Does nothing
 * if children are traced, the agent has no thread, and there are no eBPF programs. progs: whether
 * there are eBPF programs. Context: start. */
void pb_fork_hook(struct pb_module *m, bool progs);
#endif
