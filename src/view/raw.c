/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints one line for each event of the decoder, for scripts and for debugging.
 *   TIME SERIAL TID STACK DEPTH KIND SITE NAME [start=] [parent_ip= or count=] [flags]
 * Times are ticks of the records' clock. A line of the KIND "lost" has no SITE and no NAME. */
#include "view/view.h"

static const char *const kinds[] = {
#define X(kind, name) [PB_EV_##kind] = name,
	PB_EVENTS(X)
#undef X
};

static void print_event(const struct pb_view *v, const struct pb_event *ev)
{
	pb_out_fmt(v->out, "%llu %u %u %#llx %u %s", (unsigned long long)ev->time,
		   ev->thread->serial, ev->tid, (unsigned long long)ev->stack->id, ev->depth,
		   kinds[ev->kind]);
	if (ev->kind != PB_EV_LOST)
		pb_out_fmt(v->out, " %u %s", ev->site,
			   pb_symbols_site(v->data->symbols, ev->image, ev->site).name);
	if (ev->start && ev->start != ev->time)
		pb_out_fmt(v->out, " start=%llu", (unsigned long long)ev->start);
	if (ev->value)
		pb_out_fmt(v->out, ev->kind == PB_EV_FUNC ? " parent_ip=%#llx" : " count=%llu",
			   (unsigned long long)ev->value);
	if (ev->flags & PB_EV_SKIPPED)
		pb_out_str(v->out, " skipped");
	if (ev->flags & PB_EV_GAP)
		pb_out_str(v->out, " gap");
	if (ev->flags & PB_EV_INHERITED)
		pb_out_str(v->out, " inherited");
	if (ev->flags & PB_EV_TAIL)
		pb_out_str(v->out, " tail");
	pb_out_char(v->out, '\n');
}

int pb_view_raw(const struct pb_view *v)
{
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, v->data, true, v->tids, v->nr_tids);

	if (ret)
		return ret;
	while (!v->out->error && pb_stream_next(&s, &ev))
		if (pb_view_in_range(v, ev.time))
			print_event(v, &ev);
	pb_view_losses(v, pb_stream_totals(&s), "# ");
	pb_stream_close(&s);
	return 0;
}
