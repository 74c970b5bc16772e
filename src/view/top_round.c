/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes the events of a round for `top` and `live --top`, and adds them to the sums.
 *
 * A thread whose chunks are sampled (reader/sample.h) is decoded in parts (struct pb_part). A part
 * is one chosen chunk, or all chunks from some time on. Calls and times count in the part in which
 * they happen, and in no other part. So each sum is a sum over all parts, and the parts that are
 * decoded give an estimate of the sum.
 *
 *   at a part's beginning    the open calls are timed from the part's beginning on
 *   at a part's end          each open call is counted, if it began in the part. The time of each
 *                            open call is added: the time since the call began, or since the part's
 *                            beginning if that is later. When the calls end, they aren't counted
 *                            again
 *
 * Between two parts, the decoder keeps the open calls. The next part's chunk begins with a list of
 * open calls. As after lost chunks, this list shows which of the kept calls are still open, and
 * which calls have begun since. A call counts in the chunk that has its ENTRY. A leaf counts in the
 * chunk that has its record.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/top_priv.h"

/* --- parts ------------------------------------------------------------------- */

static int add_threads(struct pb_top *t, size_t nr)
{
	struct pb_top_thread *each = realloc(t->each, nr * sizeof(*each));

	if (!each)
		return -ENOMEM;
	memset(each + t->nr_each, 0, (nr - t->nr_each) * sizeof(*each));
	t->each = each;
	t->nr_each = nr;
	return 0;
}

/* Returns a stack that the thread has used, or NULL: the first such stack from index n on. Most
 * threads have only one stack. */
static struct pb_call_stack *stack_of(struct pb_stream *s, const struct pb_cursor *c, size_t n)
{
	struct pb_call_stack *stack;

	if (!c->switches)
		return n ? NULL : c->stack;
	while ((stack = pb_stacks_nth(s->stacks, n)) && stack->serial != c->thread->serial)
		n++;
	return stack;
}

/* Adds the times that the thread's open calls have run up to `time`. */
static void settle(struct pb_stream *s, struct pb_top_group *g, const struct pb_cursor *c,
		   uint64_t from, uint64_t time)
{
	const struct pb_chunk *h = &c->chunk;
	struct pb_call_stack *stack;
	bool leaf = h->leaf_start > c->latest && h->leaf_site && h->leaf_site <= PB_SITE_MASK;
	uint32_t number = leaf ? pb_sites_number(&g->sums.sites, c->image, h->leaf_site) : 0;

	for (size_t n = 0; (stack = stack_of(s, c, n)); n++) {
		bool on_top = stack == c->stack;

		pb_sums_settle(&g->sums, stack, on_top ? number : 0,
			       h->leaf_start > from ? h->leaf_start : from, time);
	}
}

static void begin_part(struct pb_stream *s, const struct pb_cursor *c, uint64_t from)
{
	struct pb_call_stack *stack;

	for (size_t n = 0; (stack = stack_of(s, c, n)); n++)
		for (uint32_t i = 0; i < stack->depth; i++)
			stack->calls[i].aux = from;
}

/* --- events ------------------------------------------------------------------ */

/* Moves the beginning of a call to `from`, if it is earlier, because the sums already have the time
 * before `from`. */
static void clip(struct pb_top_group *g, struct pb_event *ev, uint64_t from)
{
	switch (ev->kind) {
	case PB_EV_LEAF:
		if (ev->start < from)
			ev->start = ev->time < from ? ev->time : from;
		break;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		if (!ev->call || ev->start >= from)
			break;
		/* count the call here, because with an `aux` it doesn't count when it ends */
		if (ev->kind == PB_EV_ENTRY)
			g->sums.sums[ev->call->view].calls += g->sums.weight;
		ev->call->aux = from;
		break;
	default:
		break;
	}
}

static int take_events(struct pb_top *t, struct pb_follow *f)
{
	struct pb_top_group *g = NULL;
	struct pb_thread *thread = NULL;
	uint64_t from = 0;
	struct pb_event ev;

	while (pb_follow_next(f, &ev)) {
		if (ev.kind == PB_EV_LOST)
			t->lost += ev.value;
		if (!g || ev.thread != thread) {
			size_t index = (size_t)pb_follow_index(f, ev.thread->serial);

			g = pb_top_group(t, f, index);
			from = pb_top_thread(t, index)->from;
			thread = ev.thread;
		}
		if (!g)
			return -ENOMEM;
		unsigned calls = pb_call_count(&ev);

		if (ev.kind == PB_EV_LEAF && from)
			clip(g, &ev, from);
		pb_sums_event(&g->sums, &ev, calls);
		if (ev.kind != PB_EV_LEAF && from)
			clip(g, &ev, from);
	}
	return 0;
}

static int take_part(struct pb_top *t, struct pb_follow *f, const struct pb_part *p)
{
	struct pb_stream *s = pb_follow_stream(f);
	const struct pb_cursor *c = &s->cursors[p->thread];
	struct pb_top_group *g = pb_top_group(t, f, p->thread);
	struct pb_top_thread *th;
	int ret;

	if (!g || (p->thread >= t->nr_each && add_threads(t, s->nr)))
		return -ENOMEM;
	th = &t->each[p->thread];
	if (p->kind == PB_PART_PAUSE) {
		if (!th->paused)
			settle(s, g, c, th->from, p->from);
		th->paused = g->estimated = g->ever_estimated = true;
		return 0;
	}
	th->paused = false;
	th->from = p->from;
	begin_part(s, c, p->from);
	g->sums.weight = p->weight;
	g->sums.time_weight = p->time_weight;
	ret = take_events(t, f);
	if (!ret && p->kind == PB_PART_READ) {
		settle(s, g, c, p->from, p->to);
		th->paused = true;
	}
	g->sums.weight = g->sums.time_weight = PB_SAMPLE_UNIT;
	return ret;
}

int pb_top_round(struct pb_top *t, struct pb_follow *f, bool due)
{
	const struct pb_part *p;
	int ret = 0;

	t->view = (struct pb_view){ .data = pb_follow_data(f), .out = t->out, .to = UINT64_MAX };
	if (pb_follow_modules(f))
		ret = pb_top_renumber(t, f);
	if (!ret)
		ret = pb_sample_round(&t->sample, f, due);
	if (!ret)
		ret = take_events(t, f);
	while (!ret && (p = pb_sample_part(&t->sample, f)))
		ret = take_part(t, f, p);
	pb_sample_done(&t->sample);
	return ret;
}
