/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function graph: what the assembly of entries and exits
 * (gates, arch/arch.h) does not decide by itself. Each stack has
 * its open calls (open_calls.h); a thread knows the innermost one of the stack that it
 * is on. Context: hit path, unless said otherwise. doc/design/open-calls.md.
 */
#ifndef PB_ENGINE_GRAPH_CALLS_H
#define PB_ENGINE_GRAPH_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/arch.h"
#include "engine/graph/chains.h"
#include "engine/graph/thread.h"

/* Above these a call's depth, in calls of its stack; 0: nothing is recorded. */
extern uint32_t pb_max_depth;
#define PB_NO_MAX_DEPTH	PB_DEPTH_MAX
/* For PB_ENTRY_LAZY calls: shorter ones are dropped (clock units)... */
extern uint64_t pb_thresh;
/* ... and, if set, all that do not lead to a site with FTRACE_FL_CALLER. */
extern uint8_t pb_callers_only;

/* The stack that the slot is on, which becomes t's. Context: a hit of t. */
const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot);
/* The program told the bounds of a stack (makecontext, sigaltstack), by a call with that
 * return slot. Calls that are still open there belong to a use of it that is over. */
void pb_stack_told(uint64_t slot, uint64_t lo, uint64_t size);
/* A signal handler with its return address in `slot` is over: what it left open by jumps is
 * closed. */
void pb_calls_handler_over(struct pb_thread *t, uint64_t slot);
/* A handler has interrupted the assembly of an exit: of the call at that address, if there
 * is one, with its slot at the stack pointer. record: PB_OPEN_*, what is known of its record. */
void pb_calls_interrupted(uint64_t call, uint64_t slot, uint8_t record);
/* END for the calls at or below the slot, on a stack on which nobody runs. */
void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot);

/* Programs have watched returns: open calls may be in state PB_ENTRY_PROG. */
extern bool pb_calls_watching;
/* For pb_ring_open_calls: what is open when a chunk begins, outermost first. */
size_t pb_calls_open(struct pb_writer *w, uint64_t *out, size_t max, uint32_t *depth,
		     const void *ending);

/* A call that the compiler's hooks tell: from `at`, the slot of the call of the hook. */
void pb_hook_enter(struct pb_site *site, uint64_t at, unsigned mode);
void pb_hook_exit(struct pb_site *site, uint64_t at);

/* Programs that were not run, at an entry or a return. Never NULL. */
extern uint64_t *pb_prog_missed;
/* A call whose return programs watch, as PB_WATCH_BELOW > watch > 0 knows; mode
 * PB_ENTER_LIST: it is no part of the tree. False: they can't watch it. */
bool pb_calls_watch(struct pb_site *site, uint64_t *slot, unsigned mode, uint16_t watch);
/* What watched the return of c has run: c is over. The next call that returns with it and is
 * watched, or NULL. */
struct pb_open_call *pb_calls_watched(struct pb_open_call *c, uint64_t *slot);

/* For the assembly. from: NULL, or where the stub of a tail jump goes on. Returns a call
 * whose return programs watch: pb_prog_returned() is to run them. */
void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
struct pb_open_call *pb_calls_exit(uint64_t *slot, struct pb_open_call *call, uint64_t now,
				   const void *from);
#endif
