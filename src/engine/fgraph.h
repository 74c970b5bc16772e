/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The long way of the function graph: what the assembly does not decide by
 * itself. Context: hit path. doc/design/fgraph.md.
 */
#ifndef PB_ENGINE_FGRAPH_H
#define PB_ENGINE_FGRAPH_H
#include <stddef.h>
#include <stdint.h>
#include "arch/x86_64/site.h"
#include "engine/thread.h"

struct pb_hit;

struct pb_target {
	uint64_t address;	/* where to go on */
	uint64_t drop;		/* 1: it is a gate, the slot is to be dropped */
};

/* Above these a call's depth, in calls of its stack; 0: nothing is recorded. */
extern uint32_t pb_max_depth;
#define PB_DEPTH_SILENT	PB_DEPTH_MAX	/* of a silent call */
extern uint8_t pb_no_clock;	/* all records have the time pb_frozen_clock */
extern uint64_t pb_frozen_clock;
/* Reading the TSC is about to be forbidden (strict seccomp, PR_SET_TSC). */
void pb_clock_freeze(void);
/* For PB_ENTRY_LAZY calls: shorter ones are dropped (clock units)... */
extern uint64_t pb_thresh;
/* ... and, if set, all that do not lead to a site with FTRACE_FL_CALLER. */
extern uint8_t pb_callers_only;

uint64_t pb_clock(void);
uint64_t pb_clock_ticks(void);	/* the TSC also with --clock=none; 0: it mustn't be read */
struct pb_target pb_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
bool pb_emit(struct pb_thread *t, struct pb_entry *parent, uint64_t slot);
uint64_t pb_exit(struct pb_entry *e, uint64_t now, unsigned how, uint64_t *slot);
/* A call that the compiler's hooks tell: from `at`, the slot of the call of the
 * hook. Context: hit path. */
void pb_hook_enter(struct pb_site *site, uint64_t at, unsigned mode);
void pb_hook_exit(struct pb_site *site, uint64_t at);
/* END of the innermost call on t's stack, the parent is innermost then. */
void pb_fgraph_close(struct pb_thread *t, struct pb_entry *e, uint64_t now);
/* current := e, closing what was skipped above it. False: e is not in the chain,
 * so what is current stays so. */
bool pb_fgraph_pop_to(struct pb_thread *t, const struct pb_hit *h, struct pb_entry *e, uint64_t now);
/* The program told the bounds of a stack (makecontext, sigaltstack). Calls that
 * are still open there belong to a use of it that is over. */
void pb_stack_told(uint64_t lo, uint64_t size);
/* The stack that the slot is on, which becomes t's; NULL: not known. Context: a hit of t. */
const struct pb_stack *pb_fgraph_stack(struct pb_thread *t, uint64_t slot);
size_t pb_fgraph_open_calls(struct pb_writer *w, uint64_t *out, size_t max, uint32_t *depth,
			    const void *ending);

/* Handlers, for site->handler: arch/x86_64/{graph_entry,graph_none,slow_entry,function}.S. */
void pb_graph(void);
void pb_graph_none(void);
void pb_graph_none_nested(void);
void pb_graph_nested(void);
void pb_graph_lazy(void);
void pb_graph_lazy_nested(void);
void pb_graph_call(void);
void pb_graph_call_nested(void);
void pb_graph_silent(void);
void pb_function(void);
void pb_record_function(struct pb_site *site, uint64_t parent_ip);
#endif
