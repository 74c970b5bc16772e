/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes the last chunk of each thread. The list at the chunk's start and its records give the
 * thread's open calls. */
#include "reader/last_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/data.h"
#include "reader/site_names.h"
#include "reader/stream.h"

#define MOST_NAMES	3
#define MOST_NAME	60	/* longer names are cut off */

static void keep_last_chunks(struct pb_data *d)
{
	for (size_t i = 0; i < d->nr_threads; i++) {
		struct pb_thread *t = &d->threads[i];

		if (!t->nr)
			continue;
		t->first += t->nr - 1;
		t->nr = 1;
		t->start = d->chunks[t->first].start;
	}
	d->whole = false;
}

static bool has_open(const struct pb_call_stack *s)
{
	return s->depth || s->leaf_site;
}

/* Of the stacks that have open calls, returns the stack whose thread was active last. NULL: no
 * stack has open calls. Stores the time of each thread's last event in `times`. A leaf that still
 * runs has no event, so its start counts instead. */
static struct pb_call_stack *find_last(struct pb_stream *s, const struct pb_data *d,
				       uint64_t *times)
{
	struct pb_call_stack *c, *last = NULL;
	uint64_t best = 0;
	struct pb_event ev;

	while (pb_stream_next(s, &ev))
		times[ev.thread - d->threads] = ev.time;
	for (size_t i = 0; (c = pb_stacks_nth(s->stacks, i)); i++) {
		const struct pb_thread *t = pb_data_thread(d, c->serial);
		uint64_t at = t ? times[t - d->threads] : 0;

		at = c->leaf_site && c->leaf_start > at ? c->leaf_start : at;
		if (has_open(c) && (!last || at > best)) {
			last = c;
			best = at;
		}
	}
	return last;
}

static size_t add_name(const struct pb_data *d, const struct pb_call_stack *s, uint32_t site,
		       char *text, size_t len, size_t at)
{
	int n = snprintf(text + at, len - at, "%s%.*s", at ? " < " : "", MOST_NAME,
			 pb_symbols_site(d->symbols, s->image, site).name);

	return n > 0 && (size_t)n < len - at ? at + (size_t)n : len - 1;
}

static void print_calls(const struct pb_data *d, const struct pb_call_stack *s, char *text,
			size_t len)
{
	uint32_t from = s->depth;
	size_t at = 0;
	int nr = 0;

	if (s->leaf_site) {
		at = add_name(d, s, s->leaf_site, text, len, at);
		nr++;
	}
	for (; from && nr < MOST_NAMES; nr++)
		at = add_name(d, s, s->calls[--from].site, text, len, at);
	if (from)
		snprintf(text + at, len - at, " < ...");
}

int pb_last_calls(const char *dir, char *text, size_t len)
{
	char err[256];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
	struct pb_call_stack *last;
	struct pb_stream s;
	uint64_t *times;
	int ret;

	*text = 0;
	if (!d)
		return -EIO;
	keep_last_chunks(d);
	times = calloc(d->nr_threads + 1, sizeof(*times));
	ret = times ? pb_stream_open(&s, d, true, NULL, 0) : -ENOMEM;
	if (!ret) {
		last = find_last(&s, d, times);
		if (last)
			print_calls(d, last, text, len);
		pb_stream_close(&s);
	}
	free(times);
	pb_data_close(d);
	return ret;
}
