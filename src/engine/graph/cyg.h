/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs built with -finstrument-functions report each call themselves, by two hooks. They report
 * inlined calls, too. The functions of these programs are not patched. Instead, the agent defines
 * the hooks. A preloaded agent's hooks take precedence over libc's empty hooks. If the program has
 * hooks of its own, the agent replaces them. A replacement calls the program's hook at its end.
 */
#ifndef PB_ENGINE_GRAPH_CYG_H
#define PB_ENGINE_GRAPH_CYG_H
#include "engine/text/text.h"

/* In the open batch, replaces the program's own hooks if m has them. */
void pb_cyg_hook(struct pb_module *m);
#endif
