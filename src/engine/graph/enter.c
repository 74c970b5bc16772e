/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Handles those entries that the assembly leaves to C. A site's handler has a mode (PB_ENTER_*).
 * The mode says which tracer gets the call: the function tracer, all tracers that select the site,
 * or the graph tracer. It also says how the graph tracer treats the call. The table handlers[] maps
 * the graph tracer's handlers to their modes.
 */
#include "engine/graph/enter.h"
#include "engine/graph/calls.h"
#include "engine/graph/thread_words.h"
#include "engine/clock.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "base/base.h"

void pb_record_function(struct pb_site *site, uint64_t parent_ip)
{
	struct pb_thread *t = pb_tls;

	if (!pb_max_depth || !t->top)
		return;
	parent_ip = pb_ext_address(parent_ip);
	pb_writer_put(&t->w, pb_ext_word(PB_EXT_FUNC, 2, site->id, 0), pb_clock(),
		      PB_EXT_TIME_BITS, &parent_ip, 1);
}

void pb_enter(struct pb_site *site, uint64_t *slot, unsigned mode)
{
	if (mode != PB_ENTER_FUNCTION && mode != PB_ENTER_LIST) {
		pb_calls_enter(site, slot, mode);
		return;
	}
	if (pb_latched || !pb_thread_get((uint64_t)slot))
		return;
	if (mode == PB_ENTER_FUNCTION) {
		pb_record_function(site, *slot);
		return;
	}
	mode = pb_ftrace_list(site, *slot);
	/* PB_WATCH_BELOW sends the exit of the call to C code, which reports how long the call
	 * took */
	if (site->flags & FTRACE_FL_TIMED)
		pb_calls_watch(site, slot, mode, PB_WATCH_BELOW);
	else if (mode != PB_ENTER_LIST)
		pb_calls_enter(site, slot, mode);
}

static const struct {
	void (*handler)(void);
	unsigned mode;
} handlers[] = {
	{ pb_open_graph, 0 },
	{ pb_open_graph_nested, PB_ENTER_NESTED },
	{ pb_open_lazy, PB_ENTER_LAZY },
	{ pb_open_lazy_nested, PB_ENTER_LAZY | PB_ENTER_NESTED },
	{ pb_open_silent, PB_ENTER_SILENT },
	{ pb_open_call, PB_ENTER_CALL },
	{ pb_open_call_nested, PB_ENTER_CALL | PB_ENTER_NESTED },
	/* --clock=none */
	{ pb_open_none, 0 },
	{ pb_open_none_nested, PB_ENTER_NESTED },
};

uint64_t pb_graph_handler(unsigned mode, bool no_clock_nor_limit)
{
	if (no_clock_nor_limit && !(mode & ~(unsigned)PB_ENTER_NESTED))
		return (uint64_t)(mode ? pb_open_none_nested : pb_open_none);
	/* the call's end would decide whether the call is recorded, but isn't seen */
	if (mode & PB_ENTER_CALL && mode & PB_ENTER_LAZY)
		return 0;
	for (size_t i = 0; i < pb_array_size(handlers); i++)
		if (mode == handlers[i].mode)
			return (uint64_t)handlers[i].handler;
	return (uint64_t)pb_open_silent;
}

unsigned pb_graph_mode(struct pb_site *s, uint64_t handler, uint64_t parent_ip)
{
	for (size_t i = 0; i < pb_array_size(handlers); i++)
		if (handler == (uint64_t)handlers[i].handler)
			return handlers[i].mode;
	return handler == (uint64_t)pb_list ? pb_ftrace_list(s, parent_ip) : PB_ENTER_LIST;
}
