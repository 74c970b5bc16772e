/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adds up the calls that a walk counts (call_walk.h). */
#include "reader/kept_calls.h"

#include <errno.h>
#include "reader/call_walk.h"
#include "reader/data.h"

static bool add_event(void *sum, const struct pb_event *ev, unsigned calls)
{
	*(uint64_t *)sum += calls;
	return true;
}

static void add_open(void *sum, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls)
{
	*(uint64_t *)sum += calls;
}

int pb_kept_calls(const char *dir, uint64_t *calls)
{
	char err[256];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
	struct pb_call_walk w = { .data = d, .event = add_event, .open = add_open, .arg = calls };
	int ret = -EAGAIN;

	if (!d)
		return -EIO;
	for (int by_time = 0; by_time < 2 && ret == -EAGAIN; by_time++) {
		w.by_time = by_time;
		*calls = 0;
		ret = pb_call_walk(&w);
	}
	pb_data_close(d);
	return ret;
}
