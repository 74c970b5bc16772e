/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of the function graph that the assembly of entries and exits (arch/arch.h) leaves to C.
 * Each stack has its open calls (open_calls.h). A thread knows the innermost open call of the stack
 * that it is on. Context: hit path, unless said otherwise. See doc/design/open-calls.md.
 */
#ifndef PB_ENGINE_GRAPH_CALLS_H
#define PB_ENGINE_GRAPH_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/arch.h"
#include "engine/graph/call_records.h"
#include "engine/graph/thread_words.h"

/* Notes in the state of t that t is on the stack that holds the slot, and returns that stack.
 * Context: a hit of t. */
const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot);
/* Called when the program has reported the bounds of a stack (makecontext, sigaltstack). `slot` is
 * the return slot of the reporting call. Calls that are still open on this stack belong to an
 * earlier use of the memory, and are closed. alternate: sigaltstack reported it. */
void pb_stack_reported(uint64_t slot, uint64_t lo, uint64_t size, bool alternate);
/* Returns the call's depth in the tree; an outermost call has depth 1. */
uint32_t pb_calls_depth(const struct pb_open_call *call);
/* Lists the calls that are open when a chunk begins, outermost first. The ring calls this function
 * through the pointer pb_ring_open_calls. ending: a call to list although its exit is under way, or
 * NULL. */
size_t pb_calls_open(struct pb_writer *w, struct pb_owner o, uint64_t *out, size_t max,
		     uint32_t *depth, const void *ending);

/* Called when a compiler's hook reports that a call begins or ends. at: the return slot of the call
 * to the hook itself. */
void pb_hook_enter(struct pb_site *site, uint64_t at, unsigned mode);
void pb_hook_exit(struct pb_site *site, uint64_t at);

/* Opens a call whose exit must go to C code, because its return has eBPF programs, or because it is
 * timed. watch: the ID of the struct prog_site with the programs, greater than 0 and less than
 * PB_WATCH_BELOW; or PB_WATCH_BELOW if there are no programs. mode PB_ENTER_LIST: the call isn't
 * part of the recorded tree. False: the programs won't run at the return. */
bool pb_calls_watch(struct pb_site *site, uint64_t *slot, unsigned mode, uint16_t watch);
/* Called after the programs at the return of c have run. Ends c. Returns the next call that
 * returns through the same slot and has programs at its return, or NULL. */
struct pb_open_call *pb_calls_watched(struct pb_open_call *c, uint64_t *slot);

/* The assembly calls this function when a call begins. mode: PB_ENTER_*. */
void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode);
/* The assembly calls this function when a call ends. call: the open call that ends, if the assembly
 * has marked it as leaving, else NULL. now: the clock at the exit; unused if call is NULL. from:
 * the address at which the exit's stub goes on; NULL at a plain return. Returns the first call
 * through this slot that has eBPF programs at its return, for pb_prog_returned(); NULL: there is
 * none. */
struct pb_open_call *pb_calls_exit(uint64_t *slot, struct pb_open_call *call, uint64_t now,
				   const void *from);
#endif
