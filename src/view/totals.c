/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes texts that several views print: names of threads, times, losses. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "view/select.h"

typedef unsigned long long ull;

const char *pb_view_comm(const struct pb_thread *t)
{
	return *t->comm ? t->comm : "<...>";
}

uint64_t pb_view_line_ns(const struct pb_view *v, uint64_t tsc)
{
	uint64_t ns = pb_clock_ns(&v->data->clock, tsc);
	struct pb_latest *latest = v->latest;

	if (!latest || tsc < latest->tsc)
		return ns;
	*latest = (struct pb_latest){ tsc, ns > latest->ns ? ns : latest->ns };
	return latest->ns;
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

/* Returns the reason why the recorder discarded calls. */
static const char *discard_cause(const struct pb_data *d, char *buf, size_t len)
{
	if (!d->discard_error)
		return " lost: --max-size was reached";
	if (d->discard_error == ENOSPC)
		return " lost: the disk was full";
	snprintf(buf, len, " lost: the data could not be written (%s)",
		 strerror((int)d->discard_error));
	return buf;
}

void pb_view_losses(const struct pb_view *v, const struct pb_stream_totals *t, const char *prefix)
{
	struct pb_out *o = v->out;
	char cause[128];
	const struct {
		uint64_t nr;
		const char *noun, *what;
	} lines[] = {
		{ t->lost - t->discarded, "call", v->data->discard_error && !t->discarded ?
			" lost: the data could not be written, or the buffer was full" :
			" lost: the buffer was full" },
		{ t->discarded, "call", discard_cause(v->data, cause, sizeof(cause)) },
		{ t->missed, "record", " of shown calls missing: the buffer was full, "
				       "or a signal handler ended by a jump" },
		{ t->chunks_missing, "chunk", " of records overwritten or missing" },
		{ v->data->end.overwritten, "call",
			" dropped: older than what --max-size has room for" },
		{ t->unwritten, "record",
			" may be missing, because a signal handler ended by a jump" },
		{ t->no_return, "call", " recorded without their return" },
		{ t->read_errors, "chunk", " of records unreadable" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].nr)
			pb_out_fmt(o, "%s%llu %s%s%s\n", prefix, (ull)lines[i].nr, lines[i].noun,
				   pb_plural(lines[i].nr), lines[i].what);
	for (size_t i = 0; i < v->data->nr_notes; i++)
		pb_out_fmt(o, "%s%s\n", prefix, v->data->notes[i]);
}

void pb_view_json_totals(const struct pb_view *v, uint64_t calls, const struct pb_stream_totals *t)
{
	const struct pb_data *d = v->data;

	pb_out_fmt(v->out, "\"calls\": %llu, \"records\": %llu, \"lost\": %llu, "
			   "\"discarded\": %llu, \"missed\": %llu, \"jumps\": %llu, "
			   "\"no_return\": %llu, \"chunks_missing\": %llu, "
			   "\"chunks_unreadable\": %llu, \"overwritten\": %llu, "
			   "\"bytes\": %llu, \"threads\": %zu, \"sites\": "
			   "%u, \"patched\": %u, \"refused\": %u, \"patch_ns\": %llu, "
			   "\"start_ns\": %llu, \"max_stop_ns\": %llu, \"truncated\": %s, "
			   "\"clock\": ",
		   (ull)calls, (ull)t->records, (ull)t->lost, (ull)t->discarded,
		   (ull)t->missed, (ull)t->unwritten, (ull)t->no_return, (ull)t->chunks_missing,
		   (ull)t->read_errors, (ull)d->end.overwritten, (ull)t->bytes, d->nr_threads,
		   d->ready.sites, d->ready.patched, d->ready.refused, (ull)d->ready.patch_ns,
		   (ull)d->ready.start_ns, (ull)d->end.max_stop_ns,
		   d->damaged || !d->ended ? "true" : "false");
	pb_out_json(v->out, d->clock.name);
}
