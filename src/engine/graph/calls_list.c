/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists a thread's open calls, for the writer. Each chunk begins with this list, so that a reader
 * can decode the chunk alone. The list is made from the innermost call outwards, and fills the
 * array from its end. If there isn't enough room, only the innermost calls are listed. The chunk's
 * header has the depth of the innermost listed call. From this depth, a reader finds out how many
 * calls are missing from the list.
 */
#include "engine/graph/calls.h"
#include "base/base.h"

/* Calls that are open only for eBPF programs or for snapshot_on (PB_ENTRY_PROG) aren't in the tree,
 * and don't count. */
uint32_t pb_calls_depth(const struct pb_open_call *call)
{
	uint32_t depth = pb_open_depth(call);

	if (pb_calls_watching)
		for (const struct pb_open_call *c = call; !pb_open_is_root(c); c = pb_open_below(c))
			depth -= c->state == PB_ENTRY_PROG;
	return depth;
}

size_t pb_calls_open(struct pb_writer *w, struct pb_owner o, uint64_t *out, size_t max,
		     uint32_t *depth, const void *ending)
{
	struct pb_thread *t = pb_container_of(w, struct pb_thread, w);
	/* if `top` is NULL, the thread's state is still being made */
	struct pb_open_call *c = t->top ? pb_open_innermost(t->top) : NULL;
	uint64_t *end = out + max, *p = end;
	size_t nr;

	for (; c && !pb_open_is_root(c) && p - out >= 2; c = pb_open_below(c)) {
		if ((c != ending && c->record != PB_OPEN_UNRESERVED && !pb_open_is_live(c)) ||
		    c->state != PB_ENTRY_EMITTED)
			continue;
		if (p == end)
			*depth = pb_calls_depth(c);
		pb_own_store(o, --p, c->start);
		pb_own_store(o, --p, pb_ext_word(PB_EXT_OPEN, 2, c->site, 0));
	}
	/* the walk has filled the array from its end: move the list to the front */
	nr = (size_t)(end - p);
	for (size_t i = 0; i < nr && p > out; i++)
		pb_own_store(o, &out[i], p[i]);
	for (p = out + nr > p ? out + nr : p; p < end; p++)
		pb_own_store(o, p, 0);
	return nr;
}
