/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints events as they come, and counts the calls that exceed the limit of lines (live_text.h). */
#include "view/live_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/sys.h"
#include "reader/call_walk.h"

#define SECOND_NS	1000000000ull

/* The limit of lines is a token bucket: unused time is saved, and each line costs a part of it. At
 * most this much time is saved. */
#define SAVED_NS	SECOND_NS

static void earn_lines(struct pb_live_text *l)
{
	uint64_t now = pb_now_ns(), passed = now - l->clock_ns;

	if (!l->clock_ns || passed > SAVED_NS)
		passed = SAVED_NS;
	l->clock_ns = now;
	l->tokens_ns += passed;
	if (l->tokens_ns > SAVED_NS)
		l->tokens_ns = SAVED_NS;
}

static bool may_print(struct pb_live_text *l)
{
	uint64_t cost = l->lines ? SECOND_NS / l->lines : 0;

	if (l->tokens_ns < cost)
		return false;
	l->tokens_ns -= cost;
	return true;
}

static void print_left_out(struct pb_live_text *l)
{
	if (!l->left_out)
		return;
	pb_out_str(l->out, "... ");
	pb_out_commas(l->out, l->left_out);
	pb_out_fmt(l->out, " call%s left out ...\n", pb_plural(l->left_out));
	l->left_out = 0;
}

static void on_event(struct pb_live_text *l, const struct pb_event *ev)
{
	unsigned calls = pb_call_count(ev);
	/* at a call's end, the call counts as shown if the line of its entry was printed */
	bool begun = ev->call && pb_graph_text_has(ev->call);
	bool show = may_print(l);

	if (show && l->left_out) {
		print_left_out(l);
		show = may_print(l);
	}
	if (l->graph)
		pb_graph_text_event(l->graph, ev, show);
	else if (show)
		pb_function_text_event(&l->view, ev);
	if (show || begun) {
		l->all_shown += calls;
	} else {
		l->left_out += calls;
		l->all_left_out += calls;
	}
}

static int begin(struct pb_live_text *l, struct pb_follow *f)
{
	l->view = (struct pb_view){ .data = pb_follow_data(f), .out = l->out, .to = UINT64_MAX,
				    .latest = &l->latest };
	if (pb_data_is_function_tracer(l->view.data))
		return 0;
	l->graph = pb_graph_text_new(&l->view, l->flags);
	return l->graph ? 0 : -ENOMEM;
}

int pb_live_text_round(struct pb_live_text *l, struct pb_follow *f)
{
	struct pb_event ev;
	int ret = l->view.data ? 0 : begin(l, f);

	if (ret)
		return ret;
	earn_lines(l);
	while (pb_follow_next(f, &ev))
		on_event(l, &ev);
	while (pb_follow_late_next(f, &ev))
		on_event(l, &ev);
	if (l->left_out && may_print(l))
		print_left_out(l);
	pb_out_flush(l->out);
	return 0;
}

/* Counts the open calls. A call was shown if the line of its entry was printed, or if
 * pb_view_open_calls() lists it. */
static void count_open(struct pb_live_text *l, struct pb_stacks *stacks)
{
	const struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++) {
			const struct pb_open_call *call = &s->calls[n];

			if (!pb_open_call_counts(call))
				continue;
			if (pb_graph_text_has(call) || pb_view_lists_call(s, n))
				l->all_shown++;
			else
				l->all_left_out++;
		}
		l->all_shown += s->leaf_site && !s->leaf_inherited;
	}
}

void pb_live_text_end(struct pb_live_text *l, struct pb_follow *f)
{
	struct pb_stream *s = pb_follow_stream(f);

	if (!l->view.data)
		return;
	print_left_out(l);
	if (l->graph) {
		pb_view_open_calls(&l->view, s, "# ");
		count_open(l, s->stacks);
	}
	pb_view_losses(&l->view, pb_stream_totals(s), "# ");
	if (!l->all_left_out)
		return;
	pb_out_str(l->out, "# ");
	pb_out_commas(l->out, l->all_shown);
	pb_out_fmt(l->out, " call%s shown, ", pb_plural(l->all_shown));
	pb_out_commas(l->out, l->all_left_out);
	pb_out_str(l->out, " left out; --lines=0 shows all\n");
}

void pb_live_text_free(struct pb_live_text *l)
{
	free(l->graph);
	l->graph = NULL;
}
