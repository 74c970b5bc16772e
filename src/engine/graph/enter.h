/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which tracer sees a call that the fast paths leave to C. Context: hit path. */
#ifndef PB_ENGINE_GRAPH_ENTER_H
#define PB_ENGINE_GRAPH_ENTER_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"

/* mode: PB_ENTER_*. For the assembly. */
void pb_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
/* A record of the function tracer. */
void pb_record_function(struct pb_site *site, uint64_t parent_ip);

/* The handler of sites that only the graph wants, by how it is to enter their calls. Without a
 * clock there are others for no limit of depth. Context: start. */
uint64_t pb_graph_handler(unsigned mode, bool no_clock_nor_limit);
/* And back; of pb_list, once the other tracers have seen the call. PB_ENTER_LIST: the graph doesn't
 * enter it. */
unsigned pb_graph_mode(struct pb_site *s, uint64_t handler, uint64_t parent_ip);
#endif
