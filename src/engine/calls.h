/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function graph with return sites: what the assembly of entries and exits
 * (arch/x86_64/open_entry.S, open_exit.S) does not decide by itself. Each stack has
 * its open calls (open_calls.h); a thread knows the innermost one of the stack that it
 * is on. Context: hit path, unless said otherwise. doc/design/open-calls.md.
 */
#ifndef PB_ENGINE_CALLS_H
#define PB_ENGINE_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/x86_64/site.h"
#include "engine/chains.h"
#include "engine/thread.h"

/* The stack that the slot is on, which becomes t's. */
const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot);
/* A signal handler with its return address in `slot` is over: what it left open by jumps is closed. */
void pb_calls_handler_over(struct pb_thread *t, uint64_t slot);
/* A handler has interrupted the assembly of an exit: of the call at that address, if there
 * is one, with its slot at the stack pointer. */
void pb_calls_interrupted(uint64_t call, uint64_t slot, bool unreserved);
/* END for all calls on a stack on which nobody runs. */
void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s);

/* How pb_fgraph_open_calls() tells them for a chunk. */
size_t pb_calls_open(struct pb_thread *t, uint64_t *out, size_t max, uint32_t *depth,
		     const struct pb_open_call *ending);

/* A call whose return programs watch, as PB_WATCH_BELOW > watch > 0 knows; mode
 * PB_ENTER_LIST: it is no part of the tree. False: they can't watch it. */
bool pb_calls_watch(struct pb_site *site, uint64_t *slot, unsigned mode, uint16_t watch);
/* What watched the return of c has run: c is over. The next call that returns with it and is
 * watched, or NULL. */
struct pb_open_call *pb_calls_watched(struct pb_open_call *c, uint64_t *slot);

/* For the assembly. from: NULL, or where the stub of a tail jump goes on. Returns a call
 * whose return programs watch: pb_prog_returned() is to run them. */
void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
struct pb_open_call *pb_calls_exit(uint64_t *slot, struct pb_open_call *call, uint64_t now, const void *from);

/* Handlers, for site->handler, and where exit stubs go. */
void pb_open_graph(void);
void pb_open_graph_nested(void);
void pb_open_none(void);
void pb_open_none_nested(void);
void pb_open_lazy(void);
void pb_open_lazy_nested(void);
void pb_open_silent(void);
void pb_open_call(void);
void pb_open_call_nested(void);
void pb_open_ret(void);
void pb_open_jump(void);
void pb_open_ret_none(void);
void pb_open_jump_none(void);
#endif
