/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function and function_graph tracers, and the control files that steer
 * them. Context: start. */
#ifndef PB_ENGINE_TRACER_H
#define PB_ENGINE_TRACER_H
#include <stdbool.h>
#include <stdint.h>

struct pb_site;

/* How the graph is to enter a call of the site, whose handler that is (PB_ENTER_*), once the other
 * tracers of a list have seen it; PB_ENTER_LIST: it isn't. Context: hit path. */
unsigned pb_graph_mode_of(struct pb_site *s, uint64_t handler, uint64_t parent_ip);
bool pb_is_silent(uint64_t handler);
void pb_tracer_register_files(void);
#endif
