/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the open calls at the end of a recording, or the open calls of a running process. */
#include "view/select.h"

#define OPEN_LINES 64	/* limit of the calls that are printed for one stack: half of them are its
			 * innermost calls, half its outermost calls */

typedef unsigned long long ull;

/* How the lines of one view look. */
struct style {
	const char *prefix, *title;
	uint64_t now;		/* if not 0: the current time in ns, and each line shows how long
				 * the call has run. If 0: each line shows when the call began */
};

static void open_line(const struct pb_view *v, const struct pb_call_stack *s,
		      const struct style *style, uint32_t site, uint64_t start)
{
	struct pb_function f = pb_symbols_site(v->data->symbols, s->image, site);
	const struct pb_clock *clock = &v->data->clock;
	uint64_t ns = start && !clock->none ? pb_clock_ns(clock, start) : 0;
	char text[40];

	if (style->now)
		pb_out_fmt(v->out, "%s%s", style->prefix,
			   ns ? pb_view_time(text, sizeof(text),
					     style->now > ns ? style->now - ns : 0) : "          ");
	pb_out_fmt(v->out, "%s  %s", style->now ? "" : style->prefix, f.name);
	if (style->now && f.module)
		pb_out_fmt(v->out, " [%s]", f.module);
	if (!style->now && ns)
		pb_out_fmt(v->out, "  since %llu.%06llu", (ull)(ns / 1000000000),
			   (ull)(ns / 1000 % 1000000));
	pb_out_char(v->out, '\n');
}

static bool wanted(const struct pb_view *v, uint32_t select, uint64_t start)
{
	return !pb_view_selects(v) || pb_select_open(v, select, start, UINT64_MAX);
}

static bool any_wanted(const struct pb_view *v, const struct pb_call_stack *s)
{
	if (s->leaf_site && wanted(v, s->leaf_select, s->leaf_start))
		return true;
	for (uint32_t i = 0; i < s->depth; i++)
		if (wanted(v, s->calls[i].select, s->calls[i].start))
			return true;
	return false;
}

bool pb_view_lists_call(const struct pb_call_stack *s, uint32_t i)
{
	return i < OPEN_LINES / 2 || i + OPEN_LINES / 2 >= s->depth;
}

static void open_stack(const struct pb_view *v, const struct pb_call_stack *s,
		       const struct style *style)
{
	const struct pb_thread *t = pb_data_thread(v->data, s->serial);
	uint32_t left_out = s->depth > OPEN_LINES ? s->depth - OPEN_LINES : 0;

	pb_out_fmt(v->out, "%s%s%s-%u", style->prefix, style->title, t ? pb_view_comm(t) : "<...>",
		   s->tid);
	if (!pb_stack_is_own(s))
		pb_out_fmt(v->out, ", stack %#llx", (ull)s->id);
	pb_out_str(v->out, ", innermost first\n");
	if (s->leaf_site && wanted(v, s->leaf_select, s->leaf_start))
		open_line(v, s, style, s->leaf_site, s->leaf_start);
	for (uint32_t i = s->depth; i--;) {
		if (!pb_view_lists_call(s, i)) {
			pb_out_fmt(v->out, "%s  (%u more)\n", style->prefix, left_out);
			i = OPEN_LINES / 2;
			continue;
		}
		if (wanted(v, s->calls[i].select, s->calls[i].start))
			open_line(v, s, style, s->calls[i].site, s->calls[i].start);
	}
	if (s->base && style->now)
		pb_out_fmt(v->out, "%s  (%u more)\n", style->prefix, s->base);
}

/* Returns whether the image is one of the stack's process. Two processes have the same pid if they
 * run in different pid namespaces. The recorder's number tells them apart, if the process is the
 * one in which the stack's image began. For a forked child of that process, this number isn't
 * known. */
static bool is_of_process(const struct pb_data *d, const struct pb_image *image,
			  const struct pb_call_stack *s)
{
	const struct pb_image *own = &d->images[s->image];

	if (image->pid != s->pid)
		return false;
	return own->pid != s->pid || !own->outer_pid || !image->outer_pid ||
	       own->outer_pid == image->outer_pid;
}

/* Returns whether the stack's process has executed another program since the stack was used. Image
 * numbers grow with each exec. */
static bool was_replaced(const struct pb_view *v, const struct pb_call_stack *s)
{
	const struct pb_data *d = v->data;

	for (size_t i = d->nr_images; s->image && i-- > s->image + 1;)
		if (is_of_process(d, &d->images[i], s))
			return true;
	return false;
}

static bool print_stacks(const struct pb_view *v, struct pb_stream *stream,
			 const struct style *style)
{
	struct pb_call_stack *s;
	bool any = false;

	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++) {
		if (!any_wanted(v, s) || (v->image && s->image != v->image) ||
		    (style->now && was_replaced(v, s)))
			continue;
		open_stack(v, s, style);
		any = true;
	}
	return any;
}

void pb_view_open_calls(const struct pb_view *v, struct pb_stream *stream, const char *prefix)
{
	const struct style style = { prefix, "open at the end: ", 0 };

	print_stacks(v, stream, &style);
}

int pb_view_stacks(const struct pb_view *v)
{
	const struct pb_clock *c = &v->data->clock;
	const struct style style = { "", "", (c->nr ? c->lines[0].ns + c->span_ns : 0) | 1 };
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, v->data, true, v->tids, v->nr_tids);

	if (ret)
		return ret;
	while (pb_stream_next(&s, &ev))
		;
	if (!print_stacks(v, &s, &style))
		pb_out_str(v->out, v->data->nr_threads ? "no thread is in a traced call\n" :
			   "no call has been recorded yet; patchbay ps shows the tracer\n");
	pb_stream_close(&s);
	return 0;
}
