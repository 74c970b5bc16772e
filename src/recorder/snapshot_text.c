/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a snapshot in a few words. The text also has the number of chunks that are missing
 * because they changed while they were copied. */
#include <limits.h>
#include <stdio.h>

#include "abi/ring.h"
#include "base/base.h"
#include "reader/data.h"
#include "reader/kept_calls.h"
#include "reader/site_names.h"
#include "reader/snapshot.h"
#include "recorder/snapshot_text.h"
#include "recorder/texts.h"

const char *record_snapshot_text(const struct pb_snapshot *s, const char *dir, char *buf,
				 size_t len)
{
	char calls[32] = "?", bytes[32];
	uint64_t kept = 0;
	int n;

	if (!pb_kept_calls(dir, &kept))
		record_format_number(kept, calls, sizeof(calls));
	record_format_bytes(s->bytes, bytes, sizeof(bytes));
	n = snprintf(buf, len, "%s call%s, %s", calls, pb_plural(kept), bytes);
	if (s->missed && n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, ", %llu chunk%s changed meanwhile",
			 (unsigned long long)s->missed, pb_plural(s->missed));
	return buf;
}

/* Returns the index of the only image whose number has these low bits. Returns 0 if there is none,
 * or more than one: with more than 4095 images, the call may be of any of them. */
static size_t find_image(const struct pb_data *d, uint32_t low_bits)
{
	size_t found = 0;

	for (size_t i = 1; i < d->nr_images; i++) {
		if (PB_SNAPSHOT_BY_IMAGE(PB_SNAPSHOT_BY(0ull, (uint64_t)d->images[i].image, 0)) !=
		    low_bits)
			continue;
		if (found)
			return 0;
		found = i;
	}
	return found;
}

void record_snapshot_call(const char *dir, uint64_t by, char *buf, size_t len)
{
	uint64_t us = PB_SNAPSHOT_BY_US(by);
	char err[PATH_MAX + 200];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
	const char *name = "a call";
	size_t image = d ? find_image(d, PB_SNAPSHOT_BY_IMAGE(by)) : 0;

	if (image)
		name = pb_symbols_site(d->symbols, image, PB_SNAPSHOT_BY_SITE(by)).name;
	if (us == UINT32_MAX)
		snprintf(buf, len, "%.200s took more than 71 min", name);
	else if (us)
		snprintf(buf, len, "%.200s took %llu.%03llu ms", name,
			 (unsigned long long)us / 1000, (unsigned long long)us % 1000);
	else
		snprintf(buf, len, "%.200s was called", name);
	pb_data_close(d);
}
