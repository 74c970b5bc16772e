/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function and function_graph tracers, and their control files.
 * Context: start. */
#ifndef PB_ENGINE_TRACER_H
#define PB_ENGINE_TRACER_H
void pb_tracer_register_files(void);
/* Sets anew whether returns are hooked. Called at the start, after the eBPF programs were attached,
 * because a program may be attached to the return of a function; and when pb_call_ended has
 * changed. */
void pb_tracer_returns(void);
#endif
