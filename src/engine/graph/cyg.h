/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs built with -finstrument-functions tell each call themselves, those
 * that were inlined too. Their functions are not patched: the agent stands in
 * for the hooks. Being preloaded it comes before libc's empty ones; a hook of
 * the program's own is replaced, and called afterwards.
 */
#ifndef PB_ENGINE_GRAPH_CYG_H
#define PB_ENGINE_GRAPH_CYG_H
#include "engine/text/text.h"

/* Replaces the program's own hooks, if m has them (in the open batch). */
void pb_cyg_hook(struct pb_module *m);
#endif
