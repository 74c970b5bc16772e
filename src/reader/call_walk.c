/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rules for what counts as a call (call_walk.h), for the views and the recorder. */
#include "reader/call_walk.h"

#include <errno.h>

static void note_begin(const struct pb_event *ev)
{
	if (ev->call && ev->flags & PB_EV_INHERITED)
		ev->call->aux = ev->time | !ev->time;	/* the value isn't 0, even if there is no
							 * clock */
}

unsigned pb_call_count(const struct pb_event *ev)
{
	switch (ev->kind) {
	case PB_EV_LEAF: case PB_EV_CALL: case PB_EV_FUNC:
		return 1;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		note_begin(ev);
		return 0;
	case PB_EV_EXIT: case PB_EV_END:
		return ev->call ? pb_open_call_counts(ev->call) : !(ev->flags & PB_EV_COUNTED);
	default:
		return 0;
	}
}

static void open_calls(const struct pb_call_walk *w, struct pb_stacks *stacks)
{
	struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++)
			w->open(w->arg, s, &s->calls[n], pb_open_call_counts(&s->calls[n]));
		if (s->leaf_site)
			w->open(w->arg, s, NULL, !s->leaf_inherited);
	}
}

int pb_call_walk(struct pb_call_walk *w)
{
	struct pb_stream s;
	struct pb_event ev;
	bool is_void;
	int ret = pb_stream_open(&s, w->data, w->by_time, w->tids, w->nr_tids);

	if (ret)
		return ret;
	while (pb_stream_next(&s, &ev) && (w->by_time || !s.shared))
		if (!w->event(w->arg, &ev, pb_call_count(&ev)))
			break;
	is_void = s.shared && !w->by_time;
	if (!is_void)
		open_calls(w, s.stacks);
	w->totals = *pb_stream_totals(&s);
	pb_stream_close(&s);
	return is_void ? -EAGAIN : 0;
}
