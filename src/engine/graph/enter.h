/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Passes to the tracers the calls that the fast paths leave to C. Context: hit path. */
#ifndef PB_ENGINE_GRAPH_ENTER_H
#define PB_ENGINE_GRAPH_ENTER_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"

/* mode: PB_ENTER_*. For the assembly. */
void pb_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
/* Writes a record of the function tracer. */
void pb_record_function(struct pb_site *site, uint64_t parent_ip);

/* The handler of sites that only the graph tracer uses; mode: how it enters their calls. With
 * neither a clock nor a limit of depth there are special handlers. Context: start. */
uint64_t pb_graph_handler(unsigned mode, bool no_clock_nor_limit);
/* The reverse of pb_graph_handler(): the mode of a handler. For pb_list, first lets the other
 * tracers see the call. PB_ENTER_LIST: the graph tracer doesn't enter the call. */
unsigned pb_graph_mode(struct pb_site *s, uint64_t handler, uint64_t parent_ip);
#endif
