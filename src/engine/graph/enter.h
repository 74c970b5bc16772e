/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Passes to the tracers those calls that the assembly's fast paths leave to C. Context: hit
 * path. */
#ifndef PB_ENGINE_GRAPH_ENTER_H
#define PB_ENGINE_GRAPH_ENTER_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"

/* Called by the assembly. mode: PB_ENTER_*. */
void pb_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
/* Writes a record of the function tracer. */
void pb_record_function(struct pb_site *site, uint64_t parent_ip);

/* Returns the handler for sites that only the graph tracer uses. mode: how the tracer enters the
 * calls of these sites (PB_ENTER_*). no_clock_nor_limit: neither the clock nor a limit of depth is
 * used. For this case, some modes have another handler. 0: calls in this mode are never recorded.
 * Context: as in text/ftrace.h. */
uint64_t pb_graph_handler(unsigned mode, bool no_clock_nor_limit);
/* Called at a hit of site s, which has this handler. Returns how the graph tracer must enter the
 * call (PB_ENTER_*). If the handler is pb_list, also gives the call to the site's other tracers. If
 * the result is PB_ENTER_LIST, the graph tracer doesn't enter the call. */
unsigned pb_graph_mode(struct pb_site *s, uint64_t handler, uint64_t parent_ip);
#endif
