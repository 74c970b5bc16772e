/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function and function_graph tracers, and their control files.
 * Context: start, or a write to a control file, unless a comment says otherwise. */
#ifndef PB_ENGINE_TRACER_H
#define PB_ENGINE_TRACER_H
#include <stdbool.h>
void pb_tracer_register_files(void);
/* Decides again whether the stubs of exits must lead to idle code. Called at the start, after the
 * eBPF programs were attached, because a program may be attached to the return of a function. */
void pb_tracer_returns(void);
/* If err is -EAGAIN, sets the message that the writer of the control file gets. Returns err. */
int pb_tracer_explained(int err);
/* Called when pb_call_ended has changed. on: whether snapshot_on has functions. */
void pb_tracer_snapshots(bool on);
#endif
