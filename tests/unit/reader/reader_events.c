/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a text of the events in a directory that a test has written. The tests of the decoder
 * compare this text with the expected text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "reader_events.h"

const char *events_dir;
struct gen g;
char text[EVENTS_SIZE];
uint64_t unwritten;

static const char *const kinds[] = {
	[PB_EV_LEAF] = "leaf", [PB_EV_ENTRY] = "entry", [PB_EV_EXIT] = "exit", [PB_EV_END] = "end",
	[PB_EV_CALL] = "call", [PB_EV_FUNC] = "func", [PB_EV_OPEN] = "open", [PB_EV_LOST] = "lost",
	[PB_EV_LEAF_OPEN] = "running",
};

void begin(void)
{
	gen_begin(&g, events_dir, "function_graph", "x86-tsc");
}

void begin_chunk(uint64_t start)
{
	begin();
	gen_chunk(&g, 1, 100, 0, start);
}

void note(const struct pb_event *ev)
{
	size_t len = strlen(text);
	int n = snprintf(text + len, sizeof(text) - len, "%s %u", kinds[ev->kind], ev->site);

	len += (size_t)n;
	if (ev->kind == PB_EV_LOST)
		n = sprintf(text + len, " %llu", (unsigned long long)ev->value);
	else if (ev->start == ev->time)
		n = sprintf(text + len, " @%llu", (unsigned long long)ev->time);
	else
		n = sprintf(text + len, " %llu-%llu", (unsigned long long)ev->start,
			    (unsigned long long)ev->time);
	len += (size_t)n;
	sprintf(text + len, " d%u%s%s%s%s\n", ev->depth,
		ev->flags & PB_EV_SKIPPED ? " skipped" : "", ev->flags & PB_EV_GAP ? " gap" : "",
		ev->flags & PB_EV_INHERITED ? " inherited" : "",
		ev->flags & PB_EV_TAIL ? " tail" : "");
}

const char *events(bool by_time)
{
	char err[5000];
	struct pb_data *d = pb_data_open(events_dir, 0, err, sizeof(err));
	struct pb_stream s;
	struct pb_event ev;

	assert_non_null(d);
	text[0] = 0;
	assert_int_equal(pb_stream_open(&s, d, by_time, NULL, 0), 0);
	while (pb_stream_next(&s, &ev) && strlen(text) < sizeof(text) - 200)
		note(&ev);
	unwritten = pb_stream_totals(&s)->unwritten;
	pb_stream_close(&s);
	pb_data_close(d);
	return text;
}

const char *finish(void)
{
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 60);
	return events(true);
}
