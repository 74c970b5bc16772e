/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each call once: where it ends, or at the end of the data if it is open there. */
#include "reader/kept_calls.h"

#include <errno.h>
#include <stdbool.h>
#include "reader/data.h"
#include "reader/stream.h"

static uint64_t calls_of(const struct pb_event *ev)
{
	switch (ev->kind) {
	case PB_EV_LEAF: case PB_EV_CALL: case PB_EV_FUNC:
		return 1;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		if (ev->call)
			ev->call->aux = !!(ev->flags & PB_EV_INHERITED);
		return 0;
	case PB_EV_EXIT: case PB_EV_END:
		return ev->call ? pb_open_call_counts(ev->call) : !(ev->flags & PB_EV_COUNTED);
	default:
		return 0;
	}
}

static uint64_t open_calls(struct pb_stacks *stacks)
{
	const struct pb_call_stack *s;
	uint64_t calls = 0;

	for (size_t i = 0; (s = pb_stacks_nth(stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++)
			calls += pb_open_call_counts(&s->calls[n]);
		calls += s->leaf_site && !s->leaf_inherited;
	}
	return calls;
}

/* -EAGAIN: a stack has moved between threads, so the order counts. */
static int count(struct pb_data *d, bool by_time, uint64_t *calls)
{
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, d, by_time, NULL, 0);

	if (ret)
		return ret;
	*calls = 0;
	while (pb_stream_next(&s, &ev) && (by_time || !s.shared))
		*calls += calls_of(&ev);
	*calls += open_calls(s.stacks);
	ret = s.shared && !by_time ? -EAGAIN : 0;
	pb_stream_close(&s);
	return ret;
}

int pb_kept_calls(const char *dir, uint64_t *calls)
{
	char err[256];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
	int ret = d ? count(d, false, calls) : -EIO;

	if (ret == -EAGAIN)
		ret = count(d, true, calls);
	if (d)
		pb_data_close(d);
	return ret;
}
