/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes texts that several views print: threads' names, times, losses, calls that are still
 * open. */
#include <stdio.h>
#include <string.h>

#include "view/select.h"

#define OPEN_LINES 64	/* limit of the lines for one stack; they show its innermost and outermost
			 * calls */

typedef unsigned long long ull;

const char *pb_view_comm(const struct pb_thread *t)
{
	return *t->comm ? t->comm : "<...>";
}

const char *pb_view_time(char *buf, size_t len, uint64_t ns)
{
	static const struct { uint64_t limit, unit; const char *name; } units[] = {
		{ 1000000, 1000, "us" }, { 1000000000, 1000000, "ms" },
		{ 1000000000000, 1000000000, "s " },
	};

	for (size_t i = 0; i < 3; i++)
		if (ns < units[i].limit) {
			snprintf(buf, len, "%3llu.%03llu %s", (ull)(ns / units[i].unit),
				 (ull)(ns % units[i].unit / (units[i].unit / 1000)), units[i].name);
			return buf;
		}
	snprintf(buf, len, "%7llu s ", (ull)(ns / 1000000000));
	return buf;
}

const char *pb_view_time_left(char *buf, size_t len, uint64_t ns)
{
	char *end;

	pb_view_time(buf, len, ns);
	for (end = buf + strlen(buf); end > buf && end[-1] == ' '; end--)
		end[-1] = 0;
	return buf + strspn(buf, " ");
}

void pb_view_losses(const struct pb_view *v, const struct pb_stream_totals *t, const char *prefix)
{
	struct pb_out *o = v->out;
	const struct {
		uint64_t nr;
		const char *noun, *what;
	} lines[] = {
		{ t->lost, "call", " lost: the buffer was full" },
		{ t->missed, "record", " of shown calls missing: the buffer was full, "
				       "or a signal handler jumped" },
		{ t->chunks_missing, "chunk", " of records overwritten or missing" },
		{ v->data->end.overwritten, "call",
			" dropped: older than what --max-size has room for" },
		{ t->unwritten, "record",
			" not written (at most), because a signal handler jumped" },
		{ t->no_return, "call", " recorded without their return" },
		{ t->read_errors, "chunk", " of records unreadable" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].nr)
			pb_out_fmt(o, "%s%llu %s%s%s\n", prefix, (ull)lines[i].nr, lines[i].noun,
				   lines[i].nr == 1 ? "" : "s", lines[i].what);
	for (size_t i = 0; i < v->data->nr_notes; i++)
		pb_out_fmt(o, "%s%s\n", prefix, v->data->notes[i]);
}

static void open_line(const struct pb_view *v, const struct pb_call_stack *s, const char *prefix,
		      uint32_t site, uint64_t start)
{
	struct pb_function f = pb_symbols_site(v->data->symbols, s->image, site);
	const struct pb_clock *clock = &v->data->clock;

	pb_out_fmt(v->out, "%s  %s", prefix, f.name);
	if (start && !clock->none) {
		uint64_t us = pb_clock_ns(clock, start) / 1000;

		pb_out_fmt(v->out, "  since %llu.%06llu", (ull)(us / 1000000), (ull)(us % 1000000));
	}
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

static void open_stack(const struct pb_view *v, const struct pb_call_stack *s, const char *prefix)
{
	const struct pb_thread *t = pb_data_thread(v->data, s->serial);
	uint32_t left_out = s->depth > OPEN_LINES ? s->depth - OPEN_LINES : 0;

	pb_out_fmt(v->out, "%sopen at the end: %s-%u", prefix, t ? pb_view_comm(t) : "<...>",
		   s->tid);
	if (!pb_stack_is_own(s))
		pb_out_fmt(v->out, ", stack %#llx", (ull)s->id);
	pb_out_str(v->out, ", innermost first\n");
	if (s->leaf_site && wanted(v, s->leaf_select, s->leaf_start))
		open_line(v, s, prefix, s->leaf_site, s->leaf_start);
	for (uint32_t i = s->depth; i--;) {
		if (left_out && i == s->depth - 1 - OPEN_LINES / 2) {
			pb_out_fmt(v->out, "%s  (%u more)\n", prefix, left_out);
			i -= left_out;
		}
		if (wanted(v, s->calls[i].select, s->calls[i].start))
			open_line(v, s, prefix, s->calls[i].site, s->calls[i].start);
	}
}

void pb_view_open_calls(const struct pb_view *v, struct pb_stream *stream, const char *prefix)
{
	struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++)
		if (any_wanted(v, s))
			open_stack(v, s, prefix);
}

void pb_view_json_totals(const struct pb_view *v, uint64_t calls, const struct pb_stream_totals *t)
{
	const struct pb_data *d = v->data;

	pb_out_fmt(v->out, "\"calls\": %llu, \"records\": %llu, \"lost\": %llu, \"missed\": %llu, "
			   "\"jumps\": %llu, \"no_return\": %llu, \"chunks_missing\": %llu, "
			   "\"overwritten\": %llu, \"bytes\": %llu, \"threads\": %zu, \"sites\": "
			   "%u, \"patched\": %u, \"refused\": %u, \"patch_ns\": %llu, "
			   "\"start_ns\": %llu, \"max_stop_ns\": %llu, \"truncated\": %s, "
			   "\"clock\": ",
		   (ull)calls, (ull)t->records, (ull)t->lost, (ull)t->missed, (ull)t->unwritten,
		   (ull)t->no_return, (ull)t->chunks_missing, (ull)d->end.overwritten,
		   (ull)t->bytes, d->nr_threads, d->ready.sites, d->ready.patched, d->ready.refused,
		   (ull)d->ready.patch_ns, (ull)d->ready.start_ns, (ull)d->end.max_stop_ns,
		   d->damaged || !d->ended ? "true" : "false");
	pb_out_json(v->out, d->clock.name);
}
