/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs built with -finstrument-functions report each call themselves, inlined
 * calls too, by two hooks. Their functions are not patched: the agent defines the
 * hooks. As it is preloaded, its hooks take precedence over libc's empty ones. If
 * the program has hooks of its own, the agent replaces them, and calls them afterwards.
 */
#ifndef PB_ENGINE_GRAPH_CYG_H
#define PB_ENGINE_GRAPH_CYG_H
#include "engine/text/text.h"

/* Replaces the program's own hooks, if m has them (in the open batch). */
void pb_cyg_hook(struct pb_module *m);
#endif
