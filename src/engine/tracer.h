/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function and function_graph tracers, and their control files.
 * Context: start. */
#ifndef PB_ENGINE_TRACER_H
#define PB_ENGINE_TRACER_H
void pb_tracer_register_files(void);
/* Called once the eBPF programs, if there are any, are attached, perhaps at returns. */
void pb_tracer_programs(void);
#endif
